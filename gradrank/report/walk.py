"""The walk from a baseline towards a goal: what is gained, what is kept, and where it had to end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gradrank.report.figures import COLOURS, IMAGES, Section, new_figure, write_figure, write_page
from gradrank.selection.improvement import Improvement

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def walk_figure(found: Improvement) -> Figure:
    """The goal above, each kept measure's lower bound below, along the walk.

    >>> from gradrank.data.artificial import make_splits
    >>> from gradrank.learners import LambdaMART
    >>> from gradrank.selection.constrained import improve
    >>> data = make_splits(60, n_docs=10, n_features=5, random_state=1, clicks=True)
    >>> learner = LambdaMART(n_estimators=5, min_child_samples=5)
    >>> figure = walk_figure(improve(learner, data["train"], data["vali"], "CNDCG@3", "NDCG@10 >= 80%"))
    >>> [axis.get_ylabel() for axis in figure.axes]
    ['CNDCG@3', 'bound of NDCG@10 >= 80%']
    """
    figure, axes = new_figure(1 + len(found.keeps), width=7.0, height=3.2, across=1)
    at = list(range(len(found.stops)))
    chosen = found.stops.index(found.chosen)
    lines = [[stop.goal for stop in found.stops], *zip(*(stop.bounds for stop in found.stops), strict=True)]
    names = [str(found.goal), *(f"bound of {keep}" for keep in found.keeps)]
    for axis, values, name in zip(axes, lines, names, strict=True):
        axis.plot(at, values, color=COLOURS[0], linewidth=1.5)
        axis.plot(chosen, values[chosen], marker="D", color=COLOURS[1], markersize=8)
        axis.set_ylabel(name)
        if name != str(found.goal):
            axis.axhline(0.0, color=COLOURS[5], linestyle="--", linewidth=1.0)
    starts = [0] + [number for number in at[1:] if found.stops[number].first != found.stops[number - 1].first]
    axes[-1].set_xticks(starts, [found.stops[number].first for number in starts])
    axes[-1].set_xlabel("from ranker to ranker")
    return figure


def write_walk(path: str | Path, found: Improvement, *, title: str = "Improved within bounds") -> None:
    """Write the walk as an HTML page with its table, or as an image (.svg, .png, .pdf)."""
    path = Path(path)
    if path.suffix.lower() in IMAGES:
        write_figure(walk_figure(found), path)
        return
    caption = (
        f"Means on {found.queries:,} queries that chose nothing before, along mixtures of neighboring rankers. The "
        "walk ends where a lower confidence bound falls below the dashed line. Diamond: the point that was chosen."
    )
    write_page(path, title, [Section("The walk", caption, walk_figure(found), found.table())], [found.sentence() + "."])

"""The trade-off of a sweep: what the lower tiers gain, and what it costs the first."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gradrank.measures import Measure
from gradrank.report.figures import COLOURS, IMAGES, Section, new_figure, write_figure, write_page
from gradrank.selection.sweep import Sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def tradeoff_figure(found: Sweep, data: str = "valid") -> Figure:
    """Differences from weight 0 with their intervals: the trusted measure across, a lower measure up, one panel each.

    >>> from gradrank.data.artificial import make_splits
    >>> from gradrank.selection.sweep import sweep
    >>> from gradrank.learners import LambdaMART
    >>> data = make_splits(40, n_docs=10, n_features=5, random_state=1, clicks=True)
    >>> learner = LambdaMART("Tiered(NDCG@3, CNDCG@3)", n_estimators=10, min_child_samples=5)
    >>> figure = tradeoff_figure(sweep(learner, data["train"], data["vali"], [0.2, 0.5]))
    >>> figure.axes[0].get_xlabel().split(" (")[0]
    'NDCG@3, difference from weight 0'
    """
    trusted, *lower = found.evaluations[data].measures
    figure, axes = new_figure(max(1, len(lower)), width=6.5, height=5.0)
    for axis, measure in zip(axes, lower or [trusted], strict=True):
        _panel(axis, found, data, trusted, measure)
    figure.suptitle(f"{data}: {len(found.evaluations[data].qids):,} queries")
    return figure


def parallel_figure(found: Sweep, data: str = "valid") -> Figure:
    """Differences from weight 0 by all measures: a line per model, an axis per measure, each in units of its own.

    A unit is the largest difference on that axis. Models that no other beats on all measures are drawn in full.

    >>> from gradrank.data.artificial import make_splits
    >>> from gradrank.selection.sweep import sweep
    >>> from gradrank.learners import LambdaMART
    >>> data = make_splits(40, n_docs=10, n_features=5, random_state=1, clicks=True)
    >>> learner = LambdaMART("Tiered(NDCG@3, CNDCG@3)", n_estimators=10, min_child_samples=5)
    >>> figure = parallel_figure(sweep(learner, data["train"], data["vali"], [0.2, 0.5]))
    >>> [label.get_text().splitlines()[0] for label in figure.axes[0].get_xticklabels()]
    ['NDCG@3', 'CNDCG@3']
    """
    evaluation, baseline, efficient = found.evaluations[data], found.choice.baseline, found.efficient(data)
    means = np.array([[evaluation.summary(name, m).mean for m in evaluation.measures] for name in found.rankers])
    base = np.array([evaluation.summary(baseline, m).mean for m in evaluation.measures])
    units = np.nanmax(np.abs(means - base), axis=0)
    heights = (means - base) / np.where(units > 0, units, 1.0)
    figure, (axis,) = new_figure(1, width=8.0, height=5.0)
    at = np.arange(len(evaluation.measures))
    for name, height in zip(found.rankers, heights, strict=True):
        chosen, full = name == found.choice.system, name in efficient
        color = COLOURS[1] if chosen else COLOURS[0] if full else COLOURS[5]
        axis.plot(at, height, color=color, alpha=1.0 if chosen or full else 0.35, linewidth=2.5 if chosen else 1.2,
                  marker="o", markersize=4, label=name, zorder=3 if chosen else 2)  # fmt: skip
        if chosen or full:
            words = name.removeprefix("w=") + (" (chosen)" if chosen else "")
            axis.annotate(words, (at[-1], height[-1]), xytext=(8, -3), textcoords="offset points", color=color)
    axis.set_xticks(
        at, [f"{m}\n{mean:.4f} ± {unit:.4f}" for m, mean, unit in zip(evaluation.measures, base, units, strict=True)]
    )
    axis.set_xlim(-0.2, len(at) - 0.5)
    axis.axhline(0.0, color=COLOURS[5], linestyle="--", linewidth=1.0)
    axis.set_ylabel("difference from weight 0, in units of each axis")
    figure.suptitle(f"{data}: {len(evaluation.qids):,} queries")
    return figure


def write_tradeoff(path: str | Path, found: Sweep, *, title: str = "Trade-off of the tiers") -> None:
    """Write the trade-off as an HTML page with tables, or as an image (.svg, .png, .pdf) of the validation data."""
    path = Path(path)
    if path.suffix.lower() in IMAGES:
        write_figure(tradeoff_figure(found), path)
        return
    caption = (
        "Dot: mean difference from the model with weight 0. Bars: {level} intervals of both differences, not corrected "
        "for the number of models. Left of the dashed line the trusted measure is lower than without the lower tiers."
    )
    level = f"{100 * (1 - found.choice.level):.6g} %"
    sections = [
        Section(f"On {name}", caption.format(level=level), tradeoff_figure(found, name), found.table(name))
        for name in found.evaluations
    ]
    if len(found.choice.measures) > 2:
        words = (
            "One line per model, one axis per measure, in units of the largest difference on it. Models that no other "
            "beats on all measures are drawn in full; the orange one was chosen."
        )
        sections += [
            Section(f"All measures, on {name}", words, parallel_figure(found, name)) for name in found.evaluations
        ]
    reasons = [f"{name}: {reason}" for name, reason in found.choice.reasons.items() if name != found.choice.system]
    write_page(path, title, sections, [found.choice.sentence() + ".", *reasons])


def _panel(axis: object, found: Sweep, data: str, across: Measure, up: Measure) -> None:
    from matplotlib.axes import Axes

    assert isinstance(axis, Axes)
    evaluation, comparison = found.evaluations[data], found.comparison(data)
    baseline = found.choice.baseline
    rows = {(row.system, row.measure): row.test for row in comparison.rows} if comparison else {}
    path = []
    for name in found.rankers:
        x, y = rows.get((name, across)), rows.get((name, up))
        color = COLOURS[1] if name == found.choice.system else COLOURS[0]
        at = (x.difference, y.difference) if x and y else (0.0, 0.0)
        if not all(map(isfinite, at)):
            continue
        path.append(at)
        if x and y and all(map(isfinite, (x.low, x.high, y.low, y.high))):
            axis.plot([x.low, x.high], [at[1]] * 2, color=color, alpha=0.5, linewidth=1.2)
            axis.plot([at[0]] * 2, [y.low, y.high], color=color, alpha=0.5, linewidth=1.2)
        chosen = name == found.choice.system
        axis.plot(*at, marker="D" if chosen else "o", color=color, markersize=8 if chosen else 6)
        words = name.replace("w=", "") + (" (chosen)" if chosen else "")
        axis.annotate(words, at, xytext=(6, 6), textcoords="offset points", color=color)
    if path:
        axis.plot(*zip(*path, strict=True), color=COLOURS[5], linewidth=0.8, zorder=1)
    axis.axvline(0.0, color=COLOURS[5], linestyle="--", linewidth=1.0)
    axis.axhline(0.0, color=COLOURS[5], linestyle=":", linewidth=1.0)
    for setter, measure in ((axis.set_xlabel, across), (axis.set_ylabel, up)):
        setter(f"{measure}, difference from weight 0 ({evaluation.summary(baseline, measure).mean:.4f})")

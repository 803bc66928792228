"""A test of local optimality as a page or a picture: the measure along random directions, like figures 1 to 4 and 6 of
Donmez et al. (2009)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import DataError, MissingExtraError
from gradrank.evaluation import Column
from gradrank.models.display.axis import Axis
from gradrank.optimality import Climb, OptimalityResult
from gradrank.runtime.files import replacing
from gradrank.version import __version__

PICTURES = (".svg", ".png", ".pdf")
PAGES = (".html", ".htm")
_SHOWN = 4
_TICKS = 6
_LONGEST_LIST = 20
_COLOURS = ("#0067a3", "#c75b00", "#00785a", "#a3447c")
_DASHES = ("-", "--", ":", "-.")


@dataclass(frozen=True)
class Line:
    """A curve to draw: one value per step, the first at the weights themselves."""

    name: str
    values: NDArray[np.float64]


@dataclass(frozen=True)
class WeightRow:
    """A weight changed alone: the highest value minus the value at the weights, going up and going down."""

    name: str
    up: float
    down: float


def write_optimality(
    path: str | Path, tested: OptimalityResult | Climb, *, title: str = "Local optimality", facts: Any = None
) -> None:
    """Write a page (``.html``) or a picture (``.svg``, ``.png``, ``.pdf``) of a test or a climb.

    >>> import tempfile
    >>> from gradrank.data import RankingData
    >>> from gradrank.measures import MRR
    >>> from gradrank.models.linear import LinearRanker
    >>> from gradrank.optimality import local_optimality
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0]], [0, 1], qid=[1, 1])
    >>> result = local_optimality(LinearRanker([1.0, 0.5]), data, MRR())
    >>> page = Path(tempfile.mkdtemp()) / "page.html"
    >>> write_optimality(page, result)
    >>> "Not a local optimum of MRR" in page.read_text(encoding="utf-8")
    True
    """
    check_plot_name(path)
    if Path(path).suffix.lower() in PAGES:
        page = render_optimality(tested, title=title, facts=facts)
        with replacing(path) as temporary:
            temporary.write_bytes(page.encode("utf-8"))
        return
    figure = draw_optimality(tested, title=title)
    with replacing(path) as temporary:
        figure.savefig(temporary, format=Path(path).suffix.lower()[1:], dpi=150)


def check_plot_name(path: str | Path) -> None:
    """Find out that a plot cannot be made before the work for it begins: its suffix, or a package that is missing."""
    suffix = Path(path).suffix.lower()
    if suffix not in (*PAGES, *PICTURES):
        raise DataError(f"the suffix {suffix!r} is none of {', '.join((PAGES[0], *PICTURES))}", path=path)
    package = "jinja2" if suffix in PAGES else "matplotlib"
    try:
        __import__(package)
    except ImportError:
        raise MissingExtraError(package, "report") from None


def shown_lines(result: OptimalityResult) -> list[Line]:
    """Four directions to draw: the best one if any improves, else the first ones."""
    rows = [*range(min(_SHOWN, result.directions))]
    if result.improving:
        best = int(np.argmax(result.changes.mean.max(axis=1)))
        rows = [best, *(row for row in rows if row != best)][:_SHOWN]
    return [Line(f"direction {row + 1}", _curve(result, row)) for row in rows]


def weight_rows(result: OptimalityResult) -> list[WeightRow]:
    """The weights that gain most, or lose least, when changed alone."""
    best = result.weight_changes.mean.reshape(-1, 2, len(result.steps)).max(axis=2)
    order = np.argsort(-best.max(axis=1), kind="stable")[:_LONGEST_LIST]
    names = [result.weight_names[place] for place in result.weights[: result.weights_tried]]
    return [WeightRow(names[row], float(best[row, 0]), float(best[row, 1])) for row in order]


def draw_optimality(tested: OptimalityResult | Climb, *, title: str = "") -> Any:
    """A matplotlib figure: the measure against the step, for some directions and, shaded, for all."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    result = tested.result if isinstance(tested, Climb) else tested
    figure = Figure(figsize=(6, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    steps = [0.0, *result.steps]
    if result.directions:
        low, high = _range(result)
        axes.fill_between(steps, low, high, color="#d8dee6", label=f"all {result.directions} directions", linewidth=0)
    for place, line in enumerate(shown_lines(result)):
        axes.plot(steps, line.values, color=_COLOURS[place], linestyle=_DASHES[place], label=line.name)
    axes.axhline(result.value, color="#55606e", linewidth=1)
    axes.set(xlabel=step_name(result), ylabel=str(result.measure), title=title)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize="small")
    return figure


def render_optimality(
    tested: OptimalityResult | Climb, *, title: str = "Local optimality", facts: Mapping[str, Any] | None = None
) -> str:
    """The text of the page that :func:`write_optimality` writes."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    result = tested.result if isinstance(tested, Climb) else tested
    environment = Environment(
        loader=PackageLoader("gradrank.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for kind in ("number", "signed", "p"):
        environment.filters[kind] = Column("", kind).show
    style = files("gradrank.report") / "templates" / "style.css"
    return environment.get_template("optimality.html").render(
        title=title,
        result=result,
        climb=tested if isinstance(tested, Climb) and tested.moves else None,
        chart=_chart(result),
        way=_way(tested) if isinstance(tested, Climb) and tested.moves else None,
        rows=weight_rows(result),
        step_name=step_name(result),
        facts=dict(facts or {}),
        version=__version__,
        style=style.read_text(encoding="utf-8"),
    )


def step_name(result: OptimalityResult) -> str:
    """What the steps are counted in."""
    return "step η, in lengths of the weight vector" if result.scale == "relative" else "step η"


def _curve(result: OptimalityResult, row: int) -> NDArray[np.float64]:
    return result.value + np.concatenate(([0.0], result.changes.mean[row]))


def _range(result: OptimalityResult) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    changes = np.column_stack((np.zeros(result.directions), result.changes.mean))
    return result.value + changes.min(axis=0), result.value + changes.max(axis=0)


def _chart(result: OptimalityResult) -> dict[str, Any] | None:
    """The curves in percent of a chart's width and height."""
    if not result.directions:
        return None
    low, high = _range(result)
    x = Axis(0.0, result.steps[-1])
    y = Axis.around((*low.tolist(), *high.tolist()))
    at = [x.at(step) for step in (0.0, *result.steps)]

    def points(places: list[float], values: NDArray[np.float64]) -> str:
        return " ".join(f"{a},{round(100 - y.at(v), 3)}" for a, v in zip(places, values.tolist(), strict=True))

    return {
        "band": f"{points(at, high)} {points(at[::-1], low[::-1])}",
        "lines": [(line.name, points(at, line.values), float(line.values[-1])) for line in shown_lines(result)],
        "start": y.at(result.value),
        "x": x.labels(_TICKS),
        "y": y.labels(_TICKS),
    }


def _way(climb: Climb) -> dict[str, Any]:
    x, y = Axis(0.0, float(len(climb.moves))), Axis.around(climb.values)
    points = [f"{x.at(move)},{round(100 - y.at(value), 3)}" for move, value in enumerate(climb.values)]
    ticks = [(at, text) for at, text in x.labels(_TICKS) if "." not in text]
    return {"points": " ".join(points), "x": ticks, "y": y.labels(_TICKS)}

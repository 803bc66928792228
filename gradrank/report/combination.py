"""The curve of an exact combination as a picture or a page: a measure against the mixing weight of two rankers."""

from __future__ import annotations

import io
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.combine import Combination
from gradrank.errors import DataError, MissingExtraError
from gradrank.runtime.files import replacing

PICTURES = (".svg", ".png", ".pdf")
PAGES = (".html", ".htm")
# More steps than this are drawn as the range of the values in each of so many columns.
_COLUMNS = 2000
# A range of α that spans more than this factor is drawn on a logarithmic axis.
_DECADES = 100.0
_COLOURS = ("#0067a3", "#c75b00", "#00785a", "#a3447c")

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><style>{style}
svg {{ max-width: 100%; height: auto; }}</style></head>
<body><main><h1>{title}</h1>
<p>{verdict}</p>
{picture}
<table><thead><tr><th>system</th><th>weight</th>{heads}</tr></thead><tbody>
{rows}
</tbody></table></main></body></html>
"""


def write_combination(path: str | Path, found: Combination, names: tuple[str, str] = ("A", "B")) -> None:
    """Write a picture (``.svg``, ``.png``, ``.pdf``) or a page (``.html``) of the curve.

    >>> import tempfile
    >>> from gradrank.combine import optimal_combination
    >>> from gradrank.data import RankingData
    >>> from gradrank.measures import MRR
    >>> data = RankingData.from_arrays([[0.0]] * 2, [1, 0], qid=[1, 1])
    >>> page = Path(tempfile.mkdtemp()) / "curve.html"
    >>> write_combination(page, optimal_combination([0, 1], [1, 0], data, MRR()))
    >>> "MRR 1.0000" in page.read_text(encoding="utf-8")
    True
    """
    check_curve_name(path)
    suffix = Path(path).suffix.lower()
    figure = draw_combination(found, names)
    if suffix in PAGES:
        text = _page(found, names, figure)
        with replacing(path) as temporary:
            temporary.write_bytes(text.encode("utf-8"))
        return
    with replacing(path) as temporary:
        figure.savefig(temporary, format=suffix[1:], dpi=150)


def check_curve_name(path: str | Path) -> None:
    """Find out that the curve cannot be drawn before the work for it begins."""
    suffix = Path(path).suffix.lower()
    if suffix not in (*PAGES, *PICTURES):
        raise DataError(f"the suffix {suffix!r} is none of {', '.join((PAGES[0], *PICTURES))}", path=path)
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtraError("matplotlib", "report") from None


def verdict(found: Combination, names: tuple[str, str] = ("A", "B")) -> str:
    """What was found, in one sentence."""
    values = ", ".join(f"{measure} {value:.4f}" for measure, value in found.values.items())
    weights = " + ".join(f"{weight:.6g} · {name}" for weight, name in zip(found.weights, names, strict=True) if weight)
    return f"{weights or '0'} has {values}"


def draw_combination(found: Combination, names: tuple[str, str] = ("A", "B")) -> Any:
    """A matplotlib figure of the curve, one panel per measure, with the chosen weight."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    curve = found.curve
    shares = bool(np.isinf(curve.edges[-1]))
    place = _share if shares else np.asarray
    logarithmic = not shares and curve.edges[0] > 0 and curve.edges[-1] > _DECADES * curve.edges[0]
    figure = Figure(figsize=(7, 3.4 * len(curve.measures) + 0.4), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(curve.measures), 1, squeeze=False, sharex=True)[:, 0]
    for number, (panel, measure) in enumerate(zip(panels, curve.measures, strict=True)):
        color = _COLOURS[number % len(_COLOURS)]
        edges, low, high = _columns(place(curve.edges), curve.values[number], logarithmic)
        panel.stairs(high, edges, baseline=low, fill=True, color=color, alpha=0.35, linewidth=0)
        panel.stairs(high, edges, baseline=None, color=color, linewidth=1.2, label=measure)
        panel.plot(
            [float(place(np.array(found.alpha)))], [found.values[measure]], "o", color="#1c2530", markersize=5,
            label=f"best: α = {found.alpha:.6g}",
        )  # fmt: skip
        for name, part, style in zip(names, found.values_of_parts, ("--", ":"), strict=True):
            panel.axhline(part[measure], color="#55606e", linewidth=1, linestyle=style, label=f"{name} alone")
        panel.set_ylabel(measure)
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(frameon=False, fontsize="small")
        shown = [low.min(), high.max(), found.values[measure], *(part[measure] for part in found.values_of_parts)]
        room = 0.04 * (max(shown) - min(shown)) or 0.01
        panel.set_ylim(min(shown) - room, max(shown) + room)
        if logarithmic:
            panel.set_xscale("log")
    panels[-1].set_xlabel(f"share of {names[1]}: α / (1 + α)" if shares else f"α, the weight of {names[1]}")
    return figure


def _share(alpha: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(alpha), 1.0, alpha / (1.0 + alpha))


def _columns(
    edges: NDArray[np.float64], values: NDArray[np.float64], logarithmic: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The curve as it is, or the lowest and highest value in each of many columns if it has too many steps to see."""
    if len(values) <= _COLUMNS:
        return edges, values, values
    spaced = np.geomspace if logarithmic else np.linspace
    grid = spaced(edges[0], edges[-1], _COLUMNS + 1)
    first = np.minimum(np.searchsorted(edges, grid[:-1], side="right") - 1, len(values) - 1)
    last = np.maximum(np.searchsorted(edges, grid[1:], side="left"), first + 1)
    low = np.array([values[a:b].min() for a, b in zip(first, last, strict=True)])
    high = np.array([values[a:b].max() for a, b in zip(first, last, strict=True)])
    return grid, low, high


def _page(found: Combination, names: tuple[str, str], figure: Any) -> str:
    picture = io.StringIO()
    figure.savefig(picture, format="svg")
    svg = picture.getvalue()
    systems = [("together", found.alpha, found.values)]
    systems += [
        (name, weight, part) for name, weight, part in zip(names, found.weights, found.values_of_parts, strict=True)
    ]
    rows = "\n".join(
        f"<tr><td>{escape(name)}</td><td>{'' if name == 'together' else f'{weight:.6g}'}</td>"
        + "".join(f"<td>{values[measure]:.4f}</td>" for measure in found.values)
        + "</tr>"
        for name, weight, values in systems
    )
    style = (files("gradrank.report") / "templates" / "style.css").read_text(encoding="utf-8")
    title = escape(f"{names[0]} and {names[1]} together")
    heads = "".join(f"<th>{escape(measure)}</th>" for measure in found.values)
    return _PAGE.format(
        title=title, style=style, verdict=escape(verdict(found, names)), picture=svg[svg.index("<svg") :], heads=heads,
        rows=rows,
    )  # fmt: skip

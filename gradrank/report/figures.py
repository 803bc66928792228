"""Figures drawn with matplotlib: into image files, or together on one HTML page that needs nothing else."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradrank.errors import DataError, MissingExtraError
from gradrank.evaluation.tables import Table
from gradrank.runtime.files import made_folder, replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IMAGES = (".svg", ".png", ".pdf")
# Colors and line styles differ, so that lines can be told apart in print and by everyone.
COLOURS = ("#0067a3", "#c75b00", "#00785a", "#a3447c", "#6b5b00", "#5d6774")
STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))


@dataclass(frozen=True)
class Section:
    """A part of a page: a heading, what is to be seen, a figure, a table."""

    heading: str
    caption: str
    figure: Figure | None = None
    table: Table | None = None
    name: str = ""
    """File name of the figure without its suffix."""


def new_figure(
    panels: int = 1, *, width: float = 7.0, height: float = 4.0, across: int | None = None
) -> tuple[Figure, list[Any]]:
    """An empty figure with panels side by side, at most ``across`` of them in a row."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "report") from None
    columns = min(panels, across or panels)
    rows = -(-panels // columns)
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    axes = [figure.add_subplot(rows, columns, number + 1) for number in range(panels)]
    for axis in axes:
        axis.grid(True, color="#e6eaf0")
        axis.set_axisbelow(True)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    return figure, axes


def line_style(number: int) -> dict[str, Any]:
    """Color and dashes of the n-th line of a panel."""
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": STYLES[number % len(STYLES)], "linewidth": 1.8}


def write_figure(figure: Figure, path: str | Path) -> None:
    """Write one figure as SVG, PNG or PDF, by the file's suffix."""
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in IMAGES:
        raise DataError(f"is no image that can be written, expected a name that ends in {', '.join(IMAGES)}", path=path)
    with replacing(path) as temporary:
        temporary.write_bytes(_image(figure, kind[1:]))


def write_page(path: str | Path, title: str, sections: Sequence[Section], notes: Sequence[str] = ()) -> None:
    """Write one HTML page with all sections, figures as SVG inside it.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "page.html"
    >>> write_page(path, "A < B", [Section("Nothing", "to see")])
    >>> "A &lt; B" in path.read_text(encoding="utf-8")
    True
    """
    page = render_page(title, sections, notes)
    with replacing(path) as temporary:
        # File names may hold bytes that are not UTF-8, which Python keeps as lone surrogates.
        temporary.write_bytes(page.encode("utf-8", "replace"))


def render_page(title: str, sections: Sequence[Section], notes: Sequence[str] = ()) -> str:
    """The text of such a page."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise MissingExtraError("jinja2", "report") from None
    environment = Environment(
        loader=PackageLoader("gradrank.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shown = [
        {
            "heading": section.heading,
            "caption": section.caption,
            "svg": None if section.figure is None else _inline_svg(section.figure),
            "columns": [] if section.table is None else section.table.columns,
            "rows": [] if section.table is None else _cells(section.table),
        }
        for section in sections
    ]
    style = (files("gradrank.report") / "templates" / "style.css").read_text(encoding="utf-8")
    return environment.get_template("figures.html").render(title=title, sections=shown, notes=notes, style=style)


def write_folder(folder: str | Path, sections: Sequence[Section], suffix: str = ".svg") -> list[Path]:
    """Write every figure into a folder, which is made; returns the files."""
    folder = made_folder(Path(folder))
    written = []
    for section in sections:
        if section.figure is not None:
            path = folder / f"{section.name}{suffix}"
            write_figure(section.figure, path)
            written.append(path)
    return written


def _cells(table: Table) -> list[list[str]]:
    return [[column.show(cell) for column, cell in zip(table.columns, row, strict=True)] for row in table.rows]


def _image(figure: Figure, kind: str) -> bytes:
    import matplotlib

    buffer = io.BytesIO()
    # Neither the time nor random ids: the same figure is the same file.
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}[kind]
    with matplotlib.rc_context({"svg.hashsalt": "gradrank", "svg.fonttype": "path"}):
        figure.savefig(buffer, format=kind, dpi=150, metadata=metadata)
    return buffer.getvalue()


def _inline_svg(figure: Figure) -> str:
    text = _image(figure, "svg").decode("utf-8")
    return text[text.index("<svg") :]

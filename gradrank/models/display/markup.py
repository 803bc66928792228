"""Tables as pieces of HTML that look right on a light and on a dark background."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

# Everything takes its color from the notebook's text: there is no background that could clash with it.
_LINE = "1px solid color-mix(in srgb, currentColor 35%, transparent)"
_CELL = "padding:.2em .7em;border:0;border-bottom:{line};text-align:{align};font-variant-numeric:tabular-nums"
_SMALL = "opacity:.75;font-size:90%"
# Green and red that are told apart from both white and black; a sign says the same.
COLORS = {"better": "#1f9d55", "worse": "#d9483b"}


# Characters that HTML does not allow as text; names from files may hold them.
_CONTROL = dict.fromkeys((*range(9), 11, 12, *range(14, 32), *range(127, 160)), "�")


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def markup(text: str) -> Html:
    """Text as HTML, whatever it holds.

    >>> markup("<b>"), markup(Html("<b>"))
    ('&lt;b&gt;', '<b>')
    """
    return text if isinstance(text, Html) else Html(escape(text))


def strong(text: str) -> Html:
    """Text in bold."""
    return Html(f"<strong>{markup(text)}</strong>")


def small(text: str) -> Html:
    """Text that steps back."""
    return Html(f'<span style="{_SMALL}">{markup(text)}</span>')


def colored(text: str, kind: str, title: str = "") -> Html:
    """Text in the color of an outcome (see ``COLORS``; any other kind has none), with words to be read on pointing."""
    color = f"color:{COLORS[kind]}" if kind in COLORS else "opacity:.75"
    return Html(f'<span style="{color}" title="{escape(title)}">{markup(text)}</span>')


def table_html(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, numeric: Sequence[bool], caption: str | None = None
) -> Html:
    """A table.

    Parameters
    ----------
    head
        The columns' names; none are shown if all are empty.
    rows
        The cells, a row at a time.
    numeric
        Whether each column holds numbers, which stand at the right.
    caption
        What the table shows.

    >>> table_html(["a"], [["<i>"]], numeric=[False]).count("&lt;i&gt;")
    1
    """
    styles = [_CELL.format(line=_LINE, align="right" if number else "left") for number in numeric]
    lines = ['<table style="border-collapse:collapse;width:auto;margin:.3em 0">']
    if caption is not None:
        lines.append(f'<caption style="caption-side:top;text-align:left;padding:.2em 0">{markup(caption)}</caption>')
    if any(head):
        cells = "".join(f'<th scope="col" style="{s}">{markup(h)}</th>' for h, s in zip(head, styles, strict=True))
        lines.append(f"<thead><tr>{cells}</tr></thead>")
    lines.append("<tbody>")
    for row in rows:
        cells = "".join(f'<td style="{s}">{markup(cell)}</td>' for cell, s in zip(row, styles, strict=True))
        lines.append(f"<tr>{cells}</tr>")
    return Html("\n".join([*lines, "</tbody></table>"]))


def notes_html(notes: Iterable[str]) -> Html:
    """Sentences below a table."""
    return Html("".join(f'<div style="{_SMALL}">{markup(note)}</div>' for note in notes))


def as_page(text: str) -> str:
    r"""A page without characters that HTML or UTF-8 cannot hold.

    >>> as_page("a\x00b")
    'a�b'
    """
    # File names may hold bytes that are not UTF-8, which Python keeps as lone surrogates.
    return text.translate(_CONTROL).encode("utf-8", "replace").decode("utf-8")

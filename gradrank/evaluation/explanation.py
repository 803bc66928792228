"""Why one document stands above another: shares of the features in the difference of scores, as tables and charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.evaluation.tables import Column, Table
from gradrank.models.display.markup import COLORS, Html, as_page, markup, notes_html, strong, table_html

_SHOWN = 10
_IN_OVERVIEW = 3
_BAR_REM = 14
_PAGE_STYLE = (
    ":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;margin:1.5rem auto;max-width:60rem;"
    "padding:0 1rem;overflow-wrap:anywhere}h1{font-size:1.4rem}h2{font-size:1.1rem;margin:1.5em 0 .2em}"
    ".scroll{overflow-x:auto}"
)


@dataclass(frozen=True)
class RankedDocument:
    """A document of the query, and where it stands."""

    name: str
    """Its id; its rank if the data has no ids."""
    rank: int
    """Its place in the ranking, from 1."""
    row: int
    """Its row in the data as given, from 1."""
    score: float
    label: float | None
    """Its first label, if it is judged."""

    def __str__(self) -> str:
        return self.name if self.name == f"rank {self.rank}" else f"{self.name} (rank {self.rank})"


@dataclass(frozen=True, eq=False)
class Contrast:
    """One document against another, or against the mean of all documents of the query."""

    document: RankedDocument
    other: RankedDocument | None
    """None: the mean of all documents."""
    difference: float
    """The document's score minus the other's, or minus the mean score."""
    shares: NDArray[np.float64]
    """What each feature adds to the difference; together they are the difference."""
    values: tuple[Any, ...]
    """The document's values of the features; None = missing."""
    other_values: tuple[Any, ...]
    """The other's, or the means of those that are numbers."""

    @property
    def rest(self) -> float:
        """What rounding leaves between the shares' sum and the difference."""
        return self.difference - float(self.shares.sum())

    @property
    def against(self) -> str:
        """The other in words."""
        return "the query's mean" if self.other is None else str(self.other)

    def order(self) -> list[int]:
        """Numbers of the features, the largest share of either sign first; those without a share are left out."""
        order = np.argsort(-np.abs(self.shares), kind="stable")
        return [int(place) for place in order if self.shares[place]]


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Differences of scores within a query, divided among the features.

    Made by :func:`~gradrank.explain`. Shows itself as bar charts in a notebook.
    """

    query: str
    n_docs: int
    feature_names: tuple[str, ...]
    contrasts: tuple[Contrast, ...]
    ways: tuple[str, ...]
    """What was calculated, a sentence for each kind of ranker that takes part."""

    def title(self, contrast: Contrast) -> str:
        """A sentence on who stands above whom."""
        first, other = contrast.document, contrast.other
        difference = contrast.difference
        word = "stands level with" if difference == 0 else "stands above" if difference > 0 else "stands below"
        other_score = first.score - difference if other is None else other.score
        scores = f"{first.score:.6g} against {other_score:.6g}"
        return f"Query {self.query}: {first} {word} {contrast.against} by {difference:+.6g} ({scores})"

    # ------------------------------------------------------------------ tables
    def table(self, top: int | None = None) -> Table:
        """One row for each document and feature, the largest share first.

        Parameters
        ----------
        top
            How many features of each document; all that have a share unless given.
        """
        names = ("query", "document", "rank", "against", "feature", "value", "against value")
        columns = (*(Column(name) for name in names), Column("share", "signed"))
        rows = [
            (
                self.query,
                contrast.document.name,
                contrast.document.rank,
                "mean" if contrast.other is None else contrast.other.name,
                self.feature_names[place],
                contrast.values[place],
                contrast.other_values[place],
                float(contrast.shares[place]),
            )
            for contrast in self.contrasts
            for place in contrast.order()[:top]
        ]
        return Table(columns, tuple(rows))

    def tables(self, top: int = _SHOWN) -> list[Table]:
        """A table for people for each contrast: features with both values and shares, what is left out in one row.

        Parameters
        ----------
        top
            How many features to show.
        """
        return [self._table(contrast, top) for contrast in self.contrasts]

    def _table(self, contrast: Contrast, top: int) -> Table:
        order = contrast.order()
        rows: list[tuple[Any, ...]] = [
            (
                self.feature_names[place],
                _shown(contrast.values[place]),
                _shown(contrast.other_values[place]),
                float(contrast.shares[place]),
            )
            for place in order[:top]
        ]
        rest = order[top:]
        if rest:
            rows.append((f"{len(rest):,} other features", "", "", float(contrast.shares[rest].sum())))
        rows.append(("all together", "", "", contrast.difference))
        other = "mean" if contrast.other is None else contrast.other.name
        columns = (Column("feature"), Column(contrast.document.name), Column(other), Column("share", "signed"))
        return Table(columns, tuple(rows), self.title(contrast))

    def overview(self, features: int = _IN_OVERVIEW) -> Table:
        """One row per document: its score, its distance to the other, and the features that matter most.

        Parameters
        ----------
        features
            How many features to name.
        """
        columns = (
            Column("rank", "count"),
            Column("document"),
            Column("label"),
            Column("score", "number"),
            Column("against"),
            Column("difference", "signed"),
            Column("because of"),
        )
        rows = [
            (
                contrast.document.rank,
                contrast.document.name,
                "" if contrast.document.label is None else f"{contrast.document.label:g}",
                contrast.document.score,
                "mean" if contrast.other is None else contrast.other.name,
                contrast.difference,
                ", ".join(
                    f"{self.feature_names[place]} {contrast.shares[place]:+.4f} "
                    f"({_shown(contrast.values[place])} against {_shown(contrast.other_values[place])})"
                    for place in contrast.order()[:features]
                ),
            )
            for contrast in self.contrasts
        ]
        return Table(columns, tuple(rows), f"Query {self.query}, {self.n_docs:,} documents")

    # ------------------------------------------------------------------ other forms
    def to_dict(self) -> dict[str, Any]:
        """Plain values: every contrast with all features that have a share."""
        return {
            "query": self.query,
            "documents": self.n_docs,
            "ways": list(self.ways),
            "contrasts": [self._contrast_dict(contrast) for contrast in self.contrasts],
        }

    def _contrast_dict(self, contrast: Contrast) -> dict[str, Any]:
        return {
            "document": _document_dict(contrast.document),
            "against": "mean" if contrast.other is None else _document_dict(contrast.other),
            "difference": contrast.difference,
            "rounding": contrast.rest,
            "features": [
                {
                    "name": self.feature_names[place],
                    "share": float(contrast.shares[place]),
                    "value": contrast.values[place],
                    "against_value": contrast.other_values[place],
                }
                for place in contrast.order()
            ],
        }

    def to_html(self, top: int = _SHOWN, *, page: bool = False) -> str:
        """Bar charts as HTML.

        Parameters
        ----------
        top
            How many features of each document to show.
        page
            Whether to make a whole page that needs nothing else, instead of a piece for another page.
        """
        charts = "".join(self._chart(contrast, top) for contrast in self.contrasts)
        notes = notes_html(f"How shares are found: {way}." for way in self.ways)
        if not page:
            return f"<div>{charts}{notes}</div>"
        title = f"Why? Query {self.query}"
        return as_page(
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
            'img-src data:"><meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<link rel="icon" href="data:,"><title>{escape(title)}</title><style>{_PAGE_STYLE}</style></head>'
            f"<body><h1>{escape(title)}</h1><main>{charts}</main>{notes}</body></html>\n"
        )

    def _chart(self, contrast: Contrast, top: int) -> str:
        table = self._table(contrast, top)
        longest = max((abs(row[-1]) for row in table.rows[:-1]), default=0.0)
        rows = []
        for number, row in enumerate(table.rows):
            last = number == len(table.rows) - 1
            cells = [markup(cell) for cell in row[:-1]]
            amount = Html(f"{row[-1]:+.4f}")
            bar = Html("") if last else _bar(row[-1], longest)
            rows.append([*(map(strong, cells) if last else cells), bar, strong(amount) if last else amount])
        head = [*(column.name for column in table.columns[:-1]), "", "share"]
        drawn = table_html(head, rows, numeric=[False, True, True, False, True])
        heading = f"<h2>{markup(table.title or '')}</h2>"
        return f'<section>{heading}<div class="scroll" style="overflow-x:auto">{drawn}</div></section>'

    def _repr_html_(self) -> str:
        return self.to_html()

    def __repr__(self) -> str:
        shown: Sequence[Table] = self.tables() if len(self.contrasts) == 1 else [self.overview()]
        return "Explanation: " + "\n".join(table.to_markdown() for table in shown).rstrip()


def _bar(share: float, longest: float) -> Html:
    """A bar from the middle: to the right if the share is for the document, to the left if against it."""
    width = 0.0 if longest == 0.0 else round(50.0 * abs(share) / longest, 2)
    left = 50.0 if share >= 0 else 50.0 - width
    color = COLORS["better" if share >= 0 else "worse"]
    return Html(
        f'<div aria-hidden="true" style="position:relative;width:{_BAR_REM}rem;height:1em">'
        '<i style="position:absolute;left:50%;top:-.2em;bottom:-.2em;border-left:1px solid;opacity:.4"></i>'
        f'<i style="position:absolute;left:{left}%;width:{width}%;top:.1em;bottom:.1em;background:{color}"></i></div>'
    )


def _document_dict(document: RankedDocument) -> dict[str, Any]:
    return {
        "name": document.name,
        "rank": document.rank,
        "row": document.row,
        "score": document.score,
        "label": document.label,
    }


def _shown(value: Any) -> str:
    if value is None:
        return "missing"
    return f"{value:.6g}" if isinstance(value, float) else str(value)

"""Drift as a table and as a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gradrank.data.drift import Change, Drift
from gradrank.evaluation.tables import Column, Table
from gradrank.report.figures import Section, new_figure, write_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DRAWN = 25


def drift_table(changes: tuple[Change, ...], title: str | None = None) -> Table:
    """One row per feature.

    >>> change = Change("bm25", 0.31, 0.02, 0.0, 0.1, 0.0, 0.02, ("spread",))
    >>> print(drift_table((change,)).to_csv().splitlines()[1])
    bm25,0.31,0.02,0.0,0.1,0.0,0.02,spread
    """
    columns = (
        Column("feature"),
        Column("PSI", "number"),
        Column("by chance", "number"),
        Column("missing before", "number"),
        Column("missing now", "number"),
        Column("new values", "number"),
        Column("outside", "number"),
        Column("above threshold"),
    )
    rows = [
        (
            change.name,
            change.psi,
            change.chance,
            change.missing_before,
            change.missing_now,
            change.new_values,
            change.outside,
            verdict(change),
        )
        for change in changes
    ]
    return Table(columns, tuple(rows), title)


def verdict(change: Change) -> str:
    """What is wrong with a feature, in words."""
    return ", ".join(change.faults) + ("" if change.used or not change.faults else " (not used by the model)")


def summary(drift: Drift) -> str:
    """The outcome in one sentence.

    >>> from gradrank.data.drift import Thresholds
    >>> summary(Drift(100, (), (), Thresholds()))
    'Nothing has changed beyond its threshold in 100 documents.'
    """
    faults = drift.faults
    over = f"{drift.documents:,} documents"
    if not faults:
        return f"Nothing has changed beyond its threshold in {over}."
    labels = {change.name for change in drift.labels}
    names = [f"label {change.name!r}" if change.name in labels else change.name for change in faults]
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5:,} more" if len(names) > 5 else "")
    return f"Changed beyond a threshold in {over}: {shown}."


def write_drift(path: str | Path, drift: Drift, *, title: str = "Drift") -> None:
    """Write a page: the outcome, a figure of the features that moved most, and everything as a table.

    Parameters
    ----------
    path
        The HTML file to write.
    drift
        What was found.
    title
        Title of the page.
    """
    limits = drift.thresholds
    sections = [
        Section(
            "Where the spread has moved most",
            f"Population stability index of the {min(_DRAWN, len(drift.features))} features that changed most, with "
            f"the threshold of {limits.psi:g}; the tick on each bar is what chance alone reaches in 1 of 1,000 cases.",
            _figure(drift),
        ),
        Section(
            "Features",
            "PSI compares the spread of the values that are there; new values are shares of documents with a value "
            "that training did not know; outside are values below the lowest or above the highest of training.",
            table=drift_table(drift.features),
        ),
    ]
    if drift.labels:
        sections.insert(1, Section("Labels", "The same for the labels.", table=drift_table(drift.labels)))
    counted = (
        f"Thresholds: PSI {limits.psi:g}, missing values {limits.missing:g}, new values {limits.new_values:g}, labels' "
        f"PSI {limits.label_psi:g}; features that the model does not use are shown and do not count."
    )
    write_page(path, title, sections, [summary(drift), counted])


def _figure(drift: Drift) -> Figure:
    shown = [change for change in drift.features if change.psi == change.psi][:_DRAWN][::-1]
    figure, (axis,) = new_figure(width=8.0, height=max(1.6, 0.27 * len(shown) + 0.8))
    colors = ["#c75b00" if "spread" in change.faults and change.used else "#8aa5bd" for change in shown]
    places = range(len(shown))
    axis.barh(places, [change.psi for change in shown], color=colors, height=0.7)
    axis.vlines(
        [change.chance for change in shown], [p - 0.35 for p in places], [p + 0.35 for p in places], color="#1b2430"
    )
    axis.axvline(drift.thresholds.psi, color="#55606e", linestyle="--")
    axis.set_yticks(list(places), [_short(change.name) for change in shown])
    axis.set_xlabel("PSI")
    axis.set_ylim(-0.6, len(shown) - 0.4)
    return figure


def _short(name: str) -> str:
    return name if len(name) <= 30 else name[:29] + "…"

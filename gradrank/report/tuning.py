"""A search for parameters as pictures: how far it came, what matters, and where good values lie."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gradrank.learners.base.search import Range
from gradrank.report.figures import COLOURS, IMAGES, Section, new_figure, write_figure, write_page
from gradrank.selection.trials import Trial
from gradrank.selection.tuned import Tuned

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_ACROSS = 3


def history_figure(found: Tuned) -> Figure:
    """Value of each trial in the order in which they were begun, and the best so far."""
    figure, (axis,) = new_figure(width=8.0, height=4.0)
    for state, mark, color in (("complete", "o", COLOURS[0]), ("pruned", "x", COLOURS[5])):
        drawn = [trial for trial in found.trials if trial.state == state]
        if drawn:
            axis.plot([t.number for t in drawn], [t.value for t in drawn], mark, color=color, label=state)
    axis.step(range(len(found.trials)), found.best_so_far(), where="post", color=COLOURS[2], label="best so far")
    axis.axhline(found.defaults.value, color=COLOURS[5], linestyle="--", linewidth=1.0, label="defaults")
    axis.plot(found.chosen, found.best.value, "D", color=COLOURS[1], markersize=8, label="chosen", zorder=3)
    for trial in found.trials:
        if trial.state == "failed":
            axis.axvline(trial.number, color=COLOURS[3], linestyle=":", linewidth=1.0)
    axis.set_xlabel("trial")
    axis.set_ylabel(str(found.measure.parts[0]))
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=5)
    return figure


def importance_figure(found: Tuned) -> Figure:
    """Share of each parameter in the variance of the value."""
    names = list(found.importances)[::-1]
    figure, (axis,) = new_figure(width=8.0, height=0.6 + 0.4 * len(names))
    shares = [found.importances[name] for name in names]
    axis.barh(names, shares, color=COLOURS[0], height=0.6)
    for place, share in enumerate(shares):
        axis.annotate(f"{share:.0%}", (share, place), xytext=(4, 0), textcoords="offset points", va="center")
    axis.set_xlim(0.0, 1.15 * max(shares))
    axis.set_xlabel("share in the variance of the value")
    return figure


def slice_figure(found: Tuned) -> Figure:
    """The value over each parameter alone."""
    names = list(found.space.searched)
    figure, axes = new_figure(len(names), width=3.6, height=2.8, across=_MOST_ACROSS)
    trials = _drawn(found)
    for place, (axis, name) in enumerate(zip(axes, names, strict=True)):
        where = found.space.searched[name]
        for trial in trials:
            mark, color, size = "x", COLOURS[5], 4
            if trial.state == "complete":
                chosen = trial.number == found.chosen
                mark, color, size = ("D", COLOURS[1], 7) if chosen else ("o", COLOURS[0], 4)
            axis.plot(_place(found, name, trial), trial.value, mark, color=color, markersize=size, zorder=size)
        if isinstance(where, Range):
            if where.log:
                axis.set_xscale("log")
                # The ends and the middle: a scale's own marks run into each other on so small a panel.
                marks = [where.low, float(f"{(where.low * where.high) ** 0.5:.2g}"), where.high]
                axis.set_xticks(marks, [f"{mark:g}" for mark in marks])
                axis.set_xticks([], minor=True)
        else:
            axis.set_xticks(range(len(where.values)), [str(value) for value in where.values], fontsize=8)
            axis.set_xlim(-0.5, len(where.values) - 0.5)
        axis.set_xlabel(name)
        if place % _MOST_ACROSS == 0:
            axis.set_ylabel(str(found.measure.parts[0]))
    return figure


def parallel_figure(found: Tuned) -> Figure:
    """Every completed trial as a line over all parameters and its value; the higher the value, the darker."""
    names = list(found.space.searched)
    figure, (axis,) = new_figure(width=max(7.0, 1.5 * (len(names) + 1)), height=4.2)
    trials = sorted((trial for trial in _drawn(found) if trial.state == "complete"), key=lambda trial: trial.value)
    values = np.array([trial.value for trial in trials])
    spread = float(np.ptp(values)) or 1.0
    for rank, trial in enumerate(trials):
        heights = [_height(found, name, trial) for name in names]
        chosen = trial.number == found.chosen
        axis.plot([*heights, (trial.value - values.min()) / spread], color=COLOURS[1] if chosen else COLOURS[0],
                  alpha=1.0 if chosen else 0.1 + 0.7 * (rank / max(1, len(trials) - 1)) ** 2,
                  linewidth=2.5 if chosen else 1.2, zorder=3 if chosen else 2)  # fmt: skip
    labels = [f"{name}\n{_range(found, name)}" for name in names]
    labels.append(f"{found.measure.parts[0]}\n{values.min():.4f}…{values.max():.4f}")
    axis.set_xticks(range(len(labels)), labels, fontsize=8)
    axis.set_yticks([0.0, 1.0], ["low", "high"])
    return figure


def write_tuning(path: str | Path, found: Tuned, *, title: str | None = None, notes: tuple[str, ...] = ()) -> None:
    """Write a search as an HTML page, or its history as an image (.svg, .png, .pdf).

    Parameters
    ----------
    path
        File to write.
    found
        The search.
    title
        Heading of the page.
    notes
        Further sentences below it.
    """
    path = Path(path)
    if path.suffix.lower() in IMAGES:
        write_figure(history_figure(found), path)
        return
    folds = "the validation data" if found.cut.apart is not None else f"{found.cut.folds} folds"
    history = (
        f"Mean of {found.measure.parts[0]} over {folds}, on queries that the trial did not learn from. A cross is a "
        "trial that was ended early, at the value it had by then; a dotted line one that could not be trained. The "
        "chosen trial's value is the highest of many, and so likely to be less on new queries."
    )
    sections = [Section("History", history, history_figure(found))]
    if found.importances:
        words = (
            "Share of each parameter in the variance of the value over the space that was searched, by functional "
            "analysis of variance of the completed trials. With few trials it is a rough guide."
        )
        sections.append(Section("What matters", words, importance_figure(found)))
    if found.space.searched and any(not trial.defaults for trial in found.trials):
        words = "Value over each parameter alone; the others differ as well. Diamond: the chosen trial."
        sections.append(Section("Parameter by parameter", words, slice_figure(found)))
        if sum(trial.state == "complete" for trial in found.trials) > 1 and _drawn(found):
            words = "One line per completed trial, darker where the value is higher; the orange one was chosen."
            sections.append(Section("All parameters together", words, parallel_figure(found)))
    sections.append(Section("Trials", f"{len(found.trials):,} in {found.seconds:,.0f} s.", table=found.table()))
    sentence = found.sentence()
    told = [f"{sentence[0].upper()}{sentence[1:]}.", *notes]
    told += [f"Trial {trial.number} failed: {trial.note}." for trial in found.trials if trial.state == "failed"]
    write_page(path, title or f"Parameters of {found.space.kind.__name__} for {found.measure}", sections, told)


def _drawn(found: Tuned) -> list[Trial]:
    """Trials that have a value and a place in the space."""
    return [trial for trial in found.trials if trial.values and not trial.defaults]


def _place(found: Tuned, name: str, trial: Trial) -> Any:
    """Where a trial's parameter lies on its axis."""
    where, value = found.space.searched[name], trial.parameters[name]
    return value if isinstance(where, Range) else where.values.index(value)


def _height(found: Tuned, name: str, trial: Trial) -> float:
    """The same from 0 to 1."""
    where, value = found.space.searched[name], trial.parameters[name]
    if not isinstance(where, Range):
        return where.values.index(value) / (len(where.values) - 1)
    low, high, at = np.log([where.low, where.high, value]) if where.log else (where.low, where.high, value)
    return float((at - low) / (high - low))


def _range(found: Tuned, name: str) -> str:
    where = found.space.searched[name]
    return f"{where.low:g}…{where.high:g}" if isinstance(where, Range) else f"{where.values[0]}…{where.values[-1]}"

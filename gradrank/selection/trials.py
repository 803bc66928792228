"""Trials of a search for parameters: a setting, trained once for each fold, with its values on the queries left out.

A trial needs no models, only learning curves: after each step (tree, epoch, round) the measure on the queries that the
training leaves out. The number of steps that counts for a fold is the one that is best on the mean curve of the *other*
folds, so that no query has chosen the number of steps at which it is judged; the number for a model of all queries is
the best of all folds' mean curve.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
from lightgbm.basic import LightGBMError
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import GradrankError, GradrankWarning, TrainingError
from gradrank.learners.algorithms import algorithm
from gradrank.learners.base.loop import Callback, Step
from gradrank.measures import AnyMeasure, as_measure, mean_value, measure_values
from gradrank.selection.crossfit import numbers_of_steps, parts_of

_VALID = "valid"
State = Literal["complete", "pruned", "failed"]


@dataclass(frozen=True)
class Cut:
    """How queries are cut into those that a training learns from and those that judge it."""

    folds: int
    seed: int
    apart: int | None = None
    """Number of the first query that stays apart: all before it are learned from, and there is one fold."""

    def left_out(self, n_queries: int, fold: int) -> NDArray[np.bool_]:
        """Which queries judge.

        >>> Cut(1, 0, apart=2).left_out(3, 0).tolist(), int(Cut(3, 0).left_out(9, 1).sum())
        ([False, False, True], 3)
        """
        if self.apart is not None:
            return np.asarray(np.arange(n_queries) >= self.apart)
        return np.asarray(parts_of(n_queries, self.folds, self.seed) == fold)


@dataclass(frozen=True)
class Bar:
    """What a training must reach in order to go on: the median of the trials before it, step by step.

    The value of a trial at a step of a fold is the mean of its best values in the folds before and of its best so far
    in this one.
    """

    start: int
    """The first step at which it counts: half of the trials were at their best in this fold by then."""
    levels: tuple[float, ...]
    """The median after each step; the last one holds for all later ones."""
    before: float = 0.0
    """Sum of the training's own best values in the folds before."""
    fold: int = 0

    def stops(self, step: int, best: float) -> bool:
        """Whether a training that has made so many steps falls behind.

        >>> Bar(2, (0.1, 0.3, 0.4)).stops(1, 0.0), Bar(2, (0.1, 0.3, 0.4)).stops(9, 0.35)
        (False, True)
        """
        level = self.levels[min(step, len(self.levels)) - 1]
        return step >= self.start and (self.before + best) / (self.fold + 1) < level


@dataclass(frozen=True)
class FoldOrder:
    """One training of a trial."""

    algorithm: str
    parameters: Mapping[str, Any]
    fold: int
    cut: Cut
    bar: Bar | None = None
    until: float = float("inf")
    """When it must end, as ``time.time`` has it."""

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {**asdict(self), "parameters": dict(self.parameters)}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> FoldOrder:
        """The inverse of :meth:`to_dict`."""
        bar = value["bar"]
        return cls(
            value["algorithm"], value["parameters"], value["fold"], Cut(**value["cut"]),
            None if bar is None else Bar(**{**bar, "levels": tuple(bar["levels"])}), value["until"],
        )  # fmt: skip


@dataclass(frozen=True)
class FoldCurve:
    """What came of a training: values of each part of the measure after each step."""

    values: list[list[float]]
    seconds: float
    ended: Literal["done", "pruned", "cut"] = "done"
    """Cut: ended before its time, by the clock or by the user."""


def train_fold(
    order: FoldOrder,
    pool: RankingData,
    *,
    ends: Callable[[], bool],
    n_jobs: int | None = None,
    callbacks: Sequence[Callback] = (),
) -> FoldCurve:
    """Train one fold of a trial, watched on the queries that it leaves out.

    What cannot be trained raises TrainingError, and nothing else.
    """
    began = time.perf_counter()
    kind = algorithm(order.algorithm)
    measure = as_measure(str(order.parameters["measure"]))
    first = str(measure.parts[0])
    ended: list[Literal["pruned", "cut"]] = []
    best = -np.inf

    def watch(step: Step) -> None:
        nonlocal best
        if ends():
            ended.append("cut")
            raise KeyboardInterrupt
        if order.bar is not None and _VALID in step.values:
            best = np.fmax(best, step.values[_VALID][first])
            if order.bar.stops(step.number, best):
                ended.append("pruned")
                raise KeyboardInterrupt

    left_out = order.cut.left_out(pool.n_queries, order.fold)
    train, judged = pool.take_queries(~left_out), pool.take_queries(left_out)
    try:
        learner = kind(**order.parameters, n_jobs=n_jobs, callbacks=(*callbacks, watch))
        with warnings.catch_warnings():
            # Doubts about the data are said once, for all of it; a fold that is still rising is nothing to act on.
            warnings.simplefilter("ignore", GradrankWarning)
            if kind.validated:
                learner.fit(train, valid=judged)
            else:
                learner.fit(train)
        if kind.validated:
            curves = learner.record_.curves[_VALID]
            values = [list(row) for row in zip(*(curves[str(part)] for part in measure.parts), strict=True)]
        else:
            found = measure_values(measure.parts, learner.predict(judged), judged, n_jobs=n_jobs)
            values = [[mean_value(found[part]) for part in measure.parts]]
    except GradrankError as error:
        raise TrainingError(str(error)) from None
    except (LightGBMError, MemoryError, FloatingPointError) as error:
        raise TrainingError(f"{type(error).__name__}: {error}") from None
    if np.isnan(np.array(values)[:, 0]).all():
        raise TrainingError(f"{measure.parts[0]} has no value on fold {order.fold + 1}: none of its queries is judged")
    if learner.record_.interrupted and not ended:
        ended.append("cut")
    return FoldCurve(values, time.perf_counter() - began, ended[0] if ended else "done")


@dataclass(frozen=True)
class Trial:
    """One setting that was tried, and what became of it."""

    number: int
    parameters: Mapping[str, Any]
    """What was given to the learner; the rest is as it has it."""
    state: State
    defaults: bool = False
    """Whether it is the learner as it is without options."""
    values: tuple[float, ...] = ()
    """Mean over the folds of each part of the measure; what there was of it if the trial was pruned."""
    folds: tuple[float, ...] = ()
    """The first part of the measure in each fold that was done."""
    steps: int = 0
    """Best number of steps by the mean curve of all folds; 0 if there is nothing to choose."""
    seconds: float = 0.0
    note: str = ""
    rises: tuple[tuple[tuple[int, float], ...], ...] = field(default=(), repr=False)
    """For each fold the steps that brought a new best of the first part, and its value."""

    @property
    def value(self) -> float:
        """Mean of the (first) measure over the folds; NaN if there is none."""
        return self.values[0] if self.values else float("nan")

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {**asdict(self), "parameters": dict(self.parameters)}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Trial:
        """The inverse of :meth:`to_dict`."""
        rises = tuple(tuple((int(step), float(best)) for step, best in fold) for fold in value["rises"])
        return cls(**{**value, "values": tuple(value["values"]), "folds": tuple(value["folds"]), "rises": rises})


def judged_curves(
    curves: Sequence[FoldCurve], measure: AnyMeasure
) -> tuple[tuple[float, ...], tuple[float, ...], int]:  # fmt: skip
    """Values of a trial by each part of the measure, its first part in each fold, and the number of steps for a model.

    >>> from gradrank.measures import NDCG
    >>> two = [FoldCurve([[0.1], [0.9], [0.1]], 1.0), FoldCurve([[0.1], [0.2], [0.3]], 1.0)]
    >>> judged_curves(two, NDCG(10))
    ((0.15...,), (0.1, 0.2), 2)
    """
    found = [np.array(curve.values, dtype=np.float64) for curve in curves]
    if len(found) == 1:
        best = measure.best(found[0])
        return tuple(found[0][best].tolist()), (float(found[0][best, 0]),), best + 1
    of_fold, steps = numbers_of_steps(found, measure)
    # A fold that ended early stays where it was.
    at = np.array([curve[min(own, len(curve)) - 1] for curve, own in zip(found, of_fold, strict=True)])
    return tuple(np.nanmean(at, axis=0).tolist()), tuple(at[:, 0].tolist()), steps


def rises(curve: FoldCurve) -> tuple[tuple[int, float], ...]:
    """The steps that brought a new best of the first part.

    >>> rises(FoldCurve([[0.1], [0.1], [0.3], [0.2]], 1.0))
    ((1, 0.1), (3, 0.3))
    """
    found: list[tuple[int, float]] = []
    for step, (value, *_) in enumerate(curve.values, 1):
        if value == value and (not found or value > found[-1][1]):
            found.append((step, value))
    return tuple(found)


def bar_of(done: Sequence[Trial], own: Sequence[FoldCurve]) -> Bar | None:
    """What the next fold of a trial must reach, by the trials that were completed; None without any.

    Parameters
    ----------
    done
        The completed trials.
    own
        What the trial has of the folds before.
    """
    fold = len(own)
    lines = [trial.rises[fold] for trial in done if len(trial.rises) > fold and trial.rises[fold]]
    befores = [
        sum(best_of(before) for before in trial.rises[:fold])
        for trial in done
        if len(trial.rises) > fold and trial.rises[fold]
    ]
    if not lines:
        return None
    longest = max(line[-1][0] for line in lines)
    running = np.full((len(lines), longest), -np.inf)
    for row, line in zip(running, lines, strict=True):
        for step, value in line:
            row[step - 1 :] = value
    levels = np.median((running + np.array(befores)[:, None]) / (fold + 1), axis=0)
    start = int(np.ceil(np.median([line[-1][0] for line in lines])))
    before = sum(best_of(rises(curve)) for curve in own)
    return Bar(start, tuple(levels.tolist()), before, fold)


def best_of(line: Sequence[tuple[int, float]]) -> float:
    """The highest value of a fold."""
    return line[-1][1] if line else float("nan")


def falls_behind(done: Sequence[Trial], own: Sequence[FoldCurve]) -> bool:
    """Whether a trial is below the median of the completed ones after its folds so far."""
    folds = len(own)
    others = [sum(map(best_of, trial.rises[:folds])) / folds for trial in done if len(trial.rises) >= folds]
    mean = sum(best_of(rises(curve)) for curve in own) / folds
    return bool(others) and mean < float(np.nanmedian(others))

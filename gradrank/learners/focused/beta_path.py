"""What the focused rankers share: their top-k truth, and the search for β.

FocusedRank (Niu, Guo, Lan, Cheng 2012) minimizes L = β·L_list(T) + (1 − β)·L_pair(T × F) over a top-k truth.

T are the ordered top k of a query, F the rest. The paper asks that the two losses be "normalized to a comparable range"
and does not say how; each model here says how it does. β is a number, or ``"auto"``: the value of 0, 0.05, …, 1 with
the best measure on validation data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.data.topk import top_k_truth
from gradrank.errors import TrainingError
from gradrank.learners.base.loop import Callback, Step
from gradrank.measures import AnyMeasure, KappaNDCG, Measure, as_measure

BETA_GRID = tuple(round(0.05 * step, 2) for step in range(21))
"""Values of β that ``beta="auto"`` tries on the validation data."""


def focused_measure(given: str | AnyMeasure | None, k: int, label: str | None) -> AnyMeasure:
    """The measure that is given, or κ-NDCG at k; on graded labels that is NDCG.

    >>> focused_measure(None, 10, None)
    KappaNDCG@10
    """
    return KappaNDCG(k, label=label) if given is None else as_measure(given)


def focused_score_measure(given: str | AnyMeasure | None, label: str | None) -> AnyMeasure:
    """What ``score`` reports: the measure that is given, or κ-NDCG@10, whatever k is trained for."""
    return focused_measure(given, 10, label)


def first_part(measure: AnyMeasure) -> Measure:
    """The measure, or the first part of a graded one."""
    return measure.parts[0]


def focused_truth(train: RankingData, k: int, random_state: int, source: str | None) -> NDArray[np.float32]:
    """Position labels to train on: the data's own if they are a top-k truth, else made from its grades.

    >>> data = RankingData.from_arrays([[0.0]] * 3, [1, 0, 2], qid=[1, 1, 1])
    >>> focused_truth(data, 10, 0, None).tolist()
    [1.0, 0.0, 2.0]
    """
    labels = top_k_truth(data=train, k=k, random_state=random_state, source=source)
    if not (labels > 0).any():
        raise TrainingError("no query of the training data has a judged document")
    return labels


def top_and_rest(labels: NDArray[np.float32]) -> NDArray[np.float32]:
    """Labels of the pairs T × F: 1 in T, 0 in F, NaN for unjudged documents.

    >>> top_and_rest(np.array([2, 1, 0, np.nan], dtype=np.float32)).tolist()
    [1.0, 1.0, 0.0, nan]
    """
    return np.where(np.isnan(labels), labels, labels > 0).astype(np.float32)


def check_tuning(valid: Mapping[str, RankingData]) -> None:
    """β can be chosen only on validation data."""
    if not valid:
        raise TrainingError("beta is auto: it is chosen on validation data, and there is none")


Outcome = TypeVar("Outcome")


class BetaPath(Generic[Outcome]):
    """Trains once for each β and remembers how good each was on the validation data."""

    def __init__(
        self,
        callbacks: Sequence[Callback],
        steps: int,
        *,
        value: Callable[[Outcome], float],
        interrupted: Callable[[Outcome], bool],
    ) -> None:
        self._callbacks = callbacks
        self._steps = steps
        self._value = value
        self._interrupted = interrupted
        self.tried: list[float] = []
        self.values: list[float] = []
        self.interrupted = False
        """Whether it was cut short."""

    def best(
        self, train: Callable[[float, Sequence[Callback]], Outcome], betas: Sequence[float]
    ) -> tuple[Outcome, float]:
        """The best outcome and its β; the callbacks see one long training."""
        found: list[Outcome] = []
        total = len(betas) * self._steps
        for number, beta in enumerate(betas):
            try:
                found.append(train(beta, [_part_of(told, number * self._steps, total) for told in self._callbacks]))
            except KeyboardInterrupt:
                if not found:
                    raise
                self.interrupted = True
                break
            self.tried.append(beta)
            self.values.append(self._value(found[-1]))
            if self._interrupted(found[-1]):
                self.interrupted = True
                break
        place = int(np.argmax(self.values))
        return found[place], self.tried[place]


def _part_of(callback: Callback, before: int, total: int) -> Callback:
    """The callback, told of a training as a part of a longer one."""

    def told(step: Step) -> None:
        callback(replace(step, number=before + step.number, best=before + step.best, total=total))

    return told

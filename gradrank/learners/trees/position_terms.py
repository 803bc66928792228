"""Additive terms of positions, learned beside the trees: part of the score in training, none of it in the model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.learners.base.crew import ALONE, Crew
from gradrank.learners.base.positions import shown_positions

# Keeps a position with hardly any second derivative from leaping.
_LEAST_CURVATURE = 1e-3


class PositionTerms:
    """Score = trees(document) + term(position at which it was shown), as LightGBM's ``position`` has it.

    What makes clicks likely at a position whatever is shown there goes into its term, and what is left to learn for
    the trees is the documents. In each step the terms move by one Newton (or gradient) step on the same λ's as the
    tree. Nothing but documents seen at several positions keeps the two apart: what trees and terms can both explain,
    they share.

    Parameters
    ----------
    positions
        The position of each document, whole numbers from 1.
    crew
        The processes that train together: a term is learned from the documents of all of them.

    >>> terms = PositionTerms(np.array([1, 2, 1]))
    >>> terms.learn(np.array([1.0, -1.0, 1.0]), np.array([1.0, 1.0, 1.0]), 0.5)
    >>> {k: round(v, 2) for k, v in terms.by_position().items()}
    {1: 0.0, 2: -1.0}
    """

    def __init__(self, positions: NDArray[np.int64], crew: Crew = ALONE) -> None:
        self._crew = crew
        self._positions = np.unique(np.concatenate(crew.gather(np.unique(positions))))
        self._place = np.searchsorted(self._positions, positions)
        self._terms: NDArray[np.float64] = np.zeros(len(self._positions))

    @classmethod
    def of_label(cls, data: RankingData, source: str, crew: Crew = ALONE) -> PositionTerms:
        """The terms of the positions that a label source holds."""
        return cls(shown_positions(data, source), crew)

    def forget(self) -> None:
        """Begin anew."""
        self._terms = np.zeros(len(self._positions))

    def added_to(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores of documents at their positions."""
        return np.asarray(scores + self._terms[self._place])

    def learn(self, lambdas: NDArray[np.float32], rhos: NDArray[np.float32] | None, rate: float) -> None:
        """One step on λ's and second derivatives; a step by mean λ's if there are none of these."""
        count = len(self._terms)
        pushed = np.bincount(self._place, weights=lambdas, minlength=count)
        bent = np.bincount(self._place, weights=rhos, minlength=count)
        pushed, bent = self._crew.sum(np.stack([pushed, bent]))
        self._terms = self._terms + rate * pushed / (bent if rhos is None else bent + _LEAST_CURVATURE)

    def by_position(self) -> dict[int, float]:
        """The term of each position, 0 for the topmost."""
        return dict(zip(self._positions.tolist(), (self._terms - self._terms[0]).tolist(), strict=True))

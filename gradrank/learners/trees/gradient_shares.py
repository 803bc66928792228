"""From which labels the gradients of highly relevant documents come (Svore et al. 2011, figure 3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.objectives import Lambda, Objective
from gradrank.objectives.lambda_gradient import BoundLambda

_MOST_LEVELS = 10
_RANGES = 5
_UNJUDGED = "unjudged"


@dataclass(frozen=True, eq=False)
class Levels:
    """The labels of the sampled documents in groups: one per grade, or ranges if there are many labels."""

    names: tuple[str, ...]
    group: NDArray[np.int64]
    """The group of each document; the one after the last is "unjudged"."""
    high: float
    """The lowest label of a highly relevant document."""
    n_low: int
    """Number of groups below it."""

    @classmethod
    def of(cls, labels: NDArray[np.float32], high: float | None = None) -> Levels:
        """Group labels.

        >>> levels = Levels.of(np.array([0, 1, 4, 3, np.nan], dtype=np.float32))
        >>> levels.names, levels.group.tolist(), levels.high, levels.n_low
        (('0', '1', '3', '4'), [0, 1, 3, 2, 4], 3.0, 2)
        """
        judged = ~np.isnan(labels)
        levels = np.unique(labels[judged].astype(np.float64))
        names = tuple(f"{level:g}" for level in levels)
        if len(levels) > _MOST_LEVELS:
            edges = np.linspace(levels[0], levels[-1], _RANGES + 1)
            levels = edges[:-1]
            names = tuple(f"{low:.3g} to {up:.3g}" for low, up in pairwise(edges.tolist()))
        group = np.searchsorted(levels, np.where(judged, labels, -np.inf), side="right") - 1
        group[~judged] = len(levels)
        lowest = (levels[-2 if len(levels) >= 4 else -1] if len(levels) else np.inf) if high is None else high
        return cls(names, group, float(lowest), int(np.searchsorted(levels, lowest)))

    def shares(self, rows: NDArray[np.int64], data: RankingData) -> dict[str, float]:
        """Mean over queries of each group's share among some of their documents; "unjudged" if there are any."""
        names = (*self.names, _UNJUDGED) if (self.group == len(self.names)).any() else self.names
        query = np.searchsorted(data.indptr, rows, side="right") - 1
        width = len(self.names) + 1
        counts = np.bincount(query * width + self.group[rows], minlength=data.n_queries * width)
        counts = counts.reshape(data.n_queries, width)
        means = (counts / counts.sum(axis=1, keepdims=True)).mean(axis=0)
        return dict(zip(names, means.tolist(), strict=False))


def graded_parts(objective: Objective) -> list[Lambda]:
    """The λ-gradients on the grades: an objective's own, its first tier's, both of a schedule."""
    return [part for part in objective.leading if isinstance(part, Lambda)]


class GradientShares:
    """From which labels the λ's of highly relevant documents come (Svore et al. 2011, eq. 11).

    For each highly relevant document j the share of label v is Σ_{k: l_k = v} |λ_jk| / Σ_k |λ_jk|; the mean over these
    documents is given. The paper divides by λ_j itself, in which pushes up (by worse documents) and down (by better
    ones) cancel, so that its ratio has no bound; for documents that no better one pushes down the two are the same.
    Highly relevant labels are taken as one group.
    """

    def __init__(self, part: Lambda, data: RankingData, levels: Levels) -> None:
        # Scaling a query's λ's would hide differences between subsets of its pairs; shares do not need it.
        plain = replace(part, normalize="none")
        self._high = (levels.group >= levels.n_low) & (levels.group < len(levels.names))
        highs = levels.names[levels.n_low :]
        self._names = (
            *levels.names[: levels.n_low],
            " and ".join(highs) if len(highs) < 3 else f"{highs[0]} and above",
        )
        self._among = BoundLambda(plain, data, n_jobs=1, partners=self._high)
        self._with = [
            BoundLambda(plain, data, n_jobs=1, partners=self._high | (levels.group == number))
            for number in range(levels.n_low)
        ]

    def at(self, scores: NDArray[np.float64]) -> dict[str, float]:
        """Mean shares by label; NaN if no highly relevant document is in any pair."""
        among = self._among.gradients(scores).lambdas[self._high].astype(np.float64)
        # Pairs of highly relevant documents with those of one label: all pairs of both, less those of the former.
        below = [bound.gradients(scores).lambdas[self._high] - among for bound in self._with]
        sizes = np.abs(np.array([*below, among]))
        total = sizes.sum(axis=0)
        heard = total > 0
        if not heard.any():
            return dict.fromkeys(self._names, float("nan"))
        means = (sizes[:, heard] / total[heard]).mean(axis=1)
        return dict(zip(self._names, means.tolist(), strict=True))

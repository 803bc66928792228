"""Graded objectives: several label sources with a measure each; a lower one decides only what the upper leave open."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.measures import AnyMeasure, Graded
from gradrank.objectives.costs import ObjectiveError
from gradrank.objectives.lambda_gradient import BoundLambda, Lambda
from gradrank.objectives.objective import BoundObjective, Gradients, Objective


@dataclass(frozen=True, repr=False)
class Tiered(Objective):
    """λ = Σ_t w_t·λ(t), where a tier sees only pairs that are tied on every tier above it (Svore et al. 2011, eq. 10).

    With two tiers λ = (1 − w)·λ(L) + w·λ(C): a pair of documents with different grades is never pushed by their clicks,
    so the tiers cannot contradict each other on a pair. Documents whose label in a lower tier is 0 are left out of
    its pairs unless ``zeros`` is set: no click may mean "not relevant" or "never seen".

    Labels may be missing. A document without a label in a source joins no pair of that tier; for the tiers below, two
    documents without it are tied on it (it says nothing about their order), one with and one without are not. In each
    query the weights are divided by their sum over the sources that judged any document of it, so a query that only
    one source has judged trains with full force on that source.

    >>> from gradrank.measures import CNDCG, NDCG
    >>> data = RankingData.from_arrays([[0.0]] * 2, {"label": [1, 1], "clicks": [0.1, 0.9]}, qid=[1, 1])
    >>> objective = Tiered((Lambda(NDCG()), Lambda(CNDCG())), (0.8, 0.2))
    >>> objective
    Tiered(Lambda(NDCG), Lambda(CNDCG), weight=0.2)
    >>> objective.bind(data).gradients(np.array([1.0, 0.0])).lambdas.astype(float).round(4).tolist()
    [-0.0515, 0.0515]
    """

    tiers: tuple[Lambda, ...]
    weights: tuple[float, ...]
    zeros: bool = False
    """Whether documents with a label of 0 join pairs of the lower tiers."""

    def __post_init__(self) -> None:
        if len(self.tiers) < 2 or not all(isinstance(tier, Lambda) for tier in self.tiers):
            raise ObjectiveError("Tiered takes two or more measures (or λ-gradients)")
        if len(self.weights) != len(self.tiers):
            raise ObjectiveError(f"Tiered: there are {len(self.weights)} weights for {len(self.tiers)} tiers")
        if any(not 0.0 <= weight <= 1.0 for weight in self.weights) or abs(sum(self.weights) - 1.0) > 1e-9:
            raise ObjectiveError(f"Tiered: weights are {list(self.weights)}, expected shares that add up to 1")
        sources = [tier.target.label or tier.target.default_source for tier in self.tiers]
        if len(set(sources)) < len(sources):
            raise ObjectiveError("Tiered: two tiers read the same label source, so the lower one has nothing to decide")

    @property
    def measure(self) -> AnyMeasure | None:
        """The graded measure of the tiers."""
        return Graded(tuple(tier.target for tier in self.tiers))

    @property
    def has_curvature(self) -> bool:
        """Whether every tier's cost has a usable second derivative."""
        return all(tier.has_curvature for tier in self.tiers)

    def bind(self, data: RankingData, *, seed: int = 0, threads: int | None = None) -> BoundTiered:
        """See Objective.bind."""
        return BoundTiered(self, data, seed, threads)

    def __str__(self) -> str:
        parts = ", ".join(str(tier) for tier in self.tiers)
        weights = f"weight={self.weights[1]:g}"
        if len(self.tiers) > 2:
            weights = f"weights=[{', '.join(f'{weight:g}' for weight in self.weights)}]"
        return f"Tiered({parts}, {weights}{', zeros=true' if self.zeros else ''})"

    def __repr__(self) -> str:
        return str(self)


class BoundTiered(BoundObjective):
    """Tiers bound to data: one λ-gradient a tier, over its own pairs."""

    def __init__(self, objective: Tiered, data: RankingData, seed: int, threads: int | None) -> None:
        self.objective = objective
        classes = np.zeros(data.n_docs)
        self.parts: list[BoundLambda] = []
        present = np.zeros((len(objective.tiers), data.n_queries), dtype=bool)
        for number, tier in enumerate(objective.tiers):
            labels = data.label(tier.target.label or tier.target.default_source)
            partners = None
            if number > 0 and not objective.zeros:
                partners = np.nan_to_num(labels, nan=0.0) != 0.0
            part = BoundLambda(tier, data, seed, threads, classes=classes, partners=partners)
            present[number] = np.add.reduceat((~np.isnan(labels)).astype(np.int64), data.indptr[:-1]) > 0
            self.parts.append(part)
            classes = _refined(classes, labels)
        weights = np.asarray(objective.weights)[:, None]
        total = (weights * present).sum(axis=0)
        shares = np.where(total > 0, weights / np.where(total > 0, total, 1.0), 0.0)
        for part, share in zip(self.parts, shares, strict=True):
            part.scale_queries(share)

    def pairs(self) -> list[int]:
        """Number of pairs of each tier that the labels allow."""
        return [int(part.pairs_per_query()[part.active].sum()) for part in self.parts]

    def gradients(self, scores: NDArray[np.float64], step: int = 0, *, count_pairs: bool = False) -> Gradients:
        """See BoundObjective.gradients."""
        return add_up([part.gradients(scores, step, count_pairs=count_pairs) for part in self.parts])


def add_up(parts: list[Gradients]) -> Gradients:
    """The sum of several gradients."""
    first, *others = parts
    for other in others:
        first.lambdas[:] += other.lambdas
        first.rhos[:] += other.rhos
    counts = [part.effective_pairs for part in parts]
    return Gradients(first.lambdas, first.rhos, sum(counts) if min(counts) >= 0 else -1)


def _refined(classes: NDArray[np.float64], labels: NDArray[np.float32]) -> NDArray[np.float64]:
    """Classes of documents that are tied on one more label; a missing label is a class of its own."""
    known = np.where(np.isnan(labels), -np.inf, labels)
    _, numbers = np.unique(np.stack([classes, known]), axis=1, return_inverse=True)
    return np.asarray(numbers.reshape(-1), dtype=np.float64)

"""Tiers of label sources, each with a measure of its own: a lower tier decides only what the upper ones leave open."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import ObjectiveError
from gradrank.measures import AnyMeasure, Graded
from gradrank.measures.grammar import spelt
from gradrank.objectives.constructed import Constructed
from gradrank.objectives.deviation import check_normalization, divided_by_deviation
from gradrank.objectives.lambda_gradient import BoundLambda, Lambda
from gradrank.objectives.objective import BoundObjective, Gradients, Objective
from gradrank.objectives.pair_facts import PairFacts


@dataclass(frozen=True, repr=False)
class Tiered(Objective):
    """λ = Σ_t w_t·λ(t), where a tier sees only pairs that are tied on every tier above it (Svore et al. 2011, eq. 10).

    With two tiers λ = (1 − w)·λ(L) + w·λ(C): a pair of documents with different grades is never pushed by their clicks,
    so the tiers cannot contradict each other on a pair.

    Labels may be missing. A document without a label in a source joins no pair of that tier; for the tiers below, two
    documents without it are tied on it (it says nothing about their order), one with and one without are not. In each
    query the weights are divided by their sum over the sources that judged any document of it, so a query that only
    one source has judged trains with full force on that source.

    Parameters
    ----------
    tiers
        λ-gradients on different label sources, the most important first; constructions of λ's are among them.
    weights
        The share of each tier, which add up to 1; or of each but the first, which gets what is left.
    zeros
        Whether documents with a label of 0 join pairs of the lower tiers. By default they do not: no click may mean
        "not relevant" or "never seen".
    normalize
        ``deviation``: divide the mixed λ's by their standard deviation in the query (Svore et al. 2011, §5.3);
        ``none``: each tier is normalized as it says itself. A weight counts more where each tier is divided by its own
        deviation: the lower tier, which has fewer pairs, has the smaller λ's.

    >>> from gradrank.measures import CNDCG, NDCG
    >>> data = RankingData.from_arrays([[0.0]] * 2, {"label": [1, 1], "clicks": [0.1, 0.9]}, qid=[1, 1])
    >>> objective = Tiered((Lambda(NDCG()), Lambda(CNDCG())), (0.8, 0.2))
    >>> objective
    Tiered(Lambda(NDCG), Lambda(CNDCG), weight=0.2)
    >>> objective.bind(data).gradients(np.array([1.0, 0.0])).lambdas.astype(float).round(4).tolist()
    [-0.0515, 0.0515]
    """

    tiers: tuple[Lambda | Constructed, ...]
    weights: tuple[float, ...]
    zeros: bool = False
    normalize: Literal["none", "deviation"] = "none"

    def __post_init__(self) -> None:
        if len(self.tiers) < 2 or not all(isinstance(tier, Lambda | Constructed) for tier in self.tiers):
            raise ObjectiveError("Tiered takes two or more measures (or λ-gradients)")
        check_normalization("Tiered", self.normalize)
        if len(self.weights) == len(self.tiers) - 1:
            # Shares are put down in decimals: without rounding 1 − 0.9 would not be 0.1.
            rest = round(1.0 - sum(self.weights), 12)
            object.__setattr__(self, "weights", (rest, *self.weights))
        if len(self.weights) != len(self.tiers):
            raise ObjectiveError(f"Tiered: there are {len(self.weights)} weights for {len(self.tiers)} tiers")
        if any(not 0.0 <= weight <= 1.0 for weight in self.weights) or abs(sum(self.weights) - 1.0) > 1e-9:
            raise ObjectiveError(f"Tiered: weights are {list(self.weights)}, expected shares that add up to 1")
        if len(set(self.sources)) < len(self.tiers):
            raise ObjectiveError("Tiered: two tiers read the same label source, so the lower one has nothing to decide")

    @property
    def measure(self) -> AnyMeasure | None:
        """The graded measure of the tiers that have weight; the plain one if there is one such tier."""
        heard = [tier.chosen_by for tier, weight in zip(self.tiers, self.weights, strict=True) if weight > 0.0]
        return heard[0] if len(heard) == 1 else Graded(tuple(heard))

    @property
    def sources(self) -> tuple[str | None, ...]:
        """The label source of each tier."""
        return tuple(tier.target.source for tier in self.tiers)

    @property
    def parts(self) -> tuple[Lambda | Constructed, ...]:
        """The tiers."""
        return self.tiers

    @property
    def leading(self) -> tuple[Lambda | Constructed, ...]:
        """The first tier."""
        return self.tiers[:1]

    @property
    def shift_invariant(self) -> bool:
        """Tiers look at differences of scores."""
        return True

    def normalized_by_deviation(self) -> Tiered:
        """See Objective.normalized_by_deviation: the mixed λ's are divided, unless a tier is normalized by itself."""
        return replace(self, normalize="deviation") if not self.normalized else self

    @property
    def normalized(self) -> bool:
        """Whether the mixed λ's or those of a tier are normalized."""
        return self.normalize != "none" or any(tier.normalized for tier in self.tiers)

    @property
    def has_curvature(self) -> bool:
        """Whether every tier's cost has a usable second derivative."""
        return all(tier.has_curvature for tier in self.tiers)

    def bind(self, data: RankingData, *, random_state: int = 0, n_jobs: int | None = None) -> BoundTiered:
        """See Objective.bind."""
        return BoundTiered(self, data, random_state, n_jobs)

    def __str__(self) -> str:
        parts = ", ".join(str(tier) for tier in self.tiers)
        weights = f"weight={spelt(self.weights[1])}"
        if len(self.tiers) > 2:
            weights = f"weights={spelt(self.weights)}"
        normalize = "" if self.normalize == "none" else f", normalize={self.normalize}"
        return f"Tiered({parts}, {weights}{', zeros=true' if self.zeros else ''}{normalize})"

    def __repr__(self) -> str:
        return str(self)


class BoundTiered(BoundObjective):
    """Tiers bound to data: one λ-gradient per tier, over its own pairs."""

    def __init__(self, objective: Tiered, data: RankingData, random_state: int, n_jobs: int | None) -> None:
        self.objective = objective
        self._data = data
        if objective.normalize == "deviation" and np.count_nonzero(objective.weights) == 1:
            # Nothing is mixed: the one tier is divided as it is without the others, to the last bit.
            tiers = tuple(tier.normalized_by_deviation() for tier in objective.tiers)
            objective = replace(objective, tiers=tiers, normalize="none")
        self._divided = objective.normalize == "deviation"
        self.parts = bound_tiers(objective, data, random_state=random_state, n_jobs=n_jobs)
        present = np.zeros((len(objective.tiers), data.n_queries), dtype=bool)
        for number, tier in enumerate(objective.tiers):
            judged = ~np.isnan(data.label(tier.target.source))
            present[number] = np.logical_or.reduceat(judged, data.indptr[:-1])
        weights = np.asarray(objective.weights)[:, None]
        total = (weights * present).sum(axis=0)
        shares = np.where(total > 0, weights / np.where(total > 0, total, 1.0), 0.0)
        for part, share in zip(self.parts, shares, strict=True):
            part.scale_queries(share)

    def pairs(self) -> list[int]:
        """Number of pairs of each tier that the labels allow."""
        return [int(part.pairs_per_query()[part.active].sum()) for part in self.parts]

    def pair_facts(self, data: RankingData) -> list[PairFacts]:
        """What each tier's label source gives to learn from.

        >>> from gradrank.measures import CNDCG, NDCG
        >>> data = RankingData.from_arrays([[0.0]] * 3, {"label": [1, 1, 0], "clicks": [0.1, 0.9, 0.5]}, qid=[1, 1, 1])
        >>> bound = Tiered((Lambda(NDCG()), Lambda(CNDCG())), (0.8, 0.2)).bind(data)
        >>> [(fact.source, fact.pairs) for fact in bound.pair_facts(data)]
        [('label', 2), ('clicks', 1)]
        """
        tiers = zip(self.parts, self.objective.weights, strict=True)
        return [replace(fact, weight=weight) for part, weight in tiers for fact in part.pair_facts(data)]

    def gradients(self, scores: NDArray[np.float64], step: int = 0, *, count_pairs: bool = False) -> Gradients:
        """See BoundObjective.gradients."""
        lambdas = np.zeros(len(scores), dtype=np.float32)
        rhos = np.zeros(len(scores), dtype=np.float32)
        ranks = np.full(len(scores), -1, dtype=np.int32)
        heard = [part for part, weight in zip(self.parts, self.objective.weights, strict=True) if weight > 0]
        pairs = [part.add_to(lambdas, rhos, scores, ranks, count_pairs=count_pairs) for part in heard]
        mixed = Gradients(lambdas, rhos, sum(pairs) if count_pairs else -1)
        return divided_by_deviation(mixed, self._data) if self._divided else mixed


def bound_tiers(
    objective: Tiered, data: RankingData, *, random_state: int = 0, n_jobs: int | None = None
) -> list[BoundLambda]:
    """Each tier's λ-gradient over the pairs that are its to decide, not yet weighted."""
    classes = np.zeros(data.n_docs)
    parts = []
    for number, tier in enumerate(objective.tiers):
        labels = data.label(tier.target.source)
        partners = None
        if number > 0 and not objective.zeros:
            partners = np.nan_to_num(labels, nan=0.0) != 0.0
        parts.append(
            tier.bind_among(data, random_state=random_state, n_jobs=n_jobs, classes=classes, partners=partners)
        )
        classes = _refined(classes, labels)
    return parts


def _refined(classes: NDArray[np.float64], labels: NDArray[np.float32]) -> NDArray[np.float64]:
    """Classes of documents that are tied on one more label; a missing label is a class of its own."""
    known = np.where(np.isnan(labels), -np.inf, labels)
    levels, numbers = np.unique(known, return_inverse=True)
    _, classes_left = np.unique(classes * len(levels) + numbers.reshape(-1), return_inverse=True)
    return np.asarray(classes_left.reshape(-1), dtype=np.float64)

"""The objective that a λ construction makes of a measure."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import ObjectiveError
from gradrank.measures import AnyMeasure, Measure
from gradrank.measures.swaps import for_family
from gradrank.objectives.constructions import Construction
from gradrank.objectives.costs import PairCost, RankNet
from gradrank.objectives.kernels import construction_kernel as kernel
from gradrank.objectives.kernels.pair_layout import Gains
from gradrank.objectives.lambda_gradient import NORMALISATIONS, BoundLambda, Lambda, swaps_of
from gradrank.objectives.objective import Objective
from gradrank.ranking import longest_list
from gradrank.runtime.threads import for_query_blocks


def constructed(
    measure: Measure,
    construction: Construction,
    *,
    cost: PairCost | None = None,
    normalize: Literal["none", "log", "deviation"] = "none",
    ties: Literal["random", "file"] = "random",
) -> Lambda | Constructed:
    """The λ's of a measure by a construction; the fast :class:`Lambda` where it is the same.

    Parameters
    ----------
    measure
        The measure to improve.
    construction
        How λ's are made from it.
    cost
        The pair cost, for constructions that take their force from one; None = RankNet's.
    normalize, ties
        As for :class:`Lambda`.

    >>> from gradrank.measures import MAP
    >>> from gradrank.objectives.constructions import LocalCost, RankNetWeightPairs
    >>> constructed(MAP(), LocalCost(reach=3)), constructed(MAP(), RankNetWeightPairs())
    (Lambda(MAP, construction=local-cost, reach=3), Lambda(MAP))
    """
    cost = cost or RankNet()
    if construction.lambda_pairs is not None:
        return Lambda(measure, cost=cost, pairs=construction.lambda_pairs, normalize=normalize, ties=ties)
    return Constructed(measure, construction, cost=cost, normalize=normalize, ties=ties)


@dataclass(frozen=True, repr=False)
class Constructed(Objective):
    """λ's of a measure by a construction.

    Prints as ``Lambda(MEASURE, construction=NAME)``, which is how it is spelt on the command line.

    Parameters
    ----------
    target
        The measure to improve.
    construction
        How λ's are made from it.
    cost
        The pair cost, for constructions that take their force from one.
    normalize, ties
        As for :class:`Lambda`.

    >>> from gradrank.measures import NDCG
    >>> data = RankingData.from_arrays([[0.0]] * 2, [0, 1], qid=[1, 1])
    >>> from gradrank.objectives.constructions import SpringSmooth
    >>> bound = Constructed(NDCG(), SpringSmooth()).bind(data)
    >>> bound.gradients(np.array([2.0, 1.0])).lambdas.astype(float).round(4).tolist()
    [-0.7311, 0.7311]
    """

    target: Measure
    construction: Construction
    cost: PairCost = field(default_factory=RankNet)
    normalize: Literal["none", "log", "deviation"] = "none"
    ties: Literal["random", "file"] = "random"

    def __post_init__(self) -> None:
        if not isinstance(self.construction, Construction):
            raise ObjectiveError(f"expected a construction, found {self.construction!r}")
        self._plain()  # the checks of what both have
        if not self.construction.takes_cost and self.cost != RankNet():
            raise ObjectiveError(f"{self.construction.name} has a force of its own and takes no cost")

    def _plain(self) -> Lambda:
        """The ordinary λ-gradient of the same pairs."""
        return Lambda(self.target, cost=self.cost, normalize=self.normalize, ties=self.ties)

    @property
    def measure(self) -> AnyMeasure | None:
        """The target measure."""
        return self.target

    @property
    def chosen_by(self) -> Measure:
        """The measure that chooses among models."""
        return self.target

    @property
    def sources(self) -> tuple[str | None, ...]:
        """The label source of the measure."""
        return (self.target.source,)

    @property
    def shift_invariant(self) -> bool:
        """Forces depend on ranks and on differences of scores."""
        return True

    def normalized_by_deviation(self) -> Constructed:
        """See Objective.normalized_by_deviation."""
        return replace(self, normalize="deviation") if self.normalize == "none" else self

    @property
    def normalized(self) -> bool:
        """See Objective.normalized."""
        return self.normalize != "none"

    @property
    def unit_queries(self) -> bool:
        """See Objective.unit_queries."""
        return self.normalize == "log"

    @property
    def has_curvature(self) -> bool:
        """Whether the construction has a second derivative, and its pair cost a usable one."""
        return self.construction.usable_curvature and self.cost.usable_curvature

    def bind(self, data: RankingData, *, random_state: int = 0, n_jobs: int | None = None) -> BoundLambda:
        """See Objective.bind."""
        return self.bind_among(data, random_state=random_state, n_jobs=n_jobs)

    def bind_among(
        self,
        data: RankingData,
        *,
        random_state: int = 0,
        n_jobs: int | None = None,
        classes: NDArray[np.float64] | None = None,
        partners: NDArray[np.bool_] | None = None,
    ) -> BoundLambda:
        """See Lambda.bind_among."""
        kind = BoundConstructed if self.construction.pairwise else BoundMoves
        return kind(self, data, random_state, n_jobs, classes=classes, partners=partners)

    def __str__(self) -> str:
        parts = [str(self.target), str(self.construction)]
        if self.cost != RankNet():
            parts.append(str(self.cost))
        for name, default in (("normalize", "none"), ("ties", "random")):
            if getattr(self, name) != default:
                parts.append(f"{name}={getattr(self, name)}")
        return f"Lambda({', '.join(parts)})"

    def __repr__(self) -> str:
        return str(self)


class BoundConstructed(BoundLambda):
    """A pairwise construction bound to data; documents are laid out as for the ordinary λ-gradient."""

    def __init__(
        self,
        objective: Constructed,
        data: RankingData,
        random_state: int = 0,
        n_jobs: int | None = None,
        *,
        classes: NDArray[np.float64] | None = None,
        partners: NDArray[np.bool_] | None = None,
    ) -> None:
        super().__init__(objective._plain(), data, random_state, n_jobs, classes=classes, partners=partners)
        self.constructed = objective

    def add_to(
        self,
        lambdas: NDArray[np.float32],
        rhos: NDArray[np.float32],
        scores: NDArray[np.float64],
        ranks: NDArray[np.int32] | None = None,
        *,
        count_pairs: bool = False,
    ) -> int:
        """See BoundLambda.add_to; ``ranks`` are neither used nor filled in."""
        objective, construction, cost = self.constructed, self.constructed.construction, self.constructed.cost
        layout, family = self._layout, swaps_of(objective.target)
        block = for_family(kernel.construction_block, family, pair_force=cost.kernels.pair)
        options = kernel.ConstructionOptions(
            select=construction.select,
            weigh=construction.weigh,
            force=construction.force,
            slope=float(cost.slope),
            shift=float(cost.shift),
            floor=float(getattr(construction, "floor", 0.0)),
            margin=float(getattr(construction, "margin", 0.0)),
            reach=int(getattr(construction, "reach", 1)),
            normalize=NORMALISATIONS[objective.normalize],
        )
        pairs = np.zeros(len(layout.indptr) - 1, dtype=np.int64)

        def work(first: int, end: int) -> None:
            state = family.state(longest_list(layout.indptr, first, end))
            block(first, end, scores, layout, self._gains, options, state, lambdas, rhos, pairs)

        for_query_blocks(work, layout.indptr, self._threads)
        return int(pairs.sum()) if count_pairs else -1


class BoundMoves(BoundConstructed):
    """DiscreteBounded bound to data: every move is made and the measure evaluated again, by its own kernel.

    ``effective_pairs`` counts documents with a non-zero λ.

    >>> from gradrank.measures import MRR
    >>> from gradrank.objectives.constructions import DiscreteBounded
    >>> data = RankingData.from_arrays([[0.0]] * 3, [0, 0, 1], qid=[1, 1, 1])
    >>> bound = Constructed(MRR(), DiscreteBounded()).bind(data)
    >>> bound.gradients(np.array([3.0, 2.0, 1.0])).lambdas.astype(float).round(4).tolist()
    [0.0, -0.1667, 0.6667]
    """

    # Documents of the lists that are made at a time: bounds the memory for long lists.
    _block = 1 << 20

    def add_to(
        self,
        lambdas: NDArray[np.float32],
        rhos: NDArray[np.float32],
        scores: NDArray[np.float64],
        ranks: NDArray[np.int32] | None = None,
        *,
        count_pairs: bool = False,
    ) -> int:
        """See BoundLambda.add_to; ``ranks`` are neither used nor filled in."""
        indptr, n = self._layout.indptr, len(self._layout.rows)
        order, rank, target = (np.empty(n, dtype=np.int64) for _ in range(3))

        def work(first: int, end: int) -> None:
            kernel.standing_block(first, end, scores, self._layout, order, rank, target)

        for_query_blocks(work, indptr, self._threads)
        now = self._values(indptr, order, self._gains)
        movers = np.flatnonzero(target != rank)
        query = np.searchsorted(indptr, movers, side="right") - 1
        gains = np.zeros(n)
        sizes = np.diff(indptr)[query]
        # Blocks of whole trial lists of about equal length in documents.
        number = (np.cumsum(sizes) - sizes) // self._block
        for part in np.split(np.arange(len(movers)), np.flatnonzero(np.diff(number)) + 1):
            if len(part):
                after = self._moved(movers[part], query[part], order, rank, target)
                gains[movers[part]] = np.maximum(after - now[query[part]], 0.0)
        bound = getattr(self.constructed.construction, "bound", math.inf)
        pushes = np.sign(rank - target) * np.minimum(gains, bound) + 0.0  # no −0
        scaled = pushes * np.repeat(self._scale(pushes), np.diff(indptr))
        if len(self._layout.document_weight):
            scaled *= self._layout.document_weight
        lambdas[self._layout.rows] += scaled.astype(np.float32)
        return int(np.count_nonzero(pushes)) if count_pairs else -1

    def _moved(
        self,
        movers: NDArray[np.int64],
        query: NDArray[np.int64],
        order: NDArray[np.int64],
        rank: NDArray[np.int64],
        target: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """The measure of the movers' queries after each of them alone has moved."""
        gains, layout = self._gains, self._layout
        indptr = np.concatenate(([0], np.cumsum(np.diff(layout.indptr)[query])))
        trial_order = np.empty(indptr[-1], dtype=np.int64)
        trials = Gains(
            gain=np.empty(indptr[-1]),
            weight=np.empty(indptr[-1] if len(gains.weight) else 0),
            norm=gains.norm[query],
            depth=gains.depth[query],
            option=gains.option,
        )
        kernel.fill_trials(movers, query, layout.indptr, order, rank, target, gains, indptr, trial_order, trials)
        return self._values(indptr, trial_order, trials)

    def _values(self, indptr: NDArray[np.int64], order: NDArray[np.int64], gains: Gains) -> NDArray[np.float64]:
        evaluate: Any = self.constructed.target.kernel()
        untied, retrieved, out = np.empty(0, dtype=np.int64), np.diff(indptr), np.empty(len(indptr) - 1)

        def work(first: int, end: int) -> None:
            evaluate(first, end, indptr, order, untied, retrieved, gains.gain, gains.norm, gains.depth, gains.weight,
                     gains.option, out)  # fmt: skip

        for_query_blocks(work, indptr, self._threads)
        return out

    def _scale(self, pushes: NDArray[np.float64]) -> NDArray[np.float64]:
        """The factor of each query's λ's."""
        scale = self._layout.query_weight.astype(np.float64)
        starts, sizes = self._layout.indptr[:-1], np.diff(self._layout.indptr)
        if self.constructed.normalize == "log":
            total = np.add.reduceat(np.abs(pushes), starts)
            some = np.where(total > 0.0, total, 1.0)
            scale = scale * np.where(total > 0.0, np.log2(1.0 + some) / some, 1.0)
        elif self.constructed.normalize == "deviation":
            mean = np.add.reduceat(pushes, starts) / sizes
            squares = np.add.reduceat((pushes - np.repeat(mean, sizes)) ** 2, starts) / sizes
            scale = scale / np.where(squares > 0.0, np.sqrt(squares), 1.0)
        return scale

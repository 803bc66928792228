"""λ-gradients: each pair of documents is pushed apart by the force of a pair cost, times what a swap would change."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import ObjectiveError
from gradrank.measures import AnyMeasure, Measure
from gradrank.measures.grammar import spelt
from gradrank.measures.swaps import SwapKernels, for_family
from gradrank.objectives.costs import PairCost, RankNet
from gradrank.objectives.kernels.lambda_kernel import (
    NORM_DEVIATION,
    NORM_LOG,
    NORM_NONE,
    LambdaOptions,
    LambdaOutput,
    lambda_block,
    lambda_scratch,
)
from gradrank.objectives.kernels.pair_layout import Gains, PairLayout
from gradrank.objectives.objective import BoundObjective, Gradients, Objective
from gradrank.objectives.pair_facts import PairFacts
from gradrank.ranking import longest_list, order_within_queries, random_numbers
from gradrank.runtime.threads import for_query_blocks

_NO_RANKS = np.empty(0, dtype=np.int32)
_NO_WEIGHTS = np.empty(0, dtype=np.float32)
_LARGEST_GAIN = 2.0**64
NORMALISATIONS = {"none": NORM_NONE, "log": NORM_LOG, "deviation": NORM_DEVIATION}


@dataclass(frozen=True, repr=False)
class Lambda(Objective):
    """λ_ij = force(s_i − s_j)·|ΔM(i, j)| for every pair with i more relevant (Burges et al. 2006; Donmez et al. 2009).

    λ_i gains it and λ_j loses it; ρ sums |ΔM|·(second derivative of the cost) over the same pairs for both. ΔM is the
    exact change of the measure when the two documents swap ranks. Weights of documents multiply |ΔM| by that of the
    better document, i.

    Parameters
    ----------
    target
        The measure to improve.
    cost
        The pair cost.
    pairs
        Use ``all`` pairs, or only the ``misranked`` ones (Donmez et al. 2009 train on these for MRR).
    truncation
        Leave out pairs of which both documents stand below this rank; None = none.
    normalize
        Scale the λ's of each query: ``log`` by log2(1 + S)/S, S = Σ|λ| (LightGBM, XGBoost), ``deviation`` by their
        standard deviation (Svore et al. 2011); ``none``: not at all.
    gap
        Divide |ΔM| by 0.01 + |s_i − s_j|, as LightGBM and XGBoost do by default.
    ties
        Order of documents with equal scores: a seeded permutation (``random``), or that of the file (``file``; for
        comparison with other tools: files are often sorted by label, which file order would leak).
    goal
        The measure that this is a means to, if it is another than the target: it chooses among models.

    >>> from gradrank.data import RankingData
    >>> from gradrank.measures import NDCG
    >>> data = RankingData.from_arrays([[0.0]] * 2, [0, 1], qid=[1, 1])
    >>> bound = Lambda(NDCG()).bind(data)
    >>> bound.gradients(np.array([2.0, 1.0])).lambdas.astype(float).round(4).tolist()
    [-0.2698, 0.2698]
    """

    target: Measure
    cost: PairCost = field(default_factory=RankNet)
    pairs: Literal["all", "misranked"] = "all"
    truncation: int | None = None
    normalize: Literal["none", "log", "deviation"] = "none"
    gap: bool = False
    ties: Literal["random", "file"] = "random"
    goal: Measure | None = None

    name: ClassVar[str] = "Lambda"

    def __post_init__(self) -> None:
        if not isinstance(self.target, Measure):
            raise ObjectiveError(f"{self.name} needs a measure, found {self.target!r}")
        if self.target.swap is None:
            raise ObjectiveError(f"{self.target} has no fast swap deltas and cannot be a training target")
        if self.goal == self.target:
            object.__setattr__(self, "goal", None)
        if self.goal is not None and (not isinstance(self.goal, Measure) or self.goal.source != self.target.source):
            raise ObjectiveError(
                f"{self.name}: goal is {self.goal!r}, expected a measure of the labels of {self.target}"
            )
        if self.pairs not in ("all", "misranked"):
            raise ObjectiveError(f"{self.name}: pairs is {self.pairs!r}, expected all or misranked")
        if self.truncation is not None and (not isinstance(self.truncation, int) or self.truncation < 1):
            raise ObjectiveError(
                f"{self.name}: truncation is {self.truncation!r}, expected a whole number of 1 or more"
            )
        if not isinstance(self.gap, bool):
            raise ObjectiveError(f"{self.name}: gap is {self.gap!r}, expected true or false")
        if self.normalize not in NORMALISATIONS:
            raise ObjectiveError(
                f"{self.name}: normalize is {self.normalize!r}, expected {' or '.join(NORMALISATIONS)}"
            )
        if self.ties not in ("random", "file"):
            raise ObjectiveError(f"{self.name}: ties is {self.ties!r}, expected random or file")

    @property
    def measure(self) -> AnyMeasure | None:
        """The goal, which is the target unless another is given."""
        return self.chosen_by

    @property
    def chosen_by(self) -> Measure:
        """The measure that chooses among models."""
        return self.target if self.goal is None else self.goal

    @property
    def swaps(self) -> SwapKernels:
        """What pairs weigh: the target's swap deltas."""
        return swaps_of(self.target)

    @property
    def option(self) -> float | None:
        """A number for the kernels of ``swaps``; None = the one that the target has prepared."""
        return None

    @property
    def deepest(self) -> int | None:
        """Pairs of which both documents stand below this rank do not act; None = all act."""
        return self.truncation

    @property
    def sources(self) -> tuple[str | None, ...]:
        """The label source of the measure."""
        return (self.target.source,)

    @property
    def shift_invariant(self) -> bool:
        """Pairs look at differences of scores."""
        return True

    def normalized_by_deviation(self) -> Lambda:
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
        """Whether the cost's second derivative is usable."""
        return self.cost.usable_curvature

    def bind(self, data: RankingData, *, random_state: int = 0, n_jobs: int | None = None) -> BoundLambda:
        """See Objective.bind."""
        return BoundLambda(self, data, random_state, n_jobs)

    def bind_among(
        self,
        data: RankingData,
        *,
        random_state: int = 0,
        n_jobs: int | None = None,
        classes: NDArray[np.float64] | None = None,
        partners: NDArray[np.bool_] | None = None,
    ) -> BoundLambda:
        """Bind to data, on some of the pairs only.

        Parameters
        ----------
        data, random_state, n_jobs
            As for bind.
        classes
            One number per document: only documents of the same class make pairs.
        partners
            Whether a document joins pairs at all.
        """
        return BoundLambda(self, data, random_state, n_jobs, classes=classes, partners=partners)

    def __str__(self) -> str:
        parts = [str(self.target)]
        if self.cost != RankNet():
            parts.append(str(self.cost))
        parts += [f"{item.name}={spelt(getattr(self, item.name))}" for item in fields(self)
                  if item.name not in ("target", "cost") and getattr(self, item.name) != item.default]  # fmt: skip
        return f"{self.name}({', '.join(parts)})"

    def __repr__(self) -> str:
        return str(self)


class BoundLambda(BoundObjective):
    """λ-gradients for one data set: documents laid out by gain once, scores come in often.

    ``classes`` (one number per document) restricts the pairs to documents of the same class, ``partners`` (true or
    false per document) to some of the documents.
    """

    def __init__(
        self,
        objective: Lambda,
        data: RankingData,
        random_state: int = 0,
        n_jobs: int | None = None,
        *,
        classes: NDArray[np.float64] | None = None,
        partners: NDArray[np.bool_] | None = None,
    ) -> None:
        bound = objective.target.bind(data, n_jobs=n_jobs)
        prepared = bound.prepared
        indptr, labels, rows = bound.documents()
        n_queries = len(indptr) - 1
        query = np.repeat(np.arange(n_queries), np.diff(indptr))
        # Documents that join no pair come last in their query.
        alone = np.isnan(labels)
        if partners is not None:
            alone |= ~(partners if rows is None else partners[rows])
        kind = np.zeros(len(labels)) if classes is None else (classes if rows is None else classes[rows])
        layout = np.lexsort((-prepared.gain, kind, alone, query))
        gain, kind, alone = prepared.gain[layout], kind[layout], alone[layout]
        new_class = _changes(query, alone, kind)
        run_end = _ends(new_class | _changes(gain)) - indptr[:-1][query]
        limit = np.where(alone, 0, _ends(new_class) - indptr[:-1][query])
        if objective.ties == "random":
            shuffle = order_within_queries(random_numbers(indptr, random_state, data.keys), indptr)
        else:
            shuffle = order_within_queries(layout.astype(np.float64), indptr)
        active = ~(prepared.empty | bound.skipped)
        if prepared.short is not None:
            active &= ~prepared.short
        # Queries without a single pair need no work.
        self._pairs_per_query = np.add.reduceat(np.maximum(limit - run_end, 0), indptr[:-1])
        active &= self._pairs_per_query > 0
        self.objective = objective
        self._n_docs = data.n_docs
        self._threads = n_jobs
        self._layout = PairLayout(
            indptr=indptr,
            rows=rows[layout] if rows is not None else layout,
            run_end=run_end,
            limit=limit,
            shuffle=shuffle - indptr[:-1][query],
            active=active,
            query_weight=np.ones(n_queries) if data.weight is None else data.weight,
            document_weight=_NO_WEIGHTS
            if data.document_weight is None
            else data.document_weight[rows[layout] if rows is not None else layout].astype(np.float32),
        )
        option = prepared.option if objective.option is None else objective.option
        gain, norm = _in_single_range(gain, prepared.norm, indptr)
        self._gains = Gains(gain, prepared.weight, norm, prepared.depth, option)

    def scale_queries(self, factors: NDArray[np.float64]) -> None:
        """Multiply the λ's of each query by a factor, from now on."""
        self._layout = self._layout._replace(query_weight=self._layout.query_weight * factors)

    def pairs_per_query(self) -> NDArray[np.int64]:
        """Number of pairs of each query that the labels allow, whatever the scores."""
        return self._pairs_per_query

    def pair_facts(self, data: RankingData) -> list[PairFacts]:
        """See BoundObjective.pair_facts."""
        source = self.objective.target.source
        missing = np.isnan(data.label(source))
        per_query = np.where(self.active, self.pairs_per_query(), 0)
        facts = PairFacts(
            objective=str(self.objective),
            source=data.label_names[0] if source is None else source,
            weight=1.0,
            pairs=int(per_query.sum()),
            queries=int(np.count_nonzero(per_query)),
            of_queries=data.n_queries,
            unlabeled_documents=int(np.count_nonzero(missing)),
            unlabeled_queries=int(np.count_nonzero(np.logical_and.reduceat(missing, data.indptr[:-1]))),
        )
        return [facts]

    @property
    def active(self) -> NDArray[np.bool_]:
        """Queries in which the objective has something to order."""
        return self._layout.active

    def gradients(self, scores: NDArray[np.float64], step: int = 0, *, count_pairs: bool = False) -> Gradients:
        """See BoundObjective.gradients."""
        lambdas = np.zeros(self._n_docs, dtype=np.float32)
        rhos = np.zeros(self._n_docs, dtype=np.float32)
        pairs = self.add_to(lambdas, rhos, scores, count_pairs=count_pairs)
        return Gradients(lambdas, rhos, pairs)

    @property
    def whole(self) -> bool:
        """Whether all documents are ranked: no list is condensed to its judged documents."""
        return len(self._layout.rows) == self._n_docs

    def add_to(
        self,
        lambdas: NDArray[np.float32],
        rhos: NDArray[np.float32],
        scores: NDArray[np.float64],
        ranks: NDArray[np.int32] | None = None,
        *,
        count_pairs: bool = False,
    ) -> int:
        """Add λ and ρ to what is there; returns the number of pairs with a non-zero λ (−1 = not counted).

        ``ranks`` (one per document, −1 = not known yet) is read and filled in, so that several objectives over the
        same scores sort each query once.
        """
        layout, family = self._layout, self.objective.swaps
        block, options = self._block, self._options
        if count_pairs:
            options = options._replace(count_pairs=True)
        pairs = np.zeros(len(layout.indptr) - 1, dtype=np.int64)
        out = LambdaOutput(lambdas, rhos, pairs, _NO_RANKS if ranks is None or not self.whole else ranks)

        def work(first: int, end: int) -> None:
            scratch = lambda_scratch(longest_list(layout.indptr, first, end), family)
            block(first, end, scores, layout, self._gains, options, out, scratch)

        for_query_blocks(work, layout.indptr, self._threads)
        return int(pairs.sum()) if count_pairs else -1

    @cached_property
    def _block(self) -> Any:
        """The kernel for the measure and the cost."""
        objective = self.objective
        return for_family(lambda_block, objective.swaps, force_row=objective.cost.kernels.row)

    @cached_property
    def _options(self) -> LambdaOptions:
        objective = self.objective
        return LambdaOptions(
            slope=float(objective.cost.slope),
            shift=float(objective.cost.shift),
            misranked=objective.pairs == "misranked",
            truncation=np.iinfo(np.int64).max if objective.deepest is None else objective.deepest,
            normalize=NORMALISATIONS[objective.normalize],
            gap=objective.gap,
            count_pairs=False,
        )


def swaps_of(measure: Measure) -> SwapKernels:
    """The swap deltas of a training target, which has some."""
    assert measure.swap is not None
    return measure.swap


def _in_single_range(
    gain: NDArray[np.float64], norm: NDArray[np.float64], indptr: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gains and divisors that single precision can hold: where gains are huge, both divided by a power of 2.

    Only their quotients count, and these do not change. 2^label − 1 leaves single precision at label 128.
    """
    largest = np.maximum.reduceat(gain, indptr[:-1])
    huge = largest > _LARGEST_GAIN
    if not huge.any():
        return gain, norm
    factor = np.exp2(np.where(huge, -np.floor(np.log2(np.where(huge, largest, 1.0))), 0.0))
    return gain * np.repeat(factor, np.diff(indptr)), norm * factor


def _changes(*keys: NDArray[Any]) -> NDArray[np.bool_]:
    """Where any of the keys differs from its predecessor."""
    changed = np.ones(len(keys[0]), dtype=bool)
    changed[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return changed


def _ends(starts: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each place the end of the run it belongs to, runs given by where they start."""
    ends = np.append(np.flatnonzero(starts)[1:], len(starts))
    return np.asarray(ends[np.cumsum(starts) - 1])

"""Leaves, rate and number of trees where none are given: by the number of queries and documents.

The guide on defaults has the measurements behind the rule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gradrank.data.ranking_data import RankingData
from gradrank.learners.base.crew import ALONE, Crew
from gradrank.learners.trees.feature_bins import MOST_BINS

if TYPE_CHECKING:
    from gradrank.learners.trees.parameters import TreeParameters

LOSSGUIDE, SYMMETRIC = "lossguide", "symmetric"
NOT_FOR_SYMMETRIC = (
    "num_leaves", "min_child_samples", "min_child_weight", "split_docs", "monotone_constraints", "categorical_feature",
    "lightgbm",
)  # fmt: skip
"""Parameters that symmetric trees do not take."""

MOST_TREES = 10_000
"""A ceiling that no training should reach: early stopping ends it before."""
FEWEST_HELD_OUT = 20
"""With fewer queries held out, chance would choose the number of trees."""
DEFAULT_RATE = 0.1
"""Of 0.05, 0.1 and 0.2 none was better on data of any size, once the number of trees is found."""
DEFAULT_PATIENCE = 100
"""Trees without a new best after which training ends; the measure on few queries stands still for long."""
DEFAULT_SHARE = 0.7
"""Of the queries, for each tree that is grown leaf by leaf."""
DEFAULT_LEVELS = 5
"""Of symmetric trees; the guide on defaults has the measurements."""
MOST_LEVELS = 8
"""Histograms of symmetric trees double with each level, and a document's node is a byte."""
_MOST_ADDED, _QUERIES_PER_ADDED = 10.0, 20
_FEWEST_LEAVES, _MOST_LEAVES = 10, 63
_DOCS_PER_LEAF = 50
# A fixed number of trees goes as far as so many trees of rate 1 together.
_FIXED_DISTANCE = 15.0


@dataclass(frozen=True)
class Shape:
    """What training goes by once the data is known."""

    n_estimators: int
    """Most trees."""
    num_leaves: int
    learning_rate: float
    early_stopping_rounds: int | None
    """End after so many trees without a new best; None makes them all."""
    reg_lambda: float = 0.0
    """Added to the denominator of leaf values and split gains."""
    subsample: float = 1.0
    """Share of the queries that each tree sees."""
    depth: int | None = None
    """Levels of symmetric trees; None = trees are grown leaf by leaf."""
    searched: bool = False
    """Whether the number of trees is found on validation data, ``n_estimators`` being a mere ceiling."""

    def of_trees(self) -> dict[str, int]:
        """The size of a tree as a parameter: leaves, or levels."""
        return {"num_leaves": self.num_leaves} if self.depth is None else {"max_depth": self.depth}


def shape_by_size(
    parameters: TreeParameters,
    n_queries: int,
    n_docs: int,
    *,
    validated: bool,
    unit_queries: bool = False,
    weight: float = 1.0,
) -> Shape:
    """What the parameters say, and the rule where they say nothing.

    Parameters
    ----------
    parameters
        What is given always wins.
    n_queries, n_docs
        The size of the training data.
    validated
        Whether there is data, given or held out, to find the number of trees on.
    unit_queries
        Whether the objective makes ρ of all queries alike: only then is their scale known beforehand.
    weight
        What a query weighs on average, which its ρ is multiplied by.
    """
    depth = symmetric_depth(parameters) if is_symmetric(parameters, unit_queries=unit_queries) else None
    leaves = parameters.num_leaves
    if leaves is None:
        leaves = default_leaves(n_queries, n_docs) if depth is None else 2**depth
    rate = DEFAULT_RATE if parameters.learning_rate is None else parameters.learning_rate
    added = parameters.reg_lambda
    if added is None:
        added = default_reg_lambda(n_queries) * weight if unit_queries else 0.0
    seen = parameters.subsample
    if seen is None:
        # Symmetric trees learn little by heart, be it of all queries.
        seen = DEFAULT_SHARE if depth is None else 1.0
    if parameters.n_estimators is not None:
        return Shape(parameters.n_estimators, leaves, rate, parameters.early_stopping_rounds, added, seen, depth)
    if not validated:
        return Shape(fixed_trees(rate), leaves, rate, None, added, seen, depth)
    patience = parameters.early_stopping_rounds
    return Shape(MOST_TREES, leaves, rate, DEFAULT_PATIENCE if patience is None else patience, added, seen, depth, True)


def is_symmetric(parameters: TreeParameters, *, unit_queries: bool) -> bool:
    """Whether trees are symmetric: as it is given, else by what else is given and by the objective.

    Parameters
    ----------
    parameters
        One that symmetric trees do not take means that they are not wanted.
    unit_queries
        Whether the objective makes ρ of all queries alike. Nothing else was tried.
    """
    if parameters.grow_policy is not None:
        return parameters.grow_policy == SYMMETRIC
    return unit_queries and not not_for_symmetric(parameters)


def not_for_symmetric(parameters: TreeParameters) -> list[str]:
    """The parameters that are given, other than by default, and that symmetric trees do not take."""
    declared = parameters.declared
    found = [name for name in NOT_FOR_SYMMETRIC if _is_given(getattr(parameters, name), declared[name].default)]
    found += ["max_depth"] if parameters.max_depth is not None and parameters.max_depth > MOST_LEVELS else []
    return found + (["max_bin"] if parameters.max_bin > MOST_BINS else [])


def _is_given(value: Any, default: Any) -> bool:
    if value is None:
        return False
    return len(value) > 0 if hasattr(value, "__len__") else value != default


def symmetric_depth(parameters: TreeParameters) -> int:
    """Levels of a symmetric tree."""
    depth = parameters.max_depth
    return depth if depth is not None and depth > 0 else DEFAULT_LEVELS


def default_leaves(n_queries: int, n_docs: int) -> int:
    """Most leaves of a tree: half the root of the number of queries, from 10 to 63, and 50 documents for each leaf.

    Queries count, not documents: those of one query are judged together, and say less than as many of other queries.

    >>> default_leaves(200, 4_000), default_leaves(1_000, 40_000), default_leaves(10_000, 120_000)
    (10, 15, 50)
    """
    by_queries = min(max(math.isqrt(n_queries) // 2, _FEWEST_LEAVES), _MOST_LEAVES)
    return max(2, min(by_queries, n_docs // _DOCS_PER_LEAF))


def default_reg_lambda(n_queries: int) -> float:
    """Added to the curvature of each leaf: about that of 10 queries, and of a twentieth of all where these are few.

    A leaf that few queries speak for then moves less. All queries together have some four times their number at
    the start, and less when most pairs stand right.

    >>> default_reg_lambda(40), default_reg_lambda(100_000)
    (2.0, 10.0)
    """
    return min(_MOST_ADDED, n_queries / _QUERIES_PER_ADDED)


def mean_weight(data: RankingData, crew: Crew = ALONE) -> float:
    """What a query weighs on average, its documents' weights included, among those that weigh anything.

    Rounded, so that it does not depend on how the queries are spread over processes.

    Parameters
    ----------
    data
        The training data, or this process's part of it.
    crew
        The processes that train together.

    >>> data = RankingData.from_arrays([[1.0], [2.0], [3.0]], qid=[7, 8, 9], weight=[0.1, 0.0, 0.3])
    >>> mean_weight(data)
    0.2
    """
    weighs = np.ones(0)
    if data.weight is not None or data.document_weight is not None:
        weighs = np.add.reduceat(data.row_weights(), data.indptr[:-1]) / data.sizes
        weighs = weighs[weighs > 0.0]
    total, count = crew.sum(np.array([weighs.sum(), len(weighs)]))
    return float(f"{total / count:.6g}") if count else 1.0


def fixed_trees(rate: float) -> int:
    """Number of trees where nothing can find it.

    >>> fixed_trees(0.05), fixed_trees(0.1)
    (300, 150)
    """
    return max(1, round(_FIXED_DISTANCE / rate))

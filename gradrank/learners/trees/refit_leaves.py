"""The leaves of all trees of a model, fitted once more together.

Boosting fixes the leaves of a tree before it knows the trees after it, and takes but a share of each step. When all
trees are there, the best values of all leaves together are the solution of one linear least squares problem, here on
differences within queries (:class:`gradrank.objectives.Differences`): minimize

    Σ_q Σ_{i in q} w_i·(d_i − d̄_q)² + l2·Σ (v − v₀)²,    d = target − Z·v,

Z having a row for each document with a 1 for each leaf that it reaches, v₀ the values so far. It is solved by
conjugate gradients (Hestenes, Stiefel 1952), scaled by the weights of the leaves; a few dozen steps do, and where they
end early, values have moved less far from where they were.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.models.trees.ensemble import TreeEnsemble
from gradrank.objectives.differences import WithinQueries
from gradrank.runtime.kernels import njit
from gradrank.runtime.threads import for_query_blocks

Vector = NDArray[np.float64]

# The sums of as many parts of the documents are added up in order, so that threads change nothing.
_PARTS = 16


@njit(cache=True, nogil=True)
def _add_leaves(leaf: Any, first: Any, values: Any, out: Any) -> None:
    """The sum of the values of each document's leaves."""
    for row in range(len(leaf)):
        total = 0.0
        for tree in range(leaf.shape[1]):
            total += values[first[tree] + leaf[row, tree]]
        out[row] = total


@njit(cache=True, nogil=True)
def _add_documents(leaf: Any, first: Any, column: Any, out: Any) -> None:
    """For each leaf the sum of what its documents have."""
    for row in range(len(leaf)):
        for tree in range(leaf.shape[1]):
            out[first[tree] + leaf[row, tree]] += column[row]


class _Leaves:
    """Which leaf of each tree each document reaches, as a matrix Z that is never written down."""

    def __init__(self, ensemble: TreeEnsemble, data: RankingData, n_jobs: int | None) -> None:
        self.leaf = ensemble.predict_leaf(ensemble.matrix(data), n_jobs=n_jobs)
        counts = [tree.n_leaves for tree in ensemble.trees]
        self.ends = np.cumsum(counts)
        self._first = (self.ends - counts).astype(np.int64)
        self._edges = np.linspace(0, data.n_docs, _PARTS + 1).astype(np.int64)
        self._n_jobs = n_jobs

    def times(self, values: Vector) -> Vector:
        """Z·v."""
        out = np.empty(len(self.leaf))

        def work(start: int, end: int) -> None:
            rows = slice(self._edges[start], self._edges[end])
            _add_leaves(self.leaf[rows], self._first, values, out[rows])

        for_query_blocks(work, self._edges, self._n_jobs)
        return out

    def transposed(self, column: Vector) -> Vector:
        """Zᵀ·c."""
        sums = np.zeros((_PARTS, int(self.ends[-1])))

        def work(start: int, end: int) -> None:
            for part in range(start, end):
                rows = slice(self._edges[part], self._edges[part + 1])
                _add_documents(self.leaf[rows], self._first, column[rows], sums[part])

        for_query_blocks(work, self._edges, self._n_jobs)
        return np.asarray(sums.sum(axis=0))


def refit_leaves(
    ensemble: TreeEnsemble,
    data: RankingData,
    label: str | None = None,
    *,
    l2: float = 10.0,
    iterations: int = 20,
    n_jobs: int | None = None,
) -> TreeEnsemble:
    """The same trees with values of their leaves that come closer to a label's differences within queries.

    Parameters
    ----------
    ensemble
        The trees.
    data
        What their leaves are fitted on.
    label
        Label source; None = the primary one; documents without a label take no part.
    l2
        What holds values where they are: so many documents of weight 1.
    iterations
        Steps of the conjugate gradients.
    n_jobs
        Threads to use; all cores by default.

    >>> from gradrank.models.trees.ensemble import Tree
    >>> data = RankingData.from_arrays([[0.0], [1.0]], [0, 5], qid=[1, 1])
    >>> stump = Tree.numerical(split_feature=[0], threshold=[0.5], left=[-1], right=[-2], leaf_value=[1.0, 2.0])
    >>> refit_leaves(TreeEnsemble([stump], ["f1"]), data, l2=0.0).predict([[0.0], [1.0]]).round(3).tolist()
    [-1.0, 4.0]
    """
    if not ensemble.trees:
        return ensemble
    target = data.label(label).astype(np.float64)
    known = ~np.isnan(target)
    leaves, queries = _Leaves(ensemble, data, n_jobs), WithinQueries(data, known)

    def pull(column: Vector) -> Vector:
        """For each leaf half the derivative of the sum of squared differences."""
        return leaves.transposed(queries.weight * queries.centered(column))

    values = np.concatenate([tree.leaf_value for tree in ensemble.trees])
    left = pull(np.where(known, target, 0.0) - leaves.times(values))
    # Leaves that no document of weight reaches stay as they are.
    reached = leaves.transposed(queries.weight)
    scale = np.where(reached > 0.0, 1.0 / np.maximum(reached + l2, 1e-300), 0.0)
    moved = np.zeros(len(values))
    scaled = scale * left
    direction, size = scaled, float(left @ scaled)
    for _ in range(iterations):
        if not size > 0.0:
            break
        pulled = pull(leaves.times(direction)) + l2 * direction
        step = size / float(direction @ pulled)
        moved += step * direction
        left = left - step * pulled
        scaled = scale * left
        before, size = size, float(left @ scaled)
        direction = scaled + size / before * direction
    parts = np.split(values + moved, leaves.ends[:-1])
    trees = [replace(tree, leaf_value=part) for tree, part in zip(ensemble.trees, parts, strict=True)]
    return TreeEnsemble(
        trees, ensemble.feature_names, base_score=ensemble.base_score, categories=ensemble.categories,
        training=ensemble.training,
    )  # fmt: skip

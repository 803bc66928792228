"""Scores of a few documents, or by large trees: several trees are walked side by side.

A step down a tree waits for the node that the step before led to, so that one walk leaves the processor idle most of
the time. Here eight trees of one document take a step each in turn; their walks do not wait for each other.

Nodes and leaves of all trees stand in one array, 16 bytes each, two children beside each other: a number (the
threshold, or the value of a leaf), and a word with the place of the left child, the feature and whether NaN goes right.
A leaf is its own left child and asks for a feature that is minus infinity in every document, so that a walk that has
arrived stays where it is, and a group of eight ends when none of its walks moves any more.

Values of leaves are added tree after tree in float64: the result equals the plain walk's bit for bit. Trees with
categorical nodes, or where zero counts as missing, are left to the plain walk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.models.trees.tree import NAN_GOES_RIGHT, NOT_SIMPLE, TreeArrays, read_only
from gradrank.runtime.kernels import njit
from gradrank.runtime.threads import for_query_blocks

LANES = 8
# So many documents go down a group of trees while its nodes are in the cache.
DOCUMENTS = 16
# The word of a node: 1 bit for NaN, 31 for the feature, 32 for the left child.
_MOST_NODES = 1 << 31
_ROWS_PER_BLOCK = 64
_NUMBERS_PER_COST_UNIT = 4000


@dataclass(frozen=True, eq=False)
class SideBySideWalker:
    """The arrays that the kernel runs on, made once from an ensemble with :meth:`of`."""

    base_score: float
    numbers: NDArray[np.float64]
    """Node k has its threshold or leaf value at 2k; the words are the same memory."""
    words: NDArray[np.int64]
    """Node k has its word at 2k + 1."""
    roots: NDArray[np.int64]
    """The root of each tree, and of trees of one leaf of value 0 that fill the last group."""
    n_trees: int

    @classmethod
    def of(cls, trees: TreeArrays, base_score: float, n_features: int) -> SideBySideWalker | None:
        """Lay out the trees; None if some node needs more than one comparison."""
        if (trees.nan_acts == NOT_SIMPLE).any():
            return None
        n_trees = trees.n_trees
        n_nodes = np.diff(trees.node_start)
        total = int(2 * n_nodes.sum() + n_trees + 1)
        if total >= _MOST_NODES:
            return None
        # A tree of n nodes takes 2n + 1 places: its root, then the children of each node, pair after pair.
        roots = np.concatenate(([0], np.cumsum(2 * n_nodes + 1)))
        tree_of_node = np.repeat(np.arange(n_trees), n_nodes)
        within = np.arange(len(tree_of_node)) - trees.node_start[tree_of_node]
        pair = roots[tree_of_node] + 1 + 2 * within
        place = np.zeros(len(tree_of_node), dtype=np.int64)
        place[within == 0] = roots[:-1][n_nodes > 0]
        numbers = np.zeros((total, 2))
        words = numbers.view(np.int64)
        leaf_word = np.int64(n_features) << 1
        for side in (0, 1):
            child = trees.children[:, side].astype(np.int64)
            inner = child >= 0
            place[(trees.node_start[tree_of_node] + child)[inner]] = (pair + side)[inner]
            at = (pair + side)[~inner]
            leaves = trees.node_start[tree_of_node] + tree_of_node + ~child
            numbers[at, 0] = trees.leaf_value[leaves[~inner]]
            words[at, 1] = (at << 32) | leaf_word
        numbers[place, 0] = trees.threshold
        words[place, 1] = (
            (pair << 32) | (trees.split_feature.astype(np.int64) << 1) | (trees.nan_acts == NAN_GOES_RIGHT)
        )
        alone = np.flatnonzero(n_nodes == 0)
        numbers[roots[alone], 0] = trees.leaf_value[trees.node_start[alone] + alone]
        words[roots[alone], 1] = (roots[alone] << 32) | leaf_word
        last = total - 1
        words[last, 1] = (last << 32) | leaf_word
        filled = np.full(-(-n_trees // LANES) * LANES, last, dtype=np.int64)
        filled[:n_trees] = roots[:-1]
        flat = read_only(numbers.reshape(-1))
        return cls(float(base_score), flat, read_only(flat.view(np.int64)), read_only(filled), n_trees)

    def score(self, X: NDArray[Any], n_jobs: int | None = None) -> NDArray[np.float64]:
        """Scores of the rows of a float32 or float64 matrix, on several threads if it is worth it."""
        out = np.empty(len(X))
        if len(X) <= _ROWS_PER_BLOCK:
            self._walk(X, out)
            return out
        edges = np.append(np.arange(0, len(X), _ROWS_PER_BLOCK), len(X))

        def work(first: int, end: int) -> None:
            rows = slice(edges[first], edges[end])
            self._walk(X[rows], out[rows])

        # Work is cut as if documents were as many as they are costly, as the fast scorer does it.
        for_query_blocks(work, edges * max(1, len(self.numbers) // _NUMBERS_PER_COST_UNIT), n_jobs)
        return out

    def _walk(self, X: NDArray[Any], out: NDArray[np.float64]) -> None:
        rows = read_only(np.ascontiguousarray(X))
        _walk(rows, self.base_score, self.numbers, self.words, self.roots, self.n_trees, out)


@njit(cache=True, nogil=True)
def _walk(X: Any, base: Any, numbers: Any, words: Any, roots: Any, n_trees: Any, out: Any) -> None:
    n_features = X.shape[1]
    rows = np.empty((DOCUMENTS, n_features + 1), np.float64)
    total = np.empty(DOCUMENTS, np.float64)
    at = np.empty(LANES, np.uint64)
    for start in range(0, len(X), DOCUMENTS):
        size = min(DOCUMENTS, len(X) - start)
        for d in range(size):
            for j in range(n_features):
                rows[d, j] = X[start + d, j]
            rows[d, n_features] = -np.inf
            total[d] = base
        for group in range(0, n_trees, LANES):
            lanes = min(LANES, n_trees - group)
            for d in range(size):
                x = rows[d]
                for lane in range(LANES):
                    at[lane] = roots[group + lane]
                moved = True
                while moved:
                    change = np.uint64(0)
                    for lane in range(LANES):
                        k = at[lane]
                        word = np.uint64(words[np.uint64(2) * k + np.uint64(1)])
                        value = x[(word & np.uint64(0xFFFFFFFF)) >> np.uint64(1)]
                        right = (value > numbers[np.uint64(2) * k]) | ((value != value) & (word & np.uint64(1) == 1))
                        to = (word >> np.uint64(32)) + np.uint64(right)
                        change |= to ^ k
                        at[lane] = to
                    moved = change != np.uint64(0)
                for lane in range(lanes):
                    total[d] += numbers[np.uint64(2) * at[lane]]
        for d in range(size):
            out[start + d] = total[d]

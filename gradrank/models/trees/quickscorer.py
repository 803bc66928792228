"""QuickScorer: the scores of a tree ensemble by bit masks instead of walks (Lucchese et al., SIGIR 2015).

Each tree has a mask with one bit per leaf, all set. A node whose test fails (the document goes right) clears the
bits of the leaves on its left; in the end the lowest set bit is the leaf the document reaches. Nodes of all trees
are grouped by feature and sorted by threshold, so that those that fail for a value come first, and 64 documents go
side by side in one vectorized loop.

How the general case is brought to this one loop:

- **More than 32 leaves**: the tree is cut into pieces of at most 32 leaves. A piece is a subtree where deeper pieces
  are replaced by a leaf of value 0, plus one last leaf of value 0 that is left when the document does not reach the
  subtree: every node on the path from the root clears all other bits if the document turns away there. Exactly one
  piece gives the leaf's value, the others add 0, which leaves a float64 sum unchanged.
- **Turning away to the left** happens when ``x <= t``, that is ``-x > t'`` with ``t'`` the next number below ``-t``:
  such nodes stand in the list of the feature's negative.
- **NaN**: ``x > t`` is false and ``not x <= t`` is true for NaN, so a node is put into the first or the second kind
  of list. Where NaN is read as 0, the sign of the threshold tells which.
- **Zero as missing**: a copy of the column in which zeros are NaN.
- **Categorical nodes** are tested one by one.
- **float32 documents**: thresholds are rounded down to float32, which sends every float32 the same way.

Leaf values are added tree after tree in float64: the result equals the plain walk's bit for bit.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.models.trees.tree import (
    CATEGORICAL,
    DEFAULT_LEFT,
    MISSING_BITS,
    MISSING_NONE,
    MISSING_ZERO,
    ZERO,
    TreeArrays,
    read_only,
)
from gradrank.runtime.kernels import njit
from gradrank.runtime.threads import for_query_blocks

# LLVM vectorizes the inner loop over a constant number of documents; 64 measured best.
DOCUMENTS_PER_BLOCK = 64
# Masks of one group of pieces and one block of documents: 48 KB.
PIECES_PER_GROUP = 192
MASK_BITS = 32
# So many nodes cost about as much for a document as what the thread pool is tuned for.
_NODES_PER_COST_UNIT = 2000
# Finding a block's largest value costs as much as some ten nodes, and saves the nodes above it.
_NODES_WORTH_A_MAXIMUM = 16
# A piece repeats the nodes on its path from the root. Trees of training repeat one or two for each of their own; a
# long chain would repeat so many that memory and time end.
_MOST_REPEATED = 32
# Multiplying a power of two by this de Bruijn number puts a different number of 0…31 into the top five bits.
_DE_BRUIJN = 0x077CB531
_ALL_BITS = 0xFFFFFFFF
_ALL = np.uint32(_ALL_BITS)


@dataclass(frozen=True, eq=False)
class QuickScorer:
    """The arrays that the kernel runs on, made once from an ensemble with :meth:`of`."""

    base_score: float
    columns: NDArray[np.int32]
    """Columns of the working block: feature, and whether it is negated, zeros are missing, and it has many nodes."""
    segments: NDArray[np.int64]
    """Nodes of group g, column c: NaN-goes-left ones from ``[g, 2c]``, NaN-goes-right ones from ``[g, 2c + 1]``."""
    thresholds32: NDArray[np.float32]
    thresholds64: NDArray[np.float64]
    piece: NDArray[np.uint32]
    keep: NDArray[np.uint32]
    leaf_value: NDArray[np.float64]
    """Pieces × 32, in de Bruijn order."""
    cat_segments: NDArray[np.int64]
    cat_nodes: NDArray[np.int64]
    """Categorical nodes: feature, number of the bit set, whether members (1) or the others (0) clear bits."""
    cat_piece: NDArray[np.uint32]
    cat_keep: NDArray[np.uint32]
    cat_start: NDArray[np.int64]
    cat_words: NDArray[np.uint32]

    @classmethod
    def of(cls, trees: TreeArrays, base_score: float = 0.0) -> QuickScorer | None:
        """Cut the trees into pieces and sort their nodes; None if they are so deep that walking them is better."""
        pieces = _all_pieces(trees)
        if pieces is None:
            return None
        node, piece, keep, away_left, leaf_value = pieces
        group = piece // PIECES_PER_GROUP
        n_groups = -(-len(leaf_value) // PIECES_PER_GROUP)
        decision, threshold = trees.decision[node], trees.threshold[node]
        categorical = (decision & CATEGORICAL) > 0

        numeric = np.flatnonzero(~categorical)
        missing = decision[numeric] & MISSING_BITS
        limit = threshold[numeric]
        nan_left = np.where(missing == MISSING_NONE, limit >= 0, (decision[numeric] & DEFAULT_LEFT) > 0)
        mirrored = away_left[numeric]
        # A mirrored node acts when the document goes left.
        nan_acts = nan_left == mirrored
        keys = np.column_stack((trees.split_feature[node[numeric]], mirrored, missing == MISSING_ZERO)).astype(np.int32)
        columns, column, count = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
        column = column.reshape(-1)
        down32 = _round_down(limit)
        bound64 = np.where(mirrored, _next_below(-limit), limit)
        bound32 = np.where(mirrored, _next_below(-down32), down32)
        segment = (group[numeric] * len(columns) + column) * 2 + nan_acts
        order = np.lexsort((bound64, segment))
        edges = np.searchsorted(segment[order], np.arange(n_groups * len(columns) * 2 + 1))
        chosen = numeric[order]

        cats = np.flatnonzero(categorical)
        cats = cats[np.argsort(group[cats], kind="stable")]
        cat_nodes = np.column_stack((trees.split_feature[node[cats]], threshold[cats], away_left[cats]))
        return cls(
            base_score=base_score,
            columns=_frozen(np.column_stack((columns, count >= _NODES_WORTH_A_MAXIMUM)), np.int32),
            segments=_frozen(edges, np.int64),
            thresholds32=_frozen(bound32[order], np.float32),
            thresholds64=_frozen(bound64[order], np.float64),
            piece=_frozen(piece[chosen] % PIECES_PER_GROUP, np.uint32),
            keep=_frozen(keep[chosen], np.uint32),
            leaf_value=_frozen(_in_de_bruijn_order(leaf_value), np.float64),
            cat_segments=_frozen(np.searchsorted(group[cats], np.arange(n_groups + 1)), np.int64),
            cat_nodes=_frozen(cat_nodes, np.int64),
            cat_piece=_frozen(piece[cats] % PIECES_PER_GROUP, np.uint32),
            cat_keep=_frozen(keep[cats], np.uint32),
            cat_start=trees.cat_start,
            cat_words=trees.cat_words,
        )

    def score(self, X: NDArray[Any], n_jobs: int | None = None) -> NDArray[np.float64]:
        """Scores of the rows of a float32 or float64 matrix, row- or column-major, on several threads."""
        out = np.empty(len(X), dtype=np.float64)
        edges = np.append(np.arange(0, len(X), DOCUMENTS_PER_BLOCK), len(X))
        contiguous = X.flags.c_contiguous or X.flags.f_contiguous

        def work(first: int, end: int) -> None:
            start, stop = int(edges[first]), int(edges[end])
            if contiguous:
                self._score_rows(X, start, stop, out)
            else:
                self._score_rows(np.ascontiguousarray(X[start:stop]), 0, stop - start, out[start:stop])

        # Work is cut as if documents were as many as they are costly: large models use threads for fewer documents.
        for_query_blocks(work, edges * max(1, len(self.keep) // _NODES_PER_COST_UNIT), n_jobs)
        return out

    def _score_rows(self, X: NDArray[Any], start: int, stop: int, out: NDArray[np.float64]) -> None:
        _score(
            read_only(X),
            start,
            stop,
            self.base_score,
            self.columns,
            self.segments,
            self.thresholds32 if X.dtype == np.float32 else self.thresholds64,
            self.piece,
            self.keep,
            self.leaf_value,
            self.cat_segments,
            self.cat_nodes,
            self.cat_piece,
            self.cat_keep,
            self.cat_start,
            self.cat_words,
            np.empty((len(self.columns), 2), X.dtype),
            np.empty(DOCUMENTS_PER_BLOCK),
            out,
        )


def _frozen(values: Any, dtype: type) -> NDArray[Any]:
    return read_only(np.ascontiguousarray(values, dtype=dtype))


def _round_down(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest float32 not above each float64."""
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32)
    return np.where(rounded > values, _next_below(rounded), rounded)


def _next_below(values: NDArray[Any]) -> NDArray[Any]:
    # Below the lowest number lies minus infinity, which numpy would warn of and which is right here.
    with np.errstate(over="ignore"):
        return np.asarray(np.nextafter(values, values.dtype.type(-np.inf)))


def _in_de_bruijn_order(leaf_value: NDArray[np.float64]) -> NDArray[np.float64]:
    place = [((1 << bit) * _DE_BRUIJN & 0xFFFFFFFF) >> 27 for bit in range(MASK_BITS)]
    result = np.zeros_like(leaf_value)
    result[:, place] = leaf_value
    return result


def _all_pieces(trees: TreeArrays) -> tuple[NDArray[Any], ...] | None:
    """Of every node in every piece: node number, piece, bits to keep, whether it acts when going left; leaf values.

    None if pieces would repeat too many nodes.
    """
    acts: list[tuple[int, int, int, bool]] = []
    places: list[int] = []
    n_pieces = 0
    children = trees.children.tolist()
    most = _MOST_REPEATED * (len(children) + MASK_BITS)
    for first, end in itertools.pairwise(trees.node_start.tolist()):
        n_pieces = _cut(children[first:end], first, n_pieces, acts, places, most)
        if n_pieces < 0:
            return None
    values = np.zeros((n_pieces, MASK_BITS))
    values.reshape(-1)[places] = trees.leaf_value
    node, piece, keep, away_left = np.array(acts, dtype=np.int64).reshape(-1, 4).T
    return node, piece, keep.astype(np.uint32), away_left.astype(bool), values


def _cut(
    children: list[list[int]],
    first: int,
    n_pieces: int,
    acts: list[tuple[int, int, int, bool]],
    places: list[int],
    most: int,
) -> int:
    """Cut one tree into pieces; children come after their parents, so one loop up and one loop down suffice.

    Appends what :func:`_all_pieces` gives of the nodes to ``acts``, and where each leaf stands to ``places``; gives the
    number of pieces with this tree's, or −1 if there are more than ``most`` acts.
    """
    n = len(children)
    # A piece below the root needs the last leaf "not here".
    room = MASK_BITS if n + 1 <= MASK_BITS else MASK_BITS - 1
    parent = [-1] * n
    width_left = [1] * n
    width = [1] * n
    hollow = [False] * n  # holds no leaf of its own piece any more
    is_root = [False] * n
    for k in range(n - 1, -1, -1):
        l, r = children[k]
        a = b = 1
        if l >= 0:
            parent[l] = k
            a = width[l]
        if r >= 0:
            parent[r] = k
            b = width[r]
        if a + b > room and a >= b:
            is_root[l] = True
            a = 1
        if a + b > room:
            is_root[r] = True
            b = 1
        if a + b > room:
            is_root[l] = True
            a = 1
        width_left[k] = a
        width[k] = a + b
        if l >= 0 and r >= 0 and (is_root[l] or hollow[l]) and (is_root[r] or hollow[r]):
            hollow[k] = True
            width[k] = 1
    if n == 0:
        places.append(n_pieces * MASK_BITS)
        return n_pieces + 1
    is_root[0] = True

    place_of_leaf = [0] * (n + 1)
    piece_of = [0] * n
    start = [0] * n
    for k in range(n):
        if is_root[k]:
            piece_of[k] = n_pieces
            keep = _ALL_BITS & ~((1 << width[k]) - 1)
            child, up = k, parent[k]
            while up >= 0:
                acts.append((first + up, n_pieces, keep, children[up][1] == child))
                child, up = up, parent[up]
            if len(acts) > most:
                return -1
            n_pieces += 1
        piece, place, middle = piece_of[k], start[k], start[k] + width_left[k]
        if not hollow[k]:
            acts.append((first + k, piece, _ALL_BITS & ~((1 << middle) - (1 << place)), False))
        for child, at in zip(children[k], (place, middle), strict=True):
            if child < 0:
                place_of_leaf[~child] = piece * MASK_BITS + at
            elif not is_root[child]:
                piece_of[child] = piece
                start[child] = at
    places.extend(place_of_leaf)
    return n_pieces


@njit(cache=True, nogil=True)
def _score(
    X: Any,
    start: Any,
    stop: Any,
    base_score: Any,
    columns: Any,
    segments: Any,
    thresholds: Any,
    piece: Any,
    keep: Any,
    leaf_value: Any,
    cat_segments: Any,
    cat_nodes: Any,
    cat_piece: Any,
    cat_keep: Any,
    cat_start: Any,
    cat_words: Any,
    largest: Any,
    total: Any,
    out: Any,
) -> None:
    """Scores of the rows start…stop; ``largest`` and ``total`` are scratch arrays."""
    n_columns = len(columns)
    n_pieces = len(leaf_value)
    # Made here, not passed in: LLVM then knows that they do not overlap with anything, and vectorizes without a check.
    values = np.empty((n_columns, DOCUMENTS_PER_BLOCK), X.dtype)
    masks = np.empty((PIECES_PER_GROUP + 1, DOCUMENTS_PER_BLOCK), np.uint32)
    isolated = masks[PIECES_PER_GROUP]
    for first in range(start, stop, DOCUMENTS_PER_BLOCK):
        size = DOCUMENTS_PER_BLOCK
        if stop - first < size:
            size = stop - first
        for c in range(n_columns):
            feature = columns[c, 0]
            for d in range(size):
                # Unsigned: Numba's check for negative indices would keep LLVM from vectorizing the copy.
                values[c, d] = X[np.uint64(first) + np.uint64(d), feature]
            for d in range(size, DOCUMENTS_PER_BLOCK):
                values[c, d] = values[c, 0]
            column = values[c]
            if columns[c, 1]:
                for d in range(DOCUMENTS_PER_BLOCK):
                    column[d] = -column[d]
            if columns[c, 2]:
                for d in range(DOCUMENTS_PER_BLOCK):
                    column[d] = np.nan if abs(column[d]) <= ZERO else column[d]
            largest[c, 0] = np.inf
            largest[c, 1] = np.inf
            if columns[c, 3]:
                most = -np.inf
                any_nan = False
                for d in range(DOCUMENTS_PER_BLOCK):
                    value = column[d]
                    most = value if value > most else most  # never NaN
                    any_nan |= value != value
                largest[c, 0] = most
                largest[c, 1] = np.inf if any_nan else most
        for d in range(DOCUMENTS_PER_BLOCK):
            total[d] = base_score
        for group in range(len(cat_segments) - 1):
            first_piece = group * PIECES_PER_GROUP
            in_group = PIECES_PER_GROUP
            if n_pieces - first_piece < in_group:
                in_group = n_pieces - first_piece
            for t in range(in_group):
                for d in range(DOCUMENTS_PER_BLOCK):
                    masks[t, d] = _ALL
            for c in range(n_columns):
                column = values[c]
                at = (group * n_columns + c) * 2
                for k in range(segments[at], segments[at + 1]):
                    threshold = thresholds[k]
                    if not threshold < largest[c, 0]:
                        break
                    mask = masks[piece[k]]
                    kept = keep[k]
                    for d in range(DOCUMENTS_PER_BLOCK):
                        mask[d] &= kept if column[d] > threshold else _ALL
                for k in range(segments[at + 1], segments[at + 2]):
                    threshold = thresholds[k]
                    if not threshold < largest[c, 1]:
                        break
                    mask = masks[piece[k]]
                    kept = keep[k]
                    for d in range(DOCUMENTS_PER_BLOCK):
                        mask[d] &= _ALL if column[d] <= threshold else kept
            for k in range(cat_segments[group], cat_segments[group + 1]):
                feature = cat_nodes[k, 0]
                number = cat_nodes[k, 1]
                acts_on_members = cat_nodes[k, 2] == 1
                begin = cat_start[number]
                bits = (cat_start[number + 1] - begin) * 32
                mask = masks[cat_piece[k]]
                kept = cat_keep[k]
                for d in range(size):
                    value = X[first + d, feature]
                    member = False
                    if value > -1.0 and value < bits:
                        category = np.int64(value)
                        member = (cat_words[begin + (category >> 5)] >> np.uint32(category & 31)) & np.uint32(1) == 1
                    if member == acts_on_members:
                        mask[d] &= kept
            for t in range(in_group):
                leaves = leaf_value[first_piece + t]
                mask = masks[t]
                for d in range(DOCUMENTS_PER_BLOCK):
                    # Numba's product is 64 bits wide; storing it cuts it to the 32 that matter.
                    isolated[d] = (mask[d] & (np.uint32(0) - mask[d])) * np.uint32(_DE_BRUIJN)
                for d in range(DOCUMENTS_PER_BLOCK):
                    total[d] += leaves[isolated[d] >> np.uint32(27)]
        for d in range(size):
            out[first + d] = total[d]

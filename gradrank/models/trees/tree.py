"""Regression trees as arrays, and the plain walk down a tree that everything faster is checked against.

The meaning of a node is LightGBM's. ``decision`` holds three facts in its bits: categorical (1), missing
values go left (2), and what counts as missing (0 nothing, 4 zero and NaN, 8 NaN).

- numerical: ``x <= threshold`` goes left. A NaN that does not count as missing is read as 0.
- categorical: ``threshold`` is the number of a bit set; the whole part of ``x`` goes left if its bit is set. NaN,
  negative and unknown categories go right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import ModelError
from gradrank.runtime.kernels import njit

CATEGORICAL = 1
DEFAULT_LEFT = 2
MISSING_NONE = 0
MISSING_ZERO = 4
MISSING_NAN = 8
MISSING_BITS = 12
# LightGBM's bound below which a value is zero: the float32 nearest to 1e-35.
ZERO = float(np.float32(1e-35))
_LARGEST = np.finfo(np.float64).max
NAN_GOES_LEFT, NAN_GOES_RIGHT, NOT_SIMPLE = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Tree:
    """One tree. Node 0 is the root; a child ``c >= 0`` is a node, ``c < 0`` is leaf ``~c``.

    A node's children come after it. A tree of one leaf has no nodes.

    >>> stump = Tree.numerical(split_feature=[0], threshold=[0.5], left=[-1], right=[-2], leaf_value=[1.0, 2.0])
    >>> stump.n_leaves
    2
    """

    split_feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    decision: NDArray[np.uint8]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    leaf_value: NDArray[np.float64]
    cat_start: NDArray[np.int64]
    """Bit set ``s`` is ``cat_words[cat_start[s]:cat_start[s + 1]]``, 32 categories per word."""
    cat_words: NDArray[np.uint32]
    split_gain: NDArray[np.float64]
    """How much each split improved the training objective; 0 if unknown."""
    leaf_cover: NDArray[np.float64]
    """Training documents (LightGBM) or their summed curvature (XGBoost) in each leaf; 0 if unknown."""

    def __post_init__(self) -> None:
        _freeze(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    @classmethod
    def numerical(
        cls,
        *,
        split_feature: Sequence[int] | NDArray[Any],
        threshold: Sequence[float] | NDArray[Any],
        left: Sequence[int] | NDArray[Any],
        right: Sequence[int] | NDArray[Any],
        leaf_value: Sequence[float] | NDArray[Any],
        default_left: bool = True,
    ) -> Tree:
        """A tree of numerical splits where NaN is the missing value.

        Parameters
        ----------
        split_feature, threshold
            For each node the number of its feature, and the largest value that goes left.
        left, right
            For each node its children: c ≥ 0 is node c, c < 0 is leaf ~c.
        leaf_value
            The value of each leaf, one more than there are nodes.
        default_left
            Whether a missing value goes left.
        """
        n_nodes = len(split_feature)
        decision = np.full(n_nodes, MISSING_NAN | (DEFAULT_LEFT if default_left else 0), dtype=np.uint8)
        return cls.of(
            split_feature=split_feature,
            threshold=threshold,
            decision=decision,
            left=left,
            right=right,
            leaf_value=leaf_value,
        )

    @classmethod
    def of(cls, *, leaf_value: Any, n_features: int | None = None, **arrays: Any) -> Tree:
        """A checked tree from anything array-like; what is not given is empty or unknown (0)."""
        values = np.asarray(leaf_value, dtype=np.float64)
        n_nodes = len(values) - 1

        def whole(name: str, dtype: type[np.integer[Any]], default: Sequence[int] = ()) -> NDArray[Any]:
            return _whole(name, arrays.get(name, default), dtype)

        tree = cls(
            split_feature=whole("split_feature", np.int32),
            # A split of what is there from what is missing may have an infinite threshold, which JSON cannot hold.
            threshold=np.clip(np.asarray(arrays.get("threshold", []), dtype=np.float64), -_LARGEST, _LARGEST),
            decision=whole("decision", np.uint8),
            left=whole("left", np.int32),
            right=whole("right", np.int32),
            leaf_value=values,
            cat_start=whole("cat_start", np.int64, [0]),
            cat_words=whole("cat_words", np.uint32),
            # Forced splits may have an infinite gain, which JSON cannot hold.
            split_gain=np.nan_to_num(np.asarray(arrays.get("split_gain", np.zeros(max(n_nodes, 0))), dtype=np.float64)),
            leaf_cover=np.nan_to_num(np.asarray(arrays.get("leaf_cover", np.zeros(len(values))), dtype=np.float64)),
        )
        tree.check(n_features)
        return tree

    @property
    def n_nodes(self) -> int:
        """Number of splits."""
        return len(self.split_feature)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.leaf_value)

    def scaled(self, weight: float) -> Tree:
        """The tree with its leaf values multiplied."""
        return replace(self, leaf_value=self.leaf_value * weight)

    def node_cover(self) -> NDArray[np.float64]:
        """Sum of the leaves' cover below each node."""
        cover = np.zeros(self.n_nodes)
        for node in range(self.n_nodes - 1, -1, -1):
            for child in (self.left[node], self.right[node]):
                cover[node] += cover[child] if child >= 0 else self.leaf_cover[~child]
        return cover

    def check(self, n_features: int | None = None) -> None:
        """Raise :class:`ModelError` unless the arrays are one tree that the kernels can walk safely."""
        n_nodes = self.n_nodes
        for name in ("split_feature", "leaf_value", "cat_start", "cat_words"):
            if getattr(self, name).ndim != 1:
                raise ModelError(f"a tree has {name} of shape {getattr(self, name).shape}, expected one list")
        if self.n_leaves != n_nodes + 1:
            raise ModelError(
                f"a tree has {self.n_leaves} leaves and {n_nodes} splits, expected one leaf more than splits"
            )
        for name in ("threshold", "decision", "left", "right", "split_gain"):
            if getattr(self, name).shape != (n_nodes,):
                raise ModelError(f"a tree of {n_nodes} splits has {name} of shape {getattr(self, name).shape}")
        if self.leaf_cover.shape != self.leaf_value.shape:
            raise ModelError(f"a tree of {self.n_leaves} leaves has {len(self.leaf_cover)} leaf covers")
        if not (np.isfinite(self.leaf_value).all() and np.isfinite(self.threshold).all()):
            raise ModelError("a tree has a leaf value or threshold that is not a finite number")
        nodes = np.arange(n_nodes)
        children = np.concatenate((self.left, self.right))
        if (
            not np.array_equal(np.sort(children), np.concatenate((np.arange(-self.n_leaves, 0), nodes[1:])))
            or ((self.left >= 0) & (self.left <= nodes)).any()
            or ((self.right >= 0) & (self.right <= nodes)).any()
        ) and n_nodes:
            raise ModelError("a tree's children do not form a tree with parents before their children")
        if n_nodes and (
            self.split_feature.min() < 0 or (n_features is not None and self.split_feature.max() >= n_features)
        ):
            raise ModelError(
                f"a tree splits on feature number {self.split_feature.max()}, but there are {n_features} features"
            )
        if (
            not len(self.cat_start)
            or self.cat_start[0] != 0
            or self.cat_start[-1] != len(self.cat_words)
            # Compared, not subtracted: a difference can wrap around.
            or (self.cat_start[1:] < self.cat_start[:-1]).any()
        ):
            raise ModelError("a tree's category sets are damaged")
        sets = self.threshold[(self.decision & CATEGORICAL) > 0]
        if len(sets) and not np.isin(sets, np.arange(len(self.cat_start) - 1)).all():
            raise ModelError("a tree's categorical split names a category set that does not exist")


@dataclass(frozen=True, eq=False)
class TreeArrays:
    """All trees one after another, as the kernels want them; child numbers stay those within the tree.

    Tree ``t`` owns nodes ``node_start[t]:node_start[t + 1]`` and, having one leaf more than nodes, the leaves
    from ``node_start[t] + t``. A categorical node's threshold is its bit set's number among all trees' sets.
    """

    node_start: NDArray[np.int64]
    split_feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    decision: NDArray[np.uint8]
    children: NDArray[np.int32]
    """Left and right child of each node, nodes × 2."""
    leaf_value: NDArray[np.float64]
    cat_start: NDArray[np.int64]
    cat_words: NDArray[np.uint32]

    def __post_init__(self) -> None:
        _freeze(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    @classmethod
    def of(cls, trees: Sequence[Tree]) -> TreeArrays:
        """Join trees."""
        sets = np.cumsum([0] + [len(tree.cat_start) - 1 for tree in trees])
        words = np.cumsum([0] + [len(tree.cat_words) for tree in trees])
        thresholds = [
            tree.threshold + np.where(tree.decision & CATEGORICAL, float(first), 0.0)
            for tree, first in zip(trees, sets, strict=False)
        ]
        starts = [tree.cat_start[:-1] + first for tree, first in zip(trees, words, strict=False)]
        return cls(
            node_start=np.cumsum([0] + [tree.n_nodes for tree in trees], dtype=np.int64),
            split_feature=_joined([tree.split_feature for tree in trees], np.int32),
            threshold=_joined(thresholds, np.float64),
            decision=_joined([tree.decision for tree in trees], np.uint8),
            children=np.column_stack(
                (_joined([tree.left for tree in trees], np.int32), _joined([tree.right for tree in trees], np.int32))
            ),
            leaf_value=_joined([tree.leaf_value for tree in trees], np.float64),
            cat_start=_joined([*starts, words[-1:]], np.int64),
            cat_words=_joined([tree.cat_words for tree in trees], np.uint32),
        )

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.node_start) - 1

    @cached_property
    def nan_acts(self) -> NDArray[np.uint8]:
        """What the short test ``x > threshold`` needs to know about each node."""
        missing = self.decision & MISSING_BITS
        nan_left = np.where(missing == MISSING_NONE, self.threshold >= 0, (self.decision & DEFAULT_LEFT) > 0)
        simple = ((self.decision & CATEGORICAL) == 0) & (missing != MISSING_ZERO)
        return read_only(
            np.where(simple, np.where(nan_left, NAN_GOES_LEFT, NAN_GOES_RIGHT), NOT_SIMPLE).astype(np.uint8)
        )

    def walk_sum(self, X: NDArray[Any], base: float, out: NDArray[np.float64]) -> None:
        """Scores by walking: ``base`` plus the leaf values, tree after tree, in float64."""
        _walk_sum(
            self.node_start,
            self.split_feature,
            self.threshold,
            self.decision,
            self.nan_acts,
            self.children.reshape(-1),
            self.leaf_value,
            self.cat_start,
            self.cat_words,
            X,
            base,
            out,
        )

    def walk_leaves(self, X: NDArray[Any], out: NDArray[np.int32]) -> None:
        """The leaf that each row reaches in each tree, rows × trees."""
        _walk_leaves(
            self.node_start,
            self.split_feature,
            self.threshold,
            self.decision,
            self.children,
            self.cat_start,
            self.cat_words,
            X,
            out,
        )


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view. Numba compiles read-only and writable arrays apart: one kind is enough."""
    view = array.view(np.ndarray)
    view.flags.writeable = False
    return view


def _whole(name: str, values: Any, dtype: type[np.integer[Any]]) -> NDArray[Any]:
    """Whole numbers in the type of an array; what does not fit is an error instead of another number."""
    given = np.asarray(values)
    limits = np.iinfo(dtype)
    if given.size and (given.dtype.kind not in "biu" or given.min() < limits.min or given.max() > limits.max):
        raise ModelError(f"a tree has {name} that are not whole numbers of {limits.min} to {limits.max}")
    return given.astype(dtype)


def _freeze(arrays: Tree | TreeArrays) -> None:
    for field in fields(arrays):
        object.__setattr__(arrays, field.name, read_only(np.ascontiguousarray(getattr(arrays, field.name))))


def _joined(parts: Sequence[NDArray[Any]], dtype: type) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype), *parts]).astype(dtype)


@njit(cache=True, nogil=True, inline="always")
def in_category_set(value: Any, cat_start: Any, cat_words: Any, number: Any) -> Any:
    """Whether the whole part of a value is in a bit set; NaN, negative and huge values are not."""
    if not (value > -1.0 and value < 2147483648.0):
        return False
    category = np.int64(value)
    word = cat_start[number] + (category >> 5)
    return word < cat_start[number + 1] and (cat_words[word] >> np.uint32(category & 31)) & np.uint32(1) == 1


@njit(cache=True, nogil=True, inline="always")
def goes_left(value: Any, threshold: Any, decision: Any, cat_start: Any, cat_words: Any) -> Any:
    """Which way a value goes at a node."""
    if decision & CATEGORICAL:
        return in_category_set(value, cat_start, cat_words, np.int64(threshold))
    missing = decision & MISSING_BITS
    if np.isnan(value):
        if missing == MISSING_NONE:
            return threshold >= 0.0
        return decision & DEFAULT_LEFT != 0
    if missing == MISSING_ZERO and value >= -ZERO and value <= ZERO:
        return decision & DEFAULT_LEFT != 0
    return value <= threshold


@njit(cache=True, nogil=True)
def _walk_sum(
    node_start: Any,
    split_feature: Any,
    threshold: Any,
    decision: Any,
    nan_acts: Any,
    children: Any,
    leaf_value: Any,
    cat_start: Any,
    cat_words: Any,
    X: Any,
    base: Any,
    out: Any,
) -> None:
    for row in range(len(X)):
        x = X[row]
        total = base
        for tree in range(len(node_start) - 1):
            first = node_start[tree]
            node = 0 if node_start[tree + 1] > first else -1
            while node >= 0:
                k = first + node
                value = x[split_feature[k]]
                # Which way a document goes cannot be predicted: an index is much cheaper than a branch.
                right = (value > threshold[k]) | ((value != value) & (nan_acts[k] == NAN_GOES_RIGHT))
                if nan_acts[k] == NOT_SIMPLE:
                    right = not goes_left(value, threshold[k], decision[k], cat_start, cat_words)
                node = children[2 * k + np.int64(right)]
            total += leaf_value[first + tree + ~node]
        out[row] = total


@njit(cache=True, nogil=True)
def _walk_leaves(
    node_start: Any,
    split_feature: Any,
    threshold: Any,
    decision: Any,
    children: Any,
    cat_start: Any,
    cat_words: Any,
    X: Any,
    out: Any,
) -> None:
    for row in range(len(X)):
        for tree in range(len(node_start) - 1):
            first = node_start[tree]
            node = 0 if node_start[tree + 1] > first else -1
            while node >= 0:
                k = first + node
                is_left = goes_left(X[row, split_feature[k]], threshold[k], decision[k], cat_start, cat_words)
                node = children[k, 0 if is_left else 1]
            out[row, tree] = ~node

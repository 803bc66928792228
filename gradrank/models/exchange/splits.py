"""What formats ask of the splits of trees: where missing values go, and thresholds in single precision.

A format that compares in float32 gets, for each threshold, the largest float32 that goes left: no document with
float32 features goes another way than in gradrank. Two thresholds that are the same float32 tell that the features are
float64; that is a loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import ModelError
from gradrank.models.exchange.plan import Losses
from gradrank.models.trees.tree import (
    CATEGORICAL,
    DEFAULT_LEFT,
    MISSING_BITS,
    MISSING_NONE,
    MISSING_ZERO,
    ZERO,
    Tree,
)

_FLOAT32 = np.finfo(np.float32)


def round_down(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest float32 not above each float64.

    >>> round_down(np.array([0.1])) <= 0.1
    array([ True])
    """
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32)
        below = np.nextafter(rounded, np.float32(-np.inf))
    return np.where(rounded > values, below, rounded)


def just_above(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """The next float32 above each, for formats that send ``x < threshold`` left."""
    with np.errstate(over="ignore"):
        return np.asarray(np.nextafter(values, np.float32(np.inf)))


def largest_at_most(bound: NDArray[np.float32]) -> NDArray[np.float64]:
    """The largest float64 that, rounded to float32, is not above a float32: the inverse of :func:`round_down`.

    >>> float(np.float32(largest_at_most(np.array([1.0], dtype=np.float32))[0]))
    1.0
    """
    if np.isnan(bound).any():
        raise ModelError("has a split threshold that is not a number")
    lower = bound.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        upper = just_above(bound).astype(np.float64)
        upper = np.where(np.isposinf(upper), 2.0**128, upper)
        lower = np.where(np.isneginf(lower), -(2.0**128), lower)
        middle = (lower + upper) / 2
        middle = np.where(middle.astype(np.float32) <= bound, middle, np.nextafter(middle, -np.inf))
    largest = np.finfo(np.float64).max
    return np.where(np.isposinf(bound), largest, np.where(np.isneginf(bound), -largest, middle))


def check_leaves(trees: Sequence[Tree], base_score: float, target: str) -> None:
    """Refuse leaf values that overflow float32."""
    for number, tree in enumerate(trees):
        if (np.abs(tree.leaf_value) > _FLOAT32.max).any() or abs(base_score) > _FLOAT32.max:
            raise ModelError(f"{target} holds single precision, tree {number} has a value beyond it")


def refuse_categories(trees: Sequence[Tree], names: Sequence[str], target: str) -> None:
    """Refuse trees with categorical splits, naming the first."""
    for number, tree in enumerate(trees):
        categorical = (tree.decision & CATEGORICAL) > 0
        if categorical.any():
            feature = names[tree.split_feature[int(np.argmax(categorical))]]
            raise ModelError(f"{target} has no categorical splits: tree {number} splits {feature!r} by categories")


def missing_goes_left(
    trees: Sequence[Tree], names: Sequence[str], losses: Losses, *, zero_too: bool = False
) -> list[NDArray[np.bool_]]:
    """For each node of each tree whether NaN goes left; a split where 0 counts as missing, too, may be a loss.

    With ``zero_too`` the format can say that 0 is missing.
    """
    result = []
    for number, tree in enumerate(trees):
        kind = tree.decision & MISSING_BITS
        left = (tree.decision & DEFAULT_LEFT) > 0
        numeric = (tree.decision & CATEGORICAL) == 0
        # Zeros go where missing values go; the format sends them by the threshold.
        differs = numeric & (kind == MISSING_ZERO) & np.where(left, tree.threshold < ZERO, tree.threshold >= -ZERO)
        if not zero_too:
            for node in np.flatnonzero(differs).tolist():
                side = "left" if left[node] else "right"
                losses.lose(
                    "zero is missing",
                    f"tree {number} sends a {names[tree.split_feature[node]]!r} of 0 {side} as missing, "
                    f"not by its threshold",
                    "0 goes by the threshold there",
                )
        result.append(np.where(kind == MISSING_NONE, tree.threshold >= 0, left) & numeric)
    return result


def missing_is_zero(trees: Sequence[Tree], names: Sequence[str], losses: Losses) -> None:
    """For formats that read a missing value as 0: splits that send the two to different sides are losses."""
    for number, (tree, left) in enumerate(zip(trees, missing_goes_left(trees, names, losses), strict=True)):
        for node in np.flatnonzero(left != (tree.threshold >= 0)).tolist():
            here, there = ("left", "right") if left[node] else ("right", "left")
            losses.lose(
                "missing",
                f"tree {number} sends a missing {names[tree.split_feature[node]]!r} {here}, "
                f"{losses.target} reads it as 0 and sends it {there}",
                "missing values count as 0",
            )


def single_thresholds(trees: Sequence[Tree], names: Sequence[str], losses: Losses) -> list[NDArray[np.float32]]:
    """For each node of each tree the largest float32 that goes left."""
    by_feature: dict[int, dict[float, int]] = {}
    for number, tree in enumerate(trees):
        for feature, threshold in zip(tree.split_feature.tolist(), tree.threshold.tolist(), strict=True):
            by_feature.setdefault(feature, {}).setdefault(threshold, number)
    for feature, found in sorted(by_feature.items()):
        values = np.array(sorted(found))
        single = round_down(values)
        for place in np.flatnonzero(single[1:] == single[:-1]).tolist():
            low, high = values[place].item(), values[place + 1].item()
            losses.lose(
                f"float64 {feature}",
                f"feature {names[feature]!r} is split at {low!r} (tree {found[low]}) and at {high!r} "
                f"(tree {found[high]}), which single precision does not tell apart",
                f"{names[feature]!r} is compared in single precision",
            )
    return [round_down(tree.threshold) for tree in trees]


def nested_text(tree: Tree, split: Callable[[int, str, str], str], leaf: Callable[[int], str]) -> str:
    """A tree as nested text, made from the leaves up: trees may be deeper than Python recurses.

    ``leaf(number)`` gives the text of a leaf, ``split(node, left, right)`` that of a node from those of its children.
    """
    texts: list[str] = [""] * tree.n_nodes

    def text_of(child: int) -> str:
        if child < 0:
            return leaf(~child)
        found, texts[child] = texts[child], ""
        return found

    for node in range(tree.n_nodes - 1, -1, -1):
        texts[node] = split(node, text_of(int(tree.left[node])), text_of(int(tree.right[node])))
    return texts[0] if tree.n_nodes else text_of(-1)


def finite_single(bounds: NDArray[np.float32], losses: Losses) -> NDArray[np.float32]:
    """Bounds without infinities, which most formats cannot write; only the very ends of float32 go another way."""
    if np.isfinite(bounds).all():
        return bounds
    losses.note(
        f"{losses.target}: a split of what is there from what is missing has ±{_FLOAT32.max!r} as its threshold"
    )
    return np.clip(bounds, _FLOAT32.min, _FLOAT32.max)

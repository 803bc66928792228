"""Trees of other tools brought to gradrank's numbering: parents before children, splits and leaves apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import ModelError

MOST_FEATURES = 1_000_000
"""A file that counts more features than this is taken for a damaged one: every feature gets a name."""


def renumber(
    left: Sequence[int], right: Sequence[int], is_leaf: Sequence[bool], tool: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Old numbers of the splits with parents first, those of the leaves from left to right, and old number → child.

    Children that are not there, or are reached twice, are a ModelError: whatever a file says, this ends.

    >>> renumber([2, -1, -1], [1, -1, -1], [False, True, True], "XGBoost")[2].tolist()
    [0, -2, -1]
    """
    size = len(is_leaf)
    nodes: list[int] = []
    leaves: list[int] = []
    number = np.zeros(size, dtype=np.int64)
    reached = bytearray(size)
    todo = [0]
    while todo:
        old = todo.pop()
        if not 0 <= old < size or reached[old]:
            raise ModelError(f"has {tool} tree whose children do not form a tree")
        reached[old] = 1
        if is_leaf[old]:
            number[old] = ~len(leaves)
            leaves.append(old)
        else:
            number[old] = len(nodes)
            nodes.append(old)
            todo += [right[old], left[old]]
    return np.array(nodes, dtype=np.int64), np.array(leaves, dtype=np.int64), number


def checked_features(count: int, tool: str) -> int:
    """A number of features that a file gives, before anything of that size is made."""
    if not 1 <= count <= MOST_FEATURES:
        raise ModelError(f"is {tool} model of {count} features, expected 1 to {MOST_FEATURES:,}")
    return count

"""One model of trees in the place of a sum of such models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gradrank.models.ranker import Ranker
from gradrank.models.trees.ensemble import Tree, TreeEnsemble
from gradrank.models.weighted_sum import WeightedSum


def merged(ranker: Ranker) -> Ranker:
    """The same scores, to rounding, with all trees of a sum in one model: it scores faster, and LightGBM can read it.

    Parts that are no trees stay parts of a sum, those of sums inside the sum, too. So do trees over categorical
    columns, whose values each model numbers in its own way.

    >>> stump = Tree.numerical(split_feature=[0], threshold=[0.5], left=[-1], right=[-2], leaf_value=[1.0, 2.0])
    >>> model = TreeEnsemble([stump], feature_names=["a"])
    >>> both = merged(WeightedSum([(1.0, model), (0.5, model)]))
    >>> type(both).__name__, both.predict([[1.0]]).tolist()
    ('TreeEnsemble', [3.0])
    """
    if not isinstance(ranker, WeightedSum):
        return ranker
    names = ranker.feature_names
    place = {name: index for index, name in enumerate(names)}
    trees: list[Tree] = []
    base_score = 0.0
    others: list[tuple[float, Ranker]] = []
    for weight, part in _parts(ranker, 1.0):
        if isinstance(part, TreeEnsemble) and part.categories is None:
            columns = np.array([place[name] for name in part.feature_names], dtype=np.int32)
            trees += [replace(tree.scaled(weight), split_feature=columns[tree.split_feature]) for tree in part.trees]
            base_score += weight * part.base_score
        else:
            others.append((weight, part))
    if not trees:
        return WeightedSum(others, feature_names=names, training=ranker.training)
    whole = TreeEnsemble(trees, names, base_score=base_score, training=ranker.training)
    if not others:
        return whole
    return WeightedSum([(1.0, whole), *others], feature_names=names, training=ranker.training)


def _parts(ranker: Ranker, weight: float) -> Iterator[tuple[float, Ranker]]:
    """The parts of a sum, those of sums inside it included."""
    if isinstance(ranker, WeightedSum):
        for factor, part in ranker.parts:
            yield from _parts(part, weight * factor)
    else:
        yield weight, ranker

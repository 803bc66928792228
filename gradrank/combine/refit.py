"""New weights for the trees of an ensemble, one at a time (Wu et al. 2009, end of section 3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gradrank.combine.optimal import Combiner
from gradrank.combine.path import FloatArray
from gradrank.errors import DataError, ModelError
from gradrank.measures import AnyMeasure, as_measure
from gradrank.models.systems import Data, Documents, System, as_ranker
from gradrank.models.trees.ensemble import Tree, TreeEnsemble, assign_leaves

RefitProgress = Callable[[int, int, float], None]
"""Told the round, the number of the tree, and the value of the (first) measure."""


@dataclass(frozen=True, eq=False)
class Refit:
    """An ensemble with new tree weights."""

    ensemble: TreeEnsemble
    weights: tuple[float, ...]
    """Factor of each tree of the ensemble that was given."""
    values: tuple[float, ...]
    """Mean of the (first) measure before, and after each round."""


def refit_weights(
    ensemble: System,
    data: Data,
    measure: AnyMeasure | str,
    *,
    high: float = 100.0,
    rounds: int | None = None,
    least: float = 1e-6,
    n_jobs: int | None = None,
    progress: RefitProgress | None = None,
) -> Refit:
    """Give each tree in turn the exact best weight in 0…``high`` with all others fixed, until nothing improves.

    The measure's mean on ``data`` never falls. Meant for data on which few trees already regularize enough (the
    refitted ensemble fits ``data`` more closely). Leaf values are scaled: the ensemble is saved and scored as before.

    Parameters
    ----------
    ensemble
        A tree ensemble: as a ranker, a fitted learner, a model of LightGBM or XGBoost, or the path of a model file.
    data
        RankingData, a pandas or polars frame, or the path of a data file.
    measure
        The measure, or its name.
    high
        The largest weight of a tree.
    rounds
        How often to go through all trees at most; until nothing improves unless given.
    least
        Rounds end when one gains less than this.
    n_jobs
        Threads to use; all cores by default.
    progress
        Told the round, the number of the tree, and the value of the (first) measure.

    >>> from gradrank.data.artificial import make_data
    >>> data = make_data(30, n_docs=10, n_features=3, random_state=1)
    >>> stumps = [Tree.numerical(split_feature=[f], threshold=[0.0], left=[-1], right=[-2], leaf_value=[0.0, 1.0])
    ...           for f in (0, 1)]
    >>> refit = refit_weights(TreeEnsemble(stumps, data.feature_names), data, "NDCG@5")
    >>> refit.values[-1] >= refit.values[0]
    True
    """
    if not 1.0 <= high < np.inf:
        raise DataError(f"high is {high}, expected a finite number of 1 or more: 1 is the weight that trees have")
    ensemble = as_ranker(ensemble)
    if not isinstance(ensemble, TreeEnsemble):
        raise ModelError(f"weights of trees are for a tree ensemble, this ranker is of kind {ensemble.kind!r}")
    given = Documents.of(data)
    held = given.data
    combiner = Combiner(held, as_measure(measure), n_jobs=n_jobs)
    matrix = given.matrix(ensemble)
    weights = np.ones(ensemble.n_trees)

    def outputs(tree: Tree) -> FloatArray:
        return np.asarray(tree.leaf_value[assign_leaves(tree, matrix, n_jobs=n_jobs)])

    def total() -> FloatArray:
        """Scores as the ensemble adds them up, so that a rounding error of a difference cannot grow."""
        scores = np.full(held.n_docs, ensemble.base_score)
        for weight, tree in zip(weights.tolist(), ensemble.trees, strict=True):
            scores += outputs(tree.scaled(weight))
        return scores

    scores = total()
    best = combiner.values(scores)
    values = [best[0]]
    while rounds is None or len(values) <= rounds:
        before, kept = best, weights.copy()
        for k, tree in enumerate(ensemble.trees):
            if tree.n_leaves < 2:
                continue  # moves all scores alike
            column = outputs(tree)
            rest = scores - weights[k] * column
            found = combiner.search(rest, column, form="additive", low=0.0, high=high, also=[float(weights[k])])
            now = tuple(found.values.values())
            if combiner.better(now, best):
                weights[k], best = found.alpha, now
                scores = rest + found.alpha * column
            if progress is not None:
                progress(len(values), k + 1, best[0])
        scores = total()
        best = combiner.values(scores)
        if not combiner.better(best, before):
            weights = kept  # nothing was found, or only what rounding undid
            break
        values.append(best[0])
        if max(now - then for now, then in zip(best, before, strict=True)) < least:
            break
    trees = [tree.scaled(weight) for tree, weight in zip(ensemble.trees, weights.tolist(), strict=True)]
    refitted = ensemble.with_trees(trees, training={**ensemble.training, "refitted": str(as_measure(measure))})
    return Refit(refitted, tuple(weights.tolist()), tuple(values))

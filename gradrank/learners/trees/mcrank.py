"""McRank: ranking by classification of the grades."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.monitor import TRAINING, Watch
from gradrank.learners.base.training_facts import training_facts
from gradrank.learners.trees.boosting import run_steps, sampled, watched_sets
from gradrank.learners.trees.grower import TreeGrower
from gradrank.learners.trees.lambdamart import LambdaMART
from gradrank.learners.trees.leaf_values import leaf_values
from gradrank.measures import NDCG, AnyMeasure
from gradrank.models.ranker import Ranker
from gradrank.models.trees.ensemble import Tree, TreeEnsemble, assign_leaves
from gradrank.models.trees.expected_grade import ExpectedGrade
from gradrank.objectives import Objective, Regression

_MOST_GRADES = 64


class McRank(LambdaMART):
    """Boosted multi-class classification of the grades, ranked by expected grade (Li, Burges, Wu 2007).

    Each step grows one tree a grade for the gradient of the cross-entropy, 1[y = k] − P(k), with Newton leaf values
    (K−1)/K·Σλ/ΣP(1−P) (Friedman's K-class boosting); score(x) = Σ_k P(k | x)·grade_k. ``trees`` counts steps.

    >>> from gradrank.data.artificial import make_splits
    >>> data = make_splits(40, n_docs=10, n_features=5, random_state=1)
    >>> McRank(trees=10, min_docs=5).fit(data["train"], valid=data["vali"]).score(data["test"]) > 0.5
    True
    """

    default_objective: ClassVar[str] = "Regression"

    def _objective(self) -> Objective:
        objective = super()._objective()
        if not isinstance(objective, Regression):
            raise TrainingError(f"McRank learns by classification, not by {objective}; LambdaMART takes it")
        return objective

    def _measure(self) -> AnyMeasure:
        return NDCG(10) if self.measure is None else super()._measure()

    def _fit(self, train: RankingData, valid: Mapping[str, RankingData]) -> Ranker:
        if self.base is not None:
            raise TrainingError("McRank cannot start from a base ranker")
        if self.diagnostics is not None:
            raise TrainingError("McRank has no λ-gradients to diagnose")
        objective = self._objective()
        settings = self._settings(objective)
        assert isinstance(objective, Regression)
        labels = train.label(objective.label)
        judged = ~np.isnan(labels)
        grades = np.unique(labels[judged])
        if not 2 <= len(grades) <= _MOST_GRADES:
            raise TrainingError(f"McRank needs 2 to {_MOST_GRADES} grades, the training data has {len(grades)}")
        n_classes = len(grades)
        weight = np.ones(train.n_docs) if train.weight is None else np.repeat(train.weight, train.sizes)
        counted = (weight * judged).astype(np.float32)
        targets = (labels[:, None] == grades[None, :]).astype(np.float32)
        growers = [self._grower(train, settings)]
        growers += [self._grower(train, settings, growers[0]) for _ in range(n_classes - 1)]
        watched = watched_sets(train, valid, settings)
        sets = {TRAINING: train, **watched}
        raw = {name: np.zeros((data.n_docs, n_classes)) for name, data in sets.items()}
        scores = {name: np.zeros(data.n_docs) for name, data in sets.items()}

        def add(trees: tuple[Tree, ...]) -> None:
            for name, data in sets.items():
                for k, tree in enumerate(trees):
                    raw[name][:, k] += tree.leaf_value[assign_leaves(tree, data.X, n_jobs=self.n_jobs)]
                scores[name][:] = _softmax(raw[name]) @ grades

        def advance(step: int) -> tuple[Tree, ...]:
            chances = _softmax(raw[TRAINING]).astype(np.float32)
            trees = []
            for k in range(n_classes):
                p = chances[:, k]
                lambdas, rhos = sampled((targets[:, k] - p) * counted, p * (1 - p) * counted, train, settings, step)
                tree = growers[k].grow(lambdas, rhos, step)
                leaf = assign_leaves(tree, train.X, n_jobs=self.n_jobs)
                values = leaf_values(settings.step, leaf, tree.n_leaves, lambdas, rhos, settings.tree.l2)
                trees.append(replace(tree, leaf_value=settings.rate * (n_classes - 1) / n_classes * values))
            add(tuple(trees))
            return tuple(trees)

        start, curves, callbacks = self._start(self._run_facts(settings, train, valid, None), train)
        for trees in start:
            add(trees)
        watch = Watch(watched, [self._measure()], next(iter(valid)) if valid else None, self.n_jobs)
        self.boosted_ = run_steps(advance, scores, watch, settings, 0.0, start, curves, callbacks)
        facts = training_facts(self, train, "Classification", str(self._measure()), self.boosted_)
        chosen = self.boosted_.steps[: self.boosted_.best]
        ensembles = [TreeEnsemble([step[k] for step in chosen], train.feature_names) for k in range(n_classes)]
        return ExpectedGrade(ensembles, grades, training=facts)

    def _grower(self, train: RankingData, settings: Any, share: TreeGrower | None = None) -> TreeGrower:
        return TreeGrower(
            train,
            settings.tree,
            split=settings.split,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            share_binning=share,
        )


def _softmax(raw: NDArray[np.float64]) -> NDArray[np.float64]:
    shifted = np.exp(raw - raw.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))

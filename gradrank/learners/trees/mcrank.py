"""McRank: ranking by classification of the grades."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.crew import ALONE, Crew
from gradrank.learners.base.loop import Callback
from gradrank.learners.base.monitor import TRAINING
from gradrank.learners.trees.grower import Grower
from gradrank.learners.trees.lambdamart import LambdaMART
from gradrank.learners.trees.leaf_values import leaf_values
from gradrank.learners.trees.parameters import TreeParameters
from gradrank.learners.trees.size_rule import Shape
from gradrank.learners.trees.tree_course import Leaves, Rules, TreeCourse, Trees
from gradrank.measures import NDCG, AnyMeasure
from gradrank.models.ranker import Ranker
from gradrank.models.trees.ensemble import TreeEnsemble
from gradrank.models.trees.expected_grade import ExpectedGrade
from gradrank.objectives import Objective, Regression

_MOST_GRADES = 64


class McRank(LambdaMART):
    """Boosted multi-class classification of the grades, ranked by expected grade (Li, Burges, Wu 2007).

    Each step grows one tree per grade for the gradient of the cross-entropy, 1[y = k] − P(k), with Newton leaf values
    (K−1)/K·Σλ/ΣP(1−P) (Friedman's K-class boosting); score(x) = Σ_k P(k | x)·grade_k. ``n_estimators`` counts steps.

    >>> from gradrank import make_splits
    >>> data = make_splits(60, n_docs=20, n_features=5, random_state=1)
    >>> model = McRank(n_estimators=30, learning_rate=0.2).fit(data["train"], valid=data["vali"])
    >>> model.score(data["test"]) > 0.9  # a random ranker has 0.35
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

    def _check(self) -> None:
        super()._check()
        if self.base is not None:
            raise TrainingError("McRank cannot start from a base ranker")
        if self.diagnostics is not None:
            raise TrainingError("McRank has no λ-gradients to diagnose")
        if self.positions is not None:
            raise TrainingError("McRank has no scores to which terms of positions could be added")

    def _course(
        self, train: RankingData, watched: Mapping[str, RankingData], shape: Shape, callbacks: Sequence[Callback]
    ) -> GradeCourse:
        objective = self._objective()
        assert isinstance(objective, Regression)
        labels = train.label(objective.label)
        own = np.unique(labels[~np.isnan(labels)])
        grades = np.unique(np.concatenate(self._crew.gather(own)))
        if not 2 <= len(grades) <= _MOST_GRADES:
            raise TrainingError(f"McRank needs 2 to {_MOST_GRADES} grades, the training data has {len(grades)}")
        return GradeCourse(train, watched, labels, grades, self, shape, self._rules(), self._crew)

    def _model(self, course: TreeCourse, chosen: Sequence[Trees]) -> Ranker:
        assert isinstance(course, GradeCourse)
        train, grades = course.train, course.grades
        ensembles = [TreeEnsemble([step[k] for step in chosen], train.feature_names) for k in range(len(grades))]
        return ExpectedGrade(ensembles, grades, training=self._facts(train, "Classification"))


class GradeCourse(TreeCourse):
    """One tree per grade and step, fitted to the gradient of the cross-entropy."""

    def __init__(
        self,
        train: RankingData,
        watched: Mapping[str, RankingData],
        labels: NDArray[np.float32],
        grades: NDArray[np.float32],
        parameters: TreeParameters,
        shape: Shape,
        rules: Rules,
        crew: Crew = ALONE,
    ) -> None:
        super().__init__(train, watched, parameters, shape, rules, crew)
        self.grades = grades
        self._counted = (train.row_weights() * ~np.isnan(labels)).astype(np.float32)
        self._targets = (labels[:, None] == grades[None, :]).astype(np.float32)
        self._growers: list[Grower] = []
        self._sets = {TRAINING: train, **watched}
        self._start()

    def _start(self) -> None:
        grades = self.grades
        self._growers = self.growers(len(grades), self._growers[0] if self._growers else None)
        self._raw = {name: np.zeros((data.n_docs, len(grades))) for name, data in self._sets.items()}
        self._scores = {name: np.zeros(data.n_docs) for name, data in self._sets.items()}

    def scores(self) -> Mapping[str, NDArray[np.float64]]:
        """See Course.scores."""
        return self._scores

    def _add(self, trees: Trees, leaves: Sequence[Leaves]) -> None:
        for name, data in self._sets.items():
            for k, tree in enumerate(trees):
                self._raw[name][:, k] += tree.leaf_value[leaves[k][TRAINING if data is self.train else name]]
            self._scores[name][:] = _softmax(self._raw[name]) @ self.grades

    def advance(self, step: int) -> bool:
        """See Course.advance."""
        chances = _softmax(self._raw[TRAINING]).astype(np.float32)
        n_classes = len(self.grades)
        shrinkage = self.shape.learning_rate * (n_classes - 1) / n_classes
        trees, leaves = [], []
        for k, grower in enumerate(self._growers):
            p = chances[:, k]
            lambdas, rhos = (self._targets[:, k] - p) * self._counted, p * (1 - p) * self._counted
            lambdas, rhos = self.sampled(lambdas, rhos, step)
            tree = grower.grow(lambdas, rhos, step)
            leaves.append(grower.leaves(tree))
            leaf = leaves[-1][TRAINING]
            tree = self.covered(tree, leaf)
            values = leaf_values(
                self.rules.step, leaf, tree.n_leaves, lambdas, rhos, self.shape.reg_lambda, crew=self.crew
            )
            trees.append(replace(tree, leaf_value=shrinkage * values))
        self.add(tuple(trees), leaves)
        return True


def _softmax(raw: NDArray[np.float64]) -> NDArray[np.float64]:
    shifted = np.exp(raw - raw.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))

"""McRank's ranker (Li, Burges & Wu 2007): class probabilities of the grades, ranked by expected grade."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradrank.errors import ModelError
from gradrank.models.attribution.attribution import Attribution, ByPair, Reference, Rows
from gradrank.models.attribution.straight_line import mean_slopes
from gradrank.models.exchange.lightgbm_text import parse_lightgbm
from gradrank.models.exchange.plan import GradesPart
from gradrank.models.features import Matrix
from gradrank.models.ranker import Ranker
from gradrank.models.trees.ensemble import TreeEnsemble, lightgbm_text

_GRADES = (
    "expected grade: shares in the scores of the classes, each times the mean slope of the expected grade on the "
    "straight line between the two documents' class scores"
)


class ExpectedGrade(Ranker):
    """The expected grade of a document, by a tree ensemble for each grade.

    score(x) = Σ_k P(k | x) · grade_k, with P the softmax of the ensembles' scores.

    Parameters
    ----------
    ensembles
        One tree ensemble for each grade, all with the same features.
    grades
        What each class is worth; 0, 1, 2, … unless given.
    training
        Facts about the training.

    >>> from gradrank.models.trees.ensemble import Tree
    >>> even = [TreeEnsemble([Tree.of(leaf_value=[0.0])], feature_names=["a"]) for _ in range(2)]
    >>> ExpectedGrade(even, grades=[0, 3]).predict([[1.0]]).tolist()
    [1.5]
    """

    kind = "expected_grade"

    def __init__(
        self,
        ensembles: Sequence[TreeEnsemble],
        grades: ArrayLike | None = None,
        *,
        training: Mapping[str, Any] | None = None,
    ) -> None:
        if not ensembles:
            raise ModelError("an expected grade needs at least one class")
        super().__init__(ensembles[0].feature_names, training)
        if any(ensemble.feature_names != self.feature_names for ensemble in ensembles):
            raise ModelError("the classes' ensembles have different features")
        self.ensembles = tuple(ensembles)
        self.grades = np.arange(len(ensembles), dtype=np.float64)
        if grades is not None:
            self.grades = np.array(grades, dtype=np.float64)
        if self.grades.shape != (len(ensembles),) or not np.isfinite(self.grades).all():
            raise ModelError(
                f"grades are {self.grades.tolist()}, expected one number for each of {len(ensembles)} classes"
            )

    @classmethod
    def from_lightgbm(
        cls, model: Any, grades: ArrayLike | None = None, *, training: Mapping[str, Any] | None = None
    ) -> ExpectedGrade:
        """From a LightGBM multi-class model.

        Parameters
        ----------
        model
            The booster or estimator, or the text of a model file.
        grades
            What each class is worth; class k is grade k unless given.
        training
            Facts about the training; the objective and the source unless given.
        """
        parsed = parse_lightgbm(lightgbm_text(model))
        classes = parsed.trees_per_iteration
        ensembles = [
            TreeEnsemble(parsed.trees[k::classes], parsed.feature_names, categories=parsed.categories)
            for k in range(classes)
        ]
        facts = {"objective": parsed.objective, "source": "lightgbm"} if training is None else training
        return cls(ensembles, grades, training=facts)

    def matrix(self, X: Any) -> Matrix:
        """The ranker's features of the rows of ``X``, as numbers and in its order."""
        return self.ensembles[0].matrix(X)

    def used_features(self) -> tuple[str, ...]:
        """Names of the features that some tree of some grade splits by."""
        used = {name for ensemble in self.ensembles for name in ensemble.used_features()}
        return tuple(name for name in self.feature_names if name in used)

    def tree_ensembles(self) -> tuple[TreeEnsemble, ...]:
        """One ensemble for each grade."""
        return self.ensembles

    def probabilities(self, X: Any, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """The chance of each class for each document, P(k | x): documents × classes.

        Parameters
        ----------
        X, n_jobs
            As :meth:`predict` takes them.
        """
        return _softmax(np.column_stack([ensemble.predict(X, n_jobs=n_jobs) for ensemble in self.ensembles]))

    def _importance_amounts(self) -> NDArray[np.float64]:
        return np.asarray(sum(ensemble._importance_amounts() for ensemble in self.ensembles))

    def _score(self, X: Matrix, n_jobs: int | None) -> NDArray[np.float64]:
        # Summed class by class: a matrix product may round differently for other numbers of rows.
        chances = self.probabilities(X, n_jobs=n_jobs)
        total = np.zeros(len(X), dtype=np.float64)
        for k, grade in enumerate(self.grades):
            total += chances[:, k] * grade
        return total

    def _attribution(self, X: Matrix, reference: Reference | None, n_jobs: int | None) -> Attribution:
        classes = [ensemble.attribution(X, reference=reference, n_jobs=n_jobs) for ensemble in self.ensembles]
        raw = np.column_stack([ensemble.predict(X, n_jobs=n_jobs) for ensemble in self.ensembles])

        def expected(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            chances = _softmax(points)
            values = chances @ self.grades
            return values, chances * (self.grades - values[:, None])

        def shares(first: Rows, second: Rows) -> NDArray[np.float64]:
            slopes = mean_slopes(expected, raw[second], raw[first], nodes=8)
            total = np.zeros((len(first), self.n_features))
            for k, part in enumerate(classes):
                total += slopes[:, k : k + 1] * part.between(first, second)
            return total

        ways = [way for part in classes for way in part.ways]
        return ByPair(len(X), self.n_features, shares, [*ways, _GRADES])

    def truncate(self, iterations: int) -> ExpectedGrade:
        """The ranker of the first iterations.

        Parameters
        ----------
        iterations
            How many to keep; each has one tree per class.
        """
        return ExpectedGrade([e.truncate(iterations) for e in self.ensembles], self.grades, training=self.training)

    def _part(self, columns: NDArray[np.int64]) -> GradesPart:
        return GradesPart(tuple(ensemble._part(columns) for ensemble in self.ensembles), self.grades)

    def _described(self) -> str:
        trees = sum(ensemble.n_trees for ensemble in self.ensembles)
        return f"{len(self.ensembles)} grades, {trees:,} trees, {self.n_features:,} features"

    def _payload(self) -> dict[str, Any]:
        return {
            "grades": self.grades.tolist(),
            "ensembles": [ensemble._payload() for ensemble in self.ensembles],
        }

    @classmethod
    def _from_payload(
        cls, payload: Mapping[str, Any], feature_names: Sequence[str], training: Mapping[str, Any]
    ) -> Self:
        ensembles = [TreeEnsemble._from_payload(part, feature_names, {}) for part in payload["ensembles"]]
        return cls(ensembles, payload["grades"], training=training)


def _softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))

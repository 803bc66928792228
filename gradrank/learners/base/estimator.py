"""What all learners share: scikit-learn's habits outside, RankingData inside."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.measures import AnyMeasure, parse_measure
from gradrank.models.ranker import Ranker
from gradrank.objectives import Objective

QID_COLUMN = "qid"


def ranking_data(X: Any, y: Any = None, qid: Any = None, *, weight: ArrayLike | None = None) -> RankingData:
    """RankingData from what users have: itself, arrays, or a pandas or polars frame (also with a column ``qid``).

    >>> ranking_data([[1.0], [2.0]], [0, 1], qid=[1, 1]).n_queries
    1
    """
    if isinstance(X, RankingData):
        if y is not None or qid is not None:
            raise TrainingError("RankingData holds its labels and queries: give y and qid with arrays only")
        return X if weight is None else X.with_weight(weight)
    names = None
    if hasattr(X, "columns") and hasattr(X, "to_numpy"):
        columns = [str(name) for name in X.columns]
        if qid is None and QID_COLUMN in columns:
            qid = X[X.columns[columns.index(QID_COLUMN)]]
        kept = [name for name, text in zip(X.columns, columns, strict=True) if text != QID_COLUMN]
        names = [str(name) for name in kept]
        X = X[kept].to_numpy()
        if X.dtype == object:
            X = X.astype(np.float64)
    if qid is None:
        raise TrainingError("there are no query ids: give qid=…, a frame with a column 'qid', or RankingData")
    return RankingData.from_arrays(X, y, qid=np.asarray(qid), weight=weight, feature_names=names)


def as_measure(measure: AnyMeasure | str) -> AnyMeasure:
    """A measure from itself or its name."""
    return parse_measure(measure) if isinstance(measure, str) else measure


class RankingEstimator(BaseEstimator):  # type: ignore[misc]
    """Base of the learners: ``fit`` takes RankingData or arrays with query ids, ``predict`` gives scores.

    ``ranker_`` is the trained ranker, which saves, loads and scores without the learner.
    """

    unit: ClassVar[str] = "step"
    """What a step of the training is called: tree, epoch, round, cut."""
    validated: ClassVar[bool] = True
    """Whether the number of steps is chosen on validation data."""
    ranker_: Ranker
    """Its ``training`` facts tell ``best`` (steps of the model), ``grown`` (steps made) and ``interrupted``."""

    @abstractmethod
    def _fit(self, train: RankingData, valid: Mapping[str, RankingData]) -> Ranker:
        """Train on checked data."""

    @abstractmethod
    def _measure(self) -> AnyMeasure:
        """The measure that :meth:`score` reports."""

    def _objective(self) -> Objective | None:
        """What training improves, if the learner follows an objective."""
        return None

    def _label_source(self) -> str | None:
        """The label source that training reads; None = the primary one."""
        objective = self._objective()
        return None if objective is None else objective.sources[0]

    def _chosen(self) -> dict[str, Any]:
        """Parameters that the learner chooses by itself, spelt out; those out of range raise TrainingError."""
        chosen = {"objective": self._objective(), "measure": self._measure()}
        known = self.get_params(deep=False)
        return {name: str(value) for name, value in chosen.items() if name in known and value is not None}

    def fit(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        weight: ArrayLike | None = None,
        valid: RankingData | tuple[Any, Any, Any] | Mapping[str, RankingData] | None = None,
    ) -> Self:
        """Train. ``valid`` is RankingData, (X, y, qid), or several sets by name; the first chooses the model."""
        sets: dict[str, RankingData]
        if valid is None:
            sets = {}
        elif isinstance(valid, Mapping):
            sets = {str(name): ranking_data(data) for name, data in valid.items()}
        elif isinstance(valid, RankingData):
            sets = {"valid": valid}
        else:
            sets = {"valid": ranking_data(*valid)}
        train = ranking_data(X, y, qid, weight=weight)
        if not train.labels:
            raise TrainingError("the training data has no labels")
        for name, data in sets.items():
            if data.n_features != train.n_features:
                raise TrainingError(f"{name} has {data.n_features} features, the training data has {train.n_features}")
        self.n_features_in_ = train.n_features
        self.ranker_ = self._fit(train, sets)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Scores, in the order of the rows given; higher is better."""
        check_is_fitted(self, "ranker_")
        if isinstance(X, RankingData):
            return self.ranker_.predict(X, n_jobs=getattr(self, "n_jobs", None))
        if hasattr(X, "columns") and hasattr(X, "to_numpy") and QID_COLUMN in [str(name) for name in X.columns]:
            X = X[[name for name in X.columns if str(name) != QID_COLUMN]]
        return self.ranker_.predict(X, n_jobs=getattr(self, "n_jobs", None))

    def score(self, X: Any, y: Any = None, qid: Any = None) -> float:
        """Mean of the learner's measure; the first part of a graded one."""
        check_is_fitted(self, "ranker_")
        data = ranking_data(X, y, qid)
        return self._measure().parts[0].mean(self.ranker_.predict(data), data)

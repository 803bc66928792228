"""Fitted models of other packages as rankers: XGBoost's, scikit-learn's, and whatever else has ``predict``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import default_feature_names
from gradrank.errors import MissingExtraError, ModelError
from gradrank.models.features import Matrix, frame_columns, is_frame, is_pandas, made_up, with_columns
from gradrank.models.ranker import Ranker


class ForeignRanker(Ranker):
    """A fitted model of another package, scored by that package.

    XGBoost's models score with the sum of their trees up to the best iteration, as ``XGBRanker.predict`` does.
    Classifiers (``classes_``) score with what they decide by: ``decision_function``, or the chance of the second of two
    classes, or the expected class of several. Everything else scores with ``predict``.

    Parameters
    ----------
    model
        The fitted model.
    feature_names
        Names of its features, where the model does not know them.
    training
        Facts about the training.

    >>> from sklearn.linear_model import LinearRegression
    >>> model = LinearRegression().fit([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]], [0.0, 2.0, 5.0])
    >>> ForeignRanker(model).predict([[3.0, 1.0]]).round(6).tolist()
    [6.0]
    """

    kind = "foreign"

    def __init__(
        self, model: Any, feature_names: Sequence[str] | None = None, *, training: Mapping[str, Any] | None = None
    ) -> None:
        names = known_features(model) if feature_names is None else tuple(feature_names)
        if names is None:
            raise ModelError(f"a {type(model).__name__} does not tell its features: give feature_names")
        super().__init__(names, training)
        self.model = model

    def predict(self, X: Any, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """See Ranker.predict; frames go to a model that knows names as they are, with its columns in its order."""
        X = with_columns(X)
        if not is_frame(X) or made_up(known_features(self.model) or ()):
            return super().predict(X, n_jobs=n_jobs)
        chosen = X[frame_columns(X, self.feature_names)]
        return _scores(self.model, chosen if is_pandas(X) else chosen.to_pandas())

    def _score(self, X: Matrix, n_jobs: int | None) -> NDArray[np.float64]:
        if _is_xgboost(self.model):
            return _scores(self.model, X)
        # In double precision, as people have their features: linear models would else calculate in single.
        matrix = X.astype(np.float64, copy=False)
        names = getattr(self.model, "feature_names_in_", None)
        return _scores(self.model, matrix if names is None else _named(matrix, [str(name) for name in names]))

    def renamed(self, feature_names: Sequence[str]) -> ForeignRanker:
        """See Ranker.renamed."""
        return ForeignRanker(self.model, feature_names, training=self.training)

    def to_dict(self) -> NoReturn:
        """A model of another package is not written into gradrank's files."""
        raise ModelError(
            f"a {type(self.model).__name__} of {type(self.model).__module__.partition('.')[0]} cannot be written to a "
            "file of gradrank's; pickle it, or save it by its own package"
        )

    def _part(self, columns: NDArray[np.int64]) -> NoReturn:
        raise ModelError(
            f"a {type(self.model).__name__} of {type(self.model).__module__.partition('.')[0]} cannot be exported: "
            "gradrank does not know what is inside"
        )

    def _payload(self) -> dict[str, Any]:
        return self.to_dict()

    @classmethod
    def _from_payload(
        cls, payload: Mapping[str, Any], feature_names: Sequence[str], training: Mapping[str, Any]
    ) -> Self:
        raise NotImplementedError

    def _described(self) -> str:
        return f"{type(self.model).__name__}, {self.n_features:,} features"


def known_features(model: Any) -> tuple[str, ...] | None:
    """Names of a fitted model's features, made up if it knows only how many they are; None if it does not tell.

    >>> from sklearn.linear_model import LinearRegression
    >>> known_features(LinearRegression().fit([[0.0, 1.0], [1.0, 1.0]], [0.0, 2.0]))
    ('f1', 'f2')
    """
    if _is_xgboost(model):
        booster = _booster(model)
        return tuple(booster.feature_names or default_feature_names(booster.num_features()))
    if hasattr(model, "feature_name") and hasattr(model, "model_to_string"):  # LightGBM's Booster
        return tuple(model.feature_name())
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        return tuple(str(name) for name in names)
    count = getattr(model, "n_features_in_", None)
    return None if count is None else default_feature_names(int(count))


def _is_xgboost(model: Any) -> bool:
    return hasattr(model, "get_booster") or (hasattr(model, "save_raw") and hasattr(model, "inplace_predict"))


def _booster(model: Any) -> Any:
    return _fitted(model, model.get_booster) if hasattr(model, "get_booster") else model


def _scores(model: Any, X: Any) -> NDArray[np.float64]:
    given = _fitted(model, lambda: _xgboost_scores(model, X) if _is_xgboost(model) else _generic_scores(model, X))
    try:
        scores = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{type(model).__name__}.predict gives something that is not a number") from None
    if scores.shape == (len(X), 1):
        scores = scores[:, 0]
    if scores.shape != (len(X),):
        raise ModelError(
            f"{type(model).__name__}.predict gives an array of shape {scores.shape} for {len(X)} documents, "
            "expected one number each"
        )
    return scores


def _xgboost_scores(model: Any, X: Any) -> Any:
    if hasattr(model, "get_booster"):
        if len(getattr(model, "classes_", ())) > 2:
            return _class_scores(model, X)
        return model.predict(X, output_margin=True)
    from xgboost import DMatrix

    names = None if is_frame(X) else model.feature_names
    matrix = DMatrix(X, feature_names=names, enable_categorical=is_frame(X))
    best = model.attr("best_iteration")
    return model.predict(matrix, output_margin=True, iteration_range=(0, 0 if best is None else int(best) + 1))


def _generic_scores(model: Any, X: Any) -> Any:
    classifies = hasattr(model, "classes_") and (hasattr(model, "decision_function") or hasattr(model, "predict_proba"))
    return _class_scores(model, X) if classifies else model.predict(X)


def _class_scores(model: Any, X: Any) -> Any:
    """What a classifier decides by, as one number per document: its classes alone would tie most documents."""
    classes = np.asarray(model.classes_)
    if len(classes) == 2 and hasattr(model, "decision_function"):
        return model.decision_function(X)
    if not hasattr(model, "predict_proba"):
        return model.predict(X)
    chances = np.asarray(model.predict_proba(X))
    if len(classes) == 2:
        return chances[:, 1]
    if classes.dtype.kind not in "biuf":
        raise ModelError(f"{type(model).__name__} tells classes {classes[:3].tolist()} apart, expected numbers: grades")
    return chances @ classes.astype(np.float64)


def _fitted(model: Any, call: Any) -> Any:
    from sklearn.exceptions import NotFittedError

    try:
        return call()
    except NotFittedError:
        raise ModelError(f"this {type(model).__name__} is not fitted: call fit first") from None


def _named(X: Matrix, names: Sequence[str]) -> Any:
    """A matrix under the names that a scikit-learn model was fitted with, which it looks for."""
    try:
        from pandas import DataFrame
    except ImportError:
        raise MissingExtraError("pandas", "frames") from None
    return DataFrame(X, columns=list(names))

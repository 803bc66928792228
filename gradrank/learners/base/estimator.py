"""What all learners share: scikit-learn's habits outside, RankingData inside."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from gradrank.data.cut_queries import SeenQueries
from gradrank.data.doubts import cut_doubts, training_doubts
from gradrank.data.frames import column_names, is_frame
from gradrank.data.interpret import as_ranking_data
from gradrank.data.ranking_data import RankingData, check_features
from gradrank.data.roles import QID_NAMES, plain_name
from gradrank.errors import DataError, DoubtfulDataWarning, ModelError, NotConvergedWarning, TrainingError
from gradrank.learners.base.common_parameters import CommonParameters
from gradrank.learners.base.fit_arguments import known_to_fit
from gradrank.learners.base.loop import Callback, Record
from gradrank.learners.base.parameters import check_parameters, fitted
from gradrank.learners.base.progress import Progress
from gradrank.learners.base.something_to_learn import check_varied_features, check_weights
from gradrank.measures import NDCG, AnyMeasure, as_measure
from gradrank.models.features import feature_matrix
from gradrank.models.ranker import Ranker
from gradrank.objectives import Objective
from gradrank.runtime.memory import is_mapped
from gradrank.runtime.warn import warn

# Scores of so many documents tell whether a model is constant.
_LOOK_AT = 20_000

EvalSet = Sequence[tuple[Any, ...] | RankingData]


class RankingEstimator(CommonParameters, BaseEstimator):  # type: ignore[misc]
    """Base of the learners: ``fit`` takes RankingData or arrays with query ids, ``predict`` gives scores.

    ``ranker_`` is the trained ranker, which saves, loads and scores without the learner.
    """

    unit: ClassVar[str] = "step"
    """What a step of the training is called: tree, epoch, round, cut."""
    steps_parameter: ClassVar[str | None] = None
    """The parameter that sets the number of steps."""
    weighs_documents: ClassVar[bool] = False
    """Whether training knows weights of documents."""
    checks_blocks: ClassVar[bool] = False
    """Whether training looks for infinite features as it reads those of a memory map."""
    validated: ClassVar[bool] = True
    """Whether the number of steps is chosen on validation data."""
    # Query ids and weights are passed on by scikit-learn's searches and pipelines without being asked for.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True, "sample_weight": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"qid": True, "sample_weight": True}

    ranker_: Ranker = fitted()
    """Its ``training`` facts tell ``best`` (steps of the model), ``grown`` (steps made) and ``interrupted``."""
    record_: Record = fitted()
    """What happened in the training: steps, the best one, learning curves, seconds."""
    n_features_in_: int = fitted()
    feature_names_in_: NDArray[np.object_] = fitted()
    """Names of the features, if the training data had any."""
    seen_queries_: SeenQueries | None = None
    """The queries that it was trained on, for a warning if data to measure on holds other parts of them; not kept in
    pickles."""

    # ------------------------------------------------------------------ what a family says
    @abstractmethod
    def _fit(self, train: RankingData, valid: Mapping[str, RankingData], callbacks: Sequence[Callback]) -> Ranker:
        """Train on checked data; sets ``record_``."""

    @abstractmethod
    def _measure(self) -> AnyMeasure:
        """The measure that chooses the model."""

    def _score_measure(self) -> AnyMeasure:
        """The measure that :meth:`score` reports: no other parameter than ``measure`` decides it."""
        given: str | AnyMeasure | None = getattr(self, "measure", None)
        return NDCG(10) if given is None else as_measure(given)

    def _objective(self) -> Objective | None:
        """What training improves, if the learner follows an objective."""
        return None

    def _label_source(self) -> str | None:
        """The label source that training reads; None = the primary one."""
        objective = self._objective()
        return None if objective is None else objective.sources[0]

    @property
    def holds_out(self) -> bool:
        """Whether some of the training queries choose the number of steps where there is no validation data."""
        return False

    def _settled(self) -> dict[str, Any]:
        """Parameters that were not given and that the data decided."""
        return {}

    @classmethod
    def not_searched_with(cls, parameters: Mapping[str, Any]) -> frozenset[str]:
        """Parameters that a search leaves open, as others leave no use for them: those that are fixed, or of a trial.

        Parameters
        ----------
        parameters
            What is fixed or was sampled; None stands for what the search will choose.
        """
        return frozenset()

    def _check(self) -> None:
        """Raise TrainingError for parameters that do not go together; each alone is in range."""

    def _chosen(self) -> dict[str, Any]:
        """Parameters that the learner chooses by itself, spelt out."""
        chosen = {"objective": self._objective(), "measure": self._measure()}
        return {name: str(value) for name, value in chosen.items() if name in self.declared and value is not None}

    def check_parameters(self) -> None:
        """Raise TrainingError if a parameter is out of range, or if some do not go together."""
        check_parameters(self)
        self._check()

    # ------------------------------------------------------------------ what users call
    @known_to_fit
    def fit(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        sample_weight: ArrayLike | None = None,
        eval_set: EvalSet | None = None,
        eval_qid: Sequence[Any] | None = None,
        valid: RankingData | tuple[Any, ...] | Mapping[str, RankingData] | None = None,
    ) -> Self:
        """Train a ranker.

        Parameters
        ----------
        X
            RankingData, which holds everything; or features: an array, a pandas or polars frame.
        y
            Labels, one per row; NaN is an unjudged document.
        qid
            Query ids, one per row, in any order; not needed if a frame has a column ``qid``.
        sample_weight
            Weights of the queries: one per row, the same for all rows of a query, or one per query.
        eval_set, eval_qid
            Validation data as LightGBM and XGBoost take it: a list of (X, y), and a list of their query ids, or one
            such pair and its ids. The first set chooses the model, the others are recorded.
        valid
            The same as RankingData, a frame, (X, y, qid), or several sets by name.

        Returns
        -------
        The learner itself, with ``ranker_`` and ``record_``.
        """
        self.check_parameters()
        train = as_ranking_data(X, y, qid, sample_weight=sample_weight)
        if not train.labels:
            raise TrainingError(
                "the training data has no labels: a learner requires y to be passed, but the target y is None"
            )
        if not train.n_features:
            raise TrainingError(f"X has 0 feature(s) (shape=({train.n_docs}, 0)) while a minimum of 1 is required.")
        if train.document_weight is not None and not self.weighs_documents:
            raise TrainingError(
                f"{type(self).__name__} knows weights of queries, not of documents, and the training data has such "
                "weights"
            )
        check_weights(train)
        if is_mapped(train.X) and not self.checks_blocks:
            check_features(train.X)  # a folder of arrays is opened without reading the features
        check_varied_features(train)
        sets = {name: aligned(data, train, name) for name, data in _validation_sets(valid, eval_set, eval_qid).items()}
        self._warn_before(train, sets)
        self.n_features_in_ = train.n_features
        if isinstance(X, RankingData) or is_frame(X):
            self.feature_names_in_ = np.array(train.feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        with Progress(quiet=not self.verbose, unit=self.unit) as progress:
            self.ranker_ = self._fit(train, sets, (*self.callbacks, progress))
        self._warn_after(train, bool(sets))
        self.seen_queries_ = SeenQueries.of(train)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Score of each row of ``X``, in the order in which the rows were given; higher is better.

        Parameters
        ----------
        X
            RankingData or a frame, whose features are found by name, or an array with the features in order.
        """
        check_is_fitted(self, "ranker_")
        return self.ranker_.predict(X, n_jobs=self.n_jobs)

    def score(self, X: Any, y: Any = None, qid: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Mean of ``measure`` over the queries (of its first part if it is graded); NDCG@10 unless it was given.

        The objective does not decide it, so that a search over objectives compares like with like.

        Parameters
        ----------
        X, y, qid, sample_weight
            As :meth:`fit` takes them; weights weigh the queries in the mean.
        """
        check_is_fitted(self, "ranker_")
        if y is not None and qid is None and not _has_queries(X):
            raise DataError(
                "there are no query ids: give score(X, y, qid=…), or a frame with a column 'qid'; scikit-learn's "
                "searches and cross-validation pass them on after sklearn.set_config(enable_metadata_routing=True)"
            )
        data = as_ranking_data(X, y, qid, sample_weight=sample_weight)
        for doubt in cut_doubts(self.seen_queries_, data, "the data"):
            warn(doubt, DoubtfulDataWarning)
        measure = self._score_measure()
        values = measure.parts[0].values(self.predict(data), data, n_jobs=self.n_jobs)
        there = ~np.isnan(values)
        if not there.any():
            return float("nan")
        weights = None if sample_weight is None or data.weight is None else data.weight[there]
        return float(np.average(values[there], weights=weights))

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each feature in what the model learned, adding up to 1; not for nets, where no such share is known.

        The gain of the splits of trees, the absolute weights of linear rankers times the features' scale.
        """
        check_is_fitted(self, "ranker_")
        shares = self.ranker_.importances()
        if shares is None:
            raise AttributeError(
                f"{type(self).__name__} has no feature_importances_; permutation_importance tells what a feature does"
            )
        return shares

    def __getstate__(self) -> dict[str, Any]:
        # Query ids may be what people searched for: they do not travel with a model.
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "seen_queries_"}

    def _repr_html_(self) -> str:
        """In notebooks: scikit-learn's view of the parameters, and the trained ranker with its learning curve."""
        shown = estimator_html_repr(self)
        return f"{shown}\n{self.ranker_._repr_html_()}" if hasattr(self, "ranker_") else str(shown)

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        return tags

    # ------------------------------------------------------------------ what would else pass in silence
    def _warn_before(self, train: RankingData, valid: Mapping[str, RankingData]) -> None:
        exponential = getattr(self._measure().parts[0], "gain", None) == "exp2"
        for doubt in training_doubts(train, valid, self._label_source(), exponential=exponential):
            warn(doubt, DoubtfulDataWarning)
        if not valid and getattr(self, "early_stopping_rounds", None) is not None and not self.holds_out:
            warn("early_stopping_rounds needs validation data, and there is none: all steps are made and kept")

    def _warn_after(self, train: RankingData, validated: bool) -> None:
        record = self.record_
        most = self._most_steps()
        if validated and not record.interrupted and most is not None and record.best == most > 1:
            name, unit = self._measure(), self.unit
            warn(
                f"the best model is the last of {record.steps:,} {unit}s: {name} on the validation data was still "
                f"rising; more {unit}s ({self.steps_parameter}) are likely to be better",
                NotConvergedWarning,
            )
        scores = self.ranker_.predict(train.X[:_LOOK_AT], n_jobs=self.n_jobs)
        if not np.isfinite(scores).all():
            raise TrainingError(
                "the trained model gives scores that are not finite numbers: features, labels or weights are too large"
            )
        if len(scores) > 1 and scores.max() == scores.min():
            warn(f"the model gives every document the same score{self._why_constant(train)}")

    def _most_steps(self) -> int | None:
        """The number of steps that training could not go beyond, if there was one."""
        return None if self.steps_parameter is None else getattr(self, self.steps_parameter)

    def _why_constant(self, train: RankingData) -> str:
        return ": it has learned nothing from this data"


def _has_queries(X: Any) -> bool:
    """Whether data may know its queries by itself."""
    if isinstance(X, RankingData) or not is_frame(X):
        return isinstance(X, RankingData)
    return any(plain_name(name) in QID_NAMES for name in column_names(X))


def aligned(data: RankingData, train: RankingData, name: str) -> RankingData:
    """A data set with the training data's features, found by name."""
    try:
        matrix = feature_matrix(data, train.feature_names)
    except ModelError as error:
        raise TrainingError(f"{name} does not fit the training data: {error}") from None
    if matrix is data.X and data.feature_names == train.feature_names:
        return data
    return replace(data, X=matrix, feature_names=train.feature_names)


def _as_set(data: Any) -> RankingData:
    return as_ranking_data(*data) if isinstance(data, tuple) else as_ranking_data(data)


def _is_one_set(eval_set: Any) -> bool:
    """Whether what should be a list of sets is a set itself: ranking data, a frame, or a pair (X, y)."""
    if isinstance(eval_set, RankingData) or is_frame(eval_set):
        return True
    # The first of several sets is a pair, or ranking data; that of a pair is a matrix.
    return (
        isinstance(eval_set, tuple)
        and len(eval_set) in (2, 3)
        and not isinstance(eval_set[0], tuple | RankingData)
        and (is_frame(eval_set[0]) or np.ndim(eval_set[0]) == 2)
        and not is_frame(eval_set[1])
        and (len(eval_set) < 3 or np.ndim(eval_set[2]) == 1)
    )


def _validation_sets(
    valid: RankingData | tuple[Any, ...] | Mapping[str, RankingData] | None,
    eval_set: EvalSet | None,
    eval_qid: Sequence[Any] | None,
) -> dict[str, RankingData]:
    if valid is not None and eval_set is not None:
        raise TrainingError("validation data is given twice: give valid or eval_set, not both")
    if isinstance(valid, Mapping):
        return {str(name): _as_set(data) for name, data in valid.items()}
    if valid is not None:
        if isinstance(valid, list) and any(isinstance(item, tuple | RankingData) or is_frame(item) for item in valid):
            raise TrainingError(
                f"valid is a list of {len(valid)} sets, expected one, or several by name: valid={{'name': data, …}}"
            )
        return {"valid": _as_set(valid)}
    if _is_one_set(eval_set):  # as LightGBM and CatBoost allow it
        eval_set = [eval_set]  # type: ignore[list-item]
        eval_qid = None if eval_qid is None else [eval_qid] if np.ndim(eval_qid[0]) == 0 else eval_qid
    sets = [item if isinstance(item, tuple | list) else (item,) for item in eval_set or ()]
    qids = list(eval_qid) if eval_qid is not None else [None] * len(sets)
    if len(qids) != len(sets):
        flat = eval_qid is not None and np.ndim(eval_qid[0]) == 0
        remedy = ": it is a list with one list for each set, eval_qid=[…]" if flat else ""
        raise TrainingError(f"eval_qid has {len(qids)} lists of query ids for the {len(sets)} sets of eval_set{remedy}")
    names = ["valid", *(f"valid{number}" for number in range(2, len(sets) + 1))]
    return {
        name: as_ranking_data(*item, **({} if ids is None else {"qid": ids}))
        for name, item, ids in zip(names, sets, qids, strict=False)
    }

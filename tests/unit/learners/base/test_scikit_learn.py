"""Learners in scikit-learn's hands: searches, pipelines, and its own checks of estimators."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, RandomizedSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from gradrank.data.artificial import make_data
from gradrank.errors import DoubtfulDataWarning
from gradrank.evaluation import evaluate
from gradrank.learners import LambdaMART, RankBoost, RankSVM
from gradrank.learners.base.estimator import RankingEstimator
from gradrank.measures import MAP, NDCG

DATA = make_data(45, n_docs=10, n_features=5, random_state=4)
ORDER = np.random.default_rng(0).permutation(DATA.n_docs)
X, Y, QID = DATA.X[ORDER], DATA.label()[ORDER], DATA.query_of_row()[ORDER]
FOLDS = GroupKFold(3)


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def by_hand(learner: RankingEstimator, measure: Any) -> list[float]:
    """The mean measure of each fold, without scikit-learn's searching."""
    found = []
    for train, test in FOLDS.split(X, Y, groups=QID):
        model = clone(learner).fit(X[train], Y[train], qid=QID[train])
        rows = np.argsort(QID[test], kind="stable")
        queries, sizes = np.unique(QID[test], return_counts=True)
        held = DATA.from_arrays(X[test][rows], Y[test][rows], group=sizes)
        assert len(queries) == held.n_queries
        found.append(measure.mean(model.predict(held), held))
    return found


@pytest.mark.usefixtures("routing")
def test_cross_validation_by_query() -> None:
    learner = LambdaMART(n_estimators=8, learning_rate=0.3)
    found = cross_val_score(learner, X, Y, params={"qid": QID, "groups": QID}, cv=FOLDS)
    np.testing.assert_allclose(found, by_hand(learner, NDCG(10)))


@pytest.mark.usefixtures("routing")
def test_a_search_over_objectives_compares_by_one_measure() -> None:
    grid = {"objective": ["NDCG@10", "MAP", "Regression"]}
    learner = LambdaMART(n_estimators=5, learning_rate=0.3, measure="MAP")
    search = GridSearchCV(learner, grid, cv=FOLDS).fit(X, Y, qid=QID, groups=QID)
    for objective, mean in zip(grid["objective"], search.cv_results_["mean_test_score"], strict=True):
        assert mean == pytest.approx(np.mean(by_hand(clone(learner).set_params(objective=objective), MAP())))
    assert search.best_estimator_.predict(X).shape == (len(X),)


@pytest.mark.usefixtures("routing")
def test_random_search_with_weights() -> None:
    weight = 1.0 + QID % 3
    search = RandomizedSearchCV(RankSVM(), {"C": [0.01, 1.0]}, n_iter=2, cv=FOLDS, random_state=0)
    search.fit(X, Y, qid=QID, groups=QID, sample_weight=weight)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_score_ > 0.6


@pytest.mark.usefixtures("routing")
def test_pipelines_pass_query_ids_on() -> None:
    pipeline = make_pipeline(StandardScaler(), RankSVM(scaling="none"))
    search = GridSearchCV(pipeline, {"ranksvm__C": [0.1, 1.0]}, cv=FOLDS).fit(X, Y, qid=QID, groups=QID)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    scaled = StandardScaler().fit_transform(X)
    alone = RankSVM(scaling="none", C=search.best_params_["ranksvm__C"]).fit(scaled, Y, qid=QID)
    np.testing.assert_allclose(search.predict(X), alone.predict(scaled), rtol=1e-6, atol=1e-9)
    assert search.score(X, Y, qid=QID) == pytest.approx(alone.score(scaled, Y, qid=QID))


def test_without_routing_a_column_of_query_ids_does() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"x{number}" for number in range(X.shape[1])]).assign(qid=QID)
    learner = RankBoost(n_estimators=10)
    found = cross_val_score(learner, frame, Y, groups=QID, cv=FOLDS)
    np.testing.assert_allclose(found, by_hand(learner, NDCG(10)))


def test_folds_that_cut_queries_are_told() -> None:
    frame = pd.DataFrame(X).assign(qid=[f"query {number}" for number in QID])
    learner = LambdaMART(n_estimators=3)
    with pytest.warns(DoubtfulDataWarning, match="45 queries of the data have the id of a query of the training data"):
        cut = cross_val_score(learner, frame, Y, cv=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DoubtfulDataWarning)
        whole = cross_val_score(learner, frame, Y, cv=FOLDS, groups=QID)
    assert abs(cut.mean() - whole.mean()) > 0.1
    fitted = clone(learner).fit(frame.iloc[:300], Y[:300])
    with pytest.warns(DoubtfulDataWarning, match="for system 'new', have the id"):
        [remark] = evaluate(frame.iloc[300:].assign(label=Y[300:]), {"new": fitted}, "NDCG").remarks
    assert "GroupKFold" in remark
    # Query ids may be what people searched for: they do not travel with a model.
    assert b"query 7" not in pickle.dumps(fitted)
    assert pickle.loads(pickle.dumps(fitted)).score(frame, Y) == fitted.score(frame, Y)


def test_notebooks_show_parameters_and_the_learning_curve() -> None:
    learner = LambdaMART(n_estimators=4)
    assert "n_estimators" in learner._repr_html_()
    learner.fit(DATA, valid=DATA)
    shown = learner._repr_mimebundle_()
    assert shown["text/plain"] == "LambdaMART(n_estimators=4)"
    assert "<svg" in shown["text/html"]
    assert "NDCG@10" in shown["text/html"]


# ---------------------------------------------------------------- scikit-learn's own checks
class _WithQueries:
    """Gives query ids where scikit-learn's checks have none: ten rows per query."""

    def fit(self, X: Any, y: Any = None, qid: Any = None, *, sample_weight: Any = None, **more: Any) -> Any:
        qid = np.arange(np.shape(X)[0]) // 10 if qid is None and np.ndim(X) == 2 else qid
        return super().fit(X, y, qid, sample_weight=sample_weight, **more)  # type: ignore[misc]

    def score(self, X: Any, y: Any = None, qid: Any = None, sample_weight: Any = None) -> float:
        qid = np.arange(np.shape(X)[0]) // 10 if qid is None else qid
        return float(super().score(X, y, qid, sample_weight))  # type: ignore[misc]


class Trees(_WithQueries, LambdaMART):
    """LambdaMART for the checks."""


class Linear(_WithQueries, RankSVM):
    """RankSVM for the checks."""


class Boosted(_WithQueries, RankBoost):
    """RankBoost for the checks."""


# What scikit-learn asks of estimators and rankers cannot or do not give, and why.
NOT_FOR_RANKERS = {
    "check_n_features_in_after_fitting": "our error about the number of features has words of its own",
    "check_fit2d_predict1d": "our error about the number of dimensions has words of its own",
    "check_dtype_object": "values that are no numbers raise our DataError, a ValueError, where it wants a TypeError",
    "check_fit2d_1sample": "one document alone has nothing to be ranked above; our error says so",
    "check_positive_only_tag_during_fit": "its labels are all equal within our made-up queries: nothing to order",
    "check_sample_weights_not_an_array": "it passes an X without a shape, for which no query ids can be made up",
    "check_sample_weights_not_overwritten": "weights are those of queries: rows of one query must agree",
    "check_sample_weight_equivalence_on_dense_data": "a document given twice makes pairs of its own, unlike a weight",
}


@pytest.mark.filterwarnings("ignore::gradrank.errors.GradrankWarning")
@parametrize_with_checks(
    [Trees(n_estimators=2, n_jobs=1), Linear(n_jobs=1), Boosted(n_estimators=2, n_jobs=1)],
    expected_failed_checks=lambda _estimator: NOT_FOR_RANKERS,
)
def test_checks_of_scikit_learn(estimator: RankingEstimator, check: Any) -> None:
    assert check(estimator) is None  # it raises what it finds

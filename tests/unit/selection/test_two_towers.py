"""Two towers: terms of positions are found, and the relevance tower ranks better than a net that knows no positions."""

from __future__ import annotations

import numpy as np
import pytest

from gradrank import NDCG, LambdaRank, load_ranker, make_splits
from gradrank.data.clicks.click_log import click_log
from gradrank.data.clicks.sessions import impression_data
from gradrank.data.clicks.simulate import Users, simulate_log
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError, TrainingError
from gradrank.selection.two_towers import train_two_towers

pytest.importorskip("torch")
TERMS = {1: 0.0, 2: -0.7, 4: -1.5}


def _impressions() -> RankingData:
    """Click rates that are exactly σ(relevance + term)."""
    rng = np.random.default_rng(1)
    n_docs = 900
    X = rng.standard_normal((n_docs, 2))
    # Good documents stand on top, so that terms and relevance are confounded.
    position = np.where(X[:, 0] + rng.standard_normal(n_docs) > 0, 1, rng.choice([2, 4], n_docs))
    logit = 1.5 * X[:, 0] - 0.5 * X[:, 1] - 1.0 + np.array([TERMS[k] for k in position])
    data = RankingData.from_arrays(X, 1 / (1 + np.exp(-logit)), qid=np.arange(n_docs) // 10)
    return data.with_label("position", position)


def _linear(**parameters):  # type: ignore[no-untyped-def]
    return LambdaRank("Logistic", hidden_layer_sizes=0, weight_decay=0.0, n_jobs=1, verbose=False, **parameters)


def test_terms_of_positions_are_found_exactly_where_the_model_holds(tmp_path) -> None:  # type: ignore[no-untyped-def]
    data = _impressions()
    learner = _linear(positions="position", epochs=300).fit(data)
    assert learner.position_terms_ == pytest.approx(TERMS, abs=0.02)
    weights = learner.ranker_.weights
    assert weights[1] / weights[0] == pytest.approx(-1 / 3, abs=0.02)
    naive = _linear(epochs=300).fit(data).ranker_.weights
    assert abs(naive[1] / naive[0] + 1 / 3) > 0.05
    # The model is the relevance tower alone: it takes the features, and remembers the terms.
    learner.ranker_.save(tmp_path / "model.json")
    saved = load_ranker(tmp_path / "model.json")
    assert saved.training["position_terms"]["4"] == learner.position_terms_[4]
    np.testing.assert_array_equal(saved.predict(data.X), learner.predict(data.X))


def test_dropping_positions_leaves_less_to_them_and_is_reproducible() -> None:
    data = _impressions()
    fit = {"positions": "position", "epochs": 60, "hidden_layer_sizes": 4, "n_jobs": 1, "verbose": False}
    whole = LambdaRank("Logistic", **fit).fit(data)
    dropped = LambdaRank("Logistic", position_dropout=0.5, **fit).fit(data)
    again = LambdaRank("Logistic", position_dropout=0.5, **fit).fit(data)
    assert dropped.position_terms_ == again.position_terms_
    np.testing.assert_array_equal(dropped.predict(data), again.predict(data))
    assert dropped.position_terms_ != whole.position_terms_


def test_a_checkpoint_goes_on_with_both_towers(tmp_path) -> None:  # type: ignore[no-untyped-def]
    data = _impressions()
    fit = {"positions": "position", "position_dropout": 0.2, "hidden_layer_sizes": 4, "n_jobs": 1, "verbose": False}
    whole = LambdaRank("Logistic", epochs=6, **fit).fit(data)
    kept = {"checkpoint": str(tmp_path / "state"), "checkpoint_every": 2}
    LambdaRank("Logistic", epochs=4, **fit, **kept).fit(data)
    more = LambdaRank("Logistic", epochs=6, **fit, **kept).fit(data)
    assert more.position_terms_ == whole.position_terms_
    np.testing.assert_array_equal(more.predict(data), whole.predict(data))


def test_clicks_teach_the_relevance_tower_what_grades_do() -> None:
    splits = make_splits(150, n_docs=10, n_features=6, random_state=0, n_jobs=1)
    data, test = splits["train"], splits["test"]
    # With few clicks the odds of a click are its probability, and terms are logarithms of propensities.
    users = Users(low=0.01, high=0.15)
    log = simulate_log(data, {"one": data.X[:, 0], "two": data.X[:, 1]}, 60_000, users=users, random_state=0)
    result = train_two_towers(data, log, parameters={"epochs": 30}, n_jobs=1)
    terms = np.array(list(result.position_terms.values()))
    assert np.exp(terms) == pytest.approx(users.examined(10), rel=0.35)
    assert np.corrcoef(terms, np.log(users.examined(10)))[0, 1] > 0.98
    assert result.held_out.best == "two-towers"

    def ndcg(ranker) -> float:  # type: ignore[no-untyped-def]
        return float(NDCG(10).values(ranker.predict(test), test, n_jobs=1).mean())

    assert ndcg(result.unbiased) > ndcg(result.naive) + 0.01


def test_what_does_not_tell_positions_apart_is_refused() -> None:
    data = RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=["q", "q"], docid=["a", "b"])
    with pytest.raises(DataError, match="the log cannot tell how likely positions are examined"):
        train_two_towers(data, click_log([("q", ["a", "b"], ["b"])] * 9))
    with pytest.raises(TrainingError, match="positions: label 'label' of document 1 is 0"):
        LambdaRank("Logistic", positions="label", verbose=False).fit(data)


def test_impressions_are_counted_by_document_and_position() -> None:
    data = RankingData.from_arrays(
        [[1.0], [2.0], [3.0]], [0, 0, 0], qid=["q", "q", "r"], docid=["a", "b", "c"]
    )  # fmt: skip
    log = click_log([("r", ["c"], ["c"]), ("q", ["b", "x", "a"], ["a"]), ("q", ["b", "a"], ["b"]), ("z", ["a"], [])])
    shown = impression_data(data, log)
    assert list(shown.qid) == ["q", "r"]
    assert shown.indptr.tolist() == [0, 3, 4]
    assert shown.X[:, 0].tolist() == [1.0, 1.0, 2.0, 3.0]
    assert shown.label("position").tolist() == [2.0, 3.0, 1.0, 1.0]
    assert shown.label().tolist() == [0.0, 1.0, 0.5, 1.0]
    assert shown.document_weight is not None
    assert shown.document_weight.tolist() == [1.0, 1.0, 2.0, 1.0]

"""Rankers from clicks: freed of position bias they rank nearly as well as from the truth."""

from __future__ import annotations

import numpy as np
import pytest

from gradrank import NDCG, LambdaMART, make_splits
from gradrank.data.clicks.evidence import evidence_of
from gradrank.data.clicks.labels import click_labels
from gradrank.data.clicks.propensity import given_propensities
from gradrank.data.clicks.sessions import session_data
from gradrank.data.clicks.simulate import Users, attraction, simulate_log
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError, TrainingError
from gradrank.selection.unbiased import model_labels, train_on_clicks

TREES = {"n_estimators": 60, "learning_rate": 0.1, "num_leaves": 7}
FEW = {"n_estimators": 100}


def _logged(seed: int = 0, per_query: int = 100):  # type: ignore[no-untyped-def]
    splits = make_splits(150, n_docs=10, n_features=6, random_state=seed, n_jobs=1)
    data = splits["train"]
    # Rankers that look at one feature are strong in the wrong way: users see what they like.
    rankers = {"one": data.X[:, 0], "two": data.X[:, 1]}
    users = Users()
    log = simulate_log(data, rankers, per_query * data.n_queries, users=users, shown=10, random_state=seed)
    return data, splits["test"], log, users


def _ndcg(ranker, data: RankingData) -> float:  # type: ignore[no-untyped-def]
    return float(NDCG(10).values(ranker.predict(data), data, n_jobs=1).mean())


def test_clicks_freed_of_bias_teach_what_grades_do() -> None:
    data, test, log, _ = _logged()
    result = train_on_clicks(data, log, parameters=TREES, n_jobs=1)
    true = _ndcg(LambdaMART("NDCG", n_jobs=1, verbose=False, **TREES).fit(data).ranker_, test)
    assert result.propensities.method == "harvest"
    assert _ndcg(result.unbiased, test) > 0.96 * true
    assert _ndcg(result.unbiased, test) > _ndcg(result.naive, test) + 0.005
    assert result.held_out.best == "position"


def test_model_labels_are_nearer_to_the_truth_than_clicks() -> None:
    data, _, log, users = _logged(per_query=20)
    found = model_labels(data, evidence_of(data, log, given_propensities(users.examined(10))), n_jobs=1)
    truth = attraction(data, users)
    label = found.data.label("clicks")
    raw = click_labels(log, "examined", propensities=given_propensities(users.examined(10)), prior=(0.0, 0.0))
    row = {name: i for i, name in enumerate(data.docid)}  # type: ignore[arg-type]
    rates = np.full(data.n_docs, np.nan)
    for document, value in zip(raw.document, raw.label, strict=True):
        rates[row[raw.documents[document]]] = value
    seen = ~np.isnan(rates)
    assert np.mean((label - truth)[seen] ** 2) < 0.5 * np.mean((rates - truth)[seen] ** 2)
    # Nearer than what the features alone tell, too.
    assert np.mean((label - truth)[seen] ** 2) < np.mean((found.attraction - truth)[seen] ** 2)
    assert found.labeled == seen.sum()


def test_trust_bias_and_cascades_are_corrected_by_their_models() -> None:
    splits = make_splits(150, n_docs=10, n_features=6, random_state=0, n_jobs=1)
    data, test = splits["train"], splits["test"]
    rankers = {"one": data.X[:, 0], "two": data.X[:, 1]}
    for model, users in (("trust", Users(trust=0.8)), ("dbn", Users(model="cascade", go_on=0.7))):
        log = simulate_log(data, rankers, 150 * data.n_queries, users=users, random_state=1)
        result = train_on_clicks(data, log, click_model=model, parameters=TREES, model_parameters=FEW, n_jobs=1)
        assert result.held_out.best == model
        assert _ndcg(result.unbiased, test) > _ndcg(result.naive, test) + 0.005
    with pytest.raises(DataError, match="the click model dbn has no propensities"):
        _ = result.propensities


def test_inverse_propensities_and_position_terms_beat_naive_sessions() -> None:
    data, test, log, users = _logged(per_query=30)
    sessions = session_data(data, log, given_propensities(users.examined(10)))
    plain = sessions.with_document_weight(None)
    fit = {"n_jobs": 1, "verbose": False, **TREES}
    naive = _ndcg(LambdaMART("NDCG", **fit).fit(plain).ranker_, test)
    weighted = _ndcg(LambdaMART("NDCG", **fit).fit(sessions).ranker_, test)
    learner = LambdaMART("NDCG", positions="position", **fit).fit(plain)
    assert weighted > naive
    assert _ndcg(learner.ranker_, test) > naive
    # What positions add falls with the position, and the model remembers it.
    terms = list(learner.position_terms_.values())
    assert terms[0] == 0.0
    assert np.corrcoef(terms, np.log(users.examined(10)))[0, 1] > 0.8
    assert learner.ranker_.training["position_terms"]["2"] == terms[1]


def test_position_terms_of_a_checkpoint_go_on(tmp_path) -> None:  # type: ignore[no-untyped-def]
    data, _, log, _ = _logged(per_query=3)
    sessions = session_data(data, log)
    fit = {"n_jobs": 1, "verbose": False, "positions": "position", "num_leaves": 5}
    whole = LambdaMART("NDCG", n_estimators=8, **fit).fit(sessions)
    part = {"checkpoint": str(tmp_path / "state"), "checkpoint_every": 2}
    LambdaMART("NDCG", n_estimators=4, **fit, **part).fit(sessions)
    more = LambdaMART("NDCG", n_estimators=8, **fit, **part).fit(sessions)
    assert more.position_terms_ == whole.position_terms_
    np.testing.assert_array_equal(more.predict(sessions), whole.predict(sessions))


def test_wrong_use_is_refused() -> None:
    data, _, log, _ = _logged(per_query=3)
    with pytest.raises(DataError, match="click model 'x' does not exist, expected one of position, trust"):
        train_on_clicks(data, log, click_model="x")
    with pytest.raises(DataError, match="belong to the click model position, not to dbn"):
        train_on_clicks(data, log, click_model="dbn", method="em")
    with pytest.raises(TrainingError, match="positions: label 'label' of document 1 is"):
        LambdaMART(positions="label", verbose=False).fit(data.with_label("label", np.arange(data.n_docs) % 5))

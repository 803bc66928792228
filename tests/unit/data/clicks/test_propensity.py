"""Examination propensities: the truth of simulated logs is found, and where it cannot be, that is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradrank.data.artificial import make_data
from gradrank.data.clicks.click_log import click_log
from gradrank.data.clicks.click_models import held_out_likelihood
from gradrank.data.clicks.labels import click_labels
from gradrank.data.clicks.propensity import estimate_propensities, given_propensities
from gradrank.data.clicks.propensity_files import read_propensities, write_propensities
from gradrank.data.clicks.sessions import rows_of_log, session_data, take_sessions
from gradrank.data.clicks.simulate import Users, simulate_log
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError

TRUTH = (1.0, 0.6, 0.5, 0.2, 0.3)


def _log(seed: int = 0, n_sessions: int = 20_000, randomized: float = 0.2, n_rankers: int = 2, **users: Any):  # type: ignore[no-untyped-def]
    data = make_data(80, n_docs=(3, 9), n_features=5, random_state=seed, n_jobs=1)
    rng = np.random.default_rng(seed)
    # Strong rankers: what stands at the top is clicked more for two reasons.
    rankers = {f"r{n}": data.label() + rng.normal(size=data.n_docs) for n in range(n_rankers)}
    users = {"examination": TRUTH, **users}
    return data, simulate_log(
        data, rankers, n_sessions, users=Users(**users), shown=5, randomized=randomized, random_state=seed
    )


@pytest.mark.parametrize("method", ["randomized", "harvest", "em"])
def test_intervals_hold_the_truth(method: str) -> None:
    inside, widths = [], []
    for seed in range(8):
        found = estimate_propensities(_log(seed)[1], method, confidence=0.95)  # type: ignore[arg-type]
        assert found.method == method
        assert found.probability[0] == found.low[0] == found.high[0] == 1.0
        inside += ((found.low < TRUTH) & (found.high > TRUTH))[1:].tolist()
        widths.append(found.high[1:] / found.low[1:])
    # 32 intervals of 95 %: fewer than 27 right ones have a chance of one in a thousand.
    assert sum(inside) >= 27
    assert np.mean(widths) < 2.5


def test_clicks_by_position_alone_are_wrong_where_rankers_are_strong() -> None:
    _, log = _log(randomized=0.0)
    rates = np.array([(log.order[log.position == k] > 0).mean() for k in range(1, 6)])
    found = estimate_propensities(log)
    assert found.method == "harvest"
    assert np.abs(np.log(found.probability / TRUTH)).max() < np.abs(np.log(rates / rates[0] / TRUTH)).max() / 2


def test_the_best_method_that_the_log_allows() -> None:
    assert estimate_propensities(_log(randomized=0.3)[1], replicates=2).method == "randomized"
    assert estimate_propensities(_log(randomized=0.0)[1], replicates=2).method == "harvest"
    assert estimate_propensities(_log(randomized=0.3, n_rankers=1)[1], "em", replicates=2).method == "em"


def test_a_log_of_one_fixed_ranker_cannot_tell() -> None:
    _, log = _log(randomized=0.0, n_rankers=1)
    for method in ("auto", "em", "harvest"):
        with pytest.raises(
            DataError, match="the log cannot tell how likely positions are examined: no clicked document"
        ):
            estimate_propensities(log, method)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="no session of the log says"):
        estimate_propensities(click_log([("q", ["a", "b"], ["a"])]), "randomized")
    with pytest.raises(DataError, match="all documents were shown at one position"):
        estimate_propensities(click_log([("q", ["a"], ["a"]), ("q", ["b"], [])]))


def test_positions_that_nothing_connects_stay_unknown() -> None:
    # Positions 1 and 2 share documents, 3 and 4 do, and no document joins the two halves.
    sessions = [("q", ["a", "b", "c", "d"], ["a", "b", "c", "d"]), ("q", ["b", "a", "d", "c"], ["b", "d"])] * 20
    found = estimate_propensities(click_log(sessions), replicates=5)
    assert np.isfinite(found.probability).tolist() == [True, True, False, False]
    assert np.isnan(found.at([3, 9])).all()


def test_harvest_by_hand() -> None:
    """One document at two positions: the ratio of its click rates."""
    sessions = [("q", ["a", "b"], ["a"] if n < 8 else []) for n in range(10)]
    sessions += [("q", ["b", "a"], ["a"] if n < 6 else []) for n in range(20)]
    found = estimate_propensities(click_log(sessions), "harvest", replicates=2)
    # b was never clicked and shows nothing: a has 8/10 at the first place and 6/20 at the second.
    weight = 10 * 20 / 30
    r1, r2 = weight * 0.8, weight * 0.3
    assert found.probability[1] == pytest.approx(r2 / r1, rel=1e-5)
    # With one query nothing tells how uncertain this is.
    assert found.low[1] == 0.0
    assert np.isinf(found.high[1])


def test_files(tmp_path: Path) -> None:
    found = estimate_propensities(_log()[1], replicates=5)
    write_propensities(found, tmp_path / "p.json")
    again = read_propensities(tmp_path / "p.json")
    assert again.probability.tolist() == found.probability.tolist()
    assert (again.method, again.compared) == (found.method, found.compared)
    for text in ("", "{}", '{"format": "gradrank-propensities"}', "[1, 2]"):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(DataError, match="is no file of propensities"):
            read_propensities(tmp_path / "bad.json")
    with pytest.raises(DataError, match=r"propensities are \[1\.0, 0\.0\]"):
        given_propensities([1.0, 0.0])


# ---------------------------------------------------------------------- labels and sessions
def test_clicks_per_examined_impression_by_hand() -> None:
    sessions = [("q", ["a", "b", "c"], ["b"]), ("q", ["b", "a", "c"], ["b", "c"]), ("q", ["a"], [])]
    known = given_propensities([1.0, 0.25, np.nan])
    labels = click_labels(click_log(sessions), "examined", propensities=known, prior=(0.0, 0.0))
    named = dict(zip([labels.documents[d] for d in labels.document], labels.label, strict=True))
    assert named["a"] == 0.0
    assert named["b"] == 1.0  # 2 clicks in 1.25 examined impressions
    assert np.isnan(named["c"])  # shown at the third place only
    some = click_labels(click_log(sessions), "examined", propensities=known, prior=(1.0, 3.0))
    assert some.label[:2].tolist() == pytest.approx([1 / (2.25 + 4), 3 / (1.25 + 4)])
    with pytest.raises(DataError, match="propensities go with the method examined"):
        click_labels(click_log(sessions), "examined")


def test_the_suggested_prior_is_that_of_the_documents() -> None:
    rng = np.random.default_rng(3)
    sessions = []
    for query in range(400):
        alpha = rng.beta(1.5, 4.5, 3)
        for _ in range(12):
            clicks = [d for d, a, p in zip("abc", alpha, (1.0, 0.5, 0.5), strict=True) if rng.random() < a * p]
            sessions.append((str(query), list("abc"), clicks))
    labels = click_labels(click_log(sessions), "examined", propensities=given_propensities([1.0, 0.5, 0.5]))
    assert labels.prior[0] / sum(labels.prior) == pytest.approx(0.25, abs=0.02)
    assert sum(labels.prior) == pytest.approx(6.0, rel=0.25)


def test_sessions_become_queries_with_inverse_propensities() -> None:
    data = RankingData.from_arrays([[1.0], [2.0], [3.0]], [0, 0, 0], qid=["q"] * 3, docid=["a", "b", "c"])
    log = click_log(
        [("q", ["a", "b", "x"], ["b"]), ("q", ["c", "a"], []), ("q", ["c", "b"], ["c"]), ("q", ["a"], ["a"])]
    )
    sessions = session_data(data, log, given_propensities([1.0, 0.01]), clip=0.1)
    assert list(sessions.qid) == ["q#1", "q#3"]
    assert sessions.X[:, 0].tolist() == [1.0, 2.0, 3.0, 2.0]
    assert sessions.label().tolist() == [0.0, 1.0, 1.0, 0.0]
    assert sessions.label("position").tolist() == [1.0, 2.0, 1.0, 2.0]
    # 1/0.01 is clipped to 10; the mean weight of the clicks is 1.
    assert sessions.document_weight is not None
    assert sessions.document_weight.tolist() == pytest.approx([1.0, 10 / 5.5, 1 / 5.5, 1.0])
    assert rows_of_log(take_sessions(log, np.array([2])), data).tolist() == [2, 1]
    with pytest.raises(DataError, match="no session shows two documents"):
        session_data(data, take_sessions(log, np.array([1, 3])))


def test_held_out_likelihood_knows_when_positions_matter() -> None:
    biased = held_out_likelihood(_log()[1])
    assert biased.values["position"] > biased.values["naive"] + 0.002
    flat = held_out_likelihood(_log(examination=(1.0,) * 5)[1])
    assert abs(flat.values["position"] - flat.values["naive"]) < 0.002
    # Chances of clicks are worth more than a coin.
    assert biased.values["naive"] > np.log(0.5)

"""Artificial click logs: what was put in comes out."""

from __future__ import annotations

import numpy as np
import pytest

from gradrank.data.artificial import make_data
from gradrank.data.clicks.agreement import pair_agreement
from gradrank.data.clicks.click_log import write_click_log
from gradrank.data.clicks.readers import read_click_log
from gradrank.data.clicks.simulate import Users, attraction, simulate_log
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError


def _data(n_queries: int = 40, n_docs: int = 12) -> RankingData:
    return make_data(n_queries, n_docs=n_docs, n_features=5, random_state=3, n_jobs=1)


def _rates(log, data, scores, depth):  # type: ignore[no-untyped-def]
    """Clicks and impressions of each row and position, by plain counting."""
    row = {name: i for i, name in enumerate(data.docid)}
    names = list(log.documents)
    shown, clicked = np.zeros((data.n_docs, depth)), np.zeros((data.n_docs, depth))
    for document, position, order in zip(log.document, log.position, log.order, strict=True):
        shown[row[names[document]], position - 1] += 1
        clicked[row[names[document]], position - 1] += order > 0
    return shown, clicked


def test_position_based_clicks_have_the_known_rates() -> None:
    data = _data(6, 5)
    users = Users(severity=0.7, trust=0.3)
    log = simulate_log(data, {"a": -np.arange(data.n_docs)}, 60_000, users=users, shown=4, random_state=2)
    shown, clicked = _rates(log, data, None, 4)
    alpha = attraction(data, users)
    k = np.arange(1, 5)
    expected = k**-0.7 * (alpha[:, None] + (1 - alpha[:, None]) * 0.3 / k)
    for row, place in zip(*np.nonzero(shown), strict=True):
        assert place == row - data.indptr[np.searchsorted(data.indptr, row, side="right") - 1]  # the ranker's order
        n, p = shown[row, place], expected[row, place]
        assert abs(clicked[row, place] / n - p) < 5 * np.sqrt(p * (1 - p) / n)


def test_cascade_users_stop_when_satisfied() -> None:
    data = RankingData.from_arrays([[0.0]] * 3, [4, 0, 0], qid=["q"] * 3, docid=["a", "b", "c"])
    users = Users(model="cascade", low=0.5, high=0.9, satisfied=(0.0, 1.0), go_on=0.8)
    log = simulate_log(data, {"r": [3, 2, 1]}, 50_000, users=users, random_state=1)
    rates = (log.order.reshape(-1, 3) > 0).mean(axis=0)
    # The second is read by those who did not click the first, if they go on; the third if they go on again.
    assert rates == pytest.approx([0.9, 0.1 * 0.8 * 0.5, 0.1 * 0.8 * 0.8 * 0.5], abs=0.01)
    both = log.order.reshape(-1, 3) > 0
    assert not (both[:, 0] & both[:, 1]).any()


@pytest.mark.parametrize("wanted", [0.7, 0.9])
def test_attraction_agrees_with_the_grades_as_told(wanted: float) -> None:
    data = _data()
    alpha = attraction(data, Users(agreement=wanted), random_state=5)
    alike = ordered = 0
    for q in range(data.n_queries):
        rows = range(data.indptr[q], data.indptr[q + 1])
        for i in rows:
            for j in rows:
                if data.label()[i] > data.label()[j]:
                    ordered += 1
                    alike += alpha[i] > alpha[j]
    assert alike / ordered == pytest.approx(wanted, abs=0.002)
    assert pair_agreement(data, None, alpha) == pytest.approx(alike / ordered)


@pytest.mark.parametrize("wanted", [0.7, 0.85])
def test_click_labels_of_artificial_data_agree_as_told(wanted: float) -> None:
    data = make_data(800, n_docs=25, n_features=12, random_state=4, clicks=True, click_agreement=wanted, n_jobs=1)
    assert pair_agreement(data) == pytest.approx(wanted, abs=0.02)


def test_agreement_out_of_reach_is_said() -> None:
    with pytest.raises(DataError, match=r"click_agreement is 0\.2, expected a number from"):
        make_data(5, n_features=5, clicks=True, click_agreement=0.2)
    with pytest.raises(DataError, match="give clicks=True"):
        make_data(5, n_features=5, click_agreement=0.7)


def test_rankers_traffic_and_randomized_lists() -> None:
    data = _data(3, 6)
    down, up = -np.arange(data.n_docs), np.arange(data.n_docs)
    log = simulate_log(data, {"d": down, "u": up}, 20_000, shown=3, traffic=(3, 1), randomized=0.2, random_state=9)
    assert log.ranker is not None
    assert log.randomized is not None
    assert (log.ranker == 0).mean() == pytest.approx(0.75, abs=0.02)
    assert log.randomized.mean() == pytest.approx(0.2, abs=0.02)
    lists = log.document.reshape(-1, 3) - data.indptr[log.query][:, None]
    assert (lists[(log.ranker == 0) & ~log.randomized] == [0, 1, 2]).all()
    assert (lists[(log.ranker == 1) & ~log.randomized] == [5, 4, 3]).all()
    mixed = lists[(log.ranker == 0) & log.randomized]
    assert (np.sort(mixed, axis=1) == [0, 1, 2]).all()
    assert (mixed == 0).mean(axis=0) == pytest.approx([1 / 3] * 3, abs=0.03)


def test_longer_logs_begin_with_shorter_ones_and_lists_may_be_short() -> None:
    data = make_data(30, n_docs=(1, 4), n_features=5, random_state=3, n_jobs=1)
    scores = {"a": np.random.default_rng(0).random(data.n_docs)}
    short, long = (simulate_log(data, scores, n, shown=3, random_state=1) for n in (50, 70_000))
    end = short.n_impressions
    assert np.array_equal(short.document, long.document[:end])
    assert np.array_equal(short.order, long.order[:end])
    assert np.array_equal(np.diff(short.indptr), np.minimum(data.sizes[short.query], 3))


def test_a_written_log_is_read_back(tmp_path) -> None:  # type: ignore[no-untyped-def]
    data = _data(4, 5)
    log = simulate_log(data, {"a": data.X[:, 0], "b": data.X[:, 1]}, 300, randomized=0.3, shown=4, random_state=2)
    write_click_log(log, tmp_path / "log.jsonl")
    again = read_click_log(tmp_path / "log.jsonl")
    assert [list(again.documents)[d] for d in again.document] == [list(log.documents)[d] for d in log.document]
    assert np.array_equal(again.order, log.order)
    assert np.array_equal(again.last, log.last)
    assert [again.rankers[r] for r in again.ranker] == [log.rankers[r] for r in log.ranker]  # type: ignore[index, union-attr]
    assert np.array_equal(again.randomized, log.randomized)  # type: ignore[arg-type]


def test_rows_tell_rankers_too(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "log.csv"
    path.write_text(
        "session,qid,docid,position,click,ranker,randomized\n1,q,a,1,0,old,0\n2,q,b,1,1,new,1\n1,q,b,2,1,old,0\n"
    )
    log = read_click_log(path)
    assert [log.rankers[r] for r in log.ranker] == ["old", "new"]  # type: ignore[index, union-attr]
    assert log.randomized.tolist() == [False, True]  # type: ignore[union-attr]
    path.write_text("session,qid,docid,position,click,ranker\n1,q,a,1,0,old\n1,q,b,2,1,new\n")
    with pytest.raises(DataError, match=r"log.csv:3: ranker is 'new', expected 'old' as before in its session"):
        read_click_log(path)


@pytest.mark.parametrize(
    ("users", "message"),
    [
        ({"model": "x"}, "model 'x'"),
        ({"severity": -1}, "severity is -1"),
        ({"agreement": 0.5}, "agreement is 0.5"),
        ({"trust": 1.5}, "trust is 1.5"),
        ({"examination": (1.0, 2.0)}, "examination of position 2 is 2.0"),
    ],
)
def test_users_that_cannot_be(users: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Users(**users)  # type: ignore[arg-type]

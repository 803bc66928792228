"""Evaluations worked by hand."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest
from scipy import stats

from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError
from gradrank.evaluation import evaluate, label_facts
from gradrank.measures import parse_measure

MRR, MAP = parse_measure("MRR"), parse_measure("MAP")

# Four queries: relevant first / second of three; nothing relevant; one document.
LABELS = [0, 1, 0, 1, 1, 0, 0, 0, 1]
QID = ["a", "a", "a", "b", "b", "b", "c", "c", "d"]
GOOD = [1, 3, 2, 3, 2, 1, 1, 2, 0]  # RR 1, 1, 0, 1; AP 1, 1, 0, 1
BAD = [3, 2, 1, 1, 2, 3, 1, 2, 0]  # RR 1/2, 1/2, 0, 1; AP 1/2, (1/2 + 2/3)/2, 0, 1


def small(**more) -> RankingData:
    return RankingData.from_arrays(np.zeros((9, 1)), LABELS, qid=QID, **more)


def test_values_and_means() -> None:
    result = evaluate(small(), {"good": GOOD, "bad": BAD}, [MRR, MAP])
    assert result.systems == ("good", "bad")
    assert list(result.qids) == ["a", "b", "c", "d"]
    assert result.values["bad"][MRR].tolist() == [0.5, 0.5, 0.0, 1.0]
    assert result.values["bad"][MAP] == pytest.approx([0.5, 7 / 12, 0, 1])
    assert result.means() == {
        "good": {"MRR": 0.75, "MAP": 0.75},
        "bad": {"MRR": 0.5, "MAP": pytest.approx(25 / 48)},
    }


def test_summary_has_error_and_interval() -> None:
    summary = evaluate(small(), {"bad": BAD}, [MRR]).summary("bad", MRR)
    sample = [0.5, 0.5, 0.0, 1.0]
    assert summary.queries == 4
    assert summary.standard_error == pytest.approx(stats.sem(sample))
    assert (summary.low, summary.high) == pytest.approx(stats.t.interval(0.95, 3, 0.5, stats.sem(sample)))


def test_queries_left_out_by_the_convention_do_not_count() -> None:
    measure = parse_measure("NDCG(convention=gdeval)@10")
    result = evaluate(small(), {"good": GOOD}, [measure])
    assert np.isnan(result.values["good"][measure]).tolist() == [False, False, True, False]
    assert result.summary("good", measure).queries == 3
    assert result.summary("good", measure).mean == pytest.approx(1.0)
    assert any("leaves out 1 of 4 queries" in note for note in result.notes())


def test_weighted_means() -> None:
    data = small(weight=[3, 1, 0, 4])
    weighted = evaluate(data, {"bad": BAD}, [MRR], weighted=True)
    assert weighted.means()["bad"]["MRR"] == (3 * 0.5 + 1 * 0.5 + 4 * 1.0) / 8
    assert weighted.summary("bad", MRR).queries == 3
    assert evaluate(data, {"bad": BAD}, [MRR]).means()["bad"]["MRR"] == 0.5
    with pytest.raises(DataError, match="no query weights"):
        evaluate(small(), {"bad": BAD}, [MRR], weighted=True)


def test_graded_measures_are_reported_as_their_parts_once() -> None:
    data = small().with_label("clicks", [0.5, 0, 0, 0, 1, 0, 0, 0, 0.25])
    measures = [parse_measure("Graded(NDCG@3, CNDCG(label=clicks)@3)"), parse_measure("NDCG@3")]
    result = evaluate(data, {"good": GOOD}, measures)
    assert [str(measure) for measure in result.measures] == ["NDCG@3", "CNDCG(label=clicks)@3"]
    assert list(result.facts) == ["label", "clicks"]
    assert result.facts["clicks"].no_relevant == 1


def test_rankers_score_the_data_themselves() -> None:
    class Constant:
        def predict(self, data: RankingData) -> np.ndarray:
            return np.array(GOOD, dtype=np.float32)

    assert evaluate(small(), {"ranker": Constant()}, [MRR]).means()["ranker"]["MRR"] == 0.75


def test_documents_not_retrieved() -> None:
    scores = np.array(GOOD, dtype=float)
    scores[[1, 8]] = -np.inf  # the relevant documents of queries a and d
    assert evaluate(small(), {"run": scores}, [MRR]).values["run"][MRR].tolist() == [0, 1, 0, 0]


def test_label_facts_hand_counted() -> None:
    nan = math.nan
    labels = [0, 0, nan, 1, 1, nan, nan, 2, nan, 0, 3, 0]
    qid = ["zero", "zero", "zero", "same", "same", "none", "none", "single", "alone", "a", "a", "lone0"]
    data = RankingData.from_arrays(np.zeros((12, 1)), labels, qid=qid)
    facts = label_facts(data)
    assert facts.queries == 7
    assert facts.no_relevant == 2  # zero, lone0
    assert facts.no_judged == 2  # none, alone
    assert facts.one_label == 2  # zero, same
    assert facts.one_document == 3  # single, alone, lone0


def test_notes_say_the_facts() -> None:
    notes = evaluate(small(), {"good": GOOD}, [MRR]).notes()
    assert notes == [
        "label 'label': of 4 queries 1 without a relevant document, 1 with all labels equal, 1 with one document"
    ]


def test_per_query_csv(tmp_path) -> None:
    path = tmp_path / "values.csv"
    measure = parse_measure("NDCG(convention=gdeval)@10")
    evaluate(small(), {"good": GOOD, "bad": BAD}, [MRR, measure]).write_per_query(path)
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["system", "qid", "MRR", str(measure)]
    assert rows[3] == ["good", "c", "0.0", ""]
    assert [row[:3] for row in rows[5:]] == [
        ["bad", "a", "0.5"],
        ["bad", "b", "0.5"],
        ["bad", "c", "0.0"],
        ["bad", "d", "1.0"],
    ]


def test_to_dict_is_plain() -> None:
    described = evaluate(small(), {"good": GOOD}, [MRR]).to_dict()
    assert described["queries"] == 4
    assert described["weighted"] is False
    assert described["labels"]["label"]["no_relevant"] == 1
    assert described["systems"]["good"]["MRR"]["mean"] == 0.75
    assert described["systems"]["good"]["MRR"]["queries"] == 4


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([1, 2], r"scores of 'x' have shape \(2,\), expected one number for each of 9 documents"),
        ([*GOOD[:-1], math.nan], "score of 'x' for document 9 is nan"),
        ([math.inf, *GOOD[1:]], "score of 'x' for document 1 is inf"),
        (["a"] * 9, "not a number"),
    ],
)
def test_bad_scores(scores, message) -> None:
    with pytest.raises(DataError, match=message):
        evaluate(small(), {"x": scores}, [MRR])


def test_nothing_to_do() -> None:
    with pytest.raises(DataError, match="no system"):
        evaluate(small(), {}, [MRR])
    with pytest.raises(DataError, match="no measure"):
        evaluate(small(), {"x": GOOD}, [])


def test_unknown_label_source() -> None:
    with pytest.raises(DataError, match="no label source 'clicks'"):
        evaluate(small(), {"x": GOOD}, [parse_measure("CNDCG(label=clicks)@3")])

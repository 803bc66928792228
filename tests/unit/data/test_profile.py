from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gradrank.data import profile as module
from gradrank.data.artificial import make_data
from gradrank.data.profile import profile
from gradrank.data.ranking_data import RankingData

NAN = float("nan")


def data_of(labels: list[float], qid: list[str], X: np.ndarray | None = None, **others: object) -> RankingData:
    features = np.arange(2.0 * len(labels)).reshape(-1, 2) + 100 if X is None else X
    return RankingData.from_arrays(features, labels, qid=qid, **others)  # type: ignore[arg-type]


def test_counts_worked_by_hand() -> None:
    found = profile(
        data_of(
            [0, 2, 0, 0, 1, NAN, NAN, 3],
            ["a", "a", "b", "b", "c", "d", "e", "e"],
        )
    )
    assert (found.queries, found.documents, found.features) == (5, 8, 2)
    assert (found.documents_min, found.documents_median, found.documents_max) == (1, 2, 2)
    assert found.queries_with_one_document == 2
    label = found.labels[0]
    assert (label.judged, label.unjudged, label.minimum, label.maximum) == (6, 2, 0, 3)
    assert label.counts == {"0": 3, "1": 1, "2": 1, "3": 1}
    assert label.quantiles is None
    assert label.queries_unjudged == 1  # d
    assert label.queries_without_relevant == 1  # b
    assert label.queries_all_equal == 2  # b, e
    assert label.queries_sorted == 0  # a rises


def test_many_values_are_summed_up_by_quantiles() -> None:
    values = np.arange(101) / 100
    label = profile(data_of(values.tolist(), ["q"] * 101)).labels[0]
    assert label.counts is None
    assert label.quantiles is not None
    assert label.quantiles["0.25"] == pytest.approx(0.25)
    assert label.quantiles["0.99"] == pytest.approx(0.99)


def test_constant_missing_and_leaking_features() -> None:
    labels = [0.0, 1.0, NAN, 2.0]
    X = np.array(
        [
            # f1 constant, f2 the label where judged, f3 partly missing, f4 never there, f5 one value or missing
            [7, 0, 1, NAN, 3],
            [7, 1, NAN, NAN, NAN],
            [7, 9, 3, NAN, 3],
            [7, 2, 4, NAN, 3],
        ]
    )
    found = profile(data_of(labels, ["q"] * 4, X))
    assert found.constant_features == ("f1", "f4")
    assert found.missing == {"f3": 1, "f4": 4, "f5": 1}
    assert found.label_copies == {"f2": "label"}
    assert any("f2 equals label 'label'" in warning for warning in found.warnings)
    assert any("2 of 5 features are constant: f1, f4" in warning for warning in found.warnings)


def test_a_label_with_one_value_has_no_copies() -> None:
    assert profile(data_of([1, 1], ["q", "q"], np.array([[1.0], [1.0]]))).label_copies == {}


def test_blocks_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    data = make_data(30, n_docs=7, n_features=5, clicks=True)
    X = data.X.copy()
    X[::3, 1] = np.nan
    X[:, 2] = 4
    X[:, 3] = data.label()
    data = RankingData.from_arrays(X, dict(data.labels), qid=np.repeat(np.arange(30), 7))
    whole = profile(data)
    monkeypatch.setattr(module, "_BLOCK_BYTES", 4 * 5 * 11)
    assert profile(data) == whole
    assert whole.missing == {"f2": 70}
    assert whole.constant_features == ("f3",)
    assert whole.label_copies == {"f4": "label"}


def test_a_memory_map_is_profiled(tmp_path: Path) -> None:
    X = np.memmap(tmp_path / "x", dtype=np.float32, shape=(4, 2), mode="w+")
    X[:] = np.arange(8).reshape(4, 2)
    data = RankingData.from_arrays(X, [0, 1, 1, 0], qid=["a", "a", "b", "b"])
    assert profile(data).features == 2


def warned(data: RankingData, words: str) -> bool:
    return any(words in warning for warning in profile(data).warnings)


SORTED = "sorted by label"


def test_documents_sorted_by_label_are_noticed() -> None:
    qid = [f"q{k // 3}" for k in range(30)]
    falling = [2, 1, 0] * 10
    assert warned(data_of(falling, qid), SORTED)
    assert warned(data_of([2, NAN, 1] * 10, qid), SORTED)
    # Nine of ten is not more than 90 %.
    assert not warned(data_of([0, 1, 2, *falling[3:]], qid), SORTED)
    assert not warned(data_of([0, 1, 2] * 10, qid), SORTED)
    # A falling step from one query to the next is no order within queries, nor are equal labels.
    assert not warned(data_of([1] * 15 + [0] * 15, qid), SORTED)
    assert profile(data_of(falling, qid)).labels[0].queries_sorted == 10


def test_artificial_data_gives_no_warning() -> None:
    assert profile(make_data(50, n_docs=30, n_features=10, clicks=True, second_graders=0.5)).warnings == ()


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([-1, 1], "is below 0 for 1 document (lowest -1)"),
        ([0, 32], "goes up to 32"),
        ([0, 0.5], "1 documents have a label that is not a whole number"),
        ([NAN, NAN], "no document is judged"),
        ([0, 0], "1 of 1 queries have no relevant document"),
    ],
)
def test_odd_labels_are_warned_of(labels: list[float], words: str) -> None:
    assert warned(data_of(labels, ["q", "q"]), words)
    assert not warned(data_of([0, 31], ["q", "q"]), words)


def test_rates_as_a_second_source_are_nothing_odd() -> None:
    data = data_of([0, 1], ["q", "q"])
    assert not warned(data.with_label("clicks", [0.2, 0.7]), "whole number")
    assert warned(data.with_label("clicks", [0.2, 1.7]), "label 'clicks': 2 documents have a label that is not")


def test_duplicate_documents_within_a_query() -> None:
    data = data_of([0, 1, 0, 1, 2], ["q", "q", "q", "r", "r"], docid=["a", "b", "a", "a", ""])
    found = profile(data)
    assert found.duplicate_documents == 1
    assert any("1 documents occur again" in warning for warning in found.warnings)


def test_very_long_queries() -> None:
    labels = [0.0, 1.0] * 5001
    assert warned(data_of(labels, ["q"] * 10_002), "1 queries have more than 10,000 documents")
    assert not warned(data_of(labels[:10_000], ["q"] * 10_000), "more than 10,000")


def test_data_without_labels() -> None:
    found = profile(RankingData.from_arrays([[1.0]], qid=["q"]))
    assert found.labels == ()
    assert "there are no labels" in found.warnings


def test_the_dictionary_is_json() -> None:
    found = profile(data_of([0, 1, NAN], ["a", "a", "b"]).with_label("rate", [0.1, 0.2, 0.3]))
    again = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert again["labels"][0]["counts"] == {"0": 1, "1": 1}
    assert again["documents_max"] == 2
    assert isinstance(again["warnings"], list)

"""Top-k truth: from grades, orders, preferences; written and read again."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank.data import RankingData
from gradrank.data.formats.letor import read_letor, write_letor
from gradrank.data.formats.topk_files import read_preferences, read_top_k, write_top_k
from gradrank.data.topk import (
    is_top_k,
    top_k_labels,
    top_k_of_order,
    top_k_of_preferences,
    top_k_truth,
    with_preferences,
    with_top_k,
    with_truth,
)
from gradrank.errors import DataError
from gradrank.measures import parse_measure

grades = st.lists(st.sampled_from([0.0, 1.0, 2.0, np.nan]), min_size=1, max_size=12)


@given(st.lists(grades, min_size=1, max_size=4), st.integers(1, 6), st.integers(0, 5))
def test_top_k_respects_the_grades(queries: list[list[float]], k: int, random_state: int) -> None:
    labels = np.array(list(itertools.chain(*queries)), dtype=np.float32)
    indptr = np.concatenate(([0], np.cumsum([len(query) for query in queries])))
    truth = top_k_labels(labels, indptr, k, random_state)
    assert np.array_equal(np.isnan(truth), np.isnan(labels))
    for start, end in itertools.pairwise(indptr):
        known = ~np.isnan(labels[start:end])
        own, grade = truth[start:end][known], labels[start:end][known]
        top = sorted(own[own > 0], reverse=True)
        assert top == [k - place for place in range(min(k, len(own)))]
        for u, v in itertools.permutations(range(len(own)), 2):
            if own[u] > own[v]:
                assert grade[u] >= grade[v]
    if not np.isnan(labels).all():
        assert is_top_k(truth, indptr)


def test_order_among_equal_grades_is_random_but_seeded() -> None:
    labels, indptr = np.zeros(200, dtype=np.float32), np.array([0, 200])
    first = top_k_labels(labels, indptr, 10, random_state=1)
    assert np.array_equal(first, top_k_labels(labels, indptr, 10, random_state=1))
    assert not np.array_equal(first, top_k_labels(labels, indptr, 10, random_state=2))


def test_a_perfect_ranking_has_kappa_ndcg_1() -> None:
    data = with_top_k(RankingData.from_arrays(np.zeros((6, 1)), [0, 2, 1, 0, 2, 0], qid=[1] * 6), k=4, random_state=3)
    truth = data.label("topk")
    assert parse_measure("KappaNDCG(label=topk)@4").mean(truth.astype(float), data) == pytest.approx(1.0)
    assert parse_measure("KappaERR(label=topk)").mean(-truth.astype(float), data) < 0.5


def test_graded_labels_are_not_taken_for_a_top_k_truth() -> None:
    indptr = np.array([0, 3, 6])
    assert not is_top_k(np.array([2, 1, 0, 1, 0, 0], dtype=np.float32), indptr)
    assert is_top_k(np.array([2, 1, 0, 2, 0, 1], dtype=np.float32), indptr)
    assert not is_top_k(np.array([2, 1, 0, 2, 0, 0], dtype=np.float32), indptr)  # a gap before the rest
    assert is_top_k(np.array([3, 2, 1, 2, np.nan, 3], dtype=np.float32), indptr)  # lists shorter than k
    assert not is_top_k(np.full(6, np.nan, dtype=np.float32), indptr)
    assert not is_top_k(np.zeros(6, dtype=np.float32), indptr)


def test_a_truth_is_kept_unless_it_is_longer_than_asked() -> None:
    data = RankingData.from_arrays(np.zeros((5, 1)), [0, 3, 1, 2, 0], qid=[1] * 5)
    assert top_k_truth(data, 10).tolist() == [0, 3, 1, 2, 0]
    assert top_k_truth(data, 2).tolist() == [0, 2, 0, 1, 0]


def test_total_order() -> None:
    data = RankingData.from_arrays(np.zeros((5, 1)), qid=["a", "a", "a", "b", "b"])
    assert top_k_of_order(data, [2, 3, 1, 2, 1], 2).tolist() == [1, 0, 2, 1, 2]
    with pytest.raises(DataError, match="query b: position 1 is given twice"):
        top_k_of_order(data, [2, 3, 1, 1, 1], 2)
    with pytest.raises(DataError, match="2 positions for 5 documents"):
        top_k_of_order(data, [1, 2], 2)


@given(st.permutations(range(7)), st.integers(1, 7), st.randoms())
def test_preferences_of_a_total_order_give_the_order(order: list[int], k: int, random: object) -> None:
    pairs = list(itertools.combinations(order, 2))
    # Neighbors alone tell everything, given that preferences are transitive.
    neighbors = list(itertools.pairwise(order))
    random.shuffle(pairs)  # type: ignore[attr-defined]
    expected = np.zeros(7)
    for place, document in enumerate(order[:k]):
        expected[document] = k - place
    assert np.array_equal(top_k_of_preferences(7, pairs, k), expected)
    assert np.array_equal(top_k_of_preferences(7, neighbors, k), expected)


def test_preferences_in_a_circle_cancel_out() -> None:
    # 0 beats the circle 1 → 2 → 3 → 1, which beats 4.
    labels = top_k_of_preferences(6, [(0, 1), (1, 2), (2, 3), (3, 1), (3, 4)], k=4)
    assert labels[0] == 4
    assert set(labels[1:4]) == {3, 2, 1}
    assert labels[4] == 0
    assert np.isnan(labels[5])
    with pytest.raises(DataError, match="names documents 1 and 1"):
        top_k_of_preferences(2, [(1, 1)], k=1)


def test_preferences_by_document_id_pass_through_documents_that_the_data_lacks() -> None:
    data = RankingData.from_arrays(np.zeros((3, 1)), qid=["q", "q", "r"], docid=["a", "c", "x"])
    labels = with_preferences(data, {"q": [("c", "b"), ("b", "a")]}, k=2).label("topk")
    assert np.array_equal(labels, [1, 2, np.nan], equal_nan=True)


def test_preference_files(tmp_path: Path) -> None:
    path = tmp_path / "judgments.txt"
    path.write_text("q a b a\r\n\r\nq b c tie\r\nr a b b\r\n")
    assert read_preferences(path) == {"q": [("a", "b")], "r": [("b", "a")]}
    path.write_text("q a b a\nq a b z\n")
    with pytest.raises(DataError, match=r"judgments.txt:2: the winner is 'z', expected 'a', 'b' or tie"):
        read_preferences(path)
    path.write_text("q a b\n")
    with pytest.raises(DataError, match=r":1: found 3 words"):
        read_preferences(path)


def test_letor_form_keeps_position_labels(tmp_path: Path) -> None:
    graded = RankingData.from_arrays(np.eye(4), [1, 0, 2, 1], qid=["q"] * 4)
    truth = graded.with_label("label", top_k_labels(graded.label(), graded.indptr, 3, random_state=5))
    write_letor(truth, tmp_path / "truth.txt")
    assert np.array_equal(read_letor(tmp_path / "truth.txt").label(), truth.label())


@pytest.mark.parametrize("docid", [None, ["a", "b", "c", "d", "é"]])
def test_jsonl_and_back(tmp_path: Path, docid: list[str] | None) -> None:
    labels = [0, 2, 1, 1, 2]
    data = RankingData.from_arrays(np.zeros((5, 1)), labels, qid=["q", "q", "q", "r", "r"], docid=docid)
    path = tmp_path / "truth.jsonl.gz"
    write_top_k(data, path)
    assert with_truth(data, read_top_k(path)).label("topk").tolist() == labels


def test_jsonl_that_is_wrong(tmp_path: Path) -> None:
    data = RankingData.from_arrays(np.zeros((2, 1)), [1, 1], qid=["q", "q"])
    with pytest.raises(DataError, match="no top-k truth"):
        write_top_k(data, tmp_path / "x.jsonl")
    assert not (tmp_path / "x.jsonl").exists()
    path = tmp_path / "truth.jsonl"
    for text, message in (
        ('{"query": "q", "top": "a"}', r":1: expected \{"),
        ("[1]", r":1: expected"),
        ('{"query": "q", "top": ["a", "a"]}', "comes twice in its top"),
        ('{"query": "q", "top": ["a"], "rest": ["a"]}', "document 'a' of query 'q' comes twice"),
        ('{"query": "q", "top": ["a"], "k": 0}', r":1: expected"),
        (
            json.dumps({"query": "q", "top": ["a"]}) + "\n" + json.dumps({"query": "q", "top": []}),
            ":2: query 'q' comes",
        ),
    ):
        path.write_text(text)
        with pytest.raises(DataError, match=message):
            read_top_k(path)
    assert path.write_text('{"query": 7, "top": ["a", "b"], "k": 10}\n')
    assert read_top_k(path) == {"7": {"a": 10.0, "b": 9.0}}


def test_k_must_be_a_whole_number() -> None:
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(DataError, match="k is"):
            top_k_labels(np.zeros(1, dtype=np.float32), np.array([0, 1]), wrong)  # type: ignore[arg-type]

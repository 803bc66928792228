"""Labels from similar queries: what is alike, and what that gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank.data.clicks.click_log import click_log
from gradrank.data.clicks.labels import click_labels
from gradrank.data.clicks.similar import _edits, similar_queries, with_similar_queries
from gradrank.errors import DataError


def _named(labels):  # type: ignore[no-untyped-def]
    return {
        (labels.queries[q], labels.documents[d]): value
        for q, d, value in zip(labels.query, labels.document, labels.label.tolist(), strict=True)
    }


def test_likeness_by_clicks_is_the_cosine_of_clicks() -> None:
    log = click_log(
        [("p", ["a", "b"], ["a"])] * 3 + [("p", ["a", "b"], ["b"])] * 4 + [("q", ["a", "c"], ["a"])] * 2
        + [("r", ["c"], ["c"]), ("s", ["a"], [])]
    )  # fmt: skip
    found = similar_queries(click_labels(log, "ctr"), "clicks", threshold=0.01)
    # p has (3, 4) clicks on a and b, q has (2, 0); r shares no clicked document, s has no click.
    assert found == [(0, 1, pytest.approx(3 * 2 / (5 * 2)))]


def test_likeness_by_words() -> None:
    log = click_log([(text, ["a"], []) for text in ("cheap flights rome", "Rome cheap  flights", "cheap hotels", "x")])
    found = similar_queries(click_labels(log), "tokens", threshold=0.2)
    assert [(i, j) for i, j, _ in found] == [(0, 1), (0, 2), (1, 2)]
    assert [likeness for *_, likeness in found] == pytest.approx([1.0, 0.25, 0.25])
    texts = {"cheap hotels": "cheap flights rome"}
    assert similar_queries(click_labels(log), "tokens", texts=texts) == []  # the other queries have no text


def _distance(one: str, two: str) -> int:
    """By its recursion."""
    if not one or not two:
        return len(one) + len(two)
    return min(
        _distance(one[1:], two) + 1, _distance(one, two[1:]) + 1, _distance(one[1:], two[1:]) + (one[0] != two[0])
    )


@given(st.text("ab", max_size=5), st.text("abc", max_size=5), st.integers(0, 6))
def test_edit_distance(one: str, two: str, most: int) -> None:
    expected = _distance(one, two)
    assert _edits(one, two, most) == expected if expected <= most else _edits(one, two, most) > most


def test_labels_of_similar_queries_are_added() -> None:
    sessions = [("flight", ["a", "b"], ["a"])] * 2 + [("flights", ["a", "c"], ["c"])] * 4 + [("news", ["a"], ["a"])]
    labels = click_labels(click_log(sessions), "ctr")
    found = with_similar_queries(labels, "edits", threshold=0.8)
    alike = 1 - 1 / 7
    named = _named(found.labels)
    assert (found.pairs, found.queries_helped, found.labels_before) == (1, 2, 5)
    assert (found.labels_won, found.labels_changed) == (2, 2)
    assert named["flight", "a"] == pytest.approx((2 * 1.0 + alike * 4 * 0.0) / (2 + alike * 4))
    assert named["flight", "c"] == pytest.approx(1.0)
    assert named["flights", "a"] == pytest.approx(alike * 2 / (4 + alike * 2))
    assert named["flights", "b"] == 0.0
    assert named["news", "a"] == 1.0
    assert ("news", "c") not in named
    few = with_similar_queries(labels, "edits", threshold=0.8, min_impressions=3)
    assert np.isnan(_named(few.labels)["flights", "b"])  # 2 sessions of the query that is alike


def test_nothing_alike_changes_nothing() -> None:
    labels = click_labels(click_log([("abc", ["a", "b"], ["a"]), ("xyz", ["c"], [])]), "ctr")
    found = with_similar_queries(labels, "tokens")
    assert (found.pairs, found.labels_won, found.labels_changed) == (0, 0, 0)
    assert _named(found.labels) == _named(labels)
    with pytest.raises(DataError, match="threshold is 0"):
        similar_queries(labels, threshold=0)
    with pytest.raises(DataError, match="likeness 'x' does not exist"):
        similar_queries(labels, "x")  # type: ignore[arg-type]

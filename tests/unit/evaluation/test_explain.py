"""Explaining rankings: which documents are meant, what is said of them, and that it adds up."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import polars as pl
import pytest

from gradrank import explain
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError
from gradrank.models.feature import FeatureRanker
from gradrank.models.linear import LinearRanker
from gradrank.models.weighted_sum import WeightedSum

RANKER = LinearRanker([1.0, -2.0], feature_names=["a", "b"])
# Scores: q1 3, 1, 2 (rows 1, 3, 4); q2 5 (row 2).
DATA = RankingData.from_arrays(
    [[5.0, 1.0], [5.0, 0.0], [1.0, 0.0], [4.0, 1.0]],
    [1, 0, 0, 2],
    qid=["q1", "q2", "q1", "q1"],
    docid=["x", "y", "z", "17"],
    feature_names=["a", "b"],
)


def names(explanation) -> list[tuple[str, str]]:
    return [
        (contrast.document.name, "mean" if contrast.other is None else contrast.other.name)
        for contrast in explanation.contrasts
    ]


@pytest.mark.parametrize(
    ("above", "below"),
    [("x", "z"), ("rank:1", "rank:3"), ("row:1", "row:3"), ("x", "rank:3"), ("row:1", None), (None, "rank:2")],
)
def test_documents_are_named_by_id_rank_or_row(above, below) -> None:
    (contrast,) = explain(RANKER, DATA, "q1", above=above, below=below).contrasts
    assert contrast.document.name == "x"
    assert contrast.document.row == 1
    expected = "z" if below in ("z", "rank:3", "row:3") else "17"
    assert contrast.other is not None
    assert contrast.other.name == expected


def test_an_id_that_is_a_number_is_an_id() -> None:
    (contrast,) = explain(RANKER, DATA, "q1", above=17, below="z").contrasts
    assert (contrast.document.rank, contrast.document.row) == (2, 4)
    assert (contrast.document.label, contrast.document.score) == (2.0, 2.0)
    assert contrast.difference == 1.0
    assert contrast.shares.tolist() == [3.0, -2.0]
    assert contrast.values == (4.0, 1.0)
    assert contrast.other_values == (1.0, 0.0)
    without = RankingData.from_arrays(DATA.X[:3], qid=[1, 1, 1], feature_names=["a", "b"])
    (contrast,) = explain(RANKER, without, above=1, below=3).contrasts
    assert (contrast.document.rank, contrast.document.name, contrast.document.label) == (1, "rank 1", None)


def test_the_top_against_the_next_or_the_mean() -> None:
    assert names(explain(RANKER, DATA, "q1")) == [("x", "17"), ("17", "z")]
    assert names(explain(RANKER, DATA, "q1", top=1)) == [("x", "17")]
    found = explain(RANKER, DATA, "q1", against="mean")
    assert names(found) == [("x", "mean"), ("17", "mean"), ("z", "mean")]
    first = found.contrasts[0]
    assert first.difference == pytest.approx(3.0 - 2.0)
    assert first.shares.tolist() == pytest.approx([5.0 - 10 / 3, -2 * (1.0 - 2 / 3)])
    assert first.other_values == pytest.approx((10 / 3, 2 / 3))


def test_one_below_the_other_is_said() -> None:
    found = explain(RANKER, DATA, "q1", above="z", below="x")
    assert "z (rank 3) stands below x (rank 1) by -2 (1 against 3)" in repr(found)
    assert "stands level with" in repr(explain(FeatureRanker("b", feature_names=["a", "b"]), DATA, "q1", top=1))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"query": "q9"}, "there is no query 'q9'; there are q1, q2"),
        ({}, "there are 2 queries: say which"),
        ({"query": "q1", "above": "xx"}, "query q1 has no document 'xx'; rank:N and row:N"),
        ({"query": "q1", "above": "y"}, "query q1 has no document 'y'"),
        ({"query": "q1", "above": "rank:4"}, "it has ranks of 1 to 3"),
        ({"query": "q1", "above": "rank:0"}, "it has ranks of 1 to 3"),
        ({"query": "q1", "below": "row:2"}, "it has rows of 1 to 4"),
        ({"query": "q1", "above": "x", "below": "rank:1"}, "the same document"),
        ({"query": "q1", "below": "x"}, "nothing stands above it"),
        ({"query": "q1", "above": "z"}, "nothing below document z"),
        ({"query": "q2"}, "has one document"),
        ({"query": "q1", "top": 0}, "top is 0"),
        ({"query": "q1", "against": "best"}, "expected 'next' or 'mean'"),
    ],
)
def test_what_is_not_there_is_told(given, message) -> None:
    with pytest.raises(DataError, match=message):
        explain(RANKER, DATA, **given)


def test_the_forms_hold_the_same_numbers() -> None:
    found = explain(RANKER, DATA, "q1", above="x", below="z")
    value = json.loads(json.dumps(found.to_dict()))
    (contrast,) = value["contrasts"]
    assert contrast["difference"] == 2.0
    assert contrast["rounding"] == 0.0
    assert [(part["name"], part["share"], part["value"], part["against_value"]) for part in contrast["features"]] == [
        ("a", 4.0, 5.0, 1.0),
        ("b", -2.0, 1.0, 0.0),
    ]
    assert [record["share"] for record in found.table().records()] == [4.0, -2.0]
    (table,) = found.tables(top=1)
    assert [row[0] for row in table.rows] == ["a", "1 other features", "all together"]
    assert [row[-1] for row in table.rows] == [4.0, -2.0, 2.0]
    overview = explain(RANKER, DATA, "q1").overview()
    assert overview.rows[0][:4] == (1, "x", "1", 3.0)
    assert overview.rows[0][-1] == "a +1.0000 (5 against 4)"


def test_values_of_a_frame_are_shown_as_they_stand_there() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "qid": np.repeat([1, 2, 3, 4], 25),
            "label": np.tile([0, 1, 2, 0, 1], 20),
            "city": pd.Categorical(np.tile(["Ulm", "Bonn", "Köln", "Ulm", "Jena"], 20)),
            "bm25": rng.normal(size=100),
        }
    ).sample(frac=1.0, random_state=1)
    settings = {"objective": "regression", "min_child_samples": 2, "min_data_per_group": 2, "verbose": -1, "n_jobs": 1}
    model = lightgbm.LGBMRegressor(n_estimators=5, **settings).fit(frame[["city", "bm25"]], frame["label"])
    both = WeightedSum([(2.0, as_trees(model)), (1.0, FeatureRanker("bm25"))])
    scores = both.predict(frame)
    found = explain(both, frame, 2, against="mean", top=25)
    held = frame[frame["qid"] == 2]
    assert len(found.contrasts) == 25
    for contrast in found.contrasts:
        row = contrast.document.row - 1
        assert frame.iloc[row]["qid"] == 2
        assert contrast.document.score == scores[row]
        assert contrast.shares.sum() == pytest.approx(scores[row] - both.predict(held).mean(), abs=1e-12)
        assert contrast.values == (frame.iloc[row]["city"], frame.iloc[row]["bm25"])
        assert contrast.other_values == (None, pytest.approx(held["bm25"].mean()))
    again = explain(both, pl.from_pandas(frame), 2, against="mean", top=25)
    assert again.to_dict() == found.to_dict()


def as_trees(model):
    from gradrank import as_ranker

    return as_ranker(model)


def test_missing_values_are_told() -> None:
    data = RankingData.from_arrays([[1.0, np.nan], [2.0, 0.5]], qid=[1, 1], feature_names=["a", "b"])
    (table,) = explain(RANKER, data).tables()
    assert {row[0]: row[1:3] for row in table.rows[:-1]} == {"b": ("missing", "0.5"), "a": ("1", "2")}


class Tags(HTMLParser):
    """Which elements a page has, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs) -> None:
        self.found.append(tag)

    def handle_data(self, data) -> None:
        self.text += data


def test_hostile_names_stay_text() -> None:
    hostile = "<script>alert(1)</script>"
    data = RankingData.from_arrays(
        [[1.0], [2.0]], qid=[hostile] * 2, docid=[f"{hostile}&\x00", "'\"><img src=x>"], feature_names=[f"{hostile}f"]
    )
    found = explain(LinearRanker([1.0], feature_names=[f"{hostile}f"]), data)
    for page in (found.to_html(page=True), found._repr_html_()):
        tags = Tags(page)
        assert not {"script", "img"} & set(tags.found)
        assert tags.text.count(hostile) >= 3
    assert "\x00" not in found.to_html(page=True)
    assert "+1.0000" in Tags(found.to_html()).text

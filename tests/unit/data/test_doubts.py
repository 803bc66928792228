"""Doubtful data is said to be doubtful, and other data is not."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from gradrank.cli.main import app
from gradrank.data import doubts
from gradrank.data.artificial import make_data
from gradrank.data.doubts import ordering_features, training_doubts
from gradrank.data.formats.registry import write_data
from gradrank.data.profile import profile
from gradrank.data.ranking_data import RankingData
from gradrank.data.strings import Strings

RNG = np.random.default_rng(3)
N_QUERIES, SIZE = 80, 12
QUERY = np.repeat(np.arange(N_QUERIES), SIZE)
LABELS = RNG.integers(0, 4, N_QUERIES * SIZE).astype(np.float64)


def data_with(feature: np.ndarray, labels: np.ndarray = LABELS) -> RankingData:
    noise = np.random.default_rng(0).normal(size=(len(labels), 3))
    return RankingData.from_arrays(np.column_stack([noise, feature]), labels, qid=QUERY[: len(labels)])


def found(feature: np.ndarray, labels: np.ndarray = LABELS) -> list[tuple[str, bool]]:
    return [(item.name, item.reverse) for item in ordering_features(data_with(feature, labels))]


# ---------------------------------------------------------------------- features that order as the label does
def test_features_made_from_the_label_are_found():
    offset = RNG.normal(size=N_QUERIES)[QUERY] * 100
    for feature in (LABELS, np.exp(LABELS), 7 * LABELS + offset, LABELS + RNG.random(len(LABELS)) * 0.9):
        assert found(feature) == [("f4", False)]
        assert found(-feature) == [("f4", True)]


def test_a_value_that_only_relevant_documents_have_is_found():
    binary = (LABELS > 1).astype(float)
    assert found(np.where(binary > 0, 3.0, np.nan), binary) == [("f4", False)]


def test_nearly_perfect_order_is_found_and_a_merely_good_feature_is_not():
    for flipped, expected in ((0.002, [("f4", False)]), (0.1, [])):
        flip = np.random.default_rng(1).random(len(LABELS)) < flipped
        assert found(np.where(flip, 3 - LABELS, LABELS)) == expected


def test_order_between_queries_does_not_count():
    mean = np.bincount(QUERY, LABELS)[QUERY]
    assert found(mean + np.random.default_rng(2).random(len(LABELS))) == []


def test_unjudged_documents_do_not_count():
    labels = np.where(np.random.default_rng(5).random(len(LABELS)) < 0.5, np.nan, LABELS)
    feature = np.where(np.isnan(labels), RNG.normal(size=len(LABELS)) * 100, labels)
    assert found(feature, labels) == [("f4", False)]


def test_a_little_data_proves_nothing():
    few = RankingData.from_arrays(np.random.default_rng(0).random((12, 500)), [0, 1] * 6, qid=np.arange(12) // 2)
    labels = few.label()
    by_chance = [j for j in range(500) if ((few.X[1::2, j] - few.X[::2, j]) > 0).all()]
    assert by_chance  # some do order all six queries
    assert ordering_features(few) == []
    assert ordering_features(RankingData.from_arrays(labels[:, None], labels, qid=np.arange(12) // 2)) == []


def test_nothing_to_order():
    assert ordering_features(RankingData.from_arrays([[1.0], [2.0]], [1, 1], qid=[1, 1])) == []
    assert ordering_features(RankingData.from_arrays(np.empty((2, 0)), [1, 0], qid=[1, 1])) == []


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_features", [3, 20])
def test_artificial_data_raises_no_doubt(seed, n_features):
    data = make_data(60, n_docs=(5, 30), n_features=n_features, random_state=seed)
    valid = make_data(60, n_docs=(5, 30), n_features=n_features, random_state=seed + 100)
    assert training_doubts(data, valid) == []


@given(st.data())
def test_pairs_are_of_one_query_and_in_order(draw):
    sizes = draw.draw(st.lists(st.integers(1, 6), min_size=1, max_size=8))
    values = st.sampled_from([np.nan, 0.0, 1.0, 2.0, -1.0])
    labels = draw.draw(st.lists(values, min_size=sum(sizes), max_size=sum(sizes)))
    data = RankingData.from_arrays(np.zeros((sum(sizes), 1)), labels, group=sizes)
    label = np.array(labels)
    queries = doubts._differing(data, label)
    query = data.query_of_row()
    assert queries.tolist() == [
        q for q in range(len(sizes)) if len(set(label[(query == q) & ~np.isnan(label)].tolist())) > 1
    ]
    if len(queries):
        higher, lower = doubts._pairs(data, label, queries, np.random.default_rng(0))
        assert (query[higher] == query[lower]).all()
        assert (label[higher] > label[lower]).all()
        assert set(query[higher].tolist()) == set(queries.tolist())


def test_shares_are_those_of_all_pairs():
    rng = np.random.default_rng(8)
    X = rng.integers(0, 3, (40, 5)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    higher, lower = rng.integers(0, 40, (2, 3000))
    found = doubts._ordered_share(X, higher, lower, np.array([4, 0, 2]))
    low = np.nan_to_num(X, nan=-9.0)
    for share, column in zip(found, (4, 0, 2), strict=True):
        above, below = low[higher, column], low[lower, column]
        assert share == pytest.approx(
            np.mean([1.0 if a > b else 0.5 if a == b else 0.0 for a, b in zip(above, below, strict=True)])
        )


def test_sentences_about_features():
    [sentence] = training_doubts(data_with(-LABELS))
    assert sentence.startswith(
        "feature 'f4' orders the documents of a query as label 'label' does, in reverse (100.0% of"
    )
    many = RankingData.from_arrays(np.outer(LABELS, np.arange(1, 8)), LABELS, qid=QUERY)
    [sentence] = training_doubts(many)
    assert sentence.startswith("7 features ('f1', 'f2', 'f3', 'f4', 'f5', …) order the documents")


def test_info_tells_of_such_a_feature(tmp_path):
    write_data(data_with(3 * LABELS + 1), tmp_path / "a.txt")
    shown = CliRunner().invoke(app, ["info", str(tmp_path / "a.txt")]).stdout
    assert "! feature 'f4' orders the documents of a query as label 'label' does" in shown
    write_data(data_with(LABELS), tmp_path / "a.txt")
    shown = CliRunner().invoke(app, ["info", str(tmp_path / "a.txt")]).stdout
    assert "f4 equals label 'label' in every judged document" in shown
    assert "orders the documents" not in shown  # once is enough


# ---------------------------------------------------------------------- labels, queries, validation sets
def plain(labels: np.ndarray, qid: np.ndarray | None = None) -> RankingData:
    features = np.random.default_rng(4).normal(size=(len(labels), 3))
    return RankingData.from_arrays(features, labels, qid=QUERY[: len(labels)] if qid is None else qid)


def test_usual_data_raises_no_doubt():
    other = RankingData.from_arrays(np.random.default_rng(9).normal(size=(len(LABELS), 3)), LABELS, qid=QUERY)
    assert training_doubts(plain(LABELS), other) == []


def test_large_labels():
    [sentence] = training_doubts(plain(LABELS * 33.3))
    assert sentence.startswith("label 'label' goes up to 99.9: with gains of 2^label − 1 one such document outweighs")
    assert "NDCG(gain=linear)" in sentence
    assert training_doubts(plain(LABELS * 33.3), exponential=False) == []
    assert training_doubts(plain(LABELS * 10)) == []


@pytest.mark.parametrize("name", ["nan", "NaN", "None", "NULL", "<NA>", "NaT"])
def test_ids_that_are_none(name):
    data = data_with(RNG.normal(size=len(LABELS)))
    assert not [sentence for sentence in training_doubts(data) if "query id" in sentence]
    named = replace(data, qid=Strings.of([name, *list(data.qid)[1:]]))
    assert [sentence.split(" may")[0] for sentence in training_doubts(named)] == [f"query id {name!r}"]
    assert training_doubts(replace(data, qid=Strings.of(["nano", *list(data.qid)[1:]]))) == []


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 1e3, 1e6])
def test_weights_far_from_one(scale):
    weight = np.ones(N_QUERIES)
    weight[::2] = 0.0
    data = data_with(RNG.normal(size=len(LABELS)))
    said = [sentence for sentence in training_doubts(data.with_weight(weight * scale)) if "weights" in sentence]
    assert [sentence.split(" where")[0] for sentence in said] == (
        [] if 1e-4 < scale < 1e4 else [f"weights average {scale:g}"]
    )
    documents = training_doubts(data.with_document_weight(np.full(data.n_docs, scale)))
    assert len(documents) == len(said)


def test_labels_below_zero():
    labels = np.where(LABELS == 0, -1, LABELS)
    [sentence] = training_doubts(plain(labels))
    count = int((labels < 0).sum())
    assert sentence.startswith(f"label 'label' is below 0 for {count} documents (lowest -1): measures count them as 0")
    assert "make it NaN" in sentence


def test_the_source_that_training_reads_counts():
    data = plain(LABELS).with_label("clicks", LABELS * 50)
    assert training_doubts(data) == []
    assert training_doubts(data, source="clicks")[0].startswith("label 'clicks' goes up to 150")


def test_few_queries_to_learn_from():
    assert training_doubts(plain(LABELS[:12]))[0].startswith("the training data has one query only")
    [sentence] = training_doubts(plain(LABELS[:36]))
    assert sentence.startswith("only 3 queries of the training data's 3 have documents with different labels")


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (np.zeros(len(LABELS)), "has no relevant document (label above 0): every model has the same value there"),
        (np.full(len(LABELS), -1.0), "has no relevant document"),
        (np.full(len(LABELS), np.nan), "has no relevant document"),
        (np.ones(len(LABELS)), "has no query with different labels"),
        (LABELS[: 8 * SIZE], "has only 8 queries that can tell rankings apart: what looks best on so few"),
    ],
)
def test_validation_sets_that_choose_nothing(labels, sentence):
    valid = RankingData.from_arrays(
        np.random.default_rng(6).normal(size=(len(labels), 3)), labels, qid=QUERY[: len(labels)]
    )
    assert training_doubts(plain(LABELS), {"v": valid})[0].startswith(f"validation set 'v' {sentence}")
    assert training_doubts(plain(LABELS), valid)[0].startswith(f"the validation data {sentence}")


def test_validation_data_that_was_learned_from():
    train = plain(LABELS)
    for valid in (train, train.take_queries(np.arange(40)), plain(LABELS)):
        [sentence] = training_doubts(train, valid)
        assert sentence.startswith("the validation data holds queries of the training data with the same documents")
    # Other documents under the same numbers are other queries.
    other = RankingData.from_arrays(np.random.default_rng(9).normal(size=(len(LABELS), 3)), LABELS, qid=QUERY)
    assert training_doubts(train, other) == []


@pytest.mark.parametrize(
    ("name", "values", "doubted"),
    [
        ("item_id", np.arange(100), True),
        ("productId", 10**6 + np.arange(100)[::-1], True),
        ("index", np.arange(100), True),
        ("item_id", np.arange(100) + 0.5, False),  # numbers of another kind
        ("brand_id", np.arange(100) % 7, False),  # a category
        ("price", np.arange(100), False),
        ("humid", np.arange(100), False),
    ],
)
def test_features_that_number_documents_are_told(name, values, doubted):
    labels = np.random.default_rng(1).integers(0, 3, 100)
    X = np.column_stack([np.random.default_rng(2).random(100), values])
    data = RankingData.from_arrays(X, labels, qid=np.arange(100) // 5, feature_names=["bm25", name])
    expected = [f"feature '{name}' seems to number documents"] if doubted else []
    assert [sentence.split(":")[0] for sentence in training_doubts(data)] == expected
    assert [sentence.split(":")[0] for sentence in profile(data).warnings] == expected


def test_validation_data_without_the_label_is_left_to_others():
    valid = RankingData.from_arrays(np.zeros((2, 3)), qid=[1, 1])
    assert training_doubts(plain(LABELS), valid) == []
    assert training_doubts(plain(LABELS).with_label("a", LABELS), plain(LABELS[:24]), source="a") == []


def test_no_doubt_warns_by_itself():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert training_doubts(plain(np.full(len(LABELS), np.nan))) == []

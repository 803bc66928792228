"""Ranking data, frames and arrays are all taken for the same data, in any order of rows."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank import (
    auto,
    find_drift,
    k_folds,
    measure_values,
    profile,
    profile_features,
    read_data,
    sample_queries,
    split_queries,
    tune,
    write_data,
)
from gradrank.data.artificial import make_data
from gradrank.data.formats.csv import read_csv
from gradrank.data.formats.parquet import read_parquet
from gradrank.data.frames import from_frame, is_frame, to_frame
from gradrank.data.interpret import as_ranking_data
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError, GradrankWarning
from gradrank.learners import LambdaMART
from gradrank.measures import MRR

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

KINDS = {"pandas": lambda frame: frame, "polars": pl.from_pandas, "arrow": pa.Table.from_pandas}
each_kind = pytest.mark.parametrize("kind", KINDS)


def shuffled(queries: int = 30, seed: int = 1) -> tuple[RankingData, object]:
    """Artificial data, and the same as a frame whose rows come in any order."""
    data = make_data(queries, n_docs=(3, 9), n_features=6, random_state=seed)
    frame = to_frame(data).rename(columns={"qid": "session", "label": "grade"})
    return data, frame.sample(frac=1.0, random_state=seed).reset_index(drop=True)


def same_documents(found: RankingData, expected: RankingData) -> None:
    """Both hold the same queries and documents, whatever their order."""

    def documents(data: RankingData) -> list[tuple[object, ...]]:
        names = [data.qid[query] for query in data.query_of_row()]
        rows = zip(names, data.X.tolist(), *(column.tolist() for column in data.labels.values()), strict=True)
        return sorted((name, tuple(row), *labels) for name, row, *labels in rows)

    assert found.feature_names == expected.feature_names
    assert documents(found) == documents(expected)


@each_kind
def test_every_way_to_say_it_gives_the_same_data(kind):
    data, frame = shuffled()
    features = frame[list(data.feature_names)]
    make = KINDS[kind]
    whole, bare = make(frame), make(features)
    grade, session = frame["grade"], frame["session"]
    ways = [
        as_ranking_data(whole, y="grade", qid="session"),
        as_ranking_data(whole, y={"label": "grade"}, qid="session"),
        as_ranking_data(whole, labels={"label": "grade"}, qid="session"),
        as_ranking_data(whole, y=grade, qid=session),
        as_ranking_data(whole, y={"grade": grade}, qid="session"),
        as_ranking_data(bare, grade, session),
        as_ranking_data(bare, grade.to_numpy(), qid=session.tolist()),
        as_ranking_data(features.to_numpy(), grade, session).__class__.from_arrays(
            features.to_numpy(), grade, qid=session, feature_names=data.feature_names
        ),
    ]
    for way in ways:
        same_documents(way, data)
        assert np.array_equal(way.in_input_order(way.label()), grade.to_numpy(np.float32))
        assert np.array_equal(way.in_input_order(way.X), features.to_numpy(np.float32))


def test_features_of_arrays_have_no_names():
    data = as_ranking_data([[1.0, 2.0], [3.0, 4.0]], {"a": [0, 1], "b": [1, 0]}, qid=["x", "x"])
    assert data.feature_names == ("f1", "f2")
    assert data.label_names == ("a", "b")
    assert as_ranking_data([[1.0], [2.0], [3.0]], group=[2, 1]).sizes.tolist() == [2, 1]


def test_ranking_data_is_taken_as_it_is():
    data, _ = shuffled()
    assert as_ranking_data(data) is data
    weighted = as_ranking_data(data, sample_weight=np.arange(data.n_queries))
    assert weighted.weight.tolist() == list(range(data.n_queries))
    for arguments in ({"y": [1]}, {"qid": [1]}, {"group": [1]}, {"docid": ["a"]}, {"labels": "a"}, {"ignore": ["a"]}):
        with pytest.raises(DataError, match="RankingData holds"):
            as_ranking_data(data, **arguments)


# ---------------------------------------------------------------------- what never becomes a feature
@each_kind
def test_labels_in_a_frame_are_no_features_when_labels_are_given(kind):
    data, frame = shuffled()
    frame["label"] = frame["grade"]
    frame["label:x"] = frame["grade"]
    frame["qid"] = frame["session"]
    frame["docid"] = np.arange(len(frame)).astype(str)
    frame["weight"] = 1.0
    bare = KINDS[kind](frame.drop(columns=["session", "grade"]))
    found = as_ranking_data(bare, frame["grade"].to_numpy(), qid=frame["session"].to_numpy())
    same_documents(found, data)
    frame["clicks"] = 1.0
    crowded = KINDS[kind](frame.drop(columns=["session", "grade"]))
    with pytest.warns(GradrankWarning, match="column 'clicks' looks like"):
        found = as_ranking_data(crowded, frame["grade"].to_numpy(), qid=frame["session"].to_numpy())
    same_documents(found, data)


def test_fit_takes_no_label_column_for_a_feature():
    data, frame = shuffled(60)
    frame["label"] = frame["grade"]
    parameters = {"n_estimators": 5, "num_leaves": 4, "min_child_samples": 5}
    bare = frame.drop(columns=["session", "grade"])
    leaked = LambdaMART("NDCG@5", **parameters).fit(bare, frame["grade"], qid=frame["session"])
    assert leaked.ranker_.feature_names == data.feature_names
    plain = as_ranking_data(frame.drop(columns="label"), y="grade", qid="session")
    honest = LambdaMART("NDCG@5", **parameters).fit(plain)
    assert np.array_equal(leaked.predict(bare), honest.predict(plain))


def test_columns_that_series_were_taken_from_are_no_features():
    data, frame = shuffled()
    same_documents(as_ranking_data(frame, frame["grade"], frame["session"]), data)
    polars = pl.from_pandas(frame)
    same_documents(as_ranking_data(polars, polars["grade"], polars["session"]), data)


@each_kind
def test_text_columns_are_named(kind):
    _, frame = shuffled()
    frame["title"], frame["url"] = "a", "b"
    with pytest.raises(DataError, match=r"feature columns 'title' \(.*string.*\), 'url' \(.*\) do not hold numbers"):
        as_ranking_data(KINDS[kind](frame), y="grade", qid="session")
    with pytest.raises(DataError, match="feature column 'title' holds 'a' in row 1, expected a number"):
        as_ranking_data(KINDS[kind](frame), y="grade", qid="session", ignore=["url"])


def test_the_same_for_files(tmp_path):
    frame = pd.DataFrame(
        {"q": [1, 2, 1], "grade": [0, 1, 2], "clicks": [3, 4, 5], "f": [1.5, 2.5, 3.5], "t": list("abc")}
    )
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "a.csv", index=False)
    for read, path in ((read_parquet, tmp_path / "a.parquet"), (read_csv, tmp_path / "a.csv")):
        with pytest.raises(DataError, match=r"columns 'grade', 'clicks' look like labels"):
            read(path, qid="q", ignore=["t"])
        with pytest.raises(DataError, match="feature column 't' holds 'a' in row 1"):
            read(path, qid="q", labels=["grade", "clicks"])
        data = read(path, qid="q", labels={"g": "grade", "c": "clicks"}, ignore=["t"])
        same_documents(data, from_frame(frame, qid="q", labels={"g": "grade", "c": "clicks"}, ignore=["t"]))
        assert (data.label_names, data.feature_names) == (("g", "c"), ("f",))
        with pytest.warns(GradrankWarning, match=re.escape(f"{path}: column 'grade' looks like")):
            assert read(path, qid="q", labels="clicks", ignore=["t"]).feature_names == ("f",)


# ---------------------------------------------------------------------- weights
@given(st.data())
def test_weights_per_row_and_per_query(draw):
    qids = draw.draw(st.lists(st.integers(0, 4), min_size=1, max_size=20))
    per_query = {qid: float(number + 1) for number, qid in enumerate(dict.fromkeys(qids))}
    X = np.zeros((len(qids), 1))
    expected = list(per_query.values())
    rows = [per_query[qid] for qid in qids]
    assert as_ranking_data(X, qid=qids, sample_weight=expected).weight.tolist() == expected
    assert as_ranking_data(X, qid=qids, sample_weight=rows).weight.tolist() == expected
    frame = pd.DataFrame({"qid": qids, "f": 0.0, "weight": 7.0, "w": rows})
    assert as_ranking_data(frame, sample_weight=rows).weight.tolist() == expected
    assert as_ranking_data(frame, weight="w", ignore=["weight"]).weight.tolist() == expected
    if len(qids) > len(per_query):
        wrong = list(rows)
        wrong[len(qids) - 1 - qids[::-1].index(next(qid for qid in qids if qids.count(qid) > 1))] += 1
        with pytest.raises(DataError, match=r"the weight of query . is .* in one row, expected .* as in its"):
            as_ranking_data(X, qid=qids, sample_weight=wrong)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0], r"have shape \(1,\), expected one number for each of 3 documents or of 2 queries"),
        ([1.0, -1.0], "weight of query 2 is -1.0"),
        ([1.0, np.nan, 1.0], "the weight of query 8 is nan in one row, expected a number of 0 or more"),
        (["a", "b"], "not a number"),
    ],
)
def test_wrong_weights(weight, message):
    with pytest.raises(DataError, match=message):
        as_ranking_data([[1.0], [2.0], [3.0]], qid=[7, 8, 7], sample_weight=weight)


# ---------------------------------------------------------------------- what does not go together
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "no column 'qid'"),
        ({"y": "grade", "labels": "grade", "qid": "session"}, "both y= and labels="),
        ({"y": "grade", "qid": "session", "group": [2]}, "both qid= and group="),
        ({"y": {"a": "grade", "b": [1]}, "qid": "session"}, "y names columns for some label sources"),
        ({"y": "grade", "qid": "query"}, "there is no column 'query' for qid"),
        ({"y": "grades", "qid": "session"}, "there is no column 'grades' for labels"),
        ({"y": "grade", "qid": [1, 2], "ignore": ["session"]}, "qid has shape"),
        ({"y": [1, 2], "qid": "session"}, "label 'label' has shape"),
        ({"y": "grade", "qid": "session", "weight": "f1", "sample_weight": [1.0]}, "both weight= and sample_weight="),
        ({"y": "grade", "qid": "session", "docid": ["a"]}, "1 document ids"),
        ({"y": "grade", "qid": "session", "weight": 5}, "there is no column '5' for weight"),
        ({"y": "grade", "qid": "session", "features": 5}, "there is no column '5' for features"),
    ],
)
def test_wrong_arguments_for_frames(arguments, message):
    _, frame = shuffled()
    with pytest.raises(DataError, match=message):
        as_ranking_data(frame, **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "there are no query ids: give qid="),
        ({"y": "grade", "qid": [1, 1]}, "y is 'grade', but X is a list, which has no named columns"),
        ({"qid": "session"}, "qid is 'session', but X is a list"),
        ({"qid": [1, 1], "labels": "a"}, "X is a list, which has no named columns: labels= goes with frames only"),
        ({"qid": [1, 1], "ignore": ["a"]}, "ignore= goes with frames only"),
        ({"qid": [None, 1]}, "qid of document 1 is missing"),
        ({"qid": [1, pd.NA]}, "qid of document 2 is missing"),
        ({"qid": [1, 1], "group": [2]}, "one of the two"),
    ],
)
def test_wrong_arguments_for_arrays(arguments, message):
    with pytest.raises(DataError, match=message):
        as_ranking_data([[1.0], [2.0]], **arguments)


def test_sparse_matrices():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(DataError, match=r"sparse matrix, expected a dense one \(X\.toarray\(\)\)"):
        as_ranking_data(scipy_sparse.csr_matrix(np.eye(2)), qid=[1, 1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: from_frame(pd.DataFrame({"qid": [1]}), lables="a"),
            r"from_frame\(\) .* 'lables'; did you mean 'labels'",
        ),
        (lambda: RankingData.from_frame(pd.DataFrame({"qid": [1]}), ignored="a"), "did you mean 'ignore'"),
        (lambda: as_ranking_data([[1.0]], q_id=[1]), r"as_ranking_data\(\) has no argument 'q_id'; did you mean 'qid'"),
        (lambda: RankingData.from_arrays([[1.0]], qids=[1]), "did you mean 'qid'"),
        (lambda: from_frame(pd.DataFrame({"qid": [1]}), y="a"), "did you mean 'labels'"),
        (lambda: from_frame(pd.DataFrame({"qid": [1]}), query="a"), "did you mean 'qid'"),
        (lambda: from_frame(pd.DataFrame({"qid": [1]}), feature_names=["a"]), "did you mean 'features'"),
        (lambda: read_csv("a.csv", delimeter=";"), "did you mean 'delimiter'"),
        (lambda: read_parquet("a.parquet", feature=["f"]), "did you mean 'features'"),
    ],
)
def test_misspelt_keywords_name_the_nearest(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_frames_by_protocol():
    class Speaks:
        """A frame of another package, which hands itself over as Arrow data."""

        columns = ("qid", "f")

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return pa.table({"qid": [1, 1], "f": [2.0, 3.0]}).__arrow_c_stream__(requested_schema)

    assert is_frame(Speaks())
    assert as_ranking_data(Speaks()).X.tolist() == [[2.0], [3.0]]
    assert not is_frame(pl.Series([1]))
    assert not is_frame(pa.array([1]))
    assert not is_frame(np.eye(2))


@pytest.mark.parametrize("argument", ["y", "qid", "docid", "sample_weight"])
def test_rows_in_another_order_by_their_index_are_refused(argument):
    _, frame = shuffled()
    features = frame.drop(columns=["session", "grade"])
    given = {
        "y": frame["grade"],
        "qid": frame["session"],
        "docid": pd.Series([f"d{row}" for row in frame.index]),
        "sample_weight": pd.Series(np.ones(len(frame))),
    }
    sorted_rows = np.argsort(frame["grade"].to_numpy(), kind="stable")
    moved = given | {argument: given[argument].iloc[sorted_rows]}
    for X in (features, features.to_numpy()):
        with pytest.raises(DataError, match=rf"{argument if argument != 'y' or X is features else ''} has the rows of"):
            as_ranking_data(X, **moved)
    # All in one order, whatever it is; bare arrays; and rows of other names: by position.
    together = {name: column.iloc[sorted_rows] for name, column in given.items()}
    by_index = as_ranking_data(features.iloc[sorted_rows], **together)
    same_documents(by_index, as_ranking_data(features, **given))
    as_ranking_data(features, **given | {argument: moved[argument].to_numpy()})
    as_ranking_data(features, **given | {argument: moved[argument].set_axis(range(9_000, 9_000 + len(frame)))})


@each_kind
def test_functions_of_ranking_data_take_frames(kind, tmp_path):
    _, frame = shuffled()
    frame = frame.rename(columns={"session": "qid", "grade": "label"})
    table, same = KINDS[kind](frame), from_frame(frame)
    assert profile(table).to_dict() == profile(same).to_dict()
    assert profile_features(table).to_dict() == profile_features(same).to_dict()
    known = profile_features(same)
    assert find_drift(table, known).to_dict() == find_drift(same, known).to_dict()
    for found, expected in (
        (split_queries(table, [0.5, 0.5]), split_queries(same, [0.5, 0.5])),
        ([part for fold in k_folds(table, 3) for part in fold], [part for fold in k_folds(same, 3) for part in fold]),
        ([sample_queries(table, 4)], [sample_queries(same, 4)]),
    ):
        for part, wanted in zip(found, expected, strict=True):
            same_documents(part, wanted)
    write_data(table, tmp_path / "data.gradrank")
    same_documents(read_data(tmp_path / "data.gradrank"), same)
    # Scores stand in the order of the frame's rows: the label as score is the best order there is.
    (values,) = measure_values("NDCG", frame["label"], table).values()
    assert set(np.round(values, 9)) <= {0.0, 1.0}
    assert values.max() == 1.0


def test_tuning_on_a_frame_is_tuning_on_its_data():
    _, frame = shuffled()
    frame = frame.rename(columns={"session": "qid", "grade": "label"})
    options = {"trials": 1, "folds": 2, "fixed": {"n_estimators": 2}, "processes": 1, "refit": False}
    assert tune(frame, **options).best.value == tune(from_frame(frame), **options).best.value


@pytest.mark.parametrize("function", [auto, tune, profile, profile_features, lambda data: split_queries(data, [1.0])])
def test_what_is_neither_data_nor_a_frame_is_one_sentence(function):
    for wrong in ("train.txt", [[1.0]]):
        with pytest.raises(DataError, match="expected RankingData or a frame"):
            function(wrong)


@pytest.mark.parametrize("search", [auto, tune])
def test_a_budget_in_words_is_refused(search):
    with pytest.raises(DataError, match="budget is '1s', expected a positive number of seconds"):
        search(shuffled()[0], budget="1s")


def test_a_path_in_place_of_data_is_told_how_to_be_read(tmp_path):
    for path in ("train.txt", tmp_path / "train.txt"):
        with pytest.raises(DataError, match=r"train.txt', expected data: read_data reads files"):
            LambdaMART().fit(path)


def test_scores_whose_index_has_the_rows_of_the_frame_in_another_order_are_refused():
    frame = pd.DataFrame({"qid": [1, 1, 2, 2], "label": [0, 1, 1, 0], "bm25": [0.1, 0.2, 0.4, 0.3]})
    scores = frame["bm25"]
    assert measure_values("MRR", scores, frame)[MRR()].tolist() == [1.0, 1.0]
    with pytest.raises(DataError, match="scores has the rows of data in another order"):
        measure_values("MRR", scores.iloc[[1, 0, 3, 2]], frame)
    # Rows of other names go by position.
    assert measure_values("MRR", scores.iloc[[1, 0, 3, 2]].reset_index(drop=True), frame)[MRR()].tolist() == [0.5, 0.5]

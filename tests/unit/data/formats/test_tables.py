"""Frames and column files: every value arrives where its column's role says."""

from __future__ import annotations

import datetime
import sys
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradrank.data.formats.arrow import read_arrow, write_arrow
from gradrank.data.formats.csv import read_csv, write_csv
from gradrank.data.formats.parquet import read_parquet, write_parquet
from gradrank.data.frames import from_frame, to_frame
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError, GradrankWarning, MissingExtraError
from tests.support.data import assert_same

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pq = pytest.importorskip("pyarrow.parquet")

COLUMNS = {
    "query_id": ["b", "a", "b"],
    "label:clicks": [5.0, None, 7.0],
    "bm25": [0.5, 1.5, None],
    "label": [1, 0, 2],
    "weight": [2.0, 3.0, 2.0],
    "is_home": [True, False, True],
    "doc_id": [11, 12, 13],
    "length": [100, 200, 300],
}


def pandas_frame(columns: dict[str, list[object]]) -> object:
    return pd.DataFrame(columns)


def polars_frame(columns: dict[str, list[object]]) -> object:
    return pl.DataFrame(columns)


def arrow_frame(columns: dict[str, list[object]]) -> object:
    return pa.table(columns)


def lazy_polars_frame(columns: dict[str, list[object]]) -> object:
    return pl.LazyFrame(columns)


def pandas_arrow_frame(columns: dict[str, list[object]]) -> object:
    return pa.table(columns).to_pandas(types_mapper=pd.ArrowDtype)


def record_batch(columns: dict[str, list[object]]) -> object:
    return pa.RecordBatch.from_pydict(columns)


ALL_KINDS = [pandas_frame, polars_frame, arrow_frame, lazy_polars_frame, pandas_arrow_frame, record_batch]
each_kind = pytest.mark.parametrize("make_frame", ALL_KINDS)


# ---------------------------------------------------------------------- roles by name
@each_kind
def test_roles_by_name(make_frame):
    data = from_frame(make_frame(COLUMNS))
    assert list(data.qid) == ["b", "a"]
    assert data.rows is not None
    assert data.rows.tolist() == [0, 2, 1]
    assert data.feature_names == ("bm25", "is_home", "length")
    assert np.array_equal(data.X, np.float32([[0.5, 1, 100], [np.nan, 1, 300], [1.5, 0, 200]]), equal_nan=True)
    assert data.label_names == ("clicks", "label")  # the first column is the primary one
    assert np.array_equal(data.label("clicks"), np.float32([5, 7, np.nan]), equal_nan=True)
    assert data.label("label").tolist() == [1, 2, 0]
    assert list(data.docid or []) == ["11", "13", "12"]
    assert data.weight is not None
    assert data.weight.tolist() == [2.0, 3.0]


@each_kind
def test_roles_by_argument(make_frame):
    data = from_frame(
        make_frame(COLUMNS),
        qid="doc_id",
        docid="query_id",
        labels={"grade": "label", "money": "length"},
        features=["weight", "bm25"],
    )
    assert list(data.qid) == ["11", "12", "13"]
    assert list(data.docid or []) == ["b", "a", "b"]
    assert data.weight is None  # named as a feature, so no longer the weight
    assert data.feature_names == ("weight", "bm25")
    assert data.X[:, 0].tolist() == [2.0, 3.0, 2.0]
    assert data.label_names == ("grade", "money")
    assert data.label("money").tolist() == [100, 200, 300]


def test_labels_by_argument():
    frame = pandas_frame(COLUMNS)
    with pytest.warns(GradrankWarning, match="column 'label:clicks' looks like"):
        data = from_frame(frame, labels="label")
    assert data.label_names == ("label",)
    assert data.feature_names == ("bm25", "is_home", "length")
    assert from_frame(frame, labels=["label", "label:clicks"]).label_names == ("label", "clicks")
    assert from_frame(frame, labels=()).label_names == ()
    assert from_frame(frame, ignore=["label:clicks", "is_home"]).feature_names == ("bm25", "length")


def test_stored_index_is_no_feature(tmp_path):
    frame = pd.DataFrame({"qid": [1, 1], "f": [1.0, 2.0]}, index=[10, 20])
    frame.to_parquet(tmp_path / "a.parquet", engine="pyarrow")
    assert "__index_level_0__" in pq.read_schema(tmp_path / "a.parquet").names
    assert read_parquet(tmp_path / "a.parquet").feature_names == ("f",)


# ---------------------------------------------------------------------- types
def test_types_of_features():
    table = pa.table(
        {
            "qid": [1, 1, 2],
            "uint64": pa.array([2**63, 0, None], pa.uint64()),
            "int64": pa.array([2**53 + 1, -1, 0], pa.int64()),
            "half": pa.array(np.float16([0.5, 1, 2])),
            "double": pa.array([0.1, float("nan"), None], pa.float64()),
            "decimal": pa.array([Decimal("1.25"), Decimal("-3"), None]),
            "boolean": pa.array([True, None, False]),
            "category": pa.array([7, None, 9]).dictionary_encode(),
            "nothing": pa.nulls(3),
        }
    )
    data = from_frame(table)
    nan = np.nan
    expected = [
        [2.0**63, 0, nan],
        [2.0**53, -1, 0],
        [0.5, 1, 2],
        [np.float32(0.1), nan, nan],
        [1.25, -3, nan],
        [1, nan, 0],
        [7, nan, 9],
        [nan, nan, nan],
    ]
    assert np.array_equal(data.X, np.float32(expected).T, equal_nan=True)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([2.0, 2.0, 1.0], ["2", "1"]),
        ([2.5, 2.5, 1.0], ["2.5", "1"]),
        (["é", "é", "ü"], ["é", "ü"]),
        ([True, True, False], ["true", "false"]),
        (pd.Categorical(["x", "x", "y"], categories=["z", "y", "x"]), ["x", "y"]),
        (pd.Categorical([3, 3, 1]), ["3", "1"]),
    ],
)
def test_types_of_query_ids(values, expected):
    assert list(from_frame(pd.DataFrame({"qid": values, "f": [1.0, 2.0, 3.0]})).qid) == expected


def test_integers_as_column_names():
    frame = pd.DataFrame(np.arange(6.0).reshape(2, 3))
    data = from_frame(frame, qid="0")
    assert data.feature_names == ("1", "2")
    assert data.X.tolist() == [[1, 2], [4, 5]]


def test_sliced_and_chunked_columns():
    halves = [pa.table({"qid": ["a", "b", "b"], "docid": ["1", "22", "333"], "f": [1.0, 2.0, 3.0]}).slice(1)] * 2
    data = from_frame(pa.concat_tables(halves))
    assert list(data.qid) == ["b"]
    assert list(data.docid or []) == ["22", "333", "22", "333"]
    assert data.X[:, 0].tolist() == [2, 3, 2, 3]


# ---------------------------------------------------------------------- round trips
@st.composite
def ranking_data(draw: st.DrawFn, names: st.SearchStrategy[str]) -> RankingData:
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    n_docs, n_features = sum(sizes), draw(st.integers(0, 3))
    numbers = st.floats(width=32, allow_infinity=False)
    labels = draw(st.lists(st.sampled_from(["label", "clicks", "a:b", "label:", "é"]), max_size=3, unique=True))
    text = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), max_size=4)
    qids = draw(st.lists(text, min_size=len(sizes), max_size=len(sizes), unique=True))
    values = draw(st.lists(numbers, min_size=n_docs * n_features, max_size=n_docs * n_features))
    return RankingData.from_arrays(
        np.array(values, dtype=np.float32).reshape(n_docs, n_features),
        {name: draw(st.lists(numbers, min_size=n_docs, max_size=n_docs)) for name in labels},
        qid=[f"{qid}." for qid, size in zip(qids, sizes, strict=True) for _ in range(size)],
        docid=draw(st.none() | st.lists(text, min_size=n_docs, max_size=n_docs)),
        weight=draw(st.none() | st.lists(st.floats(0, 9), min_size=len(sizes), max_size=len(sizes))),
        feature_names=draw(st.lists(names, min_size=n_features, max_size=n_features, unique=True)),
    )


plain_names = st.sampled_from(["f1", "bm25", "body length", "x,y", 'quo"te', "ß"])
# Names that look like roles: only the recorded roles can tell them apart.
any_names = st.sampled_from(["f1", "qid", "qid_", "docid", "weight", "label", "label:clicks", "query_id", "ß"])


@settings(max_examples=50, deadline=None)
@given(ranking_data(any_names))
def test_files_that_carry_roles_lose_nothing(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("frames")
    write_parquet(data, folder / "a.parquet")
    assert_same(read_parquet(folder / "a.parquet"), data)
    write_arrow(data, folder / "a.arrow")
    assert_same(read_arrow(folder / "a.arrow"), data)
    assert_same(from_frame(to_frame(data, "arrow")), data)


@settings(max_examples=50, deadline=None)
@given(ranking_data(plain_names))
def test_frames_and_csv_lose_nothing(tmp_path_factory, data):
    assert_same(from_frame(to_frame(data)), data)
    assert_same(from_frame(to_frame(data, "polars")), data)
    folder = tmp_path_factory.mktemp("frames")
    for name in ("a.csv", "a.tsv.gz"):
        write_csv(data, folder / name)
        assert_same(read_csv(folder / name), data)


@pytest.fixture
def large() -> RankingData:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(3000, 40)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    return RankingData.from_arrays(X, rng.integers(0, 5, 3000), qid=np.arange(3000) // 7)


def test_many_blocks_and_row_groups(large, tmp_path, monkeypatch):
    monkeypatch.setattr("gradrank.data.tables._ROW_GROUP_BYTES", 1024 * 4 * 40)
    monkeypatch.setattr("gradrank.data.tables._BLOCK_BYTES", 300 * 4 * 40)
    write_parquet(large, tmp_path / "a.parquet")
    assert pq.ParquetFile(tmp_path / "a.parquet").num_row_groups == 3
    assert_same(read_parquet(tmp_path / "a.parquet"), large)
    for name, write, read in (("a.feather", write_arrow, read_arrow), ("a.csv.zst", write_csv, read_csv)):
        write(large, tmp_path / name)
        assert_same(read(tmp_path / name), large)


def test_others_read_what_we_write(large, tmp_path):
    write_parquet(large, tmp_path / "a.parquet")
    write_arrow(large, tmp_path / "a.feather")
    write_csv(large, tmp_path / "a.csv")
    frames = [
        pd.read_parquet(tmp_path / "a.parquet"),
        pd.read_feather(tmp_path / "a.feather"),
        pd.read_csv(tmp_path / "a.csv"),
        pl.read_parquet(tmp_path / "a.parquet").to_pandas(),
        pl.read_ipc(tmp_path / "a.feather").to_pandas(),
    ]
    for frame in frames:
        assert list(frame.columns) == ["qid", "label", *large.feature_names]
        assert np.array_equal(frame[list(large.feature_names)].to_numpy(np.float32), large.X, equal_nan=True)
        assert frame["label"].tolist() == large.label().tolist()
        assert frame["qid"].astype(str).tolist() == [str(row // 7) for row in range(3000)]


def test_we_read_what_others_write(tmp_path):
    frame = pd.DataFrame(COLUMNS)
    expected = from_frame(frame)
    frame.to_parquet(tmp_path / "pandas.parquet")
    frame.to_feather(tmp_path / "pandas.feather")
    frame.to_csv(tmp_path / "pandas.csv", index=False)
    pl.DataFrame(COLUMNS).write_parquet(tmp_path / "polars.parquet")
    pl.DataFrame(COLUMNS).write_ipc(tmp_path / "polars.arrow")
    with pa.ipc.new_stream(str(tmp_path / "stream.arrow"), pa.table(COLUMNS).schema) as stream:
        stream.write_table(pa.table(COLUMNS))
    for name in ("pandas.parquet", "polars.parquet"):
        assert_same(read_parquet(tmp_path / name), expected)
    for name in ("pandas.feather", "polars.arrow", "stream.arrow"):
        assert_same(read_arrow(tmp_path / name), expected)
    assert_same(read_csv(tmp_path / "pandas.csv"), expected)


def test_folder_of_parquet_files(tmp_path):
    pq.write_table(pa.table({"qid": [1, 1], "label": [0, 1], "f": [1.0, 2.0]}), tmp_path / "part-1.parquet")
    pq.write_table(pa.table({"qid": [1, 2], "label": [None, 2.0], "f": [3, 4]}), tmp_path / "part-2.parquet")
    (tmp_path / "_SUCCESS").touch()
    data = read_parquet(tmp_path)
    assert data.sizes.tolist() == [3, 1]
    assert data.X[:, 0].tolist() == [1, 2, 3, 4]
    assert np.array_equal(data.label(), np.float32([0, 1, np.nan, 2]), equal_nan=True)
    pq.write_table(pa.table({"qid": [1], "g": [4]}), tmp_path / "part-3.parquet")
    with pytest.raises(DataError, match=r"part-3\.parquet: has other columns than part-1\.parquet"):
        read_parquet(tmp_path)


def test_ids_that_are_not_utf8_are_written_readably(tmp_path):
    from gradrank.data.strings import Strings

    bad = Strings(np.frombuffer(b"\xffx", dtype=np.uint8), np.array([0, 2]))
    data = RankingData.from_arrays([[1.0]], qid=["q"])
    data = RankingData(X=data.X, indptr=data.indptr, labels={}, qid=bad, feature_names=("f1",))
    write_parquet(data, tmp_path / "a.parquet")
    assert list(read_parquet(tmp_path / "a.parquet").qid) == ["\ufffdx"]


def test_edited_table_keeps_what_is_left():
    data = RankingData.from_arrays([[1.0]], {"label": [1], "clicks": [2]}, qid=["q"], docid=["d"])
    table = to_frame(data, "arrow").drop_columns(["docid", "label"])
    edited = from_frame(table)
    assert edited.docid is None
    assert edited.label_names == ("clicks",)


@pytest.mark.parametrize("content", [b"{", b"[1]", b'{"qid": "f"}'])
def test_spoilt_record_of_roles_is_not_used(content):
    table = pa.table({"qid": ["a"], "f": [1.0]}).replace_schema_metadata({b"gradrank": content})
    assert from_frame(table).feature_names == ("f",)


# ---------------------------------------------------------------------- CSV
def test_csv_by_hand(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(
        b"\xef\xbb\xbfqid,docid,label,f1,f 2,flag\r\n"
        b'007,"a,b",1,0.5,,true\r\n'
        b"007,NA,,1e3,NA,false\r\n"
        b"08,x,nan,-1,2,\r\n"
    )
    data = read_csv(path)
    assert list(data.qid) == ["007", "08"]
    assert list(data.docid or []) == ["a,b", "NA", "x"]
    nan = np.nan
    assert np.array_equal(data.label(), np.float32([1, nan, nan]), equal_nan=True)
    assert np.array_equal(data.X, np.float32([[0.5, nan, 1], [1000, nan, 0], [-1, 2, nan]]), equal_nan=True)


def test_csv_with_another_delimiter(tmp_path):
    (tmp_path / "a.csv").write_text("qid;f\n1;2\n")
    assert read_csv(tmp_path / "a.csv", delimiter=";").X.tolist() == [[2]]
    for wrong in ("", "::", "\n", "é"):
        with pytest.raises(DataError, match=r"delimiter is .* expected one character"):
            read_csv(tmp_path / "a.csv", delimiter=wrong)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"a\.csv:1: is empty, expected a header line"),
        ("qid,f\n", r"a\.csv: there are no documents"),
        ("qid,f\n1,2\n1,x\n", r"a\.csv: feature column 'f' holds 'x' in row 2, expected a number"),
        ("qid,f\n1,2\n1\n", r"a\.csv: cannot be read as CSV: .*Expected 2 columns, got 1"),
        ("qid,f\n,2\n", r"a\.csv: qid \(column 'qid'\) is empty in row 1"),
        ("a,b\n1,2\n", r"a\.csv: there is no column 'qid' or 'query_id'.* the columns are 'a', 'b'"),
        ("query,f\n1,2\n", r"'query', 'f'; if the queries are in 'query', say qid='query' \(--qid-column query\)"),
        (",qid,f\n0,1,2\n", r"a\.csv: has a column without a name; if it is a row index, pass ignore="),
        ("qid,f,f\n0,1,2\n", r"a\.csv: column 'f' comes twice"),
        ("qid,label,label:label\n0,1,2\n", r"a\.csv: columns 'label' and 'label:label' both give the label 'label'"),
    ],
)
def test_wrong_csv(tmp_path, content, message):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(DataError, match=message):
        read_csv(tmp_path / "a.csv")


def test_text_late_in_a_csv_is_found(tmp_path):
    (tmp_path / "a.csv").write_text("qid,f\n" + "1,2\n" * 300_000 + "1,x\n")
    with pytest.raises(DataError, match="feature column 'f' holds 'x' in row 300001"):
        read_csv(tmp_path / "a.csv")


def test_csv_header_that_is_not_text(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\xff\xfe\n")
    with pytest.raises(DataError, match=r"a\.csv:1: header is not UTF-8 text"):
        read_csv(tmp_path / "a.csv")


# ---------------------------------------------------------------------- errors
@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"qid": [1], "f": ["x"]}, {}, "feature column 'f' holds 'x' in row 1, expected a number; encode it"),
        ({"qid": [1, 1], "f": [1, 2], "label": ["1", "b"]}, {}, "label column 'label' holds 'b' in row 2"),
        ({"qid": [1], "f": ["1"]}, {}, "feature column 'f' holds values of type .*string, expected numbers"),
        ({"qid": [1], "f": [datetime.date(2020, 1, 1)]}, {}, "feature column 'f' holds values of type date32"),
        ({"qid": [1], "f": [[1, 2]]}, {}, "feature column 'f' holds values of type .*list"),
        ({"qid": [1, None], "f": [1, 2]}, {}, r"qid \(column 'qid'\) is missing in row 2"),
        ({"qid": ["a", ""], "f": [1, 2]}, {}, r"qid \(column 'qid'\) is empty in row 2"),
        # Floating point numbers that stand for several whole ones.
        ({"qid": [1.0, 2.0**53]}, {}, r"qid \(column 'qid'\) is 9007199254740992 in row 2; float64 holds"),
        ({"qid": [1.5, -1e19]}, {}, r"qid \(column 'qid'\) is -1e\+19 in row 2; float64 holds"),
        ({"qid": pa.array([1, 2**24], pa.float32())}, {}, r"is 16777216 in row 2; float32 holds"),
        ({"qid": [1, 1], "docid": [np.inf, 1.0]}, {}, r"docid \(column 'docid'\) is inf in row 1"),
        ({"qid": [[1]], "f": [1]}, {}, "qid column 'qid' holds values of type .*list"),
        ({"qid": [1, 1], "docid": ["a", None]}, {}, r"docid \(column 'docid'\) is missing in row 2"),
        ({"qid": [1, 1], "weight": [1.0, 2.0]}, {}, "of query 1 is 2 in one row, expected 1 as in its first row"),
        ({"qid": [1, 1], "weight": [-1.0, -1.0]}, {}, "of query 1 is -1 in one row, expected a number of 0 or more"),
        ({"qid": [1, 1], "weight": [1.0, None]}, {}, "of query 1 is nan in one row, expected 1 as"),
        ({"qid": [1], "f": [1e39]}, {}, "infinite"),
        ({"qid": [1.0, 2.0**54]}, {}, r"qid \(column 'qid'\) is 18014398509481984 in row 2; float64 holds"),
        ({"qid": np.float32([2**24, 1])}, {}, "is 16777216 in row 1; float32 holds"),
        ({"qid": [1, 1], "docid": [1.0, 2.0**54]}, {}, r"docid \(column 'docid'\) is 18014398509481984"),
        ({"qid": [1, 2, 1], "f": [1, 2, 3]}, {"regroup": False}, "not consecutive"),
        ({"qid": [1]}, {"qid": "q"}, "there is no column 'q' for qid; the columns are 'qid'"),
        ({"qid": [1], "a": [1]}, {"labels": "b"}, "there is no column 'b' for labels"),
        ({"Query": [1], "a": [1]}, {"qid": "qeury"}, r"the columns are 'Query', 'a'; did you mean 'Query'\?"),
        ({"qid": [1], "a": [1]}, {"qid": [1]}, "qid= is of type list, expected the name of a column"),
        ({"qid": [1], "a": [1]}, {"weight": np.ones(1)}, "weight= is of type ndarray, expected the name of a column"),
        ({"qid": [1], "a": [1]}, {"docid": True}, "docid= is of type bool, expected the name of a column"),
        ({"qid": [1], "a": [1]}, {"labels": np.ones(1)}, "labels= is an array of numbers, expected names of columns"),
        ({"qid": [1], "a": [1]}, {"labels": b"a"}, "labels= is of type bytes, expected names of columns"),
        ({"qid": [1], "a": [1]}, {"ignore": [None]}, "ignore= is of type NoneType, expected the name of a column"),
        ({"qid": [1], "a": [1]}, {"features": 1}, "there is no column '1' for features"),
        ({"qid": [1], "a": [1]}, {"labels": "a", "features": ["a"]}, "'a' is named for labels and for features"),
        ({"qid": [1], "a": [1], "label:a": [2]}, {"labels": ["a", "label:a"]}, "both give the label 'a'"),
        ({"f": [1]}, {}, r"there is no column 'qid' or 'query_id', and qid= \(--qid-column\) names no other"),
        ({"qid": pa.array([], pa.int64())}, {}, "there are no documents"),
    ],
)
def test_wrong_frames(columns, options, message):
    with pytest.raises(DataError, match=message):
        from_frame(pa.table(columns), **options)


@pytest.mark.parametrize("wrap", [lambda name: name, np.int64, str], ids=["int", "numpy", "text"])
def test_columns_whose_names_are_numbers(wrap):
    frame = pd.DataFrame([[7, 2, 0.5, 1.5, 9], [8, 1, 2.5, 3.5, 9]])
    data = from_frame(frame, qid=wrap(0), labels=wrap(1), ignore=[wrap(4)])
    assert (data.feature_names, data.qid.to_list(), data.label("1").tolist()) == (("2", "3"), ["7", "8"], [2.0, 1.0])
    chosen = from_frame(frame, qid=wrap(0), labels=[wrap(1)], features=pd.Index([wrap(3)]), weight=wrap(4))
    assert (chosen.X.tolist(), chosen.weight.tolist()) == ([[1.5], [3.5]], [9.0, 9.0])


def test_wrong_pandas_frames():
    with pytest.raises(DataError, match="column 'f' holds values of several types"):
        from_frame(pd.DataFrame({"qid": [1, 1], "f": [1, "x"]}))
    with pytest.raises(DataError, match="column 'f' comes twice"):
        from_frame(pd.DataFrame([[1, 2, 3]], columns=["qid", "f", "f"]))
    with pytest.raises(DataError, match="feature column 'f' holds 'x' in row 1"):
        from_frame(pd.DataFrame({"qid": [1], "f": pd.Categorical(["x"])}))


def test_row_indexes_are_no_features():
    frame = pd.DataFrame({"Unnamed: 0": [0, 1], "qid": [1, 1], "f": [1.0, 2.0]})
    with pytest.raises(DataError, match=r"without a name \('Unnamed: 0'\).*pass ignore=\['Unnamed: 0'\]"):
        from_frame(frame)
    assert from_frame(frame, ignore="Unnamed: 0").feature_names == ("f",)
    assert from_frame(frame, keep="Unnamed: 0").feature_names == ("Unnamed: 0", "f")


@pytest.mark.parametrize("options", [{}, {"qid": "QID"}])
def test_query_ids_in_the_index_are_told(options):
    frame = pd.DataFrame({"f": [1.0, 2.0]}, index=pd.Index([7, 8], name=options.get("qid", "query_id")))
    with pytest.raises(DataError, match=r"are in the frame's index, expected a column: frame.reset_index\(\)"):
        from_frame(frame, **options)
    assert list(from_frame(frame.reset_index(), **options).qid) == ["7", "8"]


def test_one_name_is_not_its_letters():
    frame = pd.DataFrame({"qid": [1, 1], "rating": [3, 4], "bm25": [0.5, 0.7]})
    assert from_frame(frame, keep="rating").feature_names == ("rating", "bm25")
    assert from_frame(frame, ignore="rating").feature_names == ("bm25",)
    assert from_frame(frame, features="bm25").feature_names == ("bm25",)


def test_sparse_columns_are_told():
    with pytest.raises(DataError, match=r"column 'f' is sparse, expected a dense one: \.sparse\.to_dense\(\)"):
        from_frame(pd.DataFrame({"qid": [1, 1], "f": pd.arrays.SparseArray([0.0, 1.0])}))


def test_no_frame():
    with pytest.raises(DataError, match="frame is a list, expected a pandas or polars DataFrame or an Arrow table"):
        from_frame([[1]])
    with pytest.raises(DataError, match="frame is a Series"):
        from_frame(pd.Series([1]))
    with pytest.raises(DataError, match="frame kind is 'spark'"):
        to_frame(RankingData.from_arrays([[1.0]], qid=[1]), "spark")


@pytest.mark.parametrize(
    ("read", "name", "what"), [(read_parquet, "a.parquet", "Parquet"), (read_arrow, "a.arrow", "Arrow")]
)
def test_broken_files(tmp_path, read, name, what):
    with pytest.raises(DataError, match="does not exist"):
        read(tmp_path / name)
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(DataError, match=f"cannot be read as {what}"):
        read(tmp_path / name)
    write = {"Parquet": write_parquet, "Arrow": write_arrow}[what]
    write(RankingData.from_arrays([[1.0]] * 100, qid=[1] * 100), tmp_path / name)
    whole = (tmp_path / name).read_bytes()
    for size in (4, len(whole) // 2, len(whole) - 1):
        (tmp_path / name).write_bytes(whole[:size])
        with pytest.raises(DataError, match=f"cannot be read as {what}"):
            read(tmp_path / name)


def test_folder_without_parquet(tmp_path):
    with pytest.raises(DataError, match=r"holds no \.parquet file"):
        read_parquet(tmp_path)


def test_missing_package(monkeypatch, tmp_path):
    table, polars = arrow_frame(COLUMNS), polars_frame(COLUMNS)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for frame in (table, polars):
        with pytest.raises(MissingExtraError, match=r"pyarrow: pip install 'gradrank\[parquet\]'"):
            from_frame(frame)
    with pytest.raises(MissingExtraError, match=r"pyarrow: pip install 'gradrank\[parquet\]'"):
        read_parquet(tmp_path / "a.parquet")


def test_pandas_frames_need_no_other_package(monkeypatch):
    frame = pandas_frame(COLUMNS)
    frame["nullable"] = pd.array([1, None, 3], dtype="Int64")
    expected = from_frame(frame)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert_same(from_frame(frame), expected)
    frame["title"] = ["a", "b", "c"]
    with pytest.raises(DataError, match="column 'title' does not hold numbers; encode it as numbers, or leave it out"):
        from_frame(frame)


def test_failed_write_leaves_nothing(tmp_path):
    data = RankingData.from_arrays([[1.0]], qid=[1])
    for write in (write_parquet, write_arrow, write_csv):
        with pytest.raises(DataError, match="cannot be written"):
            write(data, tmp_path / "nowhere" / "a")
    assert list(tmp_path.iterdir()) == []


def test_csv_keeps_the_sign_of_zero(tmp_path):
    data = RankingData.from_arrays([[-0.0, 1.0], [0.0, -0.0]], [0, 1], qid=[1, 1])
    write_csv(data, tmp_path / "a.csv")
    read = read_csv(tmp_path / "a.csv")
    assert np.signbit(read.X).tolist() == [[True, False], [False, True]]

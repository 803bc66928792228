"""A file that is converted by blocks becomes the folder that the whole data in memory becomes, byte for byte."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradrank import RankingData, read_data, write_data
from gradrank.data.formats.registry import format_to_read
from gradrank.data.streaming.labels import read_labels
from gradrank.data.streaming.source import Source
from gradrank.data.streaming.sources import open_source
from gradrank.data.streaming.to_binary import convert_to_binary
from gradrank.errors import DataError, GradrankWarning
from tests.support.commands import content_of


def _source(path: Path, **options: Any) -> Source:
    form = options.pop("format", None)
    return open_source(path, format_to_read(path, form), options)


def test_ids_that_are_too_large_for_floating_point_numbers_are_refused_by_blocks_too(tmp_path: Path) -> None:
    table = pytest.importorskip("pyarrow").table({"qid": [1.0, 2.0**53, 2.0**53 + 2], "f": [1, 2, 3]})
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "a.parquet", row_group_size=1)
    message = r"a\.parquet: qid \(column 'qid'\) is 9007199254740992 in row 2; float64 holds"
    with pytest.raises(DataError, match=message):
        convert_to_binary(_source(tmp_path / "a.parquet"), tmp_path / "b.gradrank")
    with pytest.raises(DataError, match=message):
        read_data(tmp_path / "a.parquet")


def _same_folder(path: Path, tmp_path: Path, **options: Any) -> bool:
    """Convert in memory and by blocks, compare; whether rows had to move."""
    whole = read_data(path, **options)
    write_data(whole, tmp_path / "whole.gradrank")
    moved = convert_to_binary(_source(path, **options), tmp_path / "blocks.gradrank")
    assert content_of(tmp_path / "blocks.gradrank") == content_of(tmp_path / "whole.gradrank")
    assert moved == (whole.rows is not None)
    options.pop("format", None)
    return moved


def _data(seed: int = 0, *, kind: str = "float32", extras: bool = False, interleaved: bool = False) -> RankingData:
    rng = np.random.default_rng(seed)
    n = 61
    X = rng.normal(size=(n, 4)).round(3)
    X[rng.random(X.shape) < 0.2] = 0.0
    if kind == "seconds":  # whole numbers that float32 changes, in one row of the last block
        X[:, 2] = 1.0
        X[-1, 2] = 1_700_000_001
    if kind == "digits":  # distinct numbers that float32 makes equal
        X[:, 1] = 1.0 + rng.permutation(n) * 1e-9
    qid = rng.integers(0, 9, n) if interleaved else np.sort(rng.integers(0, 9, n))
    labels: Any = {"label": rng.integers(0, 4, n)}
    more: dict[str, Any] = {}
    if extras:
        X[rng.random(X.shape) < 0.1] = np.nan
        labels["clicks"] = np.where(rng.random(n) < 0.3, np.nan, rng.random(n))
        more["docid"] = [f"d{'é' * (row % 3)}{row}" for row in range(n)]
    return RankingData.from_arrays(X, labels, qid=[f"q{q}" for q in qid], **more)


def _frame(data: RankingData) -> Any:
    """The rows in an order that has queries interleaved."""
    frame = data.to_frame("pandas")
    return frame.iloc[np.random.default_rng(1).permutation(len(frame))]


@pytest.mark.parametrize("kind", ["float32", "seconds", "digits"])
@pytest.mark.parametrize("suffix", [".txt", ".txt.gz", ".txt.zst", ".csv", ".tsv.xz", ".parquet", ".arrow"])
def test_every_format(tmp_path: Path, suffix: str, kind: str) -> None:
    path = tmp_path / f"a{suffix}"
    write_data(_data(kind=kind), path)
    assert not _same_folder(path, tmp_path)
    assert read_data(tmp_path / "blocks.gradrank").X.dtype == ("float32" if kind == "float32" else "float64")


@pytest.mark.parametrize("kind", ["float32", "seconds"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_interleaved_tables_with_ids_weights_and_gaps(tmp_path: Path, suffix: str, kind: str) -> None:
    frame = _frame(_data(kind=kind, extras=True).with_weight(np.arange(9.0)))
    path = tmp_path / f"a{suffix}"
    if suffix == ".csv":
        frame.to_csv(path, index=False)
    elif suffix == ".parquet":
        frame.to_parquet(path, index=False, row_group_size=10)
    else:
        frame.reset_index(drop=True).to_feather(path)
    assert _same_folder(path, tmp_path)


def test_a_folder_of_parquet_files_whose_types_differ(tmp_path: Path) -> None:
    folder = tmp_path / "a.parquet"
    folder.mkdir()
    frame = _frame(_data()).assign(qid=lambda frame: frame["qid"].str[1:].astype(int))
    frame[:20].to_parquet(folder / "part-0.parquet", index=False)
    frame[20:40].astype({"qid": "float64"}).to_parquet(folder / "part-1.parquet", index=False)
    frame[40:].astype({"f1": "float32", "f2": "float32", "f3": "float32", "f4": "float32"}).to_parquet(
        folder / "part-2.parquet", index=False
    )
    assert _same_folder(folder, tmp_path)


@pytest.mark.parametrize("kind", ["float32", "seconds"])
def test_interleaved_letor(tmp_path: Path, kind: str) -> None:
    write_data(_data(kind=kind, extras=True), tmp_path / "sorted.txt")
    lines = (tmp_path / "sorted.txt").read_text().splitlines()
    np.random.default_rng(2).shuffle(lines)
    text = "# a comment first\n\n" + "\n".join(lines)  # and no newline at the end
    (tmp_path / "a.txt").write_text(text)
    assert _same_folder(tmp_path / "a.txt", tmp_path, missing=True)


def test_a_highest_index_that_does_not_end_its_line(tmp_path: Path) -> None:
    lines = [f"{row % 3} qid:{row // 4} 1:{row} 2:1" for row in range(80)]
    lines[70] = "1 qid:17 9:5 1:2"
    (tmp_path / "a.txt").write_text("\n".join(lines))
    _same_folder(tmp_path / "a.txt", tmp_path)
    assert read_data(tmp_path / "blocks.gradrank").n_features == 9


def test_group_sizes_and_options_of_letor(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"{row % 3} 0:{row} 2:nan\n" for row in range(60)))
    (tmp_path / "a.txt.query").write_text("20\n39\n1\n")
    _same_folder(tmp_path / "a.txt", tmp_path, missing=True, zero_based=True, n_features=5)
    _same_folder(tmp_path / "a.txt", tmp_path, missing=True, absent_missing=True, zero_based=True, n_features=5)


def test_csv_with_true_and_false_blank_lines_and_a_mark(tmp_path: Path) -> None:
    rows = "".join(f"{row // 9},{row % 2},{'true' if row % 3 else 'FALSE'},{row}.5\r\n" for row in range(90))
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbfqid,label,flag,x\r\n" + rows.encode() + b"\r\n\r\n")
    assert not _same_folder(tmp_path / "a.csv", tmp_path)


def test_csv_with_true_among_other_numbers_is_refused(tmp_path: Path) -> None:
    rows = [f"{row // 9},{row % 2},{row}" for row in range(90)]
    rows[80] = "8,1,true"
    (tmp_path / "a.csv").write_text("\n".join(["qid,label,x", *rows]))
    with pytest.raises(DataError, match="'x' holds"):
        read_data(tmp_path / "a.csv")
    with pytest.raises(DataError, match="'x' holds"):
        convert_to_binary(_source(tmp_path / "a.csv"), tmp_path / "b.gradrank")
    assert not (tmp_path / "b.gradrank").exists()


cells = st.sampled_from(
    ["0", "1", "-0", "-0.0", "0.5", "16777217", "-3.25", "1e-3", "0.1000000001", "9007199254740993"]
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), cells, cells), min_size=1, max_size=40))
def test_any_text(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, str, str]]) -> None:
    folder = tmp_path_factory.mktemp("any")
    text = "".join(f"{label} qid:{q} 1:{a} 2:{b}\n" for q, label, a, b in rows)
    (folder / "a.txt").write_text(text)
    _same_folder(folder / "a.txt", folder)
    (folder / "a.csv").write_text("qid,label,a,b\n" + "".join(f"{q},{label},{a},{b}\n" for q, label, a, b in rows))
    _same_folder(folder / "a.csv", folder)


FAULTS = {
    "bad.txt": "1 qid:1 1:0.5\n" * 100 + "1 qid:1 1:x\n" + "1 qid:1 1:0.5\n" * 100,
    "twice.txt": "# c\n" * 30 + "1 qid:1 1:0.5\n" * 100 + "1 qid:1 1:0 1:1\n",
    "noqid.txt": "1 qid:1 1:0.5\n" * 100 + "1 1:0\n",
    "infinite.csv": "qid,label,x\n" + "1,1,2\n" * 200 + "1,1,inf\n",
    "word.csv": "qid,label,x\n" + "1,1,2\n" * 200 + "1,1,two\n" + "1,1,2\n" * 200,
    "label.csv": "qid,label,x\n" + "1,1,2\n" * 200 + "1,high,2\n",
    "empty.csv": "qid,label,x\n" + "1,1,2\n" * 200 + ",1,2\n",
    "none.txt": "# nothing\n",
    "weight.csv": "qid,label,weight,x\n" + "1,1,2,3\n" * 200 + "1,1,3,3\n",
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_said_as_by_the_reader(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(FAULTS[name])
    with pytest.raises(DataError) as whole:
        read_data(path)
    with pytest.raises(DataError) as blocks:
        convert_to_binary(_source(path), tmp_path / "b.gradrank")
    assert str(blocks.value) == str(whole.value)
    assert list(tmp_path.iterdir()) == [path]


def test_a_line_of_csv_with_too_few_fields_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("qid,label,x\n" + "1,1,2\n" * 300 + "1,1\n" + "1,1,2\n" * 300)
    with pytest.raises(DataError, match=r"a\.csv:302: .*Expected 3 columns, got 2"):
        convert_to_binary(_source(path), tmp_path / "b.gradrank")


@pytest.mark.parametrize("suffix", [".txt", ".csv"])
def test_strict_order(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    queries = [*("1" * 50), *("2" * 60), "1", "3"]
    lines = [f"1 qid:{q} 1:2" if suffix == ".txt" else f"{q},1,2" for q in queries]
    path.write_text("\n".join(lines if suffix == ".txt" else ["qid,label,x", *lines]))
    with pytest.raises(DataError) as whole:
        read_data(path, regroup=False)
    with pytest.raises(DataError) as blocks:
        convert_to_binary(_source(path, regroup=False), tmp_path / "b.gradrank", regroup=False)
    assert str(blocks.value) == str(whole.value)


def test_columns_that_look_like_labels_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("qid,label,clicks,x\n" + "1,1,0,2\n1,0,0,3\n" * 100)
    with pytest.warns(GradrankWarning, match="clicks"):
        convert_to_binary(_source(path, labels=["label"]), tmp_path / "b.gradrank")


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_compressed_data_that_is_cut_short(tmp_path: Path, suffix: str) -> None:
    text = "".join(f"1 qid:{row} 1:{row * 7919 % 10007}\n" for row in range(3000)).encode()
    packed = gzip.compress(text) if suffix == ".gz" else zstandard.ZstdCompressor().compress(text)
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataError, match="cut short or corrupt"):
        convert_to_binary(_source(path), tmp_path / "b.gradrank")
    path.write_bytes(packed + (gzip.compress(b"0 qid:x 1:1\n") if suffix == ".gz" else packed))
    _same_folder(path, tmp_path)  # several members or frames are one text


@pytest.mark.parametrize("suffix", [".txt", ".csv", ".parquet", ".arrow"])
def test_labels_alone(tmp_path: Path, suffix: str) -> None:
    data = _data(extras=suffix != ".txt", interleaved=True)
    path = tmp_path / f"a{suffix}"
    if suffix == ".csv":
        _frame(data).to_csv(path, index=False)
    else:
        write_data(data, path)
    whole, labels = read_data(path), read_labels(_source(path))
    assert labels.n_features == 0
    assert (labels.qid, labels.docid) == (whole.qid, whole.docid)
    np.testing.assert_array_equal(labels.indptr, whole.indptr)
    np.testing.assert_array_equal(labels.rows, whole.rows)
    assert list(labels.labels) == list(whole.labels)
    for name in whole.labels:
        np.testing.assert_array_equal(labels.label(name), whole.label(name))

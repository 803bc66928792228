"""The binary folder gives back what was written, and notices what is broken."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradrank.data.formats.binary import open_binary, write_binary, write_binary_blocks
from gradrank.data.formats.binary_layout import MANIFEST
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError
from tests.support.data import assert_same


def example() -> RankingData:
    return RankingData.from_arrays(
        [[1.0, np.nan], [2.5, 0.0], [-3.0, 4.0]],
        {"label": [0, np.nan, 2], "cliques à deux": [1, 2, np.nan]},
        qid=["é", "é", "b"],
        docid=["d1", "", "d3"],
        weight=[0.5, 2.0],
        feature_names=["bm25", "länge"],
    )


@st.composite
def ranking_data(draw: st.DrawFn) -> RankingData:
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    n_docs, n_features = sum(sizes), draw(st.integers(0, 3))
    numbers = st.floats(width=32, allow_infinity=False)
    labels = draw(st.lists(st.text(min_size=1, max_size=3), max_size=2, unique=True))
    text = st.text(st.characters(codec="utf-8"), max_size=4)
    qids = draw(st.lists(text, min_size=len(sizes), max_size=len(sizes), unique=True))
    # numpy drops NUL characters at the end of strings, before gradrank sees them.
    qids = [f"{qid}." for qid in qids]
    return RankingData.from_arrays(
        np.array(
            draw(st.lists(numbers, min_size=n_docs * n_features, max_size=n_docs * n_features)), dtype=np.float32
        ).reshape(n_docs, n_features),
        {name: draw(st.lists(numbers, min_size=n_docs, max_size=n_docs)) for name in labels},
        qid=[qid for qid, size in zip(qids, sizes, strict=True) for _ in range(size)],
        docid=draw(st.none() | st.lists(text, min_size=n_docs, max_size=n_docs)),
        weight=draw(st.none() | st.lists(st.floats(0, 9), min_size=len(sizes), max_size=len(sizes))),
    )


@settings(max_examples=50, deadline=None)
@given(ranking_data())
def test_round_trip(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("binary") / "a.gradrank"
    write_binary(data, path)
    assert_same(open_binary(path), data)


def test_arrays_are_maps_of_the_files(tmp_path):
    path = tmp_path / "a.gradrank"
    write_binary(example(), path)
    data = open_binary(path)
    assert isinstance(data.X, np.memmap)
    assert Path(str(data.X.filename)).name == "X.bin"
    with pytest.raises(ValueError, match="read-only"):
        data.X[0, 0] = 1
    # The layout is plain: any tool can read it.
    assert np.fromfile(path / "X.bin", dtype="<f4").tolist()[2:] == [2.5, 0.0, -3.0, 4.0]
    assert np.fromfile(path / "indptr.bin", dtype="<i8").tolist() == [0, 2, 3]
    assert (path / "qid.text.bin").read_text(encoding="utf-8") == "éb"


def test_a_map_is_written_again(tmp_path, monkeypatch):
    monkeypatch.setattr("gradrank.data.formats.array_file._COPY_BYTES", 8)  # one row at a time
    write_binary(example(), tmp_path / "a.gradrank")
    write_binary(open_binary(tmp_path / "a.gradrank"), tmp_path / "b.gradrank")
    assert_same(open_binary(tmp_path / "b.gradrank"), example())


def test_blocks_are_joined(tmp_path):
    data = example()
    write_binary_blocks((data.take_queries([query]) for query in range(2)), tmp_path / "a.gradrank")
    assert_same(open_binary(tmp_path / "a.gradrank"), data)


def test_blocks_that_do_not_fit_leave_the_old_folder(tmp_path):
    path = tmp_path / "a.gradrank"
    write_binary(example(), path)
    with pytest.raises(DataError, match="query é of block 2 is in an earlier part too"):
        write_binary_blocks([example(), example()], path)
    assert_same(open_binary(path), example())
    with pytest.raises(DataError, match="no documents to write"):
        write_binary_blocks([], path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.gradrank"]


def test_replacing_while_the_old_one_is_open(tmp_path):
    path = tmp_path / "a.gradrank"
    write_binary(example(), path)
    old = open_binary(path)
    write_binary(example().take_queries([1]), path)
    assert_same(old, example())
    assert open_binary(path).n_queries == 1


def test_a_folder_of_other_files_is_not_replaced(tmp_path):
    path = tmp_path / "papers.gradrank"
    path.mkdir()
    (path / "thesis.txt").write_text("years of work")
    with pytest.raises(DataError, match="folder of other files, which would be lost"):
        write_binary(example(), path)
    assert (path / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize("name", ["X", "indptr", "label-1", "weight", "qid.text", "docid.offsets"])
def test_cut_off_and_missing_files(tmp_path, name):
    path = tmp_path / "a.gradrank"
    write_binary(example(), path)
    file = path / f"{name}.bin"
    size = file.stat().st_size
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(DataError, match=rf"{name}.bin: has {size - 1} bytes, expected {size}: the file was cut off"):
        open_binary(path)
    file.unlink()
    with pytest.raises(DataError, match=rf"{name}.bin: cannot be opened: No such file"):
        open_binary(path)


def edit_manifest(path: Path, **changes: object) -> None:
    manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    (path / MANIFEST).write_text(json.dumps(manifest | changes), encoding="utf-8")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "other"}, "is not one of gradrank-data"),
        ({"version": 2}, "has format version 2, this gradrank reads version 1"),
        ({"arrays": {}}, "does not name the array 'X'"),
        ({"arrays": None}, "has no table of arrays"),
        ({"arrays": {"X": {"dtype": "nonsense", "shape": [1]}}}, "does not name the array 'indptr'"),
        ({"labels": ["a", "b", "c"]}, "does not name the array 'label-2'"),
        ({"labels": ["a"]}, "names an array 'label-1', which gradrank-data does not have"),
        ({"labels": [["a"], 2]}, "has no list of names as 'labels'"),
        ({"labels": ["a", "a"]}, "gives 'a' twice among its labels"),
        ({"features": ["one"]}, "there are 1 feature names for 2 features"),
        ({"features": ["one", "one"]}, "gives 'one' twice among its features"),
        ({"features": None}, "has no list of names as 'features'"),
    ],
)
def test_wrong_manifest(tmp_path, changes, message):
    path = tmp_path / "a.gradrank"
    write_binary(example(), path)
    edit_manifest(path, **changes)
    with pytest.raises(DataError, match=message):
        open_binary(path)


def test_files_of_other_data(tmp_path):
    write_binary(example(), tmp_path / "a.gradrank")
    (tmp_path / "a.gradrank" / "indptr.bin").write_bytes(np.array([0, 3, 3], dtype="<i8").tobytes())
    with pytest.raises(DataError, match="do not fit together"):
        open_binary(tmp_path / "a.gradrank")


def test_no_such_folder(tmp_path):
    with pytest.raises(DataError, match=r"a\.gradrank: does not exist"):
        open_binary(tmp_path / "a.gradrank")
    with pytest.raises(DataError, match=r"holds no manifest.json"):
        open_binary(tmp_path)
    (tmp_path / MANIFEST).write_text("{")
    with pytest.raises(DataError, match=r"manifest.json cannot be read"):
        open_binary(tmp_path)
    with pytest.raises(DataError, match="cannot be written"):
        write_binary(example(), tmp_path / "nowhere" / "a.gradrank")


def edit_array(path: Path, name: str, **changes: object) -> None:
    arrays = json.loads((path / MANIFEST).read_text(encoding="utf-8"))["arrays"]
    arrays[name] = arrays.get(name, {}) | changes
    edit_manifest(path, arrays=arrays)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("X", {"dtype": "|O8"}, r"'X' is of type '\|O8', expected <f4 or <f8"),
        ("label-0", {"dtype": "<i4"}, "'label-0' is of type '<i4', expected <f4"),
        ("indptr", {"dtype": "<u8"}, "'indptr' is of type '<u8', expected <i8"),
        ("qid.text", {"dtype": "|S1"}, "'qid.text' is of type"),
        ("weight", {"dtype": ["<f8"]}, "'weight' is of type"),
        ("X", {"shape": [-1, -6]}, "expected 2 whole numbers"),
        ("X", {"shape": [6]}, "expected 2 whole numbers"),
        ("X", {"shape": [3.0, 2]}, "expected 2 whole numbers"),
        ("X", {"shape": [True, 6]}, "expected 2 whole numbers"),
        # 2^63 rows of 2 float32 are 0 bytes to arithmetic that wraps around.
        ("X", {"shape": [2**62, 2]}, "has 24 bytes, expected 36893488147419103232"),
        ("X", {"shape": [2**64, 0]}, "expected 2 whole numbers"),
        ("../label-0", {"dtype": "<f4", "shape": [3]}, r"names an array '\.\./label-0'"),
        ("/etc/passwd", {"dtype": "|u1", "shape": [3]}, "names an array '/etc/passwd'"),
    ],
)
def test_arrays_of_other_types_and_shapes(tmp_path, name, changes, message):
    path = tmp_path / "a.gradrank"
    write_binary(example(), path)
    edit_array(path, name, **changes)
    with pytest.raises(DataError, match=message):
        open_binary(path)


@pytest.mark.parametrize(
    ("name", "numbers", "message"),
    [
        # Differences of neighbors wrap around to positive numbers.
        ("indptr", [0, 2**63 - 1, 3], "do not fit together"),
        ("indptr", [0, -(2**63), 3], "do not fit together"),
        ("indptr", [1, 2, 3], "do not fit together"),
        ("qid.offsets", [0, 2**40, 3], "offsets of 'qid' do not lie within its text"),
        ("qid.offsets", [-1, 2, 3], "offsets of 'qid' do not lie within its text"),
        ("qid.offsets", [0, 2, 4], "offsets of 'qid' do not lie within its text"),
        ("docid.offsets", [0, 2**62, -(2**62), 3], "offsets of 'docid' do not lie within its text"),
    ],
)
def test_numbers_that_kernels_would_trust(tmp_path, name, numbers, message):
    path = tmp_path / "a.gradrank"
    write_binary(example(), path)
    (path / f"{name}.bin").write_bytes(np.array(numbers, dtype="<i8").tobytes())
    with pytest.raises(DataError, match=message):
        open_binary(path)


@pytest.mark.parametrize(
    ("name", "dtype", "value", "message"),
    [
        ("weight", "<f8", np.nan, "weight of query 1 is nan"),
        ("weight", "<f8", -1.0, "weight of query 1 is -1"),
        ("label-0", "<f4", np.inf, "of document 1 is infinite"),
    ],
)
def test_labels_and_weights_are_checked(tmp_path, name, dtype, value, message):
    path = tmp_path / "a.gradrank"
    write_binary(example(), path)
    numbers = np.fromfile(path / f"{name}.bin", dtype=dtype)
    numbers[0] = value
    numbers.tofile(path / f"{name}.bin")
    with pytest.raises(DataError, match=message):
        open_binary(path)


def test_a_mere_claim_of_documents(tmp_path):
    path = tmp_path / "a.gradrank"
    write_binary(RankingData.from_arrays(np.empty((2, 0)), qid=[1, 1]), path)
    edit_array(path, "X", shape=[10**15, 0])
    (path / "indptr.bin").write_bytes(np.array([0, 10**15], dtype="<i8").tobytes())
    with pytest.raises(DataError, match="do not fit together"):
        open_binary(path)


@pytest.mark.parametrize("name", ["X.bin", MANIFEST])
def test_links_out_of_the_folder(tmp_path, name):
    path = tmp_path / "a.gradrank"
    write_binary(example(), path)
    (path / name).replace(tmp_path / name)
    (path / name).symlink_to(tmp_path / name)
    with pytest.raises(DataError, match="is a link to a place outside of its folder"):
        open_binary(path)
    (tmp_path / "link").symlink_to(path)  # a link to the folder is another name of it
    (path / name).unlink()
    (tmp_path / name).replace(path / name)
    assert_same(open_binary(tmp_path / "link"), example())


def test_pipes_and_nested_manifests(tmp_path):
    path = tmp_path / "a.gradrank"
    write_binary(example(), path)
    (path / "X.bin").unlink()
    os.mkfifo(path / "X.bin")
    with pytest.raises(DataError, match=r"X\.bin: is not an ordinary file"):
        open_binary(path)
    (path / MANIFEST).write_text("[" * 100_000)
    with pytest.raises(DataError, match="nested too deeply"):
        open_binary(path)

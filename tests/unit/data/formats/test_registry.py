"""The one registry of formats: known by name, read and written alike."""

from __future__ import annotations

import gzip
import subprocess
import sys

import numpy as np
import pytest

from gradrank.data.formats.registry import FORMATS, format_of, read_data, write_data
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError

pytest.importorskip("pyarrow")

COMPRESSIONS = ("", ".gz", ".xz", ".zst")
ALL_NAMES = [
    f"data{suffix}{compression}"
    for form in FORMATS
    for suffix in form.suffixes
    for compression in (COMPRESSIONS if form.compressed else ("",))
]


@pytest.fixture
def data() -> RankingData:
    rng = np.random.default_rng(3)
    return RankingData.from_arrays(
        rng.normal(size=(60, 4)), rng.integers(0, 3, 60), qid=np.arange(60) // 7, docid=[f"d{row}" for row in range(60)]
    )


@pytest.mark.parametrize("name", ALL_NAMES)
def test_every_ending_reads_back_what_it_writes(data, tmp_path, name):
    write_data(data, tmp_path / name)
    back = read_data(tmp_path / name)
    assert np.array_equal(back.X, data.X)
    assert back.indptr.tolist() == data.indptr.tolist()
    assert list(back.qid) == list(data.qid)
    assert back.docid is not None
    assert list(back.docid) == list(data.docid or [])
    assert back.label().tolist() == data.label().tolist()
    assert back.feature_names == data.feature_names
    if name.endswith((".gz", ".xz", ".zst")):
        assert (tmp_path / name).read_bytes()[:2] in (b"\x1f\x8b", b"\xfd7", b"\x28\xb5")


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_format_given_by_name(data, tmp_path, form):
    write_data(data, tmp_path / "data.xyz", format=form.name)
    assert np.array_equal(read_data(tmp_path / "data.xyz", format=form.name).X, data.X)


def test_endings_belong_to_one_format():
    endings = [suffix for form in FORMATS for suffix in form.suffixes]
    assert len(set(endings)) == len(endings)
    assert format_of("Train.TXT").name == "letor"
    assert format_of("a.b/train.csv.gz").name == "csv"


def test_unknown_ending():
    with pytest.raises(DataError, match=r"a\.xlsx: has no known ending; known are \.txt, .*\.gradrank"):
        format_of("a.xlsx")
    with pytest.raises(DataError, match="no known ending"):
        format_of("a.parquet.gz")  # compressed inside already
    with pytest.raises(DataError, match="there is no format 'excel'; there are letor, parquet, arrow, csv, binary"):
        read_data("a.xlsx", format="excel")


def test_unknown_ending_is_not_written(data, tmp_path):
    with pytest.raises(DataError, match="no known ending"):
        write_data(data, tmp_path / "rank.train")
    assert list(tmp_path.iterdir()) == []


def test_text_of_unknown_ending_is_letor(tmp_path):
    (tmp_path / "rank.train").write_text("1 1:0.5\n0 1:2\n0 1:3\n")
    (tmp_path / "rank.train.query").write_text("1\n2\n")
    data = read_data(tmp_path / "rank.train")
    assert data.sizes.tolist() == [1, 2]
    (tmp_path / "train.gz").write_bytes(gzip.compress(b"1 qid:3 1:0.5\n"))
    assert list(read_data(tmp_path / "train.gz").qid) == ["3"]


def test_other_files_of_unknown_ending(tmp_path):
    (tmp_path / "a.xlsx").write_bytes(b"PK\x03\x04\x00\x00")
    with pytest.raises(DataError, match=r"a\.xlsx: has no known ending"):
        read_data(tmp_path / "a.xlsx")
    with pytest.raises(DataError, match="no known ending"):
        read_data(tmp_path)
    with pytest.raises(DataError, match="no such file"):
        read_data(tmp_path / "b.txt")


def test_options_reach_the_reader(tmp_path):
    (tmp_path / "a.csv").write_text("group,grade,f\n1,2,3\n")
    data = read_data(tmp_path / "a.csv", qid="group", labels="grade")
    assert data.label("grade").tolist() == [2]
    (tmp_path / "a.txt").write_text("1 qid:3 1:0.5\n")
    assert read_data(tmp_path / "a.txt", n_features=3).n_features == 3


def test_options_that_a_format_does_not_take(data, tmp_path):
    write_data(data, tmp_path / "a.gradrank")
    with pytest.raises(DataError, match="format binary does not take the option 'qid'; it takes no options"):
        read_data(tmp_path / "a.gradrank", qid="x")
    write_data(data, tmp_path / "a.parquet")
    with pytest.raises(DataError, match="format parquet does not take the option 'n_features'; it takes qid, labels"):
        read_data(tmp_path / "a.parquet", n_features=3)
    with pytest.raises(DataError, match="writing the format csv does not take the option 'label'; it takes delimiter"):
        write_data(data, tmp_path / "a.csv", label="x")
    write_data(data, tmp_path / "a.txt")
    with pytest.raises(DataError, match="letor does not take the option '_chunk_bytes'"):
        read_data(tmp_path / "a.txt", _chunk_bytes=3)


def test_label_files_are_in_the_order_of_the_file(tmp_path):
    (tmp_path / "a.txt").write_text("0 qid:7 1:1\n1 qid:8 1:2\n2 qid:7 1:3\n")
    (tmp_path / "clicks.txt").write_text("10\n\n30\n")
    (tmp_path / "money.txt.gz").write_bytes(gzip.compress(b"nan\n1.5\n2\n"))
    files = {"clicks": tmp_path / "clicks.txt", "money": str(tmp_path / "money.txt.gz")}
    data = read_data(tmp_path / "a.txt", label_files=files)
    assert data.X[:, 0].tolist() == [1, 3, 2]
    assert data.label_names == ("label", "clicks", "money")
    assert np.array_equal(data.label("clicks"), np.float32([10, 30, np.nan]), equal_nan=True)
    assert np.array_equal(data.label("money"), np.float32([np.nan, 2, 1.5]), equal_nan=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\n2\n", r"clicks\.txt: holds 2 clicks labels, expected 3"),
        ("1\n2\n3\n4\n", r"clicks\.txt: holds 4 clicks labels, expected 3"),
        ("1\nmany\n3\n", r"clicks\.txt:2: found 'many'"),
        ("1\n2\ninf\n", r"clicks\.txt:3: found 'inf'"),
    ],
)
def test_wrong_label_files(tmp_path, content, message):
    (tmp_path / "a.txt").write_text("0 qid:7 1:1\n1 qid:8 1:2\n2 qid:7 1:3\n")
    (tmp_path / "clicks.txt").write_text(content)
    with pytest.raises(DataError, match=message):
        read_data(tmp_path / "a.txt", label_files={"clicks": tmp_path / "clicks.txt"})


def test_importing_the_registry_is_cheap():
    heavy = "[m for m in ('pyarrow', 'pandas', 'polars') if m in sys.modules]"
    code = f"import sys, gradrank.data.formats.registry; print({heavy})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"

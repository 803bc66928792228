"""What every file format promises: nothing lost, nothing half read, nothing half written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gradrank.data import RankingData
from gradrank.data.formats.registry import FORMATS, FileFormat, read_data, write_data
from gradrank.errors import DataError
from tests.support.commands import content_of
from tests.support.data import assert_same
from tests.support.disks import file_size_limit

# What a format has no place for. Everything else that ranking data holds must come back.
LACKS: dict[str, set[str]] = {
    "letor": {"further labels", "feature names", "weights"},
    "parquet": set(),
    "arrow": set(),
    "csv": set(),
    "binary": set(),
}
# What a reader has to be told to take missing values for what they are.
TO_READ: dict[str, dict[str, object]] = {"letor": {"missing": True}}

each_format = pytest.mark.parametrize("form", FORMATS, ids=[form.name for form in FORMATS])


def endings_of(form: FileFormat) -> list[str]:
    compressions = ("", ".gz", ".xz", ".zst") if form.compressed else ("",)
    return [suffix + compression for suffix in form.suffixes for compression in compressions]


EVERY_ENDING = [(form, ending) for form in FORMATS for ending in endings_of(form)]
# One ending for each way of writing.
EVERY_WAY = [(form, ending) for form, ending in EVERY_ENDING if ending.startswith(form.suffixes[0])]


def example(form: FileFormat, n_queries: int = 12) -> RankingData:
    """Data with all that the format has a place for, missing values and unjudged documents included."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 9, n_queries)
    n = int(sizes.sum())
    X = (rng.normal(size=(n, 4)) * 10.0 ** rng.integers(-30, 30, (n, 4))).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[rng.random(X.shape) < 0.1] = 0.0
    X[:, 3] = np.where(np.isnan(X[:, 3]), 1 / 3, X[:, 3])  # LETOR finds the number of features by the last one
    labels = {"label": rng.integers(0, 5, n).astype(np.float32), "last clicks": rng.random(n).astype(np.float32)}
    for column in labels.values():
        column[rng.random(n) < 0.1] = np.nan
    data = RankingData.from_arrays(
        X,
        labels,
        qid=np.repeat([f"é{number}" for number in range(n_queries)], sizes),
        docid=[f"dök-{number}" for number in rng.permutation(n)],
        weight=rng.uniform(0.1, 3.0, n_queries),
        document_weight=rng.uniform(0.1, 3.0, n),
        feature_names=["bm25", "prix, d'été", 'a "quoted" one', "ß"],
    )
    lacks = LACKS[form.name]
    if "further labels" in lacks:
        data = replace(data, labels={"label": data.label()})
    if "weights" in lacks:
        data = replace(data, weight=None, document_weight=None)
    if "feature names" in lacks:
        data = replace(data, feature_names=("f1", "f2", "f3", "f4"))
    return data


def read(path: Path, form: FileFormat) -> RankingData:
    return read_data(path, **TO_READ.get(form.name, {}))


def refused(path: Path, form: FileFormat) -> str:
    with pytest.raises(DataError) as caught:
        read(path, form)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message


def test_every_format_is_described_here() -> None:
    assert set(LACKS) == {form.name for form in FORMATS}


@pytest.mark.parametrize(("form", "ending"), EVERY_ENDING, ids=[ending for _, ending in EVERY_ENDING])
def test_everything_comes_back(form: FileFormat, ending: str, tmp_path: Path) -> None:
    data = example(form)
    write_data(data, tmp_path / f"data{ending}")
    assert_same(read(tmp_path / f"data{ending}", form), data)
    assert [path.name for path in tmp_path.iterdir()] == [f"data{ending}"]


@each_format
def test_a_format_can_be_named(form: FileFormat, tmp_path: Path) -> None:
    data = example(form)
    write_data(data, tmp_path / "data.xyz", format=form.name)
    assert_same(read_data(tmp_path / "data.xyz", format=form.name, **TO_READ.get(form.name, {})), data)


@each_format
def test_without_ids_and_labels(form: FileFormat, tmp_path: Path) -> None:
    data = RankingData.from_arrays(np.float32([[1, 2], [3, 4], [5, 6]]), qid=[7, 7, 8])
    path = tmp_path / f"data{form.suffixes[0]}"
    if form.name == "letor":  # a line begins with a label
        data = data.with_label("label", [0, 1, 0])
    write_data(data, path)
    assert_same(read(path, form), data)


@each_format
def test_rows_that_were_brought_together_are_written_so(form: FileFormat, tmp_path: Path) -> None:
    scattered = RankingData.from_arrays(
        np.float32([[1], [2], [3], [4]]), [3, 2, 1, 0], qid=["a", "b", "a", "b"], docid=["w", "x", "y", "z"]
    )
    assert scattered.rows is not None
    path = tmp_path / f"data{form.suffixes[0]}"
    write_data(scattered, path)
    back = read(path, form)
    assert back.rows is None
    assert_same(back, replace(scattered, rows=None))


@each_format
def test_a_reader_keeps_the_order_of_the_file(form: FileFormat, tmp_path: Path) -> None:
    # Data whose lists stand in pieces, as a file may have them; the binary form has whole lists only.
    pieces = RankingData.from_arrays(np.float32([[1], [2], [3], [4]]), [3, 2, 1, 0], qid=["a", "b", "c", "d"])
    path = tmp_path / f"data{form.suffixes[0]}"
    write_data(pieces, path)
    if form.name == "binary":
        assert read(path, form).rows is None
        return
    if form.name in ("letor", "csv"):
        for name in ("c", "d"):
            other = {"c": "a", "d": "b"}[name]
            text = path.read_text().replace(f"qid:{name} ", f"qid:{other} ").replace(f'"{name}"', f'"{other}"')
            path.write_text(text)
    else:
        frame = pytest.importorskip("pyarrow")
        table = frame.table({"qid": ["a", "b", "a", "b"], "label": [3.0, 2, 1, 0], "f1": [1.0, 2, 3, 4]})
        if form.name == "parquet":
            pytest.importorskip("pyarrow.parquet").write_table(table, path)
        else:
            pytest.importorskip("pyarrow.feather").write_feather(table, str(path))
    data = read(path, form)
    assert data.X.ravel().tolist() == [1, 3, 2, 4]
    assert data.in_input_order(data.label()).tolist() == [3, 2, 1, 0]


@pytest.mark.parametrize(
    ("form", "ending"),
    [pair for pair in EVERY_WAY if not pair[0].compressed or pair[1].endswith((".gz", ".xz", ".zst"))],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_cut_off_is_refused_by_name(form: FileFormat, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"data{ending}"
    write_data(example(form), path)
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    for file in files:
        whole = file.read_bytes()
        end = len(whole.rstrip(b"\n")) if file.suffix == ".json" else len(whole)
        for kept in {0, 1, end // 3, end - 9, end - 1} & set(range(end)):
            file.write_bytes(whole[:kept])
            refused(path, form)
        file.write_bytes(whole)
        if file != path:
            file.unlink()
            refused(path, form)
            file.write_bytes(whole)
    assert_same(read(path, form), example(form))


@pytest.mark.parametrize("form", [form for form in FORMATS if form.compressed], ids=lambda form: form.name)
def test_text_that_breaks_off_within_a_line_is_refused(form: FileFormat, tmp_path: Path) -> None:
    """Text that ends behind a line is a shorter file, and nobody can tell."""
    path = tmp_path / f"data{form.suffixes[0]}"
    data = example(form)
    write_data(data, path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    assert read(path, form).n_docs == data.n_docs - 1
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][:4])
    refused(path, form)


@each_format
@pytest.mark.parametrize("content", [b"", b"\x00\x01\x02 nonsense \xff\xfe" * 9], ids=["empty", "nonsense"])
def test_what_is_no_such_file_is_refused_by_name(form: FileFormat, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"data{form.suffixes[0]}"
    path.write_bytes(content)
    refused(path, form)
    path.unlink()
    assert "there is no such file" in refused(path, form)


@each_format
def test_options_that_a_format_does_not_know_are_refused(form: FileFormat, tmp_path: Path) -> None:
    path = tmp_path / f"data{form.suffixes[0]}"
    write_data(example(form), path)
    with pytest.raises(DataError, match=f"reading the format {form.name} does not take the option 'colour'"):
        read_data(path, colour="red")
    with pytest.raises(DataError, match=f"writing the format {form.name} does not take the option 'colour'"):
        write_data(example(form), tmp_path / f"other{form.suffixes[0]}", colour="red")
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("old", [True, False], ids=["over an old file", "new"])
@pytest.mark.parametrize(("form", "ending"), EVERY_WAY, ids=[ending for _, ending in EVERY_WAY])
def test_writing_that_fails_leaves_what_was_there(form: FileFormat, ending: str, old: bool, tmp_path: Path) -> None:
    path = tmp_path / f"data{ending}"
    if old:
        write_data(example(form), path)
    before = content_of(tmp_path)
    large = example(form, n_queries=600)
    with pytest.raises(DataError) as caught, file_size_limit(8_000):
        write_data(large, path)
    assert str(caught.value).startswith(f"{path}: cannot be written")
    assert content_of(tmp_path) == before
    if old:
        assert_same(read(path, form), example(form))


@each_format
def test_places_that_cannot_be_written_are_named(form: FileFormat, tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / f"data{form.suffixes[0]}"
    with pytest.raises(DataError) as caught:
        write_data(example(form), path)
    assert str(caught.value).startswith(f"{path}: cannot be written")
    assert list(tmp_path.iterdir()) == []

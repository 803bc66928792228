"""Which files belong to a data set, and who reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank import RankingData
from gradrank.cluster import addresses
from gradrank.cluster.shards import deal, fetched, list_shards
from gradrank.data.formats.registry import read_data, write_data
from gradrank.errors import DataError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data = RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=[1, 1])
    for name in (
        "day=1/part-0.parquet",
        "day=1/part-1.parquet",
        "day=2/part-0.parquet",
        "b.gradrank",
        "_tmp/x.parquet",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_data(data, tmp_path / name)
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / "day=1" / ".part-0.parquet.crc").write_text("")
    (tmp_path / "readme.md").write_text("")
    return tmp_path


def names(found: list[tuple[str, int]], folder: Path) -> list[str]:
    return [str(Path(path.removeprefix("file://")).relative_to(folder)) for path, _ in found]


def test_a_partitioned_folder_is_all_of_its_data_files(folder: Path) -> None:
    expected = ["b.gradrank", "day=1/part-0.parquet", "day=1/part-1.parquet", "day=2/part-0.parquet"]
    assert names(list_shards(str(folder)), folder) == expected


def test_patterns_name_files_and_folders(folder: Path) -> None:
    assert names(list_shards(f"{folder}/day=*/part-0.parquet"), folder) == [
        "day=1/part-0.parquet",
        "day=2/part-0.parquet",
    ]
    assert names(list_shards(f"{folder}/day=1*"), folder) == ["day=1/part-0.parquet", "day=1/part-1.parquet"]


def test_addresses_are_listed_and_fetched_by_arrow(folder: Path, tmp_path: Path) -> None:
    found = list_shards(f"file://{folder}/day=1/part-*.parquet")
    assert names(found, folder) == ["day=1/part-0.parquet", "day=1/part-1.parquet"]
    assert names(list_shards(f"file://{folder}/day=2"), folder) == ["day=2/part-0.parquet"]
    with fetched(found[0][0], tmp_path) as local:
        assert local.read_bytes() == (folder / "day=1" / "part-0.parquet").read_bytes()
    assert not local.exists()


def test_our_own_form_is_one_file_at_an_address_too(folder: Path, tmp_path: Path) -> None:
    found = list_shards(f"file://{folder}")
    assert names(found, folder) == names(list_shards(str(folder)), folder)
    assert dict(found)[f"file://{folder}/b.gradrank"] == dict(list_shards(str(folder)))[f"{folder}/b.gradrank"]
    copies = tmp_path / "copies"
    copies.mkdir()
    with fetched(f"file://{folder}/b.gradrank", copies) as local:
        assert read_data(local).X.tolist() == [[1.0], [2.0]]
    assert list(copies.iterdir()) == []


def test_options_of_an_address_go_along_with_its_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyarrow import fs

    asked = []

    def file_system(address: str) -> tuple[fs.FileSystem, str]:
        asked.append(address)
        return fs.LocalFileSystem(), address.removeprefix("s3://").removesuffix("?region=eu&scheme=http")

    monkeypatch.setattr(addresses, "_file_system", file_system)
    found = list_shards(f"s3://{folder}/day=?/part-0.parquet?region=eu&scheme=http")
    assert [path for path, _ in found] == [
        f"s3://{folder}/day={day}/part-0.parquet?region=eu&scheme=http" for day in (1, 2)
    ]
    assert asked == [f"s3://{folder}?region=eu&scheme=http"]


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(DataError, match="give it by the environment") as caught:
        list_shards("s3://key:secret@bucket/train")
    assert "secret@" not in str(caught.value)


@pytest.mark.parametrize("pattern", ["nothing.parquet", "none-*.txt", "file:///no/such/folder/*.parquet"])
def test_nothing_is_an_error_that_names_the_pattern(pattern: str) -> None:
    with pytest.raises(DataError, match=r"nothing|none|no/such"):
        list_shards(pattern)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=30), st.integers(1, 6))
def test_every_part_of_every_file_is_read_once_and_loads_are_even(sizes: list[int], workers: int) -> None:
    dealt = deal([(f"part-{number}", size) for number, size in enumerate(sizes)], workers)
    assert len(dealt) == workers
    shares: dict[str, float] = {}
    for own in dealt:
        assert own == sorted(own)
        for _, path, part, parts in own:
            assert 0 <= part < parts
            shares[path] = shares.get(path, 0.0) + 1 / parts
    assert shares == pytest.approx({f"part-{number}": 1.0 for number in range(len(sizes))})
    if len(sizes) >= workers:
        loads = [sum(max(1, sizes[number]) for number, *_ in own) for own in dealt]
        # Nobody has more than the least loaded and one more file.
        assert max(loads) <= min(loads) + max(1, *sizes)

"""What small compressed files may unpack to."""

from __future__ import annotations

import gzip
import io
import lzma
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zstandard

from gradrank.data.formats.compressed import read_bytes, read_head
from gradrank.data.formats.unpacking import MAX_EXPANSION, unpacked
from gradrank.errors import DataError

PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("suffix", [".xz", ".zst"])
def test_a_bomb_is_refused_before_it_fills_the_memory(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes(PACK[suffix](bytes(1 << 27)))
    assert path.stat().st_size * 1000 < 1 << 27
    with pytest.raises(DataError, match=r"unpacks to more than 1,000 times its size.*GRADRANK_MAX_EXPANSION"):
        read_bytes(path)
    assert read_head(path, 10) == bytes(10)


def test_the_limit_can_be_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradrank.data.formats.unpacking._ALWAYS_ALLOWED", 1000)
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(bytes(100_000)))
    assert len(read_bytes(path)) == 100_000
    monkeypatch.setenv(MAX_EXPANSION, "10")
    with pytest.raises(DataError, match="more than 10 times"):
        read_bytes(path)
    monkeypatch.setenv(MAX_EXPANSION, "many")
    with pytest.raises(DataError, match="GRADRANK_MAX_EXPANSION is 'many', expected a whole number"):
        read_bytes(path)


@pytest.mark.parametrize("suffix", PACK)
def test_many_streams_and_pieces_of_any_size(suffix: str) -> None:
    rng = np.random.default_rng(0)
    parts = [rng.bytes(int(size)) if size % 2 else bytes(int(size)) for size in rng.integers(0, 9000, 40)]
    packed = b"".join(map(PACK[suffix], parts)) + PACK[suffix](b"") * 500
    whole = b"".join(parts)
    for piece_bytes in (1, 100, 1 << 20):
        pieces = list(unpacked(io.BytesIO(packed).read, suffix, Path("a"), piece_bytes))
        assert b"".join(pieces) == whole
    if suffix != ".zst":  # padding
        assert b"".join(unpacked(io.BytesIO(packed + bytes(64)).read, suffix, Path("a"))) == whole


@pytest.mark.parametrize("suffix", PACK)
def test_every_cut_and_garbage_behind_are_told(suffix: str) -> None:
    packed = PACK[suffix](b"some text" * 10)
    for length in range(7, len(packed)):
        with pytest.raises(DataError, match="cut short or corrupt"):
            list(unpacked(io.BytesIO(packed[:length]).read, suffix, Path("a")))
    with pytest.raises(DataError, match="cut short or corrupt"):
        list(unpacked(io.BytesIO(packed + b"garbage behind it").read, suffix, Path("a")))


def test_more_than_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradrank.data.formats.compressed.memory_limit", lambda: 5000)
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(np.random.default_rng(0).bytes(6000)))
    with pytest.raises(DataError, match="does not fit into memory when decompressed"):
        read_bytes(path)

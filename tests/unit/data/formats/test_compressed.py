"""Plain and compressed files."""

from __future__ import annotations

import gzip
import lzma
import os
import threading

import numpy as np
import pytest
import zstandard

from gradrank.data.formats.compressed import open_for_writing, read_bytes, without_compression_suffix
from gradrank.errors import DataError

CONTENT = b"some text\n" * 1000 + np.random.default_rng(0).bytes(5000)
COMPRESS = {"gz": gzip.compress, "xz": lzma.compress, "zst": zstandard.ZstdCompressor().compress}
DECOMPRESS = {
    "gz": gzip.decompress,
    "xz": lzma.decompress,
    "zst": lambda content: zstandard.ZstdDecompressor().decompressobj().decompress(content),
}
FORMATS = ["gz", "xz", "zst"]


def test_plain_file_is_mapped(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(CONTENT)
    content = read_bytes(path)
    assert content.dtype == np.uint8
    assert content.tobytes() == CONTENT
    assert not content.flags.owndata
    assert not content.flags.writeable
    assert type(content) is np.ndarray


def test_empty_file(tmp_path):
    (tmp_path / "a.txt").touch()
    assert len(read_bytes(tmp_path / "a.txt")) == 0


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", ["a.txt.{}", "A.{}".upper(), "a.txt"])
def test_compressed_file(tmp_path, form, name):
    path = tmp_path / name.format(form)
    path.write_bytes(COMPRESS[form](CONTENT))
    assert read_bytes(path).tobytes() == CONTENT


@pytest.mark.parametrize("form", FORMATS)
def test_several_streams_in_a_file(tmp_path, form):
    path = tmp_path / f"a.{form}"
    path.write_bytes(COMPRESS[form](b"one ") + COMPRESS[form](b"two"))
    assert read_bytes(path).tobytes() == b"one two"


@pytest.mark.parametrize("form", FORMATS)
def test_empty_content(tmp_path, form):
    path = tmp_path / f"a.{form}"
    path.write_bytes(COMPRESS[form](b""))
    assert len(read_bytes(path)) == 0


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kept", [0.99, 0.5, 0.01])
def test_cut_short(tmp_path, form, kept):
    path = tmp_path / f"a.{form}"
    content = COMPRESS[form](CONTENT)
    path.write_bytes(content[: max(8, int(kept * len(content)))])
    with pytest.raises(DataError, match=rf"a.{form}: the \w+ data is cut short or corrupt"):
        read_bytes(path)


@pytest.mark.parametrize("form", FORMATS)
def test_corrupt(tmp_path, form):
    path = tmp_path / f"a.{form}"
    with open_for_writing(path) as file:
        file.write(CONTENT)
    content = bytearray(path.read_bytes())
    for place in range(len(content) // 2, len(content) // 2 + 50):
        content[place] ^= 0x55
    path.write_bytes(content)
    with pytest.raises(DataError, match="cut short or corrupt"):
        read_bytes(path)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("content", [b"", b"1 qid:1 1:2\n"])
def test_name_promises_compression(tmp_path, form, content):
    path = tmp_path / f"a.{form}"
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"is named .{form} but is not"):
        read_bytes(path)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(DataError, match=r"none.txt: there is no such file"):
        read_bytes(tmp_path / "none.txt")
    with pytest.raises(DataError, match="is a folder"):
        read_bytes(tmp_path)
    with pytest.raises(DataError, match="cannot be read"):
        read_bytes(tmp_path / "a\0b")
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="cannot be read: Not a directory"):
        read_bytes(tmp_path / "file" / "below")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path):
    (tmp_path / "a").touch()
    (tmp_path / "a").chmod(0)
    with pytest.raises(DataError, match="cannot be read: Permission denied"):
        read_bytes(tmp_path / "a")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("content", [CONTENT, gzip.compress(CONTENT)], ids=["plain", "gzip"])
def test_pipe(tmp_path, content):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    assert read_bytes(pipe).tobytes() == CONTENT
    writer.join()


@pytest.mark.parametrize("form", FORMATS)
def test_written_by_suffix(tmp_path, form):
    path = tmp_path / f"a.txt.{form}"
    with open_for_writing(path) as file:
        file.write(CONTENT[:100])
        file.write(CONTENT[100:])
    assert DECOMPRESS[form](path.read_bytes()) == CONTENT
    first = path.read_bytes()
    with open_for_writing(path) as file:
        file.write(CONTENT[:100])
        file.write(CONTENT[100:])
    assert path.read_bytes() == first
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.txt.xz", "a.txt.zst"])
def test_failure_leaves_the_old_file(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"old")

    def fail() -> None:
        with open_for_writing(path) as file:
            file.write(b"new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_write_where_nothing_can_be(tmp_path):
    with pytest.raises(DataError, match="cannot be written"), open_for_writing(tmp_path / "none" / "a.txt"):
        pass
    with pytest.raises(DataError, match="is a folder"), open_for_writing(tmp_path):
        pass


def test_disk_full(tmp_path):
    def fill() -> None:
        with open_for_writing(tmp_path / "a.txt"):
            raise OSError(28, "No space left on device")

    with pytest.raises(DataError, match=r"a.txt: cannot be written: No space left"):
        fill()


def test_suffix():
    assert without_compression_suffix("x/a.txt.GZ").name == "a.txt"
    assert without_compression_suffix("x/a.txt").name == "a.txt"

"""Changed files of data in every form that is read: refused with the file's name, or data that holds what it promises.

Files that are read both whole and by blocks of rows are read in both ways, which must agree.
"""

from __future__ import annotations

import gzip
import json
import lzma
import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pyarrow
import zstandard

from gradrank.data.clicks.propensity import Propensities
from gradrank.data.clicks.propensity_files import read_propensities, write_propensities
from gradrank.data.clicks.readers import read_click_log
from gradrank.data.clicks.traffic import read_traffic
from gradrank.data.feature_profile import load_profile, profile_features
from gradrank.data.formats.binary import open_binary
from gradrank.data.formats.binary_layout import MANIFEST
from gradrank.data.formats.columns import read_column
from gradrank.data.formats.file_formats import FORMATS
from gradrank.data.formats.registry import read_data, write_data
from gradrank.data.formats.topk_files import read_preferences, read_top_k
from gradrank.data.formats.trec import read_qrels, read_run
from gradrank.data.ranking_data import RankingData
from gradrank.data.streaming.labels import read_labels
from gradrank.data.streaming.sources import open_source
from gradrank.data.streaming.to_binary import convert_to_binary
from gradrank.errors import DataError, GradrankError
from gradrank.measures import NDCG
from tests.fuzz.mutations import Mutation, changed, changed_json, either
from tests.fuzz.targets import Target
from tests.support.data import assert_same

# What a reader is given to hold would be written again, which says nothing about the reader.
_MOST_NUMBERS = 100_000
_PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".xz": partial(lzma.compress, preset=0),  # the others fill megabytes of tables first
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}


def example() -> RankingData:
    """Data with everything that a file can hold."""
    return RankingData.from_arrays(
        [[1.0, np.nan], [2.5, 0.0], [-3.0, 4.0], [1e-3, 7.0], [12.0, -0.0], [0.5, 1e9]],
        {"label": [0, 1, 2, 1, np.nan, 4], "clicks": [1, 2, np.nan, 0, 0, 3]},
        qid=["a", "a", "a", "b", "b", "é"],
        docid=["d1", "d2", "d3", "d4", "d5", "d6"],
        weight=[0.5, 2.0, 1.0],
        feature_names=["bm25", "length"],
    )


@cache
def written(name: str) -> bytes:
    """The example as a file of a format."""
    path = Path(mkdtemp()) / name
    write_data(example(), path)
    return path.read_bytes()


@cache
def written_letor() -> bytes:
    """The part of the example that LETOR text holds without being told of missing numbers."""
    path, data = Path(mkdtemp()) / "a.txt", example()
    whole = np.nan_to_num(data.X), np.nan_to_num(data.label())
    rows = RankingData.from_arrays(*whole, group=data.sizes, docid=data.docid)
    write_data(replace(rows, qid=data.qid), path)
    return path.read_bytes()


@cache
def folder_bundle() -> bytes:
    """The example as a folder of arrays, its files in one JSON object."""
    path = Path(mkdtemp()) / "a.gradrank"
    write_data(example(), path)
    return json.dumps({file.name: file.read_bytes().decode("latin-1") for file in sorted(path.iterdir())}).encode()


@cache
def arrow_stream() -> bytes:
    """A table as an Arrow stream, with categories and lists of text."""
    columns = {
        "qid": pyarrow.array([1, 1, 2]),
        "label": pyarrow.array([0.0, 1.0, None]),
        "x": pyarrow.array([1, 2, 3], pyarrow.int8()),
        "flag": pyarrow.array([True, None, False]),
        "z": pyarrow.array([1.5, 2.5, 1.5]).dictionary_encode(),
        "docid": pyarrow.array(["a", "b", "c"]).dictionary_encode(),
    }
    sink = pyarrow.BufferOutputStream()
    table = pyarrow.table(columns)
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


# ---------------------------------------------------------------------- what is tried
def named(path: Path, action: Callable[[], Any]) -> Any:
    """What an action gives; an error must name the file."""
    try:
        return action()
    except GradrankError as error:
        if not str(error).startswith(str(path)):
            raise AssertionError(f"the error does not name the file: {error}") from error
        raise


def check(data: RankingData) -> None:
    """Data keeps what it promises, and kernels stay within its arrays."""
    assert data.X.dtype in (np.float32, np.float64)
    assert data.X.shape == (data.n_docs, len(data.feature_names))
    assert data.indptr[0] == 0
    assert (data.indptr[1:] > data.indptr[:-1]).all()
    assert len(set(data.feature_names)) == data.n_features
    assert len(data.qid.to_list()) == data.n_queries
    assert data.docid is None or len(data.docid.to_list()) == data.n_docs
    for label in data.labels.values():
        assert label.shape == (data.n_docs,)
        assert not np.isinf(label).any()
    if data.labels and data.n_docs * max(1, data.n_features) < _MOST_NUMBERS:
        scores = np.nan_to_num(data.X[:, 0].astype(np.float64)) if data.n_features else np.zeros(data.n_docs)
        values = NDCG(3, gain="linear").values(scores, data, n_jobs=1)
        # A query without a judged document has no value.
        assert (np.isnan(values) | ((values >= 0) & (values <= 1 + 1e-9))).all()


def reading(name: str, *, streamed: bool = True) -> Callable[[bytes, Path], None]:
    """Reads a file of a name, whole and by blocks of rows."""
    ending = "." + name.split(".")[1]
    form = next(form for form in FORMATS if ending in form.suffixes)

    def attempt(content: bytes, folder: Path) -> None:
        path = folder / name
        path.write_bytes(content)
        outcomes: list[RankingData | GradrankError] = []
        try:
            data = named(path, lambda: read_data(path, format=form.name))
            assert not np.isinf(data.X).any()
            check(data)
            outcomes.append(data)
        except GradrankError as error:
            outcomes.append(error)
        if streamed:
            target = folder / "between.gradrank"
            try:
                named(path, lambda: convert_to_binary(open_source(path, form), target))
                outcomes.append(open_binary(target))
            except GradrankError as error:
                outcomes.append(error)
            shutil.rmtree(target, ignore_errors=True)
            agree_on_labels(outcomes[0], lambda: named(path, lambda: read_labels(open_source(path, form))))
        agree(outcomes)

    return attempt


def agree(outcomes: list[RankingData | GradrankError]) -> None:
    """Two ways to read a file give the same, or refuse it both."""
    first = outcomes[0]
    for other in outcomes[1:]:
        if isinstance(first, RankingData) and isinstance(other, RankingData):
            assert_same(other, first)
        elif isinstance(first, RankingData) or isinstance(other, RankingData):
            raise AssertionError(f"two ways to read do not agree: {outcomes}")
    if isinstance(first, GradrankError):
        raise first


def agree_on_labels(whole: RankingData | GradrankError, read: Callable[[], RankingData]) -> None:
    """Who reads labels alone finds those of the whole, and does not see what is wrong with features."""
    try:
        alone = read()
    except GradrankError as error:
        if isinstance(whole, RankingData):
            raise AssertionError(f"labels alone are refused, and the whole is not: {error}") from error
        return
    if isinstance(whole, RankingData):
        assert_same(alone, replace(whole, X=np.empty((whole.n_docs, 0), dtype=np.float32), feature_names=()))


def read_bundle(content: bytes, folder: Path) -> None:
    """Open a folder of arrays, and read all of it."""
    path = folder / "a.gradrank"
    path.mkdir()
    try:
        for name, text in json.loads(content).items():
            (path / name).write_bytes(text.encode("latin-1"))
        data = named(path, lambda: open_binary(path))
        check(data)
        assert len(data.take_queries(np.arange(data.n_queries)).qid) == data.n_queries
        if data.X.size < _MOST_NUMBERS and np.isinf(data.X).any():
            try:
                write_data(data, folder / "again.txt")
            except DataError:
                return
            raise AssertionError("an infinite number was written as another")
    finally:
        shutil.rmtree(path)


def change_bundle(content: bytes, chance: random.Random) -> bytes:
    """Change one or two files of a folder; the manifest more often than others."""
    files = json.loads(content)
    for _ in range(chance.choice([1, 1, 2])):
        name = MANIFEST if chance.random() < 0.5 else chance.choice(list(files))
        raw = files[name].encode("latin-1")
        way: Mutation = changed
        if name == MANIFEST and chance.random() < 0.7:
            way = changed_json
        elif name != MANIFEST and chance.random() < 0.7:
            way = _change_numbers  # of the same length, or it would be told by its size
        try:
            files[name] = way(raw, chance).decode("latin-1")
        except ValueError:  # no longer JSON
            files[name] = changed(raw, chance).decode("latin-1")
    return json.dumps(files).encode()


def _change_numbers(content: bytes, chance: random.Random) -> bytes:
    words = [b"\xff" * 8, b"\0" * 8, b"\xff" * 7 + b"\x7f", b"\0" * 7 + b"\x80", b"\0\0\x80\x7f", b"\x01", b"\x80"]
    word = chance.choice(words)[: len(content)]
    at = chance.randrange(max(1, len(content) - len(word) + 1))
    at -= at % len(word) if word else 0
    return content[:at] + word + content[at + len(word) :]


def packed(suffix: str) -> Callable[[bytes, Path], None]:
    """Reads compressed LETOR text, as long as it is named so."""
    return reading(f"a.txt{suffix}")


def change_packed(pack: Callable[[bytes], bytes], letor: bytes) -> Mutation:
    """Change compressed text, or the text and compress it."""
    return either(changed, lambda _, chance: pack(changed(letor, chance)))


def small(read: Callable[[Path], Any], name: str) -> Callable[[bytes, Path], None]:
    """Reads a file that is no data set."""

    def attempt(content: bytes, folder: Path) -> None:
        path = folder / name
        path.write_bytes(content)
        named(path, lambda: read(path))

    return attempt


def change_lines(content: bytes, chance: random.Random) -> bytes:
    """Change one line of JSON within its grammar."""
    lines = content.splitlines()
    at = chance.randrange(len(lines))
    lines[at] = changed_json(lines[at], chance)
    return b"\n".join([*lines, b""])


# ---------------------------------------------------------------------- small files
def _lines(*values: Mapping[str, Any]) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


@cache
def profile_bytes() -> bytes:
    """How the example's features are spread."""
    path = Path(mkdtemp()) / "profile.json"
    profile_features(example()).save(path)
    return path.read_bytes()


@cache
def propensity_bytes() -> bytes:
    """How likely each rank is looked at."""
    path = Path(mkdtemp()) / "propensities.json"
    chances = np.array([1.0, 0.5, 0.25])
    write_propensities(Propensities(np.arange(1, 4), chances, chances / 2, chances, "swap", 0.95, 2), path)
    return path.read_bytes()


QRELS = b"1 0 d1 2\n1 0 d2 0\n2 0 d1 1\n2 0 d9 -1\n"
RUN = b"1 Q0 d1 1 12.5 mine\n1 Q0 d2 2 -3e2 mine\n2 Q0 d9 1 0.5 mine\n"
TRUTH = _lines({"query": "1", "k": 2, "top": ["a", "b"], "rest": ["c"]}, {"query": "2", "top": ["x"]})
PREFERENCES = b"q\ta\tb\ta\nq\ta\tc\ttie\nr\tx\ty\ty\n"
CLICKS = _lines(
    {"qid": "q", "shown": ["a", "b", "c"], "clicks": ["b"], "ranker": "x", "randomized": True},
    {"qid": 7, "shown": ["a", 4], "clicks": []},
)
ROWS = (
    b"session,qid,docid,position,click,click_time,ranker,randomized\n"
    b's1,q,a,1,0,,x,0\r\ns1,q,b,2,1,2026-01-01T00:00:00,x,0\n"s2",r,"a",1,"2",7.5,"y","1"\r\n'
)
TAB_ROWS = ROWS.replace(b",", b"\t").replace(b'"', b"")
PYCLICK = b"7\ta,b,c : b , a; 7\tb,a :;\n8\thttp://x/y,z : z\n"
TRAFFIC = _lines(
    {"event": "shown", "id": "1", "time": "2026-01-01T00:00:00Z", "model": "m", "qid": "q", "shown": ["a", "b"]},
    {"event": "click", "id": "1", "time": "2026-01-01T00:00:01Z", "docid": "b"},
)


def targets() -> list[Target]:
    """One for every form of file."""
    letor, table = written_letor(), {"csv": written("a.csv"), "tsv": written("a.tsv")}
    plain = b"2 qid:1 1:0.5 3:-2e-3 # d1\n0 qid:1 2:7\n\n1 qid:2 1:1\n"
    lines = either(changed, change_lines)
    both = either(changed, changed_json)
    scores = small(lambda path: read_column(path, missing=True), "scores.txt")
    return [
        Target("data/letor", lambda: {"written": letor, "by hand": plain}, reading("a.txt")),
        *(Target(f"data/{name}", lambda content=content: {"file": content}, reading(f"a.{name}"))
          for name, content in table.items()),
        Target("data/parquet", lambda: {"file": written("a.parquet")}, reading("a.parquet")),
        Target("data/arrow", lambda: {"file": written("a.arrow")}, reading("a.arrow")),
        Target("data/arrow stream", lambda: {"stream": arrow_stream()}, reading("a.arrow")),
        *(Target(f"data/letor{suffix}", lambda pack=pack: {"file": pack(letor)}, packed(suffix),
                 change_packed(pack, letor)) for suffix, pack in _PACK.items()),
        Target("data/folder", lambda: {"folder": folder_bundle()}, read_bundle, change_bundle),
        Target("data/column", lambda: {"file": b"0.5\n-3\nnan\n1e9\n"}, scores),
        Target("data/qrels", lambda: {"file": QRELS}, small(read_qrels, "qrels")),
        Target("data/run", lambda: {"file": RUN}, small(read_run, "run")),
        Target("data/top-k", lambda: {"file": TRUTH}, small(read_top_k, "truth.jsonl"), lines),
        Target("data/preferences", lambda: {"file": PREFERENCES}, small(read_preferences, "preferences.tsv")),
        Target("data/clicks jsonl", lambda: {"file": CLICKS}, small(read_click_log, "log.jsonl"), lines),
        *(Target(f"data/clicks {name}", lambda content=content: {"file": content}, small(read_click_log, f"log.{name}"))
          for name, content in {"csv": ROWS, "tsv": TAB_ROWS, "txt": PYCLICK}.items()),
        Target("data/traffic", lambda: {"file": TRAFFIC}, small(read_traffic, "log.jsonl"), lines),
        Target("data/profile", lambda: {"file": profile_bytes()}, small(load_profile, "profile.json"), both),
        Target("data/propensities", lambda: {"file": propensity_bytes()}, small(read_propensities, "p.json"), both),
    ]  # fmt: skip

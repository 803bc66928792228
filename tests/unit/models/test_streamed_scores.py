"""Scores of blocks of rows are those of the whole data at once."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradrank import LambdaMART, RankingData, read_data, write_data
from gradrank.data.formats.registry import format_to_read
from gradrank.data.roles import Columns
from gradrank.data.streaming.csv_source import CsvSource
from gradrank.data.streaming.letor_source import LetorSource
from gradrank.data.streaming.source import Source
from gradrank.data.streaming.sources import open_source
from gradrank.errors import DataError
from gradrank.models.linear import LinearRanker
from gradrank.models.ranker import Ranker
from gradrank.models.streamed_scores import streamed_scores

STREAMING = "gradrank.data.streaming"


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{STREAMING}.pieces._PIECE_BYTES", 700)
    monkeypatch.setattr(f"{STREAMING}.letor_source._PART_BYTES", 300)
    monkeypatch.setattr(f"{STREAMING}.table_source._MOST_ROWS", 7)
    monkeypatch.setattr(f"{STREAMING}.sources._BLOCK_BYTES", 200)


def _all(ranker: Ranker, source: Source, **more: Any) -> list[float]:
    return [float(score) for block in streamed_scores(ranker, source, **more) for score in block]


def _data(*, seconds: bool = False, rows: int = 400) -> RankingData:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(rows, 3))
    if seconds:
        X[:, 1] = 1_700_000_000 + rng.permutation(rows)
    label = (X[:, 0] + (X[:, 1] > np.median(X[:, 1])) > 0.5).astype(float)
    return RankingData.from_arrays(X, label, qid=rng.integers(0, 20, rows))  # interleaved


@pytest.mark.parametrize("seconds", [False, True])
@pytest.mark.parametrize("suffix", [".txt", ".txt.xz", ".csv", ".csv.gz", ".parquet", ".arrow", ".gradrank"])
def test_files(tmp_path: Path, suffix: str, seconds: bool) -> None:
    data = _data(seconds=seconds)
    path = tmp_path / f"a{suffix}"
    write_data(data, path)
    read = read_data(path)
    assert read.X.dtype == (np.float64 if seconds else np.float32)
    trees = LambdaMART(n_estimators=10, min_child_samples=3).fit(data).ranker_
    linear = LinearRanker([1.0, -2.0, 0.5], feature_names=["f1", "f2", "f3"])
    for ranker in (trees, linear):
        scores = _all(ranker, open_source(path, format_to_read(path), width=3))
        assert scores == ranker.predict(read).tolist()
        assert len(set(scores)) > 5


def test_features_are_found_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_data(_data(), path)
    ranker = LinearRanker([1.0, 100.0], feature_names=["f3", "f1"])
    scores = _all(ranker, open_source(path, format_to_read(path)))
    assert scores == ranker.predict(read_data(path)).tolist()


def _pipe(data: RankingData, tmp_path: Path, kind: str) -> tuple[io.BytesIO, Path]:
    path = tmp_path / f"a.{kind}"
    write_data(data, path)
    return io.BytesIO(path.read_bytes()), path


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ["txt", "csv"])
@pytest.mark.parametrize("seconds", [False, True])
@pytest.mark.parametrize("head", [1000, 10**9])
def test_pipes(tmp_path: Path, kind: str, seconds: bool, head: int, packed: bool) -> None:
    pipe, path = _pipe(_data(seconds=seconds), tmp_path, kind)
    if packed:
        pipe = io.BytesIO(gzip.compress(pipe.getvalue()))
    name = Path("<standard input>")
    source = LetorSource(name, pipe, width=3) if kind == "txt" else CsvSource(name, Columns(), pipe)
    ranker = LinearRanker([1.0, -2.0, 0.5], feature_names=["f1", "f2", "f3"])
    assert _all(ranker, source, head_bytes=head) == ranker.predict(read_data(path)).tolist()


def test_scores_of_a_pipe_come_before_its_end() -> None:
    class Slow(io.BytesIO):
        given = 0

        def read(self, size: int | None = -1) -> bytes:
            content = super().read(size)
            self.given += len(content)
            return content

    text = b"".join(b"1 qid:1 1:%d\n" % row for row in range(20_000))
    pipe = Slow(text)
    blocks = streamed_scores(
        LinearRanker([1.0], feature_names=["f1"]), LetorSource(Path("-"), pipe, width=1), head_bytes=99
    )
    assert next(blocks)[:3].tolist() == [0.0, 1.0, 2.0]
    assert pipe.given < len(text) / 2


def test_a_pipe_whose_end_needs_more_digits_than_its_head(tmp_path: Path) -> None:
    lines = [f"1 qid:1 1:{row} 2:0.123456789" for row in range(500)]
    text = "\n".join([*lines, "1 qid:1 1:16777217 2:0.5", ""]).encode()
    ranker = LinearRanker([1.0, 0.0], feature_names=["f1", "f2"])
    with pytest.raises(DataError, match="'f1' holds whole numbers that float32 changes"):
        _all(ranker, LetorSource(Path("-"), io.BytesIO(text), width=2), head_bytes=2000)
    path = tmp_path / "a.txt"
    path.write_bytes(text)
    assert _all(ranker, LetorSource(path, width=2))[-1] == 16777217.0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("1 qid:1 1:1 2:2 3:3", "has 3 features, the model has 2"),
        ("1 qid:1 1:1 2:x", "a.txt:301: the value in '2:x' is not a number"),
    ],
)
def test_text_that_does_not_fit(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text("\n".join([*["1 qid:1 1:1 2:2"] * 300, line]))
    with pytest.raises(DataError) as found:
        _all(LinearRanker([1.0, 1.0], feature_names=["f1", "f2"]), LetorSource(path, width=2))
    assert said in str(found.value)


def test_text_with_too_few_features(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("1 qid:1 1:1 2:2\n" * 300)
    ranker = LinearRanker([1.0, 1.0, 1.0], feature_names=["f1", "f2", "f3"])
    with pytest.raises(DataError, match="--n-features 3 reads them so"):
        _all(ranker, LetorSource(path, width=3))
    assert _all(ranker, LetorSource(path, width=3, n_features=3)) == [3.0] * 300

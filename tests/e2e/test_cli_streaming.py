"""Data of any size on the command line: read by blocks, from files and standard input, never held whole."""

from __future__ import annotations

import subprocess
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradrank import LambdaMART, RankingData, load_ranker, read_data, write_data
from gradrank.cli import score_files, streaming
from gradrank.cli.commands import convert
from gradrank.data.formats.binary import open_binary
from tests.support.commands import PROGRAM, content_of, error_of, run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Interleaved text, and a model of its first two features."""
    folder = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3)).round(4)
    labels = np.clip(np.round(X[:, 0] + X[:, 1]), 0, 2).astype(int)
    queries = rng.integers(0, 40, 900)
    lines = [
        f"{label} qid:{query} " + " ".join(f"{place}:{value:g}" for place, value in enumerate(row, 1))
        for label, query, row in zip(labels, queries, X, strict=True)
    ]
    (folder / "a.txt").write_text("\n".join([*lines, ""]))
    LambdaMART(n_estimators=5).fit(read_data(folder / "a.txt")).ranker_.save(folder / "model.json")
    return folder


def test_from_standard_input_to_standard_output(made: Path, tmp_path: Path) -> None:
    with (made / "a.txt").open("rb") as text:
        found = subprocess.run(
            [*PROGRAM, "score", str(made / "model.json"), "-"], stdin=text, capture_output=True, check=True, timeout=120
        )
    expected = load_ranker(made / "model.json").predict(read_data(made / "a.txt")).tolist()
    assert [float(line) for line in found.stdout.split()] == expected
    result = run("score", made / "model.json", made / "a.txt", "-o", tmp_path / "scores.txt.gz")
    assert result.exit_code == 0
    run("convert", made / "a.txt", tmp_path / "a.csv")
    with (tmp_path / "a.csv").open("rb") as text:
        call = [*PROGRAM, "score", str(made / "model.json"), "-", "--from", "csv"]
        rows = subprocess.run(call, stdin=text, capture_output=True, check=True, timeout=120).stdout.split()
    # The file that was converted has the rows of a query together.
    assert [float(row) for row in rows] == load_ranker(made / "model.json").grouped_scores(
        read_data(made / "a.txt")
    ).tolist()


@pytest.mark.parametrize("output", ["-", "scores.txt"])
def test_a_fault_at_the_end_leaves_no_scores(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (made / "a.txt").read_text()
    (tmp_path / "a.txt").write_text(text + "1 qid:1 1:oops\n")
    result = run("score", made / "model.json", "a.txt", "-o", output)
    assert error_of(result) == "a.txt:901: the value in '1:oops' is not a number"
    assert result.stdout == ""
    assert list(content_of(tmp_path)) == ["a.txt"]


def test_formats_that_cannot_come_through_a_pipe(made: Path) -> None:
    result = run("score", made / "model.json", "-", "--from", "parquet")
    assert "cannot be read from standard input" in error_of(result)


def test_strict_order_is_kept_by_scoring(made: Path) -> None:
    result = run("score", made / "model.json", made / "a.txt", "--strict-order")
    assert "comes again" in error_of(result)


def test_convert_into_the_binary_form(made: Path, tmp_path: Path) -> None:
    result = run("convert", made / "a.txt", tmp_path / "a.gradrank")
    assert "brought together" in result.stderr
    write_data(read_data(made / "a.txt"), tmp_path / "memory.gradrank")
    assert content_of(tmp_path / "a.gradrank") == content_of(tmp_path / "memory.gradrank")


@pytest.mark.parametrize("name", ["b.txt", "b.csv", "b.parquet"])
def test_large_files_are_converted_by_way_of_the_binary_form(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    run("convert", made / "a.txt", tmp_path / name)
    small = (tmp_path / name).read_bytes()
    monkeypatch.setattr(convert, "is_large", lambda *_: True)
    result = run("convert", made / "a.txt", tmp_path / name)
    assert "brought together" in result.stderr
    assert (tmp_path / name).read_bytes() == small
    assert list(tmp_path.iterdir()) == [tmp_path / name]


def test_evaluation_without_features_is_the_same(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = tmp_path / "scores.txt"
    run("score", made / "model.json", made / "a.txt", "-o", scores)
    model = ["--model", made / "model.json"]
    held = run("evaluate", made / "a.txt", *model, "--format", "csv").stdout
    from_scores = run("evaluate", made / "a.txt", "--scores", scores, "--format", "csv").stdout
    monkeypatch.setattr(score_files, "is_large", lambda *_: True)
    streamed = run("evaluate", made / "a.txt", *model, "--format", "csv").stdout
    assert streamed == held
    assert held.splitlines()[1].split(",")[1:] == from_scores.splitlines()[1].split(",")[1:]
    assert "nan" not in held


def test_what_is_large(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = streaming.Reading()
    size = (made / "a.txt").stat().st_size
    for limit, large in ((4 * size + 4, False), (4 * size - 4, True), (None, False)):
        monkeypatch.setattr("gradrank.runtime.memory.memory_limit", lambda limit=limit: limit)
        assert streaming.is_large(made / "a.txt", reading) is large
    run("convert", made / "a.txt", tmp_path / "a.gradrank")
    monkeypatch.setattr("gradrank.runtime.memory.memory_limit", lambda: 1)
    assert not streaming.is_large(tmp_path / "a.gradrank", reading)


N_DOCS, N_FEATURES = 16_000, 250


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large")
    rng = np.random.default_rng(1)
    X = rng.integers(0, 100, (N_DOCS, N_FEATURES)) + 0.1
    label = (X[:, 0] > 50).astype(float)
    data = RankingData.from_arrays(X.astype(np.float32), label, qid=np.arange(N_DOCS) // 20)
    write_data(data, folder / "a.gradrank")
    write_data(data, folder / "a.txt")
    write_data(data, folder / "a.parquet")
    LambdaMART(n_estimators=1).fit(open_binary(folder / "a.gradrank")).ranker_.save(folder / "model.json")
    return folder


class TestTheMatrixIsNeverHeld:
    """What Python holds at most stays far below the size of the features."""

    @pytest.fixture(autouse=True)
    def small_blocks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in (
            "gradrank.learners.trees.binning._BLOCK_BYTES",
            "gradrank.learners.trees.feature_bins._BLOCK_BYTES",
            "gradrank.models.ranker._BLOCK_BYTES",
            "gradrank.data.streaming.sources._BLOCK_BYTES",
            "gradrank.data.streaming.pieces._PIECE_BYTES",
            "gradrank.data.tables._BLOCK_BYTES",
        ):
            monkeypatch.setattr(name, 1 << 18)
        monkeypatch.setattr("gradrank.data.streaming.letor_source._PART_BYTES", 1 << 16)
        # Blocks under way are held, as many as there are threads.
        monkeypatch.setattr("gradrank.data.streaming.letor_source.thread_count", lambda _: 2)

    def _peak_share(self, work: Callable[[], Any]) -> float:
        work()  # what is made at first use is not counted
        tracemalloc.start()
        try:
            work()
            return tracemalloc.get_traced_memory()[1] / (4 * N_DOCS * N_FEATURES)
        finally:
            tracemalloc.stop()

    # Histograms of symmetric trees are NumPy's, and do not grow with the documents: small ones show what does.
    @pytest.mark.parametrize("shape", [{"grow_policy": "lossguide"}, {"max_depth": 3, "max_bin": 63}])
    def test_training(self, large: Path, shape: dict[str, Any]) -> None:
        def train() -> None:
            data = open_binary(large / "a.gradrank")
            LambdaMART(n_estimators=2, **shape).fit(data, valid=data)

        assert self._peak_share(train) < 0.5

    @pytest.mark.parametrize("suffix", [".gradrank", ".txt"])
    def test_scoring(self, large: Path, tmp_path: Path, suffix: str) -> None:
        call = ("score", large / "model.json", large / f"a{suffix}", "-o", tmp_path / "scores.txt", "--threads", 1)
        assert self._peak_share(lambda: run(*call)) < 0.5

    @pytest.mark.parametrize("suffix", [".txt", ".parquet"])
    def test_converting(self, large: Path, tmp_path: Path, suffix: str) -> None:
        assert self._peak_share(lambda: run("convert", large / f"a{suffix}", tmp_path / "b.gradrank")) < 0.5

    @pytest.mark.parametrize("suffix", [".txt", ".parquet"])
    def test_evaluating(self, large: Path, tmp_path: Path, suffix: str) -> None:
        (tmp_path / "scores.txt").write_text("".join(f"{row}\n" for row in range(N_DOCS)))
        call = ("evaluate", large / f"a{suffix}", "--scores", tmp_path / "scores.txt")
        assert self._peak_share(lambda: run(*call)) < 0.5

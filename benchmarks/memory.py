"""Data larger than memory: commands under a limit beside the same work in memory, and LightGBM's own file reading.

Run: python benchmarks/memory.py [--limit 600 --times 3 --features 300 --bins 255 --trees 5 --folder DIR]
Five times the limit (8 GB of disk, 10 GB of memory for the run beside it): --limit 1500 --times 5 --features 700

A set of ``--times`` the limit (float64, in the binary form) is made in blocks, then trained on, scored and evaluated
under the limit, which counts the pages of files as well; the same training without a limit, on the matrix in memory,
must give the same trees and scores. Then a text of ``--text`` times the limit is converted and scored under the limit,
and read by LightGBM with ``two_round=true`` under the same one. Peaks are of memory that is not a file's (RssAnon).
The limit is that of a control group; where there is none to be had, of the data segment (``ulimit -d``).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gradrank.data import RankingData
from gradrank.data.formats.binary import open_binary, write_binary_blocks
from gradrank.data.formats.registry import write_data
from gradrank.data.ranking_data import default_feature_names
from gradrank.data.strings import Strings

DOCS_PER_QUERY = 40
QUERIES_PER_BLOCK = 250
GROUPS = Path("/sys/fs/cgroup/memory")
GRADRANK = (sys.executable, "-m", "gradrank")


def blocks(docs: int, features: int, dtype: type) -> Iterator[RankingData]:
    """Made-up data, a block of queries at a time; the numbers are float32's, whatever they are held in."""
    for first in range(0, docs // DOCS_PER_QUERY, QUERIES_PER_BLOCK):
        rng = np.random.default_rng(first)
        queries = min(QUERIES_PER_BLOCK, docs // DOCS_PER_QUERY - first)
        X = rng.standard_normal((queries * DOCS_PER_QUERY, features), dtype=np.float32)
        noise = rng.standard_normal(len(X), dtype=np.float32)
        label = np.clip(np.round(X[:, :4].sum(axis=1) + noise), 0, 4).astype(np.float32)
        yield RankingData(
            X=X.astype(dtype),
            indptr=np.arange(0, len(X) + 1, DOCS_PER_QUERY),
            labels={"label": label},
            qid=Strings.of(range(first, first + queries)),
            feature_names=default_feature_names(features),
        )


@dataclass(frozen=True)
class Run:
    """What came of a process."""

    code: int
    seconds: float
    peak: float
    """Highest memory besides pages of files, in MB."""
    error: str

    def line(self, name: str) -> str:
        """A row of the table."""
        outcome = "" if self.code == 0 else f"   failed ({self.code}): {self.error.strip().splitlines()[-1:]}"
        return f"{name:<44}{self.peak:>9,.0f} MB{self.seconds:>9.1f} s{outcome}"


def limited(limit_mb: int) -> tuple[Callable[[], None], Callable[[], None], str]:
    """What the child does to be under the limit, what is done afterwards, and the name of the means."""
    size = limit_mb << 20
    group = GROUPS / f"gradrank-{os.getpid()}"
    try:
        group.mkdir(exist_ok=True)
        (group / "memory.limit_in_bytes").write_text(str(size))
    except OSError:
        return lambda: resource.setrlimit(resource.RLIMIT_DATA, (size, size)), lambda: None, "ulimit -d"

    def enter() -> None:
        (group / "cgroup.procs").write_text(str(os.getpid()))

    return enter, group.rmdir, "control group"


def run(call: list[str], enter: Callable[[], None] | None = None, output: Path | None = None) -> Run:
    """Run a process and watch its memory; what it prints goes to a file, if one is named."""
    began = time.perf_counter()
    with tempfile.TemporaryFile("w+") as errors, open(output or os.devnull, "w") as printed:
        process = subprocess.Popen(call, stdout=printed, stderr=errors, preexec_fn=enter)
        peak = 0
        while process.poll() is None:
            try:
                found = re.search(r"RssAnon:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
            except OSError:
                found = None
            peak = max(peak, int(found[1]) if found else 0)
            time.sleep(0.01)
        errors.seek(0)
        return Run(process.returncode, time.perf_counter() - began, peak / 1024, errors.read())


def train_in_memory(path: Path, output: Path, trees: int, bins: int, threads: int) -> None:
    """The same training and scoring with the whole matrix in memory."""
    from dataclasses import replace

    from gradrank import LambdaMART, evaluate
    from gradrank.data.formats.columns import write_column

    mapped = open_binary(path)
    matrix: Any = np.array(mapped.X)
    data = replace(mapped, X=matrix)
    model = LambdaMART(n_estimators=trees, max_bin=bins, n_jobs=threads).fit(data)
    model.ranker_.save(output)
    write_column(model.predict(data), output.with_suffix(".scores"))
    means = evaluate(data, {"scores": model.ranker_}, ["NDCG@10"]).means()["scores"]
    output.with_suffix(".value").write_text(json.dumps(means))


def lightgbm_two_round(path: Path, bins: int, threads: int) -> None:
    """LightGBM's reading of a text file in two rounds, which does not hold the text."""
    import lightgbm

    lightgbm.Dataset(str(path), params={"two_round": True, "max_bin": bins, "num_threads": threads}).construct()


def same_trees(one: Path, other: Path) -> bool:
    """Whether two models are the same, bit for bit."""
    return bool(json.loads(one.read_text())["payload"] == json.loads(other.read_text())["payload"])


def main() -> None:
    """Make the data, run everything, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=600, help="MB")
    parser.add_argument("--times", type=float, default=3.0)
    parser.add_argument("--text", type=float, default=1.0)
    parser.add_argument("--features", type=int, default=300)
    parser.add_argument("--bins", type=int, default=255)
    parser.add_argument("--trees", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        work, path, output = options.child
        if work == "memory":
            train_in_memory(Path(path), Path(output), options.trees, options.bins, options.threads)
        else:
            lightgbm_two_round(Path(path), options.bins, options.threads)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        measure(options, Path(folder))


def measure(options: argparse.Namespace, folder: Path) -> None:
    """Run everything in a folder."""
    docs = int(options.times * (options.limit << 20) / (8 * options.features)) // DOCS_PER_QUERY * DOCS_PER_QUERY
    data, model, scores = folder / "train.gradrank", folder / "model.json", folder / "scores.txt"
    write_binary_blocks(blocks(docs, options.features, np.float64), data)
    enter, leave, means = limited(options.limit)
    me = [sys.executable, __file__, "--trees", str(options.trees), "--bins", str(options.bins)]
    me += ["--threads", str(options.threads), "--child"]
    threads = ["--threads", str(options.threads)]
    size, bins = docs * options.features * 8 / 2**20, docs * options.features / 2**20
    print(
        f"{docs:,} documents × {options.features} features in float64: {size:,.0f} MB, {options.times:g} × the limit of"
    )
    print(f"{options.limit:,} MB ({means}); their bins: {bins:,.0f} MB")
    try:
        shape = ["--trees", str(options.trees), "--bins", str(options.bins), *threads]
        train = [*GRADRANK, "train", "--train", str(data), "-o", str(model), *shape]
        print(run(train, enter).line("train, limited"))
        print(
            run([*GRADRANK, "score", str(model), str(data), "-o", str(scores), *threads], enter).line("score, limited")
        )
        evaluate = [*GRADRANK, "evaluate", str(data), "--scores", str(scores), "-m", "NDCG@10"]
        print(run([*evaluate, "--format", "json", *threads], enter, folder / "value.json").line("evaluate, limited"))
        beside = folder / "memory.json"
        print(run([*me, "memory", str(data), str(beside)]).line("train and score in memory, no limit"))
        print(run([*me, "memory", str(data), str(beside.with_suffix(".x"))], enter).line("the same, limited"))
        print(f"same trees: {same_trees(model, beside)}, same scores: "
              f"{scores.read_bytes() == beside.with_suffix('.scores').read_bytes()}, NDCG@10 limited and in memory: "
              f"{json.loads((folder / 'value.json').read_text())[str(scores)]['NDCG@10']!r}, "
              f"{json.loads(beside.with_suffix('.value').read_text())['NDCG@10']!r}")  # fmt: skip
        text(options, folder, me, enter)
    finally:
        leave()


def text(options: argparse.Namespace, folder: Path, me: list[str], enter: Callable[[], None]) -> None:
    """Text: converted and scored by us, read by LightGBM."""
    # About 13 characters for each value.
    docs = int(options.text * (options.limit << 20) / (13 * options.features)) // DOCS_PER_QUERY * DOCS_PER_QUERY
    made, path, converted = folder / "small.gradrank", folder / "text.txt", folder / "converted.gradrank"
    write_binary_blocks(blocks(docs, options.features, np.float32), made)
    write_data(open_binary(made), path)
    print(f"LETOR text of {docs:,} documents: {path.stat().st_size / 2**20:,.0f} MB")
    print(run([*GRADRANK, "convert", str(path), str(converted)], enter).line("convert, limited"))
    same = all((converted / file.name).read_bytes() == file.read_bytes() for file in made.iterdir())
    print(f"same files as from memory: {same}")
    score = [*GRADRANK, "score", str(folder / "model.json"), str(path), "-o", str(folder / "text.scores")]
    print(run(score, enter).line("score the text, limited"))
    print(run([*me, "lightgbm", str(path), "-"], enter).line("LightGBM two_round, limited, bins only"))


if __name__ == "__main__":
    main()

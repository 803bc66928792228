"""How fast LETOR text is read: gradrank beside XGBoost, LightGBM and scikit-learn, on the same file.

    python benchmarks/read.py [FILE]

Without a file: MQ2007 if it is found in ``../shared/data``, otherwise made-up data of its shape.
"""

from __future__ import annotations

import argparse
import lzma
import re
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import lightgbm
import numpy as np
import xgboost
from sklearn.datasets import load_svmlight_file

from gradrank.data.formats.letor import read_letor, write_letor
from gradrank.data.ranking_data import RankingData

MQ2007 = Path(__file__).resolve().parents[2] / "shared" / "data" / "mq2007"


def made_up(path: Path) -> None:
    """Data of MQ2007's shape: 69,623 documents, 46 features with six decimals, about 41 documents per query."""
    generator = np.random.default_rng(0)
    n_docs = 69_623
    features = np.round(generator.random((n_docs, 46)), 6)
    data = RankingData.from_arrays(
        features,
        generator.integers(0, 3, n_docs),
        qid=np.arange(n_docs) // 41,
        docid=(f"GX000-00-{row:07d}" for row in range(n_docs)),
    )
    write_letor(data, path)


def without_ids(source: Path, target: Path) -> None:
    """The same lines without query ids and comments, which LightGBM does not read."""
    lines = source.read_bytes().splitlines()
    target.write_bytes(b"".join(re.sub(rb" qid:\S+| *#.*", b"", line) + b"\n" for line in lines))


def best_seconds(read: Callable[[], object], repeats: int = 3) -> float:
    """The shortest of several runs; a run before them loads and compiles what is needed."""
    read()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        read()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Print a table of speeds."""
    parser = argparse.ArgumentParser(description="Speed of reading LETOR text.")
    parser.add_argument("file", nargs="?", type=Path, help="a plain LETOR file with rising feature indices")
    given: Path | None = parser.parse_args().file
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.txt"
        parts = sorted(MQ2007.glob("S*.txt.xz"))
        if given is not None:
            path.symlink_to(given.resolve())
            name = given.name
        elif parts:
            path.write_bytes(b"".join(lzma.decompress(part.read_bytes()) for part in parts))
            name = "MQ2007"
        else:
            made_up(path)
            name = "made-up data of MQ2007's shape"
        size = path.stat().st_size / 1e6
        bare = Path(folder) / "bare.txt"
        without_ids(path, bare)
        print(f"{name}, {size:.1f} MB")

        silent = {"verbosity": -1}
        readers: dict[str, Callable[[], object]] = {
            "gradrank": lambda: read_letor(path),
            "gradrank, one thread": lambda: read_letor(path, n_jobs=1),
            "XGBoost": lambda: xgboost.DMatrix(f"{path}?format=libsvm"),
            "scikit-learn": lambda: load_svmlight_file(str(path), query_id=True),
            "LightGBM (no ids; bins features)": lambda: lightgbm.Dataset(str(bare), params=silent).construct(),
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seconds = {reader: best_seconds(read) for reader, read in readers.items()}
        print(f"{'reader':36}{'seconds':>9}{'MB/s':>9}{'gradrank is':>14}")
        for reader, taken in seconds.items():
            print(f"{reader:36}{taken:9.3f}{size / taken:9.0f}{taken / seconds['gradrank']:12.1f} ×")

        data = read_letor(path)
        target = Path(folder) / "written.txt"
        taken = best_seconds(lambda: write_letor(data, target))
        print(f"{'gradrank writing':36}{taken:9.3f}{target.stat().st_size / 1e6 / taken:9.0f}")


if __name__ == "__main__":
    main()

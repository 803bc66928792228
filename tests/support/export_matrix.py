"""Which kinds of model each export format holds, and how exactly: measured with those who read the files.

    python -m tests.support.export_matrix --rows 10000 --write docs/guides/export.md
    python -m tests.support.export_matrix --letor train.txt test.txt

The first writes the table of the guide; the second trains on LETOR files and compares all scores of the test file.
"""

from __future__ import annotations

import argparse
import math
import re
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import lightgbm
import numpy as np

from gradrank.data import RankingData
from gradrank.errors import ModelError
from gradrank.learners import LambdaMART, LambdaSMART, McRank, RankSVM
from gradrank.models.exchange.registry import EXPORTS
from gradrank.models.feature import FeatureRanker
from gradrank.models.nets.net import NetRanker
from gradrank.models.nets.scaling import Scaling
from gradrank.models.ranker import Ranker
from gradrank.models.trees.ensemble import TreeEnsemble
from gradrank.models.weighted_sum import WeightedSum
from tests.support.consumers import CONSUMERS, Consumer

NAMES = ["bm25", "page rank", "prix_été", "age", "clicks", "category"]
BEGIN, END = "<!-- matrix -->", "<!-- end of the matrix -->"
IDENTICAL, NO, APPROXIMATE = "identical", "–", "approximate"
LIST = 100
USES_LIBRARY = ("net", "net, ReLU, logarithms", "trees, net and line", "expected grade")
"""Kinds that call tanh, exp or log1p, which C libraries round in their own ways."""


# ---------------------------------------------------------------------- models
def documents(count: int, random_state: int) -> np.ndarray:
    """Rows of six features in single precision: four numbers, a count with many zeros, a category."""
    rng = np.random.default_rng(random_state)
    X = rng.normal(size=(count, 6))
    X[:, 4] = np.maximum(rng.poisson(0.7, count) - 0.5 * (rng.random(count) < 0.1), 0)
    X[:, 5] = rng.integers(0, 40, count)
    return X.astype(np.float32)


def truth(X: np.ndarray) -> np.ndarray:
    x = np.nan_to_num(X)
    return x[:, 0] - 0.7 * x[:, 1] * (x[:, 4] > 0) + 0.4 * x[:, 4] + (x[:, 5] % 3 == 0)


@cache
def training_data() -> RankingData:
    X = documents(1200, 1)
    return RankingData.from_arrays(
        X, np.searchsorted([0.0, 1.0, 2.0], truth(X)), group=np.full(60, 20), feature_names=NAMES
    )


def booster_trees(**parameters: object) -> TreeEnsemble:
    X = documents(2000, 2)
    X[np.random.default_rng(3).random(X.shape) < 0.1] = np.nan
    settings = {"verbose": -1, "num_threads": 1, "num_leaves": 31, "min_data_per_group": 5, **parameters}
    category = [5] if "cat_smooth" in parameters else []
    booster = lightgbm.train(settings, lightgbm.Dataset(X, truth(X), categorical_feature=category), 8)
    return TreeEnsemble(TreeEnsemble.from_lightgbm(booster).trees, NAMES, base_score=1 / 3)


def small_net(activation: str, log: bool) -> NetRanker:
    rng = np.random.default_rng(4)
    scaling = Scaling(rng.normal(size=6), np.array([0.7, 1.1, 1.0, 0.0, 2.0, 12.0]), log)
    layers = [(rng.normal(size=(5, 6)), rng.normal(size=5)), (rng.normal(size=(3, 5)), rng.normal(size=3))]
    layers.append((rng.normal(size=(1, 3)), np.array([1 / 3])))
    return NetRanker(layers, activation=activation, scaling=scaling, feature_names=NAMES)


@cache
def kinds() -> dict[str, Ranker]:
    """One model of every kind."""
    data = training_data()
    settings = {"n_estimators": 12, "num_leaves": 7, "learning_rate": 0.05, "n_jobs": 1}
    trees = LambdaMART("NDCG@10", **settings).fit(data).ranker_
    others = LambdaMART("MAP", random_state=1, **settings).fit(data).ranker_
    line = RankSVM(n_jobs=1).fit(data).ranker_
    net = small_net("tanh", log=False)
    return {
        "trees": trees,
        "trees, missing values": booster_trees(),
        "trees, 0 is missing": booster_trees(zero_as_missing=True),
        "trees, categories": booster_trees(cat_smooth=1),
        "sum of trees": WeightedSum([(0.7, trees), (0.3, others)], feature_names=NAMES),
        "trees on a feature": LambdaSMART("NDCG@10", base="bm25", **settings).fit(data).ranker_,
        "line": line,
        "single feature": FeatureRanker("age", -1, feature_names=NAMES),
        "net": net,
        "net, ReLU, logarithms": small_net("relu", log=True),
        "trees, net and line": WeightedSum([(0.7, trees), (-0.2, net), (1.1, line)], feature_names=NAMES),
        "expected grade": McRank(n_estimators=5, num_leaves=7, learning_rate=0.05, n_jobs=1).fit(data).ranker_,
    }


# ---------------------------------------------------------------------- documents
def probes(ranker: Ranker, count: int, *, single: bool) -> np.ndarray:
    """Rows to compare scores of: thresholds hit exactly, their neighbors, zeros of both signs, missing values, any."""
    rng = np.random.default_rng(5)
    X = documents(count, 6)
    X[rng.random(X.shape) < 0.08] = np.nan
    X[rng.random(X.shape) < 0.04] = 0.0
    X[rng.random(X.shape) < 0.04] = -0.0
    trees = [tree for ensemble in ranker.tree_ensembles() for tree in ensemble.trees]
    at = [
        (int(feature), float(threshold))
        for tree in trees
        for feature, threshold, decision in zip(tree.split_feature, tree.threshold, tree.decision, strict=True)
        if not decision & 1
    ]
    kind = np.float32 if single else np.float64
    rows = documents(3 * len(at), 7).astype(kind)
    for k, (feature, threshold) in enumerate(at):
        with np.errstate(over="ignore"):
            middle = kind(threshold)
            values = (np.nextafter(middle, kind(-np.inf)), middle, np.nextafter(middle, kind(np.inf)))
        for shift, value in enumerate(values):
            rows[3 * k + shift, feature] = value
    return np.concatenate((rows, X.astype(kind)))


# ---------------------------------------------------------------------- comparing
@dataclass(frozen=True)
class Result:
    """How the scores of an exported model agree."""

    said: str
    difference: float = 0.0
    reversed_pairs: int = 0

    def cell(self) -> str:
        if self.said != IDENTICAL or self.difference == 0.0:
            return self.said
        pairs = f", {self.reversed_pairs:,} pairs reversed" if self.reversed_pairs else ""
        return f"≤ {rounded_up(self.difference)}{pairs}"


def rounded_up(value: float) -> str:
    """A number of one digit that is not smaller.

    >>> rounded_up(4.2e-8), rounded_up(9.6e-16), rounded_up(3e-7)
    ('5e-08', '1e-15', '3e-07')
    """
    power = math.floor(math.log10(value))
    digit = math.ceil(round(value / 10.0**power, 6))
    return f"1e{power + 1:03d}" if digit == 10 else f"{digit}e{power:03d}"


def reversed_pairs(ours: np.ndarray, theirs: np.ndarray) -> int:
    """Pairs in lists of 100 documents that one puts strictly in one order and the other strictly in the opposite."""
    count = 0
    for start in range(0, len(ours), LIST):
        a, b = ours[start : start + LIST], theirs[start : start + LIST]
        count += int(((a[:, None] > a) & (b[:, None] < b)).sum())
    return count


def compared(ranker: Ranker, form: str, folder: Path, rows: int) -> Result:
    """Export a ranker and compare its scores with those of who reads the file."""
    consumer = CONSUMERS[form]
    path = folder / f"model{EXPORTS[form].suffix}"
    said, X = IDENTICAL, probes(ranker, rows, single=consumer.single)
    try:
        notes = ranker.export(path, form)
    except ModelError:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                notes = ranker.export(path, form, approximate=True)
        except ModelError:
            return Result(NO)
        # What is lost is left out: missing values, zeros, and values next to thresholds.
        said, X = APPROXIMATE, np.where(np.isnan(X[-rows:]) | (X[-rows:] == 0), X.dtype.type(0.5), X[-rows:])
    constant = sum(float(number) for note in notes for number in re.findall(r"the constant (\S+) is left out", note))
    ours, theirs = ranker.predict(X, n_jobs=1) - constant, scores(consumer, path, X)
    return Result(said, float(np.abs(ours - theirs).max()), reversed_pairs(ours, theirs))


def scores(consumer: Consumer, path: Path, X: np.ndarray) -> np.ndarray:
    return consumer.score(path, X, NAMES if X.shape[1] == len(NAMES) else [f"f{k + 1}" for k in range(X.shape[1])])


def measured(rows: int) -> Iterator[tuple[str, str, Result]]:
    for kind, ranker in kinds().items():
        for form in EXPORTS:
            with tempfile.TemporaryDirectory() as folder:
                yield kind, form, compared(ranker, form, Path(folder), rows)


# ---------------------------------------------------------------------- the page
def table(results: dict[tuple[str, str], Result]) -> str:
    """The matrix, a row per format, and who read the files."""
    names = list(kinds())
    lines = ["| format | read by | " + " | ".join(names) + " |", "|" + "---|" * (len(names) + 2)]
    for form in EXPORTS:
        cells = [results[kind, form].cell() for kind in names]
        lines.append(f"| `{form}` | {CONSUMERS[form].who} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def parsed(page: str) -> dict[tuple[str, str], str]:
    """The cells of the matrix on a page."""
    rows = [line for line in page.partition(BEGIN)[2].partition(END)[0].splitlines() if line.startswith("|")]
    names = [cell.strip() for cell in rows[0].strip("|").split("|")][2:]
    cells: dict[tuple[str, str], str] = {}
    for row in rows[2:]:
        form, _, *values = [cell.strip() for cell in row.strip("|").split("|")]
        cells |= {(name, form.strip("`")): value for name, value in zip(names, values, strict=True)}
    return cells


def letor(train: str, test: str) -> None:
    from gradrank import read_data

    data, other = read_data(train), read_data(test)
    names = list(data.feature_names)
    trees = LambdaMART("NDCG@10", n_estimators=100, num_leaves=15, learning_rate=0.05).fit(data).ranker_
    line = RankSVM().fit(data).ranker_
    models = {"trees": trees, "line": line, "sum": WeightedSum([(1.0, trees), (0.1, line)], feature_names=names)}
    for kind, ranker in models.items():
        ours = ranker.grouped_scores(other)
        for form, consumer in CONSUMERS.items():
            with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                path = Path(folder) / f"model{EXPORTS[form].suffix}"
                try:
                    notes = ranker.export(path, form, approximate=True)
                except ModelError as error:
                    print(f"{kind} {form}: {error}")  # noqa: T201
                    continue
                left = sum(float(n) for note in notes for n in re.findall(r"the constant (\S+) is left out", note))
                theirs = consumer.score(path, other.X, names)
                swapped = sum(
                    reversed_pairs(ours[a:b], theirs[a:b])
                    for a, b in zip(other.indptr[:-1], other.indptr[1:], strict=True)
                )
                difference = np.abs(ours - left - theirs).max()
                print(f"{kind} {form}: {difference:.2g}, {swapped} pairs", *[w.message for w in said])  # noqa: T201


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--letor", nargs=2, metavar=("TRAIN", "TEST"))
    chosen = parser.parse_args()
    if chosen.letor:
        letor(*chosen.letor)
        return
    text = table({(kind, form): result for kind, form, result in measured(chosen.rows)})
    if chosen.write is None:
        print(text)  # noqa: T201
        return
    page = chosen.write.read_text(encoding="utf-8")
    before, after = page.partition(BEGIN)[0], page.partition(END)[2]
    chosen.write.write_text(f"{before}{BEGIN}\n{text}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()

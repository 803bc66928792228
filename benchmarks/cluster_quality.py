"""Whether workers cost quality: models of workers beside those of one machine, on test queries of several seeds.

Run: python benchmarks/cluster_quality.py [--docs 120000 --features 40 --trees 60 --test-docs 150000 --seeds 6]
                                           [--keep FILE]

One machine searches splits on λ's rounded at random to 126 levels (``quantized``); workers use λ's of 23 bits, as one
machine does with ``quantized=False``. All three are trained for each seed on data of its own, and compared on its test
queries. The last lines pool the queries of all seeds (a paired t-test, which takes the models as they are), and test
the seeds' mean differences (which knows that a training is a draw, and has few of them). With --keep the values of each
seed are kept in a file, and a seed that is there is not trained again.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import warnings
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np

from gradrank import LambdaMART, evaluate
from gradrank.data.artificial import make_data
from gradrank.data.formats.registry import write_data

MEASURE = "NDCG@10"
FILES = 4
DOCS = (40, 200)


def values_of(seed: int, given: argparse.Namespace) -> dict[str, np.ndarray]:
    """NDCG@10 of each test query for each way to train."""
    make = partial(make_data, n_docs=DOCS, n_features=given.features, noise=0.3, random_state=seed)
    counts = [2 * docs // sum(DOCS) for docs in (given.docs, given.docs // 4, given.test_docs)]
    train, valid, test = (make(count, part=part) for part, count in enumerate(counts))
    parameters = {"n_estimators": given.trees, "num_leaves": given.leaves, "random_state": seed, "n_jobs": 2}
    with tempfile.TemporaryDirectory() as place:
        for name, data in (("train", train), ("valid", valid)):
            (Path(place) / name).mkdir()
            cuts = [data.n_queries * part // FILES for part in range(FILES + 1)]
            for part in range(FILES):
                queries = np.arange(cuts[part], cuts[part + 1])
                write_data(data.take_queries(queries), Path(place) / name / f"{part}.parquet")
        workers = LambdaMART(MEASURE, **{**parameters, "n_jobs": 1})
        workers.fit(client=2, train=f"{place}/train", valid=f"{place}/valid")
    rankers = {
        "workers": workers.ranker_,
        "one machine": LambdaMART(MEASURE, **parameters).fit(train, valid=valid).ranker_,
        "one machine, exact λ": LambdaMART(MEASURE, quantized=False, **parameters).fit(train, valid=valid).ranker_,
    }
    found = evaluate(test, rankers, [MEASURE])
    (measure,) = found.measures
    return {name: found.values[name][measure] for name in rankers}


def kept(seed: int, given: argparse.Namespace) -> dict[str, np.ndarray]:
    """The values of the file, or such as are found now and added to it."""
    key = [seed, given.docs, given.features, given.trees, given.leaves, given.test_docs]
    if given.keep is not None and given.keep.exists():
        for line in given.keep.read_text().splitlines():
            item = json.loads(line)
            if item["key"] == key:
                return {name: np.array(values) for name, values in item["values"].items()}
    values = {name: own[~np.isnan(own)] for name, own in values_of(seed, given).items()}
    if given.keep is not None:
        with given.keep.open("a") as file:
            print(json.dumps({"key": key, "values": {name: own.tolist() for name, own in values.items()}}), file=file)
    return values


def tested(differences: np.ndarray) -> str:
    """Mean, standard error and p of a t-test against 0."""
    from scipy.stats import ttest_1samp

    error = differences.std(ddof=1) / np.sqrt(len(differences))
    return f"{differences.mean():+.5f} ± {error:.5f}, p = {ttest_1samp(differences, 0.0).pvalue:.3f}"


def main() -> None:
    """Train, evaluate, test."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=int, default=120_000)
    parser.add_argument("--features", type=int, default=40)
    parser.add_argument("--trees", type=int, default=60)
    parser.add_argument("--leaves", type=int, default=31)
    parser.add_argument("--test-docs", type=int, default=150_000)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--keep", type=Path, help="a file of JSON lines for what was found")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    found = []
    for seed in range(given.seeds):
        found.append(kept(seed, given))
        means = ", ".join(f"{name} {own.mean():.4f}" for name, own in found[-1].items())
        print(f"seed {seed}, {len(found[-1]['workers']):,} test queries: {means}", flush=True)
    for one, other in combinations(found[0], 2):
        by_seed = [item[one] - item[other] for item in found]
        print(f"{one} − {other}: queries {tested(np.concatenate(by_seed))};"
              f" seeds {tested(np.array([own.mean() for own in by_seed]))}")  # fmt: skip


if __name__ == "__main__":
    main()

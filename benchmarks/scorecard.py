"""A scorecard of three tiers with missing labels: grades, clicks and freshness, over weights that fill their space.

    python benchmarks/scorecard.py [--queries N] [--points N] [--trees N] [--folder DIR] [--plot FILE]

Made-up data of 30 documents per query. Clicks agree with the grades for 75 % of the pairs, and a quarter of the
documents has none. Freshness, from 0 to 3, goes by a feature of its own, with noise; it is known for 60 % of the
documents, and for none in a third of the queries. One model per point of weights, and one for the grades alone; all are
measured on test queries, for each measure with the labels that are there.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

from gradrank import LambdaMART, RankingData, make_splits, sweep
from gradrank.report.tradeoff import write_tradeoff
from gradrank.selection.weights import spread_weights

OBJECTIVE = "Tiered(NDCG@10, CNDCG(label=clicks)@10, NDCG(label=freshness)@10)"
MEASURE = "Graded(NDCG@10, CNDCG(label=clicks)@10, NDCG(label=freshness)@10)"


def with_missing_labels(data: RankingData, seed: int) -> RankingData:
    """The data with freshness, and with holes in both further labels."""
    rng = np.random.default_rng(seed)
    age = data.X[:, 3] + 0.5 * np.nanstd(data.X[:, 3]) * rng.standard_normal(data.n_docs)
    freshness = np.searchsorted(np.quantile(age, [0.5, 0.75, 0.9]), age).astype(np.float64)
    unknown = (rng.random(data.n_queries) < 1 / 3)[data.query_of_row()]
    freshness[unknown | (rng.random(data.n_docs) < 0.4)] = np.nan
    clicks = data.label("clicks").astype(np.float64)
    clicks[rng.random(data.n_docs) < 0.25] = np.nan
    return data.with_label("clicks", clicks).with_label("freshness", freshness)


def main() -> None:
    """Train all models and print how each does on test data."""
    parser = argparse.ArgumentParser(description="A scorecard of three tiers with missing labels.")
    parser.add_argument("--queries", type=int, default=2000, help="training queries; half as many for validation")
    parser.add_argument("--points", type=int, default=8)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where models are kept, so that a run can go on")
    parser.add_argument("--plot", type=Path, help="page with the trade-off and parallel coordinates")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    splits = make_splits(
        args.queries, n_docs=30, n_features=20, random_state=args.seed, noise=0.3, clicks=True, click_agreement=0.75
    )
    data = {name: with_missing_labels(part, args.seed + place) for place, (name, part) in enumerate(splits.items())}
    learner = LambdaMART(
        OBJECTIVE, measure=MEASURE, n_estimators=args.trees, learning_rate=0.1, random_state=args.seed, verbose=False
    )
    began = time.perf_counter()
    found = sweep(
        learner, data["train"], data["vali"], spread_weights(3, args.points, most=0.5), test_data=data["test"],
        folder=args.folder,
    )  # fmt: skip
    print(found.table("test").to_markdown())
    print(found.choice.sentence())
    print(f"{time.perf_counter() - began:.0f} s")
    if args.plot is not None:
        write_tradeoff(args.plot, found)


if __name__ == "__main__":
    main()

"""Speed of the exact combination of two rankers: linear in queries, quadratic in the length of lists.

Run: python benchmarks/combine.py [--measure NDCG@10 --threads N]

Two numbers per line: all seconds for the α of the best mean in 0…1 (about half of all pairs cross there), and the same
for α in −50…50, where nearly all pairs cross. Beside them: trying a grid of 1,000 weights by evaluating each.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from gradrank.combine import Combiner
from gradrank.data import RankingData
from gradrank.measures import Measure, parse_measure

SIZES = ((1_250, 50), (2_500, 50), (5_000, 50), (10_000, 50), (10_000, 25), (2_500, 100), (1_250, 200), (625, 400))
GRID = 1000


def made_up(queries: int, docs: int, random_state: int = 0) -> tuple[RankingData, np.ndarray, np.ndarray]:
    """Graded labels and two rankers of different quality, all scores distinct."""
    rng = np.random.default_rng(random_state)
    n = queries * docs
    labels = np.searchsorted([0.5, 0.75, 0.9, 0.97], rng.random(n))
    data = RankingData.from_arrays(np.zeros((n, 1), np.float32), labels, group=np.full(queries, docs))
    return data, labels + rng.normal(size=n), labels + 2.0 * rng.normal(size=n)


def seconds_of_search(
    measure: Measure, data: RankingData, one: np.ndarray, two: np.ndarray, everything: bool, n_jobs: int | None
) -> tuple[float, int]:
    """Seconds, and how many intervals the curve has."""
    combiner = Combiner(data, measure, n_jobs=n_jobs)
    start = time.perf_counter()
    if everything:
        found = combiner.search(one, two, form="additive", low=-50.0, high=50.0)
    else:
        found = combiner.search(one, two)
    return time.perf_counter() - start, found.curve.n_intervals


def seconds_of_grid(measure: Measure, data: RankingData, one: np.ndarray, two: np.ndarray, n_jobs: int | None) -> float:
    """Seconds for a grid of weights, from a few of them."""
    bound = measure.bind(data, n_jobs=n_jobs)
    tried = 5
    start = time.perf_counter()
    for alpha in np.linspace(0.0, 1.0, tried):
        bound.mean((1.0 - alpha) * one + alpha * two)
    return (time.perf_counter() - start) * GRID / tried


def main() -> None:
    """Print seconds for growing numbers of queries, then of documents per query."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", default="NDCG@10")
    parser.add_argument("--threads", dest="n_jobs", type=int)
    options = parser.parse_args()
    measure = parse_measure(options.measure)
    assert isinstance(measure, Measure)
    seconds_of_search(measure, *made_up(20, 20), False, options.n_jobs)  # compile
    print(f"{measure}: queries × documents, million pairs; seconds (intervals) for α in 0…1 and −50…50; grid of {GRID}")
    for queries, docs in SIZES:
        problem = made_up(queries, docs)
        pairs = queries * docs * (docs - 1) / 2e6
        near, far = (seconds_of_search(measure, *problem, wide, options.n_jobs) for wide in (False, True))
        grid = seconds_of_grid(measure, *problem, options.n_jobs)
        print(
            f"  {queries:6,} × {docs:3}  {pairs:5.1f}   {near[0]:5.2f} s ({near[1]:10,})   {far[0]:5.2f} s "
            f"({far[1]:10,})   grid {grid:6.1f} s"
        )


if __name__ == "__main__":
    main()

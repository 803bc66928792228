"""Speed of the test of local optimality: 459 directions × 10 steps, beside scoring and measuring every point anew.

Run: python benchmarks/optimality.py [--queries N --docs N --features N --hidden N --measure M]
"""

from __future__ import annotations

import argparse
import time
from itertools import pairwise

import numpy as np

from gradrank.data import RankingData
from gradrank.data.artificial import make_data
from gradrank.measures import Measure, parse_measure
from gradrank.models.nets.net import NetRanker
from gradrank.optimality import STEPS, direction_count, local_optimality
from gradrank.optimality.directions import random_direction


def random_net(n_features: int, hidden: int, random_state: int = 0) -> NetRanker:
    """A net with random weights; 0 hidden nodes is a linear one."""
    rng = np.random.default_rng(random_state)
    sizes = [n_features, hidden, 1] if hidden else [n_features, 1]
    return NetRanker([(rng.normal(size=(o, i)) / np.sqrt(i), np.zeros(o)) for i, o in pairwise(sizes)])


def seconds_anew(net: NetRanker, data: RankingData, measure: Measure, points: int) -> float:
    """Wall-clock seconds for one point: a net with moved weights scores everything, the measure ranks everything."""
    bound = measure.bind(data)
    weights = net.weight_vector()
    length = np.linalg.norm(weights)
    start = time.perf_counter()
    for point in range(points):
        moved = net.with_weight_vector(
            weights + STEPS[point % 10] * length * random_direction((0, point), len(weights))
        )
        bound.mean(moved.predict(data))
    return (time.perf_counter() - start) / points


def main() -> None:
    """Print seconds and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--docs", type=int, default=50)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--hidden", type=int, default=0)
    parser.add_argument("--measure", default="NDCG@10")
    options = parser.parse_args()
    measure = parse_measure(options.measure)
    assert isinstance(measure, Measure)
    small = make_data(200, n_docs=20, n_features=options.features, random_state=0)
    net = random_net(options.features, options.hidden)
    local_optimality(net, small, measure, epsilon=0.5)  # compile
    seconds_anew(net, small, measure, 1)
    data = make_data(options.queries, n_docs=options.docs, n_features=options.features, random_state=1)
    count = direction_count()
    print(
        f"{data.n_queries:,} queries × {options.docs} documents, {options.features} features, {options.hidden} hidden"
    )
    start, cpu = time.perf_counter(), time.process_time()
    result = local_optimality(net, data, measure, single_weights=False)
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    points = count * len(STEPS)
    print(f"  {measure}: {count} directions × {len(STEPS)} steps: {wall:.1f} s ({cpu:.1f} s of CPU)")
    print(f"  {points * data.n_docs / wall / 1e6:.0f} million document ranks/s; {result.improving} directions improve")
    anew = seconds_anew(net, data, measure, 20)
    print(
        f"  every point anew: {anew * points:.0f} s from 20 points; along lines is {anew * points / wall:.1f} × as fast"
    )


if __name__ == "__main__":
    main()

"""Cost of composed objectives: the λ pass of two tiers beside one tier's, and diagnostics beside training.

Run: python benchmarks/composition.py [--docs 480000 --features 136 --trees 40 --threads 2 --rounds 8]

Times of the λ passes are of processor time (on one thread, so that other work on the machine does not count); the share
of diagnostics is that of the processor time of a training. Goals: two tiers at most 1.6 times one, diagnostics at
most 10 % of training.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from train import made_up

from gradrank.data import RankingData
from gradrank.learners import LambdaMART, boosting
from gradrank.learners.trees.diagnostics import Recorder
from gradrank.measures import CNDCG, NDCG
from gradrank.objectives import BoundObjective, Lambda, Objective, Scheduled, Sigmoid, Tiered

TIERS = (Lambda(NDCG()), Lambda(CNDCG()))
OBJECTIVES: dict[str, Objective] = {
    "one tier: NDCG": TIERS[0],
    "two tiers: NDCG, CNDCG": Tiered(TIERS, (0.8, 0.2)),
    "two tiers, zero clicks too": Tiered(TIERS, (0.8, 0.2), zeros=True),
    "scheduled: NDCG, sigmoid": Scheduled(TIERS[0], Lambda(NDCG(), cost=Sigmoid()), w0=0.5, eta=0.0),
}


def with_clicks(data: RankingData, shown: float, random_state: int = 1) -> RankingData:
    """Click rates of a share of the documents, higher for better grades; 0 for documents nobody saw."""
    rng = np.random.default_rng(random_state)
    rates = rng.binomial(160, np.clip(0.02 + 0.05 * data.label() + 0.03 * rng.standard_normal(data.n_docs), 0, 1)) / 160
    return data.with_label("clicks", np.where(rng.random(data.n_docs) < shown, rates, 0.0))


def passes(bound: dict[str, BoundObjective], n_docs: int, rounds: int) -> dict[str, float]:
    """Shortest λ pass of each objective in milliseconds of processor time; they take turns."""
    scores = np.random.default_rng(2).standard_normal(n_docs)
    best = dict.fromkeys(bound, float("inf"))
    for _ in range(rounds + 1):
        for name, objective in bound.items():
            best[name] = min(best[name], 1000 * timed(partial(objective.gradients, scores)))
    return best


def timed(work: Callable[[], object]) -> float:
    """Processor time of this process, all threads."""
    start = time.process_time()
    work()
    return time.process_time() - start


class TimedRecorder(Recorder):
    """Diagnostics that count their own processor time: the difference of two trainings is mostly noise."""

    spent = 0.0

    def __init__(self, *arguments: Any, **options: Any) -> None:
        start = time.process_time()
        super().__init__(*arguments, **options)
        TimedRecorder.spent += time.process_time() - start

    def observe(self, step: int, scores: NDArray[np.float64]) -> None:
        """As the recorder does, timed."""
        start = time.process_time()
        super().observe(step, scores)
        TimedRecorder.spent += time.process_time() - start


def training(data: RankingData, valid: RankingData, trees: int, n_jobs: int, every: int) -> tuple[float, float]:
    """Processor time of a training, and of the diagnostics in it."""
    TimedRecorder.spent = 0.0
    learner = LambdaMART(Tiered(TIERS, (0.8, 0.2)), n_estimators=trees, num_leaves=31, n_jobs=n_jobs, diagnostics=every)
    return timed(lambda: learner.fit(data, valid=valid)), TimedRecorder.spent


def main() -> None:
    """Print times and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", type=int, default=480_000)
    parser.add_argument("--features", type=int, default=136)
    parser.add_argument("--trees", type=int, default=40)
    parser.add_argument("--threads", dest="n_jobs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    data = made_up(options.docs, options.features)
    for shown in (0.1, 0.3, 1.0):
        clicked = with_clicks(data, shown)
        start = time.process_time()
        bound = {name: objective.bind(clicked, n_jobs=1) for name, objective in OBJECTIVES.items()}
        binding = time.process_time() - start
        pairs = bound["two tiers: NDCG, CNDCG"].pairs()  # type: ignore[attr-defined]
        print(
            f"λ pass over {data.n_docs:,} documents, {shown:.0%} with clicks; pairs {pairs[0]:,} and {pairs[1]:,} "
            f"(ms of one thread; ratio to one tier); binding all four {binding:.1f} s"
        )
        times = passes(bound, data.n_docs, options.rounds)
        one = times["one tier: NDCG"]
        for name, value in times.items():
            print(f"  {name:28} {value:8.1f}   {value / one:5.2f}")
    clicked = with_clicks(data, 0.1)
    small = clicked.take_queries(np.arange(min(400, clicked.n_queries)))
    print(f"training {options.trees} trees of 31 leaves on two tiers (s of processor time, diagnostics, their share)")
    boosting.Recorder = TimedRecorder  # type: ignore[attr-defined]
    training(small, small, 2, options.n_jobs, 1)  # kernels are loaded
    for name, part in ((f"{clicked.n_docs:,} documents", clicked), (f"{small.n_docs:,} documents", small)):
        for every in (10, 1):
            whole, spent = training(part, small, options.trees, options.n_jobs, every)
            print(f"  {name}, every {every:>2} trees: {whole:7.2f} {spent:6.2f} {spent / whole:6.1%}")


if __name__ == "__main__":
    main()

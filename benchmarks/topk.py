"""Speed of the top-k rankers: RankSVM beside scikit-learn's LinearSVC on pair differences, and whole fits.

    python benchmarks/topk.py [--data DIR] [--c C] [--rounds N]

LinearSVC and RankSVM minimize the same function, ½‖w‖² + C·Σ hinge over all pairs. Both are run until their objective
is within 0.1 % of the least possible: LinearSVC with falling tolerance (only its last run counts), RankSVM until its
duality gap says so; the best of three runs counts, without compilation. ``--cpu`` counts processor time on one thread,
for busy machines.
Without a folder: MQ2007 if it is found in ``../shared/data``, otherwise made-up data of its shape.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from gradrank.data.artificial import make_splits
from gradrank.data.ranking_data import RankingData
from gradrank.data.topk import top_k_labels
from gradrank.experiments.folders import Fold, read_folds
from gradrank.learners import RankSVM, SVMmap
from gradrank.learners.boosting.adarank import AdaRank
from gradrank.learners.boosting.rankboost import RankBoost
from gradrank.learners.focused.focused_boost import FocusedBoost
from gradrank.learners.focused.focused_svm import FocusedSVM
from gradrank.learners.linear.bundle import Solution

MQ2007 = Path(__file__).resolve().parents[2] / "shared" / "data" / "mq2007"
CLOSE = 1e-3
REPEATS = 3
T = TypeVar("T")


clock = time.perf_counter


def timed(work: Callable[[], T], repeats: int = 1) -> tuple[T, float]:
    """What came out, and the seconds of the fastest of several runs."""
    best = np.inf
    for _ in range(repeats):
        start = clock()
        found = work()
        best = min(best, clock() - start)
    return found, best


def pair_differences(data: RankingData) -> np.ndarray:
    """x_u − x_v of all pairs with y_u > y_v."""
    rows = []
    for start, end in itertools.pairwise(data.indptr):
        labels = data.label()[start:end]
        u, v = np.nonzero(labels[:, None] > labels[None, :])
        rows.append(data.X[start:end][u].astype(float) - data.X[start:end][v])
    return np.concatenate(rows)


def linear_svc(differences: np.ndarray, c: float, goal: float) -> tuple[float, float]:
    """Objective and seconds of the loosest tolerance that reaches the goal."""
    sign = np.where(np.arange(len(differences)) % 2 == 0, 1.0, -1.0)
    rows = differences * sign[:, None]
    objective, seconds = np.inf, np.nan
    for tolerance in (1e-1, 1e-2, 1e-3, 1e-4):
        model = LinearSVC(C=c, loss="hinge", fit_intercept=False, tol=tolerance, max_iter=2000, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            _, seconds = timed(partial(model.fit, rows, sign), REPEATS)
        w = model.coef_.ravel()
        objective = float(0.5 * w @ w + c * np.maximum(0.0, 1.0 - differences @ w).sum())
        if objective <= goal:
            break
    return objective, seconds


def compare_ranksvm(train: RankingData, c: float, n_jobs: int | None) -> None:
    """RankSVM and LinearSVC at equal objective."""

    def ranksvm(tolerance: float) -> Solution:
        return RankSVM(C=c, pairs="sum", scaling="none", tol=tolerance, n_jobs=n_jobs).fit(train).solution_

    exact = ranksvm(1e-4)
    goal = exact.bound * (1.0 + CLOSE)
    ours, seconds = timed(lambda: ranksvm(CLOSE), REPEATS)
    (differences, making) = timed(lambda: pair_differences(train), REPEATS)
    theirs, svc_seconds = linear_svc(differences, c, goal)
    print(f"RankSVM, C = {c:g} a pair, {len(differences):,} pairs; least objective {exact.bound:.4f}")
    print(f"  gradrank   objective {ours.objective:.4f}   {seconds:8.2f} s   gap {ours.gap:.1e}, {ours.cuts} cuts")
    print(f"  LinearSVC  objective {theirs:.4f}   {svc_seconds:8.2f} s   and {making:.2f} s for the differences")
    reached = "" if theirs <= goal else " (LinearSVC did not get as close)"
    print(f"  gradrank is {svc_seconds / seconds:.1f} × as fast, {(svc_seconds + making) / seconds:.1f} × "
          f"with the making of the differences{reached}")  # fmt: skip


def whole_fits(fold: Fold, rounds: int, n_jobs: int | None) -> None:
    """Seconds of one fit of each ranker, on a top-k truth."""
    train, valid = (
        data.with_label("label", top_k_labels(data.label(), data.indptr, 10, random_state=1))
        for data in (fold.train, fold.valid)
    )
    measure = "KappaNDCG@10"
    learners = {
        "RankSVM": RankSVM(measure=measure),
        "SVMmap": SVMmap(measure=measure),
        "FocusedSVM": FocusedSVM(),
        f"RankBoost, {rounds} rounds": RankBoost(n_estimators=rounds, measure=measure),
        f"AdaRank, {rounds} rounds": AdaRank(measure, n_estimators=rounds),
        f"FocusedBoost, {rounds} rounds": FocusedBoost(n_estimators=rounds),
    }
    try:
        import torch  # noqa: F401

        from gradrank.learners.focused.focused_net import FocusedNet

        learners["FocusedNet, 50 epochs"] = FocusedNet(epochs=50)
    except ImportError:
        print("FocusedNet needs PyTorch")
    small = train.take_queries(np.arange(min(20, train.n_queries)))
    for name, learner in learners.items():
        learner.set_params(n_jobs=n_jobs)
        learner.fit(small, valid=small)  # compile
        _, seconds = timed(partial(learner.fit, train, valid=valid))
        print(f"  {name:28} {seconds:8.2f} s   {measure} {learner.score(valid):.4f} on validation data")


def main() -> None:
    """Print times and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of LETOR parts or folds")
    parser.add_argument("--c", type=float, action="append", help="weight of a pair's error; may be repeated")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--cpu", action="store_true", help="processor time on one thread instead of time on the clock")
    options = parser.parse_args()
    if options.cpu:
        global clock
        clock = time.process_time
    folder = options.data or (MQ2007 if MQ2007.exists() else None)
    if folder is not None:
        fold = read_folds(folder)[0]
        print(f"{folder.name}, fold 1: {fold.train.n_queries:,} queries, {fold.train.n_docs:,} documents")
    else:
        made = make_splits(1000, n_docs=41, n_features=46, random_state=0)
        fold = Fold(made["train"], made["vali"], made["test"])
        print(f"made-up data of MQ2007's shape: {fold.train.n_docs:,} documents")
    n_jobs = 1 if options.cpu else None
    for c in options.c or (0.001, 0.1, 1.0):
        compare_ranksvm(fold.train, c, n_jobs)
    print("One fit on a top-k truth, k = 10:")
    whole_fits(fold, options.rounds, n_jobs)


if __name__ == "__main__":
    main()

"""The bundle solver against closed forms, another solver, and its own bound."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

from gradrank.errors import TrainingError
from gradrank.learners.linear.bundle import Cut, minimize
from gradrank.learners.linear.map_risk import AveragePrecisionOracle, MixedOracle
from gradrank.learners.linear.pair_risk import PairOracle, PairWeights
from gradrank.learners.linear.scaled_features import DenseFeatures, SparseFeatures, scaled_features


class Absolute:
    """Σ |s − target|: its minimizer under ½‖w‖² is known for one document a feature."""

    parts = 1

    def __init__(self, target: np.ndarray) -> None:
        self.target = target

    def __call__(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        distance = scores - self.target
        return np.array([np.abs(distance).sum()]), np.sign(distance)[None]


def made_up(n_queries: int = 30, n_docs: int = 12, n_features: int = 6, random_state: int = 0):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(random_state)
    X = rng.normal(size=(n_queries * n_docs, n_features))
    labels = np.clip(np.round(X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=len(X))), 0, 2).astype(np.float32)
    return X, labels, np.arange(0, len(X) + 1, n_docs)


def test_soft_threshold() -> None:
    target = np.array([3.0, -0.2, 0.5, 0.0])
    solution = minimize(DenseFeatures(np.eye(4), np.zeros(4), np.ones(4)), Absolute(target), 0.4, tolerance=1e-7)
    # The minimum of ½w² + c|w − t| is t, kept within −c…c.
    assert solution.weights == pytest.approx(np.clip(target, -0.4, 0.4), abs=1e-3)
    assert solution.converged
    assert solution.bound <= solution.objective


def test_against_a_smooth_solver() -> None:
    """SVMmap's risk, minimized by a general method from the solver's result, gets no better."""
    X, labels, indptr = made_up()
    oracle = AveragePrecisionOracle(labels, indptr)
    features = scaled_features(X, "none")
    solution = minimize(features, oracle, 0.7, tolerance=1e-6)

    def objective(w: np.ndarray) -> float:
        return float(0.5 * w @ w + 0.7 * oracle(X @ w)[0][0])

    assert solution.objective == pytest.approx(objective(solution.weights), rel=1e-9)
    for start in (np.zeros(6), solution.weights):
        other = scipy.optimize.minimize(objective, start, method="Powell", options={"xtol": 1e-8, "ftol": 1e-12})
        assert other.fun >= solution.bound - 1e-9
    assert solution.gap <= 1e-6


def test_gap_falls_and_is_told() -> None:
    X, labels, indptr = made_up()
    told: list[Cut] = []
    solution = minimize(scaled_features(X), PairOracle(labels, indptr), 1.0, tolerance=1e-4, callbacks=(told.append,))
    assert [cut.number for cut in told] == list(range(1, len(told) + 1))
    assert all(later.objective <= earlier.objective for earlier, later in itertools.pairwise(told))
    assert all(later.bound >= earlier.bound for earlier, later in itertools.pairwise(told))
    assert told[-1].gap <= 1e-4 < told[-2].gap
    assert solution.gap == told[-1].gap


class PlanesOnly:
    """A risk that hides that it can be smoothed."""

    parts = 1

    def __init__(self, oracle: PairOracle) -> None:
        self._oracle = oracle

    def __call__(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._oracle(scores)


@pytest.mark.parametrize("pairs", ["mean", "sum"])
@pytest.mark.parametrize("c", [1e-3, 0.1, 10.0])
def test_newton_and_planes_find_the_same(c: float, pairs: PairWeights) -> None:
    X, labels, indptr = made_up()
    X[::7, 2] = np.nan
    weight = np.random.default_rng(1).uniform(0.0, 3.0, len(indptr) - 1).astype(np.float32)
    oracle = PairOracle(labels, indptr, pairs=pairs, weight=weight)
    features = scaled_features(X)
    fast = minimize(features, oracle, c, tolerance=1e-5)
    slow = minimize(features, PlanesOnly(oracle), c, tolerance=1e-5)
    assert fast.converged
    assert slow.converged
    assert max(fast.bound, slow.bound) <= min(fast.objective, slow.objective)
    # ½‖w − w*‖² is at most the distance to the minimum.
    apart = fast.weights - slow.weights
    assert 0.5 * apart @ apart <= 4.0 * 1e-5 * slow.objective


def test_newton_needs_fewer_points_than_planes() -> None:
    X, labels, indptr = made_up(n_queries=100, n_features=20)
    oracle, features = PairOracle(labels, indptr, pairs="sum"), scaled_features(X)
    fast, slow = (minimize(features, risk, 1.0, tolerance=1e-4) for risk in (oracle, PlanesOnly(oracle)))
    assert fast.cuts < slow.cuts / 2


@pytest.mark.parametrize("random_state", range(3))
def test_outliers_do_not_hold_newton_up(random_state: int) -> None:
    rng = np.random.default_rng(random_state)
    X = rng.standard_t(1.5, size=(1200, 20))
    worth = np.tanh(X[:, 0]) + 0.5 * np.tanh(X[:, 1]) + rng.normal(size=len(X))
    labels = np.clip(np.round(worth), 0, 2).astype(np.float32)
    oracle, features = PairOracle(labels, np.arange(0, 1201, 12), pairs="sum"), scaled_features(X)
    fast, slow = (minimize(features, risk, 1.0, tolerance=1e-4) for risk in (oracle, PlanesOnly(oracle)))
    assert fast.cuts < slow.cuts / 2
    assert max(fast.bound, slow.bound) <= min(fast.objective, slow.objective)


def test_planes_finish_what_newton_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradrank.learners.linear.newton._MAX_POINTS", 3)
    X, labels, indptr = made_up()
    oracle, features = PairOracle(labels, indptr), scaled_features(X)
    told: list[Cut] = []
    solution = minimize(features, oracle, 1.0, tolerance=1e-5, callbacks=(told.append,))
    assert solution.gap <= 1e-5
    assert [cut.number for cut in told] == list(range(1, solution.cuts + 1))


def test_second_derivative_of_differences() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 7))
    better, worse = rng.integers(0, 50, (2, 5001))
    weight = rng.uniform(size=5001)
    features = scaled_features(X, "standard", n_jobs=2)
    scaled = X / X.std(axis=0)
    differences = scaled[better] - scaled[worse]
    wanted = np.einsum("i,ij,ik->jk", weight, differences, differences)
    found = features.difference_gram(better, worse, weight)
    assert found == pytest.approx(wanted)
    assert (scaled_features(X, "standard", n_jobs=1).difference_gram(better, worse, weight) == found).all()
    sparse = scaled_features(scipy.sparse.csr_array(X), "standard")
    assert sparse.difference_gram(better, worse, weight) == pytest.approx(wanted)
    X[[3, 4], 2] = np.nan  # counts as the mean
    X[4, 2] = np.nanmean(X[:, 2])
    missing = scaled_features(X, "none").difference_gram(np.array([3]), np.array([4]), np.ones(1))
    assert missing[2, 2] == pytest.approx(0.0, abs=1e-12)


def test_too_few_cuts_are_said() -> None:
    X, labels, indptr = made_up()
    solution = minimize(scaled_features(X), PairOracle(labels, indptr), 10.0, tolerance=1e-6, max_cuts=2)
    assert not solution.converged
    assert solution.gap > 1e-6


def test_warm_start_finds_the_same_with_fewer_cuts() -> None:
    X, labels, indptr = made_up()
    features = scaled_features(X)
    oracle = MixedOracle(AveragePrecisionOracle(labels, indptr), PairOracle(labels, indptr))
    first = minimize(features, oracle, 1.0, mixture=(0.5, 0.5), tolerance=1e-5)
    for c, mixture in ((2.0, (0.5, 0.5)), (1.0, (0.6, 0.4)), (1.0, (1.0, 0.0))):
        cold = minimize(features, oracle, c, mixture=mixture, tolerance=1e-5)
        warm = minimize(features, oracle, c, mixture=mixture, tolerance=1e-5, start=first)
        assert warm.objective == pytest.approx(cold.objective, rel=3e-5)
        assert warm.cuts < cold.cuts
    assert len(first.planes) <= first.cuts + 1  # its planes are not touched by those who start from them


def test_interruption_keeps_the_best_point() -> None:
    X, labels, indptr = made_up()

    def stop(cut: Cut) -> None:
        if cut.number == 3:
            raise KeyboardInterrupt

    solution = minimize(scaled_features(X), PairOracle(labels, indptr), 10.0, tolerance=1e-8, callbacks=(stop,))
    assert solution.cuts == 3
    assert not solution.converged
    assert solution.objective < 10.0 * PairOracle(labels, indptr)(np.zeros(len(X)))[0][0]


def test_c_must_be_positive() -> None:
    X, labels, indptr = made_up(2)
    for wrong in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(TrainingError, match="C is"):
            minimize(scaled_features(X), PairOracle(labels, indptr), wrong)


# ---------------------------------------------------------------------- products
@pytest.mark.parametrize("scaling", ["none", "minmax", "standard"])
def test_products_are_those_of_the_scaled_matrix(scaling: str) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(9000, 5)).astype(np.float32) * 100 + 7
    X[:, 3] = 4.0
    X[rng.random(X.shape) < 0.1] = np.nan
    filled = np.where(np.isnan(X), np.nanmean(X.astype(float), axis=0), X)
    spread = {
        "none": np.ones(5),
        "minmax": np.nanmax(X, axis=0) - np.nanmin(X, axis=0),
        "standard": np.nanstd(X.astype(float), axis=0),
    }[scaling]
    spread = np.where(np.arange(5) == 3, 1.0, spread)
    expected = (filled - np.nanmean(X.astype(float), axis=0)) / spread
    weights, values = rng.normal(size=5), rng.normal(size=9000)
    for order in ("C", "F"):
        features = scaled_features(np.asarray(X, order=order), scaling, n_jobs=2)  # type: ignore[arg-type]
        assert isinstance(features, DenseFeatures)
        assert features.times(weights) == pytest.approx(expected @ weights, rel=1e-6, abs=1e-6)
        assert features.transposed_times(values) == pytest.approx(expected.T @ values, rel=1e-6, abs=1e-4)
    one = scaled_features(X, scaling, n_jobs=1)  # type: ignore[arg-type]
    assert np.array_equal(one.transposed_times(values), features.transposed_times(values))


def test_sparse_matrices_give_the_same_solution() -> None:
    X, labels, indptr = made_up(n_features=20)
    X[np.random.default_rng(2).random(X.shape) < 0.9] = 0.0
    oracle = PairOracle(labels, indptr)
    dense = minimize(DenseFeatures(X, np.zeros(20), scaled_features(X).scale), oracle, 1.0, tolerance=1e-5)
    for matrix in (X, scipy.sparse.csr_array(X), scipy.sparse.coo_matrix(X)):
        features = scaled_features(matrix)
        assert isinstance(features, SparseFeatures)
        assert minimize(features, oracle, 1.0, tolerance=1e-5).objective == pytest.approx(dense.objective, rel=2e-5)

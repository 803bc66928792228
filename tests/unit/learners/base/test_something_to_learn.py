"""Data that nothing can be learned from is an error, not a useless model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradrank import AdaRank, LambdaMART, LambdaRank, McRank, RankBoost, RankSVM
from gradrank.data.formats.binary import open_binary, write_binary
from gradrank.data.ranking_data import RankingData
from gradrank.errors import GradrankWarning, TrainingError
from gradrank.learners.base.something_to_learn import check_gradients
from gradrank.objectives import parse_objective

N, K = 12, 6


def made(scale: float = 1.0, **more: Any) -> RankingData:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N * K, 3))
    y = (2 * X[:, 0] + rng.normal(size=N * K)).clip(0, 4).round() * scale
    return RankingData.from_arrays(more.pop("X", X), more.pop("y", y), group=[K] * N, **more)


LEARNERS = [
    LambdaMART(n_estimators=2, num_leaves=3, n_jobs=1),
    McRank(n_estimators=2, num_leaves=3, n_jobs=1),
    RankBoost(n_estimators=2, n_jobs=1),
    AdaRank(n_estimators=2, n_jobs=1),
    RankSVM(n_jobs=1),
    LambdaRank(epochs=1, n_jobs=1),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_useless_data_is_refused_by_every_learner(learner: Any) -> None:
    shape = (N * K, 3)
    with pytest.raises(TrainingError, match=r"every feature of the training data is missing"):
        learner.fit(made(X=np.full(shape, np.nan)))
    with pytest.raises(TrainingError, match="have the same features"):
        learner.fit(made(X=np.tile([1.0, np.nan, 3.0], (N * K, 1))))
    with pytest.raises(TrainingError, match=r"weights go up to 1e\+300, expected at most 1e\+30"):
        learner.fit(made(weight=np.full(N, 1e300)))


def test_an_infinite_feature_of_a_memory_map_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.gradrank"
    write_binary(made(), path)
    features = np.fromfile(path / "X.bin", dtype="<f4" if made().X.dtype == np.float32 else "<f8")
    features[7] = np.inf
    features.tofile(path / "X.bin")
    with pytest.raises(ValueError, match=r"feature 2 of document 3 is infinite"):
        LEARNERS[0].fit(open_binary(path))


@pytest.mark.parametrize("name", ["Lambda(NDCG@3)", "Lambda(MeanNDCG)", "LambdaLoss(NDCG)", "NDCG@3"])
@pytest.mark.parametrize("top", [60, 100, 127])
def test_huge_gains_give_the_gradients_of_smaller_ones(name: str, top: int) -> None:
    # With one label besides 0 the gains cancel in a normalized measure: 2^l − 1 of any l gives the same λ's.
    labels = np.arange(N * K) % 3 == 0
    scores = np.random.default_rng(1).normal(size=N * K)
    small, huge = (
        parse_objective(name).bind(made(y=labels * float(label)), n_jobs=1).gradients(scores) for label in (50, top + 4)
    )
    assert np.abs(small.lambdas).max() > 0
    np.testing.assert_allclose(huge.lambdas, small.lambdas, rtol=1e-5)
    np.testing.assert_allclose(huge.rhos, small.rhos, rtol=1e-5)


def test_gradients_that_are_no_numbers_are_an_error() -> None:
    with pytest.warns(GradrankWarning, match="goes up to"), pytest.raises(TrainingError, match="λ's are not finite"):
        LambdaMART("Lambda(DCG, normalize=none)", n_estimators=9, num_leaves=3, n_jobs=1).fit(made(250.0))
    ones, nothing = np.ones(3, dtype=np.float32), np.zeros(3, dtype=np.float32)
    for broken in (np.nan, np.inf, -np.inf):
        with pytest.raises(TrainingError, match="in step 4 λ's are not finite"):
            check_gradients(ones, np.array([1.0, broken, 0.0], dtype=np.float32), 3)
    with pytest.raises(TrainingError, match="nothing to learn: every λ"):
        check_gradients(nothing, ones, 0)
    assert not check_gradients(nothing, ones, 1)


def test_training_stops_with_a_word_when_all_pairs_are_in_order() -> None:
    data = RankingData.from_arrays([[0.0], [1.0], [2.0], [3.0]] * 3, [0, 0, 1, 1] * 3, group=[4] * 3)
    learner = LambdaMART(
        "Lambda(NDCG, pairs=misranked)", n_estimators=50, num_leaves=2, min_child_samples=1, n_jobs=1, random_state=3
    )
    with pytest.warns(GradrankWarning, match="nothing is left to learn after 1 tree: every λ is 0"):
        learner.fit(data)
    assert learner.record_.steps == 1
    assert learner.score(data) == 1.0


def test_numbers_that_are_zero_to_lightgbm(capfd: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(TrainingError, match="no feature has two values that trees can tell apart"):
        LEARNERS[0].fit(made(X=rng.normal(size=(N * K, 2)) * 1e-38))
    assert "".join(capfd.readouterr()) == ""  # nor a word of LightGBM's own

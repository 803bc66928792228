"""XE-NDCG: by its definition, by differences, and beside LightGBM's rank_xendcg."""

from __future__ import annotations

import numpy as np
import pytest

from gradrank.data import RankingData
from gradrank.data.artificial import make_splits
from gradrank.learners import LambdaMART, LambdaRank
from gradrank.objectives import XENDCG
from gradrank.objectives.kernels.listwise_kernel import listnet_terms_block
from tests.support.objectives import made_up_lists, slopes_of


@pytest.mark.kernel
@pytest.mark.parametrize("step", [0, 3])
def test_gradients_are_derivatives_of_the_loss(step: int) -> None:
    data, scores = made_up_lists(4)
    bound = XENDCG().bind(data, random_state=5)
    got = bound.gradients(scores, step)  # the loss is that of the last step
    np.testing.assert_allclose(got.lambdas, slopes_of(bound, scores), rtol=1e-4, atol=1e-5)


def test_truth_lies_between_two_powers_and_changes_with_the_step() -> None:
    """With weights 2^l − γ, γ in [0, 1): φ of each document is bounded by those with γ = 0 and γ = 1."""
    labels = np.array([0.0, 1.0, 3.0])
    data = RankingData.from_arrays(np.zeros((3, 1)), labels, group=[3])
    bound = XENDCG().bind(data, random_state=1)
    found = [bound.gradients(np.zeros(3), step).lambdas + 1 / 3 for step in range(200)]
    high, low = 2.0**labels, 2.0**labels - 1
    for truth in found:
        assert truth.sum() == pytest.approx(1.0, abs=1e-6)
        assert (truth <= high / (high + (low.sum() - low)) + 1e-6).all()
        assert (truth >= low / (low + (high.sum() - high)) - 1e-6).all()
    assert len({tuple(truth.tolist()) for truth in found}) == 200
    # γ is ½ on average.
    mean = (2.0**labels - 0.5) / (2.0**labels - 0.5).sum()
    np.testing.assert_allclose(np.mean(found, axis=0), mean, atol=0.01)


class TheirRandom:
    """LightGBM's generator (a linear congruence of 32 bits, of which it takes 15)."""

    def __init__(self, seed: int) -> None:
        self.x = seed

    def next_float(self) -> float:
        self.x = (214013 * self.x + 2531011) % 2**32
        return float(np.float32((self.x >> 16) & 0x7FFF) / np.float32(32768.0))


def test_three_terms_are_lightgbms_gradients() -> None:
    """Their γ's put into our λ's: the sums over leaves of their first tree."""
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    sizes = np.array([9, 14, 6])
    labels, n = rng.integers(0, 4, sizes.sum()), int(sizes.sum())
    scores, feature = rng.normal(size=n), rng.permutation(n).astype(float)[:, None]
    bins = {"max_bin": 2 * n, "min_data_in_bin": 1}
    booster = lightgbm.train(
        {"objective": "rank_xendcg", "objective_seed": 5, "num_leaves": n, "learning_rate": 1.0, "min_data_in_leaf": 1,
         "min_sum_hessian_in_leaf": 1e-3, "verbose": -1, "num_threads": 1, **bins},
        lightgbm.Dataset(feature, labels, group=sizes, init_score=scores, params=bins), 1,
    )  # fmt: skip
    leaf = booster.predict(feature, pred_leaf=True).ravel()
    weight = {
        int(name.split("L")[1]): value
        for name, value in booster.trees_to_dataframe()[["node_index", "weight"]].itertuples(index=False)
        if "L" in name
    }
    hessian = np.array([weight[number] for number in range(len(weight))])
    output = np.zeros(len(weight))
    output[leaf] = booster.predict(feature, raw_score=True)
    assert len(weight) >= 12
    chances = []
    for query, size in enumerate(sizes):
        stream = TheirRandom(5 + query)
        chances += [stream.next_float() for _ in range(size)]
    worth = 2.0**labels - np.array(chances)
    indptr = np.concatenate(([0], np.cumsum(sizes)))
    truth = worth / np.repeat(np.add.reduceat(worth, indptr[:-1]), sizes)
    lambdas, rhos = np.zeros(n, dtype=np.float32), np.zeros(n, dtype=np.float32)
    listnet_terms_block(0, 3, indptr, np.arange(n), truth, np.ones(3), 3, scores, lambdas, rhos)
    # LightGBM prints weights with six digits.
    np.testing.assert_allclose(np.bincount(leaf, lambdas), output * hessian, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(np.bincount(leaf, rhos), hessian, rtol=1e-3, atol=1e-5)


def test_nets_and_trees_learn_by_it() -> None:
    data = make_splits(80, n_docs=10, n_features=5, random_state=1)
    for objective in ("XENDCG", "XENDCG(terms=3)"):
        trees = LambdaMART(objective, n_estimators=20, learning_rate=0.2, n_jobs=1).fit(data["train"])
        assert trees.score(data["test"]) > 0.85  # a random ranker has 0.68
    net = LambdaRank("XENDCG", hidden_layer_sizes=8, epochs=15, batch_size=8, n_jobs=1).fit(data["train"])
    assert net.score(data["test"]) > 0.85

"""Linear nets with convex costs: they find the one minimum that there is, which SciPy finds in another way."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from gradrank.data.artificial import make_splits
from gradrank.learners import LambdaRank, ListMLE, ListNet, RankNet, RegressionNet
from gradrank.learners.focused.focused_net import FocusedNet
from gradrank.learners.nets.learner import NetLearner
from gradrank.models.linear import LinearRanker
from gradrank.models.nets.scaling import Scaling

SPLITS = make_splits(60, n_docs=12, n_features=6, random_state=3, noise=0.5)
TRAIN = SPLITS["train"]
Z = Scaling.learned(TRAIN.X).apply(TRAIN.X).astype(np.float64)
LABELS = TRAIN.label().astype(np.float64)
LISTS = [slice(start, end) for start, end in pairwise(TRAIN.indptr)]
PAIRS = [(i, j) for at in LISTS for i, j in permutations(range(at.start, at.stop), 2) if LABELS[i] > LABELS[j]]
WINNERS, LOSERS = np.array(PAIRS).T
LINEAR: dict[str, Any] = {"hidden_layer_sizes": 0, "batch_size": 8}


def weights_of(model: NetLearner) -> np.ndarray:
    """Weights of the scaled features."""
    assert isinstance(model.ranker_, LinearRanker)
    return model.ranker_.weights


def listnet(weights: np.ndarray) -> tuple[float, np.ndarray]:
    """Sum over lists of −Σ P_y·log P_s, and its gradient."""
    scores = Z @ weights
    loss = -sum(softmax(LABELS[at]) @ log_softmax(scores[at]) for at in LISTS)
    slope = sum(Z[at].T @ (softmax(scores[at]) - softmax(LABELS[at])) for at in LISTS)
    return float(loss), np.asarray(slope)


def ranknet(weights: np.ndarray) -> tuple[float, np.ndarray]:
    """Sum over pairs of log(1 + e^−difference), and its gradient."""
    differences = Z[WINNERS] - Z[LOSERS]
    margins = differences @ weights
    return float(np.logaddexp(0.0, -margins).sum()), -differences.T @ (1.0 / (1.0 + np.exp(margins)))


@pytest.mark.parametrize(("kind", "loss"), [(ListNet, listnet), (RankNet, ranknet)])
@pytest.mark.parametrize("random_state", [0, 1])
def test_the_minimum_is_found(
    kind: type[NetLearner], loss: Callable[[np.ndarray], tuple[float, np.ndarray]], random_state: int
) -> None:
    least = minimize(loss, np.zeros(6), jac=True, method="L-BFGS-B", options={"ftol": 1e-12, "gtol": 1e-8})
    gain = loss(np.zeros(6))[0] - least.fun
    found = weights_of(kind(weight_decay=0.0, random_state=random_state, **LINEAR).fit(TRAIN))
    # Adam gives each batch's gradient its own length, so that its resting point is near the minimum, not on it.
    assert loss(found)[0] - least.fun < 0.005 * gain
    np.testing.assert_allclose(found, least.x, atol=0.07 * np.abs(least.x).max())


def test_the_minimum_of_a_single_batch_is_found_to_the_digit() -> None:
    least = minimize(listnet, np.zeros(6), jac=True, method="L-BFGS-B", options={"ftol": 1e-14, "gtol": 1e-9})
    found = weights_of(ListNet(hidden_layer_sizes=0, weight_decay=0.0, batch_size="full", epochs=600).fit(TRAIN))
    # float32 weights and gradients.
    np.testing.assert_allclose(found, least.x, rtol=1e-3, atol=1e-4)


@pytest.mark.filterwarnings("ignore:the model gives every document the same score")
@pytest.mark.parametrize("kind", [ListNet, RankNet, ListMLE, RegressionNet, FocusedNet])
def test_convex_costs_start_from_nothing(kind: type[NetLearner]) -> None:
    still: dict[str, Any] = {"epochs": 1, "optimizer": "sgd", "learning_rate": 1e-30}
    assert np.abs(weights_of(kind(**LINEAR, **still).fit(TRAIN))).max() < 1e-20
    # New random starts are asked for: there must be something random.
    assert np.abs(weights_of(kind(**LINEAR, **still, restart=5).fit(TRAIN))).min() > 0


def test_other_costs_start_at_random() -> None:
    for objective in ("NDCG@10", "Scheduled(ListNet, Lambda(NDCG))"):
        model = LambdaRank(objective, **LINEAR, epochs=1, optimizer="sgd", learning_rate=1e-30).fit(TRAIN)
        assert np.abs(weights_of(model)).min() > 0
    donmez = ListNet(**LINEAR, epochs=1, optimizer="donmez", learning_rate=1e-30).fit(TRAIN, valid=SPLITS["vali"])
    assert np.abs(weights_of(donmez)).min() > 0


def test_the_rate_is_halved_whenever_the_loss_does_not_fall() -> None:
    def rates(**options: Any) -> np.ndarray:
        return np.array(ListNet(**{**LINEAR, **options}).fit(TRAIN).ranker_.training["rates"])

    found = rates(epochs=1000)
    assert set(found[1:] / found[:-1]) == {0.5, 1.0}
    # It is over when the rate is 2^−15 of what it was: fifteen halvings are still learned with.
    assert found[-1] == 0.01 * 2.0**-15
    # With one batch the loss of an epoch is that of the weights before it; a high rate overshoots.
    single: dict[str, Any] = {"hidden_layer_sizes": 0, "batch_size": "full", "learning_rate": 0.3}
    found = rates(**single, epochs=14)
    losses = [listnet(weights_of(ListNet(**single, epochs=n).fit(TRAIN)))[0] for n in range(1, 13)]
    fell = np.diff([listnet(np.zeros(6))[0], *losses]) < 0
    assert 0 < fell.sum() < len(fell)
    assert (found[2:] / found[1:-1]).tolist() == np.where(fell, 1.0, 0.5).tolist()
    for steady in ({"optimizer": "sgd"}, {"hidden_layer_sizes": 3}, {"restart": 50}):
        assert len(set(rates(**steady, epochs=30))) == 1


def test_a_falling_rate_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    whole = ListNet(**LINEAR, epochs=60).fit(TRAIN)
    ListNet(**LINEAR, epochs=30, checkpoint=tmp_path / "state", checkpoint_every=7).fit(TRAIN)
    again = ListNet(**LINEAR, epochs=60, checkpoint=tmp_path / "state").fit(TRAIN)
    assert again.ranker_.training["rates"] == whole.ranker_.training["rates"]
    assert weights_of(again).tobytes() == weights_of(whole).tobytes()

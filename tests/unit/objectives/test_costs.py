"""Forces and curvatures are the derivatives of their costs."""

from __future__ import annotations

import numpy as np
import pytest

from gradrank.errors import ObjectiveError
from gradrank.objectives import COSTS, PairCost, Printed, RankNet, Sigmoid

VARIANTS = [RankNet(), RankNet(sigma=2.5), Sigmoid(), Sigmoid(mu=1.5), Sigmoid(mu=-0.7), Printed()]
# A cost that is not named here is tested as it is.
VARIANTS += [kind() for kind in COSTS.values() if kind not in {type(variant) for variant in VARIANTS}]


@pytest.mark.parametrize("cost", VARIANTS, ids=str)
@pytest.mark.parametrize("o", [-6.0, -1.0, -0.1, 0.0, 0.3, 2.0, 5.0])
def test_finite_differences(cost: PairCost, o: float) -> None:
    h = 1e-5
    np.testing.assert_allclose(cost.force(o), -(cost.cost(o + h) - cost.cost(o - h)) / (2 * h), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        cost.curvature(o), -(cost.force(o + h) - cost.force(o - h)) / (2 * h), rtol=1e-6, atol=1e-9
    )


@pytest.mark.parametrize("cost", VARIANTS, ids=str)
def test_curvature_is_declared_usable_only_if_it_is_never_negative(cost: PairCost) -> None:
    bends = [cost.curvature(o) for o in np.linspace(-8, 8, 65)]
    assert (min(bends) >= 0.0) == cost.usable_curvature


@pytest.mark.kernel
@pytest.mark.parametrize("cost", VARIANTS, ids=str)
@pytest.mark.parametrize("o", [-700.0, -6.0, -0.1, 0.0, 2.0, 700.0])
def test_the_kernel_for_a_pair_is_the_cost(cost: PairCost, o: float) -> None:
    expected = (0.0, 0.0) if o > 100 else (cost.force(o), cost.curvature(o)) if o > -100 else None
    got = cost.kernels.pair(o, float(cost.slope), float(cost.shift))
    assert np.isfinite(got).all()
    if expected is not None:
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-43)


@pytest.mark.kernel
@pytest.mark.parametrize("cost", VARIANTS, ids=str)
def test_the_kernel_for_a_row_is_the_cost(cost: PairCost) -> None:
    rng = np.random.default_rng(0)
    scores, deltas = rng.normal(size=9), rng.normal(size=9).astype(np.float32)
    low, high, own = 3, 8, 0.4
    powers = np.exp(cost.slope * (scores + 7.0)).astype(np.float32)
    lambdas, rhos = np.full(9, 2.0, dtype=np.float32), np.full(9, 3.0, dtype=np.float32)
    sums = cost.kernels.row(low, high, np.float32(np.exp(cost.slope * (own + 7.0))), np.float32(cost.slope),
                            np.float32(np.exp(cost.shift)), deltas, powers, lambdas, rhos)  # fmt: skip
    inside = (np.arange(9) >= low) & (np.arange(9) < high)
    force = np.array([abs(deltas[j]) * cost.force(own - scores[j]) / cost.slope for j in range(9)]) * inside
    bend = np.array([abs(deltas[j]) * cost.curvature(own - scores[j]) / cost.slope for j in range(9)]) * inside
    np.testing.assert_allclose(sums, (force.sum(), bend.sum()), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(lambdas, 2.0 - force, rtol=1e-6)
    np.testing.assert_allclose(rhos, 3.0 + bend, rtol=1e-6)


def test_sigmoid_gives_up_on_lost_causes_and_leaves_good_pairs_alone() -> None:
    assert Sigmoid().force(-20.0) < 1e-8
    assert Sigmoid().force(20.0) < 1e-8
    assert RankNet().force(-20.0) > 0.99


def test_wrong_parameters() -> None:
    with pytest.raises(ObjectiveError, match="sigma is 0"):
        RankNet(sigma=0)
    with pytest.raises(ObjectiveError, match="cost sigmoid: mu is nan, expected a number"):
        Sigmoid(mu=float("nan"))
    with pytest.raises(ObjectiveError, match="sigma is 'steep', expected a number"):
        RankNet(sigma="steep")  # type: ignore[arg-type]

"""Forces and curvatures are the derivatives of their costs."""

from __future__ import annotations

import numpy as np
import pytest

from gradrank.errors import ObjectiveError
from gradrank.objectives import COSTS, PairCost, Printed, RankNet, Sigmoid

VARIANTS = [RankNet(), RankNet(sigma=2.5), Sigmoid(), Sigmoid(mu=1.5), Sigmoid(mu=-0.7), Printed()]


def test_every_cost_has_a_variant_here() -> None:
    assert {type(variant) for variant in VARIANTS} == set(COSTS.values())


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


def test_sigmoid_gives_up_on_lost_causes_and_leaves_good_pairs_alone() -> None:
    assert Sigmoid().force(-20.0) < 1e-8
    assert Sigmoid().force(20.0) < 1e-8
    assert RankNet().force(-20.0) > 0.99


def test_wrong_parameters() -> None:
    with pytest.raises(ObjectiveError, match="sigma is 0"):
        RankNet(sigma=0)
    with pytest.raises(ObjectiveError, match="mu is nan"):
        Sigmoid(mu=float("nan"))

"""Leaf values."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gradrank.learners.steps import leaf_values


@given(st.integers(0, 1000), st.integers(1, 6), st.floats(0, 3))
def test_leaf_values_are_sums_over_the_documents_of_a_leaf(seed: int, n_leaves: int, l2: float) -> None:
    rng = np.random.default_rng(seed)
    leaf = rng.integers(0, n_leaves, 40).astype(np.int32)
    lambdas = rng.normal(size=40).astype(np.float32)
    rhos = (rng.random(40) * (rng.random(40) < 0.7)).astype(np.float32)
    lambdas[rhos == 0] = 0
    newton = leaf_values("newton", leaf, n_leaves, lambdas, rhos, l2)
    gradient = leaf_values("gradient", leaf, n_leaves, lambdas, rhos)
    for number in range(n_leaves):
        inside = (leaf == number) & (rhos > 0)
        if inside.any():
            expected = lambdas[inside].sum(dtype=float) / (rhos[inside].sum(dtype=float) + l2)
            np.testing.assert_allclose(newton[number], expected, rtol=1e-5)
            np.testing.assert_allclose(gradient[number], lambdas[inside].mean(dtype=float), rtol=1e-5, atol=1e-7)
        else:
            assert newton[number] == 0.0
            assert gradient[number] == 0.0

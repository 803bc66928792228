"""Sums that do not depend on order or on how numbers are spread."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gradrank.cluster.exact import exact_sum, grid, on_grid, rounded

finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e100, max_value=1e100)


@given(st.lists(finite, max_size=40), st.integers(0, 40), st.integers(1, 7))
def test_the_sum_is_the_true_one_however_numbers_are_spread(values: list[float], cut: int, divisor: int) -> None:
    parts = [exact_sum(np.array(part, dtype=np.float64)) for part in (values[:cut], values[cut:])]
    truth = sum(map(Fraction, values), Fraction(0)) / divisor
    assert rounded(parts, divisor) == float(truth)


@given(st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=60), st.randoms())
def test_numbers_on_the_grid_have_one_sum_in_any_order(values: list[float], random: object) -> None:
    numbers = np.array(values, dtype=np.float32)
    distance = grid(float(np.abs(numbers).max()), 10_000_000, 23)
    near = on_grid(numbers, distance)
    # Rounded to the nearest multiple, which single precision holds.
    assert np.abs(near - numbers).max() <= distance / 2
    assert (near.astype(np.float32) == near).all()
    shuffled = near.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    running = 0.0
    for value in shuffled.tolist():
        running += value
    assert running == float(sum(map(Fraction, near.tolist()), Fraction(0)))

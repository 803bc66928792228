"""Axes: every tick lies on the axis and is a round number."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank.models.display.axis import Axis

sizes = st.floats(min_value=-1e6, max_value=1e6, allow_subnormal=False)


@given(st.lists(sizes, min_size=1, max_size=10), st.integers(min_value=2, max_value=9), st.booleans())
def test_values_and_ticks_lie_on_the_axis(values: list[float], most: int, zero: bool) -> None:
    axis = Axis.around(values, zero=zero)
    assert all(0.0 <= axis.at(value) <= 100.0 for value in [*values, *([0.0] if zero else [])])
    labels = axis.labels(most)
    assert len(labels) <= most
    assert all(-0.01 <= at <= 100.01 for at, _ in labels)
    assert all(a < b for (a, _), (b, _) in pairwise(labels))
    assert len({text for _, text in labels}) == len(labels)


@given(st.floats(min_value=1e-6, max_value=1e6), st.integers(min_value=3, max_value=9))
def test_steps_are_one_two_or_five_times_a_power_of_ten(width: float, most: int) -> None:
    steps = Axis(0.0, width).steps(most)
    assert len(steps) >= 2
    step = steps[1] - steps[0]
    leading = step / 10.0 ** math.floor(math.log10(step) + 1e-9)
    assert any(leading == pytest.approx(digit) for digit in (1, 2, 5))


def test_ticks_have_the_digits_they_need_and_no_negative_zero() -> None:
    assert Axis(-0.02, 0.021).ticks(5) == ["-0.02", "-0.01", "0.00", "0.01", "0.02"]
    assert Axis(1, 300).ticks(7) == ["50", "100", "150", "200", "250", "300"]


def test_values_that_are_not_numbers_do_not_count() -> None:
    assert Axis.around([math.nan, math.inf, 1.0, 3.0], margin=0.5) == Axis(0.0, 4.0)
    assert Axis.around([math.nan]) == Axis(0.0, 1.0)


def test_one_value_gets_room() -> None:
    assert Axis.around([0.5]).at(0.5) == 50.0
    assert Axis.around([0.0]).at(0.0) == 50.0

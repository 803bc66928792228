"""Numbers of directions, and directions drawn evenly."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gradrank.errors import DataError
from gradrank.optimality import confidence_of, direction_count
from gradrank.optimality.directions import random_direction


def test_the_papers_number() -> None:
    assert direction_count(0.01, 0.01) == 459


@pytest.mark.parametrize("epsilon", [0.5, 0.05, 0.01, 0.001])
@pytest.mark.parametrize("delta", [0.5, 0.05, 0.01])
def test_it_is_the_smallest_number_that_gives_the_confidence(epsilon: float, delta: float) -> None:
    count = direction_count(epsilon, delta)
    assert (1 - epsilon) ** count <= delta * (1 + 1e-12)
    assert count == 1 or (1 - epsilon) ** (count - 1) > delta
    assert confidence_of(count, epsilon) == 1 - (1 - epsilon) ** count


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0.5), (1, 0.5), (0.5, 0), (0.5, 1), (-1, 0.5), (float("nan"), 0.5)])
def test_shares_outside_of_0_to_1_are_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(DataError, match="expected a number between 0 and 1"):
        direction_count(epsilon, delta)


def test_directions_are_even_on_the_circle() -> None:
    drawn = np.array([random_direction((5, i), 2) for i in range(2000)])
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), 1)
    angle = np.arctan2(drawn[:, 1], drawn[:, 0]) / (2 * np.pi) + 0.5
    assert stats.kstest(angle, "uniform").pvalue > 0.01


def test_a_key_gives_its_direction_again_and_no_other() -> None:
    np.testing.assert_array_equal(random_direction((1, 2), 9), random_direction((1, 2), 9))
    assert not np.array_equal(random_direction((1, 2), 9), random_direction((1, 3), 9))
    assert not np.array_equal(random_direction((1, 2), 9), random_direction((2, 2), 9))

"""Rounding at random."""

from __future__ import annotations

import numpy as np
import pytest

from gradrank.learners.trees.rounding import rounded_at_random

VALUES = np.random.default_rng(0).normal(size=20_000).astype(np.float32)


@pytest.mark.parametrize("levels", [2, 63, 126])
def test_values_become_neighbouring_multiples(levels: int) -> None:
    rounded = rounded_at_random(VALUES, levels, key=1)
    step = np.abs(VALUES).max() / np.float32(levels)
    multiples = rounded / step
    np.testing.assert_allclose(multiples, np.round(multiples), atol=1e-5)
    assert np.abs(multiples).max() == pytest.approx(levels)
    assert (np.abs(rounded - VALUES) <= step * 1.00001).all()


def test_sums_are_true_on_average() -> None:
    step = np.abs(VALUES).max() / 2
    means = [float((rounded_at_random(VALUES, 2, key) - VALUES).mean(dtype=np.float64)) for key in range(100)]
    # The error of one value is at most a step, its deviation at most half of one.
    assert abs(np.mean(means)) < 4 * 0.5 * step / np.sqrt(100 * len(VALUES))
    # Each value by itself is true on average, too, and not rounded the same way every time.
    one = np.array([0.3, 1.0], dtype=np.float32)
    up = np.mean([rounded_at_random(one, 1, key)[0] for key in range(2000)])
    assert abs(up - 0.3) < 4 * np.sqrt(0.3 * 0.7 / 2000)


def test_threads_and_keys() -> None:
    assert np.array_equal(rounded_at_random(VALUES, 7, 5, n_jobs=1), rounded_at_random(VALUES, 7, 5, n_jobs=2))
    assert not np.array_equal(rounded_at_random(VALUES, 7, 5), rounded_at_random(VALUES, 7, 6))


def test_nothing_to_round() -> None:
    assert rounded_at_random(np.zeros(3, dtype=np.float32), 63, key=0).tolist() == [0.0, 0.0, 0.0]
    assert rounded_at_random(np.zeros(0, dtype=np.float32), 63, key=0).size == 0
    tiny = np.full(2, 1e-45, dtype=np.float32)  # so small that a level of it is 0
    assert rounded_at_random(tiny, 63, key=0).tolist() == [0.0, 0.0]

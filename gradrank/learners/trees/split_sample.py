"""Which documents splits are searched on: few, drawn by how much they have to say.

Most documents of a list have next to no λ, so that a histogram over all of them costs much more than it tells. Document
i is drawn with the chance

    p_i = min(1, a_i ÷ μ),    a_i = √((λ_i ÷ mean |λ|)² + (ρ_i ÷ mean ρ)² ÷ 4),

μ such that the expected number of documents is the wanted one, and counts 1 ÷ p_i times: sums of λ and of ρ are true on
average, and among all chances with so many documents these have the least variance of Σ a_i² ÷ p_i (minimal variance
sampling, Ibragimov and Gusev 2019). A document that pushes nothing is never drawn.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.runtime.kernels import njit

_CURVATURE = 0.25
_ROUNDS = 100


@njit(cache=True, nogil=True)
def _sizes(lambdas: Any, rhos: Any, curvature: float, out: Any) -> tuple[int, float]:
    """Fill in a; how many are not 0, and their sum."""
    force, bend = 0.0, 0.0
    for row in range(len(out)):
        force += abs(lambdas[row])
        bend += rhos[row]
    by_force = len(out) / force if force > 0.0 else 0.0
    by_bend = len(out) / bend if bend > 0.0 else 0.0
    count, total = 0, 0.0
    for row in range(len(out)):
        one, two = lambdas[row] * by_force, rhos[row] * by_bend
        out[row] = np.float32(np.sqrt(one * one + curvature * two * two))
        if out[row] > 0.0:
            count += 1
            total += out[row]
    return count, total


@njit(cache=True, nogil=True)
def _threshold(sizes: Any, wanted: int, total: float, rounds: int) -> float:
    """μ with Σ min(1, a ÷ μ) = wanted; there are more sizes above 0 than wanted."""
    # From above: what is not below the threshold is certain, the rest shares what is left. A round can only lower it.
    threshold, certain_before = total / wanted, -1
    for _ in range(rounds):
        certain, rest = 0, 0.0
        for row in range(len(sizes)):
            if sizes[row] >= threshold:
                certain += 1
            else:
                rest += sizes[row]
        if certain == certain_before or certain >= wanted:
            break
        certain_before, threshold = certain, rest / (wanted - certain)
    return threshold


@njit(cache=True, nogil=True)
def _draw(sizes: Any, threshold: float, key: int, rows: Any, weights: Any) -> int:
    """Fill in the rows drawn and their weights; how many there are."""
    found = 0
    for row in range(len(sizes)):
        if sizes[row] == 0.0:
            continue
        # SplitMix64, as in rounding.py: a row's random number depends on the key and the row alone.
        bits = np.uint64(key) + np.uint64(row + 1) * np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits ^= bits >> np.uint64(31)
        chance = np.float64(bits >> np.uint64(11)) * 2.0**-53
        if chance * threshold < sizes[row]:
            rows[found] = row
            weights[found] = max(threshold / sizes[row], 1.0)
            found += 1
    return found


def draw_split_sample(
    lambdas: NDArray[np.float32], rhos: NDArray[np.float32], wanted: int, key: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """About so many documents, drawn by λ and ρ, and how many times each counts.

    All that have a λ or a ρ, once each, if they are no more than wanted.

    Parameters
    ----------
    lambdas, rhos
        First and second derivatives of all documents.
    wanted
        The expected number of documents.
    key
        Seed of the draw.

    >>> lambdas, rhos = np.array([0.0, 3.0, -1.0, 0.0], dtype=np.float32), np.array([0, 1, 1, 0], dtype=np.float32)
    >>> [array.tolist() for array in draw_split_sample(lambdas, rhos, 2, key=5)]
    [[1, 2], [1.0, 1.0]]
    """
    sizes = np.empty(len(lambdas), dtype=np.float32)
    count, total = _sizes(lambdas, rhos, _CURVATURE, sizes)
    threshold = 0.0 if count <= wanted else _threshold(sizes, wanted, total, _ROUNDS)
    rows, weights = np.empty(count, dtype=np.int32), np.empty(count, dtype=np.float32)
    found = _draw(sizes, threshold, key, rows, weights)
    return rows[:found], weights[:found]

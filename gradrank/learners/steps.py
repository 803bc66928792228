"""Step rules: the value of each leaf of a new tree."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gradrank.kernels import njit

StepRule = Literal["newton", "gradient"]

# Below this sum of ρ there is nothing to divide by; LightGBM's own floor.
_LEAST_CURVATURE = 1e-15


@njit(cache=True, nogil=True)
def _leaf_sums(leaf: Any, lambdas: Any, rhos: Any, lambda_sums: Any, rho_sums: Any, counts: Any) -> None:
    for row in range(len(leaf)):
        at = leaf[row]
        lambda_sums[at] += lambdas[row]
        rho_sums[at] += rhos[row]
        # Documents that joined no pair say nothing about the step.
        if rhos[row] != 0.0 or lambdas[row] != 0.0:
            counts[at] += 1.0


def leaf_values(
    rule: StepRule,
    leaf: NDArray[np.int32],
    n_leaves: int,
    lambdas: NDArray[np.float32],
    rhos: NDArray[np.float32],
    l2: float = 0.0,
) -> NDArray[np.float64]:
    """``newton``: Σλ/(Σρ + l2) over the documents of a leaf; ``gradient``: the mean λ of its documents.

    >>> leaf = np.array([0, 0, 1], dtype=np.int32)
    >>> lambdas, rhos = np.array([1, 2, -1], dtype=np.float32), np.array([0.5, 0.5, 0.25], dtype=np.float32)
    >>> leaf_values("newton", leaf, 2, lambdas, rhos).tolist(), leaf_values("gradient", leaf, 2, lambdas, rhos).tolist()
    ([3.0, -4.0], [1.5, -1.0])
    """
    lambda_sums, rho_sums, counts = np.zeros(n_leaves), np.zeros(n_leaves), np.zeros(n_leaves)
    _leaf_sums(leaf, lambdas, rhos, lambda_sums, rho_sums, counts)
    if rule == "gradient":
        return np.asarray(lambda_sums / np.maximum(counts + l2, 1.0))
    return np.asarray(np.where(rho_sums > 0.0, lambda_sums / np.maximum(rho_sums + l2, _LEAST_CURVATURE), 0.0))

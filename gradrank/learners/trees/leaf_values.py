"""Step rules: the value of each leaf of a new tree."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gradrank.combine import Combiner
from gradrank.errors import TrainingError
from gradrank.learners.base.crew import ALONE, Crew
from gradrank.learners.trees.parameters import STEP_RULES as STEP_RULES
from gradrank.runtime.kernels import njit

StepRule = Literal["newton", "gradient", "optimal", "optimal-leaf", "optimal-gradient"]

# Weights that the exact combiner may give a tree: near 0 training would stand still (Wu et al. 2009, section 5.6).
_LEAST_WEIGHT, _MOST_WEIGHT = 0.1, 100.0

# Below this sum of ρ there is nothing to divide by; LightGBM's own floor.
_LEAST_CURVATURE = 1e-15


@njit(cache=True, nogil=True, plain=True)
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
    reg_lambda: float = 0.0,
    *,
    crew: Crew = ALONE,
) -> NDArray[np.float64]:
    """``newton``: Σλ/(Σρ + reg_lambda) over the documents of a leaf; ``gradient``: the mean λ of its documents.

    The sums are over the documents of all processes of the ``crew``.

    >>> leaf = np.array([0, 0, 1], dtype=np.int32)
    >>> lambdas, rhos = np.array([1, 2, -1], dtype=np.float32), np.array([0.5, 0.5, 0.25], dtype=np.float32)
    >>> leaf_values("newton", leaf, 2, lambdas, rhos).tolist(), leaf_values("gradient", leaf, 2, lambdas, rhos).tolist()
    ([3.0, -4.0], [1.5, -1.0])
    """
    if rule not in ("newton", "gradient"):
        raise TrainingError(f"step is {rule!r}, which goes with one tree per step only: use newton or gradient")
    sums = np.zeros((3, n_leaves))
    _leaf_sums(leaf, lambdas, rhos, *sums)
    lambda_sums, rho_sums, counts = crew.sum(sums)
    if rule == "gradient":
        return np.asarray(lambda_sums / np.maximum(counts + reg_lambda, 1.0))
    return np.asarray(np.where(rho_sums > 0.0, lambda_sums / np.maximum(rho_sums + reg_lambda, _LEAST_CURVATURE), 0.0))


def first_rule(rule: StepRule, has_curvature: bool) -> StepRule:
    """The rule of the leaf values that the optimal rules start from.

    >>> first_rule("optimal", has_curvature=True), first_rule("optimal-leaf", has_curvature=False)
    ('newton', 'gradient')
    >>> first_rule("optimal-gradient", has_curvature=True)
    'gradient'
    """
    if not rule.startswith("optimal"):
        return rule
    return "newton" if has_curvature and rule != "optimal-gradient" else "gradient"


def optimal_values(
    rule: StepRule,
    values: NDArray[np.float64],
    leaf: NDArray[np.int32],
    scores: NDArray[np.float64],
    combiner: Combiner,
) -> NDArray[np.float64]:
    """Leaf values times exact best weights in 0.1…100 on top of the current scores (Wu et al. 2009, section 5.6).

    ``optimal`` and ``optimal-gradient``: one weight for the tree, whose leaves hold Newton's steps or mean λ's; the
    latter takes the place of Newton's step, as in the paper. ``optimal-leaf``: one for each leaf, found one after the
    other with the others fixed, the leaves that move scores most first. A weight stays 1 unless another one is
    better: where many weights give the same order (the first tree's do), the leaf values' own scale is as good as
    any.

    >>> from gradrank.data import RankingData
    >>> from gradrank.measures import MRR
    >>> data = RankingData.from_arrays([[0.0]] * 2, [1, 0], qid=[1, 1])
    >>> leaf, scores = np.array([0, 1], dtype=np.int32), np.array([0.0, 3.0])
    >>> optimal_values("optimal", np.array([1.0, 0.0]), leaf, scores, Combiner(data, MRR())).tolist()
    [17.320508075688775, 0.0]
    """
    if len(values) < 2 or not values.any():
        return values
    if rule != "optimal-leaf":
        return _weight(combiner, scores, values[leaf]) * values
    values = values.copy()
    counts = np.bincount(leaf, minlength=len(values))
    for k in np.argsort(-np.abs(values) * counts, kind="stable").tolist():
        inside = leaf == k
        if values[k] == 0.0 or not inside.any():
            continue
        rest = scores + np.where(inside, 0.0, values[leaf])
        # Queries without a document in the leaf do not change.
        values[k] *= _weight(combiner.among(inside), rest, np.where(inside, values[k], 0.0))
    return values


def _weight(combiner: Combiner, scores: NDArray[np.float64], column: NDArray[np.float64]) -> float:
    if np.isnan(combiner.values(scores)[0]):
        return 1.0  # no query of this step's sample is judged
    found = combiner.search(scores, column, form="additive", low=_LEAST_WEIGHT, high=_MOST_WEIGHT, also=[1.0])
    if not combiner.better(tuple(found.values.values()), combiner.values(scores + column)):
        return 1.0
    # Weights are factors: the middle of an interval that may span decades is the geometric one.
    middle = float(np.sqrt(found.interval[0] * found.interval[1]))
    holds = not combiner.better(tuple(found.values.values()), combiner.values(scores + middle * column))
    return middle if holds else found.alpha

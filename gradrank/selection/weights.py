"""Weights of the lower tiers of a graded objective, to be tried one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gradrank.errors import TrainingError
from gradrank.objectives import Tiered

WEIGHTS = (0.01, 0.1, 0.2, 0.3, 0.4, 0.5)
"""The weights of Svore et al. (2011, §6.1)."""

Weight = float | Sequence[float]
"""The share of all lower tiers together, which keep their proportions, or one share for each of them."""

Shares = tuple[float, ...]


def named_shares(objective: Tiered, weights: Sequence[Weight]) -> dict[str, Shares]:
    """The shares of the lower tiers by name of the model: all 0 first, numbers in rising order, each once.

    >>> from gradrank.objectives import parse_objective
    >>> three = parse_objective("Tiered(NDCG, CNDCG, NDCG(label=fresh), weights=(0.2, 0.1))")
    >>> named_shares(three, [0.6, 0.3, (0.5, 0.25)])
    {'w=0': (0.0, 0.0), 'w=0.3': (0.2, 0.1), 'w=0.6': (0.4, 0.2), 'w=0.5,0.25': (0.5, 0.25)}
    """
    lower = len(objective.tiers) - 1
    numbers, lists = [], []
    for weight in weights:
        shares = (weight,) if isinstance(weight, int | float) else tuple(weight)
        if any(not 0.0 <= share <= 1.0 for share in shares) or not sum(shares) <= 1.0 + 1e-9:
            shown = "/".join(f"{share:g}" for share in shares)
            raise TrainingError(f"a weight is {shown}, expected numbers from 0 to 1 that add up to at most 1")
        if len(shares) == 1:
            numbers.append(float(shares[0]))
        elif len(shares) == lower:
            lists.append(tuple(float(share) for share in shares))
        else:
            raise TrainingError(f"a weight is {weight!r}, expected one number, or {lower}, one for each lower tier")
    found = {f"w={number:.10g}": reweighted(objective, number).weights[1:] for number in sorted({0.0, *numbers})}
    for shares in lists:
        if shares not in found.values():
            found["w=" + ",".join(f"{share:.10g}" for share in shares)] = shares
    return found


def reweighted(objective: Tiered, weight: Weight) -> Tiered:
    """The objective with other shares of its lower tiers; a number is shared out in their proportions.

    >>> from gradrank.objectives import parse_objective
    >>> three = parse_objective("Tiered(NDCG, CNDCG, NDCG(label=fresh), weights=[0.7, 0.2, 0.1])")
    >>> [round(share, 3) for share in reweighted(three, 0.6).weights], reweighted(three, (0.1, 0.3)).weights
    ([0.4, 0.4, 0.2], (0.6, 0.1, 0.3))
    """
    if not isinstance(weight, int | float):
        shares = tuple(float(share) for share in weight)
        return replace(objective, weights=(max(0.0, round(1.0 - sum(shares), 12)), *shares))
    lower = np.asarray(objective.weights[1:])
    if lower.sum() == 0.0:
        lower = np.ones(len(lower))
    # In this order a single lower tier gets exactly the weight; decimals without noise make readable names.
    shares = tuple(round(share, 12) for share in (weight * (lower / lower.sum())).tolist())
    return replace(objective, weights=(1.0 - weight, *shares))


def spread_weights(tiers: int, points: int, *, most: float = 0.5, random_state: int = 0) -> list[Shares]:
    """Weights for all lower tiers that fill their space evenly, however many are taken of them.

    The first points of a longer list are those of a shorter one, so that points can be added to a sweep. They are
    points of a scrambled Halton sequence, mapped to shares of at least 0 that add up to at most ``most``: sorted, the
    differences of neighbors are uniform on that simplex.

    Parameters
    ----------
    tiers
        Number of tiers, the first one included.
    points
        How many weights to make.
    most
        Largest share of all lower tiers together.
    random_state
        Seed of the scrambling.

    >>> two = spread_weights(3, 2)
    >>> spread_weights(3, 4)[:2] == two, all(sum(shares) <= 0.5 for shares in two)
    (True, True)
    """
    from scipy.stats import qmc

    if tiers < 2 or points < 1:
        raise TrainingError(f"there are {tiers} tiers and {points} points, expected at least 2 and 1")
    if not 0.0 < most <= 1.0:
        raise TrainingError(f"the largest share is {most!r}, expected a number above 0, at most 1")
    cube = np.sort(qmc.Halton(tiers - 1, scramble=True, rng=random_state).random(points), axis=1)
    shares = np.diff(cube, axis=1, prepend=0.0) * most
    return [tuple(round(share, 4) for share in row) for row in shares.tolist()]

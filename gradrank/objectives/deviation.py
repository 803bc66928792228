"""λ's divided by their standard deviation in each query, after they have been mixed (Svore et al. 2011, §5.3)."""

from __future__ import annotations

import numpy as np

from gradrank.data.ranking_data import RankingData
from gradrank.errors import ObjectiveError
from gradrank.objectives.objective import Gradients

NORMALIZATIONS = ("none", "deviation")


def check_normalization(name: str, given: str) -> None:
    """Refuse what mixed λ's cannot be divided by."""
    if given not in NORMALIZATIONS:
        raise ObjectiveError(f"{name}: normalize is {given!r}, expected {' or '.join(NORMALIZATIONS)}")


def divided_by_deviation(gradients: Gradients, data: RankingData) -> Gradients:
    """λ and ρ divided by the standard deviation of the query's λ's; a query without λ's stays as it is.

    The weights of the queries stay in force: they are part of the λ's that come in, where dividing would cancel them.

    >>> data = RankingData.from_arrays([[0.0]] * 4, [1, 0, 1, 0], qid=[1, 1, 2, 2], weight=[1.0, 3.0])
    >>> lambdas = np.array([0.5, -0.5, 6.0, -6.0], dtype=np.float32)
    >>> divided_by_deviation(Gradients(lambdas, np.abs(lambdas)), data).lambdas.tolist()
    [1.0, -1.0, 3.0, -3.0]
    """
    starts, sizes = data.indptr[:-1], np.diff(data.indptr)
    lambdas = gradients.lambdas.astype(np.float64)
    mean = np.add.reduceat(lambdas, starts) / sizes
    deviation = np.sqrt(np.add.reduceat((lambdas - np.repeat(mean, sizes)) ** 2, starts) / sizes)
    weight = np.ones(data.n_queries) if data.weight is None else data.weight
    if data.document_weight is not None:
        # The mean weight of what is pushed up: λ's hold the weights already, so that dividing gives what they were.
        up = np.maximum(lambdas, 0.0)
        known = data.document_weight > 0
        bare = np.add.reduceat(np.where(known, up / np.where(known, data.document_weight, 1.0), 0.0), starts)
        weight = weight * np.where(bare > 0, np.add.reduceat(up, starts) / np.where(bare > 0, bare, 1.0), 1.0)
    factor = np.repeat(np.where(deviation > 0.0, weight / np.where(deviation > 0.0, deviation, 1.0), 1.0), sizes)
    return Gradients(
        (lambdas * factor).astype(np.float32),
        (gradients.rhos * factor).astype(np.float32),
        gradients.effective_pairs,
    )

"""λ's whose pairs weigh something else than the change of the measure: LambdaLoss, LambdaWide and LambdaGap."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from gradrank.errors import ObjectiveError
from gradrank.measures import CNDCG, DCG, NDCG, KappaNDCG, Precision, Recall
from gradrank.measures.swaps import SwapKernels
from gradrank.objectives.kernels.pair_weights import GAP_SCHEMES, LOSS_SCHEMES, WIDE
from gradrank.objectives.lambda_gradient import Lambda

DISCOUNTED = (NDCG, DCG, CNDCG, KappaNDCG)
"""Measures that are Σ gain × discount."""
_FORMS = tuple(dict.fromkeys(form for form, _ in GAP_SCHEMES))
_ADDED = tuple(dict.fromkeys(added for _, added in GAP_SCHEMES))


@dataclass(frozen=True, repr=False)
class LambdaLoss(Lambda):
    """λ's of the NDCG losses that bound NDCG from below (Wang, Li, Golbandi, Bendersky, Najork 2018).

    With G_i the gain over the ideal sum, D_r the inverse discount of rank r (log2(1 + r)) and the pair (i, j), i the
    more relevant one, the pair weighs

    - ``loss1``: G_i / D_{r_i};
    - ``loss2``: δ_ij·|G_i − G_j|, δ_ij = |1/D_d − 1/D_{d+1}|, d = |r_i − r_j|;
    - ``loss2pp`` (NDCG-Loss2++): (ρ_ij + μ·δ_ij)·|G_i − G_j|, ρ_ij = |1/D_{r_i} − 1/D_{r_j}|, the weight of LambdaRank.

    For given ranks these are derivatives of a cost, Σ weight·log(1 + e^{−o}); ranks follow the scores. A cut-off of the
    measure is the truncated form: Z is that of the first k ranks, and pairs below rank k do not act.

    Parameters
    ----------
    target
        NDCG, DCG, CNDCG or κ-NDCG.
    cost, pairs, truncation, normalize, gap, ties, goal
        As for :class:`Lambda`.
    scheme
        ``loss1``, ``loss2`` or ``loss2pp``.
    mu
        μ of ``loss2pp``; the paper has 5 or 10.

    >>> import numpy as np
    >>> from gradrank.data import RankingData
    >>> data = RankingData.from_arrays([[0.0]] * 2, [0, 1], qid=[1, 1])
    >>> bound = LambdaLoss(NDCG(), scheme="loss2").bind(data)
    >>> bound.gradients(np.array([2.0, 1.0])).lambdas.astype(float).round(4).tolist()
    [-0.2698, 0.2698]
    >>> LambdaLoss(NDCG(10), mu=5.0)
    LambdaLoss(NDCG@10, mu=5)
    """

    scheme: str = "loss2pp"
    mu: float = 10.0

    name: ClassVar[str] = "LambdaLoss"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_discounted(self)
        if self.scheme not in LOSS_SCHEMES:
            raise ObjectiveError(f"LambdaLoss: scheme is {self.scheme!r}, expected {' or '.join(LOSS_SCHEMES)}")
        check_mu(self.name, self.mu)

    @property
    def swaps(self) -> SwapKernels:
        """The weights of pairs."""
        return LOSS_SCHEMES[self.scheme]

    @property
    def option(self) -> float | None:
        """μ."""
        return float(self.mu)

    @property
    def deepest(self) -> int | None:
        """Pairs of which both documents stand below this rank do not act."""
        return deepest_rank(self)


@dataclass(frozen=True, repr=False)
class LambdaWide(Lambda):
    """λ's of NDCG that no pair is too deep for: a pair weighs (ρ_ij + μ)·|G_i − G_j|.

    G is the gain over the ideal sum and ρ_ij = |1/D_{r_i} − 1/D_{r_j}| the difference of the two ranks' discounts, so
    that μ = 0 is LambdaRank's |ΔNDCG|. That weight is next to nothing for two documents far down the list, wherever
    they belong; μ gives every pair a share of what its gains differ by, as the lower bound of SpringSmooth (Donmez et
    al. 2009) and NDCG-Loss2++ (Wang et al. 2018) do in their ways. The guide on training has the measurements that
    chose μ. A cut-off of the measure leaves out pairs of which both documents stand below it.

    Parameters
    ----------
    target
        NDCG, DCG, CNDCG or κ-NDCG.
    cost, pairs, truncation, normalize, gap, ties, goal
        As for :class:`Lambda`.
    mu
        μ.

    >>> import numpy as np
    >>> from gradrank.data import RankingData
    >>> data = RankingData.from_arrays([[0.0]] * 2, [0, 1], qid=[1, 1])
    >>> bound = LambdaWide(NDCG(), mu=0.5).bind(data)
    >>> bound.gradients(np.array([2.0, 1.0])).lambdas.astype(float).round(4).tolist()
    [-0.6353, 0.6353]
    """

    mu: float = 0.2

    name: ClassVar[str] = "LambdaWide"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_discounted(self)
        check_mu(self.name, self.mu)

    @property
    def swaps(self) -> SwapKernels:
        """The weights of pairs."""
        return WIDE

    @property
    def option(self) -> float | None:
        """μ."""
        return float(self.mu)

    @property
    def deepest(self) -> int | None:
        """Pairs of which both documents stand below this rank do not act."""
        return deepest_rank(self)


@dataclass(frozen=True, repr=False)
class LambdaGap(Lambda):
    """λ's for precision among the first k that reach documents far below k (Adàlia et al. 2025).

    The change of P@k is 0 for all pairs but those across rank k. With d = |r_i − r_j|, i relevant and j not, a pair
    weighs μ·[d = k] (form ``s``) or μ·[d ≥ k] (form ``x``), plus

    - ``none``: nothing — LambdaGap-S, LambdaGap-X;
    - ``precision``: 1 for pairs across rank k — LambdaGap-S+, -X+;
    - ``arp``: the change of Σ max(0, r − k) over relevant documents, the average relevance position beyond k —
      LambdaGap-S++, -X++.

    Parameters
    ----------
    target
        P@k or Recall@k: its cut-off and what counts as relevant.
    cost, pairs, truncation, normalize, gap, ties, goal
        As for :class:`Lambda`.
    form
        ``s`` or ``x``.
    add
        ``none``, ``precision`` or ``arp``.
    mu
        μ.

    >>> import numpy as np
    >>> from gradrank.data import RankingData
    >>> data = RankingData.from_arrays([[0.0]] * 3, [0, 0, 1], qid=[1, 1, 1])
    >>> bound = LambdaGap(Precision(2)).bind(data)
    >>> bound.gradients(np.array([3.0, 2.0, 1.0]), count_pairs=True).effective_pairs
    1
    >>> LambdaGap(Precision(5), form="s", add="arp")
    LambdaGap(P@5, form=s, add=arp)
    """

    form: Literal["s", "x"] = "x"
    add: Literal["none", "precision", "arp"] = "none"
    mu: float = 1.0

    name: ClassVar[str] = "LambdaGap"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.target, Precision | Recall) or self.target.cutoff is None:
            raise ObjectiveError(f"LambdaGap takes P@k or Recall@k, found {self.target}")
        if self.form not in _FORMS:
            raise ObjectiveError(f"LambdaGap: form is {self.form!r}, expected {' or '.join(_FORMS)}")
        if self.add not in _ADDED:
            raise ObjectiveError(f"LambdaGap: add is {self.add!r}, expected {' or '.join(_ADDED)}")
        check_mu(self.name, self.mu)

    @property
    def swaps(self) -> SwapKernels:
        """The weights of pairs."""
        return GAP_SCHEMES[self.form, self.add]

    @property
    def option(self) -> float | None:
        """μ."""
        return float(self.mu)


def deepest_rank(objective: Lambda) -> int | None:
    """The truncation or the measure's cut-off, whichever is less."""
    limits = [limit for limit in (objective.truncation, objective.target.cutoff) if limit is not None]
    return min(limits, default=None)


def check_discounted(objective: Lambda) -> None:
    """Refuse measures that are no sum of gains × discounts."""
    if not isinstance(objective.target, DISCOUNTED):
        raise ObjectiveError(f"{objective.name} takes NDCG, DCG, CNDCG or κ-NDCG, found {objective.target}")


def check_mu(kind: str, value: object) -> None:
    """Refuse what is no weight."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < math.inf:
        raise ObjectiveError(f"{kind}: mu is {value!r}, expected a number above 0")

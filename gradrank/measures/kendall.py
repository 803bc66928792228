"""Kendall's rank correlation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gradrank.measures.base import IntArray, Measure, Prepared
from gradrank.measures.label_levels import count_below, count_up, label_levels
from gradrank.measures.parameters import parameter
from gradrank.measures.swaps import SwapKernels
from gradrank.runtime.kernels import njit

_VARIANTS = ("pairs", "a", "b")


@njit(cache=True, nogil=True)
def _values(first, end, indptr, order, tie_end, retrieved, gain, norm, depth, weight, option, out):  # type: ignore[no-untyped-def]  # fmt: skip
    for q in range(first, end):
        start = indptr[q]
        stop = indptr[q + 1]
        above = np.zeros(stop - start + 1)
        seen = 0.0
        agreement = 0.0
        tied_pairs = 0.0
        place = start
        while place < stop:
            group_end = place + 1 if len(tie_end) == 0 else tie_end[place]
            members = 0.0
            for at in range(place, group_end):
                level = int(gain[order[at]])
                if level >= 0:
                    lower = count_below(above, level)
                    higher = seen - count_below(above, level + 1)
                    agreement += higher - lower
                    members += 1.0
            for at in range(place, group_end):
                level = int(gain[order[at]])
                if level >= 0:
                    count_up(above, level, 1.0)
            seen += members
            tied_pairs += members * (members - 1.0) / 2.0
            place = group_end
        denominator = norm[q]
        if option == 2:
            # norm is then the geometric mean for untied scores; τ-b also takes out pairs with tied scores.
            all_pairs = seen * (seen - 1.0) / 2.0
            denominator *= np.sqrt((all_pairs - tied_pairs) / all_pairs) if all_pairs > 0.0 else 1.0
        out[q] = agreement / denominator if denominator > 0.0 else 0.0


@njit(cache=True, nogil=True, plain=True)
def kendall_prepare(n, order, rank, gain, weight, norm, depth, option, state):  # type: ignore[no-untyped-def]
    """Nothing to prepare: the rows keep their own running counts."""


@njit(cache=True, nogil=True, plain=True)
def kendall_row(i, low, high, n, order, rank, gain, norm, option, state, out):  # type: ignore[no-untyped-def]
    """See swap_row.

    A swap of ranks a < b turns their own pair around and changes how both stand to the documents between them:
    Δ = (−2·sgn(l_a − l_b) + 2·Σ_between [sgn(l_b − l_k) − sgn(l_a − l_k)]) / norm.
    """
    own = int(gain[i])
    out[i] = 0.0
    tree = state[0]
    for direction in (1, -1):
        for at in range(n + 1):
            tree[at] = 0.0
        seen = 0.0
        own_sum = 0.0
        r = rank[i] + direction
        while 0 <= r < n:
            j = order[r]
            level = int(gain[j])
            other_sum = 0.0
            sign = 0.0
            if level >= 0:
                other_sum = count_below(tree, level) - (seen - count_below(tree, level + 1))
                if own >= 0:
                    sign = 1.0 if own > level else (-1.0 if own < level else 0.0)
            # sign, own_sum and other_sum are seen from i, which is the upper of the two going down, the lower going up.
            out[j] = direction * 2.0 * (other_sum - own_sum - sign) / norm
            if level >= 0:
                count_up(tree, level, 1.0)
                seen += 1.0
                own_sum += sign
            r += direction


@dataclass(frozen=True, repr=False)
class KendallTau(Measure):
    """Kendall's τ: concordant minus discordant pairs of documents, over the number of pairs (Kendall 1938).

    Pairs of documents with equal labels, or with an unjudged one, count neither way. ``variant=pairs`` divides by the
    number of pairs with different labels, so the ideal order has 1; ``a`` by all pairs; ``b`` as Kendall's τ-b does,
    which also takes out pairs with equal scores.

    Parameters
    ----------
    variant
        What the number of agreeing pairs is divided by: ``pairs``, ``a`` or ``b``, as above.
    label, convention, ties, empty, unjudged, precision
        See :class:`Measure`.

    >>> from gradrank.data import RankingData
    >>> data = RankingData.from_arrays([[0.0]] * 3, [2, 1, 0], qid=[1, 1, 1])
    >>> KendallTau().values([3.0, 1.0, 2.0], data).round(4).tolist()
    [0.3333]
    """

    variant: str = parameter("what the number of agreeing pairs is divided by", *_VARIANTS)

    name: ClassVar[str] = "KendallTau"
    aliases: ClassVar[tuple[str, ...]] = ("Tau",)
    takes_cutoff: ClassVar[bool] = False
    swap: ClassVar[SwapKernels | None] = SwapKernels(kendall_prepare, kendall_row, state_rows=1)

    def kernel(self) -> Callable[..., None]:
        """See Measure.kernel."""
        return _values  # type: ignore[no-any-return]

    def prepare(self, labels: NDArray[np.float32], indptr: IntArray, n_jobs: int | None = None) -> Prepared:
        """See Measure.prepare."""
        level, pairs, all_pairs = label_levels(labels, indptr, n_jobs)
        norm = {"pairs": pairs, "a": all_pairs, "b": np.sqrt(pairs * all_pairs)}[self.variant]
        empty = pairs == 0.0
        return Prepared(level, np.where(empty, 1.0, norm), np.diff(indptr), empty, option=_VARIANTS.index(self.variant))

"""The loops of RankNet, over documents laid out by descending label: the worse partners of one are a run."""

from __future__ import annotations

import numpy as np

from gradrank.runtime.kernels import njit

# Half the range of exponents whose powers, sums and quotients single precision holds.
_HALF_RANGE = 40.0


# Inlined by force: of a function that sums in any order there may be one compiled copy only. With two, in its own
# library and in that of the kernel, a kernel from the cache would round otherwise than one that was just compiled.
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy", forceinline=True)
def _fast_row(low, high, own, powers, lambdas, rhos):  # type: ignore[no-untyped-def]
    """One document against a run of worse ones, from the powers e^{σs}; returns its own sums."""
    pulled = np.float32(0.0)
    bent = np.float32(0.0)
    for j in range(np.uint64(low), np.uint64(high)):
        p = powers[j] / (own + powers[j])
        bend = p * (np.float32(1.0) - p)
        lambdas[j] -= p
        rhos[j] += bend
        pulled += p
        bent += bend
    return pulled, bent


@njit(cache=True, nogil=True)
def _wide_row(low, high, own, exponent, lambdas, rhos):  # type: ignore[no-untyped-def]
    """As _fast_row, for scores too far apart for a common scale of powers."""
    pulled = np.float32(0.0)
    bent = np.float32(0.0)
    for j in range(low, high):
        p = np.float32(1.0 / (1.0 + np.exp(own - exponent[j])))
        bend = p * (np.float32(1.0) - p)
        lambdas[j] -= p
        rhos[j] += bend
        pulled += p
        bent += bend
    return pulled, bent


@njit(cache=True, nogil=True)
def _weighted_row(low, high, own, exponent, factor, lambdas, rhos):  # type: ignore[no-untyped-def]
    """As _wide_row, for pairs that count with the weight of their better document."""
    pulled = np.float32(0.0)
    bent = np.float32(0.0)
    for j in range(low, high):
        p = np.float32(1.0 / (1.0 + np.exp(own - exponent[j])))
        bend = p * (np.float32(1.0) - p) * factor
        p *= factor
        lambdas[j] -= p
        rhos[j] += bend
        pulled += p
        bent += bend
    return pulled, bent


@njit(cache=True, nogil=True)
def ranknet_block(first, end, scores, layout, sigma, lambdas_out, rhos_out):  # type: ignore[no-untyped-def]
    """λ and ρ of the queries first…end; ``layout`` is a PairLayout."""
    indptr = layout.indptr
    rows = layout.rows
    run_end = layout.run_end
    limit = layout.limit
    document_weight = layout.document_weight
    longest = 1
    for q in range(first, end):
        longest = max(longest, indptr[q + 1] - indptr[q])
    exponent = np.empty(longest)
    powers = np.empty(longest, np.float32)
    lambdas = np.empty(longest, np.float32)
    rhos = np.empty(longest, np.float32)
    for q in range(first, end):
        start = indptr[q]
        n = indptr[q + 1] - start
        if not layout.active[q]:
            continue  # nothing to order; the output starts at 0
        least = np.inf
        most = -np.inf
        for i in range(n):
            exponent[i] = sigma * scores[rows[start + i]]
            least = min(least, exponent[i])
            most = max(most, exponent[i])
        center = 0.5 * (least + most)
        wide = most - center > _HALF_RANGE
        for i in range(n):
            if not wide:
                powers[i] = np.exp(exponent[i] - center)
            lambdas[i] = 0.0
            rhos[i] = 0.0
        for i in range(n):
            low = run_end[start + i]
            high = limit[start + i]
            if low < high:
                if len(document_weight):
                    own_factor = document_weight[start + i]
                    pulled, bent = _weighted_row(low, high, exponent[i], exponent, own_factor, lambdas, rhos)
                elif wide:
                    pulled, bent = _wide_row(low, high, exponent[i], exponent, lambdas, rhos)
                else:
                    pulled, bent = _fast_row(low, high, powers[i], powers, lambdas, rhos)
                lambdas[i] += pulled
                rhos[i] += bent
        scale = layout.query_weight[q] * sigma
        for i in range(n):
            lambdas_out[rows[start + i]] = lambdas[i] * scale
            rhos_out[rows[start + i]] = rhos[i] * scale * sigma


@njit(cache=True, nogil=True)
def ranknet_loss_block(first, end, scores, layout, sigma, losses):  # type: ignore[no-untyped-def]
    """The cost of the queries first…end."""
    indptr = layout.indptr
    rows = layout.rows
    run_end = layout.run_end
    limit = layout.limit
    document_weight = layout.document_weight
    for q in range(first, end):
        if not layout.active[q]:
            continue
        start = indptr[q]
        total = 0.0
        for i in range(start, indptr[q + 1]):
            own = scores[rows[i]]
            factor = np.float64(document_weight[i]) if len(document_weight) else 1.0
            for j in range(start + run_end[i], start + limit[i]):
                o = sigma * (own - scores[rows[j]])
                total += factor * (max(-o, 0.0) + np.log1p(np.exp(-abs(o))))
        losses[q] = layout.query_weight[q] * total

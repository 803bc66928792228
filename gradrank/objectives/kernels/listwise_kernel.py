"""The loops of the listwise objectives, over the judged documents of each query in the order of their labels."""

from __future__ import annotations

import numpy as np

from gradrank.runtime.kernels import njit

# Scores of a list within this range have a common scale: the squares of their powers stay above 1e-174.
_NARROW = 200.0


@njit(cache=True, nogil=True)
def _log_add(a, b):  # type: ignore[no-untyped-def]
    """log(e^a + e^b); either may be −∞."""
    high = max(a, b)
    if high == -np.inf:
        return high
    return high + np.log1p(np.exp(min(a, b) - high))


@njit(cache=True, nogil=True)
def listnet_block(first, end, indptr, rows, truth, scale, scores, lambdas, rhos, losses):  # type: ignore[no-untyped-def]
    """Cross-entropy of the two softmax distributions; ``truth`` is that of the labels."""
    longest = 1
    for q in range(first, end):
        longest = max(longest, indptr[q + 1] - indptr[q])
    powers = np.empty(longest)
    for q in range(first, end):
        start = indptr[q]
        n = indptr[q + 1] - start
        high = -np.inf
        for i in range(n):
            high = max(high, scores[rows[start + i]])
        total = 0.0
        for i in range(n):
            powers[i] = np.exp(scores[rows[start + i]] - high)
            total += powers[i]
        log_total = high + np.log(total)
        loss = 0.0
        for i in range(n):
            row = rows[start + i]
            p = powers[i] / total
            lambdas[row] = scale[q] * (truth[start + i] - p)
            rhos[row] = scale[q] * p * (1.0 - p)
            loss += truth[start + i] * (log_total - scores[row])
        losses[q] = scale[q] * loss


@njit(cache=True, nogil=True)
def listnet_terms_block(first, end, indptr, rows, truth, scale, terms, scores, lambdas, rhos):  # type: ignore[no-untyped-def]
    """As listnet_block, with further terms of the inverse second derivative: t' = p·Σ_{others} t/(1 − p)."""
    longest = 1
    for q in range(first, end):
        longest = max(longest, indptr[q + 1] - indptr[q])
    p = np.empty(longest)
    term = np.empty(longest)
    for q in range(first, end):
        start = indptr[q]
        n = indptr[q + 1] - start
        high = -np.inf
        for i in range(n):
            high = max(high, scores[rows[start + i]])
        total = 0.0
        for i in range(n):
            p[i] = np.exp(scores[rows[start + i]] - high)
            total += p[i]
        for i in range(n):
            p[i] /= total
            term[i] = truth[start + i] - p[i]
            lambdas[rows[start + i]] = scale[q] * term[i]
            rhos[rows[start + i]] = scale[q] * p[i] * (1.0 - p[i])
        for _ in range(1, terms):
            total = 0.0
            for i in range(n):
                # Where one document has all the chance, nothing is left for the others to add.
                term[i] /= max(1.0 - p[i], 1e-12)
                total += term[i]
            for i in range(n):
                term[i] = p[i] * (total - term[i])
                lambdas[rows[start + i]] += scale[q] * term[i]


@njit(cache=True, nogil=True)
def listmle_block(first, end, indptr, rows, depth, scale, weight, log_weight, scores, lambdas, rhos, losses):  # type: ignore[no-untyped-def]
    """Likelihood of the first ``depth`` places of the true order, which is that of ``rows``; a place counts with the
    ``weight`` of its document."""
    longest = 1
    for q in range(first, end):
        longest = max(longest, indptr[q + 1] - indptr[q])
    rest = np.empty(longest)
    for q in range(first, end):
        start = indptr[q]
        n = indptr[q + 1] - start
        below = -np.inf
        for j in range(n - 1, -1, -1):
            below = _log_add(below, scores[rows[start + j]])
            rest[j] = below
        # log Σ_{j ≤ here} w_j/rest_j and of w_j/rest_j²: with s_i they give the sums of i's probabilities.
        inverse = -np.inf
        square = -np.inf
        loss = 0.0
        for j in range(n):
            score = scores[rows[start + j]]
            chosen = 0.0
            if j < depth[q]:
                own = weight[start + j]
                inverse = _log_add(inverse, log_weight[start + j] - rest[j])
                square = _log_add(square, log_weight[start + j] - 2.0 * rest[j])
                chosen = own
                loss += own * (rest[j] - score)
            p = np.exp(score + inverse)
            lambdas[rows[start + j]] = scale[q] * (chosen - p)
            rhos[rows[start + j]] = scale[q] * max(p - np.exp(2.0 * score + square), 0.0)
        losses[q] = scale[q] * loss


@njit(cache=True, nogil=True)
def subset_chances(labels, out):  # type: ignore[no-untyped-def]
    """p(S): chance that exactly the documents of S are left at some time when the Plackett–Luce model of the labels
    (in descending order) fills the places one by one. Bit i of S is document i."""
    k = len(labels)
    out[:] = 0.0
    out[len(out) - 1] = 1.0
    for left in range(len(out) - 1, 0, -1):
        top = 0
        while not (left >> top) & 1:
            top += 1
        total = 0.0
        for i in range(top, k):
            if (left >> i) & 1:
                total += np.exp(labels[i] - labels[top])
        for i in range(top, k):
            if (left >> i) & 1:
                out[left ^ (1 << i)] += out[left] * np.exp(labels[i] - labels[top]) / total


@njit(cache=True, nogil=True)
def weighted_chances(labels, weights, chances):  # type: ignore[no-untyped-def]
    """p(S) times the mean weight of the document that is taken from S next, in place."""
    k = len(labels)
    for left in range(1, len(chances)):
        top = 0
        while not (left >> top) & 1:
            top += 1
        total = 0.0
        weighted = 0.0
        for i in range(top, k):
            if (left >> i) & 1:
                power = np.exp(labels[i] - labels[top])
                total += power
                weighted += power * weights[i]
        chances[left] *= weighted / total


@njit(cache=True, nogil=True)
def exact_list(k, z, weights, chances, want_loss, ratio, best, sums, work, shares, bends):  # type: ignore[no-untyped-def]
    """Σ_S p(S)·log Σ_{i∈S} e^{z_i} − Σ_i w_i·z_i, the cross-entropy over all orders of k documents (0 if not wanted);
    fills shares[i] = Σ_S p(S)·P(i|S) and bends[i] = Σ_S p(S)·P(i|S)(1 − P(i|S)), P the scores' softmax over S.

    Each document is taken exactly once, whatever the truth, so that the labels enter through p(S) only. With weights
    of documents p(S) is that of ``weighted_chances``.
    """
    least = z[0]
    most = z[0]
    for i in range(1, k):
        least = min(least, z[i])
        most = max(most, z[i])
    if most - least > _NARROW:
        return _wide_list(k, z, weights, chances, ratio, best, sums, shares, bends)
    return _narrow_list(k, z, most, weights, chances, want_loss, sums, work, shares, bends)


@njit(cache=True, nogil=True)
def _narrow_list(k, z, most, weights, chances, want_loss, sums, work, shares, bends):  # type: ignore[no-untyped-def]
    """exact_list for scores whose powers have a common scale, in about 2^k steps that vectorize.

    sums[S] = Σ_{i∈S} e^{z_i − most} doubles with each document. Σ over the sets that contain i of p/sums and of p/sums²
    comes from folding: the upper half are the sets with the last document; adding it to the lower half forgets that
    document.
    """
    size = 1 << k
    sums[0] = 0.0
    for i in range(k):
        power = np.exp(z[i] - most)
        half = 1 << i
        for left in range(half):
            sums[half + left] = sums[left] + power
    loss = 0.0
    if want_loss:
        for left in range(1, size):
            loss += chances[left] * (most + np.log(sums[left]))
        for i in range(k):
            loss -= weights[i] * z[i]
    one = work[:size]
    two = work[size : 2 * size]
    one[0] = 0.0
    two[0] = 0.0
    for left in range(1, size):
        inverse = 1.0 / sums[left]
        one[left] = chances[left] * inverse
        two[left] = one[left] * inverse
    for i in range(k - 1, -1, -1):
        half = 1 << i
        first = 0.0
        second = 0.0
        for left in range(half):
            first += one[half + left]
            second += two[half + left]
            one[left] += one[half + left]
            two[left] += two[half + left]
        power = np.exp(z[i] - most)
        shares[i] = power * first
        bends[i] = max(shares[i] - power * power * second, 0.0)
    return loss


@njit(cache=True, nogil=True)
def _wide_list(k, z, weights, chances, ratio, best, sums, shares, bends):  # type: ignore[no-untyped-def]
    """exact_list for any scores: ``best[S]`` is the document of S with the highest score and
    sums[S] = Σ_{i∈S} e^{z_i − z_best}, so that nothing overflows or vanishes."""
    loss = 0.0
    for i in range(k):
        loss -= weights[i] * z[i]
        shares[i] = 0.0
        bends[i] = 0.0
        for j in range(k):
            ratio[i, j] = np.exp(min(z[i] - z[j], 0.0))
    for left in range(1, 1 << k):
        low = 0
        while not (left >> low) & 1:
            low += 1
        others = left ^ (1 << low)
        if others == 0:
            best[left] = low
            sums[left] = 1.0
        else:
            top = best[others]
            if z[low] > z[top]:
                best[left] = low
                sums[left] = 1.0 + sums[others] * ratio[top, low]
            else:
                best[left] = top
                sums[left] = sums[others] + ratio[low, top]
        top = best[left]
        loss += chances[left] * (z[top] + np.log(sums[left]))
        for i in range(low, k):
            if (left >> i) & 1:
                p = ratio[i, top] / sums[left]
                shares[i] += chances[left] * p
                bends[i] += chances[left] * p * (1.0 - p)
    return loss


@njit(cache=True, nogil=True)
def exact_block(  # type: ignore[no-untyped-def]
    first, end, indptr, rows, weight, tables, table, scale, longest, want_loss, scores, lambdas, rhos, losses
):
    """ListNet over all orders; ``tables[table[q] :]`` are the chances of the query's subsets."""
    z, shares, bends = np.empty(longest), np.empty(longest), np.empty(longest)
    ratio = np.empty((longest, longest))
    best = np.empty(1 << longest, np.int8)
    sums = np.empty(1 << longest)
    work = np.empty(2 << longest)
    for q in range(first, end):
        start = indptr[q]
        k = indptr[q + 1] - start
        for i in range(k):
            z[i] = scores[rows[start + i]]
        own = weight[start : start + k]
        loss = exact_list(k, z, own, tables[table[q] :], want_loss, ratio, best, sums, work, shares, bends)
        losses[q] = scale[q] * loss
        for i in range(k):
            lambdas[rows[start + i]] = scale[q] * (own[i] - shares[i])
            rhos[rows[start + i]] = scale[q] * bends[i]


@njit(cache=True, nogil=True)
def focused_block(  # type: ignore[no-untyped-def]
    first, end, indptr, rows, weight, tops, tables, table, list_scale, pair_scale, longest, want_loss, scores,
    lambdas, rhos, losses,
):  # fmt: skip
    """ListNet over the first ``tops[q]`` documents plus RankNet between these and the rest."""
    z, shares, bends = np.empty(longest), np.empty(longest), np.empty(longest)
    ratio = np.empty((longest, longest))
    best = np.empty(1 << longest, np.int8)
    sums = np.empty(1 << longest)
    work = np.empty(2 << longest)
    for q in range(first, end):
        start = indptr[q]
        stop = indptr[q + 1]
        k = tops[q]
        own = weight[start : start + k]
        for i in range(k):
            z[i] = scores[rows[start + i]]
        loss = 0.0
        if list_scale[q] > 0.0:
            loss += list_scale[q] * exact_list(
                k, z, own, tables[table[q] :], want_loss, ratio, best, sums, work, shares, bends
            )
            for i in range(k):
                lambdas[rows[start + i]] += list_scale[q] * (own[i] - shares[i])
                rhos[rows[start + i]] += list_scale[q] * bends[i]
        for i in range(k):
            pulled = 0.0
            bent = 0.0
            scale = pair_scale[q] * own[i]
            for at in range(start + k, stop):
                o = z[i] - scores[rows[at]]
                p = 1.0 / (1.0 + np.exp(o))
                bend = scale * p * (1.0 - p)
                lambdas[rows[at]] -= scale * p
                rhos[rows[at]] += bend
                pulled += scale * p
                bent += bend
                if want_loss:
                    loss += scale * (max(-o, 0.0) + np.log1p(np.exp(-abs(o))))
            lambdas[rows[start + i]] += pulled
            rhos[rows[start + i]] += bent
        losses[q] = loss

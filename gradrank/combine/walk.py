"""The compiled walk along α: how each document's share in a measure changes as the scores' lines cross.

A document's combined score is a line in α. What a document adds to a measure depends only on what stands above it (how
many documents, and a sum over them: relevant ones, log-chances to be passed, …), so a measure changes only through
the crossings of one document's line with the others, and each document can be followed by itself: all its crossings,
sorted, counted in one by one. Two documents' common crossing is the same number seen from either side.

Documents whose lines are identical are tied for every α and count as one group, by expectation over its orders.
"""

from __future__ import annotations

import numpy as np

from gradrank.runtime.kernels import njit

# What a document adds to a measure, from what stands above it: see _worth. KENDALL is a sum over pairs: see walk_pairs.
POSITION, AVERAGE_PRECISION, RECIPROCAL_RANK, EXPECTED_RECIPROCAL_RANK, BPREF, KENDALL = range(6)
# Runs of this length are sorted by insertion, then merged.
_RUN = 24
# Changes that cancel leave this much at most.
_ROUNDING = 1e-14


@njit(cache=True, nogil=True)
def _insert(low, high, at, other):  # type: ignore[no-untyped-def]
    """Sort a short run."""
    for k in range(low + 1, high):
        key = at[k]
        item = other[k]
        place = k
        while place > low and at[place - 1] > key:
            at[place] = at[place - 1]
            other[place] = other[place - 1]
            place -= 1
        at[place] = key
        other[place] = item


@njit(cache=True, nogil=True)
def sort_crossings(count, at, other, spare_at, spare_other):  # type: ignore[no-untyped-def]
    """Sort crossings by α, in place; the spare arrays are as long."""
    for low in range(0, count, _RUN):
        _insert(low, min(low + _RUN, count), at, other)
    width = _RUN
    while width < count:
        for low in range(0, count, 2 * width):
            middle = min(low + width, count)
            high = min(low + 2 * width, count)
            left = low
            right = middle
            for k in range(low, high):
                if left < middle and (right >= high or at[left] <= at[right]):
                    spare_at[k] = at[left]
                    spare_other[k] = other[left]
                    left += 1
                else:
                    spare_at[k] = at[right]
                    spare_other[k] = other[right]
                    right += 1
        for k in range(count):
            at[k] = spare_at[k]
            other[k] = spare_other[k]
        width *= 2


@njit(cache=True, nogil=True)
def _tables(form, n, weight, share, carry, table):  # type: ignore[no-untyped-def]
    """Running sums over ranks (of weights, of 1/rank) or over counts (of Bpref's credit), from 0."""
    table[0] = 0.0
    if form == BPREF:
        n_relevant = 0.0
        n_nonrelevant = 0.0
        for i in range(n):
            n_relevant += share[i]
            n_nonrelevant += carry[i]
        for above in range(n + 1):
            credit = 1.0
            if above > 0 and n_nonrelevant > 0.0:
                credit = 1.0 - min(above, n_relevant) / min(n_relevant, n_nonrelevant)
            table[above + 1] = table[above] + credit
        return
    for r in range(n):
        worth = 0.0
        if form == POSITION:
            worth = weight[r]
        elif form == AVERAGE_PRECISION:
            worth = 1.0 / (r + 1)
        table[r + 1] = table[r] + worth


@njit(cache=True, nogil=True)
def _chances(form, size, kept, members, share, chance):  # type: ignore[no-untyped-def]
    """For each place of a group of tied documents the chance that the user stops (ERR) or first finds something (MRR)
    there, having reached the group."""
    if form == RECIPROCAL_RANK:
        hits = 0.0
        for m in range(size):
            hits += share[members[m]]
        missed = 1.0
        for j in range(kept):
            left = size - j
            chance[j] = missed * hits / left
            missed *= max(left - hits, 0.0) / left
        return
    # Mean over all sets of j tied documents of the chance to pass all of them, documents added one by one.
    chance[0] = 1.0
    for j in range(1, kept + 1):
        chance[j] = 0.0
    for m in range(1, size + 1):
        passes = 1.0 - share[members[m - 1]]
        for j in range(min(m, kept), 0, -1):
            chance[j] = (1.0 - j / m) * chance[j] + j / m * passes * chance[j - 1]
    for j in range(kept):
        chance[j] = chance[j] - chance[j + 1]


@njit(cache=True, nogil=True)
def _worth(form, place, carried, size, hits, tied, depth, table, chance):  # type: ignore[no-untyped-def]
    """What a group of tied documents adds to the measure (before the norm), from what stands above it.

    ``place`` documents with the sum ``carried`` stand above; the group has ``hits`` (gain, or relevant documents) in
    all and carries ``tied`` itself.
    """
    if place >= depth:
        return 0.0
    if form == BPREF:
        above = int(carried)
        return hits * (table[above + int(tied) + 1] - table[above]) / (tied + 1.0)
    end = min(place + size, depth)
    if form == POSITION:
        return hits / size * (table[end] - table[place])
    if form == AVERAGE_PRECISION:
        harmonic = table[end] - table[place]
        total = (carried + 1.0) * harmonic
        if size > 1:
            # Before the j-th place of the group stand (j − 1)(m − 1)/(t − 1) other relevant ones of it.
            total += (hits - 1.0) / (size - 1) * ((end - place) - (place + 1) * harmonic)
        return hits / size * total
    if form == RECIPROCAL_RANK and carried > 0.0:
        return 0.0
    total = 0.0
    for r in range(place, end):
        total += chance[r - place] / (r + 1)
    return total * np.exp2(carried) if form == EXPECTED_RECIPROCAL_RANK else total


@njit(cache=True, nogil=True)
def walk_documents(  # type: ignore[no-untyped-def]
    first, end, indptr, one, two, convex, low, high, grouped, form, share, carry, weight, norm, depth, active,
    start_values, out_at, out_change,
):  # fmt: skip
    """Follow every document that can add to the measure; returns the number of changes written.

    ``start_values`` gets each query's value just right of ``low``. Lines are one + α·two, or (1 − α)·one + α·two if
    ``convex``. Documents with identical lines are one group if ``grouped``, else they stand in the given order.
    """
    longest = 1
    for q in range(first, end):
        longest = max(longest, indptr[q + 1] - indptr[q])
    at = np.empty(longest)
    spare_at = np.empty(longest)
    other = np.empty(longest, np.int64)
    spare_other = np.empty(longest, np.int64)
    members = np.empty(longest, np.int64)
    table = np.empty(longest + 2)
    chance = np.empty(longest + 1)
    written = 0
    for q in range(first, end):
        start_values[q] = 0.0
        if not active[q]:
            continue
        start = indptr[q]
        n = indptr[q + 1] - start
        s = one[start : start + n]
        t = two[start : start + n]
        shares = share[start : start + n]
        carries = carry[start : start + n]
        _tables(form, n, weight[start : start + n] if len(weight) else weight, shares, carries, table)
        limit = depth[q]
        scale = 1.0 / norm[q]
        total = 0.0
        for i in range(n):
            if shares[i] == 0.0:
                continue  # adds nothing, wherever it stands
            place = 0
            carried = 0.0
            count = 0
            leaving = 0
            size = 0
            hits = 0.0
            tied = 0.0
            told = False
            for j in range(n):
                gap = s[i] - s[j]
                slope = t[i] - t[j]
                if convex:
                    slope -= gap
                if slope == 0.0:
                    if gap == 0.0 and (grouped or i == j):
                        if j < i and shares[j] != 0.0:
                            told = True  # the group has been followed already
                            break
                        members[size] = j
                        size += 1
                        hits += shares[j]
                        tied += carries[j]
                    elif gap < 0.0 or (gap == 0.0 and j < i):
                        place += 1
                        carried += carries[j]
                    continue
                crossing = -gap / slope
                passed = crossing <= low
                above = (slope < 0.0) == passed
                if above:
                    place += 1
                    carried += carries[j]
                if not passed and crossing < high:
                    at[count] = crossing
                    other[count] = ~j if above else j
                    leaving += above
                    count += 1
            # Whatever happens, so many stay above that the document never reaches a rank that counts.
            if told or place - leaving >= limit:
                continue
            if form in (RECIPROCAL_RANK, EXPECTED_RECIPROCAL_RANK):
                _chances(form, size, min(size, limit), members, shares, chance)
            sort_crossings(count, at, other, spare_at, spare_other)
            value = 0.0
            here = low
            k = 0
            while True:
                now = scale * _worth(form, place, carried, size, hits, tied, limit, table, chance)
                if here == low:
                    total += now
                elif now != value:
                    out_at[written] = here
                    out_change[written] = now - value
                    written += 1
                value = now
                if k == count:
                    break
                here = at[k]
                while k < count and at[k] == here:
                    j = other[k]
                    if j >= 0:
                        place += 1
                        carried += carries[j]
                    else:
                        place -= 1
                        carried -= carries[~j]
                    k += 1
        start_values[q] = total
    return written


@njit(cache=True, nogil=True)
def walk_pairs(  # type: ignore[no-untyped-def]
    first, end, indptr, one, two, convex, low, high, grouped, level, norm, option, active, start_values, out_at,
    out_change,
):  # fmt: skip
    """The same for Kendall's τ, a sum over pairs: each pair of different labels turns around once."""
    written = 0
    for q in range(first, end):
        start_values[q] = 0.0
        if not active[q]:
            continue
        began = written
        judged = 0.0
        tied_pairs = 0.0
        agreement = 0.0
        for i in range(indptr[q], indptr[q + 1]):
            if level[i] < 0.0:
                continue
            judged += 1.0
            for j in range(i + 1, indptr[q + 1]):
                if level[j] < 0.0:
                    continue
                gap = one[i] - one[j]
                slope = two[i] - two[j]
                if convex:
                    slope -= gap
                if slope == 0.0 and gap == 0.0 and grouped:
                    tied_pairs += 1.0
                    continue
                if level[i] == level[j]:
                    continue
                sign = 1.0 if level[i] > level[j] else -1.0
                if slope == 0.0:
                    agreement += sign if gap >= 0.0 else -sign
                    continue
                crossing = -gap / slope
                passed = crossing <= low
                above = (slope > 0.0) == passed
                agreement += sign if above else -sign
                if not passed and crossing < high:
                    out_at[written] = crossing
                    out_change[written] = -2.0 * sign if above else 2.0 * sign
                    written += 1
        denominator = norm[q]
        if option == 2:
            all_pairs = judged * (judged - 1.0) / 2.0
            denominator *= np.sqrt((all_pairs - tied_pairs) / all_pairs) if all_pairs > 0.0 else 1.0
        scale = 1.0 / denominator if denominator > 0.0 else 0.0
        start_values[q] = agreement * scale
        for k in range(began, written):
            out_change[k] *= scale
    return written


@njit(cache=True, nogil=True)
def gather(order, at, change, out_at, out_change):  # type: ignore[no-untyped-def]
    """Changes in sorted order, one for each α; changes that cancel are dropped."""
    written = 0
    k = 0
    while k < len(order):
        here = at[order[k]]
        total = 0.0
        while k < len(order) and at[order[k]] == here:
            total += change[order[k]]
            k += 1
        if abs(total) > _ROUNDING:
            out_at[written] = here
            out_change[written] = total
            written += 1
    return written


@njit(cache=True, nogil=True)
def merge(at_a, change_a, at_b, change_b, out_at, out_change):  # type: ignore[no-untyped-def]
    """Two sorted lists of changes as one."""
    a = 0
    b = 0
    written = 0
    while a < len(at_a) or b < len(at_b):
        take_a = a < len(at_a) and (b >= len(at_b) or at_a[a] <= at_b[b])
        take_b = b < len(at_b) and (a >= len(at_a) or at_b[b] <= at_a[a])
        here = at_a[a] if take_a else at_b[b]
        total = 0.0
        if take_a:
            total += change_a[a]
            a += 1
        if take_b:
            total += change_b[b]
            b += 1
        if abs(total) > _ROUNDING:
            out_at[written] = here
            out_change[written] = total
            written += 1
    return written

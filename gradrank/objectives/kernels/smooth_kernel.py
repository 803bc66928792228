"""The loops of the smooth forms of NDCG, over the judged documents of each query."""

from __future__ import annotations

import numpy as np

from gradrank.runtime.kernels import njit

# Scores ÷ temperature of a list within this range have powers with a common scale.
_NARROW = 600.0
# Rows and columns that add up to 1 as nearly as this need no further scaling; nor do more rounds pay.
_SCALED = 1e-9
MOST_SCALINGS = 50


@njit(cache=True, nogil=True)
def _above(narrow, powers, z, i, j):  # type: ignore[no-untyped-def]
    """1/(1 + e^{z_i − z_j}): how much document j stands above document i."""
    if narrow:
        return powers[j] / (powers[i] + powers[j])
    # Of the two forms the one whose power does not overflow.
    if z[i] <= z[j]:
        return 1.0 / (1.0 + np.exp(z[i] - z[j]))
    power = np.exp(z[j] - z[i])
    return power / (1.0 + power)


@njit(cache=True, nogil=True)
def approx_block(first, end, indptr, rows, gain, ideal, temperature, scale, scores, lambdas, losses):  # type: ignore[no-untyped-def]  # fmt: skip
    """λ and loss of ApproxNDCG; ``gain`` by document of the lists, ``ideal`` by list."""
    longest = 1
    for q in range(first, end):
        longest = max(longest, indptr[q + 1] - indptr[q])
    z = np.empty(longest)
    powers = np.empty(longest)
    place = np.empty(longest)
    slope = np.empty(longest)
    pushed = np.empty(longest)
    for q in range(first, end):
        start = indptr[q]
        n = indptr[q + 1] - start
        least = np.inf
        most = -np.inf
        for i in range(n):
            z[i] = scores[rows[start + i]] / temperature
            least = min(least, z[i])
            most = max(most, z[i])
            place[i] = 1.0
            pushed[i] = 0.0
        narrow = most - least < _NARROW
        if narrow:
            for i in range(n):
                powers[i] = np.exp(z[i] - 0.5 * (least + most))
        for i in range(n):
            for j in range(i + 1, n):
                above = _above(narrow, powers, z, i, j)
                place[i] += above
                place[j] += 1.0 - above
        value = 0.0
        for i in range(n):
            log = np.log(1.0 + place[i])
            worth = gain[start + i] * np.log(2.0) / ideal[q]
            value += worth / log
            # ∂(worth/log(1 + r))/∂r
            slope[i] = -worth / ((1.0 + place[i]) * log * log)
        for i in range(n):
            for j in range(i + 1, n):
                above = _above(narrow, powers, z, i, j)
                push = above * (1.0 - above) / temperature * (slope[j] - slope[i])
                pushed[i] += push
                pushed[j] -= push
        losses[q] = scale[q] * (1.0 - value)
        for i in range(n):
            lambdas[rows[start + i]] = scale[q] * pushed[i]


@njit(cache=True, nogil=True)
def _sorted_softly(n, s, temperature, P):  # type: ignore[no-untyped-def]
    """NeuralSort: row r is the softmax of ((n + 1 − 2r)·s_j − Σ_k |s_j − s_k|) ÷ temperature over the documents j."""
    for j in range(n):
        distance = 0.0
        for k in range(n):
            distance += abs(s[j] - s[k])
        for r in range(n):
            P[r, j] = ((n - 1 - 2 * r) * s[j] - distance) / temperature
    for r in range(n):
        most = P[r, 0]
        for j in range(1, n):
            most = max(most, P[r, j])
        total = 0.0
        for j in range(n):
            P[r, j] = np.exp(P[r, j] - most)
            total += P[r, j]
        for j in range(n):
            P[r, j] /= total


@njit(cache=True, nogil=True)
def _scaled(n, P, columns, lines):  # type: ignore[no-untyped-def]
    """Divide columns and rows by their sums in turn (Sinkhorn), and keep the sums; the number of rounds."""
    for number in range(MOST_SCALINGS):
        off = 0.0
        for j in range(n):
            columns[number, j] = 0.0
        for r in range(n):
            for j in range(n):
                columns[number, j] += P[r, j]
        for j in range(n):
            # A document that stands nowhere stays nowhere.
            columns[number, j] = max(columns[number, j], 1e-300)
            off = max(off, abs(columns[number, j] - 1.0))
        if off < _SCALED:
            return number
        for r in range(n):
            total = 0.0
            for j in range(n):
                P[r, j] /= columns[number, j]
                total += P[r, j]
            lines[number, r] = max(total, 1e-300)
            for j in range(n):
                P[r, j] /= lines[number, r]
    return MOST_SCALINGS


@njit(cache=True, nogil=True)
def _back_through_scaling(n, rounds, P, G, columns, lines, inner):  # type: ignore[no-untyped-def]
    """From derivatives by scaled entries to those by the entries before; P is undone on the way."""
    for number in range(rounds - 1, -1, -1):
        for j in range(n):
            inner[j] = 0.0
        for r in range(n):
            own = 0.0
            for j in range(n):
                own += G[r, j] * P[r, j]
            for j in range(n):
                G[r, j] = (G[r, j] - own) / lines[number, r]
                P[r, j] *= lines[number, r]
                inner[j] += G[r, j] * P[r, j]
        for r in range(n):
            for j in range(n):
                G[r, j] = (G[r, j] - inner[j]) / columns[number, j]
                P[r, j] *= columns[number, j]


@njit(cache=True, nogil=True)
def neural_block(first, end, indptr, rows, gain, ideal, depth, temperature, scale, scores, lambdas, losses):  # type: ignore[no-untyped-def]  # fmt: skip
    """λ and loss of NeuralNDCG; ``depth`` by list: how many ranks count."""
    longest = 1
    for q in range(first, end):
        longest = max(longest, indptr[q + 1] - indptr[q])
    s = np.empty(longest)
    pushed = np.empty(longest)
    P = np.empty((longest, longest))
    G = np.empty((longest, longest))
    columns = np.empty((MOST_SCALINGS, longest))
    lines = np.empty((MOST_SCALINGS, longest))
    inner_sums = np.empty(longest)
    for q in range(first, end):
        start = indptr[q]
        n = indptr[q + 1] - start
        for i in range(n):
            s[i] = scores[rows[start + i]]
            pushed[i] = 0.0
        _sorted_softly(n, s, temperature, P)
        rounds = _scaled(n, P, columns, lines)
        value = 0.0
        for r in range(n):
            discount = 1.0 / (np.log2(2.0 + r) * ideal[q]) if r < depth[q] else 0.0
            for j in range(n):
                G[r, j] = discount * gain[start + j]
                value += G[r, j] * P[r, j]
        _back_through_scaling(n, rounds, P, G, columns, lines, inner_sums)
        for r in range(n):
            inner = 0.0
            for j in range(n):
                inner += G[r, j] * P[r, j]
            for j in range(n):
                G[r, j] = P[r, j] * (G[r, j] - inner) / temperature
        for j in range(n):
            total = 0.0
            for r in range(n):
                total += G[r, j]
                pushed[j] += G[r, j] * (n - 1 - 2 * r)
            for k in range(n):
                side = np.sign(s[j] - s[k])
                pushed[j] -= total * side
                pushed[k] += total * side
        losses[q] = scale[q] * (1.0 - value)
        for i in range(n):
            lambdas[rows[start + i]] = scale[q] * pushed[i]

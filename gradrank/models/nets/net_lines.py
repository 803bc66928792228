"""Scores of a net whose weights move on a straight line, faster than scoring anew at every point.

The sums of the first layer are linear in the weights: they are computed once at the weights and once a direction, and
added for each distance. What comes after the first activation is computed for every point, a block of documents at a
time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gradrank.models.features import Matrix
from gradrank.models.nets.scaling import scaled_row
from gradrank.models.weight_vectors import along_lines, projections
from gradrank.runtime.kernels import njit

if TYPE_CHECKING:
    from gradrank.models.nets.net import NetRanker

FloatArray = NDArray[np.float64]
Layers = list[tuple[FloatArray, FloatArray]]

# First-layer sums computed side by side, so that vector instructions are full even for a net of few nodes.
_LANES = 64
# Numbers whose tanh is computed together: they stay in the first level of the cache.
_CHUNK = 1024

# exp(x) = 2^k · exp(r) with k = round(x / ln 2), |r| ≤ ln 2 / 2. Adding _ROUNDING to a number rounds it to a whole one,
# which then stands in the lowest bits.
_ROUNDING = 6755399441055744.0
_PER_LN2 = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
# From here on tanh is 1 in double precision.
_LARGEST = 40.0


def shifted_net_scores(
    net: NetRanker, X: Matrix, directions: FloatArray, distances: FloatArray
) -> Iterator[FloatArray]:
    """See WeightVector.shifted_scores."""
    inputs = np.empty(X.shape)
    _scale(X, net.scaling.mean, net.scaling.scale, net.scaling.log, inputs)
    sizes = (net.n_features, *net.hidden, 1)
    here = split_weights(np.append(net.weight_vector(), net.layers[-1][1]), sizes)
    start = projections(inputs, here[0][0]) + here[0][1][:, None]
    together = max(1, _LANES // sizes[1])
    for first in range(0, len(directions), together):
        # The output's bias does not move.
        moves = [split_weights(np.append(row, 0.0), sizes) for row in directions[first : first + together]]
        slopes = projections(inputs, np.concatenate([layers[0][0] for layers in moves]))
        slopes += np.concatenate([layers[0][1] for layers in moves])[:, None]
        if len(sizes) == 2:
            yield from along_lines(start[0], slopes, distances)
            continue
        for layers, slope in zip(moves, slopes.reshape(len(moves), *start.shape), strict=True):
            points = [_moved(here[1:], layers[1:], distance) for distance in distances.tolist()]
            yield np.array([
                _rest(start + distance * slope, point, net.activation == "tanh")
                for distance, point in zip(distances.tolist(), points, strict=True)
            ])  # fmt: skip


def split_weights(vector: FloatArray, sizes: Sequence[int]) -> Layers:
    """Weights in a row as matrices (outputs × inputs) and biases; ``sizes`` are the widths from input to output.

    >>> [(weight.tolist(), bias.tolist()) for weight, bias in split_weights(np.arange(5.0), [1, 2, 1])]
    Traceback (most recent call last):
        ...
    ValueError: there are 5 weights, expected 7
    >>> [(weight.tolist(), bias.tolist()) for weight, bias in split_weights(np.arange(7.0), [1, 2, 1])]
    [([[0.0], [1.0]], [2.0, 3.0]), ([[4.0, 5.0]], [6.0])]
    """
    expected = sum(n_out * (n_in + 1) for n_in, n_out in pairwise(sizes))
    if len(vector) != expected:
        raise ValueError(f"there are {len(vector)} weights, expected {expected}")
    layers: Layers = []
    at = 0
    for n_in, n_out in pairwise(sizes):
        middle, end = at + n_in * n_out, at + (n_in + 1) * n_out
        layers.append((vector[at:middle].reshape(n_out, n_in), vector[middle:end]))
        at = end
    return layers


def _moved(layers: Layers, moves: Layers, distance: float) -> Layers:
    return [
        (weight + distance * by, bias + distance * bias_by)
        for (weight, bias), (by, bias_by) in zip(layers, moves, strict=True)
    ]


def _rest(sums: FloatArray, layers: Layers, tanh: bool) -> FloatArray:
    """The net's output from the sums of its first hidden layer (nodes × documents), which are overwritten."""
    for weight, bias in layers:
        if tanh:
            tanh_of_all(sums.reshape(-1), np.empty(_CHUNK))
        else:
            np.maximum(sums, 0.0, out=sums)
        after = np.empty((len(bias), sums.shape[1]))
        _layer(sums, weight, bias, after)
        sums = after
    return np.asarray(sums[0])


@njit(cache=True, nogil=True)
def _scale(X: Any, mean: Any, scale: Any, log: Any, out: Any) -> None:
    for row in range(len(X)):
        scaled_row(X[row], mean, scale, log, out[row])


@njit(cache=True, nogil=True)
def _layer(inputs: Any, weight: Any, bias: Any, out: Any) -> None:
    for node in range(len(bias)):
        row = out[node]
        for document in range(len(row)):
            row[document] = bias[node]
        for i in range(len(inputs)):
            by = weight[node, i]
            below = inputs[i]
            for document in range(len(row)):
                row[document] += by * below[document]


@njit(cache=True, nogil=True)
def tanh_of_all(values: Any, work: Any) -> None:
    """Replace each number by its tanh, to 4e-16, in loops that vectorize: several times as fast as ``np.tanh``.

    tanh(x) = 1 − 2 / (exp(2x) + 1), exp by a Taylor series of degree 12 after the reduction above.
    """
    whole = work.view(np.int64)
    for first in range(0, len(values), len(work)):
        part = values[first : first + len(work)]
        bits = part.view(np.int64)
        for i in range(len(part)):
            x = 2.0 * min(max(part[i], -_LARGEST), _LARGEST)
            shifted = x * _PER_LN2 + _ROUNDING
            k = shifted - _ROUNDING
            r = (x - k * _LN2_HIGH) - k * _LN2_LOW
            power = 1.0 / 479001600.0
            power = power * r + 1.0 / 39916800.0
            power = power * r + 1.0 / 3628800.0
            power = power * r + 1.0 / 362880.0
            power = power * r + 1.0 / 40320.0
            power = power * r + 1.0 / 5040.0
            power = power * r + 1.0 / 720.0
            power = power * r + 1.0 / 120.0
            power = power * r + 1.0 / 24.0
            power = power * r + 1.0 / 6.0
            power = power * r + 0.5
            power = power * r + 1.0
            part[i] = power * r + 1.0
            work[i] = shifted
        for i in range(len(part)):
            bits[i] += whole[i] << 52  # times 2^k
        for i in range(len(part)):
            part[i] = 1.0 - 2.0 / (part[i] + 1.0)

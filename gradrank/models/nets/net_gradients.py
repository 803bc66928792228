"""Integrated gradients of a net: what each scaled feature adds on the straight line from one document to another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gradrank.models.attribution.attribution import Attribution, ByDocument, ByPair, Rows
from gradrank.models.attribution.straight_line import mean_slopes
from gradrank.models.features import Matrix
from gradrank.models.nets.net import Layer, NetRanker

_WAY = (
    "net: integrated gradients on the straight line between the two documents' scaled features; a missing value is the "
    "mean of its feature"
)
# Where tanh bends on the way, the line is cut until this many nodes do.
_NODES = {"tanh": 8, "relu": 1}


def integrated_gradients(net: NetRanker, X: Matrix) -> Attribution:
    """Shares of the features in differences of scores.

    The first layer is linear: only what comes behind it has a slope that changes on the line, so that lines are
    followed in the space of the first layer's nodes.

    >>> net = NetRanker([([[1.0, -1.0]], [0.0]), ([[2.0]], [0.1])], activation="relu")
    >>> shares = integrated_gradients(net, np.array([[3.0, 1.0], [0.0, 1.0]]))
    >>> shares.between(np.array([0]), np.array([1])).tolist()
    [[4.0, 0.0]]
    """
    scaled = net.scaling.exactly(X)
    (weight, bias), *rest = net.layers
    if not rest:
        return ByDocument(scaled * weight[0], ["net without hidden nodes: weight × difference of the scaled values"])
    entering = scaled @ weight.T + bias
    relu = net.activation == "relu"

    def behind(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return _forward_and_back(rest, points, relu)

    def shares(first: Rows, second: Rows) -> NDArray[np.float64]:
        start, end = entering[second], entering[first]
        cuts = _crossings(start, end) if relu else None
        slopes = mean_slopes(behind, start, end, nodes=_NODES[net.activation], cuts=cuts)
        return np.asarray((scaled[first] - scaled[second]) * (slopes @ weight) + 0.0)

    return ByPair(len(X), net.n_features, shares, [_WAY])


def _forward_and_back(
    layers: list[Layer], points: NDArray[np.float64], relu: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The score and its gradient by the sums that enter the first hidden nodes."""
    slopes: list[NDArray[np.float64]] = []
    here = points
    for weight, bias in layers:
        nodes = np.maximum(here, 0.0) if relu else np.tanh(here)
        slopes.append((here > 0.0).astype(np.float64) if relu else 1.0 - nodes * nodes)
        here = nodes @ weight.T + bias
    back = np.ones_like(here)
    for (weight, _), slope in zip(reversed(layers), reversed(slopes), strict=True):
        back = (back @ weight) * slope
    return here[:, 0], back


def _crossings(start: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where on the line each node's sum is 0, from 0 to 1; 0 where it never is."""
    crosses = (start > 0.0) != (end > 0.0)
    return np.divide(start, start - end, out=np.zeros_like(start), where=crosses)

"""Scoring nets: linear, with a hidden layer, or with several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradrank.data.ranking_data import default_feature_names
from gradrank.errors import ModelError
from gradrank.models.attribution.attribution import Attribution, Reference, only_other
from gradrank.models.exchange.plan import NetPart
from gradrank.models.features import Matrix
from gradrank.models.linear import LinearRanker
from gradrank.models.nets.scaling import Scaling, scaled_row
from gradrank.models.ranker import Ranker
from gradrank.models.weight_vectors import WeightVector
from gradrank.runtime.files import replacing
from gradrank.runtime.kernels import njit
from gradrank.runtime.threads import for_query_blocks

Layer = tuple[NDArray[np.float64], NDArray[np.float64]]

ACTIVATIONS = ("tanh", "relu")
SAFETENSORS_SUFFIX = ".safetensors"
_ROWS_PER_BLOCK = 1024


class NetRanker(WeightVector, Ranker):
    """A fully connected net over scaled features, with one output: the score.

    Scoring needs no PyTorch, and gives a document the same score whatever stands beside it. :meth:`save` writes JSON
    like every ranker, or safetensors if the file's name ends in ``.safetensors``.

    Parameters
    ----------
    layers
        Pairs of a weight matrix (outputs × inputs) and biases (one per output), from the input to the output.
    activation
        What stands between the layers: ``tanh`` or ``relu``.
    scaling
        How features are brought to one scale; not at all unless given.
    feature_names
        Names of the features; ``f1``, ``f2``, … unless given.
    training
        Facts about the training.

    >>> net = NetRanker([([[1.0, -1.0], [0.5, 0.5]], [0.0, 0.0]), ([[2.0, 1.0]], [0.1])], activation="relu")
    >>> net
    NetRanker(2 features, 2 hidden nodes)
    >>> net.predict([[3.0, 1.0], [0.0, 1.0]]).tolist()
    [6.1, 0.6]
    """

    kind = "net"

    def __init__(
        self,
        layers: Sequence[tuple[ArrayLike, ArrayLike]],
        *,
        activation: str = "tanh",
        scaling: Scaling | None = None,
        feature_names: Sequence[str] | None = None,
        training: Mapping[str, Any] | None = None,
    ) -> None:
        if activation not in ACTIVATIONS:
            raise ModelError(f"activation is {activation!r}, expected {' or '.join(ACTIVATIONS)}")
        self.layers = _checked_layers(layers)
        self.activation = activation
        n_features = self.layers[0][0].shape[1]
        super().__init__(default_feature_names(n_features) if feature_names is None else feature_names, training)
        if self.n_features != n_features:
            raise ModelError(f"the net takes {n_features} features, {self.n_features} are named")
        self.scaling = Scaling(np.zeros(n_features), np.ones(n_features)) if scaling is None else scaling
        if len(self.scaling.mean) != n_features:
            raise ModelError(f"scaling is for {len(self.scaling.mean)} features, the net takes {n_features}")

    @property
    def hidden(self) -> tuple[int, ...]:
        """Number of nodes of each hidden layer."""
        return tuple(len(bias) for _, bias in self.layers[:-1])

    def used_features(self) -> tuple[str, ...]:
        """Names of the features that enter the first layer: with a weight other than 0, and not constant."""
        enters = (self.layers[0][0] != 0).any(axis=0) & (self.scaling.scale > 0)
        return tuple(name for name, used in zip(self.feature_names, enters.tolist(), strict=True) if used)

    def shape(self) -> dict[str, int | str]:
        """Nodes of the hidden layers, and the activation."""
        return {"hidden": ",".join(map(str, self.hidden)) or "0", "activation": self.activation}

    def to_linear(self) -> LinearRanker:
        """The same ranker as a weighted sum of features, if it has no hidden layer."""
        if self.hidden or self.scaling.log:
            reason = "takes logarithms of features" if self.scaling.log else "has hidden nodes"
            raise ModelError(f"a net that {reason} is not a linear ranker")
        ((weights, bias),) = self.layers
        used = self.scaling.scale > 0
        return LinearRanker(
            np.where(used, weights[0], 0.0),
            float(bias[0]),
            mean=self.scaling.mean,
            scale=np.where(used, self.scaling.scale, 1.0),
            feature_names=self.feature_names,
            training=self.training,
        )

    def _score(self, X: Matrix, n_jobs: int | None) -> NDArray[np.float64]:
        sizes, weights = self._flat()
        out = np.empty(len(X), dtype=np.float64)
        edges = np.append(np.arange(0, len(X), _ROWS_PER_BLOCK), len(X))
        scaling = self.scaling

        def work(first: int, end: int) -> None:
            rows = slice(edges[first], edges[end])
            _forward(
                np.ascontiguousarray(X[rows]), scaling.mean, scaling.scale, scaling.log, sizes, weights,
                self.activation == "tanh", np.empty((2, sizes.max())), out[rows],
            )  # fmt: skip

        for_query_blocks(work, edges, n_jobs)
        return out

    def _flat(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Widths of all layers from input to output; weights input by input, then biases, layer by layer."""
        sizes = np.array([self.n_features, *(len(bias) for _, bias in self.layers)])
        return sizes, np.concatenate([part for weight, bias in self.layers for part in (weight.T.ravel(), bias)])

    # ------------------------------------------------------------------ weights that can be moved
    def weight_vector(self) -> NDArray[np.float64]:
        """All weights, layer by layer (matrix row by row, then biases), but for the output's bias, which moves all."""
        return np.concatenate([part for weight, bias in self.layers for part in (weight.ravel(), bias)])[:-1]

    def weight_names(self) -> tuple[str, ...]:
        """See WeightVector.weight_names."""
        names: list[str] = []
        inputs: Sequence[str] = self.feature_names
        for number, (_, bias) in enumerate(self.layers, 1):
            last = number == len(self.layers)
            nodes = ["output"] if last else [f"node {number}.{node}" for node in range(1, len(bias) + 1)]
            names += [f"{name} to {node}" for node in nodes for name in inputs]
            names += [] if last else [f"bias of {node}" for node in nodes]
            inputs = nodes
        return tuple(names)

    def with_weight_vector(self, weights: ArrayLike) -> NetRanker:
        """See WeightVector.with_weight_vector."""
        vector = np.append(np.asarray(weights, dtype=np.float64), self.layers[-1][1])
        expected = sum(weight.size + bias.size for weight, bias in self.layers)
        if vector.shape != (expected,):
            raise ModelError(f"there are {len(vector) - 1} weights, expected {expected - 1}")
        layers: list[tuple[ArrayLike, ArrayLike]] = []
        at = 0
        for weight, bias in self.layers:
            middle, end = at + weight.size, at + weight.size + bias.size
            layers.append((vector[at:middle].reshape(weight.shape), vector[middle:end]))
            at = end
        return NetRanker(
            layers,
            activation=self.activation,
            scaling=self.scaling,
            feature_names=self.feature_names,
            training=self.training,
        )

    def shifted_scores(
        self, X: Matrix, directions: NDArray[np.float64], distances: NDArray[np.float64]
    ) -> Iterator[NDArray[np.float64]]:
        """See WeightVector.shifted_scores."""
        from gradrank.models.nets.net_lines import shifted_net_scores

        return shifted_net_scores(self, X, directions, distances)

    def _attribution(self, X: Matrix, reference: Reference | None, n_jobs: int | None) -> Attribution:
        from gradrank.models.nets.net_gradients import integrated_gradients

        only_other(reference, "a net")
        return integrated_gradients(self, X)

    def _part(self, columns: NDArray[np.int64]) -> NetPart:
        scaling = self.scaling
        return NetPart(columns, scaling.mean, scaling.scale, scaling.log, self.layers, self.activation)

    # ------------------------------------------------------------------ files
    def save(self, path: str | Path) -> None:
        """Write one file, or nothing if it fails.

        Parameters
        ----------
        path
            The file: safetensors if its name ends in ``.safetensors``, else JSON.
        """
        if Path(path).suffix != SAFETENSORS_SUFFIX:
            super().save(path)
            return
        from gradrank.models.nets.tensor_file import tensor_bytes

        manifest = self.to_dict()
        manifest["payload"] = {"activation": self.activation, "layers": len(self.layers), "log": self.scaling.log}
        tensors = {"scaling.mean": self.scaling.mean, "scaling.scale": self.scaling.scale}
        for number, (weight, bias) in enumerate(self.layers):
            tensors[f"layers.{number}.weight"] = weight
            tensors[f"layers.{number}.bias"] = bias
        content = tensor_bytes(manifest, tensors)
        with replacing(path) as temporary:
            temporary.write_bytes(content)

    def _payload(self) -> dict[str, Any]:
        return {
            "activation": self.activation,
            "scaling": self.scaling.to_dict(),
            "layers": [{"weight": weight.tolist(), "bias": bias.tolist()} for weight, bias in self.layers],
        }

    @classmethod
    def _from_payload(
        cls, payload: Mapping[str, Any], feature_names: Sequence[str], training: Mapping[str, Any]
    ) -> Self:
        return cls(
            [(layer["weight"], layer["bias"]) for layer in payload["layers"]],
            activation=payload["activation"],
            scaling=Scaling.from_dict(payload["scaling"]),
            feature_names=feature_names,
            training=training,
        )

    def _described(self) -> str:
        return f"{self.n_features:,} features, {' + '.join(map(str, self.hidden)) or 'no'} hidden nodes"


def payload_of_tensors(payload: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """The payload of a net from what a safetensors file holds."""
    numbers = range(int(payload["layers"]))
    return {
        "activation": payload["activation"],
        "scaling": {"mean": tensors["scaling.mean"], "scale": tensors["scaling.scale"], "log": payload["log"]},
        "layers": [{part: tensors[f"layers.{n}.{part}"] for part in ("weight", "bias")} for n in numbers],
    }


def _checked_layers(layers: Sequence[tuple[ArrayLike, ArrayLike]]) -> tuple[Layer, ...]:
    checked: list[Layer] = []
    for number, (weight, bias) in enumerate(layers, 1):
        matrix, vector = np.array(weight, dtype=np.float64), np.array(bias, dtype=np.float64)
        if matrix.ndim != 2 or vector.shape != matrix.shape[:1] or not matrix.size:
            raise ModelError(f"layer {number} has weights of shape {matrix.shape} and biases of shape {vector.shape}")
        if checked and matrix.shape[1] != len(checked[-1][1]):
            raise ModelError(f"layer {number} takes {matrix.shape[1]} inputs, layer {number - 1} has other outputs")
        if not (np.isfinite(matrix).all() and np.isfinite(vector).all()):
            raise ModelError(f"layer {number} holds a weight that is not a finite number")
        checked.append((matrix, vector))
    if not checked or len(checked[-1][1]) != 1:
        raise ModelError("a scoring net has one output")
    return tuple(checked)


@njit(cache=True, nogil=True)
def _forward(X: Any, mean: Any, scale: Any, log: Any, sizes: Any, weights: Any, tanh: Any, rows: Any, out: Any) -> None:
    # Row by row and not by a product of a linear algebra library: equal documents get equal scores, to the last bit.
    last = len(sizes) - 2
    for row in range(len(X)):
        here, there = rows[0], rows[1]
        scaled_row(X[row], mean, scale, log, here)
        at = 0
        for layer in range(last + 1):
            n_in, n_out = sizes[layer], sizes[layer + 1]
            bias = at + n_in * n_out
            for j in range(n_out):
                there[j] = weights[bias + j]
            for i in range(n_in):
                value = here[i]
                for j in range(n_out):
                    there[j] += value * weights[at + i * n_out + j]
            if layer < last:
                for j in range(n_out):
                    there[j] = np.tanh(there[j]) if tanh else max(there[j], 0.0)
            at = bias + n_out
            here, there = there, here
        out[row] = here[0]

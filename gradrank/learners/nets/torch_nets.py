"""PyTorch's part: building nets, their weights, and one thread for reproducible sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gradrank.errors import TrainingError
from gradrank.learners.nets.settings import NetSettings
from gradrank.models.linear import LinearRanker
from gradrank.models.nets.module import one_thread
from gradrank.models.nets.net import NetRanker
from gradrank.models.nets.scaling import Scaling

Weights = dict[str, torch.Tensor]

# What randomness is for, so that no two uses draw the same numbers.
FOR_BATCHES, FOR_WEIGHTS, FOR_ORDER, FOR_DECAY, FOR_LAYERS = range(5)


def chance(random_state: int, purpose: int, number: int = 0) -> np.random.Generator:
    """Random numbers that depend on nothing that went before, so that a run can go on from any epoch."""
    return np.random.default_rng([random_state, purpose, number])


@contextmanager
def reproducible(random_state: int) -> Iterator[None]:
    """One thread of PyTorch, whose sums would else depend on the number of threads, and its random numbers seeded.

    Settings and random state of the process are restored afterwards.
    """
    with torch.random.fork_rng(devices=[]), one_thread():
        torch.manual_seed(random_state)
        yield


def device_of(name: str) -> torch.device:
    """The device of a name; ``auto`` is CUDA where there is one.

    >>> device_of("cpu").type
    'cpu'
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise TrainingError(f"device is {name!r}, expected auto, cpu or cuda") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise TrainingError("device is cuda, but PyTorch finds no CUDA here; auto takes what there is")
    return device


def build(n_features: int, settings: NetSettings) -> torch.nn.Module:
    """A fully connected net with one output."""
    layers: list[torch.nn.Module] = []
    width = n_features
    for nodes in settings.hidden:
        layers += [torch.nn.Linear(width, nodes), torch.nn.Tanh() if settings.activation == "tanh" else torch.nn.ReLU()]
        width = nodes
    return torch.nn.Sequential(*layers, torch.nn.Linear(width, 1))


def initialize(
    net: torch.nn.Module, settings: NetSettings, rng: np.random.Generator, constant: float | None = None
) -> None:
    """Random weights, uniform with Glorot's bound √(6/(inputs + outputs)) (He's √(6/inputs) for relu); biases 0.

    All weights are 0 where the cost has one minimum only: random scores would take long to wear off.
    ``constant`` is what the scores start from; None = the objective does not see a constant, so that it is not learned:
    its gradient is rounding, which Adam would take for a direction.
    """
    layers = linear_layers(net)
    for layer in layers:
        n_out, n_in = layer.weight.shape
        hidden_relu = settings.activation == "relu" and n_out > 1
        bound = 0.0 if settings.one_minimum else np.sqrt(6.0 / (n_in if hidden_relu else n_in + n_out))
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(rng.uniform(-bound, bound, size=(n_out, n_in)).astype(np.float32)))
            layer.bias.zero_()
    if constant is None:
        layers[-1].bias.requires_grad_(False)
    else:
        torch.nn.init.constant_(layers[-1].bias, constant)


def linear_layers(net: torch.nn.Module) -> list[Any]:
    """The layers of a net made by :func:`build` that hold weights."""
    return [layer for layer in net.children() if isinstance(layer, torch.nn.Linear)]


def copied(net: torch.nn.Module) -> Weights:
    """The net's weights as they are now."""
    return {name: value.detach().clone().cpu() for name, value in net.state_dict().items()}


def ranker_of(
    weights: Mapping[str, torch.Tensor],
    settings: NetSettings,
    scaling: Scaling,
    feature_names: tuple[str, ...],
    training: Mapping[str, Any] | None = None,
) -> NetRanker | LinearRanker:
    """The ranker of a net's weights; a net without hidden nodes is a linear ranker."""
    numbers = sorted({int(name.partition(".")[0]) for name in weights})
    layers = [(_array(weights[f"{number}.weight"]), _array(weights[f"{number}.bias"])) for number in numbers]
    net = NetRanker(
        layers, activation=settings.activation, scaling=scaling, feature_names=feature_names, training=training
    )
    return net.to_linear() if not net.hidden and not scaling.log else net


def _array(tensor: torch.Tensor) -> NDArray[np.float64]:
    return np.asarray(tensor.numpy(), dtype=np.float64)

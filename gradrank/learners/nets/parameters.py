"""Parameters of nets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from gradrank.learners.base.common_parameters import (
    CheckpointParameters,
    ChoosingParameters,
    CommonParameters,
    SeedParameters,
)
from gradrank.learners.base.parameters import parameter
from gradrank.learners.base.search import Options, Range, Steps

if TYPE_CHECKING:
    import torch

ACTIVATIONS = ("relu", "tanh")
OPTIMIZERS = ("adam", "sgd", "donmez")
SCALINGS = ("standard", "log", "none")


class NetParameters(ChoosingParameters, SeedParameters, CheckpointParameters, CommonParameters):
    """How a net is built and trained."""

    family: ClassVar[str] = "nets"

    hidden_layer_sizes: int | str | Sequence[int] = parameter(
        default=10, flags=("--hidden",), metavar="N",
        help="Nodes of the hidden layer (10 as in Donmez et al. 2009); 0 for a linear net, whose ranker is a "
        "LinearRanker; several layers as (64, 32) or '64,32'.",
        search=Options((10, 0, 32, 64, "64,32", "128,64")),
    )  # fmt: skip
    activation: str = parameter(
        default="relu", choices=ACTIVATIONS, metavar="NAME",
        help="Of the hidden nodes: relu, or tanh, with which scores are smooth functions of the weights.",
        search=Options(ACTIVATIONS),
    )  # fmt: skip
    scaling: str = parameter(
        default="standard", choices=SCALINGS, metavar="NAME",
        help="Of the features, learned from the training data and part of the ranker: standard (mean 0, deviation 1), "
        "log (the same of sign(x)·log(1 + |x|), for long tails) or none. A missing value counts as the mean.",
        search=Options(("standard", "log")),
    )  # fmt: skip
    module: torch.nn.Module | Callable[[int], torch.nn.Module] | None = parameter(
        default=None, command_line=False,
        help="A torch.nn.Module of your own that gives one number per row, or a function from the number of features "
        "to one; hidden_layer_sizes and activation are then not used.",
    )  # fmt: skip
    epochs: int | None = parameter(
        default=None, low=1, metavar="N", help="Most passes over the data; None is 100, and 700 with optimizer donmez.",
        search=Steps(200, patience=20),
    )  # fmt: skip
    learning_rate: float | None = parameter(
        default=None, above=0, flags=("--rate",), metavar="R",
        help="Length of the optimizer's steps; None is 0.01 for adam and 0.001 for sgd. With adam, a linear net and a "
        "convex cost it is halved after each epoch whose loss did not fall, until nothing moves any more.",
        search=Range(0.001, 0.1, log=True),
    )  # fmt: skip
    learning_rates: str | Sequence[float] | None = parameter(
        default=None, flags=("--rates",), metavar="R,R,…",
        help="Several learning rates, of which the validation data chooses.",
    )  # fmt: skip
    batch_size: int | Literal["full", "query"] = parameter(
        default=32, low=1, words=("full", "query"), flags=("--batch",), metavar="N",
        help="Queries per step of the optimizer, or full; which queries share a batch is drawn once, their order each "
        "epoch.",
        search=Range(4, 128, log=True),
    )  # fmt: skip
    optimizer: str = parameter(
        default="adam", choices=OPTIMIZERS, metavar="NAME",
        help="adam (AdamW); sgd; or donmez: SGD with the schedule of Donmez et al. 2009, rates 1e-7…1e-3 tried on the "
        "validation data, 700 epochs each, new random weights after 50 epochs without a new best, rate × 0.8 with "
        "probability 0.3 after an epoch in which the measure fell on the training data.",
    )  # fmt: skip
    weight_decay: float | None = parameter(
        default=None, low=0, metavar="R",
        help="Pulls weights towards 0: each step takes away learning_rate·weight_decay of them (adam), or adds "
        "weight_decay·w to the gradient. None is 0.1 for adam, else 0.",
        search=Range(0.001, 1.0, log=True),
    )  # fmt: skip
    restart: int | None = parameter(
        default=None, low=0, metavar="N",
        help="Start from new random weights after so many epochs without a new best since the last start; 0 never.",
    )  # fmt: skip
    positions: str | None = parameter(
        default=None, metavar="SOURCE",
        help="Label source that holds the position at which each document was shown; a term for each position is "
        "learned beside the net (a second tower) and left out of the model, so that clicks teach less of positions.",
    )  # fmt: skip
    position_dropout: float = parameter(
        default=0.0, low=0, high=0.9, metavar="P",
        help="Probability with which a document's position is left out in a step of training; the terms of positions "
        "then explain less of what a strong logging ranker has put on top.",
    )  # fmt: skip
    device: str = parameter(default="auto", metavar="NAME", help="auto (CUDA where there is one), cpu or cuda.")
    checkpoint_every: int = parameter(default=10)

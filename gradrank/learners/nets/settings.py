"""How a net is built and trained."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gradrank.errors import TrainingError
from gradrank.learners.nets.parameters import NetParameters
from gradrank.objectives import Objective

# Chosen among 0.001…0.03 with batches of 8…128 queries on MQ2007 and on artificial data; see the guide on nets.
DEFAULT_RATE = 0.01
DEFAULT_EPOCHS = 100
DEFAULT_WEIGHT_DECAY = 0.1

# Factor of the rate after an epoch whose loss did not fall, and the share of the first rate below which it is over:
# on MQ2007 the measure on the validation data does not change in its last digit then.
SETTLING, SETTLED = 0.5, 2.0**-15

DONMEZ_RATES = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
DONMEZ_EPOCHS, DONMEZ_RESTART = 700, 50
DONMEZ_DECAY, DONMEZ_CHANCE = 0.8, 0.3


@dataclass(frozen=True)
class NetSettings:
    """How a net is built and trained; :func:`net_settings` makes it from a learner's parameters."""

    hidden: tuple[int, ...]
    activation: str
    scaling: str
    epochs: int
    rates: tuple[float, ...]
    """Learning rates, tried one after another; validation data chooses."""
    batch_size: int | Literal["full"]
    """Queries per step of the optimizer."""
    optimizer: str
    weight_decay: float
    patience: int | None
    """Leave a rate after so many epochs without a new best."""
    restart: int | None
    """New random weights after so many epochs without a new best since the last start."""
    device: str
    random_state: int
    n_jobs: int | None
    train_measure: bool
    one_minimum: bool = False
    """The cost has no minimum but the lowest: there is no need for random weights to start from."""

    @property
    def settles(self) -> bool:
        """Whether the rate falls when the loss does not: at a steady rate the batches' noise keeps off the minimum."""
        return self.one_minimum and self.optimizer == "adam"

    @property
    def decays(self) -> bool:
        """Whether the rate falls, by chance, when the measure on the training data falls."""
        return self.optimizer == "donmez"


def net_settings(learner: NetParameters, objective: Objective) -> NetSettings:
    """The settings that a learner's parameters say, with what they leave open filled in."""
    donmez = learner.optimizer == "donmez"
    hidden = hidden_layers(learner.hidden_layer_sizes)
    restart = (DONMEZ_RESTART if donmez else None) if learner.restart is None else learner.restart or None
    linear = not hidden and learner.module is None
    decay = DEFAULT_WEIGHT_DECAY if learner.optimizer == "adam" else 0.0
    return NetSettings(
        hidden=hidden,
        activation=learner.activation,
        scaling=learner.scaling,
        epochs=learner.epochs or (DONMEZ_EPOCHS if donmez else DEFAULT_EPOCHS),
        rates=_rates(learner),
        batch_size=1 if learner.batch_size == "query" else learner.batch_size,
        optimizer=learner.optimizer,
        weight_decay=decay if learner.weight_decay is None else float(learner.weight_decay),
        patience=learner.early_stopping_rounds,
        restart=restart,
        device=learner.device,
        random_state=learner.random_state,
        n_jobs=learner.n_jobs,
        train_measure=learner.train_measure or donmez,
        one_minimum=linear and restart is None and objective.convex,
    )


def hidden_layers(hidden: int | str | Sequence[int]) -> tuple[int, ...]:
    """Nodes of each hidden layer, from a number, several, or text.

    >>> hidden_layers(10), hidden_layers(0), hidden_layers("64,32")
    ((10,), (), (64, 32))
    """
    if isinstance(hidden, str):
        parts: Sequence[Any] = hidden.split(",")
    else:
        parts = hidden if isinstance(hidden, Sequence) else [hidden]
    try:
        nodes = tuple(int(part) for part in parts)
        if any(isinstance(part, float) and part != int(part) for part in parts):
            raise ValueError
    except (TypeError, ValueError):
        nodes = (-1,)
    if nodes == (0,):
        return ()
    if any(count < 1 for count in nodes):
        raise TrainingError(
            f"hidden_layer_sizes is {hidden!r}, expected a number of nodes, 0 for a linear net, or several as 64,32"
        )
    return nodes


def spelt_hidden(hidden: tuple[int, ...]) -> int | str:
    """The shortest spelling of hidden layers.

    >>> spelt_hidden(()), spelt_hidden((10,)), spelt_hidden((64, 32))
    (0, 10, '64,32')
    """
    if not hidden:
        return 0
    return hidden[0] if len(hidden) == 1 else ",".join(map(str, hidden))


def _rates(learner: NetParameters) -> tuple[float, ...]:
    rate, rates = learner.learning_rate, learner.learning_rates
    if rates is None:
        defaults = {"adam": (DEFAULT_RATE,), "sgd": (1e-3,), "donmez": DONMEZ_RATES}
        return defaults[learner.optimizer] if rate is None else (float(rate),)
    if rate is not None:
        raise TrainingError("give learning_rate (one) or learning_rates (several to choose from), not both")
    try:
        found = tuple(float(value) for value in (rates.split(",") if isinstance(rates, str) else rates))
    except (TypeError, ValueError):
        found = ()
    if not found or not all(0.0 < value < math.inf for value in found):
        raise TrainingError(f"learning_rates is {rates!r}, expected positive numbers")
    return found

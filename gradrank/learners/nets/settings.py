"""How a net is built and trained."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gradrank.errors import TrainingError
from gradrank.models.nets.net import ACTIVATIONS

OPTIMISERS = ("adam", "sgd", "donmez")
SCALINGS = ("standard", "log", "none")

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
    batch: int | Literal["full"]
    """Queries a step."""
    optimizer: str
    weight_decay: float
    early_stopping: int | None
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


def net_settings(learner: Any) -> NetSettings:
    """The settings that a learner's parameters say, with what they leave open filled in."""
    optimizer = _one_of("optimizer", learner.optimizer, OPTIMISERS)
    donmez = optimizer == "donmez"
    hidden = hidden_layers(learner.hidden)
    restart = _restart(learner.restart, donmez)
    linear = not hidden and learner.module is None
    return NetSettings(
        hidden=hidden,
        activation=_one_of("activation", learner.activation, ACTIVATIONS),
        scaling=_one_of("scaling", learner.scaling, SCALINGS),
        epochs=_whole(
            "epochs", (DONMEZ_EPOCHS if donmez else DEFAULT_EPOCHS) if learner.epochs is None else learner.epochs
        ),
        rates=_rates(learner.rate, learner.rates, optimizer),
        batch=_batch(learner.batch),
        optimizer=optimizer,
        weight_decay=_weight_decay(learner.weight_decay, optimizer),
        early_stopping=None if learner.early_stopping is None else _whole("early_stopping", learner.early_stopping),
        restart=restart,
        device=str(learner.device),
        random_state=learner.random_state,
        n_jobs=learner.n_jobs,
        train_measure=bool(learner.train_measure) or donmez,
        one_minimum=linear and restart is None and learner._objective().convex,
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
            f"hidden is {hidden!r}, expected a number of nodes, 0 for a linear net, or several as 64,32"
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


def _rates(rate: float | None, rates: str | Sequence[float] | None, optimizer: str) -> tuple[float, ...]:
    if rates is not None:
        if rate is not None:
            raise TrainingError("give rate (one learning rate) or rates (several to choose from), not both")
        values: Sequence[Any] = rates.split(",") if isinstance(rates, str) else rates
    elif rate is not None:
        values = [rate]
    else:
        values = {"adam": [DEFAULT_RATE], "sgd": [1e-3], "donmez": DONMEZ_RATES}[optimizer]
    try:
        found = tuple(float(value) for value in values)
    except (TypeError, ValueError):
        found = ()
    if not found or not all(0.0 < value < math.inf for value in found):
        given = rate if rates is None else rates
        raise TrainingError(f"{'rate' if rates is None else 'rates'} is {given!r}, expected positive numbers")
    return found


def _batch(batch: int | str) -> int | Literal["full"]:
    if batch == "full":
        return "full"
    if batch == "query":
        return 1
    if not _is_whole(batch) or int(batch) < 1:
        raise TrainingError(f"batch is {batch!r}, expected a number of queries, query (one) or full")
    return int(batch)


def _restart(restart: int | None, donmez: bool) -> int | None:
    if restart is None:
        return DONMEZ_RESTART if donmez else None
    return None if restart == 0 else _whole("restart", restart)


def _weight_decay(value: float | None, optimizer: str) -> float:
    if value is None:
        return DEFAULT_WEIGHT_DECAY if optimizer == "adam" else 0.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < math.inf:
        raise TrainingError(f"weight_decay is {value!r}, expected a number of 0 or more")
    return float(value)


def _whole(name: str, value: int) -> int:
    if not _is_whole(value) or value < 1:
        raise TrainingError(f"{name} is {value!r}, expected a whole number of 1 or more")
    return int(value)


def _is_whole(value: object) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise TrainingError(f"{name} is {value!r}, expected {', '.join(choices[:-1])} or {choices[-1]}")
    return value

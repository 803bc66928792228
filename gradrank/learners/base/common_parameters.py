"""Parameters that several families of learners have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradrank.learners.base.parameters import Declared, parameter

if TYPE_CHECKING:
    from gradrank.measures import AnyMeasure, Measure
    from gradrank.objectives import Objective


class CommonParameters(Declared):
    """What every learner has."""

    n_jobs: int | None = parameter(
        default=None, help="Threads to use; None or −1 takes all cores. The model does not depend on it.",
        low=1, also=(-1,), flags=("--threads",), metavar="N",
    )  # fmt: skip
    callbacks: Sequence[Callable[[Any], None]] = parameter(
        default=(), command_line=False,
        help="Called with a Step after each step of the training; one that raises KeyboardInterrupt ends it with the "
        "best model so far.",
    )  # fmt: skip
    verbose: bool = parameter(
        default=False, command_line=False, help="Show progress: a bar in terminals and notebooks, else some lines."
    )


class ObjectiveParameters(Declared):
    """What learners have that follow an objective."""

    objective: str | Measure | Objective | None = parameter(
        default=None, kw_only=False, metavar="OBJECTIVE",
        help="What is learned: a goal such as 'NDCG@10' (the recommended λ's, over the whole list), 'Lambda(MAP, "
        "cost=sigmoid)' for one exact form, tiers, a schedule, or a Measure or Objective itself. NDCG@10 unless the "
        "learner has one of its own.",
    )  # fmt: skip
    measure: str | AnyMeasure | None = parameter(
        default=None, flags=("-m",), metavar="MEASURE",
        help="Chooses the model on validation data, and is what score() gives. Unless it is given, the objective's "
        "measure chooses, and score() gives NDCG@10 for every objective, so that a search over objectives compares "
        "like with like.",
    )  # fmt: skip


class ChoosingParameters(Declared):
    """What learners have whose validation data chooses the number of steps."""

    early_stopping_rounds: int | None = parameter(
        default=None, low=1, flags=("--early-stopping",), metavar="N",
        help="Stop after so many steps without a new best on the validation data; None makes them all, then chooses.",
    )  # fmt: skip


class CheckpointParameters(Declared):
    """What learners have that keep their state on disk."""

    train_measure: bool = parameter(default=False, help="Record the measure on the training data as well.")
    checkpoint: str | Path | None = parameter(
        default=None, command_line=False,
        help="File that keeps the state of the training; a run with the same settings and data goes on from there.",
    )  # fmt: skip
    checkpoint_every: int = parameter(
        default=50, low=1, command_line=False, help="Steps from one writing of the state to the next."
    )


class SeedParameters(Declared):
    """What learners have that draw random numbers."""

    random_state: int = parameter(
        default=0, low=0, flags=("--seed",), metavar="N", help="Seed of all randomness: the same seed, the same model."
    )

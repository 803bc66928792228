"""What came of a search for parameters: the best setting, all trials, and the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.evaluation.tables import Column, Table
from gradrank.measures import AnyMeasure
from gradrank.models.ranker import Ranker, plain
from gradrank.selection.space import Space
from gradrank.selection.trials import Cut, Trial


@dataclass(frozen=True, eq=False)
class Tuned:
    """The outcome of :func:`gradrank.tune`."""

    space: Space
    measure: AnyMeasure
    trials: tuple[Trial, ...]
    """All trials that came to an end, the learner's defaults first."""
    chosen: int
    """Number of the best trial."""
    importances: Mapping[str, float]
    """Share of each searched parameter in the variance of the value; empty if trials are too few."""
    cut: Cut
    pool: RankingData
    """The queries that are learned from."""
    seconds: float
    interrupted: bool
    fitted: Ranker | None = None

    @property
    def best(self) -> Trial:
        """The best trial by the measure, the first among equals."""
        return self.trials[self.chosen]

    @property
    def defaults(self) -> Trial:
        """The trial of the learner as it is without options."""
        return self.trials[0]

    @property
    def ranker(self) -> Ranker:
        """The model of all queries with the best parameters."""
        if self.fitted is None:
            raise TrainingError("the search was made without a final training (refit)")
        return self.fitted

    @property
    def best_params(self) -> dict[str, Any]:
        """Parameters that make a learner like the chosen one, number of steps included."""
        return self.parameters_of(self.best)

    def parameters_of(self, trial: Trial) -> dict[str, Any]:
        """A trial's parameters with the number of steps that its folds found."""
        name = self.space.kind.steps_parameter
        steps = {} if name is None or not trial.steps else {name: trial.steps, "early_stopping_rounds": None}
        return {**trial.parameters, **steps}

    def sentence(self) -> str:
        """The outcome in words, with what it is worth."""
        name, first = str(self.measure.parts[0]), self.defaults
        where = "on the validation data" if self.cut.apart is not None else f"over {self.cut.folds} folds"
        if self.best.defaults:
            return f"no setting is better than the defaults, whose {name} {where} is {first.value:.4f}"
        pairs = list(zip(self.best.folds, first.folds, strict=True))
        wins = sum(one > other for one, other in pairs)
        folds = f", higher in {wins} of {len(pairs)} folds" if len(pairs) > 1 else ""
        return (
            f"trial {self.best.number} has {name} {self.best.value:.4f} {where}, the defaults {first.value:.4f} "
            f"({self.best.value - first.value:+.4f}{folds}); as the best of {self._completed} it is likely to be less "
            "on new queries"
        )

    @property
    def _completed(self) -> int:
        return sum(trial.state == "complete" for trial in self.trials)

    def table(self) -> Table:
        """One row per trial: what became of it, and what was searched."""
        parts = [str(part) for part in self.measure.parts]
        columns = [Column("trial", "count"), Column("outcome"), *(Column(part, "number") for part in parts)]
        columns += [Column("steps", "count"), Column("seconds", "number"), *map(Column, self.space.searched)]
        rows = []
        for trial in self.trials:
            outcome = "chosen" if trial.number == self.chosen else trial.state
            values = [*trial.values, *[None] * len(parts)][: len(parts)]
            cells: list[Any] = [trial.number, f"{outcome} (defaults)" if trial.defaults else outcome, *values]
            cells += [trial.steps or None, trial.seconds]
            rows.append((*cells, *(_shown(trial.parameters.get(name, "")) for name in self.space.searched)))
        return Table(tuple(columns), tuple(rows))

    def facts(self) -> dict[str, Any]:
        """What the model keeps of the search."""
        states = [trial.state for trial in self.trials]
        found: dict[str, Any] = plain({
            "measure": str(self.measure),
            "folds": self.cut.folds,
            "valid_apart": self.cut.apart is not None,
            "trials": {state: states.count(state) for state in ("complete", "pruned", "failed")},
            "value": self.best.values,
            "defaults": self.defaults.values,
            "steps": self.best.steps,
            "search": {name: str(where) for name, where in self.space.searched.items()},
            "importances": dict(self.importances),
            "seconds": round(self.seconds, 3),
            "interrupted": self.interrupted,
        })  # fmt: skip
        return found

    def to_dict(self) -> dict[str, Any]:
        """Everything but the model, as plain Python values."""
        return {
            **self.facts(),
            "algorithm": self.space.algorithm,
            "best": self.best.number,
            "best_params": self.best_params,
            "trial": [{name: value for name, value in trial.to_dict().items() if name != "rises"}
                      for trial in self.trials],
        }  # fmt: skip

    def best_so_far(self) -> list[float]:
        """The highest value of the first measure after each trial.

        Trials that were not completed leave it as it was.
        """
        values = [trial.value if trial.state == "complete" else np.nan for trial in self.trials]
        return [float(value) for value in np.fmax.accumulate(values)]


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)

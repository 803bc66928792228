"""The measures that are watched on data sets after each step; they choose the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.crew import ALONE, Crew
from gradrank.measures import AnyMeasure, bind_measures, bound_values, single_measures

TRAINING = ""
"""Key of the training scores; no data set that a user names has it."""

Curves = dict[str, dict[str, list[float]]]
"""Data set → measure → its value after each step."""


class Monitor:
    """Measures recorded on data sets; the first measure on the first validation set chooses the model.

    Parameters
    ----------
    sets
        The watched data sets by name.
    measures
        What is recorded; a graded measure as its parts.
    first
        The set that chooses the model; None = nothing is chosen.
    n_jobs
        Threads to use.
    crew
        The processes that train together: each watches its own queries, and the means are over all of them.
    """

    def __init__(
        self,
        sets: Mapping[str, RankingData],
        measures: Sequence[AnyMeasure],
        *,
        first: str | None,
        n_jobs: int | None = None,
        crew: Crew = ALONE,
    ) -> None:
        unique = single_measures(measures)
        self._names = [str(measure) for measure in unique]
        self._bound = {name: bind_measures(unique, data, n_jobs=n_jobs) for name, data in sets.items()}
        self._first = first
        self._decider = measures[0] if measures else None
        self._crew = crew
        self.decides = first is not None and bool(measures)

    @classmethod
    def of_sets(
        cls,
        sets: Mapping[str, RankingData],
        valid: Mapping[str, RankingData],
        measure: AnyMeasure,
        *,
        n_jobs: int | None = None,
        crew: Crew = ALONE,
    ) -> Monitor:
        """A measure on data sets, the first validation set of which chooses the model."""
        return cls(sets, [measure], first=next(iter(valid), None), n_jobs=n_jobs, crew=crew)

    def empty_curves(self) -> Curves:
        """A record with nothing in it yet."""
        return {name: {measure: [] for measure in self._names} for name in self._bound}

    def record(self, curves: Curves, scores: Mapping[str, NDArray[np.float64]]) -> dict[str, dict[str, float]]:
        """Add the values of the current scores to the record; returns them."""
        now: dict[str, dict[str, float]] = {
            name: {
                str(measure): self._crew.mean(values) for measure, values in bound_values(bound, scores[name]).items()
            }
            for name, bound in self._bound.items()
        }
        for name, values in now.items():
            for measure, value in values.items():
                curves[name][measure].append(value)
        return now

    def best(self, curves: Curves, since: int = 0) -> int:
        """Number of steps of the best model in the record, looking only at those after ``since``."""
        if not self.decides:
            return 0
        assert self._first is not None
        assert self._decider is not None
        columns = np.array([curves[self._first][str(part)][since:] for part in self._decider.parts])
        if np.isnan(columns).all():
            raise TrainingError(f"{self._decider} has no value on the validation data: no query is judged")
        return self._decider.best(columns.T) + 1


def watched_sets(train: RankingData, valid: Mapping[str, RankingData], train_measure: bool) -> dict[str, RankingData]:
    """The data sets whose measures are recorded."""
    return {"train": train, **valid} if train_measure else dict(valid)

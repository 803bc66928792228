"""Systems' values per query and measure, their means, and what the reader must know of the data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradrank.data.label_facts import LabelFacts, label_facts
from gradrank.data.ranking_data import RankingData
from gradrank.data.strings import Strings
from gradrank.errors import DataError
from gradrank.evaluation.significance import standard_error, t_interval
from gradrank.evaluation.tables import Column, Table
from gradrank.measures import AnyMeasure, Measure, bind_measures, bound_values, single_measures


@runtime_checkable
class Scorer(Protocol):
    """Anything that scores the documents of ranking data, one number each."""

    def predict(self, data: RankingData, /) -> ArrayLike:
        """Scores of all documents, in the order in which they were given."""


@dataclass(frozen=True)
class Summary:
    """Mean of one system's values of one measure over queries."""

    mean: float
    """Mean over the evaluated queries; NaN if there is none."""
    queries: int
    """Evaluated queries: those the measure's convention does not leave out."""
    standard_error: float
    """Standard error of the mean; NaN below two queries."""
    low: float
    """Lower end of the 95 % interval of the mean, by Student's t."""
    high: float
    """Upper end of that interval."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Values per query of some systems by some measures."""

    qids: Strings
    """Query ids, in the order of the values."""
    measures: tuple[Measure, ...]
    values: Mapping[str, Mapping[Measure, NDArray[np.float64]]]
    """By system and measure one value a query; NaN = left out (no judged document, or by convention)."""
    facts: Mapping[str, LabelFacts]
    """Facts of each label source the measures used."""
    weights: NDArray[np.float64] | None = None
    """Query weights, if means are weighted."""

    @property
    def systems(self) -> tuple[str, ...]:
        """Names of the systems, in the order given."""
        return tuple(self.values)

    def summary(self, system: str, measure: Measure) -> Summary:
        """Mean, standard error and interval of a system by a measure; left-out queries do not count."""
        values = self.values[system][measure]
        kept = ~np.isnan(values)
        weights = None
        if self.weights is not None:
            kept &= self.weights > 0
            weights = self.weights[kept]
        values = values[kept]
        if len(values) == 0:
            return Summary(np.nan, 0, np.nan, np.nan, np.nan)
        mean, error = float(np.average(values, weights=weights)), standard_error(values, weights)
        return Summary(mean, len(values), error, *t_interval(mean, error, len(values)))

    def means(self) -> dict[str, dict[str, float]]:
        """Means by system and measure name."""
        return {
            system: {str(measure): self.summary(system, measure).mean for measure in self.measures}
            for system in self.systems
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything but the per-query values, as plain Python values."""
        return {
            "queries": len(self.qids),
            "weighted": self.weights is not None,
            "labels": {source: asdict(facts) for source, facts in self.facts.items()},
            "systems": {
                system: {str(measure): asdict(self.summary(system, measure)) for measure in self.measures}
                for system in self.systems
            },
        }

    def table(self) -> Table:
        """One row a system, one column a measure, ± half the 95 % interval."""
        numbers = [Column(str(measure), "mean") for measure in self.measures]
        rows = []
        for system in self.systems:
            summaries = [self.summary(system, measure) for measure in self.measures]
            rows.append((system, *((summary.mean, summary.high - summary.mean) for summary in summaries)))
        queries = "1 query" if len(self.qids) == 1 else f"{len(self.qids):,} queries"
        title = f"{queries}, mean ± half of its 95 % interval"
        return Table((Column("system"), *numbers), tuple(rows), title)

    def per_query_table(self) -> Table:
        """One row a query and system, one column a measure."""
        columns = (Column("system"), Column("qid"), *(Column(str(measure), "number") for measure in self.measures))
        rows = (
            (system, qid, *row)
            for system in self.systems
            for qid, *row in zip(
                self.qids, *(self.values[system][measure].tolist() for measure in self.measures), strict=True
            )
        )
        return Table(columns, tuple(rows))

    def write_per_query(self, path: str | Path) -> None:
        """Write the values per query as CSV: columns ``system``, ``qid``, one a measure; empty = left out."""
        self.per_query_table().write_csv(path)

    def notes(self) -> list[str]:
        """What a reader of the means must know of the data, one sentence each."""
        notes = []
        for source, facts in self.facts.items():
            if said := facts.sentences():
                notes.append(f"label {source!r}: of {facts.queries:,} queries {', '.join(said)}")
        system = next(iter(self.values))
        for measure in self.measures:
            left_out = int(np.isnan(self.values[system][measure]).sum())
            if left_out:
                notes.append(f"{measure} leaves out {left_out:,} of {len(self.qids):,} queries")
        return notes


def evaluate(
    data: RankingData,
    systems: Mapping[str, ArrayLike | Scorer],
    measures: Iterable[AnyMeasure],
    *,
    weighted: bool = False,
    n_jobs: int | None = None,
) -> Evaluation:
    """Evaluate systems — score columns in the order in which the rows were given, or rankers — by measures.

    A score of −inf says that the document was not retrieved. A graded measure is reported as its parts.
    With ``weighted`` the data's query weights enter all means.

    >>> from gradrank.measures import parse_measure
    >>> data = RankingData.from_arrays(np.zeros((4, 1)), [0, 1, 1, 0], qid=["a", "a", "b", "b"])
    >>> result = evaluate(data, {"one": [1, 2, 1, 2]}, [parse_measure("MRR")])
    >>> result.means()["one"]
    {'MRR': 0.75}
    """
    columns = _columns(measures)
    if not systems:
        raise DataError("there is no system to evaluate")
    if weighted and data.weight is None:
        raise DataError("weighted means were asked for, but this data has no query weights")
    bound = bind_measures(columns, data, n_jobs=n_jobs)
    values = {name: bound_values(bound, _scores(name, system, data)) for name, system in systems.items()}
    sources = dict.fromkeys(measure.source for measure in columns)
    facts = {source or data.label_names[0]: label_facts(data, source) for source in sources}
    return Evaluation(data.qid, columns, values, facts, data.weight if weighted else None)


def _columns(measures: Iterable[AnyMeasure]) -> tuple[Measure, ...]:
    """Every measure once, graded ones as their parts."""
    parts = single_measures(measures)
    if not parts:
        raise DataError("there is no measure to evaluate by")
    return parts


def _scores(name: str, system: ArrayLike | Scorer, data: RankingData) -> NDArray[np.float64]:
    given = system.predict(data) if isinstance(system, Scorer) else system
    try:
        scores = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"scores of {name!r} hold something that is not a number") from None
    if scores.shape != (data.n_docs,):
        raise DataError(
            f"scores of {name!r} have shape {scores.shape}, expected one number for each of {data.n_docs} documents"
        )
    bad = np.isnan(scores) | (scores == np.inf)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise DataError(
            f"score of {name!r} for document {row + 1} is {scores[row]}, "
            "expected a number (-inf for a document that was not retrieved)"
        )
    return data.from_input_order(scores)

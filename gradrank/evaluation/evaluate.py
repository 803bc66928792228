"""Systems' values per query and measure, their means, and what the reader must know of the data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.doubts import cut_doubts
from gradrank.data.label_facts import LabelFacts, label_facts
from gradrank.data.strings import Strings
from gradrank.errors import DataError, DoubtfulDataWarning
from gradrank.evaluation.significance import standard_error, t_interval
from gradrank.evaluation.tables import Column, Table
from gradrank.measures import DEFAULT_MEASURES, AnyMeasure, Measure, as_measures, bind_measures, bound_values
from gradrank.models.display.markup import notes_html
from gradrank.models.systems import Data, Documents, System, named_systems, scores_of
from gradrank.runtime.warn import warn


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


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Values per query of some systems by some measures, as :func:`~gradrank.evaluate` gives them.

    >>> from gradrank import RankingData, evaluate
    >>> data = RankingData.from_arrays([[3.0], [1.0], [2.0], [4.0]], [0, 1, 1, 0], qid=["a", "a", "b", "b"])
    >>> result = evaluate(data, {"old": [2, 1, 2, 1], "new": [1, 2, 2, 1]}, ["MRR", "NDCG@1"])
    >>> result
    Evaluation: 2 queries, mean ± half of its 95 % interval
    | system | MRR | NDCG@1 |
    |---|--:|--:|
    | old | 0.7500 ± 3.1766 | 0.5000 ± 6.3531 |
    | new | 1.0000 ± 0.0000 | 1.0000 ± 0.0000 |
    >>> result.values["old"][result.measures[0]].tolist()
    [0.5, 1.0]
    """

    qids: Strings
    """Query ids, in the order of the values."""
    measures: tuple[Measure, ...]
    values: Mapping[str, Mapping[Measure, NDArray[np.float64]]]
    """By system and measure one value per query; NaN = left out (no judged document, or by convention)."""
    facts: Mapping[str, LabelFacts]
    """Facts of each label source the measures used."""
    weights: NDArray[np.float64] | None = None
    """Query weights, if means are weighted."""
    remarks: tuple[str, ...] = ()
    """What else a reader of the means must know, one sentence each."""

    @property
    def systems(self) -> tuple[str, ...]:
        """Names of the systems, in the order given."""
        return tuple(self.values)

    def summary(self, system: str, measure: Measure) -> Summary:
        """Mean, standard error and interval of a system by a measure; left-out queries do not count.

        Parameters
        ----------
        system
            Name of the system.
        measure
            One of ``measures``.
        """
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
        """One row per system, one column per measure, ± half the 95 % interval."""
        numbers = [Column(str(measure), "mean") for measure in self.measures]
        rows = []
        for system in self.systems:
            summaries = [self.summary(system, measure) for measure in self.measures]
            rows.append((system, *((summary.mean, summary.high - summary.mean) for summary in summaries)))
        queries = "1 query" if len(self.qids) == 1 else f"{len(self.qids):,} queries"
        title = f"{queries}, mean ± half of its 95 % interval"
        return Table((Column("system"), *numbers), tuple(rows), title)

    def per_query_table(self) -> Table:
        """One row per query and system, one column per measure."""
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
        """Write the values per query as CSV.

        Parameters
        ----------
        path
            The file, with columns ``system``, ``qid`` and one per measure; empty = left out.
        """
        self.per_query_table().write_csv(path)

    def best_systems(self) -> dict[Measure, set[str]]:
        """For each measure the systems with the highest mean; none if no query has a value."""
        found: dict[Measure, set[str]] = {}
        for measure in self.measures:
            means = {system: self.summary(system, measure).mean for system in self.systems}
            highest = np.fmax.reduce(list(means.values()))
            found[measure] = {system for system, mean in means.items() if mean == highest}
        return found

    def __repr__(self) -> str:
        table = self.table()
        return f"Evaluation: {table.title}\n{replace(table, title=None).to_markdown()}".rstrip()

    def _repr_html_(self) -> str:
        best = self.best_systems() if len(self.systems) > 1 else {}
        cells = {
            (row, column)
            for column, measure in enumerate(self.measures, 1)
            for row, system in enumerate(self.systems)
            if system in best.get(measure, ())
        }
        return self.table().to_html(cells) + notes_html(self.notes())

    def notes(self) -> list[str]:
        """What a reader of the means must know of the data, one sentence each."""
        notes = list(self.remarks)
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
    data: Data,
    systems: Mapping[str, System] | System,
    measures: AnyMeasure | str | Iterable[AnyMeasure | str] = DEFAULT_MEASURES,
    *,
    weighted: bool = False,
    n_jobs: int | None = None,
) -> Evaluation:
    """Evaluate systems by ranking measures, query by query.

    Parameters
    ----------
    data
        RankingData, a pandas or polars frame, or the path of a data file; also TREC qrels, if all systems are runs.
    systems
        The systems by name, or one alone. A system is a fitted learner, a ranker, a fitted model of LightGBM, XGBoost
        or scikit-learn, or anything else with ``predict``; a column of scores in the order in which the rows were given
        (−inf for a document that was not retrieved); the path of a file with a model, with one score per line, or with
        a TREC run; or a function that makes scores from RankingData.
    measures
        One or several measures, or their names. A graded measure is reported as its parts.
    weighted
        Whether the data's query weights enter all means.
    n_jobs
        Threads to use; all cores by default.

    Returns
    -------
    Evaluation
        Values per query by system and measure; means, tables and what to know about the data.

    >>> from gradrank import RankingData
    >>> data = RankingData.from_arrays([[3.0], [1.0], [2.0], [4.0]], [0, 1, 1, 0], qid=["a", "a", "b", "b"])
    >>> result = evaluate(data, {"by feature": data.X[:, 0], "by hand": [1, 2, 2, 1]}, ["MRR", "NDCG@1"])
    >>> result.means()
    {'by feature': {'MRR': 0.5, 'NDCG@1': 0.0}, 'by hand': {'MRR': 1.0, 'NDCG@1': 1.0}}
    """
    columns = as_measures(measures)
    if not columns:
        raise DataError("there is no measure to evaluate by")
    named = named_systems(systems)
    documents = Documents.of(data, named)
    held = documents.data
    if weighted and held.weight is None:
        raise DataError("weighted means were asked for, but this data has no query weights")
    bound = bind_measures(columns, held, n_jobs=n_jobs)
    values = {
        name: bound_values(bound, scores_of(system, documents, name=name, n_jobs=n_jobs))
        for name, system in named.items()
    }
    sources = dict.fromkeys(measure.source for measure in columns)
    facts = {source or held.label_names[0]: label_facts(held, source) for source in sources}
    doubts = [
        doubt
        for name, system in named.items()
        for doubt in cut_doubts(getattr(system, "seen_queries_", None), held, f"the data, for system {name!r},")
    ]
    for doubt in doubts:
        warn(doubt, DoubtfulDataWarning)
    remarks = (*documents.notes, *doubts)
    return Evaluation(held.qid, columns, values, facts, held.weight if weighted else None, remarks)

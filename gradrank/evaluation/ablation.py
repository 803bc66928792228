"""What a measure loses when one feature is made to tell nothing, with an interval over the queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError
from gradrank.evaluation.significance import PairedTest, holm, t_test
from gradrank.evaluation.tables import Column, Table
from gradrank.measures import AnyMeasure, Measure, as_measures, bind_measures, bound_values, mean_value
from gradrank.models.features import Matrix
from gradrank.models.ranker import Ranker
from gradrank.models.systems import Data, Documents, System, as_ranker

# Numbers copied at once when a column is replaced: 64 MB.
_NUMBERS_PER_BLOCK = 1 << 24


@dataclass(frozen=True, eq=False, repr=False)
class Ablation:
    """What the mean of a measure loses without each of some features."""

    features: tuple[str, ...]
    measure: Measure
    neutral: Literal["shuffled", "missing"]
    baseline: float
    """Mean of the measure with all features."""
    losses: NDArray[np.float64]
    """Value of each query minus its value without the feature, features × queries; NaN where it has none."""
    tests: tuple[PairedTest, ...]
    """Each feature's mean loss with its interval: paired t over the queries."""
    p_corrected: tuple[float, ...]
    """The p-values, by Holm's correction for the number of features."""
    n_queries: int
    """Queries that were used."""

    def table(self) -> Table:
        """One row per feature, the largest loss first."""
        columns = (
            Column("feature"),
            Column(f"loss of {self.measure}", "signed"),
            Column("95 % interval", "interval"),
            Column("p", "p"),
        )
        rows = [
            (name, test.difference, (test.low, test.high), p)
            for name, test, p in zip(self.features, self.tests, self.p_corrected, strict=True)
        ]
        how = "shuffled within each query" if self.neutral == "shuffled" else "set missing"
        title = f"{self.measure} is {self.baseline:.4f} over {self.n_queries:,} queries; loss when a feature is {how}"
        return Table(columns, tuple(sorted(rows, key=lambda row: -_or_least(row[1]))), title)

    def __repr__(self) -> str:
        table = self.table()
        return f"Ablation: {table.title}\n{replace(table, title=None).to_markdown()}".rstrip()

    def _repr_html_(self) -> str:
        return self.table().to_html()


def ablate(
    ranker: System,
    data: Data,
    measure: AnyMeasure | str = "NDCG@10",
    *,
    features: Sequence[str] | None = None,
    neutral: Literal["shuffled", "missing"] = "shuffled",
    repeats: int = 5,
    max_queries: int | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> Ablation:
    """Make one feature at a time tell nothing and measure again, query by query.

    A feature is shuffled among the documents of each query, so that each query keeps its values but they no longer
    say which document they belong to; or it is missing everywhere, and the ranker does what it does then. What is lost
    is what the ranker, as it is, gets from the feature; one trained without it may lose less.

    Parameters
    ----------
    ranker
        A ranker, a fitted learner or model of another package, or the path of a model file.
    data
        RankingData, a pandas or polars frame, or the path of a data file.
    measure
        The measure, or its name; the first part of a graded one.
    features
        Names of the features to try; all that the ranker uses unless given.
    neutral
        ``"shuffled"`` within each query, or ``"missing"``.
    repeats
        Shuffles per feature, over which each query's loss is averaged.
    max_queries
        If there are more queries, so many are drawn at random.
    random_state
        Seed of the draw and of the shuffles.
    n_jobs
        Threads to use; all cores by default.

    >>> from gradrank import LinearRanker, RankingData
    >>> data = RankingData.from_arrays([[1, 5], [2, 5]] * 9, [0, 1] * 9, group=[2] * 9)
    >>> found = ablate(LinearRanker([1.0, 1.0]), data, "MRR", random_state=3)
    >>> found.baseline, found.tests[0].difference > 0.1, found.tests[1].difference
    (1.0, True, 0.0)
    """
    if repeats < 1:
        raise DataError(f"repeats is {repeats}, expected 1 or more")
    if neutral not in ("shuffled", "missing"):
        raise DataError(f"neutral is {neutral!r}, expected 'shuffled' or 'missing'")
    documents = Documents.of(data)
    ranker, chosen = as_ranker(ranker, documents), as_measures(measure)[0]
    names = ranker.used_features() if features is None else tuple(features)
    strangers = [name for name in names if name not in ranker.feature_names]
    if strangers:
        raise DataError(f"the ranker has no feature {strangers[0]!r}")
    held, matrix = _drawn(documents.data, documents.matrix(ranker), max_queries, random_state)
    bound = bind_measures([chosen], held, n_jobs=n_jobs)
    whole = bound_values(bound, ranker.predict(matrix, n_jobs=n_jobs))[chosen]
    baseline = mean_value(whole)
    if np.isnan(baseline):
        raise DataError(f"{chosen} has no value on this data: no query is judged")
    losses = np.zeros((len(names), held.n_queries))
    used = set(ranker.used_features())
    for number, name in enumerate(names):
        if name not in used:
            losses[number] = np.where(np.isnan(whole), nan, 0.0)
            continue
        place = ranker.feature_names.index(name)
        for repeat in range(1 if neutral == "missing" else repeats):
            column = np.full(len(matrix), nan, dtype=matrix.dtype)
            if neutral == "shuffled":
                rng = np.random.default_rng([random_state, place, repeat])
                column = matrix[_shuffled_within(held, rng), place]
            values = bound_values(bound, _scores_with(ranker, matrix, place, column, n_jobs))[chosen]
            losses[number] += (whole - values) / (1 if neutral == "missing" else repeats)
    tests = tuple(t_test(loss, np.where(np.isnan(loss), nan, 0.0)) for loss in losses)
    corrected = tuple(holm([test.p for test in tests]).tolist())
    return Ablation(names, chosen, neutral, baseline, losses, tests, corrected, held.n_queries)


def _drawn(data: RankingData, matrix: Matrix, most: int | None, random_state: int) -> tuple[RankingData, Matrix]:
    """Data and features of all queries, or of so many that are drawn."""
    # The ranker's features stand in for the data's own, so that both are drawn together.
    whole = replace(data, X=matrix, feature_names=tuple(map(str, range(matrix.shape[1]))))
    if most is None or data.n_queries <= most:
        return whole, matrix
    queries = np.sort(np.random.default_rng(random_state).choice(data.n_queries, most, replace=False))
    part = whole.take_queries(queries)
    return part, part.X


def _shuffled_within(data: RankingData, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows in a random order within each query."""
    return np.lexsort((rng.random(data.n_docs), data.query_of_row()))


def _scores_with(
    ranker: Ranker, matrix: Matrix, place: int, column: NDArray[np.floating], n_jobs: int | None
) -> NDArray[np.float64]:
    """Scores with another column in the place of a feature; a block of rows is copied at a time."""
    scores = np.empty(len(matrix))
    rows = max(1, _NUMBERS_PER_BLOCK // max(1, ranker.n_features))
    for start in range(0, len(matrix), rows):
        here = slice(start, start + rows)
        block = np.array(matrix[here])
        block[:, place] = column[here]
        scores[here] = ranker.predict(block, n_jobs=n_jobs)
    return scores


def _or_least(value: float) -> float:
    return -np.inf if np.isnan(value) else value

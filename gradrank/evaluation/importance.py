"""Importance of features by what is lost without them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import DataError
from gradrank.evaluation.significance import standard_error
from gradrank.evaluation.tables import Column, Table
from gradrank.measures import AnyMeasure, Measure, as_measures, bind_measures, bound_values, mean_value
from gradrank.models.systems import Data, Documents, System, as_ranker

# Numbers copied at once when a column is replaced: 64 MB.
_NUMBERS_PER_BLOCK = 1 << 24


@dataclass(frozen=True, eq=False, repr=False)
class PermutationImportance:
    """What the mean of a measure loses when one feature's values are shuffled among all documents."""

    feature_names: tuple[str, ...]
    measure: Measure
    baseline: float
    """Mean of the measure with nothing shuffled."""
    drops: NDArray[np.float64]
    """Baseline − mean with the feature shuffled, features × repeats."""

    def table(self) -> Table:
        """One row per feature, the largest drop first."""
        columns = (Column("feature"), Column(f"drop of {self.measure}", "signed"), Column("standard error", "number"))
        rows = zip(self.feature_names, self.mean.tolist(), self.standard_error.tolist(), strict=True)
        title = f"{self.measure} is {self.baseline:.4f}; drop when a feature is shuffled, mean of {self.drops.shape[1]}"
        return Table(columns, tuple(sorted(rows, key=lambda row: -row[1])), title)

    def __repr__(self) -> str:
        table = self.table()
        return f"PermutationImportance: {table.title}\n{replace(table, title=None).to_markdown()}".rstrip()

    def _repr_html_(self) -> str:
        return self.table().to_html()

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean drop of each feature."""
        return np.asarray(self.drops.mean(axis=1))

    @property
    def standard_error(self) -> NDArray[np.float64]:
        """Standard error of each mean over the shuffles; NaN for a single one."""
        return np.array([standard_error(drops) for drops in self.drops])


def permutation_importance(
    ranker: System,
    data: Data,
    measure: AnyMeasure | str = "NDCG@10",
    *,
    repeats: int = 5,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> PermutationImportance:
    """Shuffle one feature at a time and measure again (Breiman 2001, with a ranking measure for the error rate).

    The data is not changed and may be a memory map: one column is held in memory, and a block of rows at a time.
    Features that the ranker cannot use drop by 0.

    Parameters
    ----------
    ranker
        A ranker, a fitted learner or model of another package, or the path of a model file.
    data
        RankingData, a pandas or polars frame, or the path of a data file.
    measure
        The measure, or its name; the first part of a graded one.
    repeats
        Shuffles per feature.
    random_state
        Seed: every feature and repeat has its own shuffle.
    n_jobs
        Threads to use; all cores by default.

    >>> from gradrank import LinearRanker, RankingData
    >>> data = RankingData.from_arrays([[1, 5], [2, 5], [1, 5], [2, 5]], [0, 1, 0, 1], qid=[1, 1, 2, 2])
    >>> found = permutation_importance(LinearRanker([1.0, 1.0]), data, "MRR", random_state=3)
    >>> found.baseline, bool(found.mean[0] > 0), float(found.mean[1])
    (1.0, True, 0.0)
    """
    if repeats < 1:
        raise DataError(f"repeats is {repeats}, expected 1 or more")
    documents = Documents.of(data)
    ranker, chosen = as_ranker(ranker, documents), as_measures(measure)[0]
    matrix = documents.matrix(ranker)
    bound = bind_measures([chosen], documents.data, n_jobs=n_jobs)
    baseline = mean_value(bound_values(bound, ranker.predict(matrix, n_jobs=n_jobs))[chosen])
    if np.isnan(baseline):
        raise DataError(f"{chosen} has no value on this data: no query is judged")
    used = set(ranker.used_features())
    drops = np.zeros((ranker.n_features, repeats))
    rows = max(1, _NUMBERS_PER_BLOCK // max(1, ranker.n_features))
    shuffled = np.empty((repeats, len(matrix)), dtype=matrix.dtype)
    scores = np.empty((repeats, len(matrix)))
    for feature, name in enumerate(ranker.feature_names):
        if name not in used:
            continue
        for repeat in range(repeats):
            rng = np.random.default_rng([random_state, feature, repeat])
            shuffled[repeat] = rng.permutation(np.array(matrix[:, feature]))
        for start in range(0, len(matrix), rows):
            here = slice(start, start + rows)
            block = np.array(matrix[here])
            for repeat in range(repeats):
                block[:, feature] = shuffled[repeat, here]
                scores[repeat, here] = ranker.predict(block, n_jobs=n_jobs)
        for repeat in range(repeats):
            drops[feature, repeat] = baseline - mean_value(bound_values(bound, scores[repeat])[chosen])
    return PermutationImportance(ranker.feature_names, chosen, baseline, drops)

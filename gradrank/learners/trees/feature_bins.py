"""Features cut into bins of our own, one byte per value, for trees that LightGBM does not grow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData, check_features
from gradrank.learners.base.crew import ALONE, Crew
from gradrank.learners.trees.binning import in_file
from gradrank.ranking import random_numbers
from gradrank.runtime.kernels import njit
from gradrank.runtime.memory import is_mapped
from gradrank.runtime.threads import for_query_blocks

# Thresholds are made from so many documents at most, and from about so many values.
_SAMPLED_ROWS, _FEWEST_ROWS = 200_000, 10_000
_SAMPLED_VALUES = 20_000_000
_SAMPLE_SEED = 0
MOST_BINS = 255
"""Of a feature; one more byte value is left for what is missing."""
MISSING_BIN = 0
# Of features that lie in a file, for each thread.
_BLOCK_BYTES = 1 << 22


@dataclass(frozen=True)
class FeatureBins:
    """Bins of all documents, and the thresholds between them.

    Value x of a feature is in bin 1 + (number of thresholds below x), a missing one in bin 0: all bins up to b + 1 are
    what a split at threshold b sends to the left, missing values among them.
    """

    bins: NDArray[np.uint8]
    """A row per feature, a column per document."""
    thresholds: tuple[NDArray[np.float64], ...]
    """Of each feature, rising."""

    @property
    def ranges(self) -> NDArray[np.uint8]:
        """The lowest and the highest bin of each feature that a document is in; with no document 255 and 0."""
        if not self.bins.shape[1]:
            return np.array([[255], [0]], dtype=np.uint8).repeat(len(self.bins), axis=1)
        return np.stack([self.bins.min(axis=1), self.bins.max(axis=1)])

    def like(self, data: RankingData, *, n_jobs: int | None = None) -> FeatureBins:
        """Bins of other documents between the same thresholds.

        Parameters
        ----------
        data
            The documents.
        n_jobs
            Threads.
        """
        return FeatureBins(_binned(data, self.thresholds, n_jobs), self.thresholds)

    @classmethod
    def of(
        cls,
        data: RankingData,
        most: int,
        *,
        random_state: int = 0,
        n_jobs: int | None = None,
        crew: Crew = ALONE,
    ) -> FeatureBins:
        """Cut the features of all documents.

        Parameters
        ----------
        data
            The documents.
        most
            Most bins of a feature.
        random_state
            Seed of the documents that the thresholds are made from.
        n_jobs
            Threads; the bins do not depend on it.
        crew
            The processes that train together: they have the same thresholds.

        >>> made = FeatureBins.of(RankingData.from_arrays([[1.0], [3.0], [np.nan], [2.0]], qid=[1, 1, 1, 1]), 255)
        >>> made.bins.tolist(), [each.tolist() for each in made.thresholds]
        ([[1, 3, 0, 2]], [[1.5, 2.5]])
        """
        sample = _sample(data, random_state, crew)
        thresholds = tuple(cut_points(sample[:, column], most) for column in range(data.n_features))
        del sample
        return cls(_binned(data, thresholds, n_jobs), thresholds)


def _binned(data: RankingData, thresholds: tuple[NDArray[np.float64], ...], n_jobs: int | None) -> NDArray[np.uint8]:
    X = data.X
    starts = np.concatenate([[0], np.cumsum([len(each) for each in thresholds])]).astype(np.int64)
    joined = np.concatenate([*thresholds, np.empty(0)])
    bins = np.empty((X.shape[1], len(X)), dtype=np.uint8)
    edges = np.append(np.arange(0, len(X), _rows_per_block(X)), len(X))

    def work(first: int, end: int) -> None:
        for block in range(first, end):
            begin, stop = int(edges[block]), int(edges[block + 1])
            values: NDArray[Any] = np.ascontiguousarray(X[begin:stop])
            if is_mapped(X):
                check_features(values, begin)  # nobody has looked at them when the file was opened
            _fill(values, joined, starts, bins[:, begin:stop])

    for_query_blocks(work, edges, n_jobs)
    return bins


def _sample(data: RankingData, random_state: int, crew: Crew) -> NDArray[Any]:
    """Features of the documents that thresholds are made from, the same in all processes, in any order."""
    total = crew.count(data.n_docs)
    most = min(_SAMPLED_ROWS, max(_FEWEST_ROWS, _SAMPLED_VALUES // max(1, data.n_features)))
    if crew.shared:
        # Queries' ids choose, so that the sample does not depend on where they are.
        assert data.keys is not None
        rows = np.flatnonzero(random_numbers(data.indptr, _SAMPLE_SEED, data.keys) < most / total)
        return np.concatenate(crew.gather(np.asarray(data.X[rows])))
    rng = np.random.default_rng([random_state, 0])
    rows = np.arange(total) if total <= most else np.sort(rng.choice(total, most, replace=False))
    if not is_mapped(data.X):
        return data.X if total <= most else np.asarray(data.X[rows])
    # A file for a file: columns of the first would be read by going through all of it for each.
    columns = in_file((data.n_features, len(rows)), data.X.dtype)
    step = _rows_per_block(data.X)
    for first in range(0, len(rows), step):
        columns[:, first : first + step] = data.X[rows[first : first + step]].T
    return columns.T


def _rows_per_block(X: NDArray[Any]) -> int:
    row_bytes: int = X.itemsize * X.shape[1]
    return max(1, _BLOCK_BYTES // max(1, row_bytes))


def cut_points(values: NDArray[Any], most: int) -> NDArray[np.float64]:
    """Thresholds that cut values into bins: between all neighbors, or about equally many values in each bin.

    Parameters
    ----------
    values
        Some of a feature's values; NaN is missing.
    most
        Most bins.

    >>> cut_points(np.array([5.0, 1.0, np.nan, 1.0, 2.0]), 255).tolist()
    [1.5, 3.5]
    >>> cut_points(np.arange(1000.0), 4).tolist()
    [249.5, 499.5, 749.5]
    """
    found, counts = np.unique(values[~np.isnan(values)].astype(np.float64), return_counts=True)
    if len(found) < 2:
        return np.empty(0)
    last = np.arange(len(found) - 1)
    if len(found) > most:
        # The last value of each bin: where the running share passes that of the bin.
        upto = np.cumsum(counts)
        wanted = upto[-1] * np.arange(1, most) / most
        last = np.unique(np.minimum(np.searchsorted(upto, wanted), len(found) - 2))
    low, high = found[last], found[last + 1]
    middle = low / 2 + high / 2
    # Halves of denormal numbers vanish, and between neighbors there is nothing.
    return np.where((middle > low) & (middle < high), middle, low)


@njit(cache=True, nogil=True, plain=True)
def _fill(values, joined, starts, bins):  # type: ignore[no-untyped-def]
    """The bin of each value."""
    for column in range(values.shape[1]):
        begin, end = starts[column], starts[column + 1]
        for row in range(values.shape[0]):
            value = np.float64(values[row, column])
            if np.isnan(value):
                bins[column, row] = MISSING_BIN
                continue
            low, high = begin, end
            while low < high:
                middle = (low + high) // 2
                if value > joined[middle]:
                    low = middle + 1
                else:
                    high = middle
            bins[column, row] = low - begin + 1

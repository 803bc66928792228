"""How the mean score moves with one feature, all others being as they are (Friedman 2001)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import DataError
from gradrank.evaluation.tables import Column, Table
from gradrank.models.systems import Data, Documents, System, as_ranker

_DOCUMENTS = 500
_VALUES = 24


@dataclass(frozen=True, eq=False)
class Dependence:
    """The mean score over a sample of documents for each of some values of a feature."""

    feature: str
    values: NDArray[np.float64]
    """Quantiles of the feature's values, ascending; all of them if they are few."""
    means: NDArray[np.float64]
    """Mean score when every document of the sample has the value."""
    missing: float | None
    """Mean score when it is missing everywhere; None if no document lacks it."""


@dataclass(frozen=True, eq=False, repr=False)
class PartialDependence:
    """Dependences of a ranker's mean score on single features."""

    dependences: tuple[Dependence, ...]
    n_docs: int
    """Documents in the sample."""

    def table(self) -> Table:
        """One row per feature and value."""
        rows: list[tuple[str, float | None, float]] = [
            (item.feature, float(value), float(mean))
            for item in self.dependences
            for value, mean in zip(item.values, item.means, strict=True)
        ]
        rows += [(item.feature, None, item.missing) for item in self.dependences if item.missing is not None]
        columns = (Column("feature"), Column("value", "number"), Column("mean score", "number"))
        return Table(columns, tuple(rows), f"mean score of {self.n_docs:,} documents by the value of a feature")

    def __repr__(self) -> str:
        spans = ", ".join(f"{item.feature} {np.ptp(item.means):.4g}" for item in self.dependences)
        return f"PartialDependence({self.n_docs:,} documents; the mean score spans: {spans})"

    def _repr_html_(self) -> str:
        return self.table().to_html()


def partial_dependence(
    ranker: System,
    data: Data,
    features: Sequence[str] | None = None,
    *,
    n_values: int = _VALUES,
    max_docs: int = _DOCUMENTS,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> PartialDependence:
    """The mean score over documents as a function of one feature at a time.

    Every document of a sample is scored with each of some values in the place of its own. Where features go together,
    such mixtures may be documents that do not exist.

    Parameters
    ----------
    ranker
        A ranker, a fitted learner or model of another package, or the path of a model file.
    data
        RankingData, a pandas or polars frame, or the path of a data file.
    features
        Names of the features; all that the ranker uses unless given.
    n_values
        How many values of a feature to try at most: quantiles between its 1st and 99th percentile.
    max_docs
        Documents to draw for the mean, if there are more.
    random_state
        Seed of the draw.
    n_jobs
        Threads to use; all cores by default.

    >>> from gradrank import LinearRanker, RankingData
    >>> data = RankingData.from_arrays([[1, 5], [2, 7], [4, 9]], qid=[1, 1, 1])
    >>> found = partial_dependence(LinearRanker([2.0, 1.0]), data, ["f1"]).dependences[0]
    >>> found.values.tolist(), found.means.tolist()
    ([1.0, 2.0, 4.0], [9.0, 11.0, 15.0])
    """
    if n_values < 2 or max_docs < 1:
        raise DataError(f"n_values is {n_values} and max_docs {max_docs}, expected at least 2 and 1")
    documents = Documents.of(data)
    ranker = as_ranker(ranker, documents)
    names = ranker.used_features() if features is None else tuple(features)
    strangers = [name for name in names if name not in ranker.feature_names]
    if strangers:
        raise DataError(f"the ranker has no feature {strangers[0]!r}")
    matrix = documents.matrix(ranker)
    rows = np.arange(len(matrix))
    if len(rows) > max_docs:
        rows = np.sort(np.random.default_rng(random_state).choice(len(matrix), max_docs, replace=False))
    sample = np.array(matrix[rows])
    found = []
    for name in names:
        place = ranker.feature_names.index(name)
        column = np.asarray(matrix[:, place])
        lacking = bool(np.isnan(column).any())
        values = _tried(column[~np.isnan(column)], n_values)
        stacked = np.repeat(sample[None], len(values) + lacking, axis=0)
        stacked[: len(values), :, place] = values[:, None]
        stacked[len(values) :, :, place] = np.nan
        scores = ranker.predict(stacked.reshape(-1, sample.shape[1]), n_jobs=n_jobs)
        means = scores.reshape(len(stacked), -1).mean(axis=1)
        found.append(
            Dependence(name, values.astype(np.float64), means[: len(values)], float(means[-1]) if lacking else None)
        )
    return PartialDependence(tuple(found), len(rows))


def _tried(known: NDArray[np.floating], most: int) -> NDArray[np.floating]:
    """All values if they are few, else quantiles, without the outermost percent."""
    values = np.unique(known)
    if len(values) <= most:
        return values
    # Values that there are, so that a feature of whole numbers stays one.
    return np.unique(np.quantile(known, np.linspace(0.01, 0.99, most), method="nearest"))

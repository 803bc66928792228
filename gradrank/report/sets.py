"""What the report shows of the data sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gradrank.data.ranking_data import RankingData
from gradrank.evaluation import label_facts

_MOST_GRADES = 12


@dataclass(frozen=True)
class DataSet:
    """One data set in numbers."""

    name: str
    queries: int
    documents: int
    features: int
    documents_per_query: str
    no_relevant: int
    unjudged: int
    grades: tuple[tuple[str, float], ...]
    """Each grade with its share of the judged documents; empty if there are too many to list."""


def data_sets(data: Mapping[str, RankingData]) -> list[DataSet]:
    """Size and labels of each data set, by its first label source.

    >>> data = RankingData.from_arrays(np.zeros((4, 1)), [0, 2, 0, 0], qid=["a", "a", "a", "b"])
    >>> test, = data_sets({"test": data})
    >>> test.documents_per_query, test.no_relevant, test.grades
    ('1 to 3, median 2', 1, (('0', 0.75), ('2', 0.25)))
    """
    return [_data_set(name, held) for name, held in data.items()]


def _data_set(name: str, data: RankingData) -> DataSet:
    sizes = data.sizes
    low, high = int(sizes.min()), int(sizes.max())
    spread = f"{low:,}" if low == high else f"{low:,} to {high:,}, median {np.median(sizes):,.6g}"
    labels = data.label() if data.label_names else np.full(data.n_docs, np.nan, dtype=np.float32)
    judged = labels[~np.isnan(labels)]
    values, counts = np.unique(judged, return_counts=True)
    grades = tuple((f"{value:g}", float(count / len(judged))) for value, count in zip(values, counts, strict=True))
    return DataSet(
        name,
        data.n_queries,
        data.n_docs,
        data.n_features,
        spread,
        label_facts(data).no_relevant if data.label_names else data.n_queries,
        len(labels) - len(judged),
        grades if len(grades) <= _MOST_GRADES else (),
    )

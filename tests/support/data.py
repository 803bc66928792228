"""Made-up ranking data, and comparing it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gradrank.data import RankingData
from gradrank.measures import Measure


def judged_lists(
    random_state: int,
    sources: Mapping[str, ArrayLike],
    *,
    queries: int = 10,
    longest: int = 11,
    missing: float = 0.0,
    weighted: bool = False,
    barren: str | None = None,
) -> tuple[RankingData, np.ndarray]:
    """Lists of 1 to ``longest`` judged documents without features, and random scores.

    ``sources`` gives each label source the values that its labels are drawn from; a share ``missing`` of them
    is unjudged. In every fifth list all labels of the source ``barren`` are 0.
    """
    rng = np.random.default_rng(random_state)
    sizes = rng.integers(1, longest + 1, queries)
    n = int(sizes.sum())
    columns = {name: rng.choice(np.asarray(values, dtype=np.float32), n) for name, values in sources.items()}
    if barren is not None:
        columns[barren][np.repeat(np.arange(queries) % 5 == 2, sizes)] = 0
    for column in columns.values():
        column[rng.random(n) < missing] = np.nan
    weight = rng.uniform(0.5, 2.0, queries) if weighted else None
    data = RankingData.from_arrays(np.zeros((n, 1)), columns, group=sizes, weight=weight)
    return data, rng.normal(size=n)


def lists_for(m: Measure, random_state: int, **options: Any) -> tuple[RankingData, np.ndarray]:
    """:func:`judged_lists` with labels of five levels in the range and under the name that a measure reads."""
    source = m.label or m.default_source or "label"
    levels = np.arange(5) / (4 if m.name == "CNDCG" else 1)
    return judged_lists(random_state, {source: levels}, barren=source, **options)


TRUE_WEIGHTS = (1.0, -0.8, 0.6, 0.0, 0.0, 0.0)
"""What the features of :func:`known_truth` are worth; no single one says all, the last three say nothing."""


def known_truth(random_state: int, queries: int = 60, docs: int = 12) -> RankingData:
    """Documents of six features whose grades 0 to 3 are cut from a weighted sum of three of them, plus noise."""
    rng = np.random.default_rng(random_state)
    X = rng.normal(size=(queries * docs, len(TRUE_WEIGHTS))).astype(np.float32)
    relevance = X @ np.array(TRUE_WEIGHTS) + 0.5 * rng.normal(size=len(X))
    return RankingData.from_arrays(X, np.searchsorted([0.3, 1.2, 2.2], relevance), group=np.full(queries, docs))


def assert_same(data: RankingData, expected: RankingData, *, rows: bool = False) -> None:
    """The same values, without any tolerance; with ``rows`` also rows from the same places of a file."""
    assert data.X.shape == expected.X.shape
    assert data.X.dtype == expected.X.dtype
    assert data.X.flags.c_contiguous
    np.testing.assert_array_equal(data.X, expected.X)
    assert data.indptr.tolist() == expected.indptr.tolist()
    assert data.label_names == expected.label_names
    for name in expected.labels:
        np.testing.assert_array_equal(data.labels[name], expected.labels[name])
    assert list(data.qid) == list(expected.qid)
    assert _listed(data.docid) == _listed(expected.docid)
    assert _listed(data.weight) == _listed(expected.weight)
    assert _listed(data.document_weight) == _listed(expected.document_weight)
    assert data.feature_names == expected.feature_names
    if rows:
        assert _listed(data.rows) == _listed(expected.rows)


def _listed(values: object) -> list[object] | None:
    return None if values is None else list(values)  # type: ignore[call-overload]

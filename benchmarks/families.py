"""Artificial data of other makes than ``make_data``'s polynomials, so that no default is fitted to one kind of truth.

Every maker takes queries, documents per query (the mean; lists are uneven), features and a seed, and gives five grades
or two, with noise. What is made in each:

``crossed``  a strong feature, a product of two that show nothing alone, and much noise (the rest of the features is
             noise; a third of them has few values)
``steps``    a sum of random decision rules, each about three features
``rare``     two grades, one to three relevant documents in a list; features are skewed, half of their values are 0, and
             their scale depends on the query
``straight`` a weighted sum of all features, the weights falling off, with features that go by the query
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gradrank.data import RankingData

Floats = NDArray[np.float64]
GRADES = (0.5, 0.75, 0.9, 0.97)


def _sizes(queries: int, docs: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return np.clip(rng.gamma(4.0, docs / 4.0, queries), 2, 10 * docs).astype(np.int64)


def _graded(relevance: Floats) -> NDArray[np.int64]:
    return np.searchsorted(np.quantile(relevance, GRADES), relevance)


def crossed(queries: int, docs: int, features: int, seed: int) -> RankingData:
    """One feature counts alone, two only together."""
    rng = np.random.default_rng(seed)
    sizes = _sizes(queries, docs, rng)
    X = rng.standard_normal((sizes.sum(), features))
    X[:, : features // 3] = np.round(X[:, : features // 3])
    relevance = X[:, -1] + 0.5 * X[:, -2] * X[:, -3] + rng.standard_normal(len(X))
    return RankingData.from_arrays(X, _graded(relevance), group=sizes)


def steps(queries: int, docs: int, features: int, seed: int) -> RankingData:
    """Rules: a bonus for documents of which three features are above or below their thresholds."""
    rules, rng = np.random.default_rng(9), np.random.default_rng(seed)  # the same truth for every part of a set
    sizes = _sizes(queries, docs, rng)
    X = rng.standard_normal((sizes.sum(), features))
    relevance = np.zeros(len(X))
    for _ in range(30):
        chosen, thresholds = rules.integers(features, size=3), 0.7 * rules.standard_normal(3)
        relevance += rules.standard_normal() * np.all((X[:, chosen] > thresholds) == rules.integers(2, size=3), axis=1)
    relevance += 0.7 * relevance.std() * rng.standard_normal(len(X))
    return RankingData.from_arrays(X, _graded(relevance), group=sizes)


def rare(queries: int, docs: int, features: int, seed: int) -> RankingData:
    """Few relevant documents, features as counts and frequencies are."""
    truth, rng = np.random.default_rng(9), np.random.default_rng(seed)
    sizes = _sizes(queries, docs, rng)
    query = np.repeat(np.arange(queries), sizes)
    X = rng.exponential(1.0, (sizes.sum(), features)) * (rng.random((sizes.sum(), features)) < 0.5)
    weights = truth.standard_normal(features) / np.arange(1, features + 1)
    relevance = np.log1p(X) @ weights + 0.5 * np.sqrt(X[:, 0] * X[:, 1]) + rng.gumbel(0.0, 0.5, len(X))
    X *= np.exp(0.5 * rng.standard_normal((queries, features)))[query]
    wanted = rng.integers(1, 4, queries)
    order = np.lexsort((-relevance, query))
    place = np.empty(len(X), dtype=np.int64)
    place[order] = np.arange(len(X)) - np.repeat(np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
    return RankingData.from_arrays(X, (place < wanted[query]).astype(np.int64), group=sizes)


def straight(queries: int, docs: int, features: int, seed: int) -> RankingData:
    """A linear truth; a fifth of the features says something of the query only."""
    truth, rng = np.random.default_rng(9), np.random.default_rng(seed)
    sizes = _sizes(queries, docs, rng)
    query = np.repeat(np.arange(queries), sizes)
    X = rng.standard_normal((sizes.sum(), features))
    X[:, : features // 5] = rng.standard_normal((queries, features // 5))[query]
    weights = truth.standard_normal(features) / np.sqrt(np.arange(1, features + 1))
    signal = X @ weights
    return RankingData.from_arrays(X, _graded(signal + 0.7 * signal.std() * rng.standard_normal(len(X))), group=sizes)


FAMILIES: dict[str, Callable[[int, int, int, int], RankingData]] = {
    "crossed": crossed, "steps": steps, "rare": rare, "straight": straight,
}  # fmt: skip


def family_splits(name: str, queries: int, docs: int, features: int, seed: int) -> dict[str, RankingData]:
    """Training data, half as many queries to choose by, and enough to judge.

    >>> {part: data.n_queries for part, data in family_splits("rare", 20, 10, 5, 1).items()}
    {'train': 20, 'vali': 10, 'test': 1000}
    """
    make = FAMILIES[name]
    counts = {"train": queries, "vali": max(queries // 2, 10), "test": 1000}
    return {part: make(count, docs, features, 10 * seed + n) for n, (part, count) in enumerate(counts.items())}

"""Cutting data by query: folds, shares, samples, LETOR's rotation of five parts; and joining it again.

Queries are never cut: all documents of a query go to the same side. Chosen queries keep their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gradrank.data.interpret import takes_frames
from gradrank.data.ranking_data import RankingData
from gradrank.data.strings import Strings
from gradrank.errors import DataError


@takes_frames("data")
def k_folds(data: RankingData, k: int, random_state: int = 0) -> Iterator[tuple[RankingData, RankingData]]:
    """Yield ``k`` pairs (train, test); each query is in exactly one test set.

    Test sets differ by at most one query in size. Each pair is made when it is asked for.

    Parameters
    ----------
    data
        The data to cut.
    k
        Number of folds.
    random_state
        Seed of the random choice.

    Examples
    --------
    >>> data = RankingData.from_arrays([[1.0], [2.0], [3.0], [4.0]], qid=["a", "b", "c", "d"])
    >>> [(train.n_queries, test.n_queries) for train, test in k_folds(data, 3, random_state=1)]
    [(2, 2), (3, 1), (3, 1)]
    """
    check_folds("k", k, data.n_queries)
    shuffled = np.random.default_rng(random_state).permutation(data.n_queries)
    return _folds(data, [np.sort(part) for part in np.array_split(shuffled, k)])


def check_folds(name: str, folds: int, n_queries: int) -> None:
    """Refuse a number of folds, given as an argument of some name, that these queries cannot be cut into.

    >>> check_folds("folds", 4, 3)
    Traceback (most recent call last):
        ...
    gradrank.errors.DataError: folds is 4, expected 2 to 3, the number of queries to learn from
    >>> check_folds("folds", 4, 1)
    Traceback (most recent call last):
        ...
    gradrank.errors.DataError: there is one query to learn from, expected two or more: folds are parts of the queries
    """
    if n_queries == 1:
        raise DataError("there is one query to learn from, expected two or more: folds are parts of the queries")
    if not 2 <= folds <= n_queries:
        raise DataError(f"{name} is {folds!r}, expected 2 to {n_queries}, the number of queries to learn from")


def _folds(data: RankingData, parts: list[np.ndarray]) -> Iterator[tuple[RankingData, RankingData]]:
    # Apart from k_folds, so that a wrong k is an error there and not at the first fold.
    for part in parts:
        test = np.zeros(data.n_queries, dtype=bool)
        test[part] = True
        yield data.take_queries(~test), data.take_queries(test)


@takes_frames("data")
def split_queries(data: RankingData, fractions: Sequence[float], random_state: int = 0) -> tuple[RankingData, ...]:
    """Cut the queries at random into parts of the given fractions.

    Parameters
    ----------
    data
        The data to cut.
    fractions
        Share of the queries in each part. If they add up to 1 every query is in one part; to less, some are left out.
    random_state
        Seed of the random choice.

    Examples
    --------
    >>> data = RankingData.from_arrays([[1.0], [2.0], [3.0], [4.0]], qid=["a", "b", "c", "d"])
    >>> [part.n_queries for part in split_queries(data, [0.5, 0.25, 0.25], random_state=1)]
    [2, 1, 1]
    """
    shares = np.asarray(fractions, dtype=np.float64)
    if shares.ndim != 1 or len(shares) == 0 or not (shares > 0).all() or shares.sum() > 1 + 1e-9:
        raise DataError(f"fractions are {list(fractions)}, expected numbers above 0 that add up to at most 1")
    # Rounding the running sum, not each share, makes the sizes add up.
    cuts = np.rint(np.minimum(np.cumsum(shares), 1.0) * data.n_queries).astype(np.int64)
    shuffled = np.random.default_rng(random_state).permutation(data.n_queries)[: cuts[-1]]
    parts = np.split(shuffled, cuts[:-1])
    for fraction, part in zip(fractions, parts, strict=True):
        if len(part) == 0:
            raise DataError(f"a fraction of {fraction} of {data.n_queries} queries is no query at all")
    return tuple(data.take_queries(np.sort(part)) for part in parts)


@takes_frames("data")
def sample_queries(data: RankingData, amount: int | float, random_state: int = 0) -> RankingData:
    """Draw queries at random.

    Parameters
    ----------
    data
        The data to draw from.
    amount
        How many queries: a whole number is a count, a float a fraction (rounded, at least one query).
    random_state
        Seed of the random choice.

    Examples
    --------
    >>> data = RankingData.from_arrays([[1.0], [2.0], [3.0], [4.0]], qid=["a", "b", "c", "d"])
    >>> sample_queries(data, 3).n_queries, sample_queries(data, 0.5).n_queries
    (3, 2)
    """
    if isinstance(amount, int | np.integer):
        count = int(amount)
        if not 1 <= count <= data.n_queries:
            raise DataError(f"amount is {count} queries, expected 1 to {data.n_queries}")
    else:
        if not 0 < amount <= 1:
            raise DataError(f"amount is {amount}, expected a fraction above 0 and up to 1, or a whole number")
        count = max(1, round(amount * data.n_queries))
    return data.take_queries(np.sort(np.random.default_rng(random_state).permutation(data.n_queries)[:count]))


def letor_rotation(n_parts: int = 5) -> list[tuple[tuple[int, ...], int, int]]:
    """Part numbers (train, validation, test) of each fold, from 0, as the LETOR collections rotate them.

    Fold ``f`` trains on all parts from ``f`` on but the last two, cyclically, validates on the next and
    tests on the last (Qin, Liu, Xu, Li: LETOR, Information Retrieval 13, 2010).

    >>> letor_rotation()[:2]
    [((0, 1, 2), 3, 4), ((1, 2, 3), 4, 0)]
    """
    if n_parts < 3:
        raise DataError(f"there are {n_parts} parts, expected 3 or more: train, validation and test")
    folds = []
    for fold in range(n_parts):
        *train, valid, test = ((fold + offset) % n_parts for offset in range(n_parts))
        folds.append((tuple(train), valid, test))
    return folds


def letor_folds(parts: Sequence[RankingData]) -> Iterator[tuple[RankingData, RankingData, RankingData]]:
    """Yield (train, validation, test) of each fold, as LETOR's collections rotate their parts.

    Parameters
    ----------
    parts
        The collection's parts, ``S1`` to ``S5``.

    >>> parts = [RankingData.from_arrays([[float(i)]], qid=[i]) for i in range(5)]
    >>> [(list(train.qid), list(valid.qid), list(test.qid)) for train, valid, test in letor_folds(parts)][4]
    (['4', '0', '1'], ['2'], ['3'])
    """
    rotation = letor_rotation(len(parts))
    return (
        (concatenate([parts[index] for index in train]), parts[valid], parts[test]) for train, valid, test in rotation
    )


def concatenate(datas: Sequence[RankingData]) -> RankingData:
    """Join data of different queries.

    Parameters
    ----------
    datas
        What to join; features, label names, and presence of ids and weights must agree.

    Examples
    --------
    >>> a = RankingData.from_arrays([[1.0]], [0], qid=["a"])
    >>> b = RankingData.from_arrays([[2.0]], [1], qid=["b"])
    >>> list(concatenate([a, b]).qid)
    ['a', 'b']
    """
    if not datas:
        raise DataError("there is nothing to join")
    first = datas[0]
    seen: set[str] = set()
    for number, data in enumerate(datas, start=1):
        check_joinable(first, data, f"part {number}", seen)
    offsets = np.concatenate(([0], np.cumsum([data.n_docs for data in datas])))
    starts = [data.indptr[:-1] + offset for data, offset in zip(datas, offsets[:-1], strict=True)]
    return RankingData(
        X=np.concatenate([data.X for data in datas]),
        indptr=np.concatenate([*starts, offsets[-1:]]),
        labels={name: np.concatenate([data.labels[name] for data in datas]) for name in first.labels},
        qid=_join_strings([data.qid for data in datas]),
        docid=None if first.docid is None else _join_strings([data.docid for data in datas if data.docid is not None]),
        weight=None if first.weight is None else np.concatenate([d.weight for d in datas if d.weight is not None]),
        document_weight=None
        if first.document_weight is None
        else np.concatenate([d.document_weight for d in datas if d.document_weight is not None]),
        feature_names=first.feature_names,
    )


def check_joinable(first: RankingData, data: RankingData, name: str, seen: set[str]) -> None:
    """Refuse data that does not fit behind ``first``; ``seen`` gathers the query ids so far.

    >>> a = RankingData.from_arrays([[1.0]], [0], qid=["a"])
    >>> check_joinable(a, a, "part 2", {"a"})
    Traceback (most recent call last):
    gradrank.errors.DataError: query a of part 2 is in an earlier part too
    """
    if data.feature_names != first.feature_names:
        if data.n_features != first.n_features:
            raise DataError(f"{name} has {data.n_features} features, the first part has {first.n_features}")
        pair = next(pair for pair in zip(data.feature_names, first.feature_names, strict=True) if pair[0] != pair[1])
        raise DataError(f"{name} has the feature {pair[0]!r} where the first part has {pair[1]!r}")
    if set(data.labels) != set(first.labels):
        raise DataError(f"{name} has the labels {sorted(data.labels)}, the first part has {sorted(first.labels)}")
    for what, given, expected in (
        ("document ids", data.docid, first.docid),
        ("weights", data.weight, first.weight),
        ("document weights", data.document_weight, first.document_weight),
    ):
        if (given is None) != (expected is None):
            has, lacks = ("the first part", name) if given is None else (name, "the first part")
            raise DataError(f"{has} has {what}, {lacks} has none")
    for qid in data.qid:
        if qid in seen:
            raise DataError(f"query {qid} of {name} is in an earlier part too")
        seen.add(qid)


def _join_strings(columns: Sequence[Strings]) -> Strings:
    sizes = np.concatenate([np.diff(column.offsets) for column in columns])
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    buffer = np.concatenate([column.buffer[column.offsets[0] : column.offsets[-1]] for column in columns])
    return Strings(buffer, offsets)

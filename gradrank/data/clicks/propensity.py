"""Examination propensities: how likely users look at a position, found from a click log.

Clicks alone cannot tell a document that nobody saw from one that nobody wanted. Positions can be compared only through
documents that were shown at several of them. Three ways, the safest first:

``randomized``
    sessions whose lists were shown in random order: among lists of the same length all positions hold equally good
    documents, so that their click rates stand to each other as their propensities (Joachims et al. 2017, §4.3);
``harvest``
    several rankers showed the same document of a query at different positions (Agarwal et al. 2019, all pairs): for
    each two positions k and k′, the documents that different rankers showed at k and at k′ count with the same weight
    at both, n·n′/(n + n′) for n and n′ impressions; the click rates of the two are p_k·r and p_k′·r with one mean
    attractiveness r, and p is the maximum likelihood over all pairs of positions. Holds if users do not choose their
    ranker, as when sessions are assigned at random;
``em``
    the position-based model with one attractiveness per document of a query (Richardson et al. 2007), for logs that do
    not name their rankers. It takes every change of position as if by chance, though rankers mostly change because
    documents do; and with few impressions per document it has as many unknowns as facts, and is biased.

Only ratios of propensities can be known: the topmost of the positions that hang together is set to 1. Positions that
are not connected with it by documents (or without a single click) are NaN, and if there are no two positions that are,
the log does not tell, and that is an error. Intervals come from drawing whole queries anew (bootstrap), and are
symmetric for the logarithm.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradrank.data.clicks.position_model import Cells, FittedModel, fit_position_model
from gradrank.data.clicks.readers import ClickLog
from gradrank.errors import DataError
from gradrank.runtime.files import replacing

PROPENSITY_METHODS = ("randomized", "harvest", "em")
_REPLICATES = {"randomized": 200, "harvest": 200, "em": 30}
_FORMAT = "gradrank-propensities"


@dataclass(frozen=True, eq=False)
class Propensities:
    """How likely users examine each position, relative to the first of them."""

    position: NDArray[np.int64]
    """Positions of the log, from 1."""
    probability: NDArray[np.float64]
    """Probability of being examined, 1 at the topmost position that is known; NaN = the log does not tell."""
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    """Ends of the intervals."""
    method: str
    """How they were found: one of :data:`PROPENSITY_METHODS`, or ``given``."""
    confidence: float = 0.95
    """Of the intervals."""
    compared: int = 0
    """Sessions (``randomized``), or documents of queries seen at several positions, that they rest on."""

    def at(self, position: ArrayLike) -> NDArray[np.float64]:
        """The probabilities of positions; NaN for those that are not known.

        >>> given_propensities([1.0, 0.5]).at([2, 3]).tolist()
        [0.5, nan]
        """
        wanted = np.asarray(position)
        place = np.minimum(np.searchsorted(self.position, wanted), len(self.position) - 1)
        return np.where(self.position[place] == wanted, self.probability[place], np.nan)

    def __repr__(self) -> str:
        known = int(np.count_nonzero(~np.isnan(self.probability)))
        return f"Propensities({self.method}, {known} of {len(self.position)} positions known)"


def given_propensities(probability: ArrayLike) -> Propensities:
    """Propensities that are known from elsewhere, of the positions 1, 2, …

    Parameters
    ----------
    probability
        Numbers above 0 and up to 1, or NaN where nothing is known.

    >>> given_propensities([1.0, 0.5]).position.tolist()
    [1, 2]
    """
    values = np.asarray(probability, dtype=np.float64)
    good = np.isnan(values) | ((values > 0) & (values <= 1))
    if values.ndim != 1 or not len(values) or not good.all() or np.isnan(values).all():
        raise DataError(f"propensities are {values.tolist()}, expected numbers above 0 and up to 1")
    return Propensities(np.arange(1, len(values) + 1), values, values, values, "given")


def estimate_propensities(
    log: ClickLog,
    method: Literal["auto", "randomized", "harvest", "em"] = "auto",
    *,
    confidence: float = 0.95,
    replicates: int | None = None,
    random_state: int = 0,
) -> Propensities:
    """Examination propensities of the positions of a log, with intervals; an error if the log cannot tell them.

    Parameters
    ----------
    log
        The click log.
    method
        One of :data:`PROPENSITY_METHODS`; ``auto`` takes the first for which the log has what it needs: sessions in
        random order, lists of several rankers, documents shown at several positions.
    confidence
        Of the intervals.
    replicates
        How often queries are drawn anew for the intervals; 200, or 30 for ``em``, if not given.
    random_state
        Seed of these draws.

    Examples
    --------
    >>> from gradrank.data.artificial import make_data
    >>> from gradrank.data.clicks.simulate import simulate_log
    >>> data = make_data(50, n_docs=8, n_features=5)
    >>> log = simulate_log(data, {"old": data.X[:, 0], "new": data.X[:, 1]}, 50_000, shown=3)
    >>> found = estimate_propensities(log)  # the truth is 1, 1/2, 1/3
    >>> found.method, bool(found.low[1] < 0.5 < found.high[1])
    ('harvest', True)
    """
    if method not in ("auto", *PROPENSITY_METHODS):
        raise DataError(f"method {method!r} does not exist, expected auto or one of {', '.join(PROPENSITY_METHODS)}")
    if not 0 < confidence < 1:
        raise DataError(f"confidence is {confidence}, expected a number between 0 and 1")
    if method == "auto":
        method = _best_method(log)
    positions, place = np.unique(log.position, return_inverse=True)
    make = {"randomized": _randomized_cells, "harvest": _harvested_cells, "em": _document_cells}[method]
    facts = make(log, place.reshape(-1), len(positions))
    cells, known = _connected(facts, method)
    model = fit_position_model(cells)
    first = int(np.flatnonzero(known)[0])
    probability = np.where(known, model.examined / model.examined[first], np.nan)
    deviation = _deviation(facts, known, model, first, replicates or _REPLICATES[method], random_state)
    width = NormalDist().inv_cdf(0.5 + confidence / 2) * deviation
    return Propensities(
        position=positions.astype(np.int64),
        probability=probability,
        low=probability * np.exp(-width),
        high=probability * np.exp(width),
        method=method,
        confidence=confidence,
        compared=facts.compared,
    )


def _best_method(log: ClickLog) -> Literal["randomized", "harvest", "em"]:
    if log.randomized is not None and log.randomized.any():
        return "randomized"
    if log.ranker is not None and len(np.unique(log.ranker[log.ranker >= 0])) > 1:
        return "harvest"
    return "em"


# ---------------------------------------------------------------------- what the log tells
@dataclass(frozen=True, eq=False)
class _Facts:
    """Counts by query, group and position; the counts of a group at a position are summed over queries."""

    query: NDArray[np.int64]
    group: NDArray[np.int64]
    place: NDArray[np.int64]
    hits: NDArray[np.float64]
    misses: NDArray[np.float64]
    n_places: int
    compared: int

    @cached_property
    def numbered(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The distinct groups at positions, and the number of each row's."""
        keys, cell = np.unique(self.group * self.n_places + self.place, return_inverse=True)
        return keys, cell.reshape(-1)

    def cells(self, weight: NDArray[np.float64] | None = None) -> Cells:
        """Summed over the queries, each counted as often as its weight says."""
        keys, cell = self.numbered
        times = 1.0 if weight is None else weight[self.query]
        hits, misses = (
            np.bincount(cell, weights=times * counts, minlength=len(keys)).astype(np.float64)
            for counts in (self.hits, self.misses)
        )
        n_groups = int(self.group.max(initial=-1)) + 1
        return Cells(keys // self.n_places, keys % self.n_places, hits, misses, n_groups, self.n_places)


def _summed(*keys: NDArray[Any], clicked: NDArray[np.bool_]) -> tuple[list[NDArray[np.int64]], Any, Any]:
    """Distinct combinations of the keys, with clicks and impressions of each."""
    code = np.zeros(len(clicked), dtype=np.int64)
    sizes = [int(key.max(initial=0)) + 1 for key in keys]
    for key, size in zip(keys, sizes, strict=True):
        code = code * size + key
    distinct, number = np.unique(code, return_inverse=True)
    number = number.reshape(-1)
    shown = np.bincount(number, minlength=len(distinct)).astype(np.float64)
    hits = np.bincount(number[clicked], minlength=len(distinct)).astype(np.float64)
    parts: list[NDArray[np.int64]] = []
    for size in reversed(sizes):
        parts.insert(0, distinct % size)
        distinct = distinct // size
    return parts, hits, shown


def _randomized_cells(log: ClickLog, place: NDArray[np.int64], n_places: int) -> _Facts:
    if log.randomized is None or not log.randomized.any():
        raise DataError("no session of the log says that its list was shown in random order (randomized)")
    lengths = np.diff(log.indptr)
    chosen = np.repeat(log.randomized, lengths)
    shown_query, shown_length = (np.repeat(values, lengths)[chosen] for values in (log.query, lengths))
    (query, length, place), hits, shown = _summed(
        shown_query, shown_length, place[chosen], clicked=log.order[chosen] > 0
    )
    return _Facts(query, length, place, hits, shown - hits, n_places, int(log.randomized.sum()))


def _document_cells(log: ClickLog, place: NDArray[np.int64], n_places: int) -> _Facts:
    shown_query = np.repeat(log.query, np.diff(log.indptr))
    (query, document, place), hits, shown = _summed(shown_query, log.document, place, clicked=log.order > 0)
    _, first, count = np.unique(
        query * len(log.documents) + document, return_inverse=True, return_counts=True
    )  # fmt: skip
    # A document seen at one position only tells nothing of positions.
    several = (count > 1)[first.reshape(-1)]
    _, group = np.unique(first.reshape(-1)[several], return_inverse=True)
    return _Facts(
        query[several],
        group.reshape(-1),
        place[several],
        hits[several],
        (shown - hits)[several],
        n_places,
        int(np.count_nonzero(count > 1)),
    )


def _harvested_cells(log: ClickLog, place: NDArray[np.int64], n_places: int) -> _Facts:
    lengths = np.diff(log.indptr)
    # Without names of rankers every change of position counts as if another ranker had made it.
    by = np.repeat(np.zeros(log.n_sessions, dtype=np.int32) if log.ranker is None else log.ranker, lengths)
    told = by >= 0
    (query, document, ranker, place), hits, shown = _summed(
        np.repeat(log.query, lengths)[told], log.document[told], by[told], place[told], clicked=log.order[told] > 0
    )
    pair = query * len(log.documents) + document  # rising, so that the cells of a pair stand together
    parts: list[tuple[NDArray[Any], ...]] = []
    compared = np.zeros(len(pair), dtype=bool)
    for distance in range(1, len(pair)):
        one = np.flatnonzero(pair[distance:] == pair[:-distance])
        if not len(one):
            break
        two = one + distance
        apart = place[one] != place[two]
        if log.ranker is not None:
            apart &= ranker[one] != ranker[two]
        one, two = one[apart], two[apart]
        compared[one] = True
        weight = shown[one] * shown[two] / (shown[one] + shown[two])
        group = np.minimum(place[one], place[two]) * n_places + np.maximum(place[one], place[two])
        for cell in (one, two):
            rate = hits[cell] / shown[cell]
            parts.append((query[cell], group, place[cell], weight * rate, weight * (1 - rate)))
    if not parts:
        empty = np.empty(0, dtype=np.int64)
        return _Facts(empty, empty, empty, empty.astype(float), empty.astype(float), n_places, 0)
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    query, group, place, clicks, misses = columns
    return _Facts(query, group, place, clicks, misses, n_places, len(np.unique(pair[compared])))


def _connected(facts: _Facts, method: str) -> tuple[Cells, NDArray[np.bool_]]:
    """The cells, and which positions can be compared with the topmost that can be compared with any."""
    cells, n_places = facts.cells(), facts.n_places
    clicked = np.bincount(cells.place, weights=cells.hits, minlength=n_places) > 0
    usable = clicked[cells.place] & (cells.shown > 0)
    usable &= (np.bincount(cells.group, weights=cells.hits, minlength=max(1, cells.n_groups)) > 0)[cells.group]
    component = np.arange(n_places)
    while True:
        # The lowest number of its neighbors spreads through each component.
        lowest = np.full(max(1, cells.n_groups), n_places)
        np.minimum.at(lowest, cells.group[usable], component[cells.place[usable]])
        merged = component.copy()
        np.minimum.at(merged, cells.place[usable], lowest[cells.group[usable]])
        if np.array_equal(merged, component):
            break
        component = merged
    sizes = np.bincount(component, minlength=n_places)
    if sizes.max(initial=0) < 2:
        raise DataError(_unidentified(method, n_places))
    known = component == int(np.flatnonzero(sizes >= 2)[0])
    return cells, known


def _unidentified(method: str, n_places: int) -> str:
    if n_places < 2:
        return "all documents were shown at one position: there is nothing to compare it with"
    what = {
        "randomized": "the sessions in random order have no clicks at two positions of lists of the same length",
        "harvest": "no clicked document of a query was shown at two positions by different rankers",
        "em": "no clicked document of a query was shown at two positions",
    }[method]
    return (
        f"the log cannot tell how likely positions are examined: {what}, so that a good position and good documents "
        "look the same; show some sessions in random order, or the lists of several rankers"
    )


def _deviation(
    facts: _Facts,
    known: NDArray[np.bool_],
    model: FittedModel,
    first: int,
    replicates: int,
    random_state: int,
) -> NDArray[np.float64]:
    """Standard deviation of the logarithm of each propensity over queries drawn anew."""
    n_places = facts.n_places
    numbers, query = np.unique(facts.query, return_inverse=True)
    if len(numbers) < 2:
        return np.where(known, np.where(np.arange(n_places) == first, 0.0, np.inf), np.nan)
    rng = np.random.default_rng(random_state)
    drawn = np.full((replicates, n_places), np.nan)
    own = replace(facts, query=query.reshape(-1))
    for replicate in range(replicates):
        times = rng.multinomial(len(numbers), np.full(len(numbers), 1 / len(numbers))).astype(np.float64)
        again = fit_position_model(own.cells(times), start=_inside(model))
        with np.errstate(divide="ignore", invalid="ignore"):
            drawn[replicate] = np.log(again.examined / again.examined[first])
    # A draw without a click at a position says that it could be anything.
    drawn = np.where(np.isfinite(drawn), drawn, np.nan)
    enough = known & (np.count_nonzero(~np.isnan(drawn), axis=0) > replicates / 2)
    deviation = np.full(n_places, np.nan)
    deviation[known] = np.inf
    deviation[enough] = np.nanstd(drawn[:, enough], axis=0, ddof=1)
    return deviation


def _inside(model: FittedModel) -> FittedModel:
    """A start from which every probability can move: 0 and 1 are fixed points."""
    return replace(
        model, attraction=np.clip(model.attraction, 1e-4, 1 - 1e-4), examined=np.clip(model.examined, 1e-4, 1 - 1e-4)
    )


# ---------------------------------------------------------------------- files
def write_propensities(propensities: Propensities, path: str | Path) -> None:
    """Write propensities as a JSON file.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "propensities.json"
    >>> write_propensities(given_propensities([1.0, 0.25]), path)
    >>> read_propensities(path).probability.tolist()
    [1.0, 0.25]
    """

    def numbers(values: NDArray[np.float64]) -> list[float | None]:
        return [float(value) if np.isfinite(value) else None for value in values]

    content = {
        "format": _FORMAT,
        "method": propensities.method,
        "confidence": propensities.confidence,
        "compared": propensities.compared,
        "position": propensities.position.tolist(),
        "probability": numbers(propensities.probability),
        "low": numbers(propensities.low),
        "high": numbers(propensities.high),
    }
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read_propensities(path: str | Path) -> Propensities:
    """Read what :func:`write_propensities` wrote.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "propensities.json"
    >>> _ = path.write_text("[]")
    >>> read_propensities(path)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    gradrank.errors.DataError: ...: is no file of propensities, as gradrank propensity writes them
    """
    refused = DataError("is no file of propensities, as gradrank propensity writes them", path=path)
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", path=path) from None
    except ValueError:
        raise refused from None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise refused
    try:
        position = np.array(content["position"], dtype=np.int64)
        columns = [np.array(content[name], dtype=np.float64) for name in ("probability", "low", "high")]
        method, confidence, compared = str(content["method"]), float(content["confidence"]), int(content["compared"])
    except (KeyError, TypeError, ValueError):
        raise refused from None
    probability = columns[0]
    good = np.isnan(probability) | ((probability > 0) & np.isfinite(probability))
    if any(column.shape != position.shape for column in columns) or not len(position) or not good.all():
        raise refused
    if position[0] < 1 or (np.diff(position) < 1).any() or np.isnan(probability).all():
        raise refused
    low, high = columns[1:]
    return Propensities(position, probability, low, high, method, confidence, compared)

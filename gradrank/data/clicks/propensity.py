"""Examination propensities: how likely users look at a position, found from a click log.

Clicks alone cannot tell a document that nobody saw from one that nobody wanted. Positions can be compared only through
documents that were shown at several of them. Three ways, the safest first, and a fourth:

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

``trust``
    for users who also click what does not attract them if it stands near the top: P(click) = α·γ + β at each position
    (``trust_model.py``); never chosen by itself. What is called propensity is then α, and β are false clicks.

Only ratios of propensities can be known: the topmost of the positions that hang together is set to 1. Positions that
are not connected with it by documents (or without a single click) are NaN, and if there are no two positions that are,
the log does not tell, and that is an error. Intervals come from drawing whole queries anew (bootstrap), and are
symmetric for the logarithm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradrank.data.clicks.click_log import ClickLog
from gradrank.data.clicks.position_facts import (
    PositionFacts,
    connected_positions,
    document_facts,
    harvested_facts,
    randomized_facts,
)
from gradrank.data.clicks.position_model import Cells, FittedModel, fit_position_model
from gradrank.data.clicks.trust_model import TrustModel, fit_trust_model
from gradrank.errors import DataError

PROPENSITY_METHODS = ("randomized", "harvest", "em", "trust")
_REPLICATES = {"randomized": 200, "harvest": 200, "em": 30, "trust": 20}


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
    false_clicks: NDArray[np.float64] | None = None
    """β: clicks per impression on what attracts nobody, at each position (``trust``); None = there are none."""

    def at(self, position: ArrayLike) -> NDArray[np.float64]:
        """The probabilities of positions; NaN for those that are not known.

        >>> given_propensities([1.0, 0.5]).at([2, 3]).tolist()
        [0.5, nan]
        """
        return self._looked_up(self.probability, position)

    def false_clicks_at(self, position: ArrayLike) -> NDArray[np.float64]:
        """False clicks per impression at positions; NaN for those that are not known.

        >>> given_propensities([1.0, 0.5]).false_clicks_at([2, 3]).tolist()
        [0.0, nan]
        """
        none = np.where(np.isnan(self.probability), np.nan, 0.0)
        return self._looked_up(none if self.false_clicks is None else self.false_clicks, position)

    def _looked_up(self, values: NDArray[np.float64], position: ArrayLike) -> NDArray[np.float64]:
        wanted = np.asarray(position)
        place = np.minimum(np.searchsorted(self.position, wanted), len(self.position) - 1)
        return np.where(self.position[place] == wanted, values[place], np.nan)

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
    method: Literal["auto", "randomized", "harvest", "em", "trust"] = "auto",
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
        random order, lists of several rankers, documents shown at several positions; ``trust`` has to be asked for.
    confidence
        Of the intervals.
    replicates
        How often queries are drawn anew for the intervals; 200, or 30 for ``em`` and 20 for ``trust``, if not given.
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
    make = {"randomized": randomized_facts, "harvest": harvested_facts}.get(method, document_facts)
    facts = make(log, place.reshape(-1), len(positions))
    cells, known = connected_positions(facts, method)
    find = _trusted if method == "trust" else _examined
    model = find(cells, known, None)
    if np.isnan(model.probability).all():
        raise DataError("the log cannot tell trust in positions: all documents are clicked alike where they were shown")
    deviation = _deviation(facts, known, find, model, replicates or _REPLICATES[method], random_state)
    probability = model.probability
    width = NormalDist().inv_cdf(0.5 + confidence / 2) * deviation
    return Propensities(
        position=positions.astype(np.int64),
        probability=probability,
        low=probability * np.exp(-width),
        high=probability * np.exp(width),
        method=method,
        confidence=confidence,
        compared=facts.compared,
        false_clicks=model.false_clicks,
    )


def _best_method(log: ClickLog) -> Literal["randomized", "harvest", "em"]:
    if log.randomized is not None and log.randomized.any():
        return "randomized"
    if log.ranker is not None and len(np.unique(log.ranker[log.ranker >= 0])) > 1:
        return "harvest"
    return "em"


@dataclass(frozen=True, eq=False)
class _Found:
    """What one fit found: propensities of all positions, NaN where they are not known, and the fit to start others."""

    probability: NDArray[np.float64]
    false_clicks: NDArray[np.float64] | None
    fit: FittedModel | TrustModel


_Find = Callable[[Cells, NDArray[np.bool_], "_Found | None"], _Found]


def _examined(cells: Cells, known: NDArray[np.bool_], start: _Found | None) -> _Found:
    fit = fit_position_model(cells, start=None if start is None else _inside(start.fit))  # type: ignore[arg-type]
    first = int(np.flatnonzero(known)[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        return _Found(np.where(known, fit.examined / fit.examined[first], np.nan), None, fit)


def _trusted(cells: Cells, known: NDArray[np.bool_], start: _Found | None) -> _Found:
    fit = fit_trust_model(cells, start=None if start is None else start.fit)  # type: ignore[arg-type]
    return _Found(*fit.line(known), fit)


def _deviation(
    facts: PositionFacts,
    known: NDArray[np.bool_],
    find: _Find,
    found: _Found,
    replicates: int,
    random_state: int,
) -> NDArray[np.float64]:
    """Standard deviation of the logarithm of each propensity over queries drawn anew."""
    n_places = facts.n_places
    numbers, query = np.unique(facts.query, return_inverse=True)
    if len(numbers) < 2:
        first = int(np.flatnonzero(known)[0])
        return np.where(known, np.where(np.arange(n_places) == first, 0.0, np.inf), np.nan)
    rng = np.random.default_rng(random_state)
    drawn = np.full((replicates, n_places), np.nan)
    own = replace(facts, query=query.reshape(-1))
    for replicate in range(replicates):
        times = rng.multinomial(len(numbers), np.full(len(numbers), 1 / len(numbers))).astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            drawn[replicate] = np.log(find(own.cells(times), known, found).probability)
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

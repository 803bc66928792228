"""Artificial click logs whose truth is known: who looked where, and what would have been clicked.

One or several logging rankers show lists to simulated users. What a document attracts depends on its grade, and on an
appeal of its own if clicks are to agree with the grades in part only. Users follow one of two models:

``position``
    the position-based model (Richardson et al. 2007): position k is examined with probability p_k, whatever else is
    shown, and P(click) = p_k·α. With trust bias (Agarwal et al. 2019) users who look also click what does not attract
    them, more so near the top: P(click) = p_k·(α + (1 − α)·trust/k);
``cascade``
    the dynamic Bayesian network (Chapelle & Zhang 2009): users read from the top, a click on a good document satisfies
    them more often, and who is satisfied stops; others go on with a fixed probability.

Sessions are drawn in blocks, each from a stream of its own, so that the first sessions of a longer log are those of a
shorter one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradrank.data.clicks.agreement import agreeing_pairs
from gradrank.data.clicks.click_log import ClickLog
from gradrank.data.clicks.interning import intern
from gradrank.data.ranking_data import RankingData
from gradrank.data.strings import Strings
from gradrank.errors import DataError

_BLOCK = 1 << 16  # sessions that share a random stream
# Names of the random streams.
_APPEAL, _SESSIONS = range(2)


@dataclass(frozen=True)
class Users:
    """How simulated users look and click.

    Parameters
    ----------
    model
        ``position`` or ``cascade``, see above.
    severity
        Position k is examined with probability k^−severity; 0 = no position bias.
    examination
        The probabilities of the positions themselves, instead of ``severity``.
    low, high
        What a document of grade 0 and of the top grade attracts; between them in proportion to 2^grade − 1.
    agreement
        Share of the pairs of different grades that what documents attract orders as the grades do; 1 = clicks follow
        the grades.
    trust
        Chance that users who examine the first position click what does not attract them; trust/k at position k.
    satisfied
        Chance that a click on a document of grade 0 and of the top grade ends the session (model ``cascade``).
    go_on
        Chance that users who are not satisfied read the next document (model ``cascade``).

    Examples
    --------
    >>> Users(severity=1.0).examined(4).round(3).tolist()
    [1.0, 0.5, 0.333, 0.25]
    """

    model: Literal["position", "cascade"] = "position"
    severity: float = 1.0
    examination: Sequence[float] | None = None
    low: float = 0.05
    high: float = 0.95
    agreement: float = 1.0
    trust: float = 0.0
    satisfied: tuple[float, float] = (0.1, 0.6)
    go_on: float = 0.9

    def __post_init__(self) -> None:
        if self.model not in ("position", "cascade"):
            raise DataError(f"users follow model {self.model!r}, expected position or cascade")
        if not 0 <= self.severity < np.inf:
            raise DataError(f"severity is {self.severity}, expected a number of 0 or more")
        if not 0.5 < self.agreement <= 1:
            raise DataError(f"agreement is {self.agreement}, expected a number above 0.5 and up to 1")
        chances = {"low": self.low, "high": self.high, "trust": self.trust, "go_on": self.go_on}
        chances |= {"satisfied": min(self.satisfied), "satisfied ": max(self.satisfied)}
        chances |= {f"examination of position {k}": p for k, p in enumerate(self.examination or (), 1)}
        for name, value in chances.items():
            if not 0 <= value <= 1:
                raise DataError(f"{name.strip()} is {value}, expected a number from 0 to 1")
        if not 0 < self.low < self.high < 1 and self.agreement < 1:
            raise DataError(f"low is {self.low} and high {self.high}, expected 0 < low < high < 1 for an agreement")

    def examined(self, depth: int) -> NDArray[np.float64]:
        """Probability that users examine each of the first positions (model ``position``)."""
        if self.examination is None:
            return np.arange(1.0, depth + 1) ** -float(self.severity)
        if len(self.examination) < depth:
            raise DataError(f"examination is given for {len(self.examination)} positions, expected {depth}")
        return np.asarray(self.examination[:depth], dtype=np.float64)


def attraction(
    data: RankingData, users: Users | None = None, *, label: str | None = None, random_state: int = 0
) -> NDArray[np.float64]:
    """The chance that each document is clicked by somebody who examines it.

    Parameters
    ----------
    data
        Data with grades.
    users
        How users click.
    label
        The label source that holds the grades; None = the primary one.
    random_state
        Seed of the documents' own appeal, for an agreement below 1.

    Examples
    --------
    >>> data = RankingData.from_arrays([[0.0]] * 3, [0, 1, 2], qid=[1, 1, 1])
    >>> attraction(data, Users(low=0.1, high=1.0)).round(2).tolist()
    [0.1, 0.4, 1.0]
    """
    users = users or Users()
    grade = data.label(label).astype(np.float64)
    if np.isnan(grade).any() or grade.min() < 0:
        raise DataError("clicks are simulated from grades of 0 or more, and some document has none")
    gain = np.exp2(grade) - 1
    attracted = users.low + (users.high - users.low) * gain / (gain.max() or 1.0)
    if users.agreement == 1:
        return attracted
    logit = np.log(attracted / (1 - attracted))
    appeal = np.random.default_rng([random_state, _APPEAL]).standard_normal(data.n_docs)
    # The stronger the appeal, the lower the agreement: from 1 down to one half.
    weak, strong = 0.0, 1.0
    while _agreement(data, grade, logit + strong * appeal) > users.agreement:
        weak, strong = strong, 2 * strong
        if strong > 1e6:
            raise DataError(f"agreement {users.agreement} cannot be reached with these grades")
    for _ in range(40):
        middle = 0.5 * (weak + strong)
        if _agreement(data, grade, logit + middle * appeal) > users.agreement:
            weak = middle
        else:
            strong = middle
    return np.asarray(1 / (1 + np.exp(-(logit + strong * appeal))))


def _agreement(data: RankingData, grade: NDArray[np.float64], attracted: NDArray[np.float64]) -> float:
    alike, ordered = agreeing_pairs(data.indptr, grade, attracted)
    return alike / ordered if ordered else 0.0


def simulate_log(
    data: RankingData,
    rankers: Mapping[str, ArrayLike],
    n_sessions: int,
    *,
    users: Users | None = None,
    shown: int = 10,
    randomized: float = 0.0,
    traffic: Sequence[float] | None = None,
    label: str | None = None,
    random_state: int = 0,
) -> ClickLog:
    """A click log of users to whom logging rankers showed the data.

    Each session draws a query and a ranker, shows the ranker's first documents, and lets a user click.

    Parameters
    ----------
    data
        Data with grades and document ids.
    rankers
        The logging rankers: name → scores, one per document in the data's own order. Equal scores stand in the
        data's order.
    n_sessions
        Number of sessions.
    users
        How users look and click.
    shown
        Length of the lists that are shown.
    randomized
        Share of the sessions that show their list in random order.
    traffic
        Share of the sessions that each ranker gets; equal shares if not given.
    label
        The label source that holds the grades; None = the primary one.
    random_state
        Seed of all randomness.

    Examples
    --------
    >>> data = RankingData.from_arrays([[0.0]] * 3, [0, 1, 2], qid=["q"] * 3, docid=["a", "b", "c"])
    >>> log = simulate_log(data, {"old": [3, 2, 1], "new": [1, 2, 3]}, 1000, random_state=1)
    >>> log.n_sessions, list(log.rankers), log.n_impressions
    (1000, ['old', 'new'], 3000)
    """
    users = users or Users()
    if data.docid is None:
        raise DataError("this data has no document ids, so its documents cannot be named in a log")
    if n_sessions < 1 or shown < 1:
        raise DataError(f"there are {n_sessions} sessions of {shown} documents, expected 1 or more of each")
    if not rankers:
        raise DataError("there is no logging ranker")
    if not 0 <= randomized <= 1:
        raise DataError(f"randomized is {randomized}, expected a share from 0 to 1")
    shares = np.ones(len(rankers)) if traffic is None else np.asarray(traffic, dtype=np.float64)
    if shares.shape != (len(rankers),) or not np.isfinite(shares).all() or shares.min() < 0 or shares.sum() <= 0:
        raise DataError(f"traffic is {traffic}, expected a share of 0 or more for each of {len(rankers)} rankers")
    depth = min(shown, int(data.sizes.max()))
    lists = np.stack([_first(data, name, scores, depth) for name, scores in rankers.items()])
    attracted = attraction(data, users, label=label, random_state=random_state)
    grade = data.label(label).astype(np.float64)
    satisfying = users.satisfied[0] + (users.satisfied[1] - users.satisfied[0]) * grade / (grade.max() or 1.0)
    cumulative = np.cumsum(shares / shares.sum())
    parts: list[tuple[NDArray[Any], ...]] = []
    for block, first in enumerate(range(0, n_sessions, _BLOCK)):
        rng = np.random.default_rng([random_state, _SESSIONS, block])
        # The whole block is drawn, so that a longer log begins with a shorter one.
        query = rng.integers(0, data.n_queries, _BLOCK)
        ranker = np.minimum(np.searchsorted(cumulative, rng.random(_BLOCK), side="right"), len(rankers) - 1)
        shuffled = rng.random(_BLOCK) < randomized
        rows = lists[ranker, query]
        keys = rng.random(rows.shape)
        keys[rows < 0] = 2.0  # stay behind
        keys[~shuffled] = np.arange(depth)
        rows = np.take_along_axis(rows, np.argsort(keys, axis=1, kind="stable"), axis=1)
        clicked = _clicks(users, rows, attracted, satisfying, rng)
        count = min(_BLOCK, n_sessions - first)
        parts.append((query[:count], ranker[:count], shuffled[:count], rows[:count], clicked[:count]))
    query, ranker, shuffled, rows, clicked = (np.concatenate(column) for column in zip(*parts, strict=True))
    codes, documents = intern(data.docid.buffer, data.docid.offsets[:-1], data.docid.offsets[1:])
    there = rows >= 0
    order = np.where(clicked, np.cumsum(clicked, axis=1), 0)
    last = clicked & (order == order.max(axis=1, keepdims=True))
    return ClickLog(
        queries=data.qid,
        documents=documents,
        query=query.astype(np.int32),
        indptr=np.concatenate(([0], np.cumsum(there.sum(axis=1)))),
        document=codes[rows[there]],
        position=np.broadcast_to(np.arange(1, depth + 1, dtype=np.int32), rows.shape)[there],
        order=order[there].astype(np.int32),
        last=last[there],
        clicks_not_shown=0,
        last_clicks_not_shown=0,
        shown_again=0,
        rankers=Strings.of(rankers),
        ranker=ranker.astype(np.int32),
        randomized=shuffled.astype(bool),
    )


def _first(data: RankingData, name: str, scores: ArrayLike, depth: int) -> NDArray[np.int64]:
    """Rows of the first documents of each query by a ranker, −1 where a query has fewer."""
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (data.n_docs,) or np.isnan(values).any():
        raise DataError(f"ranker {name!r} has scores of shape {values.shape}, expected a number for each document")
    order = np.lexsort((-values, data.query_of_row()))
    place = data.indptr[:-1, None] + np.arange(depth)
    there = place < data.indptr[1:, None]
    return np.where(there, order[np.where(there, place, 0)], -1)


def _clicks(
    users: Users,
    rows: NDArray[np.int64],
    attracted: NDArray[np.float64],
    satisfying: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.bool_]:
    depth = rows.shape[1]
    chance = np.where(rows >= 0, attracted[rows], 0.0)
    trust = users.trust / np.arange(1, depth + 1)
    chance = np.where(rows >= 0, chance + (1 - chance) * trust, 0.0)
    draws = rng.random((3, *rows.shape))
    wanted = draws[0] < chance
    if users.model == "position":
        return np.asarray(wanted & (draws[1] < users.examined(depth)))
    # Who stops at a position reads none of the later ones.
    stops = (wanted & (draws[1] < satisfying[rows])) | (draws[2] >= users.go_on)
    reads = np.ones(rows.shape, dtype=bool)
    reads[:, 1:] = ~np.logical_or.accumulate(stops, axis=1)[:, :-1]
    return np.asarray(wanted & reads)

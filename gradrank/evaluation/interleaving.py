"""Which of two rankers users prefer, by lists that both of them share.

**Team draft** (Radlinski, Kurup, Joachims, CIKM 2008): as captains choose players, the two rankers take turns at
bringing in their best document that is not in the list yet; a coin decides who begins each pair of turns. A click is
credited to the ranker that brought the document in. On each list the ranker with more clicks wins; if neither is
better, each wins as often as the other, which a sign test judges. Interleaving needs 10 to 100 times fewer users than
comparing groups of users (Chapelle, Joachims, Radlinski, Yue, TOIS 2012), since every user compares.

Lists of one user are not independent: where the log tells users apart, a user with several lists is one vote, for the
ranker that won more of his lists.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gradrank.data.clicks.traffic import Impression
from gradrank.errors import DataError


def team_draft(
    first: Sequence[int], second: Sequence[int], k: int | None = None, *, random_state: int | str = 0
) -> tuple[list[int], list[int]]:
    """One list of two rankings of the same documents, and for each of its documents who brought it in (0 or 1).

    Parameters
    ----------
    first, second
        The two rankings, best first, each document once.
    k
        Length of the list; all documents unless given.
    random_state
        Seed of the coins; in service that of the list's id, so that a list can be made again.

    Examples
    --------
    >>> team_draft([0, 1, 2], [2, 1, 0], random_state=1)
    ([0, 2, 1], [0, 1, 1])
    """
    coins = random.Random(random_state)
    length = len(first) if k is None else min(k, len(first))
    rankings, places = (first, second), [0, 0]
    seen: set[int] = set()
    shown: list[int] = []
    teams: list[int] = []
    turns: list[int] = []
    while len(shown) < length:
        if not turns:
            begins = coins.getrandbits(1)
            turns = [1 - begins, begins]
        team = turns.pop()
        ranking = rankings[team]
        while ranking[places[team]] in seen:
            places[team] += 1
        document = ranking[places[team]]
        seen.add(document)
        shown.append(document)
        teams.append(team)
    return shown, teams


@dataclass(frozen=True)
class Interleaving:
    """What clicks on shared lists say of two rankers."""

    models: tuple[str, str]
    lists: int
    """Lists that the two shared."""
    clicked: int
    """Lists with a click on one of their documents."""
    credit: tuple[int, int]
    """Clicked documents that each ranker had brought in."""
    units: int
    """Votes: users if the log tells them apart, else lists."""
    wins: tuple[int, int]
    """Votes for each ranker."""
    ties: int
    """Votes for neither, clicks or not."""
    preference: float
    """Share of the second ranker in the wins; NaN without wins."""
    low: float
    """Lower end of the exact (Clopper-Pearson) interval of the preference."""
    high: float
    """Upper end."""
    p: float
    """Two-sided p-value of the sign test; 1 without wins."""
    level: float

    @property
    def winner(self) -> str | None:
        """The preferred ranker, if the sign test tells."""
        if not self.p < self.level:
            return None
        return self.models[1] if self.wins[1] > self.wins[0] else self.models[0]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "winner": self.winner}


def analyze_interleaving(
    impressions: Iterable[Impression], models: tuple[str, str] | None = None, *, level: float = 0.05
) -> Interleaving:
    """Credit of two rankers by the clicks on lists that they shared, with a sign test.

    Parameters
    ----------
    impressions
        Lists of a service's log, as :func:`~gradrank.data.clicks.traffic.read_traffic` gives them; those that one model
        made alone are left out.
    models
        The two rankers, if the log holds several pairs; a name without version stands for all its versions.
    level
        Level of significance.

    Examples
    --------
    >>> def shared(number, clicks):
    ...     return Impression(str(number), "q", ["a", "b"], ("old@1", "new@1"), [0, 1], clicks=clicks)
    >>> found = analyze_interleaving([shared(n, ["b"]) for n in range(9)] + [shared(9, ["a"]), shared(10, [])])
    >>> found.wins, found.ties, round(found.p, 4), found.winner
    ((1, 9), 1, 0.0215, 'new@1')
    """
    from scipy.stats import binomtest

    if not 0.0 < level < 1.0:
        raise DataError(f"level is {level}, expected a number between 0 and 1")
    shared = [item for item in impressions if item.teams is not None]
    if models is not None:
        pair = (str(models[0]), str(models[1]))
        shared = [
            item
            for item in shared
            if all(asked in (model, _name(model)) for asked, model in zip(pair, item.models, strict=True))
        ]
    else:
        pairs = Counter((item.models[0], item.models[1]) for item in shared)
        if len(pairs) > 1:
            told = "; ".join(f"{' and '.join(pair)} ({count:,} lists)" for pair, count in pairs.most_common(4))
            raise DataError(f"the log holds lists of several pairs of models: {told}; say which two are meant")
        pair = next(iter(pairs), ("", ""))
    if not shared:
        raise DataError(
            "the log holds no list that two models shared" + ("" if models is None else f": {' and '.join(pair)}")
        )
    votes: dict[str, int] = defaultdict(int)
    credit, clicked = [0, 0], 0
    for number, item in enumerate(shared):
        earned = _credit(item)
        credit = [credit[0] + earned[0], credit[1] + earned[1]]
        clicked += any(earned)
        # A unit's own name cannot be that of a list without one.
        unit = f"list {number}" if item.unit is None else f"unit {item.unit}"
        votes[unit] += (earned[1] > earned[0]) - (earned[0] > earned[1])
    wins = (sum(vote < 0 for vote in votes.values()), sum(vote > 0 for vote in votes.values()))
    decided = sum(wins)
    test = binomtest(wins[1], decided) if decided else None
    interval = None if test is None else test.proportion_ci(1.0 - level, method="exact")
    return Interleaving(
        models=pair,
        lists=len(shared),
        clicked=clicked,
        credit=(credit[0], credit[1]),
        units=len(votes),
        wins=wins,
        ties=len(votes) - decided,
        preference=wins[1] / decided if decided else float("nan"),
        low=float(interval.low) if interval is not None else 0.0,
        high=float(interval.high) if interval is not None else 1.0,
        p=float(test.pvalue) if test is not None else 1.0,
        level=level,
    )


def _credit(item: Impression) -> tuple[int, int]:
    """Clicked documents of each team; a document that was clicked twice counts once, one that was not shown never."""
    team = dict(zip(item.shown, item.teams or (), strict=True))
    clicked = {docid for docid in item.clicks if docid in team}
    second = sum(team[docid] for docid in clicked)
    return len(clicked) - second, second


def _name(model: str) -> str:
    return model.partition("@")[0]

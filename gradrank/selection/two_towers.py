"""A two-tower net from clicks: what documents are worth in one tower, what positions add in the other.

P(click) = σ(relevance(x) + term of the position), learned from all impressions by a net with a second tower
(``learners/nets/towers.py``); the relevance tower alone is the ranker. The naive net beside it has no second tower.
Both learn from counts by document and position, so that the number of sessions does not matter.

Features let a net tell what documents are worth even if each was shown at one position only: by what other documents
like it got elsewhere. But then nothing shows whether the net is right, and a log from one good ranker has hardly like
documents at different positions. So a log that does not connect positions is refused, as for propensities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.clicks.click_log import ClickLog
from gradrank.data.clicks.click_models import NAIVE, HeldOut
from gradrank.data.clicks.position_facts import connected_positions, document_facts
from gradrank.data.clicks.sessions import POSITION, impression_data, take_sessions
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError
from gradrank.models.ranker import Ranker
from gradrank.selection.unbiased import Said

if TYPE_CHECKING:
    from gradrank.learners.nets.lambdarank import LambdaRank

TWO_TOWERS = "two-towers"
_HELD_OUT = 0.2
# Small batches: terms of positions move by the learning rate at most in each step, and may have far to go.
_NETS = {"epochs": 60, "batch_size": 8, "hidden_layer_sizes": 32}


@dataclass(frozen=True, eq=False)
class TowerTraining:
    """Nets trained on a click log, and what the log told."""

    unbiased: Ranker
    """The relevance tower."""
    naive: Ranker
    """A net without a tower of positions."""
    position_terms: Mapping[int, float]
    """What each position adds to the log-odds of a click, 0 for the topmost."""
    held_out: HeldOut


def train_two_towers(
    data: RankingData,
    log: ClickLog,
    *,
    parameters: Mapping[str, Any] | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    say: Said | None = None,
) -> TowerTraining:
    """Train a net with a tower of its own for positions, and a naive one beside it.

    Parameters
    ----------
    data
        Features, with document ids; its labels are not looked at.
    log
        The click log.
    parameters
        Parameters of the nets, as of :class:`gradrank.LambdaRank`; ``position_dropout`` among them. Where they are not
        given, nets have 32 hidden nodes and learn for 60 epochs with batches of 8 queries.
    random_state, n_jobs
        Seed and threads.
    say
        Called with what is being done.

    Examples
    --------
    >>> from gradrank import make_data
    >>> from gradrank.data.clicks.simulate import simulate_log
    >>> data = make_data(40, n_docs=8, n_features=5)
    >>> log = simulate_log(data, {"old": data.X[:, 0], "new": data.X[:, 1]}, 4000, shown=5)
    >>> result = train_two_towers(data, log, parameters={"epochs": 10}, n_jobs=1)
    >>> list(result.position_terms)
    [1, 2, 3, 4, 5]
    """
    from gradrank.learners.nets.lambdarank import LambdaRank

    say = say or (lambda _: None)
    positions, place = np.unique(log.position, return_inverse=True)
    _, known = connected_positions(document_facts(log, place.reshape(-1), len(positions)), "em")
    if not known.all():
        raise DataError(
            f"position {positions[~known][0]} shares no clicked document with the others, so that a good position and "
            "good documents look the same; two towers cannot be told apart there"
        )

    def learner(*, towers: bool) -> LambdaRank:
        given = {**_NETS, **(parameters or {})}
        if not towers:
            given.pop("position_dropout", None)
        return LambdaRank(
            "Logistic", positions=POSITION if towers else None, random_state=random_state, n_jobs=n_jobs,
            verbose=False, **given,
        )  # fmt: skip

    say("training nets on a part of the sessions, to foretell the others")
    held = np.random.default_rng(random_state).random(log.n_sessions) < _HELD_OUT
    if held.all() or not held.any():
        raise DataError(f"there are {log.n_sessions} sessions, too few to hold some out")
    part, rest = (impression_data(data, take_sessions(log, sessions)) for sessions in (~held, held))
    values = {}
    for name, towers in ((NAIVE, False), (TWO_TOWERS, True)):
        values[name] = _likelihood(learner(towers=towers).fit(part), rest)
    shown = impression_data(data, log)
    say("training the two-tower net")
    both = learner(towers=True).fit(shown)
    say("training the naive net")
    naive = learner(towers=False).fit(shown).ranker_
    assert rest.document_weight is not None
    held_out = HeldOut(values, int(rest.document_weight.sum()))
    return TowerTraining(both.ranker_, naive, both.position_terms_, held_out)


def _likelihood(learner: LambdaRank, shown: RankingData) -> float:
    """Mean log likelihood of impressions; positions that training had not are taken for the last that it had."""
    scores = learner.ranker_.grouped_scores(shown)
    if learner.positions is not None:
        known = np.array(list(learner.position_terms_))
        terms = np.array(list(learner.position_terms_.values()))
        place = np.clip(np.searchsorted(known, shown.label(POSITION), side="right") - 1, 0, len(known) - 1)
        scores = scores + terms[place] + _first_term(learner)
    weight, rate = _weights(shown), shown.label().astype(np.float64)
    loss = rate * np.logaddexp(0.0, -scores) + (1 - rate) * np.logaddexp(0.0, scores)
    return -float(np.average(loss, weights=weight))


def _weights(shown: RankingData) -> NDArray[np.float64]:
    assert shown.document_weight is not None
    return shown.document_weight


def _first_term(learner: LambdaRank) -> float:
    """The term of the topmost position itself, which the terms are told relative to."""
    return float(learner.state_.best_weights["terms"][0])

"""Models of users who read from the top, against all that users could have done, and on simulated users."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Literal

import numpy as np
import pytest

from gradrank.data.artificial import make_data
from gradrank.data.clicks.click_log import click_log
from gradrank.data.clicks.click_models import CLICK_MODELS, held_out_likelihood
from gradrank.data.clicks.labels import click_labels
from gradrank.data.clicks.session_models import SessionModel, fit_session_model, pair_keys
from gradrank.data.clicks.simulate import Users, attraction, simulate_log
from gradrank.errors import DataError

IMPATIENT = {"go_on": 0.6, "satisfied": (0.3, 0.9)}
ATTRACTION, SATISFACTION, GO_ON = (0.6, 0.3, 0.5, 0.2), (0.4, 0.7, 0.1, 0.9), 0.8


def _model(kind: Literal["dbn", "cascade"]) -> SessionModel:
    ends = np.arange(4) if kind == "dbn" else np.arange(1, 5)
    return SessionModel(
        kind=kind,
        keys=np.arange(4),
        attraction=np.array(ATTRACTION),
        ends=ends,
        satisfaction=np.array(SATISFACTION),
        go_on=GO_ON if kind == "dbn" else 1.0,
        mean=(0.5, 0.5),
        trace=np.zeros(1),
        converged=True,
    )


def _all_stories(go_on: float):  # type: ignore[no-untyped-def]
    """Probability, clicks and documents examined of everything that can happen: where users stop, and why."""
    for clicks in product([False, True], repeat=4):
        for read in range(1, 5):
            if any(clicks[read:]):
                continue
            chance = 1.0
            for i in range(read):
                chance *= ATTRACTION[i] if clicks[i] else 1 - ATTRACTION[i]
                stays = go_on * (1 - SATISFACTION[i] if clicks[i] else 1.0)
                if i < read - 1:
                    chance *= stays
                elif read < 4:
                    chance *= 1 - stays
            yield clicks, read, chance


@pytest.mark.parametrize("kind", ["dbn", "cascade"])
def test_chances_are_those_of_all_stories(kind: Literal["dbn", "cascade"]) -> None:
    model = _model(kind)
    stories = list(_all_stories(model.go_on))
    assert sum(chance for *_, chance in stories) == pytest.approx(1.0)
    for clicks in product([False, True], repeat=4):
        log = click_log([("q", list("abcd"), [d for d, c in zip("abcd", clicks, strict=True) if c])])
        told = [(read, chance) for own, read, chance in stories if own == clicks]
        total = sum(chance for _, chance in told)
        # The product of the chances, each given the clicks above, is the chance of all clicks.
        chances = model.chances(log)
        assert np.prod(np.where(clicks, chances, 1 - chances)) == pytest.approx(total)
        expected = [sum(chance for read, chance in told if read > i) / total for i in range(4)]
        assert model.examined(log) == pytest.approx(expected)


def _simulated(model: str, n_sessions: int = 40_000, **users):  # type: ignore[no-untyped-def]
    data = make_data(60, n_docs=8, n_features=5, random_state=1, n_jobs=1)
    who = Users(model=model, **users)  # type: ignore[arg-type]
    rankers = {"old": data.X[:, 0], "new": data.X[:, 1]}
    return data, who, simulate_log(data, rankers, n_sessions, users=who, shown=6, random_state=3)


def test_a_network_finds_who_goes_on_and_what_attracts() -> None:
    data, users, log = _simulated("cascade", 100_000, **IMPATIENT)
    model = fit_session_model(log, "dbn")
    assert model.converged
    assert model.go_on == pytest.approx(0.6, abs=0.02)
    truth = attraction(data, users)
    row = {name: i for i, name in enumerate(data.docid)}  # type: ignore[arg-type]
    labels = click_labels(log, "dbn")
    keys, seen = np.unique(pair_keys(log), return_inverse=True)
    assert model.keys.tolist() == keys.tolist()
    often = np.bincount(seen.reshape(-1), weights=model.examined(log)) > 100
    wanted = np.array([truth[row[log.documents[d]]] for d in labels.document])
    assert often.sum() > 100
    error = np.abs(model.attraction - wanted)[often].mean()
    assert error < 0.04
    assert np.allclose(labels.label, model.attraction * model.satisfaction)
    # Documents below the last click were not all examined, so that their click-through rates are too low.
    assert error < 0.6 * np.abs(click_labels(log, "ctr").label - wanted)[often].mean()


def test_held_out_clicks_tell_the_models_apart() -> None:
    cascade = held_out_likelihood(_simulated("cascade", **IMPATIENT)[2], models=["position", "cascade", "dbn"])
    assert cascade.best in ("cascade", "dbn")
    assert cascade.values["dbn"] > cascade.values["position"] > cascade.values["naive"]
    assert held_out_likelihood(_simulated("position")[2], models=["position", "cascade", "dbn"]).best == "position"
    with pytest.raises(DataError, match="click model 'x' does not exist, expected one of position, trust"):
        held_out_likelihood(_simulated("position")[2], models=["x"])
    assert list(CLICK_MODELS) == ["position", "trust", "cascade", "dbn"]


def test_a_log_without_clicks_is_refused() -> None:
    with pytest.raises(DataError, match="the log has no clicks"):
        fit_session_model(click_log([("q", ["a", "b"], [])]), "dbn")


def test_positions_far_down_take_no_room() -> None:
    log = click_log([("q", ["a", "b"], ["a"]), ("q", ["b", "a"], ["b", "a"])])
    deep = replace(log, position=np.array([1, 2_000_000_000, 1, 2], dtype=np.int32))
    model = fit_session_model(deep, "cascade")
    assert model.ends.tolist() == [1, 2, 2_000_000_000]
    assert np.isfinite(model.chances(deep)).all()

"""Trust bias: clicks as lines over attractiveness, found from simulated users whose truth is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gradrank.data.artificial import make_data
from gradrank.data.clicks.click_log import click_log
from gradrank.data.clicks.labels import click_labels
from gradrank.data.clicks.position_facts import connected_positions, document_facts
from gradrank.data.clicks.propensity import Propensities, estimate_propensities
from gradrank.data.clicks.propensity_files import read_propensities, write_propensities
from gradrank.data.clicks.sessions import session_data
from gradrank.data.clicks.simulate import Users, attraction, simulate_log
from gradrank.data.clicks.trust_model import TrustModel, fit_trust_model
from gradrank.data.ranking_data import RankingData

DEPTH, TRUST = 5, 0.6


def _log(trust: float):  # type: ignore[no-untyped-def]
    data = make_data(150, n_docs=DEPTH, n_features=3, random_state=1, n_jobs=1)
    users = Users(trust=trust)
    log = simulate_log(data, {"one": data.X[:, 0]}, 120_000, users=users, randomized=1.0, random_state=2)
    return data, users, log


def _truth(users: Users) -> tuple[np.ndarray, np.ndarray]:
    """α and β of the simulated users, with β = 0 where it is least and α + β = 1 at the first position."""
    examined, trust = users.examined(DEPTH), users.trust / np.arange(1, DEPTH + 1)
    model = TrustModel(examined * trust, examined, np.zeros((1, 1)), np.zeros(1), True)
    return model.line(np.ones(DEPTH, dtype=bool))


def test_lines_are_stretched_and_shifted_as_said() -> None:
    model = TrustModel(np.array([0.4, 0.1]), np.array([0.8, 0.6]), np.zeros((1, 1)), np.zeros(1), True)
    slope, offset = model.line(np.array([True, True]))
    # The second position has the least β/α, 0.2; with γ′ = γ + 0.2 its β is 0, and β of the first 0.4 − 0.08.
    assert offset == pytest.approx([0.32, 0.0])
    assert slope == pytest.approx([0.68, 0.85])
    # The same clicks as before: lines differ by one change of γ for all positions.
    assert (slope / np.array([0.4, 0.5])).std() == pytest.approx(0)


def test_trust_is_found_and_its_absence() -> None:
    _, users, log = _log(TRUST)
    found = estimate_propensities(log, "trust", replicates=4)
    slope, offset = _truth(users)
    assert found.false_clicks is not None
    assert found.probability == pytest.approx(slope, abs=0.06)
    assert found.false_clicks == pytest.approx(offset, abs=0.06)
    assert offset[0] > 0.5
    none = estimate_propensities(_log(0.0)[2], "trust", replicates=4)
    assert none.false_clicks == pytest.approx(np.zeros(DEPTH), abs=0.06)
    assert none.probability == pytest.approx(users.examined(DEPTH), abs=0.06)


def test_the_likelihood_never_falls() -> None:
    log = _log(TRUST)[2]
    _, place = np.unique(log.position, return_inverse=True)
    cells, known = connected_positions(document_facts(log, place.reshape(-1), DEPTH), "trust")
    model = fit_trust_model(cells)
    assert known.all()
    assert np.diff(model.trace).min() > -1e-10
    assert ((model.low > 0) & (model.low <= model.high) & (model.high < 1)).all()


def test_corrected_labels_do_not_favor_what_stood_on_top() -> None:
    data, users, _ = _log(TRUST)
    # One ranker shows the same order nearly always, so that documents keep their positions.
    log = simulate_log(data, {"one": data.X[:, 0]}, 60_000, users=users, randomized=0.1, random_state=2)
    truth = attraction(data, users)
    row = {name: i for i, name in enumerate(data.docid)}  # type: ignore[arg-type]
    errors = {}
    for method in ("trust", "randomized"):
        known = estimate_propensities(log, method, replicates=2)  # type: ignore[arg-type]
        labels = click_labels(log, "examined", propensities=known)
        wanted = np.array([truth[row[labels.documents[d]]] for d in labels.document])
        # Labels are right up to a stretch and a shift: what a line does not explain is error.
        errors[method] = 1 - np.corrcoef(labels.label, wanted)[0, 1] ** 2
    assert errors["trust"] < 0.7 * errors["randomized"]


def test_false_clicks_are_taken_off_by_hand(tmp_path: Path) -> None:
    one = np.ones(2)
    known = Propensities(np.array([1, 2]), np.array([0.6, 0.3]), one, one, "trust", false_clicks=np.array([0.4, 0.1]))
    log = click_log([("q", ["a", "b"], ["a"]), ("q", ["b", "a"], ["b"]), ("q", ["a", "b"], [])])
    labels = click_labels(log, "examined", propensities=known, prior=(0.0, 0.0))
    # a: one click, shown twice at 1 and once at 2: (1 − 0.4 − 0.4 − 0.1)/(0.6 + 0.6 + 0.3).
    assert labels.label.tolist() == pytest.approx([0.1 / 1.5, (1 - 0.4 - 0.2) / 1.2])
    write_propensities(known, tmp_path / "known.json")
    again = read_propensities(tmp_path / "known.json")
    assert again.false_clicks is not None
    assert again.false_clicks.tolist() == [0.4, 0.1]
    data = RankingData.from_arrays([[1.0], [2.0]], [0, 0], qid=["q", "q"], docid=["a", "b"])
    # Both clicks are at position 1, where two of three impressions were clicked: 1 − 0.4/(2/3) of them are true.
    weights = session_data(data, log, known).document_weight
    assert weights is not None
    assert weights.tolist() == pytest.approx([1.0, 1.0, 1.0, 1.0])

"""The click models by name, and how well each foretells the clicks of sessions that it has not seen.

``naive``
    click-through rates, the same at every position;
``position``
    propensity of the position times attractiveness of the document (``propensity.py``);
``trust``
    the same with clicks on what does not attract, more so near the top (``trust_model.py``);
``cascade``, ``dbn``
    users who read from the top and stop after clicks (``session_models.py``).

The first three give each document of a query one number, from the other sessions and with a prior from the log. All
give documents without such sessions the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradrank.data.clicks.click_log import ClickLog
from gradrank.data.clicks.labels import ClickLabels, click_labels
from gradrank.data.clicks.propensity import Propensities, estimate_propensities
from gradrank.data.clicks.session_models import SessionModel, fit_session_model, pair_keys
from gradrank.data.clicks.sessions import take_sessions
from gradrank.errors import DataError

ClickModel = Propensities | SessionModel
NAIVE, POSITION = "naive", "position"

# A new click model is a line here: its name -> what fits it to a log, given the method for propensities.
CLICK_MODELS: dict[str, Callable[[ClickLog, str], ClickModel]] = {
    POSITION: lambda log, method: estimate_propensities(log, method, replicates=2),  # type: ignore[arg-type]
    "trust": lambda log, _: estimate_propensities(log, "trust", replicates=2),
    "cascade": lambda log, _: fit_session_model(log, "cascade"),
    "dbn": lambda log, _: fit_session_model(log, "dbn"),
}
"""Models that a ranker can be trained by."""


@dataclass(frozen=True)
class HeldOut:
    """Mean log likelihood per impression of clicks that the models have not seen; higher is better."""

    values: Mapping[str, float]
    """By the name of the model."""
    impressions: int
    """Impressions that it is the mean over, the same for all models."""

    @property
    def best(self) -> str:
        """The model that foretells best."""
        return max(self.values, key=lambda name: self.values[name])


def held_out_likelihood(
    log: ClickLog,
    propensities: Propensities | None = None,
    *,
    models: Sequence[str] = (POSITION,),
    method: str = "auto",
    share: float = 0.2,
    random_state: int = 0,
) -> HeldOut:
    """Compare click models with a naive one, and each other, on sessions that none was made from.

    Parameters
    ----------
    log
        The click log.
    propensities
        Known propensities; None = they are estimated from the other sessions.
    models
        Names from :data:`CLICK_MODELS`.
    method
        How propensities are estimated; see :func:`gradrank.data.clicks.propensity.estimate_propensities`.
    share
        Share of the sessions that are held out.
    random_state
        Seed of their choice.

    Examples
    --------
    >>> from gradrank.data.artificial import make_data
    >>> from gradrank.data.clicks.simulate import simulate_log
    >>> data = make_data(50, n_docs=8, n_features=5)
    >>> log = simulate_log(data, {"old": data.X[:, 0], "new": data.X[:, 1]}, 20_000, shown=5)
    >>> held_out_likelihood(log, models=["position", "cascade"]).best
    'position'
    """
    if not 0 < share < 1:
        raise DataError(f"share is {share}, expected a number between 0 and 1")
    for name in models:
        if name not in CLICK_MODELS:
            raise DataError(f"click model {name!r} does not exist, expected one of {', '.join(CLICK_MODELS)}")
    held = np.random.default_rng(random_state).random(log.n_sessions) < share
    if held.all() or not held.any():
        raise DataError(f"there are {log.n_sessions} sessions, too few to hold some out")
    train, test = take_sessions(log, ~held), take_sessions(log, held)
    fitted: dict[str, ClickModel] = {}
    for name in models:
        given = propensities if name == POSITION else None
        fitted[name] = CLICK_MODELS[name](train, method) if given is None else given
    chances = {NAIVE: _rates(train, test)} | {name: _chances(model, train, test) for name, model in fitted.items()}
    known = ~np.isnan(np.stack(list(chances.values()))).any(axis=0)
    clicked = test.order[known] > 0
    values = {}
    for name, chance in chances.items():
        click = np.clip(chance[known], 1e-9, 1 - 1e-9)
        values[name] = float(np.where(clicked, np.log(click), np.log1p(-click)).mean())
    return HeldOut(values, int(known.sum()))


def _rates(train: ClickLog, test: ClickLog) -> NDArray[np.float64]:
    positions = np.union1d(train.position, test.position).astype(np.int64)
    flat = np.ones(len(positions))
    return _chances(Propensities(positions, flat, flat, flat, "given"), train, test)


def _chances(model: ClickModel, train: ClickLog, test: ClickLog) -> NDArray[np.float64]:
    """For each impression of the test sessions the chance of a click; NaN where the model does not tell."""
    if isinstance(model, SessionModel):
        return model.chances(test)
    attracted = _attraction_of(click_labels(train, "examined", propensities=model), test)
    return model.at(test.position) * attracted + model.false_clicks_at(test.position)


def _attraction_of(labels: ClickLabels, log: ClickLog) -> NDArray[np.float64]:
    """The label of each impression's document; the prior's mean where there is none."""
    keys = labels.query.astype(np.int64) * max(1, len(labels.documents)) + labels.document
    wanted = pair_keys(log)
    found = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    values = np.where(keys[found] == wanted, labels.label[found], np.nan)
    mean = labels.prior[0] / sum(labels.prior) if sum(labels.prior) else 0.0
    return np.where(np.isnan(values), mean, values)

"""Training on clicks without learning positions, beside training on clicks as they are.

1. Propensities of the positions are found from the log, or given (``data/clicks/propensity.py``).
2. Clicks per examined impression are unbiased for what attracts, but a document that few users examined cannot be told
   from others by them. So a model m(x) of attractiveness is trained first: logistic regression by boosted trees on
   these rates, each document weighted by its examined impressions, for which σ(score) comes to the mean rate of like
   documents. For the documents of a query it comes from trees that have not seen the query (cross-fitting).
3. A document's label is its mean attractiveness given its features and its clicks,

       (clicks + s·m(x)) / (examined impressions + s),

   the posterior mean under a Beta prior with mean m(x) and the strength s that explains how far the documents' clicks
   stray from m(x). Documents that were never shown have m(x). With m(x) as regression model and clicks as correction
   this is the idea of doubly robust estimates (Oosterhuis 2023), with the weight between the two chosen by the log.
4. A ranker is trained on these labels, for NDCG with linear gains, as attractiveness is a gain already; and a naive one
   on click-through rates. Debiasing foretells clicks better and need not rank better: where the log is short, or its
   ranker strong, bias may be worth more than the noise of getting rid of it. Compare them on judged data if there is
   any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.clicks.labels import ClickLabels, click_labels, join_clicks
from gradrank.data.clicks.propensity import Propensities, estimate_propensities
from gradrank.data.clicks.readers import ClickLog
from gradrank.data.clicks.sessions import HeldOut, held_out_likelihood
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError
from gradrank.learners.trees.lambdamart import LambdaMART
from gradrank.models.ranker import Ranker

CLICKS = "clicks"
OBJECTIVE = f"NDCG(gain=linear, label={CLICKS})"
_FOLDS = 4
# Of the model of attractiveness. Clicks are noisy, but there are many, and the posterior mean corrects what it misses.
_MODEL = {"n_estimators": 200, "learning_rate": 0.1, "num_leaves": 15}
Said = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class ModelLabels:
    """Click labels that a model of attractiveness has smoothed."""

    data: RankingData
    """The data with the label source ``clicks``."""
    attraction: NDArray[np.float64]
    """m(x) of each document, by trees that have not seen its query."""
    strength: float
    """s: how many examined impressions the model is worth."""
    labeled: int
    """Documents with clicks or examined impressions of their own; the others have what the model says."""


def model_labels(
    data: RankingData,
    labels: ClickLabels,
    *,
    parameters: Mapping[str, Any] | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> ModelLabels:
    """Join clicks per examined impression to data, smoothed by a model of what attracts.

    Parameters
    ----------
    data
        Features, with document ids.
    labels
        Click labels of the method ``examined``; their own prior plays no part.
    parameters
        Parameters of the boosted trees of m(x).
    random_state, n_jobs
        Seed and threads.

    Examples
    --------
    >>> from gradrank import make_data
    >>> from gradrank.data.clicks.propensity import given_propensities
    >>> from gradrank.data.clicks.simulate import simulate_log
    >>> data = make_data(40, n_docs=8, n_features=5)
    >>> log = simulate_log(data, {"old": data.X[:, 0]}, 4000, shown=5)
    >>> examined = click_labels(log, "examined", propensities=given_propensities(1 / np.arange(1, 6)))
    >>> model_labels(data, examined, n_jobs=1).data.label_names
    ('label', 'clicks')
    """
    if labels.examined is None:
        raise DataError("model labels need click labels of the method examined")
    clicks, examined = _counts(data, labels)
    if not clicks.any():
        raise DataError("no document of the data was clicked at a position of known propensity")
    seen = examined > 0
    rate = np.full(data.n_docs, np.nan)
    rate[seen] = clicks[seen] / examined[seen]
    weighted = data.with_label(CLICKS, rate).with_document_weight(examined)
    attraction = _cross_fitted(weighted, {**_MODEL, **(parameters or {})}, random_state, n_jobs)
    strength = _strength(clicks, examined, attraction)
    smoothed = np.minimum((clicks + strength * attraction) / (examined + strength), 1.0)
    return ModelLabels(data.with_label(CLICKS, smoothed), attraction, strength, int(seen.sum()))


def _counts(data: RankingData, labels: ClickLabels) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Clicks and examined impressions of each document of the data, at positions of known propensity."""
    columns = []
    for values in (labels.examined_clicks, labels.examined):
        assert values is not None
        joined, _ = join_clicks(data, replace(labels, label=values), CLICKS)
        columns.append(np.nan_to_num(joined.label(CLICKS).astype(np.float64)))
    return columns[0], columns[1]


def _cross_fitted(
    data: RankingData, parameters: Mapping[str, Any], random_state: int, n_jobs: int | None
) -> NDArray[np.float64]:
    folds = min(_FOLDS, data.n_queries)
    if folds < 2:
        raise DataError("a model of what attracts needs two queries or more")
    fold = np.random.default_rng(random_state).permutation(data.n_queries) % folds
    scores = np.empty(data.n_docs)
    for number in range(folds):
        learner = LambdaMART(
            f"Logistic(label={CLICKS})", random_state=random_state, n_jobs=n_jobs, verbose=False, **parameters
        )
        ranker = learner.fit(data.take_queries(fold != number)).ranker_
        there = np.repeat(fold == number, data.sizes)
        scores[there] = ranker.grouped_scores(data.take_queries(fold == number), n_jobs=n_jobs)
    return np.asarray(1.0 / (1.0 + np.exp(-scores)))


def _strength(clicks: NDArray[np.float64], examined: NDArray[np.float64], attraction: NDArray[np.float64]) -> float:
    """The strength of a Beta prior around m(x), from how far clicks stray from it beyond chance (by moments)."""
    beyond = (clicks - examined * attraction) ** 2 - examined * attraction * (1 - attraction)
    variance = float(beyond.sum() / (examined**2).sum())
    spread = float(np.average(attraction * (1 - attraction), weights=examined))
    return min(max(spread / variance - 1, 1.0), 1e4) if variance > 0 else 1e4


@dataclass(frozen=True, eq=False)
class ClickTraining:
    """Rankers trained on a click log, and what the log told."""

    unbiased: Ranker
    naive: Ranker
    propensities: Propensities
    held_out: HeldOut
    strength: float


def train_on_clicks(
    data: RankingData,
    log: ClickLog,
    *,
    propensities: Propensities | None = None,
    method: str = "auto",
    objective: str = OBJECTIVE,
    parameters: Mapping[str, Any] | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    say: Said | None = None,
) -> ClickTraining:
    """Train a ranker on clicks freed of position bias, and a naive one beside it.

    Parameters
    ----------
    data
        Features, with document ids; its labels are not looked at.
    log
        The click log.
    propensities
        Known propensities; None = they are estimated.
    method
        How they are estimated; see :func:`gradrank.data.clicks.propensity.estimate_propensities`.
    objective
        What the rankers improve; reads the label source ``clicks``.
    parameters
        Parameters of the rankers' trees.
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
    >>> result = train_on_clicks(data, log, parameters={"n_estimators": 5}, n_jobs=1)
    >>> result.propensities.method
    'harvest'
    """
    say = say or (lambda _: None)
    say("estimating propensities")
    known = propensities or estimate_propensities(log, method, random_state=random_state)  # type: ignore[arg-type]
    held_out = held_out_likelihood(log, propensities, method=method, random_state=random_state)
    say("training a model of what attracts")
    examined = click_labels(log, "examined", propensities=known)
    smoothed = model_labels(data, examined, random_state=random_state, n_jobs=n_jobs)
    naive, _ = join_clicks(data, click_labels(log, "ctr"), CLICKS)
    rankers = []
    for name, source in (("the unbiased ranker", smoothed.data), ("the naive ranker", naive)):
        say(f"training {name}")
        learner = LambdaMART(
            objective, random_state=random_state, n_jobs=n_jobs, verbose=False, **dict(parameters or {})
        )
        rankers.append(learner.fit(source.with_document_weight(None)).ranker_)
    return ClickTraining(rankers[0], rankers[1], known, held_out, smoothed.strength)

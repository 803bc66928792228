"""Training on clicks without learning positions, beside training on clicks as they are.

1. A click model is fitted to the log, or given: propensities of the positions (``data/clicks/propensity.py``), with or
   without trust bias, or users who read from the top (``data/clicks/session_models.py``).
2. Clicks per examined impression are unbiased for what attracts, but a document that few users examined cannot be told
   from others by them. So a model m(x) of attractiveness is trained first: logistic regression by boosted trees on how
   often each document attracted and how often users looked at it in vain, both in expectation
   (``Evidence.expected``; Wang et al. 2018 learn propensities this way), for which σ(score) comes to the mean
   attractiveness of like documents. For the documents of a query it comes from trees that have not seen the query
   (cross-fitting), twice with other parts, which makes it less a matter of chance.
3. A document's label is its mean attractiveness given m(x) and its own clicks (``data/clicks/posterior.py``). Documents
   that were never shown have m(x). With m(x) as regression model and clicks as correction this is the idea of doubly
   robust estimates (Oosterhuis 2023), with the weight between the two chosen by the log.
4. A ranker is trained on these labels, for NDCG with linear gains, as attractiveness is a gain already; and a naive one
   on click-through rates. Debiasing foretells clicks better and need not rank better: where the log is short, or its
   ranker strong, bias may be worth more than the noise of getting rid of it. Compare them on judged data if there is
   any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.clicks.click_log import ClickLog
from gradrank.data.clicks.click_models import CLICK_MODELS, POSITION, ClickModel, HeldOut, held_out_likelihood
from gradrank.data.clicks.evidence import Evidence, evidence_of
from gradrank.data.clicks.joining import join_clicks
from gradrank.data.clicks.labels import click_labels
from gradrank.data.clicks.posterior import posterior_means
from gradrank.data.clicks.propensity import Propensities, estimate_propensities
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError
from gradrank.learners.trees.lambdamart import LambdaMART
from gradrank.models.ranker import Ranker

CLICKS = "clicks"
OBJECTIVE = f"NDCG(gain=linear, label={CLICKS})"
_FOLDS = 4
_CROSSINGS = 2
# Of the model of attractiveness. Clicks are noisy, but there are many, and the posterior mean corrects what it misses.
_MODEL = {"n_estimators": 400, "learning_rate": 0.1, "num_leaves": 15}
Said = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class ModelLabels:
    """Click labels that a model of attractiveness has smoothed."""

    data: RankingData
    """The data with the label source ``clicks``."""
    attraction: NDArray[np.float64]
    """m(x) of each document, by trees that have not seen its query."""
    labeled: int
    """Documents with examined impressions of their own; the others have what the model says."""


def model_labels(
    data: RankingData,
    evidence: Evidence,
    *,
    parameters: Mapping[str, Any] | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> ModelLabels:
    """Labels of documents from their clicks, smoothed by a model of what attracts.

    Parameters
    ----------
    data
        Features, with document ids.
    evidence
        What clicks tell of the documents; see :func:`gradrank.data.clicks.evidence.evidence_of`.
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
    >>> evidence = evidence_of(data, log, given_propensities(1 / np.arange(1, 6)))
    >>> model_labels(data, evidence, parameters={"n_estimators": 5}, n_jobs=1).data.label_names
    ('label', 'clicks')
    """
    if not evidence.hits.any():
        raise DataError("no document of the data was clicked at a position of known propensity")
    examined = evidence.examined
    # What is known of each document by its clicks and those of all documents together.
    alike = np.full(data.n_docs, float(np.average(np.nan_to_num(evidence.rate), weights=examined)))
    attracted, in_vain = evidence.expected(posterior_means(evidence, alike))
    looked = attracted + in_vain
    share = np.where(looked > 0, attracted / np.where(looked > 0, looked, 1.0), np.nan)
    weighted = data.with_label(CLICKS, share).with_document_weight(looked)
    given = {**_MODEL, **(parameters or {})}
    scores = [_cross_fitted(weighted, given, random_state + number, n_jobs) for number in range(_CROSSINGS)]
    attraction = 1.0 / (1.0 + np.exp(-np.mean(scores, axis=0)))
    smoothed = posterior_means(evidence, attraction)
    return ModelLabels(data.with_label(CLICKS, smoothed), attraction, int(np.count_nonzero(examined > 0)))


def _cross_fitted(
    data: RankingData, parameters: Mapping[str, Any], random_state: int, n_jobs: int | None
) -> NDArray[np.float64]:
    """Log-odds of each document, by trees that have not seen its query."""
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
    return scores


@dataclass(frozen=True, eq=False)
class ClickTraining:
    """Rankers trained on a click log, and what the log told."""

    unbiased: Ranker
    naive: Ranker
    model: ClickModel
    """The click model that the unbiased ranker rests on."""
    held_out: HeldOut
    labeled: int
    """Documents with examined impressions of their own."""

    @property
    def propensities(self) -> Propensities:
        """Those of the click model, if it is one of positions."""
        if not isinstance(self.model, Propensities):
            raise DataError(f"the click model {self.model.kind} has no propensities of positions")
        return self.model


def train_on_clicks(
    data: RankingData,
    log: ClickLog,
    *,
    click_model: str = POSITION,
    propensities: Propensities | None = None,
    method: str = "auto",
    objective: str = OBJECTIVE,
    parameters: Mapping[str, Any] | None = None,
    model_parameters: Mapping[str, Any] | None = None,
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
    click_model
        How users are taken to look and click: ``position``, ``trust``, ``cascade`` or ``dbn``; see
        :data:`gradrank.data.clicks.click_models.CLICK_MODELS`.
    propensities
        Known propensities, for the model ``position``; None = they are estimated.
    method
        How they are estimated; see :func:`gradrank.data.clicks.propensity.estimate_propensities`.
    objective
        What the rankers improve; reads the label source ``clicks``.
    parameters
        Parameters of the rankers' trees.
    model_parameters
        Parameters of the trees of m(x), the model of what attracts; where they are not given, 400 trees of 15 leaves.
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
    >>> few = {"n_estimators": 5}
    >>> result = train_on_clicks(data, log, parameters=few, model_parameters=few, n_jobs=1)
    >>> result.propensities.method
    'harvest'
    """
    say = say or (lambda _: None)
    model, held_out = fitted_click_model(log, click_model, propensities, method, random_state, say)
    say("training a model of what attracts")
    evidence = evidence_of(data, log, model)
    smoothed = model_labels(data, evidence, parameters=model_parameters, random_state=random_state, n_jobs=n_jobs)
    naive, _ = join_clicks(data, click_labels(log, "ctr"), CLICKS)
    rankers = []
    for name, source in (("the unbiased ranker", smoothed.data), ("the naive ranker", naive)):
        say(f"training {name}")
        learner = LambdaMART(
            objective, random_state=random_state, n_jobs=n_jobs, verbose=False, **dict(parameters or {})
        )
        rankers.append(learner.fit(source.with_document_weight(None)).ranker_)
    return ClickTraining(rankers[0], rankers[1], model, held_out, smoothed.labeled)


def fitted_click_model(
    log: ClickLog, name: str, propensities: Propensities | None, method: str, random_state: int, say: Said
) -> tuple[ClickModel, HeldOut]:
    """The click model of a name, and how well it foretells clicks."""
    if name not in CLICK_MODELS:
        raise DataError(f"click model {name!r} does not exist, expected one of {', '.join(CLICK_MODELS)}")
    if name != POSITION and (propensities is not None or method != "auto"):
        raise DataError(f"propensities, and how they are found, belong to the click model {POSITION}, not to {name}")
    say("estimating propensities" if name == POSITION else f"fitting the click model {name}")
    held_out = held_out_likelihood(log, propensities, models=[name], method=method, random_state=random_state)
    if name == POSITION:
        # With intervals, which the models by name do without.
        model = propensities or estimate_propensities(log, method, random_state=random_state)  # type: ignore[arg-type]
        return model, held_out
    return CLICK_MODELS[name](log, method), held_out

"""Click labels: what the clicks of many users say about a document for a query.

Six labels in [0, 1] from a :class:`~gradrank.data.clicks.click_log.ClickLog`, per query and document:

``last``
    share of the sessions showing the document in which it was clicked *last*. Svore et al. (2011, §6)
    use it against position bias: who stops after a click was probably satisfied by it;
``ctr``
    share of the sessions showing the document in which it was clicked at all;
``debiased``
    attractiveness in the position-based model (Richardson et al. 2007; Chuklin et al. 2015, §3.3): a
    click needs the position to be examined, with probability γ_p of the position alone, and the
    document to attract, with probability α_qd of query and document alone, P(click) = γ_p α_qd. Both are
    estimated by expectation maximization. Only products matter to the likelihood, so γ is scaled to
    a maximum of 1. The two can be told apart only as far as documents are seen at several positions.
``examined``
    clicks per impression that users examined: Σ clicks / Σ propensities of the positions at which the
    document was shown, for propensities that are known (``propensity.py``). Where positions were chosen by
    chance this is the inverse-propensity estimate of attractiveness with the least variance: what was
    clicked at a position that few examine counts for many, and no impression has a huge weight. Impressions at
    positions of unknown propensity are left out; a ratio above 1 becomes 1. With false clicks (trust bias) it is
    Σ (clicks − false clicks) / Σ propensities, at least 0 (affine correction, Vardasbi et al. 2020);
``cascade``, ``dbn``
    under models of users who read from the top (``session_models.py``): attractiveness, and attractiveness times
    satisfaction.

A prior (a, b) adds a clicked and b unclicked sessions to each document, which tames documents shown a
few times: (clicks + a) / (sessions + a + b). For ``examined`` it is found from the log if it is not given: the Beta
distribution with the mean and variance that attractiveness has among the documents of the log (empirical Bayes), so
that a document that hardly anybody examined gets the mean and not 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gradrank.data.clicks.click_log import ClickLog
from gradrank.data.clicks.position_model import count_cells, fit_position_model
from gradrank.data.clicks.prior import suggested_prior
from gradrank.data.clicks.propensity import Propensities
from gradrank.data.clicks.session_models import SESSION_MODELS, fit_session_model
from gradrank.data.strings import Strings
from gradrank.errors import DataError

METHODS = ("last", "ctr", "debiased", "examined", "cascade", "dbn")


@dataclass(frozen=True, eq=False)
class Examination:
    """How likely users look at a position, by the position-based model."""

    position: NDArray[np.int64]
    """Positions that occur in the log, from 1."""
    probability: NDArray[np.float64]
    """Probability that a user examines the position, relative to the best one."""
    log_likelihood: NDArray[np.float64]
    """Log likelihood per impression (with the prior, if any) at the start of each iteration."""
    converged: bool
    """Whether the log likelihood had stopped rising."""


@dataclass(frozen=True, eq=False)
class ClickLabels:
    """One click label for each query and document that was shown.

    Row ``i`` is about query ``queries[query[i]]`` and document ``documents[document[i]]``; a pair
    occurs once.
    """

    queries: Strings
    documents: Strings
    query: NDArray[np.int32]
    document: NDArray[np.int32]
    label: NDArray[np.float64]
    """In [0, 1]; NaN where the document was shown in too few sessions."""
    impressions: NDArray[np.int64]
    """Sessions that showed the document."""
    clicks: NDArray[np.int64]
    """Sessions that clicked it."""
    last_clicks: NDArray[np.int64]
    """Sessions that clicked it last."""
    examination: Examination | None = None
    """The position-based model's curve; only for the method ``debiased``."""
    examined: NDArray[np.float64] | None = None
    """Impressions that were examined, in expectation; only for the method ``examined``."""
    examined_clicks: NDArray[np.float64] | None = None
    """Clicks at positions of known propensity; only for the method ``examined``."""
    prior: tuple[float, float] = (0.0, 0.0)
    """Clicked and unclicked sessions that were added to each document."""

    def __len__(self) -> int:
        return len(self.label)

    def __repr__(self) -> str:
        dropped = int(np.isnan(self.label).sum())
        return (
            f"ClickLabels({len(self):,} documents of {len(self.queries):,} queries, "
            f"{dropped:,} of them shown too rarely for a label)"
        )


def click_labels(
    log: ClickLog,
    method: str = "last",
    *,
    min_impressions: int = 1,
    prior: tuple[float, float] | None = None,
    propensities: Propensities | None = None,
) -> ClickLabels:
    """Labels of all documents shown, by one of :data:`METHODS`.

    Parameters
    ----------
    log
        The click log.
    method
        One of :data:`METHODS`.
    min_impressions
        Documents shown in fewer sessions get NaN.
    prior
        (a, b) as above; None = none, or for ``examined`` the one that the log suggests.
    propensities
        How likely each position is examined, for the method ``examined``.

    Examples
    --------
    >>> from gradrank.data.clicks.click_log import click_log
    >>> log = click_log([("q", ["a", "b"], ["a", "b"]), ("q", ["a", "b"], ["a"])])
    >>> click_labels(log, "last").label.tolist()
    [0.5, 0.5]
    >>> click_labels(log, "ctr").label.tolist()
    [1.0, 0.5]
    """
    check_method(method, prior, propensities)
    width = len(log.documents)
    keys = np.repeat(log.query.astype(np.int64), np.diff(log.indptr)) * width + log.document
    keys, pair = np.unique(keys, return_inverse=True)
    pair = pair.reshape(-1)
    clicked = log.order > 0
    counted = [np.ones(len(pair)), clicked, log.last]
    if propensities is not None:
        counted += credited(propensities, log.position, clicked)
    sums = np.empty((len(keys), len(counted)))
    for column, values in enumerate(counted):
        sums[:, column] = np.bincount(pair, weights=values, minlength=len(keys))
    labels = labels_of_counts(
        log.queries, log.documents, keys // width, keys % width, sums,
        "ctr" if method in ("debiased", *SESSION_MODELS) else method,
        min_impressions=min_impressions, prior=prior,
    )  # fmt: skip
    if method in SESSION_MODELS:
        if prior is not None:
            raise DataError(f"the label {method} has a prior of its own")
        model = fit_session_model(log, "dbn" if method == "dbn" else "cascade")
        useful = model.attraction if method == "cascade" else model.attraction * model.satisfaction
        return replace(labels, label=np.where(labels.impressions < min_impressions, np.nan, useful))
    if method != "debiased":
        return labels
    label, examination = _position_based_model(pair, len(keys), log.position, clicked, labels.prior)
    label = np.where(labels.impressions < min_impressions, np.nan, label)
    return replace(labels, label=label, examination=examination)


def credited(
    propensities: Propensities, position: NDArray[np.int32] | NDArray[np.int64], clicked: NDArray[np.bool_]
) -> list[NDArray[np.float64]]:
    """For each impression its propensity, its click less the false clicks of its position, and the propensity squared.

    All are 0 at positions of unknown propensity.
    """
    chance = np.nan_to_num(propensities.at(position))
    clicks = np.where(chance > 0, clicked - np.nan_to_num(propensities.false_clicks_at(position)), 0.0)
    return [chance, clicks, chance**2]


def check_method(method: str, prior: tuple[float, float] | None, propensities: Propensities | None) -> None:
    """Refuse what does not go together."""
    if method not in METHODS:
        raise DataError(f"click label {method!r} does not exist, expected one of {', '.join(METHODS)}")
    if (method == "examined") != (propensities is not None):
        raise DataError("propensities go with the method examined, and it with them")
    if prior is not None and (len(prior) != 2 or not all(np.isfinite(value) and value >= 0 for value in prior)):
        raise DataError(f"prior is {prior}, expected two finite numbers of 0 or more")


def labels_of_counts(
    queries: Strings,
    documents: Strings,
    query: NDArray[np.int64],
    document: NDArray[np.int64],
    sums: NDArray[np.float64],
    method: str,
    *,
    min_impressions: int,
    prior: tuple[float, float] | None,
) -> ClickLabels:
    """Labels ``last``, ``ctr`` and ``examined`` from what was counted for each query and document.

    Parameters
    ----------
    queries, documents, query, document
        As for :class:`ClickLabels`.
    sums
        A row for each: impressions, clicks, last clicks; for ``examined`` also the sums of propensities, of clicks at
        positions of known propensity, and of squared propensities.
    method, min_impressions, prior
        As for :func:`click_labels`.

    >>> names, sums = Strings.of(["q"]), np.array([[4.0, 2.0, 1.0]])
    >>> zero = np.zeros(1, dtype=np.int64)
    >>> labels_of_counts(names, names, zero, zero, sums, "last", min_impressions=1, prior=None).label.tolist()
    [0.25]
    """
    impressions, clicks, last_clicks = (sums[:, column].astype(np.int64) for column in range(3))
    examined = examined_clicks = None
    if method == "examined":
        examined, examined_clicks, squares = sums[:, 3], sums[:, 4], sums[:, 5]
        prior = suggested_prior(examined_clicks, examined, squares) if prior is None else prior
        with np.errstate(invalid="ignore", divide="ignore"):
            # False clicks are taken off as expected, and may have been fewer.
            label = np.clip((examined_clicks + prior[0]) / (examined + sum(prior)), 0.0, 1.0)
        label[examined == 0] = np.nan
    else:
        prior = (0.0, 0.0) if prior is None else prior
        label = ((last_clicks if method == "last" else clicks) + prior[0]) / (impressions + sum(prior))
    return ClickLabels(
        queries=queries,
        documents=documents,
        query=query.astype(np.int32),
        document=document.astype(np.int32),
        label=np.where(impressions < min_impressions, np.nan, label),
        impressions=impressions,
        clicks=clicks,
        last_clicks=last_clicks,
        examined=examined,
        examined_clicks=examined_clicks,
        prior=prior,
    )


def _position_based_model(
    pair: NDArray[np.int64],
    n_pairs: int,
    position: NDArray[np.int32],
    clicked: NDArray[np.bool_],
    prior: tuple[float, float],
) -> tuple[NDArray[np.float64], Examination]:
    """Attractiveness of the pairs and examination of the positions, by expectation maximization."""
    positions, place = np.unique(position, return_inverse=True)
    fitted = fit_position_model(count_cells(pair, place.reshape(-1), clicked, n_pairs, len(positions)), prior)
    scale = fitted.examined.max(initial=0) or 1.0
    examination = Examination(positions.astype(np.int64), fitted.examined / scale, fitted.trace, fitted.converged)
    return fitted.attraction * scale, examination

"""What clicks tell of the documents of some data, in one form for all click models.

A row is about a document: so many impressions were clicked and so many were not, each clicked with probability
slope·γ + offset for the document's attractiveness γ. Under the position-based model slope is the propensity of a
position and offset is 0; with trust bias both belong to the position; under a model of sessions that are read from the
top the impressions are those that were examined, in expectation, with slope 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradrank.data.clicks.click_log import ClickLog
from gradrank.data.clicks.propensity import Propensities
from gradrank.data.clicks.session_models import SessionModel
from gradrank.data.clicks.sessions import rows_of_log
from gradrank.data.ranking_data import RankingData


@dataclass(frozen=True, eq=False)
class Evidence:
    """Clicks and impressions of documents, and what they depend on."""

    n_docs: int
    """Documents of the data."""
    document: NDArray[np.int64]
    """Row of the data."""
    hits: NDArray[np.float64]
    misses: NDArray[np.float64]
    slope: NDArray[np.float64]
    offset: NDArray[np.float64]

    @property
    def examined(self) -> NDArray[np.float64]:
        """Σ slope over the impressions of each document of the data: how much it was examined."""
        return self._sums((self.hits + self.misses) * self.slope)

    @property
    def rate(self) -> NDArray[np.float64]:
        """(clicks − Σ offset) / Σ slope of each document, an unbiased estimate of γ; NaN if nobody examined it."""
        examined = self.examined
        clicks = self._sums(self.hits - (self.hits + self.misses) * self.offset)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(examined > 0, clicks / examined, np.nan)

    def expected(self, attraction: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How often each document attracted and how often it was looked at in vain, in expectation (EM's first step).

        A user looks with probability slope, and then clicks with γ; clicks whatever it is with probability offset; or
        does nothing. So who clicked has looked with probability slope·γ/(slope·γ + offset), and who did not with
        slope·(1 − γ)/(1 − slope·γ − offset). The share of the first number is a rate from 0 to 1, unlike ``rate``,
        which few clicks at a position that is seldom examined may take anywhere; at the γ that gives itself again,
        clicks are likeliest.

        Parameters
        ----------
        attraction
            γ of each document of the data, as it is known so far.

        Examples
        --------
        >>> one = Evidence(1, np.array([0]), np.array([1.0]), np.array([3.0]), np.array([0.5]), np.array([0.0]))
        >>> [round(float(number[0]), 4) for number in one.expected(np.array([0.5]))]  # 3 · 0.25/0.75 looks in vain
        [1.0, 1.0]
        """
        level = np.clip(attraction, 1e-6, 1 - 1e-6)[self.document]
        click = self.slope * level + self.offset
        genuine = self.slope * level / np.maximum(click, 1e-12)
        in_vain = np.minimum(self.slope * (1 - level) / np.maximum(1 - click, 1e-12), 1.0)
        return self._sums(self.hits * genuine), self._sums(self.misses * in_vain)

    def log_likelihood(self, levels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of each document's clicks, if its attractiveness were each of the levels."""
        out = np.zeros((self.n_docs, len(levels)))
        for column, level in enumerate(levels):
            click = np.clip(self.slope * level + self.offset, 1e-12, 1 - 1e-12)
            out[:, column] = self._sums(self.hits * np.log(click) + self.misses * np.log1p(-click))
        return out

    def _sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(self.document, weights=values, minlength=self.n_docs).astype(np.float64)


def evidence_of(data: RankingData, log: ClickLog, model: Propensities | SessionModel) -> Evidence:
    """What a log tells of the documents of the data under a click model.

    Parameters
    ----------
    data
        Data with document ids.
    log
        The click log; documents that the data does not have, and positions of unknown propensity, are left out.
    model
        Propensities, with or without false clicks, or a model of sessions.

    Examples
    --------
    >>> from gradrank.data.clicks.propensity import given_propensities
    >>> from gradrank.data.clicks.click_log import click_log
    >>> data = RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=["q", "q"], docid=["a", "b"])
    >>> log = click_log([("q", ["a", "b"], ["b"]), ("q", ["a", "b"], ["a"])])
    >>> evidence_of(data, log, given_propensities([1.0, 0.5])).rate.tolist()  # one click of two; of one examined
    [0.5, 1.0]
    """
    row = rows_of_log(log, data)
    clicked = log.order > 0
    if isinstance(model, SessionModel):
        seen = model.examined(log)
        kept = row >= 0
        hits = np.bincount(row[kept & clicked], minlength=data.n_docs).astype(np.float64)
        shown = np.bincount(row[kept], weights=seen[kept], minlength=data.n_docs)
        document = np.flatnonzero(shown > 0)
        ones = np.ones(len(document))
        return Evidence(
            data.n_docs,
            document,
            hits[document],
            np.maximum(shown - hits, 0.0)[document],
            ones,
            np.zeros(len(document)),
        )
    slope = model.at(log.position)
    kept = (row >= 0) & ~np.isnan(slope)
    width = int(log.position.max(initial=0)) + 1
    keys, cell = np.unique(row[kept] * width + log.position[kept], return_inverse=True)
    cell = cell.reshape(-1)
    shown = np.bincount(cell, minlength=len(keys)).astype(np.float64)
    hits = np.bincount(cell[clicked[kept]], minlength=len(keys)).astype(np.float64)
    position = keys % width
    return Evidence(data.n_docs, keys // width, hits, shown - hits, model.at(position), model.false_clicks_at(position))

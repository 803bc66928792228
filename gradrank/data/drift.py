"""Whether live data is still spread as the training data was: PSI per feature, new values, missing values, labels.

The population stability index of a feature is Σ_b (live_b − train_b) · ln(live_b / train_b) over its bins, with shares
of the documents that have a value (half a document is added to each bin, so that an empty one is no infinity). By habit
0.1 is a small change, 0.25 a large one (Siddiqi, Credit Risk Scorecards, 2006). Few documents differ by chance alone:
if nothing has changed, PSI / (1/n + 1/m) follows about χ² with bins − 1 degrees of freedom (Yurdakul, 2018), and only
what is beyond its 99.9 % point counts. Documents of a query are alike, so that chance can do a little more than that.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.feature_profile import MOST_DOCUMENTS, FeatureProfile, Spread, sampled_documents
from gradrank.data.interpret import takes_frames
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError

_CERTAIN = 0.999
_CERTAIN_Z = 3.29  # the same, two-sided, for a difference of two shares


@dataclass(frozen=True)
class Thresholds:
    """Above what a change counts."""

    psi: float = 0.2
    missing: float = 0.05
    """Difference of the shares of missing values."""
    new_values: float = 0.01
    """Share of documents with a value that training did not know, for features of few values."""
    label_psi: float = 0.2

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value >= 0.0:
                raise DataError(f"the threshold of {name.replace('_', ' ')} is {value}, expected 0 or more")


@dataclass(frozen=True)
class Change:
    """What has become of one feature or label source."""

    name: str
    psi: float
    """Population stability index; NaN if one side has no values."""
    chance: float
    """What PSI reaches by chance in 1 of 1,000 cases although nothing has changed."""
    missing_before: float
    missing_now: float
    """Shares of documents without a value."""
    new_values: float
    """Share, of documents with a value, whose value training did not know; 0 for features of many values."""
    outside: float
    """Share below the lowest or above the highest value of training."""
    faults: tuple[str, ...]
    """What is above its threshold: ``spread``, ``missing values``, ``new values``."""
    used: bool = True
    """Whether the model uses the feature; others cannot change a score."""

    @property
    def severity(self) -> tuple[bool, float]:
        """What to sort by: faults of used features first, then by how far the spread has moved."""
        moved = 0.0 if np.isnan(self.psi) else self.psi
        return bool(self.faults) and self.used, moved + abs(self.missing_now - self.missing_before) + self.new_values


@dataclass(frozen=True)
class Drift:
    """What :func:`find_drift` found."""

    documents: int
    features: tuple[Change, ...]
    labels: tuple[Change, ...]
    thresholds: Thresholds

    @property
    def faults(self) -> tuple[Change, ...]:
        """Used features and labels with something above its threshold, worst first."""
        found = [change for change in (*self.labels, *self.features) if change.faults and change.used]
        return tuple(sorted(found, key=lambda change: change.severity, reverse=True))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "documents": self.documents,
            "faults": len(self.faults),
            "thresholds": asdict(self.thresholds),
            "labels": [asdict(change) for change in self.labels],
            "features": [asdict(change) for change in self.features],
        }


@takes_frames("data")
def find_drift(
    data: RankingData,
    profile: FeatureProfile,
    *,
    used: tuple[str, ...] | None = None,
    thresholds: Thresholds | None = None,
    most_documents: int = MOST_DOCUMENTS,
    random_state: int = 0,
) -> Drift:
    """Compare data with the profile of the data that a model was trained on.

    Parameters
    ----------
    data
        Live data, with the profile's features in its order.
    profile
        What :func:`~gradrank.data.feature_profile.profile_features` found in the training data.
    used
        Features that the model uses; all unless given.
    thresholds
        Above what a change counts.
    most_documents
        Of more documents than this a random sample is looked at.
    random_state
        Seed of the sample.

    Examples
    --------
    >>> from gradrank.data.feature_profile import profile_features
    >>> rng = np.random.default_rng(0)
    >>> before = RankingData.from_arrays(rng.normal(size=(1000, 2)), qid=np.repeat(range(100), 10))
    >>> moved = RankingData.from_arrays(rng.normal(size=(1000, 2)) + [0.0, 1.0], qid=np.repeat(range(100), 10))
    >>> [change.name for change in find_drift(moved, profile_features(before)).faults]
    ['f2']
    """
    if data.feature_names != profile.feature_names:
        raise DataError("the data does not have the features of the profile, in its order")
    limits = thresholds or Thresholds()
    rows = sampled_documents(data, most_documents, random_state)
    matrix = data.X[rows]
    relevant = set(profile.feature_names if used is None else used)
    features = [
        _change(spread, matrix[:, place], limits, limits.psi, spread.name in relevant)
        for place, spread in enumerate(profile.features)
    ]
    labels = [
        _change(spread, data.labels[spread.name][rows], limits, limits.label_psi, True)
        for spread in profile.labels
        if spread.name in data.labels and not np.isnan(data.labels[spread.name]).all()
    ]
    return Drift(
        len(matrix),
        tuple(sorted(features, key=lambda change: change.severity, reverse=True)),
        tuple(labels),
        limits,
    )


def _change(spread: Spread, column: NDArray[Any], limits: Thresholds, most: float, used: bool) -> Change:
    counts, unknown, missing = spread.count(column)
    present = len(column) - missing
    psi, chance = _psi(np.asarray(spread.counts, dtype=np.float64), counts.astype(np.float64), float(unknown))
    before = spread.missing / max(1, spread.missing + spread.present)
    now = missing / max(1, len(column))
    new = unknown / max(1, present)
    outside = 0.0
    if spread.low is not None and present:
        outside = float(((column < spread.low) | (column > spread.high)).sum()) / present
    faults = []
    # A feature that has lost all its values shows as missing.
    if psi > most and psi > chance:
        faults.append("spread")
    if abs(now - before) > limits.missing and _certain(before, now, spread.missing + spread.present, len(column)):
        faults.append("missing values")
    if new > limits.new_values:
        faults.append("new values")
    return Change(spread.name, psi, chance, before, now, new, outside, tuple(faults), used)


def _psi(before: NDArray[np.float64], now: NDArray[np.float64], unknown: float) -> tuple[float, float]:
    """PSI and its 99.9 % point if nothing has changed; values without a bin are one bin more."""
    from scipy.stats import chi2

    if unknown:
        before, now = np.append(before, 0.0), np.append(now, unknown)
    n, m = before.sum(), now.sum()
    if not n or not m:
        return float("nan"), float("nan")
    if len(before) < 2:
        return 0.0, 0.0
    old = (before + 0.5) / (n + 0.5 * len(before))
    new = (now + 0.5) / (m + 0.5 * len(now))
    found = float(((new - old) * np.log(new / old)).sum())
    return found, float(chi2.ppf(_CERTAIN, len(before) - 1)) * float(1.0 / n + 1.0 / m)


def _certain(before: float, now: float, n: int, m: int) -> bool:
    """Whether two shares differ by more than chance makes them."""
    if not n or not m:
        return False
    pooled = (before * n + now * m) / (n + m)
    error = sqrt(pooled * (1.0 - pooled) * (1.0 / n + 1.0 / m))
    return abs(now - before) > _CERTAIN_Z * error

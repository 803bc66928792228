"""How the features and labels of data are spread: small enough to keep with a model, to compare live data with later.

A feature of few distinct values (at most 20) keeps how often each occurs; any other one is cut at quantiles into bins
and keeps how many documents fall into each. Missing values are counted apart. Of large data a sample of documents is
looked at, the same one for the same seed.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.interpret import takes_frames
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError
from gradrank.runtime.files import replacing

FORMAT = "gradrank-profile"
VERSION = 1
BINS = 10
MOST_VALUES = 20
MOST_DOCUMENTS = 100_000


@dataclass(frozen=True)
class Spread:
    """How the values of one feature or label source are spread."""

    name: str
    values: tuple[float, ...] | None
    """The distinct values, lowest first, if they are few."""
    edges: tuple[float, ...] | None
    """Upper ends of all bins but the last one, otherwise; a value on an edge belongs below it."""
    counts: tuple[int, ...]
    """Documents of each value or bin."""
    missing: int
    """Documents without a value."""
    low: float | None
    high: float | None
    """Lowest and highest value; None if there is none."""

    @property
    def present(self) -> int:
        """Documents with a value."""
        return sum(self.counts)

    def count(self, column: NDArray[Any]) -> tuple[NDArray[np.int64], int, int]:
        """Other data in the same bins: their counts, documents with a value that has no bin, and missing ones."""
        there = column[~np.isnan(column)].astype(np.float64)
        missing = len(column) - len(there)
        if self.values is not None:
            known = np.asarray(self.values)
            place = np.minimum(np.searchsorted(known, there), max(0, len(known) - 1))
            fits = known[place] == there if len(known) else np.zeros(len(there), dtype=bool)
            return np.bincount(place[fits], minlength=len(known)), int((~fits).sum()), missing
        place = np.searchsorted(np.asarray(self.edges), there, side="left")
        return np.bincount(place, minlength=len(self.counts)), 0, missing


@dataclass(frozen=True)
class FeatureProfile:
    """The spreads of all features and label sources of data, as :func:`profile_features` finds them."""

    queries: int
    documents: int
    looked_at: int
    """Documents that were counted: all, or a sample."""
    features: tuple[Spread, ...]
    labels: tuple[Spread, ...]

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(spread.name for spread in self.features)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "queries": self.queries,
            "documents": self.documents,
            "looked_at": self.looked_at,
            "features": [_plain(spread) for spread in self.features],
            "labels": [_plain(spread) for spread in self.labels],
        }

    @classmethod
    def from_dict(cls, value: Any) -> FeatureProfile:
        """The inverse of :meth:`to_dict`; anything else is a DataError."""
        if not isinstance(value, Mapping) or value.get("format") != FORMAT:
            raise DataError("is not a profile that 'gradrank profile' wrote")
        if value.get("version") != VERSION:
            raise DataError(f"has profile version {value.get('version')!r}, this gradrank reads version {VERSION}")
        try:
            found = cls(
                int(value["queries"]),
                int(value["documents"]),
                int(value["looked_at"]),
                tuple(_spread(item) for item in value["features"]),
                tuple(_spread(item) for item in value["labels"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise DataError(f"is a damaged profile ({type(error).__name__}: {error})") from None
        if len(set(found.feature_names)) < len(found.features):
            raise DataError("is a damaged profile: a feature occurs twice")
        return found

    def save(self, path: str | Path) -> None:
        """Write a JSON file, or nothing if it fails.

        Parameters
        ----------
        path
            The file; :func:`load_profile` reads it.
        """
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(self.to_dict(), allow_nan=False) + "\n", encoding="utf-8")


def load_profile(path: str | Path) -> FeatureProfile:
    """Read what :meth:`FeatureProfile.save` wrote.

    Parameters
    ----------
    path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "profile.json"
    >>> data = RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=[1, 1])
    >>> profile_features(data).save(path)
    >>> load_profile(path) == profile_features(data)
    True
    """
    try:
        value = json.loads(Path(path).read_bytes())
    except FileNotFoundError:
        raise DataError("there is no such file", path=path) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path=path) from None
    except (ValueError, RecursionError):
        raise DataError("is not JSON, expected a profile that 'gradrank profile' wrote", path=path) from None
    try:
        return FeatureProfile.from_dict(value)
    except DataError as error:
        raise DataError(error.message, path=path) from None


@takes_frames("data")
def profile_features(
    data: RankingData, *, bins: int = BINS, most_documents: int = MOST_DOCUMENTS, random_state: int = 0
) -> FeatureProfile:
    """How the features and labels of data are spread.

    Parameters
    ----------
    data
        The data.
    bins
        Bins of a feature of many values, of about equally many documents.
    most_documents
        Of more documents than this a random sample is looked at.
    random_state
        Seed of the sample.

    Examples
    --------
    >>> data = RankingData.from_arrays([[0.0], [0.0], [1.0], [float("nan")]], [0, 0, 1, 2], qid=[1, 1, 2, 2])
    >>> spread = profile_features(data).features[0]
    >>> spread.values, spread.counts, spread.missing
    ((0.0, 1.0), (2, 1), 1)
    """
    if bins < 2:
        raise DataError(f"bins is {bins}, expected 2 or more")
    rows = sampled_documents(data, most_documents, random_state)
    # Once, row by row: data may be a memory map that is larger than memory.
    matrix = data.X[rows]
    spreads = [_spread_of(name, matrix[:, place], bins) for place, name in enumerate(data.feature_names)]
    labels = tuple(_spread_of(name, label[rows], bins) for name, label in data.labels.items())
    return FeatureProfile(data.n_queries, data.n_docs, len(matrix), tuple(spreads), labels)


def sampled_documents(data: RankingData, most: int, random_state: int) -> Any:
    """What selects the documents to look at: all of them, or a random sample in their order."""
    if data.n_docs <= most:
        return slice(None)
    return np.sort(np.random.default_rng(random_state).choice(data.n_docs, most, replace=False))


def _spread_of(name: str, column: NDArray[Any], bins: int) -> Spread:
    there = np.sort(column[~np.isnan(column)]).astype(np.float64)
    missing = len(column) - len(there)
    if not len(there):
        return Spread(name, (), None, (), missing, None, None)
    starts = np.flatnonzero(np.concatenate(([True], there[1:] != there[:-1])))
    low, high = float(there[0]), float(there[-1])
    if len(starts) <= MOST_VALUES:
        values = tuple((there[starts] + 0.0).tolist())
        counts = np.diff(np.append(starts, len(there)))
        return Spread(name, values, None, tuple(counts.tolist()), missing, low, high)
    # Quantiles that are values of the data: half of the features of ranking data are mostly zero.
    cuts = np.unique(there[(np.arange(1, bins) * len(there)) // bins])
    cuts = cuts[cuts < high]
    counts = np.diff(np.concatenate(([0], np.searchsorted(there, cuts, side="right"), [len(there)])))
    return Spread(name, None, tuple(cuts.tolist()), tuple(counts.tolist()), missing, low, high)


def _plain(spread: Spread) -> dict[str, Any]:
    found: dict[str, Any] = {"name": spread.name, "counts": list(spread.counts), "missing": spread.missing}
    found |= {"edges": list(spread.edges)} if spread.edges is not None else {"values": list(spread.values or ())}
    return found if spread.low is None else {**found, "low": spread.low, "high": spread.high}


def _spread(value: Mapping[str, Any]) -> Spread:
    edges = value.get("edges")
    cuts = tuple(map(float, edges if edges is not None else value["values"]))
    counts = tuple(map(int, value["counts"]))
    if len(counts) != len(cuts) + (edges is not None) or any(a >= b for a, b in itertools.pairwise(cuts)):
        raise ValueError(f"counts of {value['name']!r} do not fit its bins")
    if min(counts, default=0) < 0 or int(value["missing"]) < 0 or not all(map(np.isfinite, cuts)):
        raise ValueError(f"counts of {value['name']!r} are not counts")
    ends = [None if value.get(end) is None else float(value[end]) for end in ("low", "high")]
    return Spread(
        str(value["name"]),
        None if edges is not None else cuts,
        None if edges is None else cuts,
        counts,
        int(value["missing"]),
        *ends,
    )

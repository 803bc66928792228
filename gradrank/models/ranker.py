"""What every ranker can do: score documents, tell its features, and be saved."""

from __future__ import annotations

import json
import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import ModelError
from gradrank.runtime.files import replacing

FORMAT = "gradrank-model"
VERSION = 1

Matrix = NDArray[np.float32] | NDArray[np.float64]

# Names that tools make up for features that have none: ours and LETOR's, LightGBM's, XGBoost's.
_MADE_UP_NAME = re.compile(r"(?:f|Column_)\d+")


class Ranker(ABC):
    """Gives each document a score; documents of a query are shown by descending score.

    A subclass says how it scores a matrix of its own features (:meth:`_score`) and how it turns into
    plain numbers and back (:meth:`_payload`, :meth:`_from_payload`); everything else is here.

    >>> from gradrank.models.linear import LinearRanker
    >>> ranker: Ranker = LinearRanker([2.0, 1.0], feature_names=["a", "b"])
    >>> ranker.predict([[1.0, 0.5]]).tolist()
    [2.5]
    """

    kind: ClassVar[str]
    """Short name of the class in saved files."""

    def __init__(self, feature_names: Sequence[str], training: Mapping[str, Any] | None = None) -> None:
        self._feature_names = tuple(str(name) for name in feature_names)
        twice = [name for name, count in Counter(self._feature_names).items() if count > 1]
        if twice:
            raise ModelError(f"feature name {twice[0]!r} is given twice")
        self._training = dict(training or {})

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, in the order of the columns to score."""
        return self._feature_names

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self._feature_names)

    @property
    def training(self) -> Mapping[str, Any]:
        """Facts about the training: objective, parameters, learning curves, versions."""
        return self._training

    def remember(self, **facts: Any) -> None:
        """Add to the facts about the training, which are saved with the ranker."""
        self._training.update(facts)

    def predict(self, X: Any, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Score of each row of ``X``, in the order in which the rows were given; higher is better.

        Parameters
        ----------
        X
            Ranking data, a numpy array, or a pandas or polars frame. Ranking data and frames are matched by feature
            name; arrays must have the ranker's features in order.
        threads
            Threads to use; all cores by default.
        """
        if isinstance(X, RankingData):
            return X.in_input_order(self.grouped_scores(X, n_jobs=n_jobs))
        return self._score(feature_matrix(X, self._feature_names), n_jobs)

    def grouped_scores(self, data: RankingData, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Scores in the data's own order, the documents of a query together; :meth:`predict` has them as given."""
        return self._score(feature_matrix(data, self._feature_names), n_jobs)

    def importances(self) -> NDArray[np.float64] | None:
        """Share of each feature in what the ranker has learned, adding up to 1; None where no such share is known."""
        amounts = self._importance_amounts()
        if amounts is None:
            return None
        total = float(amounts.sum())
        return amounts / total if total > 0.0 else amounts

    def _importance_amounts(self) -> NDArray[np.float64] | None:
        """What the shares of :meth:`importances` are made of."""
        return None

    @abstractmethod
    def _score(self, X: Matrix, n_jobs: int | None) -> NDArray[np.float64]:
        """Scores of a matrix that has exactly this ranker's features."""

    @abstractmethod
    def _payload(self) -> dict[str, Any]:
        """The ranker's numbers as plain dicts, lists, strings and numbers."""

    @classmethod
    @abstractmethod
    def _from_payload(
        cls, payload: Mapping[str, Any], feature_names: Sequence[str], training: Mapping[str, Any]
    ) -> Self:
        """The inverse of :meth:`_payload`."""

    def to_dict(self) -> dict[str, Any]:
        """The whole ranker as plain values: a manifest, then the payload."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "kind": self.kind,
            "feature_names": list(self._feature_names),
            "training": plain(self._training),
            "payload": self._payload(),
        }

    def save(self, path: str | Path) -> None:
        """Write one UTF-8 JSON file, or nothing if it fails; numbers come back exactly."""
        text = _readable_json(self.to_dict())
        with replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_features:,} features)"


# ---------------------------------------------------------------------- features
def feature_matrix(X: Any, feature_names: Sequence[str]) -> Matrix:
    """The columns that a ranker needs, as a float32 or float64 matrix.

    >>> feature_matrix(np.zeros((2, 3)), ["a", "b"])
    Traceback (most recent call last):
        ...
    gradrank.errors.ModelError: X has 3 features, the model expects 2
    """
    names = tuple(feature_names)
    if isinstance(X, RankingData):
        columns = _columns_by_name(X.feature_names, names)
        return X.X if columns is None else X.X[:, columns]
    if hasattr(X, "columns") and hasattr(X, "to_numpy"):
        return _frame_matrix(X, names)
    if hasattr(X, "toarray"):
        raise ModelError("X is a sparse matrix, expected a dense one (X.toarray())")
    return _checked_matrix(X, len(names))


def _checked_matrix(X: Any, n_features: int) -> Matrix:
    matrix = np.asarray(X)
    if matrix.ndim != 2:
        raise ModelError(f"X has {matrix.ndim} dimensions, expected 2 (documents × features)")
    if matrix.shape[1] != n_features:
        raise ModelError(f"X has {matrix.shape[1]} features, the model expects {n_features}")
    if matrix.dtype in (np.float32, np.float64):
        return matrix
    if matrix.dtype.kind not in "biuf":
        raise ModelError(f"X holds values of type {matrix.dtype}, expected numbers")
    return matrix.astype(np.float64)


def _frame_matrix(frame: Any, names: tuple[str, ...]) -> Matrix:
    present = {str(column): column for column in frame.columns}
    missing = [name for name in names if name not in present]
    if missing:
        raise ModelError(_missing_features(missing))
    chosen = frame[[present[name] for name in names]]
    if type(frame).__module__.partition(".")[0] == "pandas":
        bad = [str(name) for name, dtype in chosen.dtypes.items() if dtype.kind not in "biuf"]
        if bad:
            raise ModelError(f"column {bad[0]!r} is not numeric, expected numbers")
        # A type is named because pandas gives its own nullable numbers as objects.
        dtype = np.float32 if all(dtype == np.float32 for dtype in chosen.dtypes) else np.float64
        return _checked_matrix(chosen.to_numpy(dtype=dtype, na_value=np.nan), len(names))
    return _checked_matrix(chosen.to_numpy(), len(names))


def _columns_by_name(given: Sequence[str], wanted: Sequence[str]) -> list[int] | None:
    """Places of the wanted features among the given ones; None = take all columns as they are."""
    if tuple(given) == tuple(wanted):
        return None
    place = {name: index for index, name in enumerate(given)}
    missing = [name for name in wanted if name not in place]
    if not missing:
        return [place[name] for name in wanted]
    # Numbered features have no names worth trusting: a LETOR file fits a model trained on named columns.
    if len(given) == len(wanted) and (_all_made_up(given) or _all_made_up(wanted)):
        return None
    if len(given) != len(wanted) and _all_made_up(given) and _all_made_up(wanted):
        raise ModelError(f"X has {len(given)} features, the model expects {len(wanted)}")
    raise ModelError(_missing_features(missing))


def _all_made_up(names: Sequence[str]) -> bool:
    return all(_MADE_UP_NAME.fullmatch(name) for name in names)


def _missing_features(missing: list[str]) -> str:
    shown = ", ".join(map(repr, missing[:5])) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
    return f"X lacks the model's feature{'s' if len(missing) > 1 else ''} {shown}"


# ---------------------------------------------------------------------- plain values
def plain(value: Any) -> Any:
    """Values as JSON has them; numbers that JSON lacks become the strings that ``float`` reads.

    >>> plain({"a": np.float32(0.5), "b": np.array([1, 2]), "c": float("nan")})
    {'a': 0.5, 'b': [1, 2], 'c': 'nan'}
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return str(value)


def _readable_json(value: Any, depth: int = 0) -> str:
    """JSON with one line for each entry of the outer levels and for each part of a model."""
    inner_dict = isinstance(value, dict) and depth < 2
    inner_list = isinstance(value, list) and value and all(isinstance(item, dict) for item in value)
    if inner_dict:
        rows = [f"{json.dumps(key)}: {_readable_json(item, depth + 1)}" for key, item in value.items()]
        return "{\n" + ",\n".join(rows) + "\n}"
    if inner_list:
        return "[\n" + ",\n".join(_readable_json(item, depth + 1) for item in value) + "\n]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)

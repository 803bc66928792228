"""Scores from whatever users have: learners, models of any package, columns, files; on ranking data, frames or paths.

A *system* is whatever gives documents scores: a fitted learner, a ranker, a fitted model of LightGBM, XGBoost or
scikit-learn (or anything else with ``predict``), a column of scores, a function of ranking data, or the path of a file
with a model, with scores, or with a TREC run. *Data* is RankingData, a frame, or the path of a file. :func:`scores_of`
turns a system and data into checked scores in the data's own order; this is the one door, and everything behind it
trusts them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradrank.data.formats.columns import read_column
from gradrank.data.formats.compressed import read_head
from gradrank.data.formats.registry import read_data
from gradrank.data.formats.trec import query_coverage, read_qrels, read_run, run_scores, trec_data
from gradrank.data.frames import from_frame
from gradrank.data.ranking_data import RankingData, rows_alone
from gradrank.data.row_index import check_same_order
from gradrank.errors import DataError, ModelError
from gradrank.models.exchange.sklearn_trees import is_hist_gradient_boosting
from gradrank.models.features import Matrix, is_frame, made_up
from gradrank.models.foreign import ForeignRanker, known_features
from gradrank.models.ranker import Ranker
from gradrank.models.registry import load_ranker, looks_like_model
from gradrank.models.trees.ensemble import TreeEnsemble
from gradrank.ranking import in_data_order

System: TypeAlias = Any
"""What gives documents scores: Ranker, learner or model, ArrayLike, path, or Callable[[RankingData], ArrayLike]."""
Data: TypeAlias = Any
"""What holds documents: RankingData, a pandas or polars frame, an Arrow table, or the path of a data file."""

# Words on a line of TREC's files: query iteration document grade; query Q0 document rank score tag.
_QRELS_FIELDS = 4
_RUN_FIELDS = 6
_HEAD_BYTES = 1 << 16


# ---------------------------------------------------------------------- data
class Documents:
    """Data as it was given, and as ranking data.

    Parameters
    ----------
    data
        The queries and labels. It may lack the features of a frame, which systems take from the frame itself.
    frame
        The frame that was given, if it was one.
    notes
        What a reader of results must know about the data, one sentence each.

    >>> import pandas as pd
    >>> given = Documents.of(pd.DataFrame({"qid": [1, 1], "label": [0, 1], "bm25": [0.5, 0.7], "url": ["a", "b"]}))
    >>> given.data.n_queries, given.data.n_features
    (1, 0)
    """

    def __init__(self, data: RankingData, frame: Any = None, notes: tuple[str, ...] = ()) -> None:
        self.data = data
        self.frame = frame
        self.notes = notes

    @classmethod
    def of(cls, given: Data | Documents, systems: Mapping[str, System] | None = None) -> Documents:
        """Data from whatever holds it; TREC qrels together with the runs among the systems."""
        if isinstance(given, Documents):
            return given
        if isinstance(given, RankingData):
            return cls(given)
        if is_path(given):
            return cls.trec(given, systems or {}) if is_qrels(given) else cls(read_data(fspath(given)))
        if is_frame(given):
            # Text is no feature of ours, but may be one of the systems'.
            return cls(from_frame(given, features=()), given)
        return cls(from_frame(given))

    @classmethod
    def trec(cls, qrels_file: str | PathLike[str], systems: Mapping[str, System]) -> Documents:
        """The judged documents of TREC qrels, and those that runs retrieved."""
        strangers = [name for name, system in systems.items() if not (is_path(system) and is_run(system))]
        if strangers:
            raise DataError(
                f"system {strangers[0]!r} is no TREC run, but the data is TREC qrels, which have no features or rows",
                path=fspath(qrels_file),
            )
        qrels = read_qrels(fspath(qrels_file))
        runs = {name: read_run(fspath(file)) for name, file in systems.items()}
        notes = []
        for name, run in runs.items():
            coverage = query_coverage(qrels, run)
            if coverage.missing:
                notes.append(
                    f"{name}: lacks {coverage.missing:,} queries of the qrels; they count as nothing retrieved"
                )
            if coverage.ignored:
                notes.append(f"{name}: has {coverage.ignored:,} queries that are not in the qrels; they are left out")
        return cls(trec_data(qrels, runs), notes=tuple(notes))

    def matrix(self, ranker: Ranker) -> Matrix:
        """A ranker's features of all documents, in the data's order."""
        if self._by_place(ranker):
            return ranker.matrix(self.whole)
        return self.data.from_input_order(ranker.matrix(self.frame))

    def scores(self, ranker: Ranker, n_jobs: int | None = None) -> NDArray[np.float64]:
        """A ranker's scores of all documents, in the data's order."""
        if self._by_place(ranker):
            return ranker.grouped_scores(self.whole, n_jobs=n_jobs)
        return self.data.from_input_order(ranker.predict(self.frame, n_jobs=n_jobs))

    def query(self, ranker: Ranker, number: int) -> Any:
        """The documents of one query as the ranker takes them: ranking data, or rows of the frame."""
        first, end = self.data.indptr[number : number + 2]
        if self._by_place(ranker):
            # In memory, and not a map of the file.
            rows_held: Matrix = np.array(self.whole.X[first:end])  # type: ignore[assignment]
            return rows_alone(rows_held, self.whole.feature_names)
        rows = np.arange(first, end) if self.data.rows is None else self.data.rows[first:end]
        return self.frame.iloc[rows] if hasattr(self.frame, "iloc") else self.frame[rows]

    def _by_place(self, ranker: Ranker) -> bool:
        """Whether the ranker takes ranking data: there is no frame, or the ranker has no names to find in it."""
        if self.frame is None:
            return True
        present = {str(column) for column in self.frame.columns}
        return made_up(ranker.feature_names) and not set(ranker.feature_names) <= present

    def shown(self) -> RankingData:
        """The data with its features, if they are all numbers; without them otherwise."""
        try:
            return self.whole
        except DataError:
            return self.data

    @cached_property
    def whole(self) -> RankingData:
        """The data with all its features; a frame's must be numbers."""
        return self.data if self.frame is None else from_frame(self.frame)


def is_path(value: Any) -> TypeGuard[str | PathLike[str]]:
    """Whether a value is the path of a file."""
    return isinstance(value, str | PathLike)


def is_run(path: str | PathLike[str]) -> bool:
    """Whether a file is a TREC run, by its first line."""
    return len(_first_fields(path)) == _RUN_FIELDS and not looks_like_model(_head(path))


def is_qrels(path: str | PathLike[str]) -> bool:
    """Whether a file is TREC qrels, by its first line."""
    if not Path(path).is_file():
        return False
    fields = _first_fields(path)
    # LETOR's second word is "qid:1", or "1:0.5" without query ids.
    return len(fields) == _QRELS_FIELDS and b":" not in fields[1]


def is_model(path: str | PathLike[str]) -> bool:
    """Whether a file is a model, by its first bytes."""
    return looks_like_model(_head(path))


def _head(path: str | PathLike[str]) -> bytes:
    return read_head(fspath(path), _HEAD_BYTES)


def _first_fields(path: str | PathLike[str]) -> list[bytes]:
    return _head(path).lstrip().split(b"\n", 1)[0].split()


# ---------------------------------------------------------------------- systems
def named_systems(systems: Mapping[str, System] | System) -> dict[str, System]:
    """Systems by name; one alone is named after its class, or its file.

    >>> named_systems("scores/bm25.txt")
    {'bm25.txt': 'scores/bm25.txt'}
    """
    if isinstance(systems, Mapping):
        if not systems:
            raise DataError("there is no system to evaluate")
        return {str(name): system for name, system in systems.items()}
    if is_path(systems):
        return {Path(systems).name: systems}
    return {type(systems).__name__ if hasattr(systems, "predict") else "scores": systems}


def scores_of(
    system: System,
    data: Data | Documents,
    *,
    name: str | None = None,
    finite: bool = False,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """A system's score for each document, in the data's own order.

    Parameters
    ----------
    system
        What gives the scores; see the module. Columns, and what functions give, stand in the order in which the rows of
        the data were given; a column that is part of the data itself stands in the data's order.
    data
        The documents.
    name
        The system's name in messages.
    finite
        Whether every score must be a finite number; otherwise −inf is taken for "not retrieved".
    n_jobs
        Threads to use; all cores by default.

    >>> data = RankingData.from_arrays([[1.0], [2.0], [3.0]], qid=["a", "b", "a"])
    >>> scores_of([1.0, 2.0, 3.0], data).tolist(), scores_of(data.X[:, 0], data).tolist()
    ([1.0, 3.0, 2.0], [1.0, 3.0, 2.0])
    """
    documents = Documents.of(data)
    if is_path(system) and not is_model(system):
        given = documents.data.from_input_order(_file_scores(system, documents.data))
    elif is_ranker(system):
        given = _model_scores(system, documents, name, n_jobs)
    elif callable(system):
        given = in_data_order(system(documents.whole), documents.data)
    else:
        check_same_order({"data": documents.frame, "scores" if name is None else f"system {name!r}": system})
        given = in_data_order(system, documents.data)
    return _checked(given, documents.data, name, finite)


def as_ranker(system: System, data: Data | Documents | None = None) -> Ranker:
    """The ranker that a system is: of a learner, of a file, or made from a model of another package.

    Trees of LightGBM, XGBoost, CatBoost and scikit-learn's HistGradientBoosting become trees of gradrank's, which can
    be saved with everything else; other models stay what they are. Scores alone are no ranker, and raise ModelError.

    Parameters
    ----------
    system
        A fitted learner or model, a ranker, or the path of a model file.
    data
        Names the features of a model that knows nothing about them.

    >>> from gradrank.models.feature import FeatureRanker
    >>> as_ranker(FeatureRanker("bm25")).feature_names
    ('bm25',)
    """
    if isinstance(system, Ranker):
        return system
    if is_path(system):
        if not is_model(system):
            raise ModelError("holds scores, expected a model: scores cannot rank other documents", path=fspath(system))
        return load_ranker(fspath(system))
    if isinstance(getattr(system, "ranker_", None), Ranker):
        ranker: Ranker = system.ranker_
        return ranker
    if not hasattr(system, "predict"):
        raise ModelError(f"a {type(system).__name__} is no model: scores cannot rank other documents")
    for make, found in (
        (_from_lightgbm, hasattr(system, "booster_") or hasattr(system, "model_to_string")),
        (_from_xgboost, hasattr(system, "get_booster") or hasattr(system, "save_raw")),
        (_from_sklearn, is_hist_gradient_boosting(system)),
        (_from_catboost, type(system).__module__.partition(".")[0] == "catboost"),
    ):
        made = make(system) if found else None
        if made is not None:
            return made
    return _foreign(system, None if data is None else Documents.of(data))


def is_ranker(system: System) -> bool:
    """Whether a system can rank other documents: all but scores and functions can.

    >>> is_ranker([1.0, 2.0])
    False
    """
    return is_model(system) if is_path(system) else isinstance(system, Ranker) or hasattr(system, "predict")


def _from_lightgbm(model: Any) -> Ranker | None:
    try:
        return TreeEnsemble.from_lightgbm(model)
    except ModelError:  # several classes, linear leaves: LightGBM scores it
        return None


def _from_xgboost(model: Any) -> Ranker | None:
    if known_features(model) is None:
        return None
    try:
        return TreeEnsemble.from_xgboost(model)
    except ModelError:  # several classes, categories, no trees: XGBoost scores it
        return None


def _from_sklearn(model: Any) -> Ranker | None:
    try:
        return TreeEnsemble.from_sklearn(model)
    except ModelError:  # categories, several classes, a link function: scikit-learn scores it
        return None


def _from_catboost(model: Any) -> Ranker | None:
    if not model.is_fitted():
        raise ModelError(f"this {type(model).__name__} is not fitted: call fit first")
    try:
        return TreeEnsemble.from_catboost(model)
    except ModelError:  # categories, several classes: CatBoost scores it
        return None


def _foreign(model: Any, documents: Documents | None) -> ForeignRanker:
    if known_features(model) is None and documents is not None:
        return ForeignRanker(model, documents.whole.feature_names)
    return ForeignRanker(model)


def _model_scores(system: Any, documents: Documents, name: str | None, n_jobs: int | None) -> NDArray[Any]:
    try:
        # XGBoost adds up in single precision: its own scores, ties included, are the ones that are meant.
        own = hasattr(system, "get_booster") or hasattr(system, "save_raw")
        ranker = _foreign(system, documents) if own else as_ranker(system, documents)
        return documents.scores(ranker, n_jobs)
    except ModelError as error:
        if name is None or error.path is not None:
            raise
        raise ModelError(f"system {name!r}: {error}") from None


def _file_scores(path: Any, data: RankingData) -> NDArray[np.float64]:
    if is_run(path):
        return run_scores(data, read_run(fspath(path)))
    return read_column(fspath(path), expected=data.n_docs, allow_neg_inf=True)


def _checked(given: ArrayLike, data: RankingData, name: str | None, finite: bool) -> NDArray[np.float64]:
    of = "" if name is None else f" of {name!r}"
    try:
        scores = np.ascontiguousarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"scores{of} hold something that is not a number") from None
    if scores.shape != (data.n_docs,):
        raise DataError(
            f"scores{of} have shape {scores.shape}, expected one number for each of {data.n_docs} documents"
        )
    bad = ~np.isfinite(scores) if finite else np.isnan(scores) | (scores == np.inf)
    if bad.any():
        place = int(np.flatnonzero(data.in_input_order(bad))[0])
        value = data.in_input_order(scores)[place]
        expected = (
            "a finite number: rankers can be combined only where all of them score every document"
            if finite
            else "a number (-inf for a document that was not retrieved)"
        )
        whose = "score of" if name is None else f"score of {name!r} for"
        raise DataError(f"{whose} document {place + 1} is {value}, expected {expected}")
    return scores

"""The columns that a model takes, found in whatever holds them: ranking data, frames, arrays."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.arrays import plain_array, unmasked
from gradrank.data.frames import frame_numbers, is_arrow_like, plain_frame
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError, FeatureMismatch, ModelError
from gradrank.models.categories import Categories
from gradrank.runtime.warn import warn

Matrix = NDArray[np.float32] | NDArray[np.float64]

_SHOWN = 6
# Names that tools make up for features that have none: ours and LETOR's, LightGBM's, XGBoost's.
_MADE_UP_NAME = re.compile(r"(f|Column_)(\d+)")


def feature_matrix(X: Any, feature_names: Sequence[str], categories: Categories | None = None) -> Matrix:
    """The columns that a model needs, as a float32 or float64 matrix.

    Parameters
    ----------
    X
        Ranking data, a frame of pandas, polars or Arrow (both matched by name), or an array with the features in order.
    feature_names
        The model's features.
    categories
        How the model numbers the values of categorical columns. Frames hold the values; ranking data and arrays
        hold their numbers.

    >>> feature_matrix(np.zeros((2, 3)), ["a", "b"])
    Traceback (most recent call last):
        ...
    gradrank.errors.FeatureMismatch: X has 3 features, the model expects 2
    """
    names = tuple(feature_names)
    if isinstance(X, RankingData):
        if categories is not None:
            categories.check_numbers(names)
        columns = columns_by_name(X.feature_names, names)
        return X.X if columns is None else X.X[:, columns]
    X = with_columns(X)
    if is_frame(X):
        return _frame_matrix(X, names, categories)
    if hasattr(X, "toarray"):
        raise ModelError("X is a sparse matrix, expected a dense one (X.toarray())")
    return _checked_matrix(X, len(names))


def is_frame(value: Any) -> bool:
    """Whether a value is a pandas or polars frame."""
    return hasattr(value, "columns") and hasattr(value, "to_numpy")


def with_columns(X: Any) -> Any:
    """Arrow tables and lazy frames as frames whose columns are found by name; everything else as it is.

    NumPy would take a table's columns in the order in which they stand.

    >>> import pyarrow as pa
    >>> with_columns(pa.table({"b": [1.5], "a": [2.5]}))[["a", "b"]].to_numpy().tolist()
    [[2.5, 1.5]]
    """
    return plain_frame(X) if is_arrow_like(X) else X


def is_pandas(frame: Any) -> bool:
    """Whether a frame is pandas'."""
    return type(frame).__module__.partition(".")[0] == "pandas"


def made_up(names: Sequence[str]) -> bool:
    """Whether names only number the features in their order, so that they tell nothing else.

    >>> made_up(["f1", "f2"]), made_up(["Column_0"]), made_up(["bm25"]), made_up(["f2", "f1"])
    (True, True, False, False)
    """
    found = [_MADE_UP_NAME.fullmatch(name) for name in names]
    first = found[0] if found else None
    return first is not None and all(
        item is not None and (item[1], int(item[2])) == (first[1], int(first[2]) + place)
        for place, item in enumerate(found)
    )


def columns_by_name(given: Sequence[str], wanted: Sequence[str]) -> list[int] | None:
    """Places of the wanted features among the given ones; None = take all columns as they are.

    >>> columns_by_name(["a", "b", "c"], ["c", "a"])
    [2, 0]
    """
    if tuple(given) == tuple(wanted):
        return None
    place = _by_spelling({name: index for index, name in enumerate(given)})
    missing = [name for name in wanted if name not in place]
    if not missing:
        return [place[name] for name in wanted]
    # Numbers are no names: a LETOR file fits a model trained on named columns. Where some names are the same and others
    # are not, it is another set of features.
    numbers = made_up(given) + made_up(wanted)
    if len(given) == len(wanted) and (numbers == 2 or (numbers == 1 and not set(given) & set(wanted))):
        if numbers == 1 and made_up(given):
            warn(
                f"the data's features have no names: its {len(given):,} are taken for the model's in their order, "
                f"{', '.join(map(repr, wanted[:_SHOWN]))}{', …' if len(wanted) > _SHOWN else ''}"
            )
        return None
    if len(given) != len(wanted) and made_up(given) and made_up(wanted):
        raise FeatureMismatch(found=len(given), expected=len(wanted))
    raise FeatureMismatch(missing=missing)


def frame_columns(frame: Any, wanted: Sequence[str]) -> list[Any]:
    """The frame's own names of the wanted columns."""
    present = _by_spelling({str(column): column for column in frame.columns})
    missing = [name for name in wanted if name not in present]
    if missing:
        raise FeatureMismatch(missing=missing)
    return [present[name] for name in wanted]


def _by_spelling(places: dict[str, Any]) -> Mapping[str, Any]:
    """The same, also under LightGBM's spelling of names, where white space has become ``_``."""
    return {**{"_".join(name.split()): place for name, place in places.items()}, **places}


def _frame_matrix(frame: Any, names: tuple[str, ...], categories: Categories | None) -> Matrix:
    chosen = frame[frame_columns(frame, names)]
    if len(chosen.columns) != len(names):
        places = list(map(str, chosen.columns))
        twice = next(name for name in places if places.count(name) > 1)
        raise ModelError(f"column {twice!r} comes twice")
    codes = {} if categories is None else categories.codes(chosen, names)
    # What is no plain number, such as objects and categories that are numbers, is read as training reads it.
    read = {**codes, **{place: _column_numbers(chosen, place) for place in _unplain(chosen) if place not in codes}}
    if is_pandas(frame):
        if read:
            chosen = chosen.copy(deep=False)
            chosen = chosen.set_axis(range(len(names)), axis=1)
        for place, column in read.items():
            chosen[place] = column
        # A type is named because pandas gives its own nullable numbers as objects.
        dtype = np.float32 if all(dtype == np.float32 for dtype in chosen.dtypes) else np.float64
        return _checked_matrix(chosen.to_numpy(dtype=dtype, na_value=np.nan), len(names))
    if read:
        columns = [
            chosen[name].to_numpy() if place not in read else read[place] for place, name in enumerate(chosen.columns)
        ]
        return _checked_matrix(np.column_stack(columns), len(names))
    return _checked_matrix(chosen.to_numpy(), len(names))


def _unplain(frame: Any) -> list[int]:
    """The places of columns that do not hold plain numbers or booleans."""
    if is_pandas(frame):
        return [place for place, dtype in enumerate(frame.dtypes) if dtype.kind not in "biuf"]
    return [
        place
        for place, dtype in enumerate(frame.dtypes)
        if not (
            dtype.is_integer() or dtype.is_float() or (str(dtype) == "Boolean" and not frame[:, place].null_count())
        )
    ]


def _column_numbers(frame: Any, place: int) -> NDArray[np.float64]:
    name = str(frame.columns[place])
    try:
        return frame_numbers(frame[[frame.columns[place]]])
    except DataError:
        raise ModelError(f"column {name!r} is not numeric, expected numbers") from None


def _checked_matrix(X: Any, n_features: int) -> Matrix:
    matrix = plain_array(unmasked(X), "X")
    if matrix.ndim != 2:
        one = "; one document is a row of its own, X.reshape(1, -1)" if matrix.ndim == 1 else ""
        raise ModelError(f"X has {matrix.ndim} dimensions, expected 2 (documents × features){one}")
    if matrix.shape[1] != n_features:
        raise FeatureMismatch(found=matrix.shape[1], expected=n_features)
    if matrix.dtype in (np.float32, np.float64):
        return matrix
    try:
        if matrix.dtype.kind not in "biufO":
            raise ValueError
        return matrix.astype(np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"X holds values of type {matrix.dtype}, expected numbers") from None

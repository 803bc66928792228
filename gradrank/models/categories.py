"""Values of categorical columns and the numbers that LightGBM gave them.

LightGBM trains on a pandas frame with the codes of its categorical columns and keeps the list of values of each, in the
order of the columns (the line ``pandas_categorical`` of its model files). A value's code is its place in the list; a
value that is not in the list counts as missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import ModelError

_SHOWN = 3
_PLAIN = (str, int, float, bool, type(None), np.generic)


@dataclass(frozen=True)
class Categories:
    """The values of a model's categorical columns.

    Parameters
    ----------
    values
        For each categorical column, in the order of the model's features, its values by code.
    columns
        The numbers of these features. None if the model does not tell: then the columns of a frame that are categorical
        are meant, as LightGBM has it.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [1, 2], "city": pd.Categorical(["Ulm", "Bonn"])})
    >>> Categories((("Bonn", "Köln"),), (1,)).codes(frame, ["age", "city"])[1].tolist()
    [nan, 0.0]
    """

    values: tuple[tuple[Any, ...], ...]
    columns: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        odd = [value for values in self.values for value in values if not isinstance(value, _PLAIN)]
        if odd:
            raise ModelError(f"a category is a {type(odd[0]).__name__}, expected text or a number")
        if self.columns is not None and (
            len(self.columns) != len(self.values)
            or len(set(self.columns)) < len(self.columns)
            or min(self.columns, default=0) < 0
        ):
            raise ModelError(f"there are categories of {len(self.values)} columns, which are given as {self.columns}")

    def codes(self, frame: Any, names: Sequence[str]) -> dict[int, NDArray[np.float64]]:
        """The coded columns of a frame that has exactly the model's features, by their numbers."""
        columns = [frame[name] for name in frame.columns]
        found = [number for number, column in enumerate(columns) if _is_categorical(column)]
        if len(found) != len(self.values):
            if self.columns is None:
                raise ModelError(
                    f"X has {len(found)} categorical columns, the model was trained with {len(self.values)}"
                )
            found = list(self.columns)
        return {
            number: _coded(columns[number], values, names[number])
            for number, values in zip(found, self.values, strict=True)
        }

    def check_numbers(self, names: Sequence[str]) -> None:
        """Refuse ranking data if a number in it could be a value as well as a code."""
        for number, values in zip(self.columns or (), self.values, strict=False):
            if _all_numbers(values) and list(values) != list(range(len(values))):
                raise ModelError(
                    f"feature {names[number]!r} has the categories {_listed(values)}, and ranking data does not tell "
                    "whether it holds these or their codes: score the frame itself"
                )

    def to_list(self) -> list[Any]:
        """The values as JSON has them."""
        return [list(values) for values in self.values]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the model's file."""
        return {"values": self.to_list(), "columns": None if self.columns is None else list(self.columns)}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Categories:
        """The inverse of :meth:`to_dict`."""
        columns = value["columns"]
        return cls(tuple(map(tuple, value["values"])), None if columns is None else tuple(map(int, columns)))


def _is_categorical(column: Any) -> bool:
    """Whether a column of pandas or polars is of a categorical type."""
    return str(column.dtype).startswith(("category", "Categorical", "Enum"))


def _coded(column: Any, values: tuple[Any, ...], name: str) -> NDArray[np.float64]:
    numeric = column.dtype.is_numeric() if hasattr(column.dtype, "is_numeric") else column.dtype.kind in "iuf"
    if numeric and not _all_numbers(values):
        raise ModelError(f"column {name!r} holds numbers, the model knows its values as {_listed(values)}")
    if hasattr(column, "cat") and hasattr(column.cat, "set_categories"):
        codes = column.cat.set_categories(list(values)).cat.codes.to_numpy().astype(np.float64)
        return np.where(codes < 0, np.nan, codes)
    code = {value: float(number) for number, value in enumerate(values)}
    return np.array([code.get(value, np.nan) for value in column.to_list()], dtype=np.float64)


def _all_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float) for value in values)


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(map(repr, values[:_SHOWN])) + (", …" if len(values) > _SHOWN else "")

"""Whether what is given side by side has its rows in the same order, as far as a pandas index tells.

Rows go together by position, as everywhere in scikit-learn: an index is not followed. But a column that has all the
rows of the frame in another order, as after ``sort_values`` or ``sample`` of one of the two, would give each document
another one's label without a word.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradrank.errors import DataError


def check_same_order(given: Mapping[str, Any]) -> None:
    """Raise DataError if one of several frames and columns has the rows of another in another order.

    Indexes that do not name the same rows say nothing, and are left alone.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"bm25": [0.5, 0.7]})
    >>> check_same_order({"X": frame, "y": pd.Series([0, 1]), "qid": [7, 7]})
    >>> check_same_order({"X": frame, "y": pd.Series([1, 0], index=[1, 0])})
    Traceback (most recent call last):
        ...
    gradrank.errors.DataError: y has the rows of X in another order, as their indexes tell, and rows go together by \
position: give y.loc[X.index], or y.to_numpy() if the positions are right
    """
    indexed = [(name, value.index) for name, value in given.items() if _has_index(value)]
    for name, index in indexed[1:]:
        first, expected = indexed[0]
        if len(index) != len(expected) or index.equals(expected):
            continue
        if bool(index.isin(expected).all()) and bool(expected.isin(index).all()):
            raise DataError(
                f"{name} has the rows of {first} in another order, as their indexes tell, and rows go together by "
                f"position: give {name}.loc[{first}.index], or {name}.to_numpy() if the positions are right"
            )


def _has_index(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "pandas" and hasattr(value, "index")

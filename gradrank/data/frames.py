"""Data frames — pandas, polars, Arrow — to ranking data and back."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.data.roles import QID_NAMES, Columns, LabelChoice, plain_name, resolve_roles
from gradrank.data.tables import Beside, arrow, arrow_errors, data_of_table, numbers, require, to_table
from gradrank.errors import DataError
from gradrank.runtime.suggestions import known_keywords

_EXPECTED = "a pandas or polars DataFrame or an Arrow table"


@known_keywords
def from_frame(
    frame: Any,
    *,
    qid: str | None = None,
    labels: LabelChoice = None,
    docid: str | None = None,
    weight: str | None = None,
    features: Sequence[str] | None = None,
    keep: Sequence[str] = (),
    ignore: Sequence[str] = (),
    regroup: bool = True,
) -> RankingData:
    """Ranking data from a pandas or polars frame or an Arrow table, one row per document, in any order.

    Columns that no argument names go by their names: ``qid`` (or ``query_id``), ``docid``, ``weight``, ``label`` and
    ``label:NAME`` have these roles, and all others are features. Columns that look like a label (``grade``, ``clicks``
    …), an id or a weight never become features by themselves: with ``labels=`` they are left out with a warning,
    without it they are an error.

    Parameters
    ----------
    frame
        The frame. Nulls and NaN are missing features or unjudged labels; booleans are 0 and 1.
    qid
        Column of query ids.
    labels
        Label columns, the primary one first: ``"grade"``, ``["grade", "clicks"]``, or label name → column as in
        ``{"clicks": "n_clicks"}``; ``()`` = no labels.
    docid
        Column of document ids.
    weight
        Column of query weights, the same number in all rows of a query.
    features
        The feature columns, if not all columns without another role.
    keep
        Columns that are features although their names look like a label, an id or a weight.
    ignore
        Columns to leave out.
    regroup
        Whether rows of a query that are not consecutive are brought together (the result remembers where each came
        from) or refused.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"qid": [1, 1, 2], "label": [0, 1, None], "bm25": [3.5, 7.1, 2.0]})
    >>> data = from_frame(frame)
    >>> data, data.feature_names
    (RankingData(2 queries, 3 documents, 1 features, labels: label), ('bm25',))
    """
    columns = Columns(qid=qid, labels=labels, docid=docid, weight=weight, features=features, keep=keep, ignore=ignore)
    return data_of_frame(frame, columns, regroup=regroup)


def to_frame(data: RankingData, kind: Literal["pandas", "polars", "arrow"] = "pandas") -> Any:
    """The data as a frame: ``qid``, ``docid``, ``weight``, labels and features, one row per document.

    A missing value is a null (NaN in pandas). A role's column whose name a feature already has gets ``_`` appended.

    Parameters
    ----------
    data
        The data; its documents come query by query.
    kind
        ``"pandas"``, ``"polars"`` or ``"arrow"`` (a table, which remembers the roles of its columns).

    Examples
    --------
    >>> data = RankingData.from_arrays([[3.5], [7.1]], [0, 1], qid=["a", "a"], feature_names=["bm25"])
    >>> to_frame(data)
      qid  label  bm25
    0   a    0.0   3.5
    1   a    1.0   7.1
    """
    table = to_table(data, 0, data.n_docs)
    if kind == "arrow":
        return table
    if kind == "pandas":
        require("pandas", "frames")
        return table.to_pandas()
    if kind == "polars":
        return require("polars", "frames").from_arrow(table)
    raise DataError(f"frame kind is {kind!r}, expected 'pandas', 'polars' or 'arrow'")


def is_frame(value: Any) -> bool:
    """Whether something is a frame: pandas', polars', Arrow's, or one that speaks Arrow.

    >>> import pandas as pd
    >>> is_frame(pd.DataFrame({"a": [1]})), is_frame(pd.Series([1])), is_frame([[1]])
    (True, False, False)
    """
    kind = type(value)  # a lazy frame would look its columns up
    named = hasattr(kind, "columns") or hasattr(kind, "column_names")
    return named and (hasattr(kind, "__arrow_c_stream__") or _package(value) in ("pandas", "polars", "pyarrow"))


def is_arrow_like(value: Any) -> bool:
    """Whether a frame has no columns to look up by name as pandas' and polars' have them: Arrow tables, lazy frames."""
    return is_frame(value) and not (_package(value) in ("pandas", "polars") and hasattr(type(value), "to_numpy"))


def plain_frame(frame: Any) -> Any:
    """A frame of any kind as one of polars or pandas, whichever is there."""
    if _package(frame) == "polars":
        return frame.collect() if hasattr(frame, "collect") else frame
    table = _as_table(frame)
    if find_spec("pandas") is None:
        return require("polars", "frames").from_arrow(table)
    return table.to_pandas(ignore_metadata=True)


def frame_numbers(column: Any) -> NDArray[np.float64]:
    """A frame of one column as numbers, as a feature column is read; DataError if it holds something else."""
    if find_spec("pyarrow") is None:
        raise DataError("holds values that are not numbers")
    with arrow_errors(None, "a frame"):
        table = _as_table(column)
        return numbers("feature", table.column_names[0], table.column(0), "float64", 0, None)


def data_of_frame(
    frame: Any,
    columns: Columns,
    *,
    regroup: bool = True,
    beside: Beside = Beside(),  # noqa: B008 - frozen
) -> RankingData:
    """Ranking data from a frame and what is given beside it."""
    if not is_frame(frame):
        raise DataError(f"frame is a {type(frame).__qualname__}, expected {_EXPECTED}")
    if _package(frame) == "pandas":
        _check_index(frame, columns)
    if _package(frame) == "pandas" and find_spec("pyarrow") is None:
        return _without_arrow(frame, columns, regroup, beside)
    with arrow_errors(None, "a frame"):
        return data_of_table(_as_table(frame), columns, regroup=regroup, beside=beside)


def column_names(frame: Any) -> list[str]:
    """The names of a frame's columns.

    >>> import polars as pl
    >>> column_names(pl.LazyFrame({"a": [1]}))
    ['a']
    """
    if hasattr(type(frame), "collect_schema"):  # a lazy frame warns of being asked for its columns
        return list(frame.collect_schema().names())
    names = getattr(frame, "column_names", None)
    return [str(name) for name in (frame.columns if names is None else names)]


def _check_index(frame: Any, columns: Columns) -> None:
    """Tell of query ids that are in the index, where no column is looked for."""
    wanted = QID_NAMES if columns.qid is None else (plain_name(columns.qid),)
    found = next((name for name in frame.index.names if name is not None and plain_name(str(name)) in wanted), None)
    there = any(plain_name(str(name)) in wanted for name in frame.columns)
    if found is not None and not there and "qid" not in columns.given:
        raise DataError(f"the query ids ({found!r}) are in the frame's index, expected a column: frame.reset_index()")


def _package(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def _as_table(frame: Any) -> Any:
    """Any frame as an Arrow table."""
    pa = arrow()
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if _package(frame) == "polars":
        return (frame.collect() if hasattr(frame, "collect") else frame).to_arrow()
    if _package(frame) != "pandas":
        return pa.table(frame)
    names = [str(name) for name in frame.columns]
    arrays = []
    for position, name in enumerate(names):
        column = frame.iloc[:, position]
        if str(column.dtype).startswith("Sparse"):
            raise DataError(f"column {name!r} is sparse, expected a dense one: .sparse.to_dense()")
        try:
            arrays.append(pa.array(column, from_pandas=True))
        except (pa.ArrowException, TypeError, ValueError):
            raise DataError(f"column {name!r} holds values of several types, expected one type") from None
    return pa.Table.from_arrays(arrays, names=names)


def _without_arrow(frame: Any, columns: Columns, regroup: bool, beside: Beside) -> RankingData:
    """Ranking data from a pandas frame of plain numbers, where pyarrow is not installed."""
    names = [str(name) for name in frame.columns]
    roles = resolve_roles(names, columns)
    roles.warn_of_left_out()

    def column(name: str) -> Any:
        return frame.iloc[:, names.index(name)]

    def numbers(name: str) -> Any:
        if column(name).dtype.kind not in "biuf":
            raise DataError(
                f"column {name!r} does not hold numbers; encode it as numbers, or leave it out with ignore="
            )
        return column(name).to_numpy(dtype=np.float64, na_value=np.nan)

    values = [numbers(name) for name in roles.features]
    data = RankingData.from_arrays(
        np.column_stack(values) if values else np.empty((len(frame), 0)),
        {**{source: numbers(name) for source, name in roles.labels.items()}, **beside.labels},
        qid=beside.qid if roles.qid is None else column(roles.qid).to_numpy(),
        group=beside.group,
        docid=beside.docid if roles.docid is None else column(roles.docid).tolist(),
        feature_names=roles.features,
        regroup=regroup,
    )
    if roles.weight is not None:
        data = data.with_sample_weight(numbers(roles.weight))
    if roles.document_weight is not None:
        data = data.with_document_weight(data.from_input_order(numbers(roles.document_weight)))
    return data

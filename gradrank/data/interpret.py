"""Whatever users have — ranking data, frames, arrays — as ranking data: the one place where it is interpreted."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import replace
from os import PathLike
from typing import Any, ParamSpec, TypeVar

from numpy.typing import ArrayLike

from gradrank.data.frames import data_of_frame, is_frame
from gradrank.data.ranking_data import PRIMARY_LABEL, RankingData
from gradrank.data.roles import Columns, LabelChoice, label_columns
from gradrank.data.row_index import check_same_order
from gradrank.data.tables import Beside
from gradrank.errors import DataError
from gradrank.runtime.suggestions import known_keywords

P = ParamSpec("P")
R = TypeVar("R")


@known_keywords
def as_ranking_data(
    X: Any,
    y: Any = None,
    qid: Any = None,
    *,
    group: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    docid: str | Iterable[object] | None = None,
    labels: LabelChoice = None,
    weight: str | None = None,
    features: Sequence[str] | None = None,
    keep: Sequence[str] = (),
    ignore: Sequence[str] = (),
    regroup: bool = True,
) -> RankingData:
    """Ranking data from ranking data, a pandas, polars or Arrow frame, or arrays.

    Label, query-id, document-id and weight columns of a frame never become features; see
    :func:`gradrank.data.frames.from_frame` for what is taken as what. Rows may come in any order: the result remembers
    it.

    Parameters
    ----------
    X
        Ranking data (which holds everything else already), a frame, or a matrix of numbers, documents × features.
    y
        Labels, one per row; or, by label source, a mapping of them; NaN = unjudged. For a frame also the name of a
        column, or a mapping of label source → column.
    qid
        Query ids, one per row; for a frame also the name of a column.
    group
        Sizes of consecutive queries, as LightGBM has it, instead of ``qid``.
    sample_weight
        Weights, one per row (the same in all rows of a query) or one per query (in order of first appearance).
    docid
        Document ids, one per row; for a frame also the name of a column.
    labels, weight, features, keep, ignore
        Columns of a frame; see :func:`gradrank.data.frames.from_frame`.
    regroup
        Whether rows of a query that are not consecutive are brought together or refused.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"session": [7, 8, 7], "grade": [1, 0, 2], "bm25": [0.1, 0.2, 0.3]})
    >>> data = as_ranking_data(frame, y="grade", qid="session")
    >>> data.feature_names, data.label().tolist(), data.in_input_order(data.label()).tolist()
    (('bm25',), [1.0, 2.0, 0.0], [1.0, 0.0, 2.0])
    >>> as_ranking_data([[0.1], [0.2]], [1, 0], qid=[7, 7])
    RankingData(1 queries, 2 documents, 1 features, labels: label)
    """
    each = {f"y[{name!r}]": column for name, column in y.items()} if isinstance(y, Mapping) else {"y": y}
    check_same_order({"X": X, **each, "qid": qid, "docid": docid, "sample_weight": sample_weight})
    named = {"labels": labels, "weight": weight, "features": features, "keep": keep, "ignore": ignore}
    given = [name for name, value in named.items() if value is not None and (name == "labels" or not _is_empty(value))]
    if isinstance(X, RankingData):
        if y is not None or qid is not None:
            raise DataError("RankingData holds its labels and queries: give y and qid with arrays only")
        given = [*(["group"] if group is not None else []), *(["docid"] if docid is not None else []), *given]
        if given:
            raise DataError(f"RankingData holds everything already: give {given[0]} with arrays or frames only")
        data = X
    elif is_frame(X):
        columns, beside = _frame_arguments(y, qid, group, docid, labels)
        columns = replace(columns, weight=weight, features=features, keep=keep, ignore=ignore)
        if sample_weight is not None:
            if weight is not None:
                raise DataError("both weight= and sample_weight= are given, expected one of the two")
            columns = replace(columns, given=(*columns.given, "weight"))
        data = data_of_frame(X, columns, regroup=regroup, beside=beside)
    else:
        if given:
            raise DataError(f"X is a {type(X).__name__}, which has no named columns: {given[0]}= goes with frames only")
        data = _of_arrays(X, y, qid, group, docid, regroup)
    return data if sample_weight is None else data.with_sample_weight(sample_weight)


def _is_empty(value: Any) -> bool:
    return isinstance(value, Sized) and len(value) == 0


def takes_frames(*names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function of ranking data take a frame for each of some arguments as well, as learners do.

    A column among the other arguments goes with the frame's rows: one that has them in another order is refused.

    >>> import pandas as pd
    >>> @takes_frames("data")
    ... def count(data: RankingData) -> int:
    ...     return data.n_queries
    >>> count(pd.DataFrame({"qid": [7, 8], "label": [1, 0], "bm25": [0.1, 0.2]}))
    2
    >>> count("train.txt")
    Traceback (most recent call last):
        ...
    gradrank.errors.DataError: data is a str, expected RankingData or a frame (read_data reads files)
    """

    def taking(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def taken(*args: P.args, **keywords: P.kwargs) -> R:
            bound = signature.bind(*args, **keywords)
            for name in names:
                value = bound.arguments.get(name)
                if value is None or isinstance(value, RankingData):
                    continue
                if not is_frame(value):
                    kind = type(value).__name__
                    raise DataError(f"{name} is a {kind}, expected RankingData or a frame (read_data reads files)")
                columns = {other: given for other, given in bound.arguments.items() if getattr(given, "ndim", 2) == 1}
                check_same_order({name: value, **columns})
                bound.arguments[name] = as_ranking_data(value)
            return function(*bound.args, **bound.kwargs)

        return taken

    return taking


def _of_arrays(X: Any, y: Any, qid: Any, group: Any, docid: Any, regroup: bool) -> RankingData:
    if isinstance(X, str | PathLike):
        raise DataError(f"X is {str(X)!r}, expected data: read_data reads files")
    for name, value in (("y", y), ("qid", qid), ("docid", docid)):
        if isinstance(value, str):
            raise DataError(f"{name} is {value!r}, but X is a {type(X).__name__}, which has no named columns")
    if qid is None and group is None:
        raise DataError(
            "there are no query ids: give qid= (one id per row) or group= (sizes), a frame with a column 'qid', or "
            "RankingData"
        )
    return RankingData.from_arrays(X, y, qid=qid, group=group, docid=docid, regroup=regroup)


def _frame_arguments(y: Any, qid: Any, group: Any, docid: Any, labels: LabelChoice) -> tuple[Columns, Beside]:
    """What is said about a frame's labels and ids, and what is given beside it."""
    if y is not None and labels is not None:
        raise DataError("both y= and labels= are given, expected one of the two")
    if qid is not None and group is not None:
        raise DataError("both qid= and group= are given, expected one of the two")
    chosen, sources = _labels(y, labels)
    taken_from = set(sources) | _names_of(y, *sources.values())
    given = ["labels"] if sources else []
    named: dict[str, Any] = {}
    arrays: dict[str, Any] = {}
    for role, value in (("qid", qid), ("docid", docid)):
        if value is None or isinstance(value, str):
            named[role] = value
        else:
            arrays[role] = value
            taken_from |= _names_of(value)
            given.append(role)
    if group is not None:
        given.append("qid")
    return Columns(**named, labels=chosen, given=given, sources=taken_from), Beside(sources, group=group, **arrays)


def _labels(y: Any, labels: LabelChoice) -> tuple[LabelChoice, dict[str, Any]]:
    """Label columns of the frame, or labels given beside it."""
    if y is None:
        return labels, {}
    if isinstance(y, str):
        return label_columns(y), {}
    if not isinstance(y, Mapping):
        return None, {PRIMARY_LABEL: y}
    columns = [isinstance(value, str) for value in y.values()]
    if any(columns) and not all(columns):
        raise DataError("y names columns for some label sources and gives numbers for others, expected one of the two")
    if all(columns):
        return dict(y), {}
    return None, {str(name): values for name, values in y.items()}


def _names_of(*values: Any) -> set[str]:
    """Names that series have from the columns they were taken from."""
    return {str(value.name) for value in values if isinstance(getattr(value, "name", None), str)}

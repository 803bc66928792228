"""Values of several measures at once; the documents of each query are sorted only once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from numpy.typing import ArrayLike

from gradrank.data.interpret import takes_frames
from gradrank.data.ranking_data import RankingData
from gradrank.measures.base import BoundMeasure, FloatArray, Measure
from gradrank.measures.graded import AnyMeasure
from gradrank.ranking import Ranking, check_scores, in_data_order


def bind_measures(measures: Sequence[Measure], data: RankingData, *, n_jobs: int | None = None) -> list[BoundMeasure]:
    """Prepare measures for data once, to evaluate many scores with :func:`bound_values`.

    Parameters
    ----------
    measures
        Single measures.
    data
        The documents with their labels.
    n_jobs
        Threads to use; all cores by default.
    """
    return [measure.bind(data, n_jobs=n_jobs) for measure in measures]


def bound_values(bound: Sequence[BoundMeasure], scores: ArrayLike) -> dict[Measure, FloatArray]:
    """Values per query of bound measures; measures that order documents alike share the sorting.

    Parameters
    ----------
    bound
        What :func:`bind_measures` has made.
    scores
        One number per document, in the data's own order, in which the documents of a query stand together.
    """
    if not bound:
        return {}
    checked = check_scores(scores, bound[0].data.n_docs)
    rankings: dict[tuple[object, ...], Ranking] = {}
    values: dict[Measure, FloatArray] = {}
    for item in bound:
        key = item.ranking_key()
        if key not in rankings:
            rankings[key] = item.rank(checked)
        values[item.measure] = item.values(checked, rankings[key])
    return values


@takes_frames("data")
def measure_values(
    measures: AnyMeasure | str | Iterable[AnyMeasure | str],
    scores: ArrayLike,
    data: RankingData,
    *,
    n_jobs: int | None = None,
) -> dict[Measure, FloatArray]:
    """Values per query of one or several measures; NaN = query left out by the measure's convention.

    Parameters
    ----------
    measures
        Measures, or their names.
    scores
        One number per document, in the order in which the rows of ``data`` were given, as ``predict`` has them. A score
        of −inf means that the document was not retrieved: it counts among the relevant documents that could have been
        found, but stands at no rank.
    data
        The documents with their labels.
    n_jobs
        Threads to use; all cores by default.

    >>> data = RankingData.from_arrays([[0.0]] * 2, [0, 1], qid=[1, 1])
    >>> measure_values(["NDCG@1", "MRR"], [2.0, 1.0], data)
    {NDCG@1: array([0.]), MRR: array([0.5])}
    """
    from gradrank.measures.registry import as_measures  # which needs every measure, and they need this module's kin

    return bound_values(bind_measures(as_measures(measures), data, n_jobs=n_jobs), in_data_order(scores, data))

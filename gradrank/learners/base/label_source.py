"""The label source that a learner reads."""

from __future__ import annotations

from gradrank.measures import AnyMeasure


def label_of(given: str | None, measure: AnyMeasure) -> str | None:
    """The label source to learn from: the one given, or else the one that the measure reads.

    >>> from gradrank.measures import NDCG
    >>> label_of(None, NDCG(10, label="clicks")), label_of("grades", NDCG(10, label="clicks"))
    ('clicks', 'grades')
    """
    if given is not None:
        return given
    return measure.sources[0]

"""The label source that a learner reads."""

from __future__ import annotations

from gradrank.measures import AnyMeasure, Graded


def label_of(given: str | None, measure: AnyMeasure) -> str | None:
    """The label source to learn from: the one given, or else the one that the measure reads.

    >>> from gradrank.measures import NDCG
    >>> label_of(None, NDCG(10, label="clicks")), label_of("grades", NDCG(10, label="clicks"))
    ('clicks', 'grades')
    """
    if given is not None:
        return given
    part = measure.parts[0] if isinstance(measure, Graded) else measure
    return part.label or part.default_source

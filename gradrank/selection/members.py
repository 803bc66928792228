"""What a portfolio tries, in which order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from gradrank.measures import NDCG, AnyMeasure, Measure
from gradrank.objectives import Regression

# Trees that see only part of the features differ more from each other, which is what summing them lives on.
_FEATURES = 0.5
# Shapes of the λ-trees, one after the other: leaves and rate.
_SHAPES = ((15, 0.05), (7, 0.05), (31, 0.05))


@dataclass(frozen=True)
class Member:
    """One learner of a portfolio: an algorithm and its parameters, from which it can be trained again."""

    name: str
    algorithm: str
    parameters: Mapping[str, Any]
    in_bag: bool = False
    """Whether it is one of the like-minded models whose plain sum everything else is added to."""


def portfolio(measure: AnyMeasure, random_state: int = 0, *, nets: bool = True) -> Iterator[Member]:
    """Learners without end: λ-trees of several shapes, and early on one each of MART, a linear ranker and a net.

    >>> from itertools import islice
    >>> [member.name for member in islice(portfolio(NDCG(10)), 5)]
    ['lambdamart 1', 'lambdamart 2', 'mart', 'lambdamart 3', 'ranksvm']
    """
    target = _target(measure)
    regression = str(Regression(target.label))
    others = [
        Member(
            "mart",
            "mart",
            {"objective": regression, "measure": str(measure), "features": _FEATURES, "random_state": random_state},
        ),
        Member("ranksvm", "ranksvm", {"label": target.label, "measure": str(measure)}),
    ]
    if nets:
        settings = {"objective": str(target), "measure": str(measure), "hidden": "32", "random_state": random_state}
        others.append(Member("lambdarank", "lambdarank", settings))
    for number in count(1):
        leaves, rate = _SHAPES[(number - 1) % len(_SHAPES)]
        parameters = {
            "objective": str(target),
            "measure": str(measure),
            "leaves": leaves,
            "rate": rate,
            "features": _FEATURES,
            "random_state": random_state + number,
        }
        yield Member(f"lambdamart {number}", "lambdamart", parameters, in_bag=True)
        # Two λ-trees first: the budget may allow no more.
        if number >= 2 and others:
            yield others.pop(0)


def _target(measure: AnyMeasure) -> Measure:
    """What λ's follow: the measure, its first part if it is graded, NDCG@10 if it has no fast swap deltas."""
    first = measure.parts[0]
    return first if first.swap is not None else NDCG(10)

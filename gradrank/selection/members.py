"""The members of a portfolio: which learners are tried, with which parameters, in which order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from gradrank.measures import NDCG, AnyMeasure, Measure
from gradrank.objectives import Regression

# Trees that see only part of the features differ more from each other, and the sum gains by their differences.
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
    """Whether it is one of the λ-trees that are summed with equal weight; other members must prove that they help."""


def portfolio(measure: AnyMeasure, random_state: int = 0, *, nets: bool = True) -> Iterator[Member]:
    """Members without end: λ-trees of several shapes, and early on one each of MART, a linear ranker and a net.

    Parameters
    ----------
    measure
        what the portfolio is to be good at
    random_state
        seed of the first members; each λ-tree has its own
    nets
        whether to try a net, which needs PyTorch

    Examples
    --------
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
            {
                "objective": regression,
                "measure": str(measure),
                "colsample_bytree": _FEATURES,
                "random_state": random_state,
            },
        ),
        Member("ranksvm", "ranksvm", {"label": target.label, "measure": str(measure)}),
    ]
    if nets:
        settings = {
            "objective": str(target),
            "measure": str(measure),
            "hidden_layer_sizes": "32",
            "random_state": random_state,
        }
        others.append(Member("lambdarank", "lambdarank", settings))
    for number in count(1):
        leaves, rate = _SHAPES[(number - 1) % len(_SHAPES)]
        parameters = {
            "objective": str(target),
            "measure": str(measure),
            "num_leaves": leaves,
            "learning_rate": rate,
            "colsample_bytree": _FEATURES,
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

"""Strategies that find the ordered top k by asking questions; all of them by name."""

from __future__ import annotations

from gradrank.errors import DataError
from gradrank.labeling.strategies.base import Estimate, Pair, Request, Single, State, Strategy
from gradrank.labeling.strategies.grades import GRADES
from gradrank.labeling.strategies.heap import HEAP, HEAP_INFER
from gradrank.labeling.strategies.insertion import INSERTION
from gradrank.labeling.strategies.tournament import TOURNAMENT

STRATEGIES = {each.name: each for each in (TOURNAMENT, HEAP, HEAP_INFER, INSERTION, GRADES)}
"""All strategies by name; the first is the default."""
DEFAULT_STRATEGY = TOURNAMENT.name


def strategy(name: str) -> Strategy:
    """The strategy of a name.

    >>> strategy("heap").title
    'Heap, exactly as Algorithm 1 of Niu et al. 2012'
    """
    try:
        return STRATEGIES[name]
    except KeyError:
        raise DataError(f"there is no strategy {name!r}, expected one of {', '.join(STRATEGIES)}") from None


__all__ = [
    "DEFAULT_STRATEGY",
    "STRATEGIES",
    "Estimate",
    "Pair",
    "Request",
    "Single",
    "State",
    "Strategy",
    "strategy",
]

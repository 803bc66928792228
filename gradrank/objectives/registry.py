"""Objectives by name: the same grammar as measures.

``NDCG@10`` is the recommended λ-gradient for that measure; ``Lambda(NDCG@10)`` is the papers' exact form, and takes
every option of :class:`Lambda` (``Lambda(NDCG, cost=sigmoid, mu=1, pairs=misranked)``); ``Regression`` is least
squares.
"""

from __future__ import annotations

from typing import Any

from gradrank.errors import MeasureError
from gradrank.measures import Measure
from gradrank.measures.grammar import Expression, parse_expression
from gradrank.measures.registry import measure_of
from gradrank.objectives.costs import COSTS, ObjectiveError
from gradrank.objectives.lambda_gradient import Lambda
from gradrank.objectives.objective import Objective
from gradrank.objectives.pointwise import Regression

_LAMBDA_OPTIONS = ("cost", "sigma", "mu", "pairs", "truncation", "normalise", "gap", "ties")
_WORDS = {"true": True, "false": False, "none": None}


def recommended(measure: Measure) -> Lambda:
    """The λ-gradient that learns best without tuning: see the page on training for the measurements.

    >>> from gradrank.measures import NDCG
    >>> recommended(NDCG(10))
    Lambda(NDCG@10, normalise=log, gap=true)
    """
    return Lambda(measure, normalise="log", gap=True)


def parse_objective(text: str) -> Objective:
    """Make an objective from its name.

    >>> parse_objective("MAP"), parse_objective("Lambda(NDCG, cost=sigmoid, mu=1)")
    (Lambda(MAP, normalise=log, gap=true), Lambda(NDCG, cost=sigmoid, mu=1))
    """
    return objective_of(parse_expression(text))


def objective_of(expression: Expression) -> Objective:
    """Make an objective from a parsed name."""
    name = expression.name.lower()
    if name == "lambda":
        return _lambda(expression)
    if name == "regression":
        unknown = set(expression.keywords) - {"label"}
        if unknown or expression.arguments or expression.cutoff is not None:
            raise ObjectiveError("Regression takes label=NAME, nothing else")
        return Regression(**expression.keywords)  # type: ignore[arg-type]
    measure = measure_of(expression)
    if not isinstance(measure, Measure):
        raise ObjectiveError(f"{measure} chooses among models; it is not an objective")
    return recommended(measure)


def _lambda(expression: Expression) -> Lambda:
    if len(expression.arguments) != 1 or expression.cutoff is not None:
        raise ObjectiveError("Lambda takes one measure and options, e.g. Lambda(NDCG@10, cost=sigmoid)")
    target = expression.arguments[0]
    if not isinstance(target, str | Expression):
        raise ObjectiveError(f"Lambda takes a measure, found {target!r}")
    measure = measure_of(Expression(target) if isinstance(target, str) else target)
    options: dict[str, Any] = {}
    for key, value in expression.keywords.items():
        if key not in _LAMBDA_OPTIONS:
            raise ObjectiveError(f"Lambda has no option {key!r}; it has {', '.join(_LAMBDA_OPTIONS)}")
        options[key] = (
            _WORDS.get(value.lower(), value) if isinstance(value, str) and key in ("gap", "truncation") else value
        )
    cost = options.pop("cost", "ranknet")
    if cost not in COSTS:
        raise ObjectiveError(f"Lambda: cost is {cost!r}, expected {' or '.join(COSTS)}")
    shape = {key: options.pop(key) for key in ("sigma", "mu") if key in options}
    try:
        made = COSTS[cost](**shape)
    except TypeError:
        raise ObjectiveError(f"Lambda: cost {cost} does not take {', '.join(shape)}") from None
    if not isinstance(measure, Measure):
        raise MeasureError(f"Lambda takes one measure, found {measure}")
    return Lambda(measure, cost=made, **options)

"""Objectives by name: the same grammar as measures.

``NDCG@10`` is the recommended λ-gradient for that measure; ``Lambda(NDCG@10)`` is the papers' exact form, and takes
every option of :class:`Lambda` (``Lambda(NDCG, cost=sigmoid, mu=1, pairs=misranked)``); ``Regression`` is least
squares. ``Tiered(NDCG, CNDCG(label=clicks), weight=0.2)`` and ``Scheduled(NDCG, Lambda(NDCG, cost=sigmoid),
schedule=linear, w0=0.1, eta=0.01)`` compose them; a bare measure inside is the papers' exact form.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gradrank.errors import MeasureError
from gradrank.measures import Measure
from gradrank.measures.grammar import Expression, parse_expression
from gradrank.measures.registry import measure_of
from gradrank.objectives.costs import COSTS, ObjectiveError
from gradrank.objectives.lambda_gradient import Lambda
from gradrank.objectives.objective import Objective
from gradrank.objectives.pointwise import Regression
from gradrank.objectives.schedule import Scheduled
from gradrank.objectives.tiers import Tiered

_LAMBDA_OPTIONS = ("cost", "sigma", "mu", "pairs", "truncation", "normalise", "gap", "ties")
_WORDS = {"true": True, "false": False, "none": None}


def recommended(measure: Measure) -> Lambda:
    """The λ-gradient that learns best without tuning: see the page on training for the measurements.

    >>> from gradrank.measures import NDCG
    >>> recommended(NDCG(10))
    Lambda(NDCG@10, normalise=log, gap=true)
    """
    return Lambda(measure, normalise="log", gap=True)


def normalised_by_deviation(objective: Objective) -> Objective:
    """The objective for gradient steps: λ's without other normalisation are divided by their deviation in the query.

    >>> normalised_by_deviation(parse_objective("Lambda(NDCG)"))
    Lambda(NDCG, normalise=deviation)
    """
    if isinstance(objective, Lambda) and objective.normalise == "none":
        return replace(objective, normalise="deviation")
    if isinstance(objective, Tiered):
        return replace(objective, tiers=tuple(normalised_by_deviation(tier) for tier in objective.tiers))  # type: ignore[misc]
    if isinstance(objective, Scheduled):
        first, second = normalised_by_deviation(objective.first), normalised_by_deviation(objective.second)
        return replace(objective, first=first, second=second)
    return objective


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
    if name == "tiered":
        return _tiered(expression)
    if name == "scheduled":
        return _scheduled(expression)
    if name == "regression":
        unknown = set(expression.keywords) - {"label"}
        if unknown or expression.arguments or expression.cutoff is not None:
            raise ObjectiveError("Regression takes label=NAME, nothing else")
        return Regression(**expression.keywords)  # type: ignore[arg-type]
    measure = measure_of(expression)
    if not isinstance(measure, Measure):
        raise ObjectiveError(f"{measure} chooses among models; it is not an objective")
    return recommended(measure)


def _part(item: object) -> Objective:
    """An objective inside another; a bare measure is the papers' λ-gradient, which compositions are defined on."""
    if not isinstance(item, str | Expression):
        raise ObjectiveError(f"expected a measure or an objective, found {item!r}")
    expression = Expression(item) if isinstance(item, str) else item
    if expression.name.lower() in ("lambda", "tiered", "scheduled", "regression"):
        return objective_of(expression)
    measure = measure_of(expression)
    if not isinstance(measure, Measure):
        raise ObjectiveError(f"{measure} chooses among models; it is not an objective")
    return Lambda(measure)


def _tiered(expression: Expression) -> Tiered:
    unknown = set(expression.keywords) - {"weight", "weights", "zeros"}
    if unknown or expression.cutoff is not None:
        raise ObjectiveError("Tiered takes measures, weight=number (or weights=[…], one a tier) and zeros=true")
    tiers = tuple(_part(item) for item in expression.arguments)
    given = expression.keywords.get("weights")
    if given is None:
        weight = expression.keywords.get("weight", 0.2)
        if len(tiers) != 2 or isinstance(weight, bool) or not isinstance(weight, int | float):
            raise ObjectiveError("Tiered: two tiers take weight=number, more take weights=[…], one a tier")
        given = (1.0 - weight, weight)
    if not isinstance(given, tuple) or not all(isinstance(item, int | float) for item in given):
        raise ObjectiveError(f"Tiered: weights is {given!r}, expected a list of numbers")
    zeros = expression.keywords.get("zeros", "false")
    if str(zeros).lower() not in ("true", "false"):
        raise ObjectiveError(f"Tiered: zeros is {zeros!r}, expected true or false")
    return Tiered(tiers, tuple(float(item) for item in given), str(zeros).lower() == "true")  # type: ignore[arg-type]


def _scheduled(expression: Expression) -> Scheduled:
    unknown = set(expression.keywords) - {"schedule", "w0", "eta"}
    if unknown or expression.cutoff is not None or len(expression.arguments) != 2:
        raise ObjectiveError("Scheduled takes two objectives, schedule=linear or exponential, w0=number and eta=number")
    options: dict[str, Any] = dict(expression.keywords)
    for key in ("w0", "eta"):
        if key in options and (isinstance(options[key], bool) or not isinstance(options[key], int | float)):
            raise ObjectiveError(f"Scheduled: {key} is {options[key]!r}, expected a number")
    first, second = (_part(item) for item in expression.arguments)
    return Scheduled(first, second, **options)


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

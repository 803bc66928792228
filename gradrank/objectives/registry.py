"""Objectives by name: the same grammar as measures.

``NDCG@10`` is the recommended λ-gradient with that measure as the goal; ``Lambda(NDCG@10)`` is the papers' exact form,
and takes every option of :class:`Lambda` (``Lambda(NDCG, cost=sigmoid, mu=1, pairs=misranked)``) or the name of another
construction (``Lambda(MAP, construction=spring-smooth)``). ``LambdaLoss(NDCG, scheme=loss2pp)``, ``LambdaWide(NDCG)``
and ``LambdaGap(P@10)`` weigh pairs otherwise. ``RankNet``, ``ListNet``, ``ListMLE(k=10)``, ``Focused(k=10, beta=0.5)``,
``XENDCG``, ``ApproxNDCG``, ``NeuralNDCG``, ``Regression``, ``Differences`` and ``Logistic`` are losses of their own.
``Noisy(MRR, samples=4)`` averages λ's over noise. ``Tiered(NDCG, CNDCG(label=clicks), weight=0.2)`` and
``Scheduled(NDCG, Lambda(NDCG, cost=sigmoid), schedule=linear, w0=0.1, eta=0.01)`` compose objectives; a bare measure
means the same inside as alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import fields, replace
from typing import Any

from gradrank.errors import MeasureError, ObjectiveError, UnknownMeasureError
from gradrank.measures import Measure
from gradrank.measures.grammar import Expression, parse_expression
from gradrank.measures.registry import measure_of
from gradrank.objectives.constructed import Constructed, constructed
from gradrank.objectives.constructions import Construction, construction_of
from gradrank.objectives.costs import COSTS, PairCost
from gradrank.objectives.differences import Differences
from gradrank.objectives.focused import Focused
from gradrank.objectives.lambda_gradient import Lambda
from gradrank.objectives.lambda_loss import DISCOUNTED, LambdaGap, LambdaLoss, LambdaWide
from gradrank.objectives.listwise import ListMLE, ListNet
from gradrank.objectives.noisy import Noisy
from gradrank.objectives.objective import Objective
from gradrank.objectives.pointwise import Logistic, Regression
from gradrank.objectives.ranknet import RankNetPairs
from gradrank.objectives.schedule import Scheduled
from gradrank.objectives.smooth_ndcg import ApproxNDCG, NeuralNDCG
from gradrank.objectives.tiers import Tiered
from gradrank.objectives.xendcg import XENDCG

PLAIN: dict[str, type[Objective]] = {
    "RankNet": RankNetPairs,
    "ListNet": ListNet,
    "ListMLE": ListMLE,
    "Focused": Focused,
    "XENDCG": XENDCG,
    "ApproxNDCG": ApproxNDCG,
    "NeuralNDCG": NeuralNDCG,
    "Regression": Regression,
    "Differences": Differences,
    "Logistic": Logistic,
}
"""Objectives that are built on no measure, by name; their options are their fields."""

LAMBDAS: dict[str, type[Lambda]] = {kind.name: kind for kind in (Lambda, LambdaLoss, LambdaWide, LambdaGap)}
"""λ-gradients by name; what they print are their options."""

# Objectives of LightGBM, XGBoost and CatBoost, and what comes next to them here.
_ELSEWHERE = {
    "lambdarank": "NDCG@10", "rank_xendcg": "XENDCG", "rank:ndcg": "NDCG@10", "rank:map": "MAP",
    "rank:pairwise": "RankNet", "pairlogit": "RankNet", "pairlogitpairwise": "RankNet", "yetirank": "NDCG@10",
    "yetirankpairwise": "NDCG@10", "queryrmse": "Differences", "querysoftmax": "ListNet", "stochasticrank": "NDCG@10",
    "reg:squarederror": "Regression", "rmse": "Regression", "binary": "Logistic",
    "binary:logistic": "Logistic", "logloss": "Logistic",
}  # fmt: skip

# The share of all lower tiers together, unless given.
_LOWER_TIERS = 0.2
_WORDS = {"true": True, "false": False, "none": None}
# The grammar is Python's, where a hyphen subtracts.
_HYPHENATED = re.compile(r"(construction\s*=\s*)([A-Za-z]+(?:-[A-Za-z]+)+)")


def recommended(measure: Measure, *, newton: bool = True) -> Lambda:
    """The λ-gradient that learns best for a measure without tuning; the guide on training has the measurements.

    It trains for ``measure.training_target()``, over all pairs of the list, and lets the measure choose the model: with
    its cut-off the measure is blind below, where the documents stand that ought to be above. Targets that are sums of
    gain × discount have the weights of :class:`LambdaWide`.

    Parameters
    ----------
    measure
        The measure to improve.
    newton
        Whether Newton steps are meant, for which λ's are normalized as LightGBM does it.

    >>> from gradrank.measures import MAP, MRR, NDCG
    >>> recommended(NDCG(10)), recommended(MRR(rel=2)), recommended(MAP(), newton=False)
    (LambdaWide(NDCG, normalize=log, gap=true, goal=NDCG@10), LambdaWide(NDCG(gain=linear), normalize=log, gap=true, \
goal=MRR(rel=2)), Lambda(MAP))
    """
    target = measure.training_target()
    kind = LambdaWide if isinstance(target, DISCOUNTED) else Lambda
    return kind(target, normalize="log" if newton else "none", gap=newton, goal=measure)


def with_construction(objective: str | Objective, construction: str | Construction) -> Lambda | Constructed | Tiered:
    """The λ's of an objective's measure by another construction; its pair cost, normalization and ties are kept.

    Parameters
    ----------
    objective
        A λ-gradient or tiers of them, or a name; the name of a measure means the papers' λ's, as constructions are
        defined on these.
    construction
        A construction, or its name.

    >>> with_construction("MAP", "spring-smooth")
    Lambda(MAP, construction=spring-smooth)
    >>> with_construction("Lambda(NDCG@10, cost=sigmoid)", "local-cost")
    Lambda(NDCG@10, construction=local-cost, cost=sigmoid)
    >>> with_construction("Tiered(NDCG, CNDCG)", "unit-pairs")
    Tiered(Lambda(NDCG, construction=unit-pairs), Lambda(CNDCG, construction=unit-pairs), weight=0.2)
    """
    made = construction_of(construction) if isinstance(construction, str) else construction
    given = as_objective(objective, bare=Lambda)
    if isinstance(given, Tiered):
        return replace(given, tiers=tuple(_built(tier, made) for tier in given.tiers))
    return _built(given, made)


def _built(given: Objective, made: Construction) -> Lambda | Constructed:
    if isinstance(given, Lambda):
        if type(given) is not Lambda:
            raise ObjectiveError(
                f"the construction {made.name} makes λ's of a measure, and {given} has weights of its own"
            )
        extra = [name for name, default in (("pairs", "all"), ("truncation", None), ("gap", False))
                 if getattr(given, name) != default]  # fmt: skip
        if extra:
            raise ObjectiveError(f"the construction {made.name} has pairs of its own: {given} gives {', '.join(extra)}")
    elif not isinstance(given, Constructed):
        raise ObjectiveError(f"a construction makes λ's of a measure, and {given} is not built on one")
    return constructed(given.target, made, cost=given.cost, normalize=given.normalize, ties=given.ties)


Bare = Callable[[Measure], Lambda]
"""What a measure means where an objective is expected."""


def as_objective(given: object, *, bare: Bare = recommended) -> Objective:
    """An objective from itself, a measure, or the name of either.

    Parameters
    ----------
    given
        The objective, the measure or the name.
    bare
        What a measure means; see :func:`parse_objective`.

    >>> from gradrank.measures import MAP
    >>> as_objective(MAP()) == as_objective("MAP") == as_objective(parse_objective("MAP"))
    True
    """
    if isinstance(given, str):
        return parse_objective(given, bare=bare)
    if isinstance(given, Measure):
        return bare(given)
    if not isinstance(given, Objective):
        raise ObjectiveError(
            f"the objective is {given!r}, expected a measure, an objective, or a name such as 'NDCG@10'"
        )
    return given


def parse_objective(text: str, *, bare: Bare = recommended) -> Objective:
    """Make an objective from its name.

    Parameters
    ----------
    text
        The name of a measure, which means its λ-gradient, or of an objective such as ``Lambda(NDCG, cost=sigmoid)`` or
        ``ListNet``.
    bare
        What the name of a measure means, alone and inside ``Tiered`` and ``Scheduled``; ``Lambda`` = the papers' λ's.

    >>> parse_objective("MAP"), parse_objective("Lambda(NDCG, cost=sigmoid, mu=1)")
    (Lambda(MAP, normalize=log, gap=true), Lambda(NDCG, cost=sigmoid, mu=1))
    """
    nearest = _ELSEWHERE.get(text.strip().lower().partition("@")[0])
    if nearest is not None:
        raise UnknownMeasureError(
            f"{text!r} is another tool's name of an objective; here it is a measure or a loss, such as {nearest}"
        )
    return _objective(
        parse_expression(_HYPHENATED.sub(lambda found: found[1] + found[2].replace("-", "_"), text)), bare
    )


def _objective(item: object, bare: Bare) -> Objective:
    """The objective that an expression stands for."""
    if not isinstance(item, str | Expression):
        raise ObjectiveError(f"expected a measure or an objective, found {item!r}")
    expression = Expression(item) if isinstance(item, str) else item
    named = _named(expression, bare)
    return named if named is not None else bare(_measure(expression))


def _named(expression: Expression, bare: Bare) -> Objective | None:
    """The objective that a name stands for; None if it is not an objective's."""
    name = expression.name.lower()
    for spelling, gradient in LAMBDAS.items():
        if name == spelling.lower():
            return _lambda(expression, gradient)
    composed: dict[str, Callable[[Expression, Bare], Objective]] = {
        "tiered": _tiered,
        "scheduled": _scheduled,
        "noisy": _noisy,
    }
    if name in composed:
        return composed[name](expression, bare)
    for spelling, kind in PLAIN.items():
        if name == spelling.lower():
            return _plain(spelling, kind, expression)
    return None


def _measure(expression: Expression) -> Measure:
    try:
        measure = measure_of(expression)
    except UnknownMeasureError as error:
        names = ", ".join((*LAMBDAS, "Tiered", "Scheduled", "Noisy", *PLAIN))
        raise UnknownMeasureError(f"{error}; objectives that are no measures are {names}") from None
    if not isinstance(measure, Measure):
        raise ObjectiveError(f"{measure} chooses among models; it is not an objective")
    return measure


def _plain(name: str, kind: type[Objective], expression: Expression) -> Objective:
    options = {item.name: item.default for item in fields(kind)}
    if set(expression.keywords) - set(options) or expression.arguments or expression.cutoff is not None:
        raise ObjectiveError(f"{name} takes {', '.join(f'{option}=…' for option in options)}, nothing else")
    # "none" is a word of its own where it is the default, as in normalize=none.
    given = expression.keywords.items()
    return kind(**{key: value if value == options[key] else _word(value) for key, value in given})


def _word(value: object) -> Any:
    return _WORDS.get(value.lower(), value) if isinstance(value, str) else value


def _tiered(expression: Expression, bare: Bare) -> Tiered:
    unknown = set(expression.keywords) - {"weight", "weights", "zeros", "normalize"}
    if unknown or expression.cutoff is not None:
        raise ObjectiveError(
            "Tiered takes measures, weight=number (or weights=[…], one per tier or per lower tier), zeros=true and "
            "normalize=deviation"
        )
    tiers = tuple(_objective(item, bare) for item in expression.arguments)
    given = expression.keywords.get("weights")
    if given is None and "weight" not in expression.keywords and len(tiers) > 2:
        given = tuple(round(_LOWER_TIERS / (len(tiers) - 1), 12) for _ in tiers[1:])
    if given is None:
        weight = expression.keywords.get("weight", _LOWER_TIERS)
        if len(tiers) != 2 or isinstance(weight, bool) or not isinstance(weight, int | float):
            raise ObjectiveError(
                "Tiered: two tiers take weight=number, more take weights=[…], one per tier or per lower tier"
            )
        given = (1.0 - weight, weight)
    if not isinstance(given, tuple) or not all(isinstance(item, int | float) for item in given):
        raise ObjectiveError(f"Tiered: weights is {given!r}, expected a list of numbers")
    zeros = expression.keywords.get("zeros", "false")
    if str(zeros).lower() not in ("true", "false"):
        raise ObjectiveError(f"Tiered: zeros is {zeros!r}, expected true or false")
    weights = tuple(float(item) for item in given)
    options: dict[str, Any] = {"zeros": str(zeros).lower() == "true"}
    if "normalize" in expression.keywords:
        options["normalize"] = expression.keywords["normalize"]
    return Tiered(tiers, weights, **options)  # type: ignore[arg-type]


def _scheduled(expression: Expression, bare: Bare) -> Scheduled:
    unknown = set(expression.keywords) - {"schedule", "w0", "eta", "normalize"}
    if unknown or expression.cutoff is not None or len(expression.arguments) != 2:
        raise ObjectiveError(
            "Scheduled takes two objectives, schedule=linear or exponential, w0=number, eta=number and "
            "normalize=deviation"
        )
    options: dict[str, Any] = dict(expression.keywords)
    for key in ("w0", "eta"):
        if key in options and (isinstance(options[key], bool) or not isinstance(options[key], int | float)):
            raise ObjectiveError(f"Scheduled: {key} is {options[key]!r}, expected a number")
    first, second = (_objective(item, bare) for item in expression.arguments)
    return Scheduled(first, second, **options)


def _noisy(expression: Expression, bare: Bare) -> Noisy:
    if (
        set(expression.keywords) - {"samples", "scale"}
        or expression.cutoff is not None
        or len(expression.arguments) != 1
    ):
        raise ObjectiveError("Noisy takes one objective, samples=number and scale=number")
    options: dict[str, Any] = dict(expression.keywords)
    return Noisy(_objective(expression.arguments[0], bare), **options)


def _lambda(expression: Expression, kind: type[Lambda]) -> Objective:
    name = kind.name
    if len(expression.arguments) != 1 or expression.cutoff is not None:
        raise ObjectiveError(f"{name} takes one measure and options, e.g. Lambda(NDCG@10, cost=sigmoid)")
    measure = _target(name, expression.arguments[0])
    options: dict[str, Any] = {
        key: _word(value) if key in ("gap", "truncation") else value for key, value in expression.keywords.items()
    }
    if "construction" in options and kind is Lambda:
        return _constructed(measure, options)
    known = [item.name for item in fields(kind) if item.name not in ("target", "cost")]
    cost = _cost(options, others=known)
    if "goal" in options:
        options["goal"] = _target(f"{name}: goal", options["goal"])
    for key in options:
        if key not in known:
            more = ("construction",) if kind is Lambda else ()
            names = ", ".join(dict.fromkeys(("cost", *_cost_options(), *known, *more)))
            raise ObjectiveError(f"{name} has no option {key!r}; it has {names}")
    return kind(measure, cost=cost, **options)


def _target(name: str, item: object) -> Measure:
    if not isinstance(item, str | Expression):
        raise ObjectiveError(f"{name} takes a measure, found {item!r}")
    measure = measure_of(Expression(item) if isinstance(item, str) else item)
    if not isinstance(measure, Measure):
        raise MeasureError(f"{name} takes one measure, found {measure}")
    return measure


def _constructed(measure: Measure, options: dict[str, Any]) -> Objective:
    name = str(options.pop("construction"))
    own = {item.name for item in fields(type(construction_of(name)))}
    cost = _cost(options, others=own)
    for key in ("pairs", "truncation", "gap"):
        if key in options:
            raise ObjectiveError(f"Lambda: a construction has pairs of its own and does not take {key}")
    shared = {key: options.pop(key) for key in ("normalize", "ties") if key in options}
    return constructed(measure, construction_of(name, **options), cost=cost, **shared)


def _cost(options: dict[str, Any], others: Collection[str] = ()) -> PairCost:
    """Take the pair cost and its options out of those of λ's; ``others`` are options that are not a cost's."""
    name = options.pop("cost", "ranknet")
    if name not in COSTS:
        raise ObjectiveError(f"Lambda: cost is {name!r}, expected {' or '.join(COSTS)}")
    known = [item.name for item in fields(COSTS[name])]
    foreign = [key for key in options if key in _cost_options() and key not in (*known, *others)]
    if foreign:
        raise ObjectiveError(f"Lambda: cost {name} does not take {', '.join(foreign)}")
    return COSTS[name](**{key: options.pop(key) for key in known if key in options and key not in others})


def _cost_options() -> list[str]:
    """The options of all pair costs."""
    return list(dict.fromkeys(item.name for kind in COSTS.values() for item in fields(kind)))

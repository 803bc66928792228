"""The one list of measures; the command line, the docs, the report and the contract tests read it."""

from __future__ import annotations

from dataclasses import fields
from difflib import get_close_matches

from gradrank.errors import MeasureError, UnknownMeasureError
from gradrank.measures.average_precision import MAP
from gradrank.measures.base import Measure
from gradrank.measures.bpref import Bpref
from gradrank.measures.cndcg import CNDCG
from gradrank.measures.dcg import DCG
from gradrank.measures.err import ERR
from gradrank.measures.graded import AnyMeasure, Graded
from gradrank.measures.grammar import Expression, parse_expression
from gradrank.measures.kappa_err import KappaERR
from gradrank.measures.kappa_ndcg import KappaNDCG
from gradrank.measures.kendall import KendallTau
from gradrank.measures.mean_ndcg import MeanNDCG
from gradrank.measures.ndcg import NDCG
from gradrank.measures.precision import Precision
from gradrank.measures.rbp import RBP
from gradrank.measures.recall import Recall
from gradrank.measures.reciprocal_rank import MRR
from gradrank.measures.wta import WTA

REGISTRY: dict[str, type[Measure]] = {
    kind.name: kind
    for kind in (
        NDCG,
        DCG,
        MeanNDCG,
        MAP,
        MRR,
        WTA,
        Precision,
        Recall,
        RBP,
        ERR,
        CNDCG,
        KappaNDCG,
        KappaERR,
        KendallTau,
        Bpref,
    )
}

_BY_SPELLING: dict[str, type[Measure]] = {
    spelling.lower(): kind for kind in REGISTRY.values() for spelling in (kind.name, *kind.aliases)
}


def parse_measure(text: str) -> AnyMeasure:
    """Make a measure from its name.

    >>> parse_measure("ndcg(convention=letor4)@10")
    NDCG(convention=letor4)@10
    >>> parse_measure("Graded(NDCG@3, CNDCG@3)").parts
    (NDCG@3, CNDCG@3)
    """
    return measure_of(parse_expression(text))


def measure_of(expression: Expression) -> AnyMeasure:
    """Make a measure from a parsed name."""
    if expression.name.lower() == "graded":
        return _graded(expression)
    kind = _BY_SPELLING.get(expression.name.lower())
    if kind is None:
        close = get_close_matches(expression.name.lower(), _BY_SPELLING, n=1)
        hint = f"; did you mean {_BY_SPELLING[close[0]].name}?" if close else ""
        raise UnknownMeasureError(
            f"there is no measure {expression.name!r}{hint} (the measures are {', '.join(REGISTRY)}, Graded)"
        )
    if expression.arguments:
        raise MeasureError(f"{kind.name}: parameters are given as name=value, found {expression.arguments[0]!r}")
    allowed = [item.name for item in fields(kind) if item.name != "cutoff"]
    for key in expression.keywords:
        if key not in allowed:
            raise MeasureError(f"{kind.name} has no parameter {key!r}; it has {', '.join(allowed)}")
    return kind(expression.cutoff, **expression.keywords)  # type: ignore[arg-type]


def _graded(expression: Expression) -> Graded:
    unknown = set(expression.keywords) - {"tolerance"}
    if unknown or expression.cutoff is not None:
        raise MeasureError("Graded takes measures and tolerance=number, nothing else")
    parts: list[Measure] = []
    for item in expression.arguments:
        part = measure_of(Expression(item) if isinstance(item, str) else item) if isinstance(
            item, str | Expression
        ) else None  # fmt: skip
        if not isinstance(part, Measure):
            raise MeasureError(f"Graded takes measures, found {item!r}")
        parts.append(part)
    return Graded(tuple(parts), expression.keywords.get("tolerance", 0.0))  # type: ignore[arg-type]

"""The one list of measures; the command line, the docs, the report and the contract tests read it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from difflib import get_close_matches

from gradrank.errors import MeasureError, UnknownMeasureError
from gradrank.measures.average_precision import MAP
from gradrank.measures.base import Measure
from gradrank.measures.bpref import Bpref
from gradrank.measures.cndcg import CNDCG
from gradrank.measures.dcg import DCG
from gradrank.measures.err import ERR
from gradrank.measures.graded import AnyMeasure, Graded, single_measures
from gradrank.measures.grammar import TREC_EVAL_NAMES, Expression, parse_expression, trec_eval_name
from gradrank.measures.kappa_err import KappaERR
from gradrank.measures.kappa_ndcg import KappaNDCG
from gradrank.measures.kendall import KendallTau
from gradrank.measures.mean_ndcg import MeanNDCG
from gradrank.measures.ndcg import NDCG
from gradrank.measures.nwpref import NWPref
from gradrank.measures.ppref import PPref
from gradrank.measures.precision import Precision
from gradrank.measures.rbp import RBP
from gradrank.measures.recall import Recall
from gradrank.measures.reciprocal_rank import MRR
from gradrank.measures.rpref import RPref
from gradrank.measures.wpref import WPref
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
        PPref,
        RPref,
        WPref,
        NWPref,
    )
}

_BY_SPELLING: dict[str, type[Measure]] = {
    spelling.lower(): kind for kind in REGISTRY.values() for spelling in (kind.name, *kind.aliases)
}

_THEIRS = {name.lower(): name for name in TREC_EVAL_NAMES}


def parse_measure(text: str, *, convention: str | None = None) -> AnyMeasure:
    """Make a measure from its name.

    Parameters
    ----------
    text
        A name such as ``NDCG@10``, ``MAP(rel=2)`` or ``Graded(NDCG@3, CNDCG@3)``, in any case; or one of trec_eval's,
        such as ``ndcg_cut_10``, ``recip_rank`` or ``P_5``, which mean its convention.
    convention
        The convention of measures that do not name their own; gradrank's unless given.

    >>> parse_measure("ndcg(convention=letor4)@10"), parse_measure("ndcg_cut_10"), parse_measure("AP")
    (NDCG(convention=letor4)@10, NDCG(convention=trec_eval)@10, MAP)
    >>> parse_measure("Graded(NDCG@3, MAP)", convention="mslr").parts
    (NDCG(convention=mslr)@3, MAP(convention=mslr))
    """
    return measure_of(parse_expression(text), convention)


DEFAULT_MEASURES = ("NDCG@10", "MAP", "MRR")
"""What systems are evaluated by if nobody says otherwise."""


def as_measure(measure: AnyMeasure | str) -> AnyMeasure:
    """A measure from itself or its name.

    >>> as_measure("NDCG@10") == as_measure(NDCG(10))
    True
    """
    if isinstance(measure, str):
        return parse_measure(measure)
    if not isinstance(measure, Measure | Graded):
        raise MeasureError(f"the measure is {measure!r}, expected a measure or a name such as 'NDCG@10'")
    return measure


def as_measures(measures: AnyMeasure | str | Iterable[AnyMeasure | str]) -> tuple[Measure, ...]:
    """One or several measures, or their names, each once; graded ones as their parts.

    >>> as_measures("NDCG@10"), as_measures(["MAP", NDCG(3), "Graded(NDCG@3, MRR)"])
    ((NDCG@10,), (MAP, NDCG@3, MRR))
    """
    given = measures if isinstance(measures, Iterable) and not isinstance(measures, str) else (measures,)
    return single_measures(as_measure(measure) for measure in given)


def measure_of(expression: Expression, convention: str | None = None) -> AnyMeasure:
    """Make a measure from a parsed name; ``convention`` is that of measures that do not name their own."""
    if expression.name.lower() == "graded":
        return _graded(expression, convention)
    theirs = trec_eval_name(expression.name)
    if theirs is not None:
        name, cutoff = theirs
        if cutoff is not None and expression.cutoff is not None:
            raise MeasureError(f"{expression.name}@{expression.cutoff} has two cut-offs, expected one")
        keywords = {"convention": "trec_eval", **expression.keywords}
        expression = Expression(name, expression.arguments, keywords, expression.cutoff if cutoff is None else cutoff)
    kind = _BY_SPELLING.get(expression.name.lower())
    if kind is None:
        raise UnknownMeasureError(_unknown(expression.name))
    if expression.arguments:
        raise MeasureError(f"{kind.name}: parameters are given as name=value, found {expression.arguments[0]!r}")
    allowed = [item.name for item in fields(kind) if item.name != "cutoff"]
    for key in expression.keywords:
        if key not in allowed:
            close = get_close_matches(key, allowed, n=1)
            hint = f"did you mean {close[0]}? It" if close else "it"
            raise MeasureError(f"{kind.name} has no parameter {key!r}; {hint} has {', '.join(allowed)}")
    keywords = dict(expression.keywords)
    if convention is not None:
        keywords.setdefault("convention", convention)
    return kind(expression.cutoff, **keywords)  # type: ignore[arg-type]


def _unknown(name: str) -> str:
    spellings = {**{spelling: kind.name for spelling, kind in _BY_SPELLING.items()}, **_THEIRS}
    close = get_close_matches(name.lower(), spellings, n=1)
    hint = f"; did you mean {spellings[close[0]]}?" if close else ""
    return (
        f"there is no measure {name!r}{hint} (the measures are {', '.join(REGISTRY)}, Graded; "
        f"of trec_eval's names {', '.join(TREC_EVAL_NAMES)})"
    )


def _graded(expression: Expression, convention: str | None) -> Graded:
    unknown = set(expression.keywords) - {"tolerance"}
    if unknown or expression.cutoff is not None:
        raise MeasureError("Graded takes measures and tolerance=number, nothing else")
    parts: list[Measure] = []
    for item in expression.arguments:
        part = measure_of(Expression(item) if isinstance(item, str) else item, convention) if isinstance(
            item, str | Expression
        ) else None  # fmt: skip
        if not isinstance(part, Measure):
            raise MeasureError(f"Graded takes measures, found {item!r}")
        parts.append(part)
    return Graded(tuple(parts), expression.keywords.get("tolerance", 0.0))  # type: ignore[arg-type]

"""The grammar of names: ``NDCG@10``, ``MAP(rel=2)``, ``Graded(NDCG@3, CNDCG(label=clicks)@3)``.

A name is a Python expression of a small kind (calls, keywords, ``@``, names, numbers, lists), so Python's own
parser reads it; nothing is evaluated. trec_eval's names of measures are read too: ``ndcg_cut_10``, ``P.5``.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from gradrank.errors import MeasureError

_LONGEST = 2000
# Whole numbers beyond have more digits than a float.
_EXACT = 2.0**53

TREC_EVAL_NAMES = {
    "ndcg_cut_K": "NDCG",
    "map_cut_K": "MAP",
    "recip_rank": "MRR",
    "P_K": "P",
    "recall_K": "Recall",
}
"""trec_eval's names that are no names of ours, K being a number, and the measures that they mean.

Its ``ndcg``, ``map`` and ``bpref`` are names of ours, too, in lower case: they mean what they mean in any case.
"""
# trec_eval takes both P_5 and P.5; the second is no Python.
_DOTTED = re.compile(r"\b(ndcg_cut|map_cut|P|recall)\.(?=\d+\b)")

Value = "str | int | float | tuple[float, ...] | Expression"


def spelt(value: object) -> str:
    """A value as names have it: reading it gives the same value, to the last digit.

    >>> spelt(2.0), spelt(0.1), spelt(0.1234567), spelt((0.5, 3.0)), spelt(True)
    ('2', '0.1', '0.1234567', '[0.5, 3]', 'true')
    """
    if isinstance(value, tuple):
        return "[" + ", ".join(map(spelt, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < _EXACT else repr(value)
    return str(value)


@dataclass(frozen=True)
class Expression:
    """A parsed name with its arguments; what it names is decided by who reads it.

    >>> parse_expression("NDCG(gain=linear)@10")
    Expression(name='NDCG', arguments=(), keywords={'gain': 'linear'}, cutoff=10)
    """

    name: str
    arguments: tuple[object, ...] = ()
    keywords: dict[str, object] = field(default_factory=dict)
    cutoff: int | None = None


def parse_expression(text: str) -> Expression:
    """Parse a name of the grammar; whatever is wrong is said in a MeasureError.

    Parameters
    ----------
    text
        The name, such as ``NDCG@10``.
    """
    shown = text if len(text) <= 60 else text[:57] + "…"
    if not text.strip():
        raise MeasureError("the name of a measure is empty")
    if len(text) > _LONGEST:
        raise MeasureError(f"the name {shown!r} is longer than {_LONGEST} characters")
    try:
        tree = ast.parse(_DOTTED.sub(r"\1_", text.strip()), mode="eval").body
        result = _value(tree, shown)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, MeasureError):
            raise
        raise MeasureError(f"{shown!r} is not a name like NDCG@10 or MAP(rel=2)") from None
    if not isinstance(result, str | Expression):
        raise MeasureError(f"{shown!r} is not a name like NDCG@10 or MAP(rel=2)")
    return Expression(result) if isinstance(result, str) else result


def trec_eval_name(name: str) -> tuple[str, int | None] | None:
    """The measure and the cut-off that one of trec_eval's names means; None if it is none.

    >>> trec_eval_name("ndcg_cut_10"), trec_eval_name("recip_rank"), trec_eval_name("NDCG")
    (('NDCG', 10), ('MRR', None), None)
    """
    stem, _, cutoff = name.rpartition("_")
    if cutoff.isascii() and cutoff.isdigit() and f"{stem}_K" in TREC_EVAL_NAMES:
        return TREC_EVAL_NAMES[f"{stem}_K"], int(cutoff)
    return (TREC_EVAL_NAMES[name], None) if name in TREC_EVAL_NAMES and not name.endswith("_K") else None


def _value(node: ast.expr, shown: str) -> object:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _value(node.operand, shown)
        if isinstance(inner, int | float):
            return -inner
    if isinstance(node, ast.List | ast.Tuple):
        return tuple(_value(item, shown) for item in node.elts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        left = _value(node.left, shown)
        right = _value(node.right, shown)
        base = Expression(left) if isinstance(left, str) else left
        if isinstance(base, Expression) and base.cutoff is None:
            if isinstance(right, bool) or not isinstance(right, int):
                raise MeasureError(f"{shown!r}: the cut-off after @ is {right!r}, expected a whole number")
            return Expression(base.name, base.arguments, base.keywords, right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        arguments = tuple(_value(item, shown) for item in node.args)
        keywords: dict[str, object] = {}
        for item in node.keywords:
            if item.arg is None or item.arg in keywords:
                raise MeasureError(f"{shown!r}: parameters are given as name=value, each once")
            keywords[item.arg] = _value(item.value, shown)
        return Expression(node.func.id, arguments, keywords)
    raise MeasureError(f"{shown!r}: {ast.unparse(node)!r} does not belong in a name like NDCG@10 or MAP(rel=2)")

"""A ranker as one Python file that needs nothing but the standard library (Python 3.8 or later).

It calculates in the order in which gradrank does: scores are the same to the last bit, but for ``tanh``, ``exp`` and
``log1p``, which libraries round in their own ways.
"""

from __future__ import annotations

from gradrank.models.exchange.code_parts import flat_net, flat_trees, note_categories
from gradrank.models.exchange.plan import (
    FeaturePart,
    GradesPart,
    LinearPart,
    Losses,
    NetPart,
    Part,
    Plan,
    SumPart,
    TreesPart,
)
from gradrank.models.exchange.registry import Files
from gradrank.models.trees.tree import CATEGORICAL, DEFAULT_LEFT, MISSING_BITS, MISSING_NONE, MISSING_ZERO, ZERO

_HEAD = '''"""A ranker, written by gradrank {version}; needs the standard library only.

score(document) gives the score of a document: a mapping of feature names to numbers, or a sequence of numbers in the
order of FEATURES; None and NaN are missing values. rank(documents) gives the places of documents, the best first.

As a program: a document per line of standard input, a score per line of standard output.
"""

import math

ORIGIN = {origin}
SHA256 = {sha256}
FEATURES = {names}


def score(document):
    """The score of one document; higher is better."""
    if hasattr(document, "keys"):
        unknown = [name for name in FEATURES if name not in document]
        if unknown:
            raise ValueError("the document lacks the feature %r" % unknown[0])
        document = [document[name] for name in FEATURES]
    if len(document) != len(FEATURES):
        raise ValueError("the document has %d features, expected %d" % (len(document), len(FEATURES)))
    return _root([math.nan if value is None else float(value) for value in document])


def rank(documents):
    """Places of the documents by descending score; of equal scores the earlier comes first."""
    scores = [score(document) for document in documents]
    return sorted(range(len(scores)), key=lambda place: -scores[place])
'''

_TREES = f"""

def _goes_left(value, threshold, decision, cat_start, cat_words):
    if decision & {CATEGORICAL}:
        if not -1.0 < value < 2147483648.0:
            return False
        category = int(value)
        word = cat_start[int(threshold)] + (category >> 5)
        return word < cat_start[int(threshold) + 1] and bool(cat_words[word] >> (category & 31) & 1)
    if value != value:
        if decision & {MISSING_BITS} == {MISSING_NONE}:
            return threshold >= 0.0
        return bool(decision & {DEFAULT_LEFT})
    if decision & {MISSING_BITS} == {MISSING_ZERO} and -{ZERO!r} <= value <= {ZERO!r}:
        return bool(decision & {DEFAULT_LEFT})
    return value <= threshold


def _sum_of_trees(x, total, start, feature, threshold, decision, left, right, leaf, cat_start, cat_words):
    for tree in range(len(start) - 1):
        first = start[tree]
        node = 0 if start[tree + 1] > first else -1
        while node >= 0:
            k = first + node
            is_left = _goes_left(x[feature[k]], threshold[k], decision[k], cat_start, cat_words)
            node = left[k] if is_left else right[k]
        total += leaf[first + tree + ~node]
    return total
"""

_LINEAR = """

def _linear(x, total, columns, weights, mean, scale):
    for j, column in enumerate(columns):
        value = x[column]
        if value == value:
            total += weights[j] * ((value - mean[j]) / scale[j])
    return total
"""

_NET = """

def _net(x, columns, mean, scale, log, sizes, weights, tanh):
    here = []
    for j, column in enumerate(columns):
        value = x[column]
        if value != value or scale[j] == 0.0:
            here.append(0.0)
            continue
        if log:
            value = math.log1p(value) if value >= 0.0 else -math.log1p(-value)
        here.append((value - mean[j]) / scale[j])
    at = 0
    for layer in range(len(sizes) - 1):
        n_in, n_out = sizes[layer], sizes[layer + 1]
        there = list(weights[at + n_in * n_out : at + (n_in + 1) * n_out])
        for i in range(n_in):
            for j in range(n_out):
                there[j] += here[i] * weights[at + i * n_out + j]
        if layer < len(sizes) - 2:
            there = [math.tanh(value) if tanh else max(value, 0.0) for value in there]
        at += (n_in + 1) * n_out
        here = there
    return here[0]
"""

_GRADES = """

def _expected_grade(raw, grades):
    most = max(raw)
    chances = [math.exp(value - most) for value in raw]
    whole = total = 0.0
    for chance in chances:  # sum() rounds otherwise since Python 3.12
        whole += chance
    for chance, grade in zip(chances, grades):
        total += chance / whole * grade
    return total
"""

_TAIL = """

if __name__ == "__main__":
    import sys

    for line in sys.stdin:
        if line.strip():
            print(repr(score(line.replace(",", " ").split())))
"""


def write(plan: Plan, losses: Losses) -> Files:
    """The Python file."""
    from gradrank import __version__

    note_categories(plan, losses)
    writer = _Writer()
    root = writer.function(plan.part)
    names = "[\n" + "".join(f"    {name!a},\n" for name in plan.feature_names) + "]"
    head = _HEAD.format(
        version=__version__, origin=ascii(plan.origin.name), sha256=ascii(plan.origin.sha256), names=names
    )
    helpers = "".join(writer.helpers)
    return {"": f"{head}{helpers}{''.join(writer.code)}\n\n_root = {root}\n{_TAIL}".encode()}


class _Writer:
    """One function ``_part_N(x)`` for each part, with its numbers before it, and the helpers that they call."""

    def __init__(self) -> None:
        self.code: list[str] = []
        self.helpers: dict[str, None] = {}
        self.count = 0

    def function(self, part: Part) -> str:
        name = f"_part_{self.count}"
        self.count += 1
        self.code.append(f"\n\ndef {name}(x):\n    return {self.expression(name, part)}\n")
        return name

    def expression(self, name: str, part: Part) -> str:
        if isinstance(part, TreesPart):
            self.helpers[_TREES] = None
            self.numbers(name, list(flat_trees(part.trees).values()))
            return f"_sum_of_trees(x, {part.base_score!r}, *{name}_numbers)"
        if isinstance(part, LinearPart):
            self.helpers[_LINEAR] = None
            self.numbers(name, [getattr(part, key).tolist() for key in ("columns", "weights", "mean", "scale")])
            return f"_linear(x, {part.bias!r}, *{name}_numbers)"
        if isinstance(part, FeaturePart):
            return f"{part.sign} * ({part.missing!r} if x[{part.column}] != x[{part.column}] else x[{part.column}])"
        if isinstance(part, NetPart):
            self.helpers[_NET] = None
            sizes, weights = flat_net(part)
            self.numbers(
                name, [part.columns.tolist(), part.mean.tolist(), part.scale.tolist(), part.log, sizes, weights]
            )
            return f"_net(x, *{name}_numbers, {part.activation == 'tanh'})"
        if isinstance(part, GradesPart):
            self.helpers[_GRADES] = None
            classes = [self.function(ensemble) for ensemble in part.ensembles]
            raw = ", ".join(f"{function}(x)" for function in classes)
            return f"_expected_grade([{raw}], {part.grades.tolist()!r})"
        return self.sum(part)

    def sum(self, part: SumPart) -> str:
        terms = [f"{weight!r} * {self.function(inner)}(x)" for weight, inner in part.parts]
        return "0.0 + " + " + ".join(terms)

    def numbers(self, name: str, lists: list[object]) -> None:
        rows = "".join(f"    {tuple(values) if isinstance(values, list) else values!r},\n" for values in lists)
        self.code.append(f"\n{name}_numbers = (\n{rows})\n")

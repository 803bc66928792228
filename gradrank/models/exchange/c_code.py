"""A ranker as one C file (C99) that needs nothing but the C library.

Scores are calculated in double precision in the order in which gradrank does: they are the same to the last bit, but
for ``tanh``, ``exp`` and ``log1p``, which C libraries round in their own ways.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

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

_PER_LINE = 8

_HEAD = """/* {origin}
   Written by gradrank {version}. Score of a document: gradrank_score(features), with the features in the order of
   gradrank_feature_names and NAN for a missing value; higher is better.

   cc -O2 -c model.c                           to link it, with -lm
   cc -O2 -DGRADRANK_MAIN model.c -lm -o model  a program: a document per line of standard input, a score per line out
*/
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __FAST_MATH__
#error "with -ffast-math missing values are lost"
#endif
/* A product and a sum are rounded one after the other, as everywhere else. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize ("-ffp-contract=off")
#endif

#define GRADRANK_FEATURES {n_features}
const char *const gradrank_origin = {quoted};
const char *const gradrank_feature_names[] = {{
{names}
}};
"""

_TREES = f"""
static int goes_left(double value, double threshold, int decision, const int64_t *cat_start,
                     const uint32_t *cat_words) {{
  if (decision & {CATEGORICAL}) {{
    int64_t category, word, set = (int64_t)threshold;
    if (!(value > -1.0 && value < 2147483648.0)) return 0;
    category = (int64_t)value;
    word = cat_start[set] + (category >> 5);
    return word < cat_start[set + 1] && (cat_words[word] >> (category & 31) & 1u);
  }}
  if (value != value) {{
    if ((decision & {MISSING_BITS}) == {MISSING_NONE}) return threshold >= 0.0;
    return (decision & {DEFAULT_LEFT}) != 0;
  }}
  if ((decision & {MISSING_BITS}) == {MISSING_ZERO} && value >= -{ZERO!r} && value <= {ZERO!r})
    return (decision & {DEFAULT_LEFT}) != 0;
  return value <= threshold;
}}

/* Children: c >= 0 is a node of the tree, c < 0 its leaf ~c; a tree has one leaf more than nodes. */
static double sum_of_trees(const double *x, double total, int n_trees, const int32_t *start, const int32_t *feature,
                           const double *threshold, const unsigned char *decision, const int32_t *left,
                           const int32_t *right, const double *leaf, const int64_t *cat_start,
                           const uint32_t *cat_words) {{
  int tree;
  for (tree = 0; tree < n_trees; tree++) {{
    int32_t first = start[tree], node = start[tree + 1] > first ? 0 : -1;
    while (node >= 0) {{
      int32_t k = first + node;
      node = goes_left(x[feature[k]], threshold[k], decision[k], cat_start, cat_words) ? left[k] : right[k];
    }}
    total += leaf[first + tree + ~node];
  }}
  return total;
}}
"""

_TAIL = """
double gradrank_score(const double *features) {{
  return {root}(features);
}}

/* Scores of n documents, rows of GRADRANK_FEATURES numbers. */
void gradrank_scores(const double *rows, size_t n, double *scores) {{
  size_t row;
  for (row = 0; row < n; row++) scores[row] = gradrank_score(rows + row * GRADRANK_FEATURES);
}}

#ifdef GRADRANK_MAIN
#include <stdio.h>
int main(void) {{
  double x[GRADRANK_FEATURES];
  int count = 0;
  while (scanf("%lf%*[, \\t]", x + count) == 1)
    if (++count == GRADRANK_FEATURES) {{
      printf("%.17g\\n", gradrank_score(x));
      count = 0;
    }}
  if (count || !feof(stdin)) {{
    fprintf(stderr, "expected %d numbers per document\\n", GRADRANK_FEATURES);
    return 2;
  }}
  return 0;
}}
#endif
"""


def write(plan: Plan, losses: Losses) -> Files:
    """The C file."""
    from gradrank import __version__

    note_categories(plan, losses)
    writer = _Writer()
    root = writer.function(plan.part)
    names = ",\n".join(f"  {_quoted(name)}" for name in plan.feature_names)
    origin = " ".join(str(plan.origin).replace("*/", "* /").split())
    head = _HEAD.format(
        origin=origin,
        version=__version__,
        n_features=len(plan.feature_names),
        quoted=_quoted(str(plan.origin)),
        names=names,
    )
    trees = _TREES if writer.has_trees else ""
    return {"": (head + trees + "".join(writer.code) + _TAIL.format(root=root)).encode()}


class _Writer:
    """One function ``static double part_N(const double *x)`` for each part, with its numbers before it."""

    def __init__(self) -> None:
        self.code: list[str] = []
        self.count = 0
        self.has_trees = False

    def function(self, part: Part) -> str:
        name = f"part_{self.count}"
        self.count += 1
        if isinstance(part, TreesPart):
            body = self.trees(name, part)
        elif isinstance(part, LinearPart):
            body = self.linear(name, part)
        elif isinstance(part, FeaturePart):
            value = f"x[{part.column}] != x[{part.column}] ? {part.missing!r} : x[{part.column}]"
            body = f"  double value = {value};\n  return {part.sign} * value;\n"
        elif isinstance(part, NetPart):
            body = self.net(name, part)
        elif isinstance(part, GradesPart):
            body = self.grades(name, part)
        else:
            body = self.sum(part)
        self.code.append(f"\nstatic double {name}(const double *x) {{\n{body}}}\n")
        return name

    def trees(self, name: str, part: TreesPart) -> str:
        self.has_trees = True
        flat = flat_trees(part.trees)
        types = {
            "start": "int32_t", "feature": "int32_t", "threshold": "double", "decision": "unsigned char",
            "left": "int32_t", "right": "int32_t", "leaf": "double", "cat_start": "int64_t", "cat_words": "uint32_t",
        }  # fmt: skip
        for key, kind in types.items():
            self.array(f"{name}_{key}", kind, flat[key])
        arrays = ", ".join(f"{name}_{key}" for key in types)
        return f"  return sum_of_trees(x, {part.base_score!r}, {len(part.trees)}, {arrays});\n"

    def linear(self, name: str, part: LinearPart) -> str:
        for key in ("columns", "weights", "mean", "scale"):
            self.array(f"{name}_{key}", "int32_t" if key == "columns" else "double", getattr(part, key).tolist())
        return (
            f"  double total = {part.bias!r};\n  int j;\n  for (j = 0; j < {len(part.weights)}; j++) {{\n"
            f"    double value = x[{name}_columns[j]];\n"
            f"    if (value == value) total += {name}_weights[j] * ((value - {name}_mean[j]) / {name}_scale[j]);\n"
            "  }\n  return total;\n"
        )

    def net(self, name: str, part: NetPart) -> str:
        sizes, weights = flat_net(part)
        self.array(f"{name}_columns", "int32_t", part.columns.tolist())
        self.array(f"{name}_mean", "double", part.mean.tolist())
        self.array(f"{name}_scale", "double", part.scale.tolist())
        self.array(f"{name}_sizes", "int32_t", sizes)
        self.array(f"{name}_weights", "double", weights)
        log = "      value = value >= 0.0 ? log1p(value) : -log1p(-value);\n" if part.log else ""
        squeeze = "tanh(there[j])" if part.activation == "tanh" else "there[j] > 0.0 ? there[j] : 0.0"
        widest = max(sizes)
        return f"""  double rows[2][{widest}], *here = rows[0], *there = rows[1];
  const double *weights = {name}_weights;
  int layer, i, j;
  for (j = 0; j < {sizes[0]}; j++) {{
    double value = x[{name}_columns[j]];
    if (value != value || {name}_scale[j] == 0.0) {{
      here[j] = 0.0;
    }} else {{
{log}      here[j] = (value - {name}_mean[j]) / {name}_scale[j];
    }}
  }}
  for (layer = 0; layer < {len(sizes) - 1}; layer++) {{
    int n_in = {name}_sizes[layer], n_out = {name}_sizes[layer + 1];
    double *other = here;
    for (j = 0; j < n_out; j++) there[j] = weights[n_in * n_out + j];
    for (i = 0; i < n_in; i++)
      for (j = 0; j < n_out; j++) there[j] += here[i] * weights[i * n_out + j];
    if (layer < {len(sizes) - 2})
      for (j = 0; j < n_out; j++) there[j] = {squeeze};
    weights += (n_in + 1) * n_out;
    here = there;
    there = other;
  }}
  return here[0];
"""

    def grades(self, name: str, part: GradesPart) -> str:
        classes = [self.function(ensemble) for ensemble in part.ensembles]
        self.array(f"{name}_grades", "double", part.grades.tolist())
        raw = "".join(f"  raw[{k}] = {function}(x);\n" for k, function in enumerate(classes))
        n = len(classes)
        return (
            f"  double raw[{n}], most, sum = 0.0, total = 0.0;\n  int k;\n{raw}  most = raw[0];\n"
            f"  for (k = 1; k < {n}; k++) most = raw[k] > most ? raw[k] : most;\n"
            f"  for (k = 0; k < {n}; k++) sum += raw[k] = exp(raw[k] - most);\n"
            f"  for (k = 0; k < {n}; k++) total += raw[k] / sum * {name}_grades[k];\n  return total;\n"
        )

    def sum(self, part: SumPart) -> str:
        functions = [(weight, self.function(inner)) for weight, inner in part.parts]
        lines = "".join(f"  total += {weight!r} * {function}(x);\n" for weight, function in functions)
        return f"  double total = 0.0;\n{lines}  return total;\n"

    def array(self, name: str, kind: str, values: Iterable[Any]) -> None:
        texts = [repr(value) + ("u" if kind == "uint32_t" else "") for value in values] or ["0"]
        rows = (", ".join(texts[at : at + _PER_LINE]) for at in range(0, len(texts), _PER_LINE))
        self.code.append(f"\nstatic const {kind} {name}[] = {{\n  " + ",\n  ".join(rows) + "\n};\n")


def _quoted(text: str) -> str:
    """A C string of the text's UTF-8 bytes; octal escapes end after three digits, whatever follows."""
    plain = set(range(32, 127)) - {ord('"'), ord("\\"), ord("?")}
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in text.encode()) + '"'

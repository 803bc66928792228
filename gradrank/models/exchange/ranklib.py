"""RankLib's models: tree ensembles (XML) and linear ones, also read by the LTR plugins as ``model/ranklib``.

RankLib numbers features from 1, reads a missing value as 0, sends ``x <= threshold`` left in float32 and adds up in
float32. Its linear models are in double precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradrank.data.ranking_data import default_feature_names
from gradrank.errors import ModelError
from gradrank.models.exchange.numbering import MOST_FEATURES
from gradrank.models.exchange.plan import LinePart, Losses, Plan, as_line, one_ensemble
from gradrank.models.exchange.ranklib_xml import XMLTree, parse_ensemble
from gradrank.models.exchange.registry import Files
from gradrank.models.exchange.splits import (
    check_leaves,
    finite_single,
    largest_at_most,
    missing_is_zero,
    nested_text,
    refuse_categories,
    single_thresholds,
)
from gradrank.models.linear import LinearRanker
from gradrank.models.ranker import Ranker
from gradrank.models.trees.ensemble import TreeEnsemble
from gradrank.models.trees.tree import MISSING_NONE, Tree

_ENSEMBLES = ("LambdaMART", "MART")
_LINEAR = ("Linear Regression", "Coordinate Ascent")


# ---------------------------------------------------------------------- writing
def write(plan: Plan, losses: Losses) -> Files:
    """A LambdaMART ensemble, or a linear model."""
    line = as_line(plan)
    text = _linear_text(plan, line, losses) if line is not None else _ensemble_text(plan, losses)
    losses.note("ranklib: features are numbered from 1 in the order of the model's features")
    return {"": text.encode()}


def _head(kind: str, plan: Plan) -> str:
    origin = " ".join(str(plan.origin).split())
    return f"## {kind}\n## Origin = {origin}\n## No. of features = {len(plan.feature_names)}\n"


def _linear_text(plan: Plan, line: LinePart, losses: Losses) -> str:
    for feature, value in zip(plan.feature_names, line.at_missing.tolist(), strict=True):
        if value != 0.0:
            losses.lose(
                "missing",
                f"a missing {feature!r} adds {value!r} to the score, ranklib reads it as 0 and adds 0",
                "missing values count as 0",
            )
    numbers = [f"0:{line.bias!r}"] + [f"{place}:{slope!r}" for place, slope in enumerate(line.slope.tolist(), 1)]
    return _head("Linear Regression", plan) + " ".join(numbers) + "\n"


def _ensemble_text(plan: Plan, losses: Losses) -> str:
    ensemble = one_ensemble(plan, losses.target)
    names = plan.feature_names
    refuse_categories(ensemble.trees, names, losses.target)
    check_leaves(ensemble.trees, ensemble.base_score, losses.target)
    missing_is_zero(ensemble.trees, names, losses)
    bounds = [finite_single(bound, losses) for bound in single_thresholds(ensemble.trees, names, losses)]
    trees = list(zip(ensemble.trees, bounds, strict=True))
    if ensemble.base_score != 0.0 or not trees:
        trees.insert(0, (Tree.of(leaf_value=[ensemble.base_score]), np.zeros(0, dtype=np.float32)))
    # Readers take children by their place: no white space inside a tree.
    lines = [
        f'<tree id="{number}" weight="1.0">{_tree_text(tree, bound)}</tree>'
        for number, (tree, bound) in enumerate(trees, 1)
    ]
    head = _head("LambdaMART", plan) + f"## No. of trees = {len(lines)}\n"
    return head + "\n<ensemble>\n" + "\n".join(lines) + "\n</ensemble>\n"


def _tree_text(tree: Tree, bound: Any) -> str:
    values = tree.leaf_value.astype(np.float32)

    def side(text: str, place: str) -> str:
        return f'<split pos="{place}">{text}</split>'

    def split(node: int, left: str, right: str) -> str:
        feature = int(tree.split_feature[node]) + 1
        test = f"<feature>{feature}</feature><threshold>{bound[node]}</threshold>"
        return f"{test}{side(left, 'left')}{side(right, 'right')}"

    return f"<split>{nested_text(tree, split, lambda leaf: f'<output>{values[leaf]}</output>')}</split>"


# ---------------------------------------------------------------------- reading
def read(content: bytes) -> Ranker:
    """The ranker of a file of RankLib's: MART, LambdaMART, Coordinate Ascent or linear regression."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise ModelError("is not a RankLib model: it is not UTF-8 text") from None
    comments, body = _without_comments(text)
    kind = comments[0] if comments else "LambdaMART"
    facts = {"source": "ranklib", "learner": kind}
    if kind in _LINEAR:
        return _linear(body, facts)
    if kind not in _ENSEMBLES:
        raise ModelError(f"is a RankLib model of {kind[:40]!r}, expected one of {', '.join((*_ENSEMBLES, *_LINEAR))}")
    return _ensemble(parse_ensemble(body), _declared_features(comments), facts)


def _without_comments(text: str) -> tuple[list[str], str]:
    lines = text.splitlines()
    comments = [line.strip()[2:].strip() for line in lines if line.strip().startswith("##")]
    return comments, "\n".join(line for line in lines if not line.strip().startswith("##"))


def _declared_features(comments: list[str]) -> int:
    """What our own writer says of the number of features; RankLib's files do not tell."""
    for comment in comments:
        name, _, number = comment.partition(" = ")
        if name == "No. of features" and number.isdigit() and len(number) < 10:
            return int(number)
    return 0


def _linear(body: str, facts: dict[str, str]) -> LinearRanker:
    weights: dict[int, float] = {}
    try:
        for word in body.split():
            number, _, value = word.partition(":")
            if int(number) in weights:
                raise ModelError(f"gives RankLib's feature {int(number)} two weights")
            weights[int(number)] = float(value)
    except ValueError as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError("is not a whole RankLib model: expected pairs FEATURE:WEIGHT") from None
    bias = weights.pop(0, 0.0)
    _check_features(weights)
    slope = np.zeros(max(weights))
    slope[np.array(list(weights)) - 1] = list(weights.values())
    return LinearRanker(slope, bias, training=facts)


def _ensemble(trees: list[XMLTree], declared: int, facts: dict[str, str]) -> TreeEnsemble:
    features = [feature for tree in trees for feature in tree.feature]
    if features or declared:
        _check_features([*features, max(declared, 1)])
    n_features = max([declared, *features], default=1)
    made = []
    for number, tree in enumerate(trees, 1):
        with np.errstate(over="ignore"):
            bound = np.array(tree.threshold, dtype=np.float64).astype(np.float32)
            values = np.array(tree.value, dtype=np.float64).astype(np.float32) * np.float32(tree.weight)
        try:
            made.append(
                Tree.of(
                    leaf_value=values.astype(np.float64),
                    split_feature=np.array(tree.feature, dtype=np.int64) - 1,
                    threshold=largest_at_most(bound),
                    decision=np.full(len(bound), MISSING_NONE),
                    left=tree.left,
                    right=tree.right,
                    n_features=n_features,
                )
            )
        except ModelError as error:
            raise ModelError(f"has a damaged tree {number}: {error}") from None
    return TreeEnsemble(made, default_feature_names(n_features), training=facts)


def _check_features(numbers: Any) -> None:
    wrong = [number for number in numbers if not 1 <= number <= MOST_FEATURES]
    if wrong or not len(numbers):
        found = f"feature number {wrong[0]}" if wrong else "no feature"
        raise ModelError(f"is a RankLib model with {found}, expected numbers of 1 to {MOST_FEATURES:,}")

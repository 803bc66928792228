"""LightGBM's text model format: trees from it and trees to it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import ModelError
from gradrank.models.categories import Categories
from gradrank.models.exchange.plan import Losses, Origin, Plan, one_ensemble
from gradrank.models.exchange.registry import Files
from gradrank.models.trees.tree import CATEGORICAL, ZERO, Tree

# LightGBM counts documents in 32-bit integers; covers that are not whole are scaled to fit well inside.
_LARGEST_COUNT = 1_000_000_000
_HALF = 2.0**-150
_PANDAS = "pandas_categorical:"
_CATEGORICAL = "[categorical_feature: "


@dataclass(frozen=True)
class LightGBMModel:
    """What a text model says: its trees in file order and the facts needed to use them."""

    trees: tuple[Tree, ...]
    feature_names: tuple[str, ...]
    trees_per_iteration: int
    objective: str
    categories: Categories | None
    """Values of the categorical columns of the pandas frame that the model was trained on, if any."""


def parse_lightgbm(text: str) -> LightGBMModel:
    """Read a whole text model; one that breaks off, or has linear leaves, raises :class:`ModelError`."""
    text = text.replace("\r\n", "\n")
    body, end, tail = text.partition("\nend of trees")
    if not text.startswith("tree\n") or "\nversion=" not in text[:100]:
        raise ModelError("is not a LightGBM text model")
    if not end:
        raise ModelError("is not a whole LightGBM model: it breaks off before 'end of trees'")
    if "\nparameters:" in tail and "\nend of parameters" not in tail:
        # Behind them stand the values of categorical columns.
        raise ModelError("is not a whole LightGBM model: it breaks off before 'end of parameters'")
    head, *sections = body.split("\nTree=")
    header = _fields(head.split("\n"))
    try:
        per_iteration = int(header["num_tree_per_iteration"])
        n_features = int(header["max_feature_idx"]) + 1
        names = tuple(header["feature_names"].split())
    except (KeyError, ValueError):
        raise ModelError("is a LightGBM model with a damaged head") from None
    if len(names) != n_features:
        raise ModelError(f"is a LightGBM model with {len(names)} feature names for {n_features} features")
    trees = tuple(parse_tree(section, n_features) for section in sections)
    return LightGBMModel(trees, names, per_iteration, header.get("objective", ""), _categories(tail, n_features))


def _categories(tail: str, n_features: int) -> Categories | None:
    """What follows the trees tells of categorical columns: their values, and which of the features they are."""
    lines = tail.split("\n")
    found = [line for line in lines if line.startswith(_PANDAS)]
    if not found:
        return None
    try:
        values = json.loads(found[-1][len(_PANDAS) :])
        if not values:
            return None
        named = [line for line in lines if line.startswith(_CATEGORICAL) and line.endswith("]")]
        columns = [int(number) for line in named for number in line[len(_CATEGORICAL) : -1].split(",") if number]
        categories = Categories(tuple(tuple(column) for column in values))
    except (ValueError, TypeError, RecursionError):
        raise ModelError("is a LightGBM model with damaged categories of a pandas frame") from None
    # Ordered columns have values too, but are no categorical features; which they are, only a frame tells.
    if len(columns) != len(values) or not all(0 <= column < n_features for column in columns):
        return categories
    return Categories(categories.values, tuple(columns))


def parse_tree(section: str, n_features: int | None = None) -> Tree:
    """One tree from the lines of its ``Tree=`` section."""
    entries = _fields(section.split("\n"))
    if entries.get("is_linear", "0") != "0":
        raise ModelError("has linear leaves (LightGBM's linear_tree), which are not supported")
    try:
        leaf_value = _floats(entries["leaf_value"])
        n_leaves = int(entries["num_leaves"])
        if n_leaves != len(leaf_value):
            raise ModelError(f"has a tree with {len(leaf_value)} of {n_leaves} leaf values")
        cover = {"leaf_cover": _floats(entries["leaf_count"])} if entries.get("leaf_count") else {}
        if n_leaves == 1:
            return Tree.of(leaf_value=leaf_value, n_features=n_features, **cover)
        gain = {"split_gain": _floats(entries["split_gain"])} if "split_gain" in entries else {}
        categories = {}
        if int(entries.get("num_cat", "0")):
            categories = {"cat_start": _ints(entries["cat_boundaries"]), "cat_words": _ints(entries["cat_threshold"])}
        return Tree.of(
            leaf_value=leaf_value,
            n_features=n_features,
            split_feature=_ints(entries["split_feature"]),
            threshold=_floats(entries["threshold"]),
            decision=_ints(entries["decision_type"]),
            left=_ints(entries["left_child"]),
            right=_ints(entries["right_child"]),
            **cover,
            **gain,
            **categories,
        )
    except KeyError as error:
        raise ModelError(f"has a LightGBM tree without {error.args[0]}") from None
    except (ValueError, OverflowError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"has a damaged LightGBM tree: {error}") from None


def read_booster_tree(booster: Any, iteration: int) -> Tree:
    """The tree of one iteration of a live ``lightgbm.Booster``, without reading the others."""
    text: str = booster.model_to_string(num_iteration=1, start_iteration=iteration)
    start = text.find("\nTree=0\n")
    if start < 0:
        raise ModelError(f"the booster has no tree of iteration {iteration}")
    return parse_tree(text[start + len("\nTree=0\n") : text.index("\nend of trees", start)])


def format_lightgbm(
    trees: Sequence[Tree],
    feature_names: Sequence[str],
    base_score: float = 0.0,
    categories: Categories | None = None,
    origin: Origin | None = None,
) -> str:
    """A text model that LightGBM loads and that predicts the same, bit for bit.

    A base score becomes a first tree of one leaf. White space in feature names becomes ``_``: the format
    separates names by spaces.
    """
    if base_score != 0.0:
        trees = [Tree.of(leaf_value=[base_score], leaf_cover=[1.0]), *trees]
    names = spaceless(feature_names)
    sections = [f"Tree={number}\n{_tree_text(tree)}\n\n" for number, tree in enumerate(trees)]
    splits: dict[int, int] = {}
    for tree in trees:
        for feature in tree.split_feature.tolist():
            splits[feature] = splits.get(feature, 0) + 1
    head = [
        "tree",
        "version=v4",
        "num_class=1",
        "num_tree_per_iteration=1",
        "label_index=0",
        f"max_feature_idx={len(names) - 1}",
        f"feature_names={' '.join(names)}",
        f"feature_infos={' '.join(_feature_infos(trees, len(names)))}",
        f"tree_sizes={' '.join(str(len(section.encode())) for section in sections)}",
        "",
        "",
    ]
    importances = [f"{names[feature]}={count}" for feature, count in sorted(splits.items(), key=lambda item: -item[1])]
    columns = None if categories is None else categories.columns
    parameters = [] if columns is None else [f"{_CATEGORICAL}{','.join(map(str, columns))}]"]
    # After the parameters, of which LightGBM would say that it does not know this one.
    came_from = [] if origin is None else [f"gradrank_origin: {' '.join(str(origin).split())}", ""]
    tail = ["end of trees", "", "feature_importances:", *importances, "", "parameters:", *parameters, ""]
    values = json.dumps(None if categories is None else categories.to_list())
    return (
        "\n".join(head)
        + "".join(sections)
        + "\n".join([*tail, "end of parameters", "", *came_from, _PANDAS + values, ""])
    )


def write(plan: Plan, losses: Losses) -> Files:
    """The model as a file of LightGBM's."""
    ensemble = one_ensemble(plan, losses.target)
    _lose_tiny_thresholds(ensemble.trees, plan.feature_names, losses)
    text = format_lightgbm(ensemble.trees, plan.feature_names, ensemble.base_score, ensemble.categories, plan.origin)
    return {"": text.encode()}


def _lose_tiny_thresholds(trees: Sequence[Tree], names: Sequence[str], losses: Losses) -> None:
    """LightGBM reads values up to 1e-35 as 0: splits among them, which it never makes itself, do nothing there."""
    for number, tree in enumerate(trees):
        size = np.abs(tree.threshold)
        # Half of the smallest float32 stands for 0 where that is compared in single precision.
        zero = np.isclose(size, _HALF, rtol=1e-6, atol=0.0) | (size == 0.0)
        tiny = ~zero & (size < ZERO) & ((tree.decision & CATEGORICAL) == 0)
        for node in np.flatnonzero(tiny).tolist():
            losses.lose(
                "tiny",
                f"tree {number} splits {names[tree.split_feature[node]]!r} at {tree.threshold[node]:g}, and LightGBM "
                f"reads values up to 1e-35 as 0",
                "such values count as 0",
            )


def spaceless(feature_names: Sequence[str]) -> list[str]:
    """Names as LightGBM has them, with ``_`` for white space; two that become the same are an error."""
    names = ["_".join(name.split()) or "_" for name in feature_names]
    if len(set(names)) != len(names):
        raise ModelError("two feature names are the same to LightGBM, which reads white space in them as '_'")
    return names


def _tree_text(tree: Tree) -> str:
    n_categorical = len(tree.cat_start) - 1
    scale = 1.0
    if tree.leaf_cover.any() and (tree.leaf_cover != np.round(tree.leaf_cover)).any():
        scale = _LARGEST_COUNT / tree.leaf_cover.sum()
    rows: dict[str, Iterable[Any]] = {
        "split_feature": tree.split_feature.tolist(),
        "split_gain": tree.split_gain.tolist(),
        "threshold": [_short(value) for value in tree.threshold.tolist()],
        "decision_type": tree.decision.tolist(),
        "left_child": tree.left.tolist(),
        "right_child": tree.right.tolist(),
        "leaf_value": tree.leaf_value.tolist(),
        "leaf_weight": tree.leaf_cover.tolist(),
        "leaf_count": np.round(tree.leaf_cover * scale).astype(np.int64).tolist(),
        "internal_count": np.round(tree.node_cover() * scale).astype(np.int64).tolist(),
    }
    if n_categorical:
        rows["cat_boundaries"] = tree.cat_start.tolist()
        rows["cat_threshold"] = tree.cat_words.tolist()
    lines = [f"num_leaves={tree.n_leaves}", f"num_cat={n_categorical}"]
    lines += [f"{key}={' '.join(map(str, values))}" for key, values in rows.items()]
    return "\n".join([*lines, "is_linear=0", "shrinkage=1", ""])


def _feature_infos(trees: Sequence[Tree], n_features: int) -> list[str]:
    """LightGBM's per-feature ranges: unknown here, but they must say which features are categorical."""
    infos = ["none"] * n_features
    for tree in trees:
        for feature, decision in zip(tree.split_feature.tolist(), tree.decision.tolist(), strict=True):
            infos[feature] = "0:1" if decision & CATEGORICAL else "[-1e+308:1e+308]"
    return infos


def _short(value: float) -> str:
    # Categorical nodes' thresholds are set numbers, which LightGBM writes without a decimal point.
    return str(int(value)) if value == int(value) and abs(value) < 2**31 else repr(value)


def _fields(lines: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines:
        key, equals, value = line.partition("=")
        if equals and found.setdefault(key, value) != value:
            raise ModelError(f"is a LightGBM model that gives {key[:40]!r} twice in one section")
    return found


def _floats(text: str) -> NDArray[np.float64]:
    return np.array([float(value) for value in text.split()], dtype=np.float64)


def _ints(text: str) -> NDArray[np.int64]:
    return np.array([int(value) for value in text.split()], dtype=np.int64)

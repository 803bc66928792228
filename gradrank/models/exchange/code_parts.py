"""What the writers of programs share: the numbers of parts as flat lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradrank.models.exchange.plan import Losses, NetPart, Part, Plan, TreesPart, parts_of
from gradrank.models.trees.tree import CATEGORICAL, Tree, TreeArrays


def flat_trees(trees: Sequence[Tree]) -> dict[str, list[Any]]:
    """All trees one after another; see :class:`TreeArrays`."""
    arrays = TreeArrays.of(trees)
    return {
        "start": arrays.node_start.tolist(),
        "feature": arrays.split_feature.tolist(),
        "threshold": arrays.threshold.tolist(),
        "decision": arrays.decision.tolist(),
        "left": arrays.children[:, 0].tolist(),
        "right": arrays.children[:, 1].tolist(),
        "leaf": arrays.leaf_value.tolist(),
        "cat_start": arrays.cat_start.tolist(),
        "cat_words": arrays.cat_words.tolist(),
    }


def flat_net(part: NetPart) -> tuple[list[int], list[float]]:
    """Widths of all layers from input to output; weights input by input, then biases, layer by layer."""
    sizes = [len(part.columns), *(len(bias) for _, bias in part.layers)]
    return sizes, [
        value for weight, bias in part.layers for piece in (weight.T.ravel(), bias) for value in piece.tolist()
    ]


def note_categories(plan: Plan, losses: Losses) -> None:
    """Say which features are categories, and that the file takes their numbers."""
    names = plan.feature_names
    ensembles: list[TreesPart] = []
    todo: list[Part] = [part for _, part in parts_of(plan.part)]
    for part in todo:
        ensembles += [part] if isinstance(part, TreesPart) else list(getattr(part, "ensembles", ()))
    coded = {
        names[feature]
        for ensemble in ensembles
        for tree in ensemble.trees
        for feature in tree.split_feature[(tree.decision & CATEGORICAL) > 0].tolist()
    }
    if coded:
        listed = ", ".join(map(repr, sorted(coded)))
        losses.note(f"{losses.target}: categories are numbers, as the model was trained with: {listed}")

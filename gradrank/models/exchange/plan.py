"""A ranker taken apart for writers of other tools' formats: sums of trees, linear sums, nets, single features.

Every kind of ranker describes itself by these parts (:meth:`Ranker._part`); a writer of a format knows the parts and no
rankers. What a format has no place for, a writer tells to :class:`Losses`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import ModelError
from gradrank.models.categories import Categories
from gradrank.models.trees.tree import Tree


@dataclass(frozen=True, eq=False)
class TreesPart:
    """base_score + Σ values of the leaves, added in this order; split features number the plan's features."""

    trees: tuple[Tree, ...]
    base_score: float = 0.0
    categories: Categories | None = None
    """The values that the numbers of categorical features stand for, if the model knows them."""


@dataclass(frozen=True, eq=False)
class LinearPart:
    """bias + Σ_j weights_j · (x_j − mean_j) / scale_j over the columns; a missing value adds 0."""

    columns: NDArray[np.int64]
    weights: NDArray[np.float64]
    bias: float
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]


@dataclass(frozen=True)
class FeaturePart:
    """sign · x, or sign · missing where x is missing."""

    column: int
    sign: int
    missing: float


@dataclass(frozen=True, eq=False)
class NetPart:
    """A fully connected net over scaled columns; see NetRanker."""

    columns: NDArray[np.int64]
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    log: bool
    layers: tuple[tuple[NDArray[np.float64], NDArray[np.float64]], ...]
    activation: str


@dataclass(frozen=True, eq=False)
class GradesPart:
    """Σ_k grades_k · P(k | x), with P the softmax of the ensembles."""

    ensembles: tuple[TreesPart, ...]
    grades: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SumPart:
    """0 + Σ weight · part, in this order."""

    parts: tuple[tuple[float, Part], ...]


Part: TypeAlias = TreesPart | LinearPart | FeaturePart | NetPart | GradesPart | SumPart

_KINDS = {
    LinearPart: "a weighted sum of features",
    FeaturePart: "a single feature",
    NetPart: "a net",
    GradesPart: "an expected grade",
}


@dataclass(frozen=True)
class Origin:
    """Where an exported file comes from; goes into the file where its format has room."""

    name: str
    sha256: str
    """Of the model's file; of what :meth:`Ranker.save` would write, where there is no file."""

    def __str__(self) -> str:
        return f"{self.name} sha256:{self.sha256}"


@dataclass(frozen=True, eq=False)
class Plan:
    """What a writer gets: the parts, the names of the features that they number, and the origin."""

    feature_names: tuple[str, ...]
    part: Part
    origin: Origin


@dataclass
class Losses:
    """What a format cannot hold, one entry per kind of loss, and notes on what is equivalent but not the same."""

    target: str
    notes: list[str] = field(default_factory=list)
    _found: dict[str, tuple[str, str, int]] = field(default_factory=dict)

    def lose(self, kind: str, example: str, instead: str) -> None:
        """Something is lost: the first example of its kind is kept, and what ``--approximate`` does instead."""
        first, then, count = self._found.get(kind, (example, instead, 0))
        self._found[kind] = (first, then, count + 1)

    def note(self, text: str) -> None:
        """Something that changes no ranking but is worth knowing."""
        if text not in self.notes:
            self.notes.append(text)

    def settle(self, approximate: bool) -> list[str]:
        """What was lost and done instead, a sentence each, if that is allowed; an error that names the first if not."""
        told = []
        for example, instead, count in self._found.values():
            more = f" (and {count - 1:,} more such)" if count > 1 else ""
            if not approximate:
                raise ModelError(f"{self.target} cannot hold the model: {example}{more}; with --approximate {instead}")
            told.append(f"{self.target}: {example}{more}; {instead}")
        return told


# ---------------------------------------------------------------------- parts as other parts
def parts_of(part: Part, weight: float = 1.0) -> Iterator[tuple[float, Part]]:
    """The parts of a sum with their weights, those of sums inside it included."""
    if isinstance(part, SumPart):
        for factor, inner in part.parts:
            yield from parts_of(inner, weight * factor)
    else:
        yield weight, part


def one_ensemble(plan: Plan, target: str) -> TreesPart:
    """The plan as one sum of trees; a ModelError names a part that is none.

    Weights of a sum go into the leaves, so that scores are those of the sum up to rounding.
    """
    if isinstance(plan.part, TreesPart):
        return plan.part
    trees: list[Tree] = []
    base_score = 0.0
    coded: list[Categories | None] = []
    for number, (weight, part) in enumerate(parts_of(plan.part), 1):
        if not isinstance(part, TreesPart):
            where = f"part {number} of the model" if isinstance(plan.part, SumPart) else "the model"
            raise ModelError(f"{target} holds trees only, {where} is {_KINDS[type(part)]}")
        trees += [tree if weight == 1.0 else tree.scaled(weight) for tree in part.trees]
        base_score += weight * part.base_score
        coded.append(part.categories)
    if any(categories != coded[0] for categories in coded):
        raise ModelError(f"{target} holds one numbering of categories, the parts of the model have several")
    return TreesPart(tuple(trees), base_score, coded[0])


def as_line(plan: Plan) -> LinePart | None:
    """The plan as one line, bias + Σ slope · x, if it is one; None otherwise."""
    n = len(plan.feature_names)
    slope, at_missing, bias = np.zeros(n), np.zeros(n), 0.0
    for weight, part in parts_of(plan.part):
        if isinstance(part, NetPart) and len(part.layers) == 1 and not part.log:
            weights, offset = part.layers[0]
            used = part.scale > 0
            scale = np.where(used, part.scale, 1.0)
            part = LinearPart(part.columns, np.where(used, weights[0], 0.0), float(offset[0]), part.mean, scale)
        if isinstance(part, LinearPart):
            own = weight * part.weights / part.scale
            slope[part.columns] += own
            at_missing[part.columns] += own * part.mean
            bias += weight * part.bias - float((own * part.mean).sum())
        elif isinstance(part, FeaturePart):
            slope[part.column] += weight * part.sign
            at_missing[part.column] += weight * part.sign * part.missing
        else:
            return None
    return LinePart(bias, slope, at_missing)


@dataclass(frozen=True, eq=False)
class LinePart:
    """bias + Σ_j slope_j · x_j, with ``at_missing`` in the place of slope · x where x is missing."""

    bias: float
    slope: NDArray[np.float64]
    at_missing: NDArray[np.float64]


def renumbered(tree: Tree, columns: NDArray[np.int64]) -> Tree:
    """The tree with feature j of it being feature columns[j] of the plan."""
    return replace(tree, split_feature=columns[tree.split_feature].astype(np.int32)) if tree.n_nodes else tree

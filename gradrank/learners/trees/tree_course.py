"""Steps that add trees: what boosting on λ's and boosting of classes share."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.learners.base.crew import ALONE, Crew
from gradrank.learners.base.loop import ResumableCourse
from gradrank.learners.trees.grower import Grower, TreeGrower, separate_sets
from gradrank.learners.trees.leaf_values import StepRule
from gradrank.learners.trees.parameters import TreeParameters
from gradrank.learners.trees.size_rule import Shape
from gradrank.learners.trees.symmetric_grower import SymmetricGrower
from gradrank.models.registry import ranker_from_dict
from gradrank.models.trees.ensemble import Tree, TreeEnsemble, assign_leaves
from gradrank.ranking import keyed_numbers

if TYPE_CHECKING:
    from gradrank.learners.trees.shared_grower import SharedGrower

Trees = tuple[Tree, ...]
Floats = NDArray[np.float32]
Leaves = Mapping[str, NDArray[np.int32]]
"""For each data set by name the leaf of each document."""


@dataclass(frozen=True)
class Rules:
    """How splits are searched and leaf values set, once the objective is known."""

    split: str
    step: StepRule


class TreeCourse(ResumableCourse):
    """Steps that add trees: what boosting on λ's and boosting of classes share."""

    unit: ClassVar[str] = "tree"

    def __init__(
        self,
        train: RankingData,
        watched: Mapping[str, RankingData],
        parameters: TreeParameters,
        shape: Shape,
        rules: Rules,
        crew: Crew = ALONE,
    ) -> None:
        self.crew = crew
        self.n_docs = crew.count(train.n_docs)
        """Training documents of all processes."""
        self.train = train
        self.watched = watched
        self.parameters = parameters
        self.rules = rules
        self.shape = shape
        self.total = shape.n_estimators
        self.patience = shape.early_stopping_rounds
        self.open_ended = shape.searched
        self.steps: list[Trees] = []
        """The trees of every step, values shrunk."""
        self.left_out: NDArray[np.bool_] | None = None
        """Queries that no tree learns from; None = there are none."""

    def start_over(self, total: int) -> None:
        """Forget all trees, to grow so many on all queries from the bins at hand."""
        self.total, self.patience, self.open_ended = total, None, False
        self.steps, self.left_out = [], None
        self._start()

    @abstractmethod
    def _start(self) -> None:
        """Set the scores to those before the first tree, and make growers that know no tree."""

    @abstractmethod
    def _add(self, trees: Trees, leaves: Sequence[Leaves]) -> None:
        """Add trees to the scores; ``leaves`` tell for each tree which leaf each document reaches."""

    def add(self, trees: Trees, leaves: Sequence[Leaves] | None = None) -> None:
        """Add the trees of a step, grown now or in an earlier run."""
        self._add(trees, leaves or [self._leaves(tree) for tree in trees])
        self.steps.append(trees)

    def _leaves(self, tree: Tree) -> Leaves:
        """The leaf of each document, of the training data and of every other set."""
        sets = separate_sets(self.train, self.watched)
        return {name: assign_leaves(tree, data.X, n_jobs=self.parameters.n_jobs) for name, data in sets.items()}

    def go_on_from(self, steps: Sequence[Trees]) -> None:
        """Take over the trees of an earlier run."""
        for trees in steps[: self.total]:
            self.add(trees)

    def trees(self) -> Trees:
        """See Course.trees."""
        return self.steps[-1]

    def pack(self, manifest: dict[str, Any]) -> bytes:
        """See ResumableCourse.pack."""
        trees = [tree for step in self.steps for tree in step]
        model = TreeEnsemble(trees, self.train.feature_names).to_dict()
        return json.dumps({**manifest, "trees_per_step": len(self.steps[0]), "model": model}).encode()

    def unpack(self, content: bytes) -> tuple[dict[str, Any], tuple[TreeEnsemble, int]]:
        """See ResumableCourse.unpack."""
        manifest: dict[str, Any] = json.loads(content)
        ensemble, width = ranker_from_dict(manifest.pop("model")), int(manifest["trees_per_step"])
        if not isinstance(ensemble, TreeEnsemble) or width < 1:
            raise ValueError
        return manifest, (ensemble, width)

    def take_over(self, state: tuple[TreeEnsemble, int]) -> None:
        """See ResumableCourse.take_over."""
        ensemble, width = state
        if ensemble.feature_names != self.train.feature_names:
            raise ValueError
        self.go_on_from([ensemble.trees[at : at + width] for at in range(0, len(ensemble.trees), width)])

    def growers(self, count: int, binned: Grower | None = None) -> list[Grower]:
        """So many growers over one binning of the training data: that of ``binned``, if it is given."""
        made: list[Grower] = []
        for _ in range(count):
            binned = self._grower_like(binned)
            made.append(binned)
        return made

    def _grower_like(self, binned: Grower | None) -> Grower:
        split, leaves, added = self.rules.split, self.shape.num_leaves, self.shape.reg_lambda
        if self.shape.depth is not None:
            return SymmetricGrower(
                self.train, self.parameters, depth=self.shape.depth, split=split, reg_lambda=added,
                watched=self.watched, crew=self.crew, share_binning=cast("SymmetricGrower | None", binned),
            )  # fmt: skip
        if self.crew.shared:
            from gradrank.learners.trees.shared_grower import SharedGrower

            return SharedGrower(
                self.train, self.parameters, split=split, num_leaves=leaves, reg_lambda=added,
                watched=self.watched, crew=cast(Any, self.crew), share_binning=cast("SharedGrower | None", binned),
            )  # fmt: skip
        return TreeGrower(
            self.train, self.parameters, split=split, num_leaves=leaves, reg_lambda=added, watched=self.watched,
            share_binning=cast("TreeGrower | None", binned),
        )  # fmt: skip

    def covered(self, tree: Tree, leaf: NDArray[np.int32]) -> Tree:
        """The tree with the true number of documents in its leaves.

        In several processes LightGBM estimates it, and of a sample it knows the sample's.
        """
        if not self.crew.shared and self.parameters.split_docs is None:
            return tree
        counts = np.bincount(leaf, minlength=tree.n_leaves).astype(np.float64)
        return replace(tree, leaf_cover=self.crew.sum(counts))

    def sampled_queries(self, step: int) -> NDArray[np.bool_] | None:
        """Which queries are in this step's sample; None = all."""
        chosen = self._drawn_queries(step)
        if self.left_out is None:
            return chosen
        return ~self.left_out if chosen is None else chosen & ~self.left_out

    def _drawn_queries(self, step: int) -> NDArray[np.bool_] | None:
        share, data = self.shape.subsample, self.train
        if share >= 1.0:
            return None
        rng = np.random.default_rng([self.parameters.random_state, step])
        if data.keys is not None:
            return keyed_numbers(data.keys, int(rng.integers(2**31))) < share
        count = max(1, round(share * data.n_queries))
        chosen = np.zeros(data.n_queries, dtype=bool)
        chosen[rng.permutation(data.n_queries)[:count]] = True
        return chosen

    def sampled(self, lambdas: Floats, rhos: Floats, step: int) -> tuple[Floats, Floats]:
        """Documents of queries that are not in this step's sample have no say."""
        chosen = self.sampled_queries(step)
        if chosen is not None:
            inside = np.repeat(chosen.astype(np.float32), self.train.sizes)
            lambdas, rhos = lambdas * inside, rhos * inside
        return self.crew.leveled(lambdas, self.n_docs), self.crew.leveled(rhos, self.n_docs)

"""Boosting on λ's: gradients, a tree, leaf values, new scores; one step of the training loop per tree."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from gradrank.combine import Combiner
from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.crew import ALONE, Crew
from gradrank.learners.base.loop import ResumableCourse
from gradrank.learners.base.monitor import TRAINING
from gradrank.learners.trees.diagnostics import Recorder
from gradrank.learners.trees.grower import TreeGrower, separate_sets
from gradrank.learners.trees.leaf_values import StepRule, first_rule, leaf_values, optimal_values
from gradrank.learners.trees.parameters import TreeParameters
from gradrank.learners.trees.position_terms import PositionTerms
from gradrank.measures import AnyMeasure
from gradrank.models.ranker import Ranker
from gradrank.models.registry import ranker_from_dict
from gradrank.models.trees.ensemble import Tree, TreeEnsemble, assign_leaves
from gradrank.objectives import BoundObjective, Objective
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
        self.total = parameters.n_estimators
        self.patience = parameters.early_stopping_rounds
        self.steps: list[Trees] = []
        """The trees of every step, values shrunk."""

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

    def unpack(self, content: bytes) -> dict[str, Any]:
        """See ResumableCourse.unpack."""
        manifest: dict[str, Any] = json.loads(content)
        ensemble, width = ranker_from_dict(manifest.pop("model")), int(manifest["trees_per_step"])
        if not isinstance(ensemble, TreeEnsemble) or width < 1:
            raise ValueError
        self.go_on_from([ensemble.trees[at : at + width] for at in range(0, len(ensemble.trees), width)])
        return manifest

    def growers(self, count: int) -> Sequence[TreeGrower | SharedGrower]:
        """So many growers over one binning of the training data."""
        if self.crew.shared:
            from gradrank.learners.trees.shared_grower import SharedGrower

            shared = SharedGrower(self.train, self.parameters, split=self.rules.split, crew=cast(Any, self.crew))
            more = [
                SharedGrower(
                    self.train, self.parameters, split=self.rules.split, crew=cast(Any, self.crew), share_binning=shared
                )
                for _ in range(count - 1)
            ]
            return [shared, *more]
        split, watched = self.rules.split, self.watched
        first = TreeGrower(self.train, self.parameters, split=split, watched=watched)
        return [first, *(TreeGrower(self.train, self.parameters, split=split, watched=watched, share_binning=first)
                         for _ in range(count - 1))]  # fmt: skip

    def grown_leaves(self, grower: TreeGrower | SharedGrower, tree: Tree) -> Leaves:
        """The leaf of the tree just grown that each document reaches; a grower that knows its bins need not look."""
        return grower.leaves(tree) if isinstance(grower, TreeGrower) else self._leaves(tree)

    def covered(self, tree: Tree, leaf: NDArray[np.int32]) -> Tree:
        """The tree with the true number of documents in its leaves: in several processes LightGBM estimates it."""
        if not self.crew.shared:
            return tree
        counts = np.bincount(leaf, minlength=tree.n_leaves).astype(np.float64)
        return replace(tree, leaf_cover=self.crew.sum(counts))

    def sampled_queries(self, step: int) -> NDArray[np.bool_] | None:
        """Which queries are in this step's sample; None = all."""
        share, data = self.parameters.subsample, self.train
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


class LambdaCourse(TreeCourse):
    """One tree per step, fitted to the λ's of the current scores.

    Parameters
    ----------
    train, watched
        Data to learn from, and the data sets whose measures are recorded.
    objective, bound
        What is learned, and the same bound to the training data.
    parameters, rules
        How trees are grown.
    measure
        Chooses the weights of the step rules ``optimal`` where the objective has no measure of its own.
    base
        Gives the scores that training starts from.
    recorder
        Records diagnostics.
    crew
        The processes that train together.
    terms
        Additive terms of the positions at which the training documents were shown, learned beside the trees.
    """

    def __init__(
        self,
        train: RankingData,
        watched: Mapping[str, RankingData],
        objective: Objective,
        bound: BoundObjective,
        parameters: TreeParameters,
        rules: Rules,
        *,
        measure: AnyMeasure,
        base: Ranker | None = None,
        recorder: Recorder | None = None,
        crew: Crew = ALONE,
        terms: PositionTerms | None = None,
    ) -> None:
        super().__init__(train, watched, parameters, rules, crew)
        self._terms = terms
        if not objective.has_curvature and "newton" in (rules.step, rules.split):
            raise TrainingError(f"{objective} has no usable second derivative: use split mse and step gradient")
        self._bound = bound
        self._recorder = recorder
        self._grower = self.growers(1)[0]
        self._combiner = None
        if rules.step.startswith("optimal"):
            # By the objective's measure, or the one that chooses the model.
            self._combiner = Combiner(train, objective.measure or measure, n_jobs=parameters.n_jobs)
        self._rule = first_rule(rules.step, objective.has_curvature)
        self.base_score = 0.0 if base is not None else bound.start(crew.total)
        self._scores = {
            name: np.full(data.n_docs, self.base_score)
            if base is None
            else base.grouped_scores(data, n_jobs=parameters.n_jobs)
            for name, data in {TRAINING: train, **watched}.items()
        }

    def scores(self) -> Mapping[str, NDArray[np.float64]]:
        """See Course.scores."""
        return self._scores

    def observe(self, step: int) -> None:
        """Let the recorder look at the scores."""
        if self._recorder is not None:
            self._recorder.observe(step, self._scores[TRAINING])

    def go_on_from(self, steps: Sequence[Trees]) -> None:
        """See TreeCourse.go_on_from; the recorder sees the same as in one run."""
        for number, trees in enumerate(steps[: self.total]):
            self.observe(number)
            if self._terms is not None:
                # They are not in the trees: learned again, from the same gradients.
                self._learn_terms(*self._gradients(number))
            self.add(trees)

    def _add(self, trees: Trees, leaves: Sequence[Leaves]) -> None:
        (tree,), (leaf,) = trees, leaves
        self._scores[TRAINING] += tree.leaf_value[leaf[TRAINING]]
        for name, data in self.watched.items():
            if data is self.train:
                self._scores[name] = self._scores[TRAINING]
            else:
                self._scores[name] += tree.leaf_value[leaf[name]]

    def advance(self, step: int) -> bool:
        """See Course.advance."""
        self.observe(step)
        lambdas, rhos = self._gradients(step)
        tree = self._grower.grow(lambdas, rhos, step)
        leaves = self.grown_leaves(self._grower, tree)
        leaf = leaves[TRAINING]
        tree = self.covered(tree, leaf)
        values = tree.leaf_value
        if self.parameters.monotone_constraints is None:
            values = leaf_values(
                self._rule, leaf, tree.n_leaves, lambdas, rhos, self.parameters.reg_lambda, crew=self.crew
            )
        if self._combiner is not None:
            here = self._combiner.only(self.sampled_queries(step))
            values = optimal_values(self.rules.step, values, leaf, self._scores[TRAINING], here)
        if self._terms is not None:
            self._learn_terms(lambdas, rhos)
        self.add((replace(tree, leaf_value=self.parameters.learning_rate * values),), [leaves])
        return True

    def _gradients(self, step: int) -> tuple[Floats, Floats]:
        scores = self._scores[TRAINING]
        gradients = self._bound.gradients(scores if self._terms is None else self._terms.added_to(scores), step)
        return self.sampled(gradients.lambdas, gradients.rhos, step)

    def _learn_terms(self, lambdas: Floats, rhos: Floats) -> None:
        assert self._terms is not None
        self._terms.learn(lambdas, rhos if self._rule == "newton" else None, self.parameters.learning_rate)

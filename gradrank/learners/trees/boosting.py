"""Boosting on λ's: gradients, a tree, leaf values, new scores; one step of the training loop per tree."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gradrank.combine import Combiner
from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.crew import ALONE, Crew
from gradrank.learners.base.loop import ResumableCourse
from gradrank.learners.base.monitor import TRAINING
from gradrank.learners.trees.diagnostics import Recorder
from gradrank.learners.trees.grower import TreeGrower
from gradrank.learners.trees.leaf_values import StepRule, first_rule, leaf_values, optimal_values
from gradrank.learners.trees.parameters import TreeParameters
from gradrank.learners.trees.position_terms import PositionTerms
from gradrank.measures import AnyMeasure
from gradrank.models.ranker import Ranker
from gradrank.models.registry import ranker_from_dict
from gradrank.models.trees.ensemble import Tree, TreeEnsemble, assign_leaves
from gradrank.objectives import BoundObjective, Objective

Trees = tuple[Tree, ...]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Rules:
    """How splits are searched and leaf values set, once the objective is known."""

    split: str
    step: StepRule


class TreeCourse(ResumableCourse):
    """Steps that add trees: what boosting on λ's and boosting of classes share."""

    unit: ClassVar[str] = "tree"

    def __init__(
        self, train: RankingData, watched: Mapping[str, RankingData], parameters: TreeParameters, rules: Rules
    ) -> None:
        self.train = train
        self.watched = watched
        self.parameters = parameters
        self.rules = rules
        self.total = parameters.n_estimators
        self.patience = parameters.early_stopping_rounds
        self.steps: list[Trees] = []
        """The trees of every step, values shrunk."""

    @abstractmethod
    def _add(self, trees: Trees, leaves: Sequence[NDArray[np.int32]]) -> None:
        """Add trees to the scores; ``leaves`` are those of the training documents."""

    def add(self, trees: Trees, leaves: Sequence[NDArray[np.int32]] | None = None) -> None:
        """Add the trees of a step, grown now or in an earlier run."""
        self._add(trees, leaves or [self.leaves(tree, self.train) for tree in trees])
        self.steps.append(trees)

    def leaves(self, tree: Tree, data: RankingData) -> NDArray[np.int32]:
        """The leaf of each document."""
        return assign_leaves(tree, data.X, n_jobs=self.parameters.n_jobs)

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

    def sampled_queries(self, step: int) -> NDArray[np.bool_] | None:
        """Which queries are in this step's sample; None = all."""
        share, data = self.parameters.subsample, self.train
        if share >= 1.0:
            return None
        rng = np.random.default_rng([self.parameters.random_state, step])
        count = max(1, round(share * data.n_queries))
        chosen = np.zeros(data.n_queries, dtype=bool)
        chosen[rng.permutation(data.n_queries)[:count]] = True
        return chosen

    def sampled(self, lambdas: Floats, rhos: Floats, step: int) -> tuple[Floats, Floats]:
        """Documents of queries that are not in this step's sample have no say."""
        chosen = self.sampled_queries(step)
        if chosen is None:
            return lambdas, rhos
        inside = np.repeat(chosen.astype(np.float32), self.train.sizes)
        return lambdas * inside, rhos * inside


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
        super().__init__(train, watched, parameters, rules)
        self._terms = terms
        if not objective.has_curvature and "newton" in (rules.step, rules.split):
            raise TrainingError(f"{objective} has no usable second derivative: use split mse and step gradient")
        self._bound = bound
        self._recorder = recorder
        self._crew = crew
        self._grower = TreeGrower(train, parameters, split=rules.split, crew=crew)
        self._combiner = None
        if rules.step.startswith("optimal"):
            # By the objective's measure, or the one that chooses the model.
            self._combiner = Combiner(train, objective.measure or measure, n_jobs=parameters.n_jobs)
        self._rule = first_rule(rules.step, objective.has_curvature)
        self.base_score = 0.0 if base is not None else bound.start()
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

    def _add(self, trees: Trees, leaves: Sequence[NDArray[np.int32]]) -> None:
        (tree,), (leaf,) = trees, leaves
        self._scores[TRAINING] += tree.leaf_value[leaf]
        for name, data in self.watched.items():
            if data is self.train:
                self._scores[name] = self._scores[TRAINING]
            else:
                self._scores[name] += tree.leaf_value[self.leaves(tree, data)]

    def advance(self, step: int) -> bool:
        """See Course.advance."""
        self.observe(step)
        lambdas, rhos = self._gradients(step)
        tree = self._grower.grow(lambdas, rhos, step)
        leaf = self.leaves(tree, self.train)
        values = tree.leaf_value
        if self.parameters.monotone_constraints is None:
            values = leaf_values(
                self._rule, leaf, tree.n_leaves, lambdas, rhos, self.parameters.reg_lambda, crew=self._crew
            )
        if self._combiner is not None:
            here = self._combiner.only(self.sampled_queries(step))
            values = optimal_values(self.rules.step, values, leaf, self._scores[TRAINING], here)
        if self._terms is not None:
            self._learn_terms(lambdas, rhos)
        self.add((replace(tree, leaf_value=self.parameters.learning_rate * values),), [leaf])
        return True

    def _gradients(self, step: int) -> tuple[Floats, Floats]:
        scores = self._scores[TRAINING]
        gradients = self._bound.gradients(scores if self._terms is None else self._terms.added_to(scores), step)
        return self.sampled(gradients.lambdas, gradients.rhos, step)

    def _learn_terms(self, lambdas: Floats, rhos: Floats) -> None:
        assert self._terms is not None
        self._terms.learn(lambdas, rhos if self._rule == "newton" else None, self.parameters.learning_rate)

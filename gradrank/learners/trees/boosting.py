"""Boosting on λ's: gradients, a tree, leaf values, new scores; one step of the training loop per tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gradrank.combine import Combiner
from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.crew import ALONE, Crew
from gradrank.learners.base.monitor import TRAINING
from gradrank.learners.base.something_to_learn import check_gradients
from gradrank.learners.trees.diagnostics import Recorder
from gradrank.learners.trees.grower import Grower
from gradrank.learners.trees.leaf_values import first_rule, leaf_values, optimal_values
from gradrank.learners.trees.parameters import TreeParameters
from gradrank.learners.trees.position_terms import PositionTerms
from gradrank.learners.trees.size_rule import Shape
from gradrank.learners.trees.tree_course import Floats, Leaves, Rules, TreeCourse, Trees
from gradrank.measures import AnyMeasure
from gradrank.models.ranker import Ranker
from gradrank.objectives import BoundObjective, Objective
from gradrank.runtime.warn import warn


class LambdaCourse(TreeCourse):
    """One tree per step, fitted to the λ's of the current scores.

    Parameters
    ----------
    train, watched
        Data to learn from, and the data sets whose measures are recorded.
    objective, bound
        What is learned, and the same bound to the training data.
    parameters, shape, rules
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
        shape: Shape,
        rules: Rules,
        *,
        measure: AnyMeasure,
        base: Ranker | None = None,
        recorder: Recorder | None = None,
        crew: Crew = ALONE,
        terms: PositionTerms | None = None,
    ) -> None:
        super().__init__(train, watched, parameters, shape, rules, crew)
        self.terms = terms
        if not objective.has_curvature and "newton" in (rules.step, rules.split):
            raise TrainingError(f"{objective} has no usable second derivative: use split mse and step gradient")
        self._bound, self._bound_changes = bound, objective.changes
        self.recorder = recorder
        self._grower: Grower | None = None
        self._combiner = None
        if rules.step.startswith("optimal"):
            # By the objective's measure, or the one that chooses the model.
            self._combiner = Combiner(train, objective.measure or measure, n_jobs=parameters.n_jobs)
        self._rule = first_rule(rules.step, objective.has_curvature)
        self.base_score = 0.0 if base is not None else bound.start(crew.total)
        self.base = base
        self._scores: dict[str, NDArray[np.float64]] = {}
        self._start()

    def _start(self) -> None:
        (self._grower,) = self.growers(1, self._grower)
        if self.terms is not None:
            self.terms.forget()
        self._scores = {
            name: np.full(data.n_docs, self.base_score)
            if self.base is None
            else self.base.grouped_scores(data, n_jobs=self.parameters.n_jobs)
            for name, data in {TRAINING: self.train, **self.watched}.items()
        }

    def scores(self) -> Mapping[str, NDArray[np.float64]]:
        """See Course.scores."""
        return self._scores

    def observe(self, step: int) -> None:
        """Let the recorder look at the scores."""
        if self.recorder is not None and self.left_out is None:
            self.recorder.observe(step, self._scores[TRAINING])

    def go_on_from(self, steps: Sequence[Trees]) -> None:
        """See TreeCourse.go_on_from; the recorder sees the same as in one run."""
        for number, trees in enumerate(steps[: self.total]):
            self.observe(number)
            if self.terms is not None:
                # They are not in the trees: learned again, from the same gradients.
                self._learn_terms(*self.sampled(*self._gradients(number), number))
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
        assert self._grower is not None
        lambdas, rhos = self._gradients(step)
        if not check_gradients(lambdas, rhos, step, self.crew) and not self._bound_changes:
            warn(f"nothing is left to learn after {step:,} tree{'s' if step != 1 else ''}: every λ is 0")
            return False
        lambdas, rhos = self.sampled(lambdas, rhos, step)
        tree = self._grower.grow(lambdas, rhos, step)
        leaves = self._grower.leaves(tree)
        leaf = leaves[TRAINING]
        tree = self.covered(tree, leaf)
        values = tree.leaf_value
        if self.parameters.monotone_constraints is None:
            values = leaf_values(self._rule, leaf, tree.n_leaves, lambdas, rhos, self.shape.reg_lambda, crew=self.crew)
        if self._combiner is not None:
            here = self._combiner.only(self.sampled_queries(step))
            values = optimal_values(self.rules.step, values, leaf, self._scores[TRAINING], here)
        if self.terms is not None:
            self._learn_terms(lambdas, rhos)
        self.add((replace(tree, leaf_value=self.shape.learning_rate * values),), [leaves])
        return True

    def _gradients(self, step: int) -> tuple[Floats, Floats]:
        scores = self._scores[TRAINING]
        gradients = self._bound.gradients(scores if self.terms is None else self.terms.added_to(scores), step)
        return gradients.lambdas, gradients.rhos

    def _learn_terms(self, lambdas: Floats, rhos: Floats) -> None:
        assert self.terms is not None
        self.terms.learn(lambdas, rhos if self._rule == "newton" else None, self.shape.learning_rate)

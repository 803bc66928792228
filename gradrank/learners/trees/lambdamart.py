"""LambdaMART: boosted trees on λ-gradients of any measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.crew import ALONE
from gradrank.learners.base.estimator import EvalSet, RankingEstimator
from gradrank.learners.base.fit_arguments import known_to_fit
from gradrank.learners.base.loop import Callback, say
from gradrank.learners.base.monitor import watched_sets
from gradrank.learners.base.parameters import fitted
from gradrank.learners.base.something_to_learn import announced_pairs, check_labels
from gradrank.learners.base.training_facts import training_facts
from gradrank.learners.trees.boosting import LambdaCourse
from gradrank.learners.trees.diagnostics import Diagnostics, Recorder
from gradrank.learners.trees.feature_bins import MOST_BINS
from gradrank.learners.trees.grower import default_leaf_size
from gradrank.learners.trees.hold_out import held_out_queries
from gradrank.learners.trees.leaf_values import StepRule
from gradrank.learners.trees.parameters import TreeParameters
from gradrank.learners.trees.position_terms import PositionTerms
from gradrank.learners.trees.size_rule import (
    FEWEST_HELD_OUT,
    LOSSGUIDE,
    MOST_LEVELS,
    NOT_FOR_SYMMETRIC,
    SYMMETRIC,
    Shape,
    is_symmetric,
    mean_weight,
    not_for_symmetric,
    shape_by_size,
)
from gradrank.learners.trees.tree_course import Rules, TreeCourse, Trees
from gradrank.learners.trees.tree_run import TreeRun
from gradrank.measures import NDCG, AnyMeasure, as_measure
from gradrank.models.feature import FeatureRanker
from gradrank.models.ranker import Ranker
from gradrank.models.registry import load_ranker, under_names_of
from gradrank.models.trees.ensemble import TreeEnsemble
from gradrank.models.weighted_sum import WeightedSum
from gradrank.objectives import Objective, as_objective, recommended
from gradrank.runtime.warn import warn

# What is given in the place of what symmetric trees do not take.
_INSTEAD = {
    "num_leaves": ": max_depth=5 makes 32 leaves",
    "max_depth": f": at most {MOST_LEVELS}",
    "max_bin": f": at most {MOST_BINS}",
}


class LambdaMART(TreeParameters, RankingEstimator):
    """Boosted trees on λ-gradients of any measure (Wu, Burges, Svore, Gao 2009).

    F_0 = 0; each step fits a tree to the λ's of the current scores, sets the leaf values by the step rule, and adds
    the tree times the learning rate. With validation data the number of trees is the one with the best value of
    ``measure``; without, and with no ``n_estimators``, some queries are held out to find it, and the model then learns
    from all of them. Leaves and rate follow the size of the data unless they are given.

    A gradient step goes with λ's divided by their standard deviation in the query, unless the objective says otherwise.

    >>> from gradrank import make_splits
    >>> data = make_splits(60, n_docs=20, n_features=5, random_state=1)
    >>> model = LambdaMART("NDCG@5", n_estimators=60, learning_rate=0.2).fit(data["train"], valid=data["vali"])
    >>> model.score(data["test"]) > 0.9  # a random ranker has 0.35
    True
    """

    unit: ClassVar[str] = "tree"
    steps_parameter: ClassVar[str | None] = "n_estimators"
    weighs_documents: ClassVar[bool] = True
    checks_blocks: ClassVar[bool] = True
    default_objective: ClassVar[str] = "NDCG@10"
    trees_: tuple[Trees, ...] = fitted()
    """The trees of every step that was made, values shrunk; the model has the first ``record_.best`` of them."""
    position_terms_: dict[int, float] = fitted()
    """The term of each position, after all steps, if ``positions`` are given."""
    base_score_: float = fitted()
    """The score that training started from."""
    n_estimators_: int = fitted()
    """Number of trees (steps) of the model."""
    num_leaves_: int = fitted()
    """Most leaves of a tree: ``num_leaves``, or what the data's size made of it."""
    learning_rate_: float = fitted()
    """The rate: ``learning_rate``, or what the data's size made of it."""
    _crew = ALONE

    # ------------------------------------------------------------------ what the names mean
    def _objective(self) -> Objective:
        given = self.default_objective if self.objective is None else self.objective
        objective = as_objective(given)
        gradient = self.step == "gradient" or (self.step != "newton" and not objective.has_curvature)
        if gradient:
            objective = as_objective(given, bare=partial(recommended, newton=False))
            objective = objective.normalized_by_deviation()
        return objective

    def _measure(self) -> AnyMeasure:
        if self.measure is not None:
            return as_measure(self.measure)
        return self._objective().measure or NDCG(10)

    def _rules(self) -> Rules:
        curved = self._objective().has_curvature
        split = self.split if self.split != "auto" else ("newton" if curved else "mse")
        step = self.step if self.step != "auto" else ("newton" if curved else "gradient")
        return Rules(split, cast(StepRule, step))

    def _check(self) -> None:
        rules = self._rules()
        if self.monotone_constraints is not None and rules not in (Rules("newton", "newton"), Rules("mse", "gradient")):
            # LightGBM keeps leaf values within the constraints; then they must be of the kind its splits assume.
            raise TrainingError(
                "monotone_constraints go with split and step newton, or with split mse and step gradient"
            )

        if self.monotone_constraints is not None and self.split_docs is not None:
            # Their leaf values are LightGBM's, which would be those of the sample.
            raise TrainingError("split_docs does not go with monotone_constraints: leave one of them out")

        for name in not_for_symmetric(self) if self.grow_policy == SYMMETRIC else []:
            raise TrainingError(f"grow_policy is symmetric, which does not take {name}{_INSTEAD.get(name, '')}")

    @classmethod
    def not_searched_with(cls, parameters: Mapping[str, Any]) -> frozenset[str]:
        """See RankingEstimator.not_searched_with: each policy has its own size of trees."""
        policy = parameters.get("grow_policy")
        if policy == SYMMETRIC:
            return frozenset(NOT_FOR_SYMMETRIC)
        if policy == LOSSGUIDE:
            return frozenset(("max_depth",))
        return frozenset(("grow_policy", "max_depth") if any(name in parameters for name in NOT_FOR_SYMMETRIC) else ())

    def _chosen(self) -> dict[str, Any]:
        rules = self._rules()
        symmetric = is_symmetric(self, unit_queries=self._objective().unit_queries)
        policy = SYMMETRIC if symmetric else LOSSGUIDE
        return {**super()._chosen(), "split": rules.split, "step": rules.step, "grow_policy": policy}

    def _base(self, train: RankingData) -> Ranker | None:
        """The ranker that training starts from; a name is a feature whose values are the scores, or a model file."""
        if self.base is None or isinstance(self.base, Ranker):
            return None if self.base is None else under_names_of(self.base, train)
        name = str(self.base)
        if name in train.feature_names:
            return under_names_of(FeatureRanker(name), train)
        if Path(name).is_file():
            return under_names_of(load_ranker(name), train)
        raise TrainingError(f"base is {name!r}: there is no such model file, and the data has no such feature")

    # ------------------------------------------------------------------ training
    @known_to_fit
    def fit(
        self,
        X: Any = None,
        y: Any = None,
        qid: Any = None,
        *,
        sample_weight: ArrayLike | None = None,
        eval_set: EvalSet | None = None,
        eval_qid: Sequence[Any] | None = None,
        valid: Any = None,
        client: Any = None,
        train: Any = None,
        shuffle: bool = False,
        reading: Mapping[str, Any] | None = None,
        ports: tuple[int, int] | None = None,
    ) -> Self:
        """Train a ranker: here, or with ``client`` and ``train`` on workers that read the data themselves.

        Parameters
        ----------
        X
            RankingData, which holds everything; or features: an array, a pandas or polars frame.
        y
            Labels, one per row; NaN is an unjudged document.
        qid
            Query ids, one per row, in any order; not needed if a frame has a column ``qid``.
        sample_weight
            Weights of the queries: one per row, the same for all rows of a query, or one per query.
        eval_set, eval_qid
            Validation data as LightGBM and XGBoost take it: a list of (X, y), and a list of their query ids. The first
            one chooses the model, the others are recorded.
        valid
            The same as RankingData, (X, y, qid), or several sets by name; on workers as ``train``, or several by name.
        client
            A Dask client, a Spark session, or a number of processes on this machine.
        train
            With ``client``: a file, folder, pattern such as ``"part-*.parquet"`` or address (``s3://…``) that the
            workers can read, a list of them, or a Dask dataframe.
        shuffle
            With ``client``: whether a query that stands in several files is brought together instead of refused.
        reading
            With ``client``: how files are read, as the options of :func:`gradrank.read_data` say it.
        ports
            With ``client``: first and last port that workers may listen on; any free one otherwise.

        Returns
        -------
        The learner itself, with ``ranker_`` and ``record_``.
        """
        if client is None:
            if train is not None or X is None:
                raise TrainingError("train goes with client, X goes without: give one of the two")
            return super().fit(
                X, y, qid, sample_weight=sample_weight, eval_set=eval_set, eval_qid=eval_qid, valid=valid
            )
        given = {"X": X, "y": y, "qid": qid, "sample_weight": sample_weight, "eval_set": eval_set, "eval_qid": eval_qid}
        wrong = [name for name, value in given.items() if value is not None]
        if wrong or train is None:
            named = f"{wrong[0]} is given" if wrong else "train is not given"
            raise TrainingError(f"workers read their data themselves: {named}, expected train and valid")
        from gradrank.learners.trees.remote import fit_on_workers

        sets = {} if valid is None else dict(valid) if isinstance(valid, Mapping) else {"valid": valid}
        options = dict(reading or {})
        how = {"format": options.pop("format", None), "options": options}
        fit_on_workers(self, client, train, sets, reading=dict.fromkeys(("train", *sets), how), shuffle=shuffle,
                       ports=ports)  # fmt: skip
        return self

    def _fit(self, train: RankingData, valid: Mapping[str, RankingData], callbacks: Sequence[Callback]) -> Ranker:
        crew = self._crew
        held = None if valid else self._held_out(train, callbacks)
        self._shape = shape_by_size(
            self, crew.count(train.n_queries), crew.count(train.n_docs), validated=bool(valid) or held is not None,
            unit_queries=self._objective().unit_queries, weight=mean_weight(train, crew),
        )  # fmt: skip
        course = self._course(train, watched_sets(train, valid, self.train_measure), self._shape, callbacks)
        run = TreeRun(self, course, valid, self._base(train), callbacks)
        self.record_, self.trees_ = run.once() if held is None else run.twice(held)
        self._take_shape(self._shape)
        return self._model(course, self.trees_[: self.record_.best])

    def _course(
        self, train: RankingData, watched: Mapping[str, RankingData], shape: Shape, callbacks: Sequence[Callback]
    ) -> TreeCourse:
        """What makes the steps, of data that has been looked at."""
        objective, measure, crew = self._objective(), self._measure(), self._crew
        check_labels(train, objective, crew)
        bound = objective.bind(train, random_state=self.random_state, n_jobs=self.n_jobs)
        self._pairs = announced_pairs(bound, train, callbacks, crew)
        return LambdaCourse(
            train, watched, objective, bound, self, shape, self._rules(), measure=measure, base=self._base(train),
            recorder=self._recorder(objective, train, measure), crew=crew,
            terms=None if self.positions is None else PositionTerms.of_label(train, self.positions, crew),
        )  # fmt: skip

    def _model(self, course: TreeCourse, chosen: Sequence[Trees]) -> Ranker:
        """The ranker of the trees that were chosen."""
        assert isinstance(course, LambdaCourse)
        train, recorder = course.train, course.recorder
        self.record_.pairs = self._pairs
        if recorder is not None:
            if not self.record_.interrupted:
                # An interrupted step may have left its mark on the scores.
                course.observe(self.record_.steps)
            self.record_.diagnostics = recorder.record()
        self.base_score_ = course.base_score
        facts = self._facts(train, str(self._objective()))
        if course.terms is not None:
            self.position_terms_ = course.terms.by_position()
            facts["position_terms"] = {str(position): term for position, term in self.position_terms_.items()}
        trees = [tree for (tree,) in chosen]
        if course.base is None:
            return TreeEnsemble(trees, train.feature_names, base_score=self.base_score_, training=facts)
        on_top = TreeEnsemble(trees, train.feature_names)
        return WeightedSum([(1.0, course.base), (1.0, on_top)], feature_names=train.feature_names, training=facts)

    def _facts(self, train: RankingData, objective: str) -> dict[str, Any]:
        return training_facts(
            self, train, objective, str(self._measure()), self.record_, "lightgbm", count=self._crew.count
        )

    # ------------------------------------------------------------------ what the data's size decides
    @property
    def holds_out(self) -> bool:
        """See RankingEstimator.holds_out."""
        return self.n_estimators is None and self.validation_fraction > 0

    def _warn_before(self, train: RankingData, valid: Mapping[str, RankingData]) -> None:
        super()._warn_before(train, valid)
        if self.validation_fraction in (0, self.declared["validation_fraction"].default):
            return
        if valid or self.n_estimators is not None:
            reason = "there is validation data" if valid else "n_estimators is given"
            warn(f"validation_fraction is not used, because {reason}: no queries are held out")

    def _held_out(self, train: RankingData, callbacks: Sequence[Callback]) -> NDArray[np.bool_] | None:
        """The queries that are held out to find the number of trees; None if there are none."""
        if not self.holds_out:
            return None
        held = held_out_queries(train, self.validation_fraction, self.random_state)
        if self._crew.count(int(held.sum())) >= FEWEST_HELD_OUT:
            return held
        queries = self._crew.count(train.n_queries)
        say(callbacks, f"there is no validation data, and {queries:,} queries are too few to hold some out "
            "(validation_fraction): the number of trees is a fixed one")  # fmt: skip
        return None

    def _take_shape(self, shape: Shape) -> None:
        """Remember what training went by."""
        self._shape = shape
        self.num_leaves_, self.learning_rate_ = shape.num_leaves, shape.learning_rate
        self.n_estimators_ = self.record_.best

    def _most_steps(self) -> int:
        return self._shape.n_estimators

    def _settled(self) -> dict[str, Any]:
        """See RankingEstimator._settled."""
        shape = getattr(self, "_shape", None)
        if shape is None:
            return {}
        found: dict[str, Any] = {
            "grow_policy": LOSSGUIDE if shape.depth is None else SYMMETRIC,
            **shape.of_trees(),
            "learning_rate": shape.learning_rate,
            "subsample": shape.subsample,
            "reg_lambda": shape.reg_lambda,
        }
        if self.n_estimators is None:
            found["early_stopping_rounds"] = shape.early_stopping_rounds
            if hasattr(self, "n_estimators_"):
                found["n_estimators"] = self.n_estimators_
        return found

    def _recorder(self, objective: Objective, train: RankingData, measure: AnyMeasure) -> Recorder | None:
        if self.diagnostics is None:
            return None
        wanted = self.diagnostics
        if not isinstance(wanted, Diagnostics):
            wanted = Diagnostics(every=wanted, random_state=self.random_state)
        return Recorder(wanted, objective, train, [measure], self._crew)

    def _why_constant(self, train: RankingData) -> str:
        least = self.min_child_samples or default_leaf_size(train.n_docs)
        if train.n_docs < 2 * least:
            return (
                f": no split leaves {least} documents on both sides of {train.n_docs} (min_child_samples); lower it, "
                "or give more data"
            )
        return super()._why_constant(train)

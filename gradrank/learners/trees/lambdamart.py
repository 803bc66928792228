"""LambdaMART: boosted trees on λ-gradients of any measure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.checkpoint import fingerprint, keeper, resume
from gradrank.learners.base.crew import ALONE
from gradrank.learners.base.estimator import EvalSet, RankingEstimator
from gradrank.learners.base.loop import Callback, Record, run_course
from gradrank.learners.base.monitor import Monitor, watched_sets
from gradrank.learners.base.parameters import fitted
from gradrank.learners.base.something_to_learn import announced_pairs, check_labels
from gradrank.learners.base.training_facts import training_facts
from gradrank.learners.trees.boosting import LambdaCourse, Rules, TreeCourse, Trees
from gradrank.learners.trees.diagnostics import Diagnostics, Recorder
from gradrank.learners.trees.grower import default_leaf_size
from gradrank.learners.trees.leaf_values import StepRule
from gradrank.learners.trees.parameters import TreeParameters
from gradrank.learners.trees.position_terms import PositionTerms
from gradrank.measures import NDCG, AnyMeasure, as_measure
from gradrank.models.feature import FeatureRanker
from gradrank.models.ranker import Ranker
from gradrank.models.registry import load_ranker, under_names_of
from gradrank.models.trees.ensemble import TreeEnsemble
from gradrank.models.weighted_sum import WeightedSum
from gradrank.objectives import Objective, parse_objective, recommended

# Parameters that may differ when a checkpoint is continued; the base is told apart by its scores.
_NOT_OF_THE_RUN = (
    "n_estimators", "n_jobs", "checkpoint", "checkpoint_every", "callbacks", "warm_start", "base", "diagnostics",
    "verbose",
)  # fmt: skip


class LambdaMART(TreeParameters, RankingEstimator):
    """Boosted trees on λ-gradients of any measure (Wu, Burges, Svore, Gao 2009).

    F_0 = 0; each step fits a tree to the λ's of the current scores, sets the leaf values by the step rule, and adds
    the tree times the learning rate. With validation data the number of trees is the one with the best value of
    ``measure``.

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
    default_objective: ClassVar[str] = "NDCG@10"
    trees_: tuple[Trees, ...] = fitted()
    """The trees of every step that was made, values shrunk; the model has the first ``record_.best`` of them."""
    position_terms_: dict[int, float] = fitted()
    """The term of each position, after all steps, if ``positions`` are given."""
    base_score_: float = fitted()
    """The score that training started from."""
    _crew = ALONE

    # ------------------------------------------------------------------ what the names mean
    def _objective(self) -> Objective:
        given = self.default_objective if self.objective is None else self.objective
        objective = parse_objective(given) if isinstance(given, str) else given
        gradient = self.step == "gradient" or (self.step != "newton" and not objective.has_curvature)
        if gradient:
            if isinstance(given, str):
                objective = parse_objective(given, bare=partial(recommended, newton=False))
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

    def _chosen(self) -> dict[str, Any]:
        rules = self._rules()
        return {**super()._chosen(), "split": rules.split, "step": rules.step}

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
        objective, measure, base = self._objective(), self._measure(), self._base(train)
        crew = self._crew
        check_labels(train, objective, crew)
        bound = objective.bind(train, random_state=self.random_state, n_jobs=self.n_jobs)
        pairs = announced_pairs(bound, train, callbacks, crew)
        watched = watched_sets(train, valid, self.train_measure)
        recorder = self._recorder(objective, train, measure)
        terms = None if self.positions is None else PositionTerms.of_label(train, self.positions)
        course = LambdaCourse(
            train, watched, objective, bound, self, self._rules(), measure=measure, base=base, recorder=recorder,
            crew=crew, terms=terms,
        )  # fmt: skip
        monitor = Monitor.of_sets(watched, valid, measure, n_jobs=self.n_jobs, crew=crew)
        self._run(course, monitor, train, valid, base, callbacks)
        self.record_.pairs = pairs
        if recorder is not None:
            if not self.record_.interrupted:
                # An interrupted step may have left its mark on the scores.
                course.observe(self.record_.steps)
            self.record_.diagnostics = recorder.record()
        self.base_score_ = course.base_score
        facts = training_facts(self, train, str(objective), str(measure), self.record_, "lightgbm", count=crew.count)
        if terms is not None:
            self.position_terms_ = terms.by_position()
            facts["position_terms"] = {str(position): term for position, term in self.position_terms_.items()}
        trees = [tree for (tree,) in self.trees_[: self.record_.best]]
        if base is None:
            return TreeEnsemble(trees, train.feature_names, base_score=self.base_score_, training=facts)
        on_top = TreeEnsemble(trees, train.feature_names)
        return WeightedSum([(1.0, base), (1.0, on_top)], feature_names=train.feature_names, training=facts)

    def _run(
        self,
        course: TreeCourse,
        monitor: Monitor,
        train: RankingData,
        valid: Mapping[str, RankingData],
        base: Ranker | None,
        callbacks: Sequence[Callback],
    ) -> None:
        """Run a course from where a checkpoint, or the model at hand with ``warm_start``, ended."""
        record, keep = None, None
        if self.checkpoint is not None:
            run = self._run_facts(train, valid, base)
            record = resume(course, self.checkpoint, run)
            if self._crew.rank == 0:
                keep = keeper(course, self.checkpoint, run, self.checkpoint_every)
        if record is None and self.warm_start and hasattr(self, "trees_"):
            course.go_on_from(self.trees_)
            record = Record(steps=self.record_.steps, curves=self.record_.curves, seconds=self.record_.seconds)
        if record is not None:
            record.cut(self.n_estimators)
        self.record_ = run_course(course, monitor, callbacks=callbacks, record=record, keeper=keep)
        self.trees_ = tuple(course.steps[: self.record_.steps])

    def _recorder(self, objective: Objective, train: RankingData, measure: AnyMeasure) -> Recorder | None:
        if self.diagnostics is None:
            return None
        wanted = self.diagnostics
        if not isinstance(wanted, Diagnostics):
            wanted = Diagnostics(every=wanted, random_state=self.random_state)
        return Recorder(wanted, objective, train, [measure], self._crew)

    def _run_facts(self, train: RankingData, valid: Mapping[str, RankingData], base: Ranker | None) -> dict[str, Any]:
        """What must be the same for a checkpoint to be continued; more trees may be asked for."""
        parameters = {**self.get_params(deep=False), **self._chosen()}
        facts = {name: value for name, value in parameters.items() if name not in _NOT_OF_THE_RUN}
        facts["base"] = None
        if base is not None and self._crew.shared:
            facts["base"] = fingerprint(np.frombuffer(json.dumps(base.to_dict()).encode(), dtype=np.uint8))
        elif base is not None:
            facts["base"] = fingerprint(np.asarray(base.grouped_scores(train)))
        facts["data"] = [self._crew.fingerprint(data) for data in (train, *valid.values())]
        if self._crew.shared:
            # Its random draws are others than those of a training in one process.
            facts["workers"] = True
        return facts

    def _why_constant(self, train: RankingData) -> str:
        least = self.min_child_samples or default_leaf_size(train.n_docs)
        if train.n_docs < 2 * least:
            return (
                f": no split leaves {least} documents on both sides of {train.n_docs} (min_child_samples); lower it, "
                "or give more data"
            )
        return super()._why_constant(train)

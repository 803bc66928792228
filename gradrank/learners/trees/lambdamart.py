"""LambdaMART, LambdaSMART and MART: boosted trees, with scikit-learn's habits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.checkpoint import checkpoints, fingerprint, read_checkpoint
from gradrank.learners.base.estimator import RankingEstimator, as_measure
from gradrank.learners.base.monitor import Curves
from gradrank.learners.base.training_facts import training_facts
from gradrank.learners.trees.boosting import Boosted, Callback, boost, ensemble_of
from gradrank.learners.trees.diagnostics import Diagnostics
from gradrank.learners.trees.grower import TreeSettings
from gradrank.learners.trees.settings import BoostingSettings
from gradrank.measures import NDCG, AnyMeasure
from gradrank.models.feature import FeatureRanker
from gradrank.models.ranker import Ranker
from gradrank.models.registry import under_names_of
from gradrank.models.trees.ensemble import Tree, TreeEnsemble
from gradrank.models.weighted_sum import WeightedSum
from gradrank.objectives import Lambda, Objective, Regression, parse_objective

Rule = Literal["auto", "newton", "gradient", "optimal", "optimal-leaf"]

# Parameters that may differ when a checkpoint is continued; the base is told apart by its scores.
_NOT_THE_RUN = ("trees", "n_jobs", "checkpoint", "checkpoint_every", "callbacks", "warm_start", "base", "diagnostics")


class LambdaMART(RankingEstimator):
    """Boosted trees on λ-gradients of any measure (Wu, Burges, Svore, Gao 2009).

    F_0 = 0; each step fits a tree to the λ's of the current scores, sets the leaf values by the step rule, and adds
    the tree times the rate. With validation data the number of trees is the one with the best value of ``measure``.

    Parameters are those of :class:`BoostingSettings` and :class:`TreeSettings`. ``objective`` is an objective or its
    name: a measure (``"NDCG@10"``, the default: the recommended λ's), or ``"Lambda(NDCG@10)"`` for the papers' exact
    form. ``base`` is a ranker, or the name of a feature, whose scores training starts from (see LambdaSMART).
    ``measure`` chooses the model; unless given it is the objective's. ``split`` and ``step`` are ``newton`` unless
    the objective has no usable second derivative (then least-squares splits and gradient steps). The gradient step
    goes with λ's divided by their standard deviation in the query, unless the objective says otherwise. Steps
    ``optimal`` and ``optimal-leaf`` multiply those leaf values by exact best weights on the training data (one for the
    tree, or one for each leaf) before the rate; see :func:`gradrank.learners.trees.leaf_values.optimal_values`. Each
    tree sees 70 % of the queries, which helped on all data we tried; ``queries=1`` is the papers' form.
    ``diagnostics`` records every so many trees how λ's and ranks change (a number, or :class:`Diagnostics`); it
    changes nothing else.

    >>> from gradrank.data.artificial import make_splits
    >>> data = make_splits(40, n_docs=10, n_features=5, random_state=1)
    >>> model = LambdaMART("NDCG@5", trees=20, min_docs=5).fit(data["train"], valid=data["vali"])
    >>> model.score(data["test"]) > 0.5
    True
    """

    unit: ClassVar[str] = "tree"
    default_objective: ClassVar[str] = "NDCG@10"
    boosted_: Boosted
    """All trees that were grown, and the record of the training."""

    def __init__(
        self,
        objective: str | Objective | None = None,
        *,
        base: Ranker | str | None = None,
        measure: str | AnyMeasure | None = None,
        trees: int = 300,
        leaves: int = 15,
        rate: float = 0.05,
        min_docs: int = 20,
        split: Literal["auto", "mse", "newton"] = "auto",
        step: Rule = "auto",
        max_depth: int | None = None,
        bins: int = 255,
        l2: float = 0.0,
        min_hessian: float = 1e-3,
        features: float = 1.0,
        queries: float = 0.7,
        early_stopping: int | None = None,
        monotone: Sequence[int] | None = None,
        categorical: Sequence[int | str] = (),
        quantized: bool = True,
        random_state: int = 0,
        n_jobs: int | None = None,
        train_measure: bool = False,
        warm_start: bool = False,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 50,
        callbacks: Sequence[Callback] = (),
        diagnostics: int | Diagnostics | None = None,
        lightgbm: Mapping[str, Any] | None = None,
    ) -> None:
        self.objective = objective
        self.base = base
        self.measure = measure
        self.trees = trees
        self.leaves = leaves
        self.rate = rate
        self.min_docs = min_docs
        self.split = split
        self.step = step
        self.max_depth = max_depth
        self.bins = bins
        self.l2 = l2
        self.min_hessian = min_hessian
        self.features = features
        self.queries = queries
        self.early_stopping = early_stopping
        self.monotone = monotone
        self.categorical = categorical
        self.quantized = quantized
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.train_measure = train_measure
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.callbacks = callbacks
        self.diagnostics = diagnostics
        self.lightgbm = lightgbm

    # ------------------------------------------------------------------ what the names mean
    def _objective(self) -> Objective:
        given = self.default_objective if self.objective is None else self.objective
        objective = parse_objective(given) if isinstance(given, str) else given
        gradient = self.step == "gradient" or (self.step != "newton" and not objective.has_curvature)
        if gradient:
            bare = isinstance(given, str) and not given.strip().lower().startswith("lambda")
            if bare and isinstance(objective, Lambda):
                objective = Lambda(objective.target)  # the recommended λ's are meant for Newton steps
            objective = objective.normalized_by_deviation()
        return objective

    def _measure(self) -> AnyMeasure:
        if self.measure is not None:
            return as_measure(self.measure)
        return self._objective().measure or NDCG(10)

    def _settings(self, objective: Objective) -> BoostingSettings:
        split = self.split if self.split != "auto" else ("newton" if objective.has_curvature else "mse")
        step = self.step if self.step != "auto" else ("newton" if objective.has_curvature else "gradient")
        return BoostingSettings(
            trees=self.trees,
            rate=self.rate,
            split=split,
            step=step,
            queries=self.queries,
            early_stopping=self.early_stopping,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            train_measure=self.train_measure,
            tree=TreeSettings(
                leaves=self.leaves,
                min_docs=self.min_docs,
                max_depth=self.max_depth,
                bins=self.bins,
                min_hessian=self.min_hessian,
                l2=self.l2,
                features=self.features,
                quantized=self.quantized,
                monotone=None if self.monotone is None else tuple(self.monotone),
                categorical=tuple(self.categorical),
                extra=self.lightgbm,
            ),
        )

    def _chosen(self) -> dict[str, Any]:
        settings = self._settings(self._objective())
        return {**super()._chosen(), "split": settings.split, "step": settings.step}

    def _diagnostics(self) -> Diagnostics | None:
        if isinstance(self.diagnostics, Diagnostics | None):
            return self.diagnostics
        return Diagnostics(every=self.diagnostics, random_state=self.random_state)

    def _base(self, train: RankingData) -> Ranker | None:
        """The ranker that training starts from; a name is a feature whose values are the scores."""
        base = FeatureRanker(self.base) if isinstance(self.base, str) else self.base
        return None if base is None else under_names_of(base, train)

    # ------------------------------------------------------------------ training
    def _fit(self, train: RankingData, valid: Mapping[str, RankingData]) -> Ranker:
        objective = self._objective()
        settings = self._settings(objective)
        base = self._base(train)
        start, curves, callbacks = self._start(self._run_facts(settings, train, valid, base), train)
        self.boosted_ = boost(
            train,
            objective,
            settings,
            valid=valid,
            measures=[self._measure()],
            base=base,
            start=start,
            start_curves=curves,
            callbacks=callbacks,
            diagnostics=self._diagnostics(),
        )
        facts = training_facts(self, train, str(objective), str(self._measure()), self.boosted_)
        facts["pairs"] = [asdict(fact) for fact in self.boosted_.pairs]
        if self.boosted_.diagnostics is not None:
            facts["diagnostics"] = self.boosted_.diagnostics
        if base is None:
            return ensemble_of(self.boosted_, train.feature_names, facts)
        return _on_top(base, ensemble_of(self.boosted_, train.feature_names, {}), train, facts)

    def _start(
        self, run: Mapping[str, Any], train: RankingData
    ) -> tuple[Sequence[tuple[Tree, ...]], Curves | None, list[Callback]]:
        """Where to go on from (a checkpoint, or the model at hand with ``warm_start``), and the callbacks."""
        callbacks = list(self.callbacks)
        if self.checkpoint is not None:
            if self.checkpoint_every < 1:
                raise TrainingError(f"checkpoint_every is {self.checkpoint_every!r}, expected 1 or more")
            kept = read_checkpoint(self.checkpoint, run)
            callbacks.append(checkpoints(self.checkpoint, run, train.feature_names, self.checkpoint_every, kept))
            if kept is not None:
                return kept.steps[: self.trees], _cut_short(kept.curves, self.trees), callbacks
        if self.warm_start and hasattr(self, "boosted_"):
            return self.boosted_.steps[: self.trees], _cut_short(self.boosted_.curves, self.trees), callbacks
        return (), None, callbacks

    def _run_facts(
        self,
        settings: BoostingSettings,
        train: RankingData,
        valid: Mapping[str, RankingData],
        base: Ranker | None,
    ) -> dict[str, Any]:
        """What must be the same for a checkpoint to be continued; more trees may be asked for."""
        facts = {name: value for name, value in self.get_params(deep=False).items() if name not in _NOT_THE_RUN}
        facts["objective"], facts["measure"] = str(self._objective()), str(self._measure())
        facts["split"], facts["step"] = settings.split, settings.step
        facts["base"] = None if base is None else fingerprint(np.asarray(base.grouped_scores(train)))
        facts["data"] = [fingerprint(data.X, *data.labels.values()) for data in (train, *valid.values())]
        return facts


class LambdaSMART(LambdaMART):
    """LambdaMART started from a base ranker: adapts any model to a new domain (Wu et al. 2009).

    ``base`` is any ranker, or the name of a feature whose values are its scores. The trained ranker contains the
    base: score(x) = base(x) + trees(x).

    >>> from gradrank.data.artificial import make_splits
    >>> data = make_splits(40, n_docs=10, n_features=5, random_state=1)
    >>> model = LambdaSMART("NDCG@5", base="f1", trees=10, min_docs=5).fit(data["train"], valid=data["vali"])
    >>> model.ranker_
    WeightedSum(5 features)
    """

    def _base(self, train: RankingData) -> Ranker | None:
        if self.base is None:
            raise TrainingError("LambdaSMART needs a base: a ranker, or the name of a feature that holds scores")
        return super()._base(train)


class MART(LambdaMART):
    """Boosted regression trees: least squares on the label (Friedman 2001), as a ranker.

    >>> from gradrank.data.artificial import make_splits
    >>> data = make_splits(40, n_docs=10, n_features=5, random_state=1)
    >>> MART(trees=20, min_docs=5).fit(data["train"], valid=data["vali"]).score(data["test"]) > 0.5
    True
    """

    default_objective: ClassVar[str] = "Regression"

    def _objective(self) -> Objective:
        objective = super()._objective()
        if not isinstance(objective, Regression):
            raise TrainingError(f"MART learns by regression, not by {objective}; LambdaMART takes it")
        return objective


def _on_top(base: Ranker, trees: TreeEnsemble, train: RankingData, facts: Mapping[str, Any]) -> WeightedSum:
    return WeightedSum([(1.0, base), (1.0, trees)], feature_names=train.feature_names, training=facts)


def _cut_short(curves: Curves, steps: int) -> Curves:
    return {name: {measure: curve[:steps] for measure, curve in per.items()} for name, per in curves.items()}

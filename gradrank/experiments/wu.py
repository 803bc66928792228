"""Wu, Burges, Svore, Gao (2009), Ranking, Boosting, and Model Adaptation: table 1, figures 2 and 3.

The artificial data is made as the paper says (labels from random cubic polynomials, no noise); its own is not public.
Queries whose documents all carry one label count as they do elsewhere in gradrank (0 if nothing is relevant).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gradrank.data.ranking_data import RankingData
from gradrank.evaluation.compare import compare
from gradrank.evaluation.evaluate import evaluate
from gradrank.evaluation.tables import Column, Table
from gradrank.experiments import pins
from gradrank.experiments.recipe import Recipe, Run
from gradrank.experiments.result import Outcome
from gradrank.experiments.settings import Scale, Splits, setting
from gradrank.learners.algorithms import algorithm
from gradrank.learners.trees.lambdamart import LambdaMART
from gradrank.learners.trees.mcrank import McRank
from gradrank.measures import NDCG
from gradrank.models.ranker import Ranker
from gradrank.models.trees.ensemble import TreeEnsemble

PAPER = "Wu, Burges, Svore, Gao (2009)"
_MEASURES = (NDCG(10), NDCG(3), NDCG(1))
_STEPS = ("newton", "optimal", "optimal-leaf")
_OBJECTIVE = "Lambda(NDCG@10)"


@dataclass(frozen=True, kw_only=True)
class TreeScale(Scale):
    """Size of the data and of the trees."""

    queries: int = setting(600, "training queries; half as many for validation, as many for test", of_data=True)
    n_estimators: int = setting(500, "steps of boosting; McRank grows one tree per grade in each")
    num_leaves: int = setting(10, "leaves per tree")
    min_child_samples: int = setting(20, "fewest documents per leaf")

    def tree_parameters(self, learning_rate: float) -> dict[str, Any]:
        """Parameters of the boosted trees."""
        return {
            **pins.TREES,
            "n_estimators": self.n_estimators,
            "num_leaves": self.num_leaves,
            "min_child_samples": self.min_child_samples,
            "learning_rate": learning_rate,
        }

    def tree_learner(self, kind: type[LambdaMART], learning_rate: float, **options: Any) -> LambdaMART:
        """Boosted trees that are chosen by NDCG@10 on validation data."""
        given = {**self.tree_parameters(learning_rate), **options}
        pins.pinned(kind.__name__, given)
        return kind(measure=NDCG(10), random_state=self.random_state, n_jobs=self.n_jobs, **given)


@dataclass(frozen=True, kw_only=True)
class RateScale(TreeScale):
    """Trees with one learning rate."""

    learning_rate: float = setting(0.1, "learning rate of the trees")

    def learners(self) -> dict[str, dict[str, Any]]:
        return {
            "LambdaMART": self.tree_parameters(self.learning_rate),
            "McRank": self.tree_parameters(self.learning_rate),
        }


@dataclass(frozen=True, kw_only=True)
class TableScale(RateScale):
    """Trees and a net."""

    learning_rate: float = setting(0.1, "learning rate of LambdaMART; McRank has half of it")
    hidden_layer_sizes: int = setting(10, "hidden nodes of LambdaRank's net")
    activation: str = setting("relu", "of the hidden nodes: relu or tanh")
    epochs: int = setting(30, "epochs of LambdaRank's net")

    def learners(self) -> dict[str, dict[str, Any]]:
        return {
            "LambdaMART": self.tree_parameters(self.learning_rate),
            "McRank": self.tree_parameters(self.learning_rate / 2),
            "LambdaRank": pins.net(
                hidden_layer_sizes=self.hidden_layer_sizes, activation=self.activation, epochs=self.epochs
            ),
        }


@dataclass(frozen=True, kw_only=True)
class StepScale(TreeScale):
    """Trees with several learning rates."""

    n_estimators: int = setting(120, "steps of boosting")
    learning_rates: tuple[float, ...] = setting(
        (0.5, 1.0), "learning rates, of which validation data chooses one for each step rule"
    )

    def learners(self) -> dict[str, dict[str, Any]]:
        shared = self.tree_parameters(self.learning_rates[0])
        del shared["learning_rate"]
        return {f"LambdaMART, {step}": {**shared, "step": step} for step in _STEPS}


def table_1(scale: TableScale, data: Splits, run: Run) -> Outcome:
    """LambdaMART, McRank and LambdaRank: NDCG@10, @3 and @1 on test data with 95 % intervals."""
    net = pins.pinned("lambdarank", scale.learners()["LambdaRank"])
    learners: dict[str, Any] = {
        "LambdaMART": scale.tree_learner(LambdaMART, scale.learning_rate, objective=_OBJECTIVE),
        "McRank": scale.tree_learner(McRank, scale.learning_rate / 2),
        "LambdaRank": algorithm("lambdarank")(
            objective=_OBJECTIVE, measure=NDCG(10), random_state=scale.random_state, n_jobs=scale.n_jobs, **net
        ),
    }
    systems: dict[str, Ranker] = {}
    for name, learner in learners.items():
        systems[name] = learner.fit(data["train"], valid=data["vali"]).ranker_
        run.say(f"{name}: NDCG@10 {NDCG(10).mean(systems[name].predict(data['test']), data['test']):.4f} on test data")
    evaluation = evaluate(data["test"], systems, _MEASURES)
    comparison = compare(evaluation, correction=None)
    notes = tuple(
        f"{row.system} against LambdaMART: {row.measure} {row.test.difference:+.4f}, p {_p(row.test.p)}."
        for row in comparison.rows
        if row.measure == NDCG(10)
    )
    return Outcome((evaluation.table(),), notes)


def figure_2(scale: RateScale, data: Splits, run: Run) -> Outcome:
    """NDCG@10 on test data against the number of trees, of LambdaMART and of McRank (one tree per grade and step)."""
    sets = {"vali": data["vali"], "test": data["test"]}
    grades = len(np.unique(data["train"].label()))
    curves = {}
    for name, learner in (
        ("LambdaMART", scale.tree_learner(LambdaMART, scale.learning_rate, objective=_OBJECTIVE)),
        ("McRank", scale.tree_learner(McRank, scale.learning_rate, n_estimators=max(1, scale.n_estimators // grades))),
    ):
        learner.fit(data["train"], valid=sets)
        curves[name] = learner.record_.curves["test"]["NDCG@10"]
        run.say(f"{name}: NDCG@10 {curves[name][-1]:.4f} on test data at the end")
    counts = [count for count in _checkpoints(scale.n_estimators) if count >= grades]
    rows = tuple((count, curves["LambdaMART"][count - 1], curves["McRank"][count // grades - 1]) for count in counts)
    columns = (Column("trees", "count"), Column("LambdaMART", "number"), Column("McRank", "number"))
    reached = next((n for n, value in enumerate(curves["LambdaMART"], 1) if value >= max(curves["McRank"])), None)
    best = int(np.argmax(curves["McRank"])) + 1
    note = f"McRank's best, {max(curves['McRank']):.4f}, takes {best * grades} trees; LambdaMART reaches it " + (
        "not at all." if reached is None else f"with {reached}."
    )
    return Outcome((Table(columns, rows, "NDCG@10 on test data"),), (note,))


def figure_3(scale: StepScale, data: Splits, run: Run) -> Outcome:
    """NDCG@10 on training and test data after each tree, with Newton's and with exact optimal steps.

    The step size (shrinkage) of each rule is the one with the best NDCG@10 on validation data.
    """
    sets = {"vali": data["vali"], "test": data["test"]}
    chosen: dict[str, tuple[float, LambdaMART]] = {}
    for step in _STEPS:
        for learning_rate in scale.learning_rates:
            learner = scale.tree_learner(LambdaMART, learning_rate, objective=_OBJECTIVE, step=step, train_measure=True)
            learner.fit(data["train"], valid=sets)
            value = max(learner.record_.curves["vali"]["NDCG@10"])
            run.say(
                f"{step}, rate {learning_rate:g}: NDCG@10 {value:.4f} on validation data, "
                f"{learner.record_.seconds:.1f} s"
            )
            if step not in chosen or value > max(chosen[step][1].record_.curves["vali"]["NDCG@10"]):
                chosen[step] = learning_rate, learner
    counts = _checkpoints(scale.n_estimators)
    rules = [Column(f"{step}, rate {learning_rate:g}", "number") for step, (learning_rate, _) in chosen.items()]
    tables = []
    for name in ("train", "test"):
        curves = [learner.record_.curves[name]["NDCG@10"] for _, learner in chosen.values()]
        rows = tuple((count, *(curve[count - 1] for curve in curves)) for count in counts)
        tables.append(Table((Column("trees", "count"), *rules), rows, f"NDCG@10 on {name} data"))
    notes = [_compared(chosen, data["test"], count) for count in counts if count >= scale.n_estimators // 10]
    return Outcome(tuple(tables), tuple(notes))


def _compared(chosen: Mapping[str, tuple[float, LambdaMART]], test: RankingData, count: int) -> str:
    """Differences from Newton's step on test data with so many trees, in one sentence."""
    systems = {
        step: TreeEnsemble([tree for (tree,) in learner.trees_[:count]], test.feature_names)
        for step, (_, learner) in chosen.items()
    }
    rows = compare(evaluate(test, systems, [NDCG(10)]), correction=None).rows
    parts = [f"{row.system} {row.test.difference:+.4f} (p {_p(row.test.p)})" for row in rows]
    return f"{count} trees, test data, against newton: {', '.join(parts)}."


def _p(value: float) -> str:
    return Column("", "p").show(value)


def _checkpoints(trees: int) -> list[int]:
    return sorted({max(1, round(trees * share)) for share in (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)})


# ---------------------------------------------------------------------- the recipes
_TINY: dict[str, Any] = {
    "queries": 20,
    "docs": 8,
    "features": 4,
    "n_estimators": 12,
    "num_leaves": 4,
    "min_child_samples": 3,
}

TABLE_1 = Recipe(
    table_1,
    PAPER,
    "table 1",
    "LambdaMART, McRank and LambdaRank on artificial data",
    "LambdaMART beats McRank and LambdaRank significantly.",
    small=TableScale(),
    tiny=TableScale(**_TINY, epochs=2),
    full=TableScale(queries=10_000, n_estimators=1000, epochs=100),
)
FIGURE_2 = Recipe(
    figure_2,
    PAPER,
    "figure 2",
    "accuracy against the number of trees",
    "LambdaMART reaches McRank's accuracy with about half as many trees.",
    small=RateScale(),
    tiny=RateScale(**_TINY),
    full=RateScale(queries=10_000, n_estimators=1000, num_leaves=20, learning_rate=0.15),
)
FIGURE_3 = Recipe(
    figure_3,
    PAPER,
    "figure 3",
    "exact optimal steps against Newton's",
    "With the optimal combination training and test accuracy converge significantly faster.",
    small=StepScale(),
    tiny=replace(StepScale(), **_TINY),
    full=StepScale(queries=10_000, n_estimators=510, learning_rates=(0.25, 0.5, 1.0)),
)

"""Wu, Burges, Svore, Gao (2009), Ranking, Boosting, and Model Adaptation: tables 1 and 2, figures 2 and 3.

The artificial data is made as the paper says (labels from random cubic polynomials, no noise); its own is not public.
In the place of its web data stands artificial data whose judges err, or data that is given. Queries whose documents
all carry one label count as they do elsewhere in gradrank (0 if nothing is relevant). Tables 3 to 5, on adaptation, are
in :mod:`gradrank.experiments.wu_adaptation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gradrank.evaluation.evaluate import evaluate
from gradrank.evaluation.tables import Column, Table
from gradrank.experiments import pins
from gradrank.experiments.claims import Claim, alike, higher, number
from gradrank.experiments.recipe import Recipe, Run
from gradrank.experiments.result import Outcome
from gradrank.experiments.settings import Scale, Splits, setting
from gradrank.experiments.trainings import Training, chosen_value, trained
from gradrank.measures import NDCG
from gradrank.models.ranker import Ranker
from gradrank.models.trees.ensemble import TreeEnsemble

PAPER = "Wu, Burges, Svore, Gao (2009)"
_MEASURES = (NDCG(10), NDCG(3), NDCG(1))
_STEPS = ("newton", "optimal", "optimal-leaf", "optimal-gradient")


@dataclass(frozen=True, kw_only=True)
class TreeScale(Scale):
    """Size of the data and of the trees."""

    queries: int = setting(600, "training queries; half as many for validation, as many for test", of_data=True)
    objective: str = setting("Lambda(NDCG)", "λ's of the trees and of the net")
    n_estimators: int = setting(500, "steps of boosting; McRank grows one tree per grade in each")
    num_leaves: tuple[int, ...] = setting((10,), "leaves per tree, of which validation data chooses")
    min_child_samples: int = setting(20, "fewest documents per leaf")

    def tree_parameters(self, **own: Any) -> dict[str, Any]:
        """Parameters that all boosted trees have in common, and some of their own."""
        return {
            **pins.TREES, "n_estimators": self.n_estimators, "min_child_samples": self.min_child_samples, **own
        }  # fmt: skip

    def tree_training(self, name: str, learner: str, data: Splits, *, whole: bool = False, **own: Any) -> Training:
        """Trees that are chosen by NDCG@10 on validation data; the test data is watched."""
        given = pins.pinned(learner, self.tree_parameters(**own))
        shared = {"measure": "NDCG@10", "random_state": self.random_state, "n_jobs": self.n_jobs}
        # McRank learns classes; its objective only says which labels.
        objective = {"objective": self.objective if learner == "lambdamart" else "Regression"}
        watched = {"vali": data["vali"], "test": data["test"]}
        return Training(name, learner, {**given, **shared, **objective}, data["train"], watched, whole=whole)


@dataclass(frozen=True, kw_only=True)
class CurveScale(TreeScale):
    """Trees of LambdaMART and McRank with the same shapes and rates."""

    learning_rates: tuple[float, ...] = setting((0.1,), "learning rates, of which validation data chooses")

    def learners(self) -> dict[str, dict[str, Any]]:
        return {"LambdaMART": self.tree_parameters(), "McRank": self.tree_parameters()}


@dataclass(frozen=True, kw_only=True)
class TableScale(CurveScale):
    """Trees and a net."""

    learning_rates: tuple[float, ...] = setting((0.1,), "rates of LambdaMART, of which validation data chooses")
    mcrank_rates: tuple[float, ...] = setting((0.05,), "rates of McRank, of which validation data chooses")
    hidden_layer_sizes: tuple[int, ...] = setting((10,), "hidden nodes of the net, of which validation data chooses")
    net_rates: tuple[float, ...] = setting((0.01, 0.003), "Adam's rates for the net, of which validation data chooses")
    activation: str = setting("tanh", "of the hidden nodes: tanh or relu")
    epochs: int = setting(30, "epochs of LambdaRank's net")

    def net(self, hidden: int, rate: float) -> dict[str, Any]:
        """Parameters of a net."""
        given = pins.net(hidden_layer_sizes=hidden, activation=self.activation, epochs=self.epochs)
        return {**given, "learning_rate": rate}

    def learners(self) -> dict[str, dict[str, Any]]:
        net = self.net(self.hidden_layer_sizes[0], self.net_rates[0])
        del net["learning_rate"], net["hidden_layer_sizes"]
        return {**super().learners(), "LambdaRank": net}


@dataclass(frozen=True, kw_only=True)
class StepScale(TreeScale):
    """Trees with several learning rates."""

    n_estimators: int = setting(120, "steps of boosting")
    learning_rates: tuple[float, ...] = setting(
        (0.1, 0.25, 0.5, 1.0),
        "learning rates, of which validation data chooses one for each step rule; the largest is that of the claims",
    )
    usual_rate: float = setting(0.1, "rate of the Newton steps that are also shown")

    def learners(self) -> dict[str, dict[str, Any]]:
        return {f"LambdaMART, {step}": self.tree_parameters(step=step) for step in _STEPS}


# ---------------------------------------------------------------------- tables 1 and 2
def three_learners(scale: TableScale, data: Splits, run: Run) -> dict[str, Ranker]:
    """LambdaMART, McRank and LambdaRank, each with the settings that are best on validation data."""
    tried: dict[str, list[Training]] = {"LambdaMART": [], "McRank": [], "LambdaRank": []}
    for leaves in scale.num_leaves:
        for name, learner, rates in (
            ("LambdaMART", "lambdamart", scale.learning_rates),
            ("McRank", "mcrank", scale.mcrank_rates),
        ):
            for rate in rates:
                own: dict[str, Any] = {"num_leaves": leaves, "learning_rate": rate}
                tried[name].append(scale.tree_training(f"{name}, {leaves} leaves, rate {rate:g}", learner, data, **own))
    for hidden in scale.hidden_layer_sizes:
        for rate in scale.net_rates:
            given = pins.pinned("lambdarank", scale.net(hidden, rate))
            shared = {"measure": "NDCG@10", "random_state": scale.random_state, "n_jobs": scale.n_jobs}
            name = f"LambdaRank, {hidden} hidden nodes, rate {rate:g}"
            parameters = {**given, **shared, "objective": scale.objective}
            tried["LambdaRank"].append(Training(name, "lambdarank", parameters, data["train"], data["vali"]))
    rankers = iter(trained([training for each in tried.values() for training in each], run))
    found = {name: [next(rankers) for _ in each] for name, each in tried.items()}
    return {name: max(each, key=chosen_value) for name, each in found.items()}


def table_1(scale: TableScale, data: Splits, run: Run) -> Outcome:
    """LambdaMART, McRank and LambdaRank: NDCG@10, @3 and @1 on test data with 95 % intervals."""
    systems = three_learners(scale, data, run)
    evaluation = evaluate(data["test"], systems, _MEASURES)
    values = {name: evaluation.values[name][NDCG(10)] for name in systems}
    claims = (
        higher("NDCG@10", "LambdaMART", "McRank", values["LambdaMART"], values["McRank"]),
        higher("NDCG@10", "LambdaMART", "LambdaRank", values["LambdaMART"], values["LambdaRank"]),
        higher("NDCG@10", "McRank", "LambdaRank", values["McRank"], values["LambdaRank"]),
    )
    return Outcome((evaluation.table(), _chosen(systems)), (), claims)


def table_2(scale: TableScale, data: Splits, run: Run) -> Outcome:
    """The same where judges err: the paper's web data has LambdaMART and McRank level, both above the net."""
    systems = three_learners(scale, data, run)
    evaluation = evaluate(data["test"], systems, _MEASURES)
    values = {name: evaluation.values[name][NDCG(10)] for name in systems}
    claims = (
        alike("NDCG@10", "LambdaMART", "McRank", values["LambdaMART"], values["McRank"], margin=0.01),
        higher("NDCG@10", "LambdaMART", "LambdaRank", values["LambdaMART"], values["LambdaRank"]),
        higher("NDCG@10", "McRank", "LambdaRank", values["McRank"], values["LambdaRank"]),
    )
    return Outcome((evaluation.table(), _chosen(systems)), (), claims)


def _chosen(systems: dict[str, Ranker]) -> Table:
    """What validation data chose."""
    rows = []
    for name, ranker in systems.items():
        given = ranker.training["parameters"]
        size = given.get("num_leaves", given.get("hidden_layer_sizes"))
        rows.append((name, str(size), given["learning_rate"], ranker.training["best"], chosen_value(ranker)))
    columns = (
        Column("system"), Column("leaves or hidden nodes"), Column("rate", "number"), Column("steps", "count"),
        Column("NDCG@10, validation", "number"),
    )  # fmt: skip
    return Table(columns, tuple(rows), "Chosen on validation data")


# ---------------------------------------------------------------------- figure 2
def figure_2(scale: CurveScale, data: Splits, run: Run) -> Outcome:
    """NDCG@10 on test data against the number of trees, of LambdaMART and of McRank (one tree per grade and step)."""
    grades = len(np.unique(data["train"].label()))
    per_step = {"LambdaMART": 1, "McRank": grades}
    trainings = {
        name: [
            scale.tree_training(
                f"{name}, {leaves} leaves, rate {rate:g}", name.lower(), data,
                n_estimators=max(1, scale.n_estimators // trees), num_leaves=leaves, learning_rate=rate,
            )
            for leaves in scale.num_leaves
            for rate in scale.learning_rates
        ]
        for name, trees in per_step.items()
    }  # fmt: skip
    rankers = iter(trained([training for each in trainings.values() for training in each], run))
    found = {name: max((next(rankers) for _ in each), key=chosen_value) for name, each in trainings.items()}
    curves = {name: ranker.training["curves"]["test"]["NDCG@10"] for name, ranker in found.items()}
    counts = [count for count in _checkpoints(scale.n_estimators) if count >= grades]
    rows = tuple((count, curves["LambdaMART"][count - 1], curves["McRank"][count // grades - 1]) for count in counts)
    columns = (Column("trees", "count"), Column("LambdaMART", "number"), Column("McRank", "number"))
    best = int(np.argmax(curves["McRank"])) + 1
    top = max(curves["McRank"])
    reached = next((n for n, value in enumerate(curves["LambdaMART"], 1) if value >= top), None)
    note = f"McRank's best, {top:.4f}, takes {best * grades} trees; LambdaMART reaches it " + (
        "not at all." if reached is None else f"with {reached}."
    )
    # One that never gets there needs more trees than were grown.
    share = (reached or 2 * scale.n_estimators) / (best * grades)
    claim = number(
        "LambdaMART needs at most two thirds of McRank's trees for McRank's best NDCG@10",
        "LambdaMART's trees / McRank's", share, below=2.0 / 3.0,
    )  # fmt: skip
    return Outcome((Table(columns, rows, "NDCG@10 on test data"), _chosen(found)), (note,), (claim,))


# ---------------------------------------------------------------------- figure 3
def figure_3(scale: StepScale, data: Splits, run: Run) -> Outcome:
    """NDCG@10 on training and test data after each tree, with Newton's and with exact optimal steps.

    Shown are each rule at the step size (shrinkage) with the best NDCG@10 on validation data, and without shrinkage,
    which the paper says this data does not need.
    """
    tried = [
        (step, rate, scale.tree_training(
            f"{step}, rate {rate:g}", "lambdamart", data, whole=True, step=step, learning_rate=rate,
            num_leaves=scale.num_leaves[0], train_measure=True,
        ))
        for step in _STEPS
        for rate in scale.learning_rates
    ]  # fmt: skip
    rankers = trained([training for _, _, training in tried], run)
    by_rule = {(step, rate): ranker for (step, rate, _), ranker in zip(tried, rankers, strict=True)}
    chosen: dict[str, tuple[float, Ranker]] = {
        step: max(
            ((rate, by_rule[step, rate]) for rate in scale.learning_rates), key=lambda item: chosen_value(item[1])
        )
        for step in _STEPS
    }
    shown = {f"{step}, rate {rate:g}": ranker for step, (rate, ranker) in chosen.items()}
    # Beside each rule at its best rate stand those without shrinkage, as the paper has both.
    full = max(scale.learning_rates)
    for step, rate in (*((step, full) for step in _STEPS), ("newton", scale.usual_rate)):
        if (step, rate) in by_rule:
            shown.setdefault(f"{step}, rate {rate:g}", by_rule[step, rate])
    counts = _checkpoints(scale.n_estimators)
    tables = []
    for name in ("train", "test"):
        curves = [ranker.training["curves"][name]["NDCG@10"] for ranker in shown.values()]
        rows = tuple((count, *(curve[count - 1] for curve in curves)) for count in counts)
        columns = (Column("trees", "count"), *(Column(system, "number") for system in shown))
        tables.append(Table(columns, rows, f"NDCG@10 on {name} data"))
    claims = _faster({step: by_rule[step, full] for step in _STEPS}, data, counts)
    return Outcome(tuple(tables), (), tuple(claims))


def _faster(full: dict[str, Ranker], data: Splits, counts: Sequence[int]) -> list[Claim]:
    """One exact weight per tree against Newton's steps, both without shrinkage, early and at the end.

    The paper's baseline is the full Newton step; that Newton's step with another rate is slower or faster, or that one
    weight per leaf is, is not what it says. Whether the tree's leaves hold mean λ's or Newton's steps is left to
    validation data.
    """
    exact = max((full[step] for step in ("optimal", "optimal-gradient")), key=chosen_value)
    claims = []
    for name in ("train", "test"):
        for count in (counts[len(counts) // 2 - 1], counts[-1]):
            values = [
                NDCG(10).values(_first_trees(ranker, count).predict(data[name]), data[name])
                for ranker in (exact, full["newton"])
            ]
            measure = f"NDCG@10 on {name} data with {count} trees"
            claims.append(higher(measure, "one exact weight per tree", "Newton's full step", *values))
    return claims


def _first_trees(ranker: Ranker, count: int) -> TreeEnsemble:
    assert isinstance(ranker, TreeEnsemble)
    return TreeEnsemble(ranker.trees[:count], ranker.feature_names, base_score=ranker.base_score)


def _checkpoints(trees: int) -> list[int]:
    return sorted({max(1, round(trees * share)) for share in (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)})


# ---------------------------------------------------------------------- the recipes
_TINY: dict[str, Any] = {
    "queries": 20, "docs": 8, "features": 4, "n_estimators": 12, "num_leaves": (4,), "min_child_samples": 3,
}  # fmt: skip

TABLE_1 = Recipe(
    table_1,
    PAPER,
    "table 1",
    "LambdaMART, McRank and LambdaRank on artificial data",
    "LambdaMART beats McRank, and McRank LambdaRank, significantly.",
    small=TableScale(),
    tiny=TableScale(**_TINY, epochs=2),
    full=TableScale(queries=10_000, n_estimators=1000, epochs=100),
    side_by_side=True,
)
TABLE_2 = Recipe(
    table_2,
    PAPER,
    "table 2",
    "LambdaMART, McRank and LambdaRank where judges err",
    "LambdaMART and McRank are level, and both beat LambdaRank.",
    small=TableScale(noise=0.5),
    tiny=TableScale(**_TINY, noise=0.5, epochs=2),
    full=TableScale(queries=10_000, noise=0.5, features=300, n_estimators=1000, num_leaves=(15,), epochs=100),
    side_by_side=True,
)
FIGURE_2 = Recipe(
    figure_2,
    PAPER,
    "figure 2",
    "accuracy against the number of trees",
    "LambdaMART reaches McRank's accuracy with about half as many trees.",
    small=CurveScale(),
    tiny=CurveScale(**_TINY),
    full=CurveScale(queries=10_000, n_estimators=1000, num_leaves=(20,), learning_rates=(0.15,)),
    side_by_side=True,
)
FIGURE_3 = Recipe(
    figure_3,
    PAPER,
    "figure 3",
    "exact optimal steps against Newton's",
    "With the optimal combination training and test accuracy converge significantly faster.",
    small=StepScale(),
    tiny=replace(StepScale(), **_TINY),
    full=StepScale(queries=10_000, n_estimators=510),
    side_by_side=True,
)

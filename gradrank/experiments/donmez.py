"""Donmez, Svore, Burges (2009), On the Local Optimality of LambdaRank: tables 1 to 4, figure 5.

The paper's web data is not public. The recipes run on artificial data (:mod:`gradrank.data.artificial`), or on data
that is given: splits ``train``, ``vali`` and ``test``. The learner is the paper's two-layer net (``lambdarank``) unless
the scale names another one. Figures 1 to 4 and 6, on local optimality, are in
:mod:`gradrank.experiments.donmez_optimality`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gradrank.errors import TrainingError
from gradrank.evaluation.tables import Column, Table
from gradrank.experiments import pins
from gradrank.experiments.constructions import REFERENCE, ConstructionStudy, study_constructions
from gradrank.experiments.recipe import Recipe, Run, Say
from gradrank.experiments.result import Outcome
from gradrank.experiments.settings import Scale, Splits, number_or_text, setting
from gradrank.experiments.train_test_measures import (
    PAPER_OBJECTIVES,
    MeasureStudy,
    pairs_table,
    study_measures,
    study_pairs,
)
from gradrank.objectives import CONSTRUCTIONS

PAPER = "Donmez, Svore, Burges (2009)"
_TREES: dict[str, Any] = {
    **pins.TREES,
    "n_estimators": 300,
    "num_leaves": 10,
    "learning_rate": 0.1,
    "min_child_samples": 20,
}


@dataclass(frozen=True, kw_only=True)
class LearnerScale(Scale):
    """Size of the data, and the learner."""

    queries: int = setting(800, "training queries; half as many for validation, as many for test", of_data=True)
    noise: float = setting(0.3, "error of the judges, in deviations of the true relevance", of_data=True)
    algorithm: str = setting("lambdarank", "learner: lambdarank, the paper's net, or lambdamart")
    hidden_layer_sizes: int = setting(10, "hidden nodes of the net")
    activation: str = setting("tanh", "of the net's hidden nodes: tanh or relu")
    optimizer: str = setting("adam", "of the net: adam, or donmez, the paper's schedule")
    epochs: int = setting(40, "epochs of the net")
    parameters: tuple[str, ...] = setting((), "further parameters of the learner, each as batch_size=64")

    def learners(self) -> dict[str, dict[str, Any]]:
        own = dict(_parameter(pair) for pair in self.parameters)
        net = pins.net(
            hidden_layer_sizes=self.hidden_layer_sizes,
            activation=self.activation,
            epochs=self.epochs,
            optimizer=self.optimizer,
        )
        families = {"lambdarank": net, "lambdamart": self._trees()}
        if self.algorithm not in families:
            raise TrainingError(f"algorithm is {self.algorithm!r}, expected {' or '.join(families)}")
        return {self.algorithm: {**families[self.algorithm], **own}}

    def _trees(self) -> dict[str, Any]:
        return _TREES

    def options(self) -> dict[str, Any]:
        """What all studies take."""
        return {
            "algorithm": self.algorithm,
            "parameters": pins.pinned(self.algorithm, self.learners()[self.algorithm]),
            "random_state": self.random_state,
            "n_jobs": self.n_jobs,
        }


@dataclass(frozen=True, kw_only=True)
class ConstructionScale(LearnerScale):
    """A learner, and λ constructions for it."""

    constructions: tuple[str, ...] = setting(
        tuple(CONSTRUCTIONS), f"λ constructions to compare with {REFERENCE}; options as local-cost(reach=2)"
    )

    def _trees(self) -> dict[str, Any]:
        # Not every construction has a second derivative.
        return {**_TREES, "step": "gradient"}


@dataclass(frozen=True, kw_only=True)
class PairScale(LearnerScale):
    """A learner, and parts of the training data for it."""

    shares: tuple[float, ...] = setting((0.05, 0.1, 0.25, 0.5, 1.0), "shares of the training queries")


def constructions_by_map(scale: ConstructionScale, data: Splits, run: Run) -> Outcome:
    """λ constructions of MAP by validation accuracy."""
    return _constructions("MAP(rel=2)", scale, data, run)


def constructions_by_mrr(scale: ConstructionScale, data: Splits, run: Run) -> Outcome:
    """λ constructions of MRR by validation accuracy."""
    return _constructions("MRR(rel=2)", scale, data, run)


def training_measures(scale: LearnerScale, data: Splits, run: Run) -> Outcome:
    """Training measure × test measure."""
    study = study_measures(
        data["train"], data["vali"], data["test"], PAPER_OBJECTIVES, said=_said(run.say), **scale.options()
    )
    return Outcome((study.table(),), tuple(_matching(study)))


def effective_pairs(scale: PairScale, data: Splits, run: Run) -> Outcome:
    """MRR against the number of effective pairs, by training measure."""
    train = data["train"]
    sizes = sorted({max(1, round(share * train.n_queries)) for share in scale.shares})
    studies = study_pairs(train, data["vali"], data["test"], sizes, said=_said(run.say), **scale.options())
    points = pairs_table(studies, "MRR(rel=2)")
    return Outcome((points, *_curves(points)))


# ---------------------------------------------------------------------- parts
def _constructions(measure: str, scale: ConstructionScale, data: Splits, run: Run) -> Outcome:
    study = study_constructions(
        data["train"], data["vali"], measure, constructions=scale.constructions, said=_said(run.say), **scale.options()
    )
    return Outcome((study.table(),), (_winner(study),))


def _winner(study: ConstructionStudy) -> str:
    rows = study.comparison.rows if study.comparison else ()
    better = [row.system for row in rows if row.verdict == "better"]
    worse = [row.system for row in rows if row.verdict == "worse"]
    return (
        f"Against {REFERENCE}, by {study.measure} with Holm's correction: significantly better "
        f"{', '.join(better) or 'none'}; significantly worse {', '.join(worse) or 'none'}."
    )


def _matching(study: MeasureStudy) -> list[str]:
    notes = []
    for measure, comparison in study.comparisons.items():
        better = [row.system for row in comparison.rows if row.verdict == "better"]
        worse = [row.system for row in comparison.rows if row.verdict == "worse"]
        notes.append(
            f"{measure}: against training on it, significantly better {', '.join(better) or 'none'}, "
            f"significantly worse {', '.join(worse) or 'none'}."
        )
    return notes


def _curves(points: Table) -> list[Table]:
    """For each training measure the test accuracy over the logarithm of effective pairs, as the paper plots it."""
    columns = (Column("log10 of effective pairs", "number"), Column("MRR(rel=2)", "number"))
    return [
        Table(
            columns,
            tuple((math.log10(max(row[2], 1)), row[3]) for row in points.rows if row[0] == name),
            f"trained for {name}",
        )
        for name in dict.fromkeys(row[0] for row in points.rows)
    ]


def _parameter(pair: str) -> tuple[str, int | float | str]:
    name, equals, text = pair.partition("=")
    if not (name and equals and text):
        raise TrainingError(f"parameters has {pair!r}, expected KEY=VALUE")
    return name, number_or_text(text)


def _said(say: Say) -> Callable[[str, float], None]:
    return lambda name, value: say(f"{name}: {value:.4f} on validation data")


# ---------------------------------------------------------------------- the recipes
_TINY: dict[str, Any] = {"queries": 30, "docs": 10, "features": 5, "hidden_layer_sizes": 3, "epochs": 2}
# The learner of the paper; its web data has 158.7 documents per query and 420 features.
_PAPER: dict[str, Any] = {"docs": 159, "features": 420, "optimizer": "donmez", "epochs": 700}

TABLE_1 = Recipe(
    constructions_by_map,
    PAPER,
    "table 1",
    "λ constructions by MAP on validation data",
    "RankNetWeightPairs has the highest MAP, significantly.",
    small=ConstructionScale(),
    tiny=ConstructionScale(**_TINY, constructions=("spring-smooth", "local-cost")),
    full=ConstructionScale(**_PAPER, queries=5_000),
)
TABLE_2 = Recipe(
    constructions_by_mrr,
    PAPER,
    "table 2",
    "λ constructions by MRR on validation data",
    "RankNetWeightPairs has the highest MRR, significantly.",
    small=ConstructionScale(),
    tiny=ConstructionScale(**_TINY, constructions=("spring-smooth", "local-cost")),
    full=ConstructionScale(**_PAPER, queries=5_000),
)
TABLE_3 = Recipe(
    training_measures,
    PAPER,
    "table 3",
    "training measure × test measure",
    "Training on the test measure is best for NDCG and MAP; for NDCG@10 and MRR training on NDCG is better.",
    small=LearnerScale(),
    tiny=LearnerScale(**_TINY),
    full=LearnerScale(**_PAPER, queries=10_000),
)
# The paper's second web data has 2.2 times the training queries of the first.
TABLE_4 = Recipe(
    training_measures,
    PAPER,
    "table 4",
    "training measure × test measure, with 2.2 times the training queries",
    "With more training data MRR and NDCG@10 lose less to training on NDCG than in table 3.",
    small=LearnerScale(queries=1_760),
    tiny=LearnerScale(**{**_TINY, "queries": 66}),
    full=LearnerScale(**_PAPER, queries=22_000),
)
FIGURE_5 = Recipe(
    effective_pairs,
    PAPER,
    "figure 5",
    "MRR against the number of effective pairs",
    "For equally many effective pairs training on MRR gives the highest MRR, significantly.",
    small=PairScale(),
    tiny=PairScale(**_TINY, shares=(0.5, 1.0)),
)

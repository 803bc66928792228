"""Donmez, Svore, Burges (2009), On the Local Optimality of LambdaRank: tables 1 to 4, figure 5.

The paper's web data is not public. In its place stands artificial data (:mod:`gradrank.data.artificial`) with as many
documents per query, 159, since these decide which share of the pairs NDCG@10 and MRR learn from, and with judges who
err so much that a net has about the paper's mean NDCG, 0.72. Figure 5 is of artificial data without errors, as in the
paper. Data can be given as well: splits ``train``, ``vali`` and ``test``. The learner is the paper's two-layer net
(``lambdarank``) unless the scale names another one. Figures 1 to 4 and 6, on local optimality, are in
:mod:`gradrank.experiments.donmez_optimality`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.evaluation.tables import Column, Table
from gradrank.experiments import pins
from gradrank.experiments.claims import Claim, higher
from gradrank.experiments.constructions import REFERENCE, compared, construction_learners
from gradrank.experiments.recipe import Recipe, Run
from gradrank.experiments.result import Outcome
from gradrank.experiments.settings import Scale, Splits, number_or_text, setting
from gradrank.experiments.train_test_measures import PAPER_OBJECTIVES, MeasureStudy, with_tests
from gradrank.experiments.training import best_of, learner_for, single_measure
from gradrank.models.ranker import Ranker
from gradrank.objectives import CONSTRUCTIONS, Objective, parse_objective

PAPER = "Donmez, Svore, Burges (2009)"
NAMED = ("spring-smooth", "local-gradient", "local-cost", "discrete-bounded")
"""Constructions that stand in the paper's tables beside the winner. Of the others it gives neither names nor numbers:
those of gradrank are compared as well, but nothing is claimed of them."""
_MRR = "MRR(rel=2)"
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

    queries: int = setting(1500, "training queries; half as many for validation, as many for test", of_data=True)
    docs: int = setting(159, "documents per query", of_data=True)
    noise: float = setting(1.0, "error of the judges, in deviations of the true relevance", of_data=True)
    algorithm: str = setting("lambdarank", "learner: lambdarank, the paper's net, or lambdamart")
    hidden_layer_sizes: int = setting(10, "hidden nodes of the net")
    activation: str = setting("tanh", "of the net's hidden nodes: tanh or relu")
    optimizer: str = setting("adam", "of the net: adam, or donmez, the paper's schedule")
    epochs: int = setting(40, "epochs of the net")
    learning_rates: tuple[float, ...] = setting(
        (0.01, 0.003), "learning rates, of which validation data chooses for each training; unused with donmez"
    )
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

    def candidates(self) -> list[dict[str, Any]]:
        """Parameters of the learner, once for each learning rate; the paper's schedule has rates of its own."""
        given = pins.pinned(self.algorithm, self.learners()[self.algorithm])
        if self.algorithm != "lambdarank" or self.optimizer != "adam":
            return [given]
        return [{**given, "learning_rate": rate} for rate in self.learning_rates]


@dataclass(frozen=True, kw_only=True)
class ConstructionScale(LearnerScale):
    """A learner, and λ constructions for it."""

    queries: int = setting(1000, "training queries; half as many for validation, as many for test", of_data=True)
    constructions: tuple[str, ...] = setting(
        tuple(CONSTRUCTIONS), f"λ constructions to compare with {REFERENCE}; options as local-cost(reach=2)"
    )

    def _trees(self) -> dict[str, Any]:
        # Not every construction has a second derivative.
        return {**_TREES, "step": "gradient"}


@dataclass(frozen=True, kw_only=True)
class MoreScale(LearnerScale):
    """A learner, and a part of the training data for it."""

    queries: int = setting(2200, "training queries; half as many for validation, as many for test", of_data=True)
    share: float = setting(1 / 2.2, "share of the training queries that is compared with all of them")


@dataclass(frozen=True, kw_only=True)
class PairScale(LearnerScale):
    """A learner, and parts of the training data for it; the paper draws this figure of artificial data."""

    queries: int = setting(800, "training queries; half as many for validation, as many for test", of_data=True)
    docs: int = setting(50, "documents per query", of_data=True)
    noise: float = setting(0.0, "error of the judges, in deviations of the true relevance", of_data=True)
    shares: tuple[float, ...] = setting(
        (0.1, 0.25, 0.5, 1.0),
        "shares of the training queries for MRR; the others get as many queries as have its pairs",
    )


def constructions_by_map(scale: ConstructionScale, data: Splits, run: Run) -> Outcome:
    """λ constructions of MAP by validation accuracy."""
    return _constructions("MAP(rel=2)", scale, data, run)


def constructions_by_mrr(scale: ConstructionScale, data: Splits, run: Run) -> Outcome:
    """λ constructions of MRR by validation accuracy."""
    return _constructions(_MRR, scale, data, run)


def training_measures(scale: LearnerScale, data: Splits, run: Run) -> Outcome:
    """Training measure × test measure."""
    study = _study(scale, data["train"], data, run)
    coarser = tuple(
        higher(measure, "training for NDCG", f"for {measure}", _value(study, "NDCG", measure),
               _value(study, measure, measure))
        for measure in ("NDCG@10", _MRR)
    )  # fmt: skip
    claims = (*_matching_claims(study, ("NDCG", "MAP(rel=2)")), *coarser)
    return Outcome((study.table(),), tuple(_matching(study)), claims)


def more_training_data(scale: MoreScale, data: Splits, run: Run) -> Outcome:
    """Training measure × test measure, on all training queries and on part of them."""
    train = data["train"]
    part = train.take_queries(np.arange(max(2, round(scale.share * train.n_queries))))
    fewer, more = (_study(scale, queries, data, run) for queries in (part, train))
    claims = []
    for measure in ("NDCG@10", _MRR):
        losses = [_value(study, measure, measure) - _value(study, "NDCG", measure) for study in (fewer, more)]
        claims.append(
            higher(
                f"{measure} over training for NDCG",
                "training for it on all queries",
                "on part of them",
                losses[1],
                losses[0],
            )
        )
    return Outcome((more.table(), fewer.table()), tuple(_matching(more)), tuple(claims))


def effective_pairs(scale: PairScale, data: Splits, run: Run) -> Outcome:
    """MRR against the number of effective pairs in an epoch, by training measure.

    Reciprocal rank learns from few pairs of a query. The others get as few queries as have the same number of pairs,
    so that the curves lie above each other.
    """
    train = data["train"]
    own = [_point(scale, _MRR, size, data, run) for size in _sizes(scale.shares, train.n_queries)]
    others = {
        measure: [
            _point(scale, measure, queries_with_pairs(parse_objective(objective), train, point.pairs), data, run)
            for point in own
        ]
        for measure, objective in PAPER_OBJECTIVES.items()
        if measure != _MRR
    }
    points = _points_table({_MRR: own, **others})
    return Outcome((points, *_curves(points)), (), tuple(_equal_pairs(own, others)))


# ---------------------------------------------------------------------- parts
def _constructions(measure: str, scale: ConstructionScale, data: Splits, run: Run) -> Outcome:
    target = single_measure(measure)
    by_rate = [
        construction_learners(target, scale.constructions, scale.algorithm, given, scale.random_state, scale.n_jobs)
        for given in scale.candidates()
    ]
    candidates = {name: [learners[name] for learners in by_rate] for name in by_rate[0]}
    rankers = best_of(candidates, scale.algorithm, data["train"], data["vali"], run)
    study = compared(target, scale.algorithm, rankers, data["vali"], scale.n_jobs)
    values = {name: study.evaluation.values[name][target] for name in rankers}
    claims = tuple(
        higher(measure, REFERENCE, name, values[REFERENCE], values[name])
        for name in rankers
        if name.partition("(")[0] in NAMED
    )
    return Outcome((study.table(),), (), claims)


def _study(scale: LearnerScale, train: RankingData, data: Splits, run: Run) -> MeasureStudy:
    objectives = {name: parse_objective(item) for name, item in PAPER_OBJECTIVES.items()}
    rankers = _rankers(scale, objectives, train, data, run)
    scores = {
        name: {"train": ranker.predict(train), "test": ranker.predict(data["test"])} for name, ranker in rankers.items()
    }
    return with_tests(scale.algorithm, objectives, scores, train, data["test"], scale.random_state, scale.n_jobs)


def _rankers(
    scale: LearnerScale, objectives: Mapping[str, Objective], train: RankingData, data: Splits, run: Run
) -> dict[str, Ranker]:
    """The ranker of each measure, with the learning rate that its own measure chooses on validation data."""
    candidates = {
        name: [
            learner_for(scale.algorithm, objective, single_measure(name), given, scale.random_state, scale.n_jobs)
            for given in scale.candidates()
        ]
        for name, objective in objectives.items()
    }
    return best_of(candidates, scale.algorithm, train, data["vali"], run)


def _value(study: MeasureStudy, system: str, measure: str) -> NDArray[np.float64]:
    return study.evaluation.values[system][single_measure(measure)]


def _matching_claims(study: MeasureStudy, measures: Sequence[str]) -> tuple[Claim, ...]:
    """Training for a measure is better by it than training for any other."""
    return tuple(
        higher(
            measure,
            f"training for {measure}",
            f"for {other}",
            _value(study, measure, measure),
            _value(study, other, measure),
        )
        for measure in measures
        for other in study.evaluation.systems
        if other != measure
    )


class _Point(NamedTuple):
    """A training of figure 5."""

    queries: int
    pairs: int
    """Effective pairs in an epoch, mean of all; of trees, those at the scores of the last."""
    values: NDArray[np.float64]
    """MRR of each test query."""


def _point(scale: PairScale, measure: str, queries: int, data: Splits, run: Run) -> _Point:
    """A training for a measure with the first so many training queries."""
    train = data["train"].take_queries(np.arange(queries))
    objective = parse_objective(PAPER_OBJECTIVES[measure])
    ranker = _rankers(scale, {measure: objective}, train, data, run)[measure]
    counted = next(iter(ranker.training.get("effective_pairs", {}).values()), None)
    if counted is None:
        bound = objective.bind(train, random_state=scale.random_state, n_jobs=scale.n_jobs)
        counted = [bound.gradients(ranker.predict(train), count_pairs=True).effective_pairs]
    found = single_measure(_MRR).values(ranker.predict(data["test"]), data["test"], n_jobs=scale.n_jobs)
    return _Point(queries, round(float(np.mean(counted))), found)


def queries_with_pairs(objective: Objective, train: RankingData, pairs: int) -> int:
    """The fewest training queries, two at least, that have so many effective pairs in a random order.

    >>> from gradrank.data.artificial import make_data
    >>> data = make_data(20, n_docs=10, n_features=5, random_state=1)
    >>> queries_with_pairs(parse_objective("Lambda(NDCG)"), data, 1), queries_with_pairs(
    ...     parse_objective("Lambda(NDCG)"), data, 10**9)
    (2, 20)
    """
    scores = np.random.default_rng(0).random(train.n_docs)

    def enough(count: int) -> bool:
        bound = objective.bind(train.take_queries(np.arange(count)), n_jobs=1)
        return bound.gradients(scores[: int(train.indptr[count])], count_pairs=True).effective_pairs >= pairs

    least, most = min(2, train.n_queries), train.n_queries
    while least < most:
        middle = (least + most) // 2
        least, most = (least, middle) if enough(middle) else (middle + 1, most)
    return least


def _sizes(shares: Sequence[float], queries: int) -> list[int]:
    return sorted({max(1, round(share * queries)) for share in shares})


def _points_table(points: Mapping[str, Sequence[_Point]]) -> Table:
    rows = [
        (name, point.queries, point.pairs, *_summary(point.values)) for name, found in points.items() for point in found
    ]
    columns = (
        Column("train"), Column("queries", "count"), Column("effective pairs", "count"), Column(_MRR, "number"),
        Column("standard error", "number"),
    )  # fmt: skip
    return Table(columns, tuple(sorted(rows, key=lambda row: row[:2])), f"{_MRR} on the test data")


def _summary(values: NDArray[np.float64]) -> tuple[float, float]:
    there = values[~np.isnan(values)]
    return float(there.mean()), float(there.std(ddof=1) / math.sqrt(len(there)))


def _equal_pairs(own: Sequence[_Point], others: Mapping[str, Sequence[_Point]]) -> list[Claim]:
    """Training for MRR on all queries against each other measure with at least as many effective pairs."""
    most = max(own, key=lambda point: point.queries)
    claims = []
    for other, points in others.items():
        # The other measure has at least as many pairs: what MRR wins is not for having more to learn from.
        at_least = [point for point in points if point.pairs >= most.pairs]
        if not at_least:
            continue
        nearest = min(at_least, key=lambda point: point.pairs)
        claims.append(
            higher(_MRR, "training for MRR", f"for {other} with as many effective pairs", most.values, nearest.values)
        )
    return claims


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
    columns = (Column("log10 of effective pairs", "number"), Column(_MRR, "number"))
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


# ---------------------------------------------------------------------- the recipes
_TINY: dict[str, Any] = {"queries": 30, "docs": 10, "features": 5, "hidden_layer_sizes": 3, "epochs": 2}
# The learner of the paper; its web data has 158.7 documents per query and 420 features.
_PAPER: dict[str, Any] = {"features": 420, "optimizer": "donmez", "epochs": 700}

TABLE_1 = Recipe(
    constructions_by_map,
    PAPER,
    "table 1",
    "λ constructions by MAP on validation data",
    "RankNetWeightPairs has a higher MAP than the other four of the table, significantly.",
    small=ConstructionScale(),
    tiny=ConstructionScale(**_TINY, constructions=("spring-smooth", "local-cost")),
    full=ConstructionScale(**_PAPER, queries=5_000),
    side_by_side=True,
)
TABLE_2 = Recipe(
    constructions_by_mrr,
    PAPER,
    "table 2",
    "λ constructions by MRR on validation data",
    "RankNetWeightPairs has a higher MRR than the other four of the table, significantly.",
    small=ConstructionScale(),
    tiny=ConstructionScale(**_TINY, constructions=("spring-smooth", "local-cost")),
    full=ConstructionScale(**_PAPER, queries=5_000),
    side_by_side=True,
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
    side_by_side=True,
)
# The paper's second web data has 2.2 times the training queries of the first.
TABLE_4 = Recipe(
    more_training_data,
    PAPER,
    "table 4",
    "training measure × test measure, with 2.2 times the training queries",
    "With more training data MRR and NDCG@10 lose less to training on NDCG than in table 3.",
    small=MoreScale(),
    tiny=MoreScale(**{**_TINY, "queries": 66}),
    full=MoreScale(**_PAPER, queries=22_000),
    side_by_side=True,
)
FIGURE_5 = Recipe(
    effective_pairs,
    PAPER,
    "figure 5",
    "MRR against the number of effective pairs",
    "For equally many effective pairs training on MRR gives the highest MRR, significantly.",
    small=PairScale(),
    tiny=PairScale(**_TINY, shares=(0.5, 1.0)),
    side_by_side=True,
)

"""Svore, Volkovs, Burges (2011), Learning to Rank with Multiple Objective Functions: tables 1, 2, figures 2, 3, 4, 7.

The paper's data (108,000 queries of a search engine with click logs) is not public. The recipes run on artificial data
whose clicks conflict with its grades in a realistic way (:mod:`gradrank.data.artificial`), or on data that is given:
splits ``train``, ``vali`` and ``test`` with the label source ``clicks``. As in the paper the number of trees and all
weights are chosen on validation data by NDCG@3, and differences are tested by a paired t-test over the test queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gradrank.data.artificial import make_splits
from gradrank.data.ranking_data import RankingData
from gradrank.evaluation.compare import ComparisonRow, compare
from gradrank.evaluation.evaluate import Evaluation, evaluate
from gradrank.evaluation.tables import Column, Table
from gradrank.experiments import pins
from gradrank.experiments.recipe import Recipe, Run, Say
from gradrank.experiments.result import Outcome
from gradrank.experiments.settings import Scale, Splits, setting
from gradrank.learners.trees.lambdamart import LambdaMART
from gradrank.measures import CNDCG, NDCG
from gradrank.objectives import Lambda, Objective, Scheduled, Sigmoid, Tiered
from gradrank.selection.sweep import sweep

PAPER = "Svore, Volkovs, Burges (2011)"
_CUTOFFS = tuple(range(1, 11))
_LEVEL = 0.05


@dataclass(frozen=True, kw_only=True)
class TreeScale(Scale):
    """Size of the data and of the trees."""

    queries: int = setting(2000, "training queries; half as many for validation, as many for test", of_data=True)
    docs: int = setting(40, "documents per query", of_data=True)
    noise: float = setting(0.3, "error of the judges, in deviations of the true relevance", of_data=True)
    n_estimators: int = setting(300, "n_estimators")
    num_leaves: int = setting(15, "leaves per tree")
    learning_rates: tuple[float, ...] = setting((0.1, 0.2), "learning rates, of which validation data chooses")
    min_child_samples: int = setting(50, "fewest documents per leaf")

    def artificial_data(self) -> dict[str, RankingData]:
        """Artificial data with clicks."""
        return make_splits(
            self.queries, n_docs=self.docs, n_features=self.features, random_state=self.random_state,
            noise=self.noise, clicks=True, n_jobs=self.n_jobs,
        )  # fmt: skip

    def learners(self) -> dict[str, dict[str, Any]]:
        return {
            "LambdaMART": {
                **pins.TREES,
                "n_estimators": self.n_estimators,
                "num_leaves": self.num_leaves,
                "min_child_samples": self.min_child_samples,
            },
        }

    def learner(self, objective: Objective, learning_rate: float, **options: Any) -> LambdaMART:
        """LambdaMART for an objective, chosen by NDCG@3 on validation data."""
        given = pins.pinned("lambdamart", {**self.learners()["LambdaMART"], "learning_rate": learning_rate, **options})
        return LambdaMART(objective, measure=NDCG(3), random_state=self.random_state, n_jobs=self.n_jobs, **given)


@dataclass(frozen=True, kw_only=True)
class SweepScale(TreeScale):
    """Trees, and weights of the second objective."""

    weights: tuple[float, ...] = setting((0.01, 0.1, 0.2, 0.3, 0.4, 0.5), "weights of λ(C), beside 0")


@dataclass(frozen=True, kw_only=True)
class ScheduleScale(TreeScale):
    """Trees, and schedules of the second objective."""

    queries: int = setting(1500, "training queries; half as many for validation, as many for test", of_data=True)
    learning_rates: tuple[float, ...] = setting((0.3, 0.6), "learning rates, of which validation data chooses")
    starts: tuple[float, ...] = setting((0.1,), "w₀ of the schedules")
    linear: tuple[float, ...] = setting((0.01, 0.001), "η of the linear schedule")
    exponential: tuple[float, ...] = setting((100.0, 500.0), "η of the exponential schedule")


@dataclass(frozen=True, kw_only=True)
class ShareScale(ScheduleScale):
    """Schedules, and shares of the training data."""

    shares: tuple[float, ...] = setting((0.0325, 0.0625, 0.125, 0.25, 0.5, 1.0), "shares of the training queries")


@dataclass
class _Bench:
    """Trains on the data at a scale, and says what came out."""

    scale: TreeScale
    data: Splits
    say: Say

    def train(
        self, objective: Objective, learning_rate: float, data: RankingData | None = None, **options: Any
    ) -> LambdaMART:
        learner = self.scale.learner(objective, learning_rate, **options)
        learner.fit(self.data["train"] if data is None else data, valid=self.data["vali"])
        self.say(f"{objective}, rate {learning_rate:g}: NDCG@3 {best_value(learner):.4f} on validation data")
        return learner

    def best(
        self, objectives: Sequence[Objective], data: RankingData | None = None, **options: Any
    ) -> tuple[LambdaMART, Objective, float]:
        """The learner with the highest NDCG@3 on the validation data, of all objectives and rates."""
        tried = [
            (self.train(objective, learning_rate, data, **options), objective, learning_rate)
            for objective in objectives
            for learning_rate in self.scale.learning_rates
        ]
        return max(tried, key=lambda item: best_value(item[0]))


def best_value(learner: LambdaMART) -> float:
    """NDCG@3 on the validation data at the chosen number of trees."""
    return float(learner.record_.curves["valid"]["NDCG@3"][learner.record_.best - 1])


# ---------------------------------------------------------------------- the objectives
def plain() -> Lambda:
    """λ(L): LambdaRank's gradient over the whole list."""
    return Lambda(NDCG())


def graded(weight: float) -> Tiered:
    """(1 − w)·λ(L) + w·λ(C), eq. 10."""
    return Tiered((Lambda(NDCG()), Lambda(CNDCG())), (1.0 - weight, weight))


def scheduled(kind: Literal["linear", "exponential"], w0: float, eta: float, cutoff: int | None = None) -> Scheduled:
    """(1 − w_m)·λ(L) + w_m·λ(S), eq. 12; with a cut-off λ(S@k), eq. 16."""
    return Scheduled(
        Lambda(NDCG(), normalize="deviation"),
        Lambda(NDCG(cutoff), cost=Sigmoid(), normalize="deviation"),
        kind, w0, eta,
    )  # fmt: skip


def _grid(scale: ScheduleScale, kind: Literal["linear", "exponential"], cutoff: int | None = None) -> list[Objective]:
    etas = scale.linear if kind == "linear" else scale.exponential
    return [scheduled(kind, w0, eta, cutoff) for w0 in scale.starts for eta in etas]


# ---------------------------------------------------------------------- table 1
def table_1(scale: SweepScale, data: Splits, run: Run) -> Outcome:
    """Graded NDCG + CNDCG against NDCG alone, @1 … @10, with Newton steps.

    The weight is chosen on validation data: NDCG@3 not significantly below that of weight 0, then the best CNDCG@3.
    The rate is the one with which weight 0 has the best NDCG@3.
    """
    bench = _Bench(scale, data, run.say)
    _, _, learning_rate = bench.best([graded(0.0)])
    learner = scale.learner(graded(0.2), learning_rate)

    def fit(name: str, member: Any, train: RankingData, valid: RankingData) -> None:
        member.fit(train, valid=valid)
        bench.say(f"{name}: NDCG@3 {best_value(member):.4f} on validation data")

    found = sweep(
        learner, data["train"], data["vali"], scale.weights, measures=[NDCG(3), CNDCG(3)], level=_LEVEL,
        test_data=data["test"], fit=fit,
    )  # fmt: skip
    systems = {"λ(L)": found.rankers[found.choice.baseline], "λ(L) + λ(C)": found.ranker}
    same = found.choice.system == found.choice.baseline
    measures = [kind(cutoff) for kind in (NDCG, CNDCG) for cutoff in _CUTOFFS]
    evaluation = evaluate(data["test"], systems, measures)
    rows = _differences(evaluation)
    notes = [f"Chosen on validation data: {found.choice.sentence()}."]
    if same:
        notes.append("No weight left NDCG@3 unharmed: there is no graded model to compare.")
    else:
        ndcg, cndcg = rows["λ(L) + λ(C)", NDCG(3)], rows["λ(L) + λ(C)", CNDCG(3)]
        raised = cndcg.test.difference > 0 and cndcg.test.p < _LEVEL
        harmed = ndcg.test.difference < 0 and ndcg.test.p < _LEVEL
        notes.append(
            f"On test data CNDCG@3 {_change(cndcg)}, NDCG@3 {_change(ndcg)}: "
            f"CNDCG@3 {'is raised significantly' if raised else 'is not raised significantly'}, "
            f"NDCG@3 is {'significantly lower' if harmed else 'not significantly lower'}."
        )
    tables = (_by_cutoff(evaluation, rows, (NDCG, CNDCG), "Test data"), found.table("valid"), found.table("test"))
    return Outcome(tables, tuple(notes))


# ---------------------------------------------------------------------- table 2
def table_2(scale: ScheduleScale, data: Splits, run: Run) -> Outcome:
    """Newton and gradient steps on λ(L), and λ(L) + λ(S) and λ(L) + λ(S@3) with growing weight; NDCG@1 … @10."""
    bench = _Bench(scale, data, run.say)
    gradient = Lambda(NDCG(), normalize="deviation")
    chosen = {
        "λ(L), Newton": bench.best([plain()], step="newton"),
        "λ(L), gradient": bench.best([gradient], step="gradient"),
    }
    for cutoff, name in ((None, "λ(S)"), (3, "λ(S@3)")):
        for kind in ("exponential", "linear"):
            chosen[f"λ(L) + {name}, {kind}"] = bench.best(_grid(scale, kind, cutoff), step="gradient")
    evaluation = evaluate(
        data["test"],
        {name: learner.ranker_ for name, (learner, _, _) in chosen.items()},
        [NDCG(cutoff) for cutoff in _CUTOFFS],
    )
    newton, gradient_name, *others = chosen
    rows = {**_differences(evaluation, newton), **_differences(evaluation, gradient_name, others)}
    base = rows[gradient_name, NDCG(3)]
    notes = [f"NDCG@3 of the gradient step against Newton's: {_change(base)}."]
    for name in others[:2]:
        row = rows[name, NDCG(3)]
        harmed = row.test.difference < 0 and row.test.p < _LEVEL
        gained = row.test.difference > 0 and row.test.p < _LEVEL
        verdict = (
            "significantly worse" if harmed else "significantly better" if gained else "not significantly different"
        )
        notes.append(f"NDCG@3 of {name} against the gradient step: {_change(row)}, {verdict}.")
    picked = Table(
        (Column("method"), Column("objective"), Column("rate", "number"), Column("trees", "count"),
         Column("NDCG@3, validation", "number")),
        tuple((name, str(objective), learning_rate, learner.record_.best, best_value(learner))
              for name, (learner, objective, learning_rate) in chosen.items()),
        "Chosen on validation data",
    )  # fmt: skip
    title = f"Test data; {gradient_name} is tested against {newton}, the others against {gradient_name}"
    tables = (_by_cutoff(evaluation, rows, (NDCG,), title), picked)
    return Outcome(tables, tuple(notes))


# ---------------------------------------------------------------------- figures 2, 3, 4
def figure_2(scale: TreeScale, data: Splits, run: Run) -> Outcome:
    """Agreement of λ(L) and λ(C) while λ(L) alone is learned: all click pairs, or only those of equal grades."""
    bench = _Bench(scale, data, run.say)
    found = _diagnosed(bench, graded(0.0))
    curves = found["agreement"]["Lambda(CNDCG)"]
    columns = {f"{kind}, {what}": curves[kind][what] for kind in curves for what in curves[kind]}
    late = {kind: float(np.mean(curves[kind]["agree"][1:])) for kind in curves}
    note = (
        f"Mean agreement after the first step: {late['all pairs']:.1%} over all pairs, {late['tied pairs']:.1%} over "
        "pairs of equal grades without zero clicks (the paper: about 70 % and 85 %)."
    )
    table = _curve_table(found["steps"], columns, "Share of the training documents")
    return Outcome((table,), (note,))


def figure_3(scale: TreeScale, data: Splits, run: Run) -> Outcome:
    """From which labels the gradients of highly relevant documents come, and which labels are in the top 3."""
    bench = _Bench(scale, data, run.say)
    found = _diagnosed(bench, plain())
    shares = found["gradient_shares"][str(plain())]
    low = [name for name in shares if name in ("0", "1")]
    part = float(np.mean(np.sum([shares[name] for name in low], axis=0)))
    note = f"Labels 0 and 1 make {part:.1%} of a highly relevant document's gradient on average (the paper: over 70 %)."
    tables = (
        _curve_table(found["steps"], shares, "Shares of the gradient of highly relevant documents, by label"),
        _curve_table(found["steps"], found["top_labels"], "Shares of the top 3, by label"),
    )
    return Outcome(tables, (note,))


def figure_4(scale: TreeScale, data: Splits, run: Run) -> Outcome:
    """Share of ranks that change in a step, in the whole list and in the top 3, beside NDCG@3."""
    bench = _Bench(scale, data, run.say)
    learner = _learner_with_diagnostics(bench, plain())
    found = learner.ranker_.training["diagnostics"]
    valid = learner.record_.curves["valid"]["NDCG@3"]
    changes = found["rank_changes"]
    count = len(changes["all"])
    steps = found["steps"][:count]
    columns = {
        "changed, whole list": changes["all"],
        "changed, top 3": changes["top"],
        "NDCG@3, training sample": found["measures"]["NDCG@3"][:count],
        "NDCG@3, validation": [float("nan") if step == 0 else valid[step - 1] for step in steps],
    }
    late = [number for number, step in enumerate(steps) if step >= 100]
    notes = []
    if late:
        whole, top = (float(np.mean(np.array(changes[name])[late])) for name in ("all", "top"))
        notes.append(
            f"After 100 steps {whole:.1%} of all ranks and {top:.1%} of the top 3 change in a step on average "
            "(the paper: 5 to 15 %, and below 3 %)."
        )
    table = _curve_table(steps, columns, "Changes of rank")
    return Outcome((table,), tuple(notes))


# ---------------------------------------------------------------------- figure 7
def figure_7(scale: ShareScale, data: Splits, run: Run) -> Outcome:
    """NDCG@1, @3 and @10 on the test data when a part of the training queries is used."""
    bench = _Bench(scale, data, run.say)
    train = data["train"]
    drawn = np.random.default_rng(scale.random_state).permutation(train.n_queries)
    measures = [NDCG(1), NDCG(3), NDCG(10)]
    rows: list[tuple[Any, ...]] = []
    lines: dict[NDCG, list[tuple[Any, ...]]] = {measure: [] for measure in measures}
    names: tuple[str, ...] = ()
    for share in scale.shares:
        part = train.take_queries(np.sort(drawn[: max(2, round(share * train.n_queries))]))
        systems = {
            "λ(L), Newton": bench.best([plain()], part, step="newton"),
            "λ(L), gradient": bench.best([Lambda(NDCG(), normalize="deviation")], part, step="gradient"),
            "λ(L) + λ(S), exponential": bench.best(_grid(scale, "exponential"), part, step="gradient"),
            "λ(L) + λ(S), linear": bench.best(_grid(scale, "linear"), part, step="gradient"),
        }
        names = tuple(systems)
        evaluation = evaluate(data["test"], {name: item[0].ranker_ for name, item in systems.items()}, measures)
        against = _differences(evaluation, "λ(L), gradient")
        for name in names:
            row = against.get((name, NDCG(3)))
            rows.append((
                f"{share:.4g}", part.n_queries, name, *(evaluation.summary(name, m).mean for m in measures),
                *((None, None) if row is None else (row.test.difference, row.test.p)),
            ))  # fmt: skip
        for measure in measures:
            lines[measure].append((part.n_queries, *(evaluation.summary(name, measure).mean for name in names)))
    columns = (
        Column("share"), Column("queries", "count"), Column("method"), *(Column(str(m), "number") for m in measures),
        Column("Δ NDCG@3", "signed"), Column("p", "p"),
    )  # fmt: skip
    table = Table(columns, tuple(rows), "Test data; Δ and p against λ(L), gradient")
    heads = (Column("queries", "count"), *(Column(name, "number") for name in names))
    panels = [Table(heads, tuple(points), f"{measure} on test data") for measure, points in lines.items()]
    return Outcome((table, *panels))


# ---------------------------------------------------------------------- parts
def _diagnosed(bench: _Bench, objective: Objective) -> dict[str, Any]:
    found: dict[str, Any] = _learner_with_diagnostics(bench, objective).ranker_.training["diagnostics"]
    return found


def _learner_with_diagnostics(bench: _Bench, objective: Objective) -> LambdaMART:
    every = max(1, bench.scale.n_estimators // 20)
    return bench.train(objective, bench.scale.learning_rates[0], diagnostics=every)


def _curve_table(steps: Sequence[int], curves: Mapping[str, Sequence[float]], title: str) -> Table:
    columns = (Column("step", "count"), *(Column(name, "number") for name in curves))
    rows = tuple((step, *values) for step, *values in zip(steps, *curves.values(), strict=False))
    return Table(columns, rows, title)


def _differences(
    evaluation: Evaluation, baseline: str | None = None, systems: Sequence[str] | None = None
) -> dict[tuple[str, Any], ComparisonRow]:
    """Every system's rows against the baseline, by the paper's uncorrected paired t-test."""
    rows = compare(evaluation, baseline=baseline, level=_LEVEL, correction=None).rows
    return {(row.system, row.measure): row for row in rows if systems is None or row.system in systems}


def _change(row: ComparisonRow) -> str:
    return (
        f"{row.baseline_mean:.4f} → {row.mean:.4f} ({row.test.difference:+.4f}, p {Column('', 'p').show(row.test.p)})"
    )


def _by_cutoff(
    evaluation: Evaluation,
    rows: Mapping[tuple[str, Any], ComparisonRow],
    kinds: Sequence[type[NDCG] | type[CNDCG]],
    title: str,
) -> Table:
    """One row per system and measure, one column per cut-off; the last says where the test finds a difference."""
    lines = []
    for kind in kinds:
        for system in evaluation.systems:
            means = [evaluation.summary(system, kind(cutoff)).mean for cutoff in _CUTOFFS]
            tested = {cutoff: rows[system, kind(cutoff)] for cutoff in _CUTOFFS if (system, kind(cutoff)) in rows}
            lines.append((system, kind.name, *means, _significant(tested)))
    numbers = (Column(f"@{cutoff}", "number") for cutoff in _CUTOFFS)
    columns = (Column("method"), Column("measure"), *numbers, Column(f"significant (p < {_LEVEL:g})"))
    return Table(columns, tuple(lines), title)


def _significant(rows: Mapping[int, ComparisonRow]) -> str:
    """At which cut-offs a system is significantly above or below what it is compared with."""
    found = []
    for word, sign in (("higher", 1), ("lower", -1)):
        there = [f"@{at}" for at, row in rows.items() if row.test.p < _LEVEL and sign * row.test.difference > 0]
        if there:
            found.append(f"{word} {' '.join(there)}")
    return "; ".join(found)


# ---------------------------------------------------------------------- the recipes
_TINY: dict[str, Any] = {
    "queries": 40, "docs": 10, "features": 5,
    "n_estimators": 6, "num_leaves": 5, "min_child_samples": 5, "learning_rates": (0.2,),
}  # fmt: skip
_TINY_SCHEDULE: dict[str, Any] = {**_TINY, "linear": (0.1,), "exponential": (100.0,)}
# Of the paper's three values of the fewest documents per leaf the one in the middle.
_PAPER: dict[str, Any] = {
    "queries": 108_000, "docs": 175, "features": 860,
    "n_estimators": 1000, "num_leaves": 30, "min_child_samples": 8000, "learning_rates": (0.2, 0.5),
}  # fmt: skip
_PAPER_SCHEDULE: dict[str, Any] = {
    **_PAPER, "starts": (0.1, 0.25, 0.5), "linear": (0.1, 0.01, 0.001), "exponential": (100.0, 250.0),
}  # fmt: skip

TABLE_1 = Recipe(
    table_1,
    PAPER,
    "table 1",
    "a graded objective: grades first, clicks second",
    "λ(L) + λ(C) raises CNDCG@3 by about four points and leaves NDCG@3 unharmed.",
    small=SweepScale(),
    tiny=SweepScale(**_TINY, weights=(0.5,)),
    full=SweepScale(**_PAPER),
)
TABLE_2 = Recipe(
    table_2,
    PAPER,
    "table 2",
    "an objective that changes from step to step",
    "λ(L) + λ(S) with a growing weight beats λ(L) significantly at NDCG@3, λ(L) + λ(S@3) does not.",
    small=ScheduleScale(),
    tiny=ScheduleScale(**_TINY_SCHEDULE),
    full=ScheduleScale(**_PAPER_SCHEDULE),
)
FIGURE_2 = Recipe(
    figure_2,
    PAPER,
    "figure 2",
    "agreement of the λ's of grades and clicks",
    "λ(C) agrees with λ(L) on about 70 % of the documents, on 85 % if only pairs of equal grades count.",
    small=TreeScale(),
    tiny=TreeScale(**_TINY),
    full=TreeScale(**_PAPER),
)
FIGURE_3 = Recipe(
    figure_3,
    PAPER,
    "figure 3",
    "gradients and the top 3 by label",
    "Labels 0 and 1 make more than 70 % of a highly relevant document's gradient, though they soon leave the top 3.",
    small=TreeScale(),
    tiny=TreeScale(**_TINY),
    full=TreeScale(**_PAPER),
)
FIGURE_4 = Recipe(
    figure_4,
    PAPER,
    "figure 4",
    "changes of rank from step to step",
    "After 100 steps less than 3 % of the top 3 change per step, and 5 to 15 % of the whole list.",
    small=TreeScale(),
    tiny=TreeScale(**_TINY),
    full=TreeScale(**_PAPER),
)
FIGURE_7 = Recipe(
    figure_7,
    PAPER,
    "figure 7",
    "accuracy against the share of the training data",
    "λ(L) + λ(S) is above λ(L) at every share of the training data.",
    small=ShareScale(learning_rates=(0.5,), linear=(0.001,), exponential=(500.0,)),
    tiny=ShareScale(**_TINY_SCHEDULE, shares=(0.25, 1.0)),
    full=ShareScale(**_PAPER_SCHEDULE),
)

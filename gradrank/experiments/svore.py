"""Svore, Volkovs, Burges (2011), Learning to Rank with Multiple Objective Functions: tables 1, 2, figures 2 to 7.

The paper's data (108,000 queries of a search engine with click logs) is not public. The recipes run on artificial data
whose clicks conflict with its grades in a realistic way (:mod:`gradrank.data.artificial`), or on data that is given:
splits ``train``, ``vali`` and ``test`` with the label source ``clicks``. Two things about it were set so that they are
as in the paper, and what the paper says beyond them is tested: how much the judges err, so that NDCG@3 of λ(L) is about
0.62 (table 1), and how much clicks and grades agree, so that their λ's agree on 70 % of the documents (figure 2). As in
the paper the number of trees and all weights are chosen on validation data by NDCG@3, and differences are tested by
a paired t-test over the test queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from gradrank.data.artificial import make_splits
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError
from gradrank.evaluation.compare import ComparisonRow, compare
from gradrank.evaluation.evaluate import Evaluation, evaluate
from gradrank.evaluation.tables import Column, Table
from gradrank.experiments import pins
from gradrank.experiments.claims import Claim, higher, not_lower, number
from gradrank.experiments.recipe import Recipe, Run
from gradrank.experiments.result import Outcome
from gradrank.experiments.settings import Scale, Splits, setting
from gradrank.experiments.trainings import Training, chosen_value, trained
from gradrank.measures import CNDCG, NDCG
from gradrank.models.ranker import Ranker
from gradrank.objectives import Lambda, Objective, Scheduled, Sigmoid, Tiered

PAPER = "Svore, Volkovs, Burges (2011)"
_CUTOFFS = tuple(range(1, 11))
_LEVEL = 0.05


@dataclass(frozen=True, kw_only=True)
class TreeScale(Scale):
    """Size of the data and of the trees."""

    queries: int = setting(2000, "training queries; half as many for validation, as many for test", of_data=True)
    docs: int = setting(40, "documents per query", of_data=True)
    noise: float = setting(0.6, "error of the judges, in deviations of the true relevance", of_data=True)
    click_agreement: float | str = setting(
        "auto", "share of the pairs that clicks and grades order alike; auto: the usual users, about 0.9", of_data=True
    )
    n_estimators: int = setting(300, "trees")
    num_leaves: int = setting(15, "leaves per tree")
    learning_rates: tuple[float, ...] = setting((0.1, 0.2), "learning rates, of which validation data chooses")
    min_child_samples: int = setting(50, "fewest documents per leaf")

    def artificial_data(self) -> dict[str, RankingData]:
        """Artificial data with clicks."""
        return make_splits(
            self.queries, n_docs=self.docs, n_features=self.features, random_state=self.random_state,
            noise=self.noise, clicks=True, n_jobs=self.n_jobs,
            click_agreement=None if self.click_agreement == "auto" else float(self.click_agreement),
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

    def parameters(self, objective: Objective, learning_rate: float, **options: Any) -> dict[str, Any]:
        """Parameters of LambdaMART for an objective, chosen by NDCG@3 on validation data."""
        given = pins.pinned("lambdamart", {**self.learners()["LambdaMART"], "learning_rate": learning_rate, **options})
        shared = {"measure": "NDCG@3", "random_state": self.random_state, "n_jobs": self.n_jobs}
        return {**given, **shared, "objective": str(objective)}


@dataclass(frozen=True, kw_only=True)
class SweepScale(TreeScale):
    """Trees, and weights of the second objective."""

    weights: tuple[float, ...] = setting((0.01, 0.1, 0.2, 0.3, 0.4, 0.5), "weights of λ(C), beside 0")
    rule: str = setting(
        "unharmed", "what chooses the weight on validation data: unharmed: the best CNDCG@3 of those whose NDCG@3 is "
        "not significantly below that of weight 0, as the paper prefers graded rankers; or NDCG@3: the best of that",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ScheduleScale(TreeScale):
    """Trees, and schedules of the second objective."""

    queries: int = setting(1500, "training queries; half as many for validation, as many for test", of_data=True)
    learning_rates: tuple[float, ...] = setting((0.3, 0.6), "learning rates, of which validation data chooses")
    starts: tuple[float, ...] = setting((0.1,), "w₀ of the schedules")
    linear: tuple[float, ...] = setting((0.01, 0.001), "η of the linear schedule")
    exponential: tuple[float, ...] = setting((100.0, 500.0), "η of the exponential schedule")


@dataclass(frozen=True, kw_only=True)
class CurveOnly(Scale):
    """Nothing is trained, and no data looked at."""

    def artificial_data(self) -> dict[str, RankingData]:
        """The least that there can be."""
        return make_splits(2, n_docs=2, n_features=3, random_state=self.random_state)


@dataclass(frozen=True, kw_only=True)
class CostScale(CurveOnly):
    """Where costs are drawn."""

    reach: float = setting(10.0, "largest difference of scores")
    points: int = setting(21, "points of each line")


@dataclass(frozen=True, kw_only=True)
class WeightScale(CurveOnly):
    """Schedules to draw."""

    n_estimators: int = setting(1000, "steps of boosting")
    start: float = setting(0.1, "w₀ of the schedules")
    linear: tuple[float, ...] = setting((0.1, 0.01, 0.001), "η of the linear schedule")
    exponential: tuple[float, ...] = setting((100.0, 250.0, 500.0), "η of the exponential schedule")


@dataclass(frozen=True, kw_only=True)
class ShareScale(ScheduleScale):
    """Schedules, and shares of the training data."""

    shares: tuple[float, ...] = setting((0.0325, 0.0625, 0.125, 0.25, 0.5, 1.0), "shares of the training queries")


class Choice(NamedTuple):
    """The best of some trainings on validation data."""

    ranker: Ranker
    objective: Objective
    learning_rate: float


@dataclass
class _Bench:
    """Trains on the data at a scale."""

    scale: TreeScale
    data: Splits
    run: Run

    def training(
        self, objective: Objective, learning_rate: float, data: RankingData | None = None, **options: Any
    ) -> Training:
        train = self.data["train"] if data is None else data
        parameters = self.scale.parameters(objective, learning_rate, **options)
        return Training(f"{objective}, rate {learning_rate:g}", "lambdamart", parameters, train, self.data["vali"])

    def best(
        self,
        candidates: Mapping[str, tuple[Sequence[Objective], Mapping[str, Any]]],
        data: RankingData | None = None,
    ) -> dict[str, Choice]:
        """For each name the ranker with the highest NDCG@3 on the validation data, of all objectives and rates."""
        tried = [
            (name, objective, rate, self.training(objective, rate, data, **options))
            for name, (objectives, options) in candidates.items()
            for objective in objectives
            for rate in self.scale.learning_rates
        ]
        rankers = trained([training for *_, training in tried], self.run)
        found: dict[str, Choice] = {}
        for (name, objective, rate, _), ranker in zip(tried, rankers, strict=True):
            if name not in found or chosen_value(ranker) > chosen_value(found[name].ranker):
                found[name] = Choice(ranker, objective, rate)
        return found


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

    The weight is the one with the best CNDCG@3 on validation data among those whose NDCG@3 is not significantly below
    that of weight 0: the paper (section 4.2) prefers the ranker that has at least equivalent NDCG and a higher CNDCG.
    By the rule ``NDCG@3`` it is the one with the best NDCG@3, which is how the paper chooses its other parameters:
    weights that leave NDCG alone then differ by chance, whatever they do to CNDCG. The rate is the one with which
    weight 0 has the best NDCG@3.
    """
    if scale.rule not in ("NDCG@3", "unharmed"):
        raise DataError(f"rule is {scale.rule!r}, expected NDCG@3 or unharmed")
    bench = _Bench(scale, data, run)
    learning_rate = bench.best({"": ([graded(0.0)], {})})[""].learning_rate
    weights = (0.0, *(weight for weight in scale.weights if weight != 0.0))
    rankers = dict(zip(weights, trained([bench.training(graded(w), learning_rate) for w in weights], run), strict=True))
    swept = evaluate(data["vali"], {f"{w:g}": ranker for w, ranker in rankers.items()}, [NDCG(3), CNDCG(3)])
    notes = []
    chosen = max(weights[1:], key=lambda w: swept.summary(f"{w:g}", NDCG(3)).mean)
    if scale.rule == "unharmed":
        tests = {w: _differences(swept, "0")[f"{w:g}", NDCG(3)].test for w in weights[1:]}
        unharmed = [w for w, test in tests.items() if not (test.difference < 0 and test.p < _LEVEL)]
        if not unharmed:
            notes.append("No weight left NDCG@3 on validation data unharmed.")
        chosen = max(unharmed or weights[1:], key=lambda w: swept.summary(f"{w:g}", CNDCG(3)).mean)
    systems = {"λ(L)": rankers[0.0], "λ(L) + λ(C)": rankers[chosen]}
    measures = [kind(cutoff) for kind in (NDCG, CNDCG) for cutoff in _CUTOFFS]
    evaluation = evaluate(data["test"], systems, measures)
    rows = _differences(evaluation)
    notes.insert(0, f"Chosen on validation data by the rule {scale.rule}: weight {chosen:g}, rate {learning_rate:g}.")
    values = evaluation.values
    both, alone = values["λ(L) + λ(C)"], values["λ(L)"]
    claims = (
        higher("CNDCG@3", "λ(L) + λ(C)", "λ(L)", both[CNDCG(3)], alone[CNDCG(3)]),
        not_lower("NDCG@3", "λ(L) + λ(C)", "λ(L)", both[NDCG(3)], alone[NDCG(3)], margin=0.005),
    )
    tables = (
        _by_cutoff(evaluation, rows, (NDCG, CNDCG), "Test data"),
        _by_weight(swept, "Validation data, by weight of λ(C)"),
        _by_weight(
            evaluate(data["test"], {f"{w:g}": ranker for w, ranker in rankers.items()}, [NDCG(3), CNDCG(3)]),
            "Test data, by weight of λ(C)",
        ),
    )
    return Outcome(tables, tuple(notes), claims)


def _by_weight(evaluation: Evaluation, title: str) -> Table:
    table = evaluation.table()
    return Table((Column("weight"), *table.columns[1:]), table.rows, title)


# ---------------------------------------------------------------------- table 2
def table_2(scale: ScheduleScale, data: Splits, run: Run) -> Outcome:
    """Newton and gradient steps on λ(L), and λ(L) + λ(S) and λ(L) + λ(S@3) with growing weight; NDCG@1 … @10."""
    bench = _Bench(scale, data, run)
    newton, gradient = "λ(L), Newton", "λ(L), gradient"
    candidates = _steps(scale)
    for kind in ("exponential", "linear"):
        candidates[f"λ(L) + λ(S@3), {kind}"] = (_grid(scale, kind, 3), {"step": "gradient"})
    chosen = bench.best(candidates)
    evaluation = evaluate(
        data["test"],
        {name: choice.ranker for name, choice in chosen.items()},
        [NDCG(cutoff) for cutoff in _CUTOFFS],
    )
    _, _, *others = chosen
    rows = {**_differences(evaluation, newton), **_differences(evaluation, gradient, others)}
    values = {name: evaluation.values[name][NDCG(3)] for name in chosen}
    best, best_cut = (
        max((name for name in others if mark in name), key=lambda name: chosen_value(chosen[name].ranker))
        for mark in ("λ(S),", "λ(S@3),")
    )
    claims = (
        higher("NDCG@3", gradient, newton, values[gradient], values[newton]),
        higher("NDCG@3", "λ(L) + λ(S)", gradient, values[best], values[gradient]),
        higher("NDCG@3", "λ(L) + λ(S)", "λ(L) + λ(S@3)", values[best], values[best_cut]),
    )
    picked = Table(
        (Column("method"), Column("objective"), Column("rate", "number"), Column("trees", "count"),
         Column("NDCG@3, validation", "number")),
        tuple((name, str(objective), learning_rate, ranker.training["best"], chosen_value(ranker))
              for name, (ranker, objective, learning_rate) in chosen.items()),
        "Chosen on validation data",
    )  # fmt: skip
    title = f"Test data; {gradient} is tested against {newton}, the others against {gradient}"
    return Outcome((_by_cutoff(evaluation, rows, (NDCG,), title), picked), (), claims)


def _steps(scale: ScheduleScale) -> dict[str, tuple[Sequence[Objective], Mapping[str, Any]]]:
    """What table 2 and figure 7 compare."""
    gradient = {"step": "gradient"}
    return {
        "λ(L), Newton": ([plain()], {"step": "newton"}),
        "λ(L), gradient": ([Lambda(NDCG(), normalize="deviation")], gradient),
        "λ(L) + λ(S), exponential": (_grid(scale, "exponential"), gradient),
        "λ(L) + λ(S), linear": (_grid(scale, "linear"), gradient),
    }


# ---------------------------------------------------------------------- figures 2, 3, 4
def figure_2(scale: TreeScale, data: Splits, run: Run) -> Outcome:
    """Agreement of λ(L) and λ(C) while λ(L) alone is learned: all click pairs, or only those of equal grades."""
    found = _diagnosed(_Bench(scale, data, run), graded(0.0))
    curves = found["agreement"]["Lambda(CNDCG)"]
    columns = {f"{kind}, {what}": curves[kind][what] for kind in curves for what in curves[kind]}
    late = {kind: float(np.mean(curves[kind]["agree"][1:])) for kind in curves}
    claims = (
        number("λ(C) of all pairs agrees with λ(L) on most documents", "agreement", late["all pairs"], above=0.5),
        number(
            "λ(C) of pairs of equal grades without zero clicks agrees at least 10 points more", "gain of agreement",
            late["tied pairs"] - late["all pairs"], above=0.1,
        ),
    )  # fmt: skip
    note = (
        f"Mean agreement after the first step: {late['all pairs']:.1%} over all pairs, {late['tied pairs']:.1%} over "
        "pairs of equal grades without zero clicks (the paper: about 70 % and 85 %)."
    )
    table = _curve_table(found["steps"], columns, "Share of the training documents")
    return Outcome((table,), (note,), claims)


def figure_3(scale: TreeScale, data: Splits, run: Run) -> Outcome:
    """From which labels the gradients of highly relevant documents come, and which labels are in the top 3."""
    found = _diagnosed(_Bench(scale, data, run), plain())
    shares = found["gradient_shares"][str(plain())]
    low = [name for name in shares if name in ("0", "1")]
    part = float(np.mean(np.sum([shares[name] for name in low], axis=0)))
    note = f"Labels 0 and 1 make {part:.1%} of a highly relevant document's gradient on average (the paper: over 70 %)."
    tables = (
        _curve_table(found["steps"], shares, "Shares of the gradient of highly relevant documents, by label"),
        _curve_table(found["steps"], found["top_labels"], "Shares of the top 3, by label"),
    )
    top = found["top_labels"]
    late = [np.mean(values[len(values) // 2 :]) for name, values in top.items() if name in low]
    claims = (
        number("labels 0 and 1 make more than 70 % of a highly relevant document's gradient", "share", part, above=0.7),
        number(
            "labels 0 and 1 make less than a quarter of the top 3 later on", "share", float(np.sum(late)), below=0.25
        ),
    )
    return Outcome(tables, (note,), claims)


def figure_4(scale: TreeScale, data: Splits, run: Run) -> Outcome:
    """Share of ranks that change in a step, in the whole list and in the top 3, beside NDCG@3."""
    ranker = _with_diagnostics(_Bench(scale, data, run), plain())
    found = ranker.training["diagnostics"]
    valid = ranker.training["curves"]["valid"]["NDCG@3"]
    changes = found["rank_changes"]
    count = len(changes["all"])
    steps = found["steps"][:count]
    columns = {
        "changed, whole list": changes["all"],
        "changed, top 3": changes["top"],
        "NDCG@3, training sample": found["measures"]["NDCG@3"][:count],
        "NDCG@3, validation": [float("nan") if step == 0 else valid[step - 1] for step in steps],
    }
    late = [place for place, step in enumerate(steps) if step >= min(100, scale.n_estimators // 2)]
    whole, top = (float(np.mean(np.array(changes[name])[late])) for name in ("all", "top"))
    claims = (
        number("after 100 steps less than 3 % of the top 3 change in a step", "share", top, below=0.03),
        number("after 100 steps 5 to 15 % of all ranks change in a step", "share", whole, above=0.05, below=0.15),
    )
    table = _curve_table(steps, columns, "Changes of rank")
    return Outcome((table,), (), claims)


# ---------------------------------------------------------------------- figures 5 and 6
def figure_5(scale: CostScale, data: Splits, run: Run) -> Outcome:
    """Derivatives of the costs of λ(L) and λ(S) over the difference of the scores; no data is looked at."""
    differences = np.linspace(-scale.reach, scale.reach, scale.points)
    forces = {"λ(L), cross-entropy": Lambda(NDCG()).cost, "λ(S), sigmoid": Sigmoid()}
    curves = {name: [cost.force(float(x)) for x in differences] for name, cost in forces.items()}
    rows = tuple((float(x), *values) for x, *values in zip(differences, *curves.values(), strict=True))
    table = Table((Column("score difference", "number"), *(Column(name, "number") for name in curves)), rows)
    far = {name: abs(values[0]) / max(map(abs, values)) for name, values in curves.items()}
    claims = (
        number("far below its rival a document is pushed with full force by λ(L)", "share of the largest force",
               far["λ(L), cross-entropy"], above=0.9),
        number("far below its rival a document is hardly pushed by λ(S)", "share of the largest force",
               far["λ(S), sigmoid"], below=0.1),
    )  # fmt: skip
    return Outcome((table,), (), claims)


def figure_6(scale: WeightScale, data: Splits, run: Run) -> Outcome:
    """Weights of the second objective from step to step; no data is looked at."""
    steps = sorted({max(0, round(scale.n_estimators * share)) for share in np.linspace(0.0, 1.0, 21).tolist()})
    made = {
        **{f"linear, η = {eta:g}": scheduled("linear", scale.start, eta) for eta in scale.linear},
        **{f"exponential, η = {eta:g}": scheduled("exponential", scale.start, eta) for eta in scale.exponential},
    }
    curves = {name: [objective.weight(step) for step in steps] for name, objective in made.items()}
    table = _curve_table(steps, curves, "Weight of λ(S)")
    falls = max(float(-np.diff(values).min(initial=0.0)) for values in curves.values())
    claim = number("the weight of the second objective never falls", "largest fall", falls, below=1e-12)
    return Outcome((table,), (), (claim,))


# ---------------------------------------------------------------------- figure 7
def figure_7(scale: ShareScale, data: Splits, run: Run) -> Outcome:
    """NDCG@1, @3 and @10 on the test data when a part of the training queries is used."""
    bench = _Bench(scale, data, run)
    train = data["train"]
    drawn = np.random.default_rng(scale.random_state).permutation(train.n_queries)
    measures = [NDCG(1), NDCG(3), NDCG(10)]
    rows: list[tuple[Any, ...]] = []
    claims: list[Claim] = []
    lines: dict[NDCG, list[tuple[Any, ...]]] = {measure: [] for measure in measures}
    names: tuple[str, ...] = ()
    for share in scale.shares:
        part = train.take_queries(np.sort(drawn[: max(2, round(share * train.n_queries))]))
        systems = bench.best(_steps(scale), part)
        names = tuple(systems)
        evaluation = evaluate(data["test"], {name: choice.ranker for name, choice in systems.items()}, measures)
        against = _differences(evaluation, "λ(L), gradient")
        for name in names:
            row = against.get((name, NDCG(3)))
            rows.append((
                f"{share:.4g}", part.n_queries, name, *(evaluation.summary(name, m).mean for m in measures),
                *((None, None) if row is None else (row.test.difference, row.test.p)),
            ))  # fmt: skip
        for measure in measures:
            lines[measure].append((part.n_queries, *(evaluation.summary(name, measure).mean for name in names)))
        mixed = max(names[2:], key=lambda name: chosen_value(systems[name].ranker))
        values = {name: evaluation.values[name][NDCG(3)] for name in names}
        at = f"with {share:.3g} of the queries"
        claims.append(higher("NDCG@3", f"λ(L) + λ(S) {at}", "λ(L), gradient", values[mixed], values["λ(L), gradient"]))
        claims.append(
            higher("NDCG@3", f"λ(L), gradient {at}", "λ(L), Newton", values["λ(L), gradient"], values["λ(L), Newton"])
        )
    columns = (
        Column("share"), Column("queries", "count"), Column("method"), *(Column(str(m), "number") for m in measures),
        Column("Δ NDCG@3", "signed"), Column("p", "p"),
    )  # fmt: skip
    table = Table(columns, tuple(rows), "Test data; Δ and p against λ(L), gradient")
    heads = (Column("queries", "count"), *(Column(name, "number") for name in names))
    panels = [Table(heads, tuple(points), f"{measure} on test data") for measure, points in lines.items()]
    return Outcome((table, *panels), (), tuple(claims))


# ---------------------------------------------------------------------- parts
def _diagnosed(bench: _Bench, objective: Objective) -> dict[str, Any]:
    found: dict[str, Any] = _with_diagnostics(bench, objective).training["diagnostics"]
    return found


def _with_diagnostics(bench: _Bench, objective: Objective) -> Ranker:
    every = max(1, bench.scale.n_estimators // 20)
    (ranker,) = trained([bench.training(objective, bench.scale.learning_rates[0], diagnostics=every)], bench.run)
    return ranker


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
# With it λ(C) agrees with λ(L) on 70 % of the documents, as the paper says of its clicks.
_AGREEMENT = 0.7
_PAPER: dict[str, Any] = {
    "click_agreement": _AGREEMENT, "queries": 108_000, "docs": 175, "features": 860,
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
    small=SweepScale(click_agreement=_AGREEMENT),
    tiny=SweepScale(**_TINY, weights=(0.5,)),
    full=SweepScale(**_PAPER),
    side_by_side=True,
    labels=("clicks",),
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
    side_by_side=True,
)
FIGURE_2 = Recipe(
    figure_2,
    PAPER,
    "figure 2",
    "agreement of the λ's of grades and clicks",
    "λ(C) agrees with λ(L) on about 70 % of the documents, on 85 % if only pairs of equal grades count.",
    small=TreeScale(click_agreement=_AGREEMENT),
    tiny=TreeScale(**_TINY),
    full=TreeScale(**_PAPER),
    side_by_side=True,
    labels=("clicks",),
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
    side_by_side=True,
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
    side_by_side=True,
)
FIGURE_5 = Recipe(
    figure_5,
    PAPER,
    "figure 5",
    "forces of the two pair costs",
    "The force of the cross-entropy stays large for pairs that are far apart, that of the sigmoid vanishes.",
    small=CostScale(),
    tiny=CostScale(points=5),
    full=CostScale(),
    reads="nothing",
)
FIGURE_6 = Recipe(
    figure_6,
    PAPER,
    "figure 6",
    "weights of the second objective",
    "Linear and exponential schedules raise the weight of the second objective from step to step.",
    small=WeightScale(),
    tiny=WeightScale(n_estimators=20),
    full=WeightScale(),
    reads="nothing",
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
    side_by_side=True,
)

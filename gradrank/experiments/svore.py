"""Svore, Volkovs, Burges (2011), Learning to Rank with Multiple Objective Functions: tables 1, 2, figures 2, 3, 4, 7.

The paper's data (108,000 queries of a search engine with click logs) is not public. The recipes run on artificial data
whose clicks conflict with its grades in a realistic way (:mod:`gradrank.data.artificial`), or on data that is given:
splits ``train``, ``vali`` and ``test`` with the label source ``clicks``. As in the paper the number of trees and all
weights are chosen on validation data by NDCG@3, and differences are tested by a paired t-test over the test queries.

Run ``python -m gradrank.experiments.svore --help``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from gradrank.data.artificial import make_splits
from gradrank.data.ranking_data import RankingData
from gradrank.evaluation.compare import ComparisonRow, compare
from gradrank.evaluation.evaluate import Evaluation, evaluate
from gradrank.evaluation.tables import Column, Table, to_json
from gradrank.experiments.result import Result
from gradrank.learners.trees.lambdamart import LambdaMART
from gradrank.measures import CNDCG, NDCG
from gradrank.objectives import Lambda, Objective, Scheduled, Sigmoid, Tiered
from gradrank.selection.sweep import WEIGHTS, sweep

Say = Callable[[str], None]
_CUTOFFS = tuple(range(1, 11))
_LEVEL = 0.05
# Figure 7: shares of the training queries.
_SHARES = (0.0325, 0.0625, 0.125, 0.25, 0.5, 1.0)


@dataclass(frozen=True)
class Scale:
    """How large an experiment is, and the learner's parameters."""

    queries: int = 1000
    """Training queries; half as many for validation, as many for test."""
    docs: int = 40
    features: int = 50
    noise: float = 0.3
    """Of the judges, in deviations of the true relevance."""
    trees: int = 300
    leaves: int = 15
    rates: tuple[float, ...] = (0.1, 0.2)
    """Learning rates, of which validation chooses, model by model (the paper has 0.2 and 0.5)."""
    min_docs: int = 50
    weights: tuple[float, ...] = WEIGHTS
    starts: tuple[float, ...] = (0.1, 0.25, 0.5)
    """w_0 of the schedules."""
    linear: tuple[float, ...] = (0.1, 0.01, 0.001)
    """η of the linear schedule."""
    exponential: tuple[float, ...] = (100.0, 250.0)
    """η of the exponential schedule."""
    random_state: int = 0
    n_jobs: int | None = None

    def splits(self) -> dict[str, RankingData]:
        """Artificial data with clicks."""
        return make_splits(
            self.queries, n_docs=self.docs, n_features=self.features, random_state=self.random_state,
            noise=self.noise, clicks=True, n_jobs=self.n_jobs,
        )  # fmt: skip

    def learner(self, objective: Objective, rate: float, **options: Any) -> LambdaMART:
        """LambdaMART as the papers have it: every tree sees all queries, splits by least squares."""
        return LambdaMART(
            objective,
            **{
                "measure": NDCG(3), "n_estimators": self.trees, "num_leaves": self.leaves, "learning_rate": rate,
                "min_child_samples": self.min_docs, "split": "mse", "subsample": 1.0,
                "random_state": self.random_state, "n_jobs": self.n_jobs,
                **options,
            },
        )  # fmt: skip


@dataclass
class _Bench:
    """Data, scale and what is said while it runs."""

    scale: Scale
    data: Mapping[str, RankingData]
    say: Say

    def train(self, objective: Objective, rate: float, data: RankingData | None = None, **options: Any) -> LambdaMART:
        learner = self.scale.learner(objective, rate, **options)
        learner.fit(self.data["train"] if data is None else data, valid=self.data["vali"])
        self.say(f"{objective}, rate {rate:g}: NDCG@3 {best_value(learner):.4f} on validation data")
        return learner

    def best(
        self, objectives: Sequence[Objective], data: RankingData | None = None, **options: Any
    ) -> tuple[LambdaMART, Objective, float]:
        """The learner with the highest NDCG@3 on the validation data, of all objectives and rates."""
        tried = [
            (self.train(objective, rate, data, **options), objective, rate)
            for objective in objectives
            for rate in self.scale.rates
        ]
        return max(tried, key=lambda item: best_value(item[0]))


def best_value(learner: LambdaMART) -> float:
    """NDCG@3 on the validation data at the chosen number of trees."""
    return float(learner.record_.curves["valid"]["NDCG@3"][learner.record_.best - 1])


def _bench(scale: Scale | None, data: Mapping[str, RankingData] | None, say: Say | None) -> _Bench:
    scale = scale or Scale()
    return _Bench(scale, scale.splits() if data is None else data, say or (lambda _: None))


def _facts(bench: _Bench, *leave_out: str) -> dict[str, Any]:
    train = bench.data["train"]
    facts = {name: value for name, value in asdict(bench.scale).items() if name not in ("n_jobs", *leave_out)}
    return facts | {"queries": train.n_queries, "documents": train.n_docs, "features": train.n_features}


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


def _grid(scale: Scale, kind: Literal["linear", "exponential"], cutoff: int | None = None) -> list[Objective]:
    etas = scale.linear if kind == "linear" else scale.exponential
    return [scheduled(kind, w0, eta, cutoff) for w0 in scale.starts for eta in etas]


# ---------------------------------------------------------------------- table 1
def table_1(
    scale: Scale | None = None, *, data: Mapping[str, RankingData] | None = None, say: Say | None = None
) -> Result:
    """Graded NDCG + CNDCG against NDCG alone, @1 … @10, with Newton steps.

    The weight is chosen on validation data: NDCG@3 not significantly below that of weight 0, then the best CNDCG@3.
    The rate is the one with which weight 0 has the best NDCG@3.
    """
    bench = _bench(scale, data, say)
    scale = bench.scale
    _, _, rate = bench.best([graded(0.0)])
    learner = scale.learner(graded(0.2), rate)

    def fit(name: str, member: Any) -> None:
        member.fit(bench.data["train"], valid=bench.data["vali"])
        bench.say(f"{name}: NDCG@3 {best_value(member):.4f} on validation data")

    found = sweep(
        learner, bench.data["train"], bench.data["vali"], scale.weights, measures=[NDCG(3), CNDCG(3)], level=_LEVEL,
        test_data=bench.data["test"], fit=fit,
    )  # fmt: skip
    systems = {"λ(L)": found.rankers[found.choice.baseline], "λ(L) + λ(C)": found.ranker}
    same = found.choice.system == found.choice.baseline
    measures = [kind(cutoff) for kind in (NDCG, CNDCG) for cutoff in _CUTOFFS]
    evaluation = evaluate(bench.data["test"], systems, measures)
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
    return Result("svore-1", "graded objective", tables, tuple(notes), _facts(bench, "starts", "linear", "exponential"))


# ---------------------------------------------------------------------- table 2
def table_2(
    scale: Scale | None = None, *, data: Mapping[str, RankingData] | None = None, say: Say | None = None
) -> Result:
    """Newton and gradient steps on λ(L), and λ(L) + λ(S) and λ(L) + λ(S@3) with growing weight; NDCG@1 … @10."""
    bench = _bench(scale, data, say)
    scale = bench.scale
    gradient = Lambda(NDCG(), normalize="deviation")
    chosen = {
        "λ(L), Newton": bench.best([plain()], step="newton"),
        "λ(L), gradient": bench.best([gradient], step="gradient"),
    }
    for cutoff, name in ((None, "λ(S)"), (3, "λ(S@3)")):
        for kind in ("exponential", "linear"):
            chosen[f"λ(L) + {name}, {kind}"] = bench.best(_grid(scale, kind, cutoff), step="gradient")
    evaluation = evaluate(
        bench.data["test"],
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
        tuple((name, str(objective), rate, learner.record_.best, best_value(learner))
              for name, (learner, objective, rate) in chosen.items()),
        "Chosen on validation data",
    )  # fmt: skip
    title = f"Test data; p of {gradient_name} against {newton}, of the others against {gradient_name}"
    tables = (_by_cutoff(evaluation, rows, (NDCG,), title), picked)
    return Result("svore-2", "iteration-dependent objective", tables, tuple(notes), _facts(bench, "weights"))


# ---------------------------------------------------------------------- figures 2, 3, 4
def figure_2(
    scale: Scale | None = None, *, data: Mapping[str, RankingData] | None = None, say: Say | None = None
) -> Result:
    """Agreement of λ(L) and λ(C) while λ(L) alone is learned: all click pairs, or only those of equal grades."""
    bench = _bench(scale, data, say)
    found = _diagnosed(bench, graded(0.0))
    curves = found["agreement"]["Lambda(CNDCG)"]
    columns = {f"{kind}, {what}": curves[kind][what] for kind in curves for what in curves[kind]}
    late = {kind: float(np.mean(curves[kind]["agree"][1:])) for kind in curves}
    note = (
        f"Mean agreement after the first step: {late['all pairs']:.1%} over all pairs, {late['tied pairs']:.1%} over "
        "pairs of equal grades without zero clicks (the paper: about 70 % and 85 %)."
    )
    table = _curve_table(found["steps"], columns, "Share of the training documents")
    return Result("svore-fig2", "agreement of the λ's", (table,), (note,), _facts(bench))


def figure_3(
    scale: Scale | None = None, *, data: Mapping[str, RankingData] | None = None, say: Say | None = None
) -> Result:
    """From which labels the gradients of highly relevant documents come, and which labels are in the top 3."""
    bench = _bench(scale, data, say)
    found = _diagnosed(bench, plain())
    shares = found["gradient_shares"][str(plain())]
    low = [name for name in shares if name in ("0", "1")]
    part = float(np.mean(np.sum([shares[name] for name in low], axis=0)))
    note = f"Labels 0 and 1 make {part:.1%} of a highly relevant document's gradient on average (the paper: over 70 %)."
    tables = (
        _curve_table(found["steps"], shares, "Shares of the gradient of highly relevant documents, by label"),
        _curve_table(found["steps"], found["top_labels"], "Shares of the top 3, by label"),
    )
    return Result("svore-fig3", "gradients and the top 3 by label", tables, (note,), _facts(bench))


def figure_4(
    scale: Scale | None = None, *, data: Mapping[str, RankingData] | None = None, say: Say | None = None
) -> Result:
    """Share of ranks that change in a step, in the whole list and in the top 3, beside NDCG@3."""
    bench = _bench(scale, data, say)
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
    return Result("svore-fig4", "changes of rank", (table,), tuple(notes), _facts(bench))


# ---------------------------------------------------------------------- figure 7
def figure_7(
    scale: Scale | None = None,
    *,
    data: Mapping[str, RankingData] | None = None,
    say: Say | None = None,
    shares: Sequence[float] = _SHARES,
) -> Result:
    """NDCG@1, @3 and @10 on the test data when a part of the training queries is used."""
    bench = _bench(scale, data, say)
    scale = bench.scale
    train = bench.data["train"]
    drawn = np.random.default_rng(scale.random_state).permutation(train.n_queries)
    measures = [NDCG(1), NDCG(3), NDCG(10)]
    rows = []
    for share in shares:
        part = train.take_queries(np.sort(drawn[: max(2, round(share * train.n_queries))]))
        systems = {
            "λ(L), Newton": bench.best([plain()], part, step="newton"),
            "λ(L), gradient": bench.best([Lambda(NDCG(), normalize="deviation")], part, step="gradient"),
            "λ(L) + λ(S), exponential": bench.best(_grid(scale, "exponential"), part, step="gradient"),
            "λ(L) + λ(S), linear": bench.best(_grid(scale, "linear"), part, step="gradient"),
        }
        evaluation = evaluate(bench.data["test"], {name: item[0].ranker_ for name, item in systems.items()}, measures)
        against = _differences(evaluation, "λ(L), gradient")
        for name in systems:
            row = against.get((name, NDCG(3)))
            rows.append((
                f"{share:.4g}", part.n_queries, name, *(evaluation.summary(name, m).mean for m in measures),
                *((None, None) if row is None else (row.test.difference, row.test.p)),
            ))  # fmt: skip
    columns = (
        Column("share"), Column("queries", "count"), Column("method"), *(Column(str(m), "number") for m in measures),
        Column("Δ NDCG@3", "signed"), Column("p", "p"),
    )  # fmt: skip
    table = Table(columns, tuple(rows), "Test data; Δ and p against λ(L), gradient")
    return Result("svore-fig7", "NDCG against the share of the training data", (table,), (), _facts(bench, "weights"))


# ---------------------------------------------------------------------- parts
def _diagnosed(bench: _Bench, objective: Objective) -> dict[str, Any]:
    found: dict[str, Any] = _learner_with_diagnostics(bench, objective).ranker_.training["diagnostics"]
    return found


def _learner_with_diagnostics(bench: _Bench, objective: Objective) -> LambdaMART:
    every = max(1, bench.scale.trees // 20)
    return bench.train(objective, bench.scale.rates[0], diagnostics=every)


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
    """One row a system and measure, one column a cut-off; * significantly above, ° below what it is compared with."""
    lines = []
    for kind in kinds:
        for system in evaluation.systems:
            cells = []
            for cutoff in _CUTOFFS:
                row = rows.get((system, kind(cutoff)))
                mark = ""
                if row is not None and row.test.p < _LEVEL:
                    mark = "*" if row.test.difference > 0 else "°"
                cells.append(f"{100 * evaluation.summary(system, kind(cutoff)).mean:.2f}{mark}")
            lines.append((system, kind.name, *cells))
    columns = (Column("method"), Column("measure"), *(Column(f"@{cutoff}") for cutoff in _CUTOFFS))
    return Table(columns, tuple(lines), f"{title}; in percent; * significantly higher, ° lower (p < {_LEVEL:g})")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run recipes and print what came out."""
    from gradrank.experiments import RECIPES, recipe

    names = [name for name in RECIPES if name.startswith("svore-")]
    parser = argparse.ArgumentParser(prog="python -m gradrank.experiments.svore", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="RECIPE", help=f"of {', '.join(names)}; all by default")
    defaults = Scale()
    for name in ("queries", "docs", "features", "trees", "leaves", "min_docs", "random_state", "n_jobs"):
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=getattr(defaults, name))
    parser.add_argument("--noise", type=float, default=defaults.noise)
    for name in ("rates", "weights", "starts", "linear", "exponential"):
        parser.add_argument(f"--{name}", type=_numbers, default=getattr(defaults, name), metavar="X,X,…")
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    options = vars(parser.parse_args(arguments))
    chosen, as_json = options.pop("names") or names, options.pop("json")
    scale = Scale(**options)
    data = scale.splits()
    for name in chosen:
        result = recipe(name)(scale, data=data, say=lambda text, name=name: _say(f"{name}: {text}"))
        sys.stdout.write(to_json(result.to_dict()) if as_json else result.to_markdown() + "\n")
        sys.stdout.flush()


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(word) for word in text.split(","))


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


if __name__ == "__main__":
    main()

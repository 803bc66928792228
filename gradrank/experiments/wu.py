"""Wu, Burges, Svore, Gao (2009), Ranking, Boosting, and Model Adaptation: table 1, figures 2 and 3.

The artificial data is made as the paper says (labels from random cubic polynomials, no noise); its own is not public.
Queries whose documents all carry one label count as they do elsewhere in gradrank (0 if nothing is relevant).

Run ``python -m gradrank.experiments.wu --help``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gradrank.data.artificial import make_splits
from gradrank.data.ranking_data import RankingData
from gradrank.evaluation.compare import compare
from gradrank.evaluation.evaluate import evaluate
from gradrank.evaluation.tables import Column, Table, to_json
from gradrank.experiments.result import Result
from gradrank.learners.algorithms import algorithm
from gradrank.learners.trees.lambdamart import LambdaMART
from gradrank.learners.trees.mcrank import McRank
from gradrank.measures import NDCG
from gradrank.models.ranker import Ranker
from gradrank.models.trees.ensemble import TreeEnsemble

Say = Callable[[str], None]
_MEASURES = (NDCG(10), NDCG(3), NDCG(1))
_STEPS = ("newton", "optimal", "optimal-leaf")
_OBJECTIVE = "Lambda(NDCG@10)"


@dataclass(frozen=True)
class Scale:
    """How large an experiment is, and the learners' parameters."""

    queries: int = 1000
    """Training queries; half as many for validation, as many for test (the paper has 10,000)."""
    docs: int = 50
    features: int = 50
    trees: int = 300
    leaves: int = 10
    rate: float = 0.1
    """Of LambdaMART; McRank has half of it, as in the paper."""
    rates: tuple[float, ...] = (0.25, 0.5, 1.0)
    """Figure 3: step sizes, of which validation chooses for each step rule."""
    min_docs: int = 20
    epochs: int = 100
    """Of LambdaRank's net."""
    random_state: int = 0
    n_jobs: int | None = None

    def splits(self) -> dict[str, RankingData]:
        """Artificial data without noise."""
        return make_splits(
            self.queries, n_docs=self.docs, n_features=self.features, random_state=self.random_state, n_jobs=self.n_jobs
        )

    def trees_learner(self, kind: type[LambdaMART] = LambdaMART, **options: Any) -> LambdaMART:
        """Boosted trees as the paper has them: all queries for every tree, splits by least squares."""
        common: dict[str, Any] = {
            "measure": NDCG(10), "n_estimators": self.trees, "num_leaves": self.leaves, "learning_rate": self.rate,
            "min_child_samples": self.min_docs, "split": "mse", "subsample": 1.0,
            "random_state": self.random_state, "n_jobs": self.n_jobs,
        }  # fmt: skip
        return kind(**{**common, **options})


def table_1(
    scale: Scale | None = None, *, data: Mapping[str, RankingData] | None = None, say: Say | None = None
) -> Result:
    """LambdaMART, McRank and LambdaRank: NDCG@10, @3 and @1 on test data with 95 % intervals."""
    scale, data, say = _bench(scale, data, say)
    systems: dict[str, Ranker] = {}
    net = algorithm("lambdarank")(epochs=scale.epochs, hidden_layer_sizes=10, random_state=scale.random_state)
    learners = {
        "LambdaMART": scale.trees_learner(objective=_OBJECTIVE),
        "McRank": scale.trees_learner(McRank, learning_rate=scale.rate / 2),
        "LambdaRank": net,
    }
    for name, learner in learners.items():
        systems[name] = learner.fit(data["train"], valid=data["vali"]).ranker_
        say(f"{name}: NDCG@10 {NDCG(10).mean(systems[name].predict(data['test']), data['test']):.4f} on test data")
    evaluation = evaluate(data["test"], systems, _MEASURES)
    comparison = compare(evaluation, correction=None)
    notes = tuple(
        f"{row.system} against LambdaMART: {row.measure} {row.test.difference:+.4f}, p {_p(row.test.p)}."
        for row in comparison.rows
        if row.measure == NDCG(10)
    )
    return Result("wu-1", "artificial data", (evaluation.table(),), notes, _facts(scale, data, "rates"))


def figure_2(
    scale: Scale | None = None, *, data: Mapping[str, RankingData] | None = None, say: Say | None = None
) -> Result:
    """NDCG@10 on test data against the number of trees, of LambdaMART and McRank (which grows one tree a grade)."""
    scale, data, say = _bench(scale, data, say)
    sets = {"vali": data["vali"], "test": data["test"]}
    grades = len(np.unique(data["train"].label()))
    curves = {}
    for name, learner in (
        ("LambdaMART", scale.trees_learner(objective=_OBJECTIVE)),
        ("McRank", scale.trees_learner(McRank, n_estimators=max(1, scale.trees // grades))),
    ):
        learner.fit(data["train"], valid=sets)
        curves[name] = learner.record_.curves["test"]["NDCG@10"]
        say(f"{name}: NDCG@10 {curves[name][-1]:.4f} on test data at the end")
    counts = [count for count in _checkpoints(scale.trees) if count >= grades]
    rows = tuple((count, curves["LambdaMART"][count - 1], curves["McRank"][count // grades - 1]) for count in counts)
    columns = (Column("trees", "count"), Column("LambdaMART", "number"), Column("McRank", "number"))
    reached = next((n for n, value in enumerate(curves["LambdaMART"], 1) if value >= max(curves["McRank"])), None)
    best = int(np.argmax(curves["McRank"])) + 1
    note = f"McRank's best, {max(curves['McRank']):.4f}, takes {best * grades} trees; LambdaMART reaches it " + (
        "not at all." if reached is None else f"with {reached}."
    )
    table = Table(columns, rows, "NDCG@10 on test data")
    return Result("wu-fig2", "speed and accuracy", (table,), (note,), _facts(scale, data, "rates", "epochs"))


def figure_3(
    scale: Scale | None = None, *, data: Mapping[str, RankingData] | None = None, say: Say | None = None
) -> Result:
    """NDCG@10 on training and test data after each tree, with Newton's and with exact optimal steps.

    The step size (shrinkage) of each rule is the one with the best NDCG@10 on validation data.
    """
    scale, data, say = _bench(scale, data, say)
    sets = {"vali": data["vali"], "test": data["test"]}
    chosen: dict[str, tuple[float, LambdaMART]] = {}
    for step in _STEPS:
        for rate in scale.rates:
            learner = scale.trees_learner(objective=_OBJECTIVE, step=step, learning_rate=rate, train_measure=True)
            learner.fit(data["train"], valid=sets)
            value = max(learner.record_.curves["vali"]["NDCG@10"])
            say(f"{step}, rate {rate:g}: NDCG@10 {value:.4f} on validation data, {learner.record_.seconds:.1f} s")
            if step not in chosen or value > max(chosen[step][1].record_.curves["vali"]["NDCG@10"]):
                chosen[step] = rate, learner
    counts = _checkpoints(scale.trees)
    rules = [Column(f"{step}, rate {rate:g}", "number") for step, (rate, _) in chosen.items()]
    tables = []
    for name in ("train", "test"):
        curves = [learner.record_.curves[name]["NDCG@10"] for _, learner in chosen.values()]
        rows = tuple((count, *(curve[count - 1] for curve in curves)) for count in counts)
        tables.append(Table((Column("trees", "count"), *rules), rows, f"NDCG@10 on {name} data"))
    notes = [_compared(chosen, data["test"], count) for count in counts if count >= scale.trees // 10]
    return Result("wu-fig3", "optimal combination", tuple(tables), tuple(notes), _facts(scale, data, "rate", "epochs"))


def _compared(chosen: Mapping[str, tuple[float, LambdaMART]], test: RankingData, count: int) -> str:
    """Differences from Newton's step on test data with so many trees, in one sentence."""
    systems = {
        step: TreeEnsemble([tree for (tree,) in learner.trees_[:count]], test.feature_names)
        for step, (_, learner) in chosen.items()
    }
    rows = compare(evaluate(test, systems, [NDCG(10)]), correction=None).rows
    parts = [f"{row.system} {row.test.difference:+.4f} (p {_p(row.test.p)})" for row in rows]
    return f"{count} trees, test data, against newton: {', '.join(parts)}."


# ---------------------------------------------------------------------- what they share
def _bench(
    scale: Scale | None, data: Mapping[str, RankingData] | None, say: Say | None
) -> tuple[Scale, Mapping[str, RankingData], Say]:
    scale = scale or Scale()
    return scale, scale.splits() if data is None else data, say or (lambda _: None)


def _p(value: float) -> str:
    return Column("", "p").show(value)


def _checkpoints(trees: int) -> list[int]:
    return sorted({max(1, round(trees * share)) for share in (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)})


def _facts(scale: Scale, data: Mapping[str, RankingData], *leave_out: str) -> dict[str, Any]:
    train = data["train"]
    facts = {name: value for name, value in asdict(scale).items() if name not in ("n_jobs", *leave_out)}
    return facts | {"queries": train.n_queries, "documents": train.n_docs, "features": train.n_features}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run recipes and print what came out."""
    from gradrank.experiments import RECIPES, recipe

    names = [name for name in RECIPES if name.startswith("wu-")]
    parser = argparse.ArgumentParser(prog="python -m gradrank.experiments.wu", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="RECIPE", help=f"of {', '.join(names)}; all by default")
    defaults = Scale()
    for name in ("queries", "docs", "features", "trees", "leaves", "min_docs", "epochs", "random_state", "n_jobs"):
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=getattr(defaults, name))
    parser.add_argument("--rate", type=float, default=defaults.rate)
    parser.add_argument("--rates", type=_numbers, default=defaults.rates, metavar="X,X,…")
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

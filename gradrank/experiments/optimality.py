"""Donmez, Svore, Burges (2009), On the Local Optimality of LambdaRank: figures 1 to 4 and 6.

Nets with one and two layers are trained with LambdaRank for NDCG, NDCG@10, MAP and MRR; then their weights are moved in
459 random directions on the training data. In the paper every direction lowers the measure (figures 1 to 4), and random
weights fail (figure 6). The web data is not public: the recipes run on artificial data, or on data that is given.

Steps are in lengths of the weight vector; see :func:`gradrank.optimality.local_optimality`. Beside the paper's steps of
0.1 to 1 its second set, a hundredth of them, is tried, which the paper reports without figures. Better directions that
are found are followed.

Run ``python -m gradrank.experiments.optimality --help``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from gradrank.data.artificial import make_splits
from gradrank.data.ranking_data import RankingData
from gradrank.evaluation.tables import Column, Table, to_json
from gradrank.experiments.result import Result
from gradrank.experiments.train_test_measures import PAPER_OBJECTIVES
from gradrank.experiments.training import learner_for, single_measure
from gradrank.measures import Measure
from gradrank.models.ranker import Ranker
from gradrank.models.weight_vectors import weights_of
from gradrank.objectives import parse_objective
from gradrank.optimality import FINE_STEPS, STEPS, OptimalityResult, climb, local_optimality
from gradrank.optimality.directions import random_direction

Say = Callable[[str], None]

# The paper draws four directions.
_SHOWN = 4
# Random weights come from a stream of their own, apart from those of directions.
_RANDOM_WEIGHTS = 1 << 33


@dataclass(frozen=True)
class Scale:
    """How large an experiment is."""

    queries: int = 1000
    """Training queries."""
    docs: int = 50
    features: int = 50
    noise: float = 0.0
    """Of the judges, in deviations of the true relevance; the paper's artificial data has none."""
    hidden: tuple[int, ...] = (0, 10)
    """Hidden nodes of each net; 0 is the single layer."""
    parameters: dict[str, Any] = field(default_factory=dict)
    """Of the learner, where they differ from its defaults."""
    chooses: str = "train"
    """Split on which the best epoch is chosen: the test is about the training data."""
    epsilon: float = 0.01
    delta: float = 0.01
    moves: int = 50
    """Largest number of moves that follow better directions; 0 = only test."""
    random_state: int = 0
    n_jobs: int | None = None

    def splits(self) -> dict[str, RankingData]:
        """Artificial data."""
        return make_splits(
            self.queries, n_docs=self.docs, n_features=self.features, random_state=self.random_state, noise=self.noise,
            n_jobs=self.n_jobs,
        )  # fmt: skip

    def options(self) -> dict[str, Any]:
        """What tests and climbs take."""
        return {"epsilon": self.epsilon, "delta": self.delta, "random_state": self.random_state, "n_jobs": self.n_jobs}


def figure_1(
    scale: Scale | None = None, *, data: Mapping[str, RankingData] | None = None, say: Say | None = None
) -> Result:
    """Nets trained for NDCG; in the paper all directions fall."""
    return _trained("donmez-fig1", "NDCG", scale, data, say)


def figure_2(
    scale: Scale | None = None, *, data: Mapping[str, RankingData] | None = None, say: Say | None = None
) -> Result:
    """Nets trained for NDCG@10; in the paper all directions fall."""
    return _trained("donmez-fig2", "NDCG@10", scale, data, say)


def figure_3(
    scale: Scale | None = None, *, data: Mapping[str, RankingData] | None = None, say: Say | None = None
) -> Result:
    """Nets trained for MAP; in the paper all directions fall."""
    return _trained("donmez-fig3", "MAP(rel=2)", scale, data, say)


def figure_4(
    scale: Scale | None = None, *, data: Mapping[str, RankingData] | None = None, say: Say | None = None
) -> Result:
    """Nets trained for MRR; in the paper all directions fall."""
    return _trained("donmez-fig4", "MRR(rel=2)", scale, data, say)


def figure_6(
    scale: Scale | None = None, *, data: Mapping[str, RankingData] | None = None, say: Say | None = None
) -> Result:
    """Random weights of a single layer, by NDCG; they are no local optimum."""
    from gradrank.models.linear import LinearRanker

    scale = scale or Scale()
    train = (data or scale.splits())["train"]
    deviation = np.nanstd(train.X, axis=0)
    ranker = LinearRanker(
        random_direction((scale.random_state, _RANDOM_WEIGHTS), train.n_features),
        scale=np.where(deviation > 0, deviation, 1.0),
        feature_names=train.feature_names,
    )
    study = _Study("donmez-fig6", single_measure("NDCG"), scale, train, say)
    study.test("random weights", ranker, STEPS, follow=False)
    return study.result("random weights moved in random directions")


class _Study:
    """Tests of several rankers by one measure on the same data."""

    def __init__(self, name: str, measure: Measure, scale: Scale, train: RankingData, say: Say | None) -> None:
        self._name = name
        self._measure = measure
        self._scale = scale
        self._train = train
        self._say = say or (lambda _text: None)
        self._rows: list[tuple[Any, ...]] = []
        self._curves: list[Table] = []
        self._notes: list[str] = []

    def test(self, name: str, ranker: Ranker, steps: tuple[float, ...], *, follow: bool) -> None:
        """Test a ranker, and follow what is better."""
        found = local_optimality(ranker, self._train, self._measure, steps=steps, **self._scale.options())
        named = f"{name}, steps {steps[0]:g}…{steps[-1]:g}"
        self._say(f"{named}: {found.verdict()}")
        self._notes.append(f"{named}: {found.verdict()}")
        moves, reached = None, None
        if follow and found.best is not None and self._scale.moves:
            way = climb(
                ranker, self._train, self._measure, steps=steps, most_moves=self._scale.moves, **self._scale.options()
            )
            moves, reached = len(way.moves), way.values[-1]
        gain = found.best.gain if found.best is not None else None
        self._rows.append((
            name, f"{steps[0]:g}…{steps[-1]:g}", found.norm, found.value, found.directions, found.improving,
            found.significant, f"{len(found.improving_weights)} of {found.weights_tried}", gain, moves, reached,
        ))  # fmt: skip
        self._curves.append(_curves(found, named))

    def result(self, title: str) -> Result:
        """Everything, as a recipe gives it."""
        columns = (
            Column("ranker"), Column("steps"), Column("length of weights", "number"),
            Column(str(self._measure), "number"), Column("directions", "count"),
            Column("improve", "count"), Column("significantly", "count"),
            Column("single weights"), Column("largest gain", "signed"), Column("moves", "count"),
            Column("reached", "number"),
        )  # fmt: skip
        facts = {key: value for key, value in asdict(self._scale).items() if key not in ("n_jobs", "docs", "hidden")}
        facts |= {
            "queries": self._train.n_queries,
            "documents": self._train.n_docs,
            "features": self._train.n_features,
        }
        table = Table(columns, tuple(self._rows), f"{self._measure} on the training data")
        return Result(self._name, title, (table, *self._curves), tuple(self._notes), facts)


def _trained(
    name: str, measure: str, scale: Scale | None, data: Mapping[str, RankingData] | None, say: Say | None
) -> Result:
    scale = scale or Scale()
    splits = data or scale.splits()
    train = splits["train"]
    study = _Study(name, single_measure(measure), scale, train, say)
    # The paper learns reciprocal rank from misranked pairs alone; with all pairs there is more to learn from.
    objectives = tuple(dict.fromkeys((PAPER_OBJECTIVES[measure], f"Lambda({measure})")))
    for objective in objectives:
        for hidden in scale.hidden:
            parameters = {**scale.parameters, "hidden_layer_sizes": hidden}
            learner = learner_for(
                "lambdarank",
                parse_objective(objective),
                single_measure(measure),
                parameters,
                scale.random_state,
                scale.n_jobs,
            )
            ranker = learner.fit(train, valid=splits[scale.chooses]).ranker_
            layers = f"two layers, {hidden} hidden nodes" if hidden else "single layer"
            named = layers if len(objectives) == 1 else f"{layers}, {objective}"
            for steps in (STEPS, FINE_STEPS):
                study.test(named, ranker, steps, follow=True)
            weighted = weights_of(ranker)
            length = float(np.linalg.norm(weighted.weight_vector()))
            chance = random_direction((scale.random_state, _RANDOM_WEIGHTS), len(weighted.weight_vector()))
            study.test(f"{named}, random weights", weighted.with_weight_vector(length * chance), STEPS, follow=False)
    return study.result(f"nets trained for {measure}, moved in random directions")


def _curves(result: OptimalityResult, name: str) -> Table:
    """The figure in numbers: the measure at each step along four directions, and the range of all."""
    values = result.value + np.column_stack((np.zeros(result.directions), result.changes.mean))
    shown = values[:_SHOWN]
    rows = [
        (step, *shown[:, column].tolist(), float(values[:, column].min()), float(values[:, column].max()))
        for column, step in enumerate((0.0, *result.steps))
    ]
    directions = [Column(f"direction {number}", "number") for number in range(1, len(shown) + 1)]
    columns = (Column("step"), *directions, Column("lowest of all", "number"), Column("highest of all", "number"))
    return Table(columns, tuple(rows), f"{result.measure}: {name}")


# ---------------------------------------------------------------------- from the command line
def main(arguments: Sequence[str] | None = None) -> None:
    """Run recipes and print what came out."""
    from gradrank.experiments import RECIPES, recipe

    names = [name for name, place in RECIPES.items() if place.startswith("gradrank.experiments.optimality:")]
    parser = argparse.ArgumentParser(
        prog="python -m gradrank.experiments.optimality", description=__doc__.split("\n")[0]
    )
    parser.add_argument("names", nargs="*", metavar="RECIPE", help=f"of {', '.join(names)}; all by default")
    defaults = Scale()
    for name in ("queries", "docs", "features", "moves", "random_state", "n_jobs"):
        parser.add_argument(f"--{name}", type=int, default=getattr(defaults, name))
    for name in ("noise", "epsilon", "delta"):
        parser.add_argument(f"--{name}", type=float, default=getattr(defaults, name))
    parser.add_argument("--chooses", choices=("train", "vali"), default=defaults.chooses)
    parser.add_argument("--epochs", type=int, help="of the nets, if not their default")
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    options = vars(parser.parse_args(arguments))
    chosen, as_json, epochs = options.pop("names") or names, options.pop("json"), options.pop("epochs")
    if epochs is not None:
        options["parameters"] = {"epochs": epochs}
    scale = Scale(**options)
    data = scale.splits()
    for name in chosen:
        result = recipe(name)(scale, data=data, say=lambda text, name=name: _say(f"{name}: {text}"))
        sys.stdout.write(to_json(result.to_dict()) if as_json else result.to_markdown() + "\n")
        sys.stdout.flush()


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    main()

"""Donmez, Svore, Burges (2009), On the Local Optimality of LambdaRank: figures 1 to 4 and 6.

Nets with one and two layers are trained with LambdaRank for NDCG, NDCG@10, MAP and MRR; then their weights are moved in
459 random directions on the training data. In the paper every direction lowers the measure (figures 1 to 4), and random
weights fail (figure 6). The web data is not public: the recipes run on artificial data, or on data that is given.

Steps are in lengths of the weight vector unless asked otherwise; see :func:`gradrank.optimality.local_optimality`.
Beside the paper's steps of 0.1 to 1 its second set, a hundredth of them, is tried, which the paper reports without
figures. Better directions that are found are followed. With figure 2 go the questions of the paper's section 8: whether
the weights of early epochs and those learned for MRR are local optima of NDCG@10 too, and whether learning goes on from
there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradrank.data.ranking_data import RankingData
from gradrank.evaluation.tables import Column, Table
from gradrank.experiments import pins
from gradrank.experiments.claims import Claim, number
from gradrank.experiments.recipe import Recipe, Run, Say
from gradrank.experiments.result import Outcome
from gradrank.experiments.settings import Scale, Splits, setting
from gradrank.experiments.train_test_measures import PAPER_OBJECTIVES
from gradrank.experiments.training import learner_for, single_measure
from gradrank.experiments.trainings import Training, chosen_value, train_one, trained
from gradrank.measures import Measure
from gradrank.models.ranker import Ranker
from gradrank.models.weight_vectors import weights_of
from gradrank.objectives import parse_objective
from gradrank.optimality import FINE_STEPS, STEPS, OptimalityResult, climb, local_optimality
from gradrank.optimality.directions import random_direction

PAPER = "Donmez, Svore, Burges (2009)"
# The paper draws four directions.
_SHOWN = 4
# The paper asks its last questions of NDCG@10.
_SECTION_8 = "NDCG@10"
# Random weights come from a stream of their own, apart from those of directions.
_RANDOM_WEIGHTS = 1 << 33


@dataclass(frozen=True, kw_only=True)
class OptimalityScale(Scale):
    """Size of the data and of the test."""

    docs: int = setting(20, "documents per query", of_data=True)
    epsilon: float = setting(0.01, "largest share of directions that may improve a ranker which passes")
    delta: float = setting(0.01, "chance that a ranker with a larger share passes all the same")
    unit: str = setting(
        "relative", "what a step of 1 is: relative, the length of the weights, or absolute, 1 as the paper has it"
    )

    def options(self) -> dict[str, Any]:
        """What tests and climbs take."""
        return {
            "epsilon": self.epsilon, "delta": self.delta, "scale": self.unit, "random_state": self.random_state,
            "n_jobs": self.n_jobs,
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class NetScale(OptimalityScale):
    """The test, and the nets."""

    hidden_nodes: tuple[int, ...] = setting((0, 10), "hidden nodes of each net; 0 is the single layer")
    activation: str = setting("relu", "of the hidden nodes: relu or tanh")
    optimizer: str = setting("adam", "adam, or donmez, the paper's schedule")
    epochs: int = setting(100, "epochs of the nets")
    learning_rates: tuple[float, ...] = setting(
        (0.01, 0.001), "learning rates, of which the data that chooses takes one for each net; unused with donmez"
    )
    weight_decay: float = setting(0.1, "Adam's weight decay; the paper has none; unused with donmez")
    chooses: str = setting("train", "data on which the best epoch is chosen: train, which is tested, or vali")
    moves: int = setting(20, "largest number of moves that follow better directions; 0 = only test")
    fine_moves: int = setting(0, "the same for a hundredth of the steps")
    beside: bool = setting(True, "whether a hundredth of the steps, and random weights of the same length, are tested")
    early_epochs: tuple[int, ...] = setting((7, 12), "figure 2: epochs whose weights are tested as well")
    restart_epochs: int = setting(10, "figure 2: epochs of learning that go on from these weights, and from MRR's")

    def learners(self) -> dict[str, dict[str, Any]]:
        nets = {f"lambdarank, {nodes} hidden nodes": self.net(nodes) for nodes in self.hidden_nodes}
        swept = {key for rate in self.rates() for key in rate}
        return {name: {key: value for key, value in net.items() if key not in swept} for name, net in nets.items()}

    def net(self, hidden_nodes: int) -> dict[str, Any]:
        """Parameters of the net with so many hidden nodes."""
        given = pins.net(
            hidden_layer_sizes=hidden_nodes, activation=self.activation, epochs=self.epochs, optimizer=self.optimizer
        )
        return {**given, "weight_decay": self.weight_decay} if self.optimizer == "adam" else given

    def rates(self) -> list[dict[str, Any]]:
        """What the trainings of one net differ in; the paper's schedule tries rates of its own."""
        return [{"learning_rate": rate} for rate in self.learning_rates] if self.optimizer == "adam" else [{}]


def nets_for(measure: str) -> Callable[[NetScale, Splits, Run], Outcome]:
    """The function of a figure: nets with one and two layers, trained for a measure and moved in random directions."""

    def figure(scale: NetScale, data: Splits, run: Run) -> Outcome:
        return _trained(measure, scale, data, run)

    return figure


def nets_and_escapes(scale: NetScale, data: Splits, run: Run) -> Outcome:
    """Figure 2, and section 8: weights of early epochs and of nets for MRR by NDCG@10, and learning on from them."""
    outcome = _trained(_SECTION_8, scale, data, run)
    tested, escapes = _escapes(scale, data, run)
    return Outcome((*outcome.tables, *tested.tables, escapes), (*outcome.notes, *tested.notes), outcome.claims)


def random_weights(scale: OptimalityScale, data: Splits, run: Run) -> Outcome:
    """Random weights of a single layer, by NDCG; they are no local optimum."""
    from gradrank.models.linear import LinearRanker

    train = data["train"]
    deviation = np.nanstd(train.X, axis=0)
    ranker = LinearRanker(
        random_direction((scale.random_state, _RANDOM_WEIGHTS), train.n_features),
        scale=np.where(deviation > 0, deviation, 1.0),
        feature_names=train.feature_names,
    )
    study = _Study(single_measure("NDCG"), scale, train, run.say)
    study.test("random weights", ranker, STEPS, optimum=False)
    return study.outcome()


class _Study:
    """Tests of several rankers by one measure on the same data."""

    def __init__(self, measure: Measure, scale: OptimalityScale, train: RankingData, say: Say) -> None:
        self._measure = measure
        self._scale = scale
        self._train = train
        self._say = say
        self._rows: list[tuple[Any, ...]] = []
        self._curves: list[Table] = []
        self._notes: list[str] = []
        self._claims: list[Claim] = []

    def test(
        self, name: str, ranker: Ranker, steps: tuple[float, ...], *, most_moves: int = 0, optimum: bool | None = None
    ) -> None:
        """Test a ranker, and follow what is better for so many moves.

        ``optimum`` says whether the paper calls it a local optimum; None where it says nothing.
        """
        found = local_optimality(ranker, self._train, self._measure, steps=steps, **self._scale.options())
        named = f"{name}, steps {steps[0]:g}…{steps[-1]:g}"
        self._say(f"{named}: {found.verdict()}")
        self._notes.append(f"{named}: {found.verdict()}")
        moves, reached = None, None
        if most_moves and found.best is not None:
            way = climb(ranker, self._train, self._measure, steps=steps, most_moves=most_moves, **self._scale.options())
            moves, reached = len(way.moves), way.values[-1]
        gain = found.best.gain if found.best is not None else None
        self._rows.append((
            name, f"{steps[0]:g}…{steps[-1]:g}", found.norm, found.value, found.directions, found.improving,
            found.significant, f"{len(found.improving_weights)} of {found.weights_tried}", gain, moves, reached,
        ))  # fmt: skip
        self._curves.append(_curves(found, named))
        if optimum is not None:
            share = found.improving / max(1, found.directions)
            # The paper's test: fewer than a share ε of all directions improve, but for a chance δ.
            bounds = {"below": self._scale.epsilon} if optimum else {"above": self._scale.epsilon}
            says = "falls in all directions" if optimum else "rises in some directions"
            self._claims.append(number(f"{self._measure} {says}: {named}", "share that improves", share, **bounds))

    def outcome(self) -> Outcome:
        """Everything, as a recipe gives it."""
        columns = (
            Column("ranker"), Column("steps"), Column("length of weights", "number"),
            Column(str(self._measure), "number"), Column("directions", "count"),
            Column("improve", "count"), Column("significantly", "count"),
            Column("single weights"), Column("largest gain", "signed"), Column("moves", "count"),
            Column("reached", "number"),
        )  # fmt: skip
        table = Table(columns, tuple(self._rows), f"{self._measure} on the training data")
        return Outcome((table, *self._curves), tuple(self._notes), tuple(self._claims))


def _trained(measure: str, scale: NetScale, data: Splits, run: Run) -> Outcome:
    train = data["train"]
    study = _Study(single_measure(measure), scale, train, run.say)
    # The paper learns reciprocal rank from misranked pairs alone; with all pairs there is more to learn from.
    objectives = tuple(dict.fromkeys((PAPER_OBJECTIVES[measure], f"Lambda({measure})")))
    nets = []
    for objective in objectives:
        for hidden_nodes in scale.hidden_nodes:
            layers = f"two layers, {hidden_nodes} hidden nodes" if hidden_nodes else "single layer"
            named = layers if len(objectives) == 1 else f"{layers}, {objective}"
            nets += [
                _training(named, scale, hidden_nodes, measure, objective, train, data[scale.chooses], **rate)
                for rate in scale.rates()
            ]
    found: dict[str, list[tuple[Training, Ranker]]] = {}
    for net, made in zip(nets, trained(nets, run), strict=True):
        found.setdefault(net.name, []).append((net, made))
    for tried in found.values():
        training, ranker = max(tried, key=lambda pair: chosen_value(pair[1]))
        # The claim is of the paper's own way to train.
        paper = training.parameters["objective"] == str(parse_objective(PAPER_OBJECTIVES[measure]))
        study.test(training.name, ranker, STEPS, most_moves=scale.moves, optimum=True if paper else None)
        if not scale.beside:
            continue
        study.test(training.name, ranker, FINE_STEPS, most_moves=scale.fine_moves)
        weighted = weights_of(ranker)
        length = float(np.linalg.norm(weighted.weight_vector()))
        chance = random_direction((scale.random_state, _RANDOM_WEIGHTS), len(weighted.weight_vector()))
        study.test(f"{training.name}, random weights", weighted.with_weight_vector(length * chance), STEPS)
    return study.outcome()


def _training(
    name: str,
    scale: NetScale,
    hidden_nodes: int,
    measure: str,
    objective: str,
    train: RankingData,
    chooses: RankingData | None,
    **changed: Any,
) -> Training:
    """A net for a measure; without data that chooses it is that of the last epoch."""
    given = {**pins.pinned("lambdarank", scale.net(hidden_nodes)), **changed}
    learner = learner_for(
        "lambdarank", parse_objective(objective), single_measure(measure), given, scale.random_state, scale.n_jobs
    )
    return Training(name, "lambdarank", learner.get_params(deep=False), train, chooses)


def _escapes(scale: NetScale, data: Splits, run: Run) -> tuple[Outcome, Table]:
    """Weights of early epochs and of a net for MRR: tested by NDCG@10, and what learning for it makes of them."""
    train = data["train"]
    nodes = max(scale.hidden_nodes)
    study = _Study(single_measure(_SECTION_8), scale, train, run.say)
    nets = [
        _training(f"NDCG@10, epoch {epoch}", scale, nodes, _SECTION_8, PAPER_OBJECTIVES[_SECTION_8], train, None,
                  epochs=epoch)
        for epoch in scale.early_epochs
        if epoch <= scale.epochs
    ]  # fmt: skip
    mrr = "MRR(rel=2)"
    nets.append(_training("learned for MRR", scale, nodes, mrr, PAPER_OBJECTIVES[mrr], train, data[scale.chooses]))
    rows = []
    measure = single_measure(_SECTION_8)
    for training, ranker in zip(nets, trained(nets, run), strict=True):
        study.test(training.name, ranker, STEPS)
        before = measure.mean(ranker.predict(train), train, n_jobs=scale.n_jobs)
        on = {"module": _as_module(ranker), "epochs": scale.restart_epochs}
        goes_on = _training(
            training.name, scale, nodes, _SECTION_8, PAPER_OBJECTIVES[_SECTION_8], train, train, **on
        )  # fmt: skip
        after = train_one(goes_on).training["curves"]["valid"][_SECTION_8]
        rows.append((training.name, before, after[0], max(after)))
    columns = (
        Column("weights"), Column("NDCG@10", "number"), Column("an epoch on", "number"),
        Column(f"best of {scale.restart_epochs} epochs on", "number"),
    )  # fmt: skip
    return study.outcome(), Table(columns, tuple(rows), "Learning for NDCG@10 goes on from weights: training data")


def _as_module(ranker: Ranker) -> Any:
    """The net of a ranker as PyTorch has it, so that learning can go on."""
    import torch

    from gradrank.models.nets.net import NetRanker

    assert isinstance(ranker, NetRanker)
    parts: list[torch.nn.Module] = []
    for weights, bias in ranker.layers:
        if parts:
            parts.append(torch.nn.Tanh() if ranker.activation == "tanh" else torch.nn.ReLU())
        layer = torch.nn.Linear(weights.shape[1], weights.shape[0])
        layer.load_state_dict({"weight": torch.from_numpy(weights.copy()), "bias": torch.from_numpy(bias.copy())})
        parts.append(layer)
    # The measure does not see a constant: its gradient is rounding.
    parts[-1].bias.requires_grad_(False)
    return torch.nn.Sequential(*parts)


def _curves(result: OptimalityResult, name: str) -> Table:
    """The figure in numbers: the measure at each step along four directions, and the range of all."""
    values = result.value + np.column_stack((np.zeros(result.directions), result.changes.mean))
    shown = values[:_SHOWN]
    rows = [
        (step, *shown[:, column].tolist(), float(values[:, column].min()), float(values[:, column].max()))
        for column, step in enumerate((0.0, *result.steps))
    ]
    directions = [Column(f"direction {number}", "number") for number in range(1, len(shown) + 1)]
    columns = (
        Column("step", "number"),
        *directions,
        Column("lowest of all", "number"),
        Column("highest of all", "number"),
    )
    return Table(columns, tuple(rows), f"{result.measure}: {name}")


# ---------------------------------------------------------------------- the recipes
_TINY: dict[str, Any] = {"queries": 60, "docs": 10, "features": 5, "epsilon": 0.1, "delta": 0.1}
_TINY_NET: dict[str, Any] = {
    **_TINY, "hidden_nodes": (0, 3), "epochs": 5, "moves": 2, "early_epochs": (2,), "restart_epochs": 2,
}  # fmt: skip
_PAPER: dict[str, Any] = {"queries": 10_000, "docs": 50, "features": 300}


def _figure(number: int, measure: str) -> Recipe:
    return Recipe(
        nets_and_escapes if measure == _SECTION_8 else nets_for(measure),
        PAPER,
        f"figure {number}",
        f"nets trained for {measure}, moved in random directions",
        f"{measure} on the training data falls in all of 459 random directions, for nets of one and two layers.",
        small=NetScale(),
        tiny=NetScale(**_TINY_NET),
        full=NetScale(**_PAPER, activation="tanh", optimizer="donmez", epochs=700),
        side_by_side=True,
    )


FIGURE_1 = _figure(1, "NDCG")
FIGURE_2 = _figure(2, "NDCG@10")
FIGURE_3 = _figure(3, "MAP(rel=2)")
FIGURE_4 = _figure(4, "MRR(rel=2)")
FIGURE_6 = Recipe(
    random_weights,
    PAPER,
    "figure 6",
    "random weights moved in random directions",
    "Random weights are no local optimum: NDCG rises in some of the random directions.",
    small=OptimalityScale(),
    tiny=OptimalityScale(**_TINY),
    full=OptimalityScale(**_PAPER),
)

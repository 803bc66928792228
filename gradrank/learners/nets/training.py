"""Training a net: batches of queries, λ's of the scores, a step of the optimiser, the measure; epoch by epoch."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.learners.boosting import Callback, Curves, Step, Watch, announced_pairs, check_labels
from gradrank.learners.grower import TrainingError
from gradrank.learners.nets.settings import DONMEZ_CHANCE, DONMEZ_DECAY, NetSettings
from gradrank.learners.nets.torch_nets import FOR_BATCHES, FOR_DECAY, FOR_LAYERS, FOR_ORDER, Weights, chance, copied
from gradrank.measures import AnyMeasure
from gradrank.models.module import scores_of
from gradrank.models.ranker import Ranker
from gradrank.models.scaling import Scaling
from gradrank.objectives import BoundObjective, Objective
from gradrank.objectives.tiers import PairFacts

# Scores beyond this are no ranking any more: λ's are bounded, so only a rate that is far too high leads there.
_LARGEST_SCORE = 1e9
_LOWER_RATE = 0.1
_MOST_EXPLOSIONS = 8
_ROWS_AT_ONCE = 65536


class Exploded(Exception):
    """Scores are infinite or beyond all measure: the learning rate is too high."""


@dataclass
class NetState:
    """All that changes while a net learns; what a checkpoint keeps."""

    epoch: int = 0
    """Epochs made, over all rates."""
    run: int = 0
    """Number of the learning rate at work."""
    run_start: int = 0
    """Epochs made before this rate."""
    start: int = 0
    """Epochs made before the last random start."""
    starts: int = 0
    """Random starts so far."""
    explosions: int = 0
    rate: float = 0.0
    weights: Weights = field(default_factory=dict)
    optimiser: dict[str, Any] = field(default_factory=dict)
    best: int = 0
    best_weights: Weights = field(default_factory=dict)
    curves: Curves = field(default_factory=dict)
    pairs: list[int] = field(default_factory=list)
    """Effective pairs of each epoch; −1 if the objective knows no pairs."""
    rates: list[float] = field(default_factory=list)
    """Learning rate of each epoch."""
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class TrainedNet:
    """The outcome: the state at the end, how long it took, and the pairs of each label source."""

    state: NetState
    seconds: float
    interrupted: bool
    pairs: tuple[PairFacts, ...] = ()


class Batches:
    """The training data in batches of queries, scaled and bound to the objective once, shuffled in order each epoch.

    Which queries share a batch is drawn once. Documents are not padded: a batch is as long as its queries.
    """

    def __init__(
        self, train: RankingData, objective: Objective, scaling: Scaling, settings: NetSettings, device: torch.device
    ) -> None:
        size = train.n_queries if settings.batch == "full" else min(settings.batch, train.n_queries)
        queries = chance(settings.seed, FOR_BATCHES).permutation(train.n_queries)
        if settings.batch == "full":
            queries = np.arange(train.n_queries)
        # Objectives look at labels only: the features need not be copied for each batch.
        bare = without_features(train)
        self.bound: list[BoundObjective] = []
        self.features: list[torch.Tensor] = []
        self.sizes: list[int] = []
        for first in range(0, train.n_queries, size):
            chosen = queries[first : first + size]
            part = bare.take_queries(chosen)
            self.bound.append(objective.bind(part, seed=settings.seed + first, threads=settings.threads))
            self.features.append(torch.from_numpy(_scaled(train, chosen, scaling)).to(device))
            self.sizes.append(part.n_queries)
        self._settings = settings

    def order(self, epoch: int) -> NDArray[np.int64]:
        """The batches of an epoch, in their order."""
        return chance(self._settings.seed, FOR_ORDER, epoch).permutation(len(self.bound))


def without_features(data: RankingData) -> RankingData:
    """The queries and labels alone, without a copy."""
    return replace(data, X=np.empty((data.n_docs, 0), dtype=np.float32), feature_names=(), rows=None)


def _scaled(train: RankingData, queries: NDArray[np.int64], scaling: Scaling) -> NDArray[np.float32]:
    sizes = train.sizes[queries]
    ends = np.cumsum(sizes)
    rows = np.arange(ends[-1]) + np.repeat(train.indptr[queries] - (ends - sizes), sizes)
    out = np.empty((len(rows), train.n_features), dtype=np.float32)
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        part = rows[first : first + _ROWS_AT_ONCE]
        out[first : first + _ROWS_AT_ONCE] = scaling.apply(train.X[part])
    return out


class NetTrainer:
    """A net, its batches, and its optimiser; one call an epoch."""

    def __init__(
        self,
        net: torch.nn.Module,
        restarted: Callable[[int], None],
        batches: Batches,
        settings: NetSettings,
    ) -> None:
        self.net = net
        self._restarted = restarted
        self._batches = batches
        self._settings = settings
        self._optimiser = self._new_optimiser(settings.rates[0])

    def _new_optimiser(self, rate: float) -> torch.optim.Optimizer:
        parameters = [value for value in self.net.parameters() if value.requires_grad]
        if self._settings.optimiser == "adam":
            options = {"lr": rate, "weight_decay": self._settings.weight_decay}
            try:
                # All weights in one call: nets are small, and the calls would take longer than the work.
                return torch.optim.AdamW(parameters, fused=True, **options)
            except RuntimeError:
                # Older versions of PyTorch, and some devices, do without.
                return torch.optim.AdamW(parameters, **options)
        return torch.optim.SGD(parameters, lr=rate, weight_decay=self._settings.weight_decay)

    def start(self, number: int, rate: float) -> None:
        """New random weights."""
        self._restarted(number)
        self._optimiser = self._new_optimiser(rate)

    def set_rate(self, rate: float) -> None:
        """Go on with another learning rate."""
        for group in self._optimiser.param_groups:
            group["lr"] = rate

    def epoch(self, number: int) -> int:
        """Learn from every batch once; returns the number of effective pairs (−1 if not known)."""
        torch.manual_seed(int(chance(self._settings.seed, FOR_LAYERS, number).integers(2**62)))
        self.net.train()
        pairs = 0
        for at in self._batches.order(number):
            # Adam takes steps of a set length; for the others the gradient is the sum over the batch, as in the paper.
            share = 1.0 / self._batches.sizes[at] if self._settings.optimiser == "adam" else 1.0
            pairs = _plus(pairs, self._step(self._batches.bound[at], self._batches.features[at], share, number))
        return pairs

    def _step(self, bound: BoundObjective, features: torch.Tensor, share: float, number: int) -> int:
        scores = scores_of(self.net, features)
        now = scores.detach().cpu().numpy().astype(np.float64)
        if not (np.abs(now) <= _LARGEST_SCORE).all():
            raise Exploded
        gradients = bound.gradients(now, number, count_pairs=True)
        self._optimiser.zero_grad(set_to_none=True)
        # The cost falls along +λ, so −λ is its gradient.
        scores.backward(torch.from_numpy(gradients.lambdas * np.float32(-share)).to(scores))
        self._optimiser.step()
        return gradients.effective_pairs

    def save_to(self, state: NetState) -> None:
        """Put weights and optimiser into a state."""
        state.weights, state.optimiser = copied(self.net), self._optimiser.state_dict()

    def go_on_from(self, state: NetState) -> None:
        """Take weights and optimiser from a state."""
        self.net.load_state_dict(state.weights)
        self._optimiser = self._new_optimiser(state.rate)
        self._optimiser.load_state_dict(state.optimiser)


def _plus(total: int, more: int) -> int:
    return -1 if more < 0 or total < 0 else total + more


def train_net(
    trainer: NetTrainer,
    ranker: Callable[[Weights], Ranker],
    train: RankingData,
    objective: Objective,
    settings: NetSettings,
    *,
    valid: Mapping[str, RankingData],
    measures: Sequence[AnyMeasure],
    state: NetState | None = None,
    callbacks: Sequence[Callback] = (),
    keep: Callable[[NetState, NetTrainer], None] | None = None,
) -> TrainedNet:
    """Train until all epochs of all rates are made or nothing improves; ``keep`` may write the state to disk."""
    check_labels(train, objective)
    pairs = announced_pairs(objective.bind(without_features(train), threads=settings.threads), train, callbacks)
    if len(settings.rates) > 1 and not valid:
        raise TrainingError("several learning rates need validation data to choose from: give one rate, or valid=…")
    watched = {"train": train, **valid} if settings.train_measure else dict(valid)
    watch = Watch(watched, measures, first=next(iter(valid)) if valid else None, threads=settings.threads)
    run = _Run(trainer, ranker, watched, watch, settings, state or NetState(curves=watch.empty_curves()))
    began = time.perf_counter()
    interrupted = False
    total = settings.epochs * len(settings.rates)
    if state is not None:
        trainer.go_on_from(state)
    try:
        while run.goes_on():
            values = run.advance()
            now = run.state
            told = Step(now.epoch, total, values, now.best, time.perf_counter() - began, unit="epoch", note=run.note)
            if keep is not None:
                keep(now, trainer)
            for callback in callbacks:
                callback(told)
    except KeyboardInterrupt:
        # What has been learned so far is worth keeping; the caller says that training was cut short.
        if not run.state.epoch:
            raise
        interrupted = True
        run.cut_back()
    return TrainedNet(run.state, time.perf_counter() - began, interrupted, pairs)


class _Run:
    """The course of a training: when a rate is left, when weights are drawn anew, which epoch is best."""

    def __init__(
        self,
        trainer: NetTrainer,
        ranker: Callable[[Weights], Ranker],
        watched: Mapping[str, RankingData],
        watch: Watch,
        settings: NetSettings,
        state: NetState,
    ) -> None:
        self._trainer = trainer
        self._ranker = ranker
        self._watched = watched
        self._watch = watch
        self._settings = settings
        self.state = state
        self.note = ""

    def goes_on(self) -> bool:
        """Whether there is an epoch to make; goes to the next learning rate, or starts anew, where that is due."""
        self.note = ""
        state, settings = self.state, self._settings
        if state.starts == 0:
            self._begin(0)
            return True
        done = state.epoch - state.run_start >= settings.epochs
        stuck = settings.early_stopping is not None and self._still(state.run_start) >= settings.early_stopping
        if done or stuck:
            if state.run + 1 >= len(settings.rates):
                return False
            self._begin(state.run + 1)
        elif settings.restart is not None and self._still(state.start) >= settings.restart:
            self.note = f"no new best for {settings.restart} epochs: started from new random weights"
            self._start(settings.rates[state.run])
        return True

    def _begin(self, run: int) -> None:
        state = self.state
        state.run, state.run_start, state.explosions = run, state.epoch, 0
        self._start(self._settings.rates[run])

    def _start(self, rate: float) -> None:
        state = self.state
        state.rate, state.start = rate, state.epoch
        self._trainer.start(state.starts, rate)
        state.starts += 1

    def _still(self, since: int) -> int:
        """Epochs without a new best, looking only at those after ``since``."""
        state = self.state
        if not self._watch.decides or state.epoch <= since:
            return 0
        recent = {name: {m: curve[since:] for m, curve in per.items()} for name, per in state.curves.items()}
        return state.epoch - since - self._watch.best(recent)

    def advance(self) -> dict[str, dict[str, float]]:
        """One epoch: learn, evaluate, remember the best."""
        state = self.state
        while True:
            try:
                pairs = self._trainer.epoch(state.epoch)
                weights = copied(self._trainer.net)
                scores = self._scores(weights)
                break
            except Exploded:
                self._after_explosion()
        values = self._watch.record(state.curves, scores)
        best = self._watch.best(state.curves) if self._watch.decides else state.epoch + 1
        state.pairs.append(pairs)
        state.rates.append(state.rate)
        kept = weights if best == state.epoch + 1 else state.best_weights
        # Together, so that Ctrl-C does not come between them.
        state.best_weights, state.best, state.epoch = kept, best, state.epoch + 1
        self._decay()
        if self.note:
            state.notes.append(f"epoch {state.epoch}: {self.note}")
        return values

    def _scores(self, weights: Weights) -> dict[str, NDArray[np.float64]]:
        if not all(bool(torch.isfinite(value).all()) for value in weights.values() if value.is_floating_point()):
            raise Exploded
        ranker = self._ranker(weights)
        return {name: ranker.score(data, threads=self._settings.threads) for name, data in self._watched.items()}

    def _after_explosion(self) -> None:
        state = self.state
        state.explosions += 1
        if state.explosions > _MOST_EXPLOSIONS:
            raise TrainingError(
                f"scores grow beyond all bounds even at learning rate {state.rate:g}: the features or labels are out "
                "of all proportion"
            )
        lower = state.rate * _LOWER_RATE
        said = f"scores exploded at learning rate {state.rate:g}: started anew at {lower:g}"
        self.note = f"{self.note}; {said}" if self.note else said
        self._start(lower)

    def _decay(self) -> None:
        """Donmez et al.'s schedule: a lower rate, by chance, after a fall on the training data."""
        state, settings = self.state, self._settings
        if settings.decays and state.epoch - state.start > 1:
            curve = next(iter(state.curves["train"].values()))
            fell = curve[-1] < curve[-2]
            if fell and chance(settings.seed, FOR_DECAY, state.epoch).random() < DONMEZ_CHANCE:
                state.rate *= DONMEZ_DECAY
                self._trainer.set_rate(state.rate)

    def cut_back(self) -> None:
        """Forget an epoch that was not finished."""
        state = self.state
        state.curves = {name: {m: c[: state.epoch] for m, c in per.items()} for name, per in state.curves.items()}
        state.pairs, state.rates = state.pairs[: state.epoch], state.rates[: state.epoch]

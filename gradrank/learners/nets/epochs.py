"""The course of a training, epoch by epoch: learning rates, random starts, and the measures that choose the best."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.monitor import Watch
from gradrank.learners.nets.settings import DONMEZ_CHANCE, DONMEZ_DECAY, SETTLED, SETTLING, NetSettings
from gradrank.learners.nets.torch_nets import FOR_DECAY, Weights, chance, copied
from gradrank.learners.nets.training import Exploded, NetState, NetTrainer, TrainedNet, without_features
from gradrank.learners.trees.boosting import Callback, Step, announced_pairs, check_labels
from gradrank.measures import AnyMeasure
from gradrank.models.ranker import Ranker
from gradrank.objectives import Objective

_LOWER_RATE = 0.1
_MOST_EXPLOSIONS = 8


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
    pairs = announced_pairs(objective.bind(without_features(train), n_jobs=settings.n_jobs), train, callbacks)
    if len(settings.rates) > 1 and not valid:
        raise TrainingError("several learning rates need validation data to choose from: give one rate, or valid=…")
    watched = {"train": train, **valid} if settings.train_measure else dict(valid)
    watch = Watch(watched, measures, first=next(iter(valid)) if valid else None, n_jobs=settings.n_jobs)
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
        if done or stuck or self._settled():
            if state.run + 1 >= len(settings.rates):
                return False
            self._begin(state.run + 1)
        elif settings.restart is not None and self._still(state.start) >= settings.restart:
            self.note = f"no new best for {settings.restart} epochs: started from new random weights"
            self._start(settings.rates[state.run])
        return True

    def _settled(self) -> bool:
        """Whether the rate has fallen so far that nothing moves any more."""
        state = self.state
        started = state.epoch > state.start
        return self._settings.settles and started and state.rate < SETTLED * state.rates[state.start]

    def _begin(self, run: int) -> None:
        state = self.state
        state.run, state.run_start, state.explosions = run, state.epoch, 0
        self._start(self._settings.rates[run])

    def _start(self, rate: float) -> None:
        state = self.state
        state.rate, state.start, state.loss = rate, state.epoch, None
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
        return {name: ranker.grouped_scores(data, n_jobs=self._settings.n_jobs) for name, data in self._watched.items()}

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
        """A lower rate after a loss that did not fall, or, by chance, a measure that fell (Donmez et al.)."""
        state, settings = self.state, self._settings
        if settings.settles:
            loss = self._trainer.loss
            if state.loss is not None and loss >= state.loss:
                state.rate *= SETTLING
                self._trainer.set_rate(state.rate)
            state.loss = loss
        if settings.decays and state.epoch - state.start > 1:
            curve = next(iter(state.curves["train"].values()))
            fell = curve[-1] < curve[-2]
            if fell and chance(settings.random_state, FOR_DECAY, state.epoch).random() < DONMEZ_CHANCE:
                state.rate *= DONMEZ_DECAY
                self._trainer.set_rate(state.rate)

    def cut_back(self) -> None:
        """Forget an epoch that was not finished."""
        state = self.state
        state.curves = {name: {m: c[: state.epoch] for m, c in per.items()} for name, per in state.curves.items()}
        state.pairs, state.rates = state.pairs[: state.epoch], state.rates[: state.epoch]

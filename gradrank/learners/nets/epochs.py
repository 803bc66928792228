"""The epochs of a net as a course: learning rates, random starts, and the weights of the best epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.loop import Record, ResumableCourse
from gradrank.learners.base.monitor import Monitor
from gradrank.learners.nets.settings import DONMEZ_CHANCE, DONMEZ_DECAY, SETTLED, SETTLING, NetSettings
from gradrank.learners.nets.torch_nets import FOR_DECAY, Weights, chance, copied
from gradrank.learners.nets.training import Exploded, NetState, NetTrainer
from gradrank.models.nets.tensor_file import read_tensor_bytes, tensor_bytes
from gradrank.models.ranker import Ranker, plain

_LOWER_RATE = 0.1
_MOST_EXPLOSIONS = 8
_TENSORS = ("weights", "best_weights", "optimizer")
_PLAIN = tuple(item.name for item in fields(NetState) if item.name not in _TENSORS)


class EpochCourse(ResumableCourse):
    """When a rate is left, when weights are drawn anew, and which epoch's weights are set aside.

    Parameters
    ----------
    trainer
        Makes an epoch.
    ranker
        The ranker of given weights.
    watched
        The data sets whose measures are recorded.
    settings
        How the net is trained.
    """

    unit: ClassVar[str] = "epoch"

    def __init__(
        self,
        trainer: NetTrainer,
        ranker: Callable[[Weights], Ranker],
        watched: Mapping[str, RankingData],
        settings: NetSettings,
    ) -> None:
        self._trainer = trainer
        self._ranker = ranker
        self._watched = watched
        self._settings = settings
        self.total = settings.epochs * len(settings.rates)
        self.state = NetState()
        self._note = ""
        self._weights: Weights = {}
        self._scores: dict[str, NDArray[np.float64]] = {}

    # ------------------------------------------------------------------ between epochs
    def goes_on(self, record: Record, monitor: Monitor) -> bool:
        """See Course.goes_on; goes to the next learning rate, or starts anew, where that is due."""
        self._note = ""
        state, settings = self.state, self._settings
        if state.starts == 0:
            self._begin(0, record.steps)
            return True
        self._lower_rate(record)
        done = record.steps - state.run_start >= settings.epochs
        waited = _waited(record, monitor, state.run_start)
        stuck = settings.patience is not None and waited >= settings.patience
        if done or stuck or self._settled(record):
            if state.run + 1 >= len(settings.rates):
                return False
            self._begin(state.run + 1, record.steps)
        elif settings.restart is not None and _waited(record, monitor, state.start) >= settings.restart:
            self._note = f"no new best for {settings.restart} epochs: started from new random weights"
            self._start(settings.rates[state.run], record.steps)
        return True

    def _settled(self, record: Record) -> bool:
        """Whether the rate has fallen so far that nothing moves any more."""
        state = self.state
        started = record.steps > state.start
        return self._settings.settles and started and state.rate < SETTLED * state.rates[state.start]

    def _begin(self, run: int, epoch: int) -> None:
        state = self.state
        state.run, state.run_start, state.explosions = run, epoch, 0
        self._start(self._settings.rates[run], epoch)

    def _start(self, rate: float, epoch: int) -> None:
        state = self.state
        state.rate, state.start, state.loss = rate, epoch, None
        self._trainer.start(state.starts, rate)
        state.starts += 1

    # ------------------------------------------------------------------ one epoch
    def advance(self, step: int) -> bool:
        """See Course.advance."""
        state = self.state
        while True:
            try:
                pairs = self._trainer.epoch(step)
                self._weights = copied(self._trainer.net)
                self._scores = self._scored(self._weights)
                break
            except Exploded:
                self._after_explosion(step)
        # An epoch that was cut short leaves nothing behind.
        state.pairs[step:], state.rates[step:] = [pairs], [state.rate]
        if self._note:
            state.notes.append(f"epoch {step + 1}: {self._note}")
        return True

    def scores(self) -> Mapping[str, NDArray[np.float64]]:
        """See Course.scores."""
        return self._scores

    def keep(self, best: bool) -> None:
        """See Course.keep."""
        if best:
            self.state.best_weights = self._weights

    def note(self) -> str:
        """See Course.note."""
        return self._note

    def _scored(self, weights: Weights) -> dict[str, NDArray[np.float64]]:
        if not all(bool(torch.isfinite(value).all()) for value in weights.values() if value.is_floating_point()):
            raise Exploded
        ranker = self._ranker(weights)
        return {name: ranker.grouped_scores(data, n_jobs=self._settings.n_jobs) for name, data in self._watched.items()}

    def _after_explosion(self, epoch: int) -> None:
        state = self.state
        state.explosions += 1
        if state.explosions > _MOST_EXPLOSIONS:
            raise TrainingError(
                f"scores grow beyond all bounds even at learning rate {state.rate:g}: the features or labels are out "
                "of all proportion"
            )
        lower = state.rate * _LOWER_RATE
        said = f"scores exploded at learning rate {state.rate:g}: started anew at {lower:g}"
        self._note = f"{self._note}; {said}" if self._note else said
        self._start(lower, epoch)

    def _lower_rate(self, record: Record) -> None:
        """A lower rate after a loss that did not fall, or, by chance, a measure that fell (Donmez et al.)."""
        state, settings = self.state, self._settings
        if settings.settles and record.steps > state.start:
            loss = self._trainer.loss
            if state.loss is not None and loss >= state.loss:
                state.rate *= SETTLING
                self._trainer.set_rate(state.rate)
            state.loss = loss
        if settings.decays and record.steps - state.start > 1:
            curve = next(iter(record.curves["train"].values()))
            fell = curve[-1] < curve[-2]
            if fell and chance(settings.random_state, FOR_DECAY, record.steps).random() < DONMEZ_CHANCE:
                state.rate *= DONMEZ_DECAY
                self._trainer.set_rate(state.rate)

    # ------------------------------------------------------------------ the state on disk
    def pack(self, manifest: dict[str, Any]) -> bytes:
        """See ResumableCourse.pack."""
        state = self.state
        self._trainer.save_to(state)
        tensors = {f"now.{name}": value.numpy() for name, value in state.weights.items()}
        tensors |= {f"best.{name}": value.numpy() for name, value in state.best_weights.items()}
        for number, values in state.optimizer["state"].items():
            tensors |= {
                f"optimizer.{number}.{name}": _array(value) for name, value in values.items() if value is not None
            }
        kept = {
            "state": plain({name: getattr(state, name) for name in _PLAIN}),
            "groups": plain(state.optimizer["param_groups"]),
            "loss_of_epoch": self._trainer.loss,
        }
        return tensor_bytes({**manifest, **kept}, tensors)

    def unpack(self, content: bytes) -> tuple[dict[str, Any], tuple[NetState, float]]:
        """See ResumableCourse.unpack."""
        manifest, tensors = read_tensor_bytes(content)
        state = NetState(**manifest["state"])
        state.weights, state.best_weights = _part(tensors, "now."), _part(tensors, "best.")
        state.optimizer = _optimizer_of(manifest["groups"], tensors)
        return dict(manifest), (state, float(manifest["loss_of_epoch"]))

    def take_over(self, state: tuple[NetState, float]) -> None:
        """See ResumableCourse.take_over."""
        self.state, self._trainer.loss = state
        self._trainer.go_on_from(self.state)


def _waited(record: Record, monitor: Monitor, since: int) -> int:
    """Epochs without a new best, looking only at those after ``since``."""
    if not monitor.decides or record.steps <= since:
        return 0
    return record.steps - since - monitor.best(record.curves, since)


def _array(value: Any) -> NDArray[Any]:
    return value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)


def _part(tensors: Mapping[str, NDArray[Any]], start: str) -> dict[str, torch.Tensor]:
    return {
        name.removeprefix(start): torch.from_numpy(np.array(value))
        for name, value in tensors.items()
        if name.startswith(start)
    }


def _optimizer_of(groups: list[dict[str, Any]], tensors: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    state: dict[int, dict[str, torch.Tensor]] = {}
    for name, value in _part(tensors, "optimizer.").items():
        number, _, key = name.partition(".")
        state.setdefault(int(number), {})[key] = value
    return {"state": state, "param_groups": groups}

"""One epoch of a net: batches of queries, λ's of the scores, a step of the optimizer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.something_to_learn import check_gradients
from gradrank.learners.nets.settings import NetSettings
from gradrank.learners.nets.torch_nets import FOR_BATCHES, FOR_LAYERS, FOR_ORDER, Weights, chance, copied
from gradrank.learners.nets.towers import TwoTowers
from gradrank.models.nets.module import scores_of
from gradrank.models.nets.scaling import Scaling
from gradrank.objectives import BoundObjective, Objective

# Scores beyond this are no ranking any more: λ's are bounded, so only a rate that is far too high leads there.
_LARGEST_SCORE = 1e9
_ROWS_AT_ONCE = 65536


class Exploded(Exception):
    """Scores are infinite or beyond all measure: the learning rate is too high."""


@dataclass
class NetState:
    """All that changes while a net learns, besides the record of the loop; what a checkpoint keeps."""

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
    optimizer: dict[str, Any] = field(default_factory=dict)
    best_weights: Weights = field(default_factory=dict)
    pairs: list[int] = field(default_factory=list)
    """Effective pairs of each epoch; −1 if the objective knows no pairs."""
    rates: list[float] = field(default_factory=list)
    """Learning rate of each epoch."""
    loss: float | None = None
    """Loss of the last epoch since the last start, where the rate goes by it."""
    notes: list[str] = field(default_factory=list)


class Batches:
    """The training data in batches of queries, scaled and bound to the objective once, shuffled in order each epoch.

    Which queries share a batch is drawn once. Documents are not padded: a batch is as long as its queries. Places of
    positions, if there are any, stand behind the features, where :class:`~gradrank.learners.nets.towers.TwoTowers`
    finds them.
    """

    def __init__(
        self,
        train: RankingData,
        objective: Objective,
        scaling: Scaling,
        settings: NetSettings,
        device: torch.device,
        places: NDArray[np.int64] | None = None,
    ) -> None:
        size = train.n_queries if settings.batch_size == "full" else min(settings.batch_size, train.n_queries)
        queries = chance(settings.random_state, FOR_BATCHES).permutation(train.n_queries)
        if settings.batch_size == "full":
            queries = np.arange(train.n_queries)
        # Objectives look at labels only: the features need not be copied for each batch.
        bare = without_features(train)
        self.bound: list[BoundObjective] = []
        self.features: list[torch.Tensor] = []
        self.sizes: list[int] = []
        for first in range(0, train.n_queries, size):
            chosen = queries[first : first + size]
            part = bare.take_queries(chosen)
            self.bound.append(objective.bind(part, random_state=settings.random_state + first, n_jobs=settings.n_jobs))
            self.features.append(torch.from_numpy(_scaled(train, chosen, scaling, places)).to(device))
            self.sizes.append(part.n_queries)
        self._settings = settings

    def order(self, epoch: int) -> NDArray[np.int64]:
        """The batches of an epoch, in their order."""
        return chance(self._settings.random_state, FOR_ORDER, epoch).permutation(len(self.bound))


def without_features(data: RankingData) -> RankingData:
    """The queries and labels alone, without a copy."""
    return replace(data, X=np.empty((data.n_docs, 0), dtype=np.float32), feature_names=(), rows=None)


def _scaled(
    train: RankingData, queries: NDArray[np.int64], scaling: Scaling, places: NDArray[np.int64] | None
) -> NDArray[np.float32]:
    sizes = train.sizes[queries]
    ends = np.cumsum(sizes)
    rows = np.arange(ends[-1]) + np.repeat(train.indptr[queries] - (ends - sizes), sizes)
    out = np.empty((len(rows), train.n_features + (places is not None)), dtype=np.float32)
    if places is not None:
        out[:, -1] = places[rows]
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        part = rows[first : first + _ROWS_AT_ONCE]
        out[first : first + _ROWS_AT_ONCE, : train.n_features] = scaling.apply(train.X[part])
    return out


class NetTrainer:
    """A net, its batches, and its optimizer; one call per epoch."""

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
        self._optimizer = self._new_optimizer(settings.rates[0])
        self.loss, self._pushed = 0.0, False
        """Sum of the last epoch's losses, each before its batch's step; known only if the rate goes by it."""

    def _new_optimizer(self, rate: float) -> torch.optim.Optimizer:
        towers = self.net if isinstance(self.net, TwoTowers) else None
        learned = self.net if towers is None else towers.relevance
        parameters: list[dict[str, Any]] = [
            {"params": [value for value in learned.parameters() if value.requires_grad]}
        ]
        if towers is not None:
            # Terms of positions are what they are: a pull towards 0 would leave some of the bias to the other tower.
            parameters.append({"params": [towers.terms], "weight_decay": 0.0})
        if self._settings.optimizer == "adam":
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
        self._optimizer = self._new_optimizer(rate)

    def set_rate(self, rate: float) -> None:
        """Go on with another learning rate."""
        for group in self._optimizer.param_groups:
            group["lr"] = rate

    def epoch(self, number: int) -> int:
        """Learn from every batch once; returns the number of effective pairs (−1 if not known)."""
        torch.manual_seed(int(chance(self._settings.random_state, FOR_LAYERS, number).integers(2**62)))
        self.net.train()
        self.loss, self._pushed = 0.0, False
        pairs = 0
        for at in self._batches.order(number):
            # Adam takes steps of a set length; for the others the gradient is the sum over the batch, as in the paper.
            share = 1.0 / self._batches.sizes[at] if self._settings.optimizer == "adam" else 1.0
            pairs = _plus(pairs, self._step(self._batches.bound[at], self._batches.features[at], share, number))
        if number == 0 and not self._pushed:
            raise TrainingError(
                "there is nothing to learn: every λ of the training data is 0; look at labels and weights"
            )
        return pairs

    def _step(self, bound: BoundObjective, features: torch.Tensor, share: float, number: int) -> int:
        scores = scores_of(self.net, features)
        now = scores.detach().cpu().numpy().astype(np.float64)
        if not (np.abs(now) <= _LARGEST_SCORE).all():
            raise Exploded
        if self._settings.settles:
            self.loss += bound.loss(now) or 0.0
        gradients = bound.gradients(now, number, count_pairs=True)
        self._pushed |= check_gradients(gradients.lambdas, gradients.rhos, max(number, 1))
        self._optimizer.zero_grad(set_to_none=True)
        # The cost falls along +λ, so −λ is its gradient.
        scores.backward(torch.from_numpy(gradients.lambdas * np.float32(-share)).to(scores))
        self._optimizer.step()
        return gradients.effective_pairs

    def save_to(self, state: NetState) -> None:
        """Put weights and optimizer into a state."""
        state.weights, state.optimizer = copied(self.net), self._optimizer.state_dict()

    def go_on_from(self, state: NetState) -> None:
        """Take weights and optimizer from a state."""
        self.net.load_state_dict(state.weights)
        self._optimizer = self._new_optimizer(state.rate)
        self._optimizer.load_state_dict(state.optimizer)


def _plus(total: int, more: int) -> int:
    return -1 if more < 0 or total < 0 else total + more

"""What the learners of nets share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from gradrank.data.ranking_data import RankingData
from gradrank.errors import MissingExtraError, TrainingError
from gradrank.learners.base.checkpoint import fingerprint
from gradrank.learners.base.estimator import RankingEstimator, as_measure
from gradrank.learners.base.training_facts import package_versions, training_facts
from gradrank.learners.nets.settings import NetSettings, net_settings, spelt_hidden
from gradrank.learners.trees.boosting import Boosted, Callback
from gradrank.measures import NDCG, AnyMeasure
from gradrank.models.nets.scaling import Scaling
from gradrank.models.ranker import Ranker
from gradrank.objectives import Objective, parse_objective

if TYPE_CHECKING:
    import torch

    from gradrank.learners.nets.training import TrainedNet

# Parameters that may differ when a checkpoint is continued, or that the state speaks of by itself.
_NOT_OF_THE_RUN = ("epochs", "n_jobs", "checkpoint", "checkpoint_every", "callbacks", "module", "device")


class NetLearner(RankingEstimator):
    """Scoring nets trained with the λ's of any objective: ∂cost/∂score = −λ goes backwards through the net.

    hidden
        nodes of the hidden layer (10 as in Donmez et al. 2009), 0 for a linear net (the ranker is then a
        LinearRanker), several layers as ``"64,32"`` or ``(64, 32)``
    activation
        of the hidden nodes: ``relu``, or ``tanh``, with which scores are smooth functions of the weights
    scaling
        of the features, learned from the training data and part of the ranker: ``standard`` (mean 0, deviation 1),
        ``log`` (the same of sign(x)·log(1 + |x|), for features with long tails) or ``none``; a missing value counts
        as the mean, a feature that is constant in training counts as 0
    module
        a ``torch.nn.Module`` of your own that gives one number a row, or a function from the number of features to
        such a module; ``hidden`` and ``activation`` are then not used
    optimizer
        ``adam`` (AdamW); ``sgd``; or ``donmez``: SGD with the schedule of Donmez et al. 2009 — rates 1e-7…1e-3 tried on
        the validation data, 700 epochs each, new random weights after 50 epochs without a new best, rate × 0.8
        with probability 0.3 after an epoch in which the measure fell on the training data
    rate, rates
        one learning rate, or several of which the validation data chooses; with ``adam``, a linear net and a convex
        cost it is halved after each epoch whose loss did not fall, and training ends when nothing moves any more
    batch
        queries a step, or ``"full"``; which queries share a batch is drawn once, their order each epoch
    weight_decay
        pulls weights towards 0: each step takes away rate·weight_decay of them (``adam``), or adds weight_decay·w to
        the gradient; 0.1 for ``adam``, else 0
    restart
        start from new random weights after so many epochs without a new best since the last start; 0 = never
    early_stopping
        leave a learning rate after so many epochs without a new best; None = make all epochs, then choose
    device
        ``auto`` (CUDA where there is one), ``cpu`` or ``cuda``

    A linear net with a convex cost (RankNet, ListNet, ListMLE, Focused, regression) has one minimum and starts from
    weights 0, unless ``restart`` asks for random ones; all others start at random.

    The model is that of the epoch with the best ``measure`` on the validation data, the last one without such data.
    Scores beyond all bounds mean that the rate is far too high: training says so and starts anew at a tenth of it.
    PyTorch works on one thread, so that the result does not depend on their number; λ's use ``n_jobs``.
    """

    unit: ClassVar[str] = "epoch"
    default_objective: ClassVar[str] = "NDCG@10"
    trained_: TrainedNet
    """The record of the training."""

    def __init__(
        self,
        objective: str | Objective | None = None,
        *,
        measure: str | AnyMeasure | None = None,
        hidden: int | str | Sequence[int] = 10,
        activation: str = "relu",
        scaling: str = "standard",
        module: torch.nn.Module | Callable[[int], torch.nn.Module] | None = None,
        epochs: int | None = None,
        rate: float | None = None,
        rates: str | Sequence[float] | None = None,
        batch: int | str = 32,
        optimizer: str = "adam",
        weight_decay: float | None = None,
        restart: int | None = None,
        early_stopping: int | None = None,
        device: str = "auto",
        random_state: int = 0,
        n_jobs: int | None = None,
        train_measure: bool = False,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 10,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.objective = objective
        self.measure = measure
        self.hidden = hidden
        self.activation = activation
        self.scaling = scaling
        self.module = module
        self.epochs = epochs
        self.rate = rate
        self.rates = rates
        self.batch = batch
        self.optimizer = optimizer
        self.weight_decay = weight_decay
        self.restart = restart
        self.early_stopping = early_stopping
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.train_measure = train_measure
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.callbacks = callbacks

    # ------------------------------------------------------------------ what the names mean
    def _objective(self) -> Objective:
        given = self.default_objective if self.objective is None else self.objective
        return parse_objective(given) if isinstance(given, str) else given

    def _measure(self) -> AnyMeasure:
        if self.measure is not None:
            return as_measure(self.measure)
        return self._objective().measure or NDCG(10)

    def _chosen(self) -> dict[str, Any]:
        settings = net_settings(self)
        several = len(settings.rates) > 1
        return {
            **super()._chosen(),
            "hidden": spelt_hidden(settings.hidden),
            "epochs": settings.epochs,
            "rate": None if several else settings.rates[0],
            "rates": ",".join(f"{rate:g}" for rate in settings.rates) if several else None,
            "batch": settings.batch,
            "weight_decay": settings.weight_decay,
            "restart": settings.restart or 0,
        }

    # ------------------------------------------------------------------ training
    def _fit(self, train: RankingData, valid: Mapping[str, RankingData]) -> Ranker:
        # Only here is PyTorch needed.
        try:
            import torch  # noqa: F401
        except ImportError:
            raise MissingExtraError("torch", "nets") from None
        from gradrank.learners.nets.fitting import fit_net

        objective, settings = self._objective(), net_settings(self)
        scaling = Scaling.learned(train.X, settings.scaling)
        run = self._run_facts(settings, train, valid)
        self.trained_, ranker = fit_net(self, train, valid, objective, settings, scaling, run)
        ranker.remember(**self._facts(objective, train))
        return ranker

    def _facts(self, objective: Objective, train: RankingData) -> dict[str, Any]:
        trained = self.trained_
        state = trained.state
        record = Boosted(
            ((),) * state.epoch, state.best, 0.0, state.curves, trained.seconds, interrupted=trained.interrupted
        )
        facts = training_facts(self, train, str(objective), str(self._measure()), record)
        facts["parameters"] = {**facts["parameters"], "module": None if self.module is None else str(self.module)}
        facts["rates"] = state.rates
        if trained.pairs:
            facts["pairs"] = [asdict(fact) for fact in trained.pairs]
        if state.pairs and min(state.pairs) >= 0:
            name = str(objective if objective.measure is None else objective.measure)
            facts["effective_pairs"] = {name: state.pairs}
        if state.notes:
            facts["notes"] = state.notes
        facts["versions"] = {**facts["versions"], **package_versions("torch")}
        facts["versions"].pop("lightgbm", None)
        return facts

    def _run_facts(self, settings: NetSettings, train: RankingData, valid: Mapping[str, RankingData]) -> dict[str, Any]:
        """What must be the same for a checkpoint to be continued; with one rate more epochs may be asked for."""
        facts = {
            name: value
            for name, value in {**self.get_params(deep=False), **self._chosen()}.items()
            if name not in _NOT_OF_THE_RUN
        }
        if len(settings.rates) > 1:
            facts["epochs"] = settings.epochs
        facts["objective"], facts["measure"] = str(self._objective()), str(self._measure())
        facts["data"] = [fingerprint(data.X, *data.labels.values()) for data in (train, *valid.values())]
        return facts

    def _check_checkpoint_every(self) -> int:
        if self.checkpoint_every < 1:
            raise TrainingError(f"checkpoint_every is {self.checkpoint_every!r}, expected 1 or more")
        return self.checkpoint_every

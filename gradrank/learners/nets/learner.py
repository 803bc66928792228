"""What the learners of nets share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from gradrank.data.ranking_data import RankingData
from gradrank.errors import MissingExtraError, TrainingError
from gradrank.learners.base.common_parameters import ObjectiveParameters
from gradrank.learners.base.estimator import RankingEstimator
from gradrank.learners.base.fingerprint import data_fingerprint
from gradrank.learners.base.loop import Callback
from gradrank.learners.base.parameters import fitted
from gradrank.learners.base.training_facts import training_facts
from gradrank.learners.nets.parameters import NetParameters
from gradrank.learners.nets.settings import NetSettings, net_settings, spelt_hidden
from gradrank.measures import NDCG, AnyMeasure, as_measure
from gradrank.models.ranker import Ranker
from gradrank.objectives import Objective, as_objective

if TYPE_CHECKING:
    from gradrank.learners.nets.training import NetState

# Parameters that may differ when a checkpoint is continued, or that the state speaks of by itself.
_NOT_OF_THE_RUN = (
    "epochs", "n_jobs", "checkpoint", "checkpoint_every", "callbacks", "module", "device", "verbose",
)  # fmt: skip


class NetLearner(NetParameters, RankingEstimator):
    """Scoring nets trained with the λ's of any objective: ∂cost/∂score = −λ goes backwards through the net.

    A linear net with a convex cost (RankNet, ListNet, ListMLE, Focused, regression) has one minimum and starts from
    weights 0, unless ``restart`` asks for random ones; all others start at random.

    The model is that of the epoch with the best ``measure`` on the validation data, the last one without such data.
    Scores beyond all bounds mean that the rate is far too high: training says so and starts anew at a tenth of it.
    PyTorch works on one thread, so that the result does not depend on their number; λ's use ``n_jobs``.
    """

    unit: ClassVar[str] = "epoch"
    steps_parameter: ClassVar[str | None] = "epochs"
    state_: NetState = fitted()
    """The state at the end: learning rates, effective pairs and notes of the epochs, weights of the best one."""

    position_terms_: dict[int, float] = fitted()
    """The term of each position in the best epoch, 0 for the topmost, if ``positions`` are given."""

    # ------------------------------------------------------------------ what the names mean
    @abstractmethod
    def _objective(self) -> Objective:
        """What training improves."""

    def _settings(self) -> NetSettings:
        return net_settings(self, self._objective())

    def _check(self) -> None:
        self._settings()

    def _chosen(self) -> dict[str, Any]:
        settings = self._settings()
        several = len(settings.rates) > 1
        return {
            **super()._chosen(),
            "hidden_layer_sizes": spelt_hidden(settings.hidden),
            "epochs": settings.epochs,
            "learning_rate": None if several else settings.rates[0],
            "learning_rates": ",".join(f"{rate:g}" for rate in settings.rates) if several else None,
            "batch_size": settings.batch_size,
            "weight_decay": settings.weight_decay,
            "restart": settings.restart or 0,
        }

    # ------------------------------------------------------------------ training
    def _fit(self, train: RankingData, valid: Mapping[str, RankingData], callbacks: Sequence[Callback]) -> Ranker:
        # Only here is PyTorch needed.
        try:
            import torch  # noqa: F401
        except ImportError:
            raise MissingExtraError("torch", "nets") from None
        from gradrank.learners.nets.fitting import fit_net

        objective, settings = self._objective(), self._settings()
        run = self._run_facts(settings, train, valid)
        self.record_, self.state_, ranker = fit_net(self, train, valid, objective, settings, callbacks, run)
        ranker.remember(**self._facts(objective, train))
        return ranker

    def _facts(self, objective: Objective, train: RankingData) -> dict[str, Any]:
        state = self.state_
        facts = training_facts(self, train, str(objective), str(self._measure()), self.record_, "torch")
        facts["parameters"] = {**facts["parameters"], "module": None if self.module is None else str(self.module)}
        facts["rates"] = state.rates[: self.record_.steps]
        if state.pairs and min(state.pairs) >= 0:
            name = str(objective if objective.measure is None else objective.measure)
            facts["effective_pairs"] = {name: state.pairs[: self.record_.steps]}
        if self.positions is not None:
            facts["position_terms"] = {str(position): term for position, term in self.position_terms_.items()}
        if state.notes:
            facts["notes"] = state.notes
        return facts

    def _run_facts(self, settings: NetSettings, train: RankingData, valid: Mapping[str, RankingData]) -> dict[str, Any]:
        """What must be the same for a checkpoint to be continued; with one rate more epochs may be asked for."""
        parameters = {**self.get_params(deep=False), **self._chosen()}
        facts = {name: value for name, value in parameters.items() if name not in _NOT_OF_THE_RUN}
        if len(settings.rates) > 1:
            facts["epochs"] = settings.epochs
        facts["objective"], facts["measure"] = str(self._objective()), str(self._measure())
        facts["data"] = [data_fingerprint(data) for data in (train, *valid.values())]
        return facts


class ObjectiveNet(ObjectiveParameters, NetLearner):
    """A net whose objective is a parameter."""

    weighs_documents: ClassVar[bool] = True
    default_objective: ClassVar[str] = "NDCG@10"
    only: ClassVar[type[Objective]] = Objective  # type: ignore[type-abstract]
    """The kind of objectives that it takes."""

    def _objective(self) -> Objective:
        given = self.default_objective if self.objective is None else self.objective
        objective = as_objective(given)
        if not isinstance(objective, self.only):
            name = type(self).__name__
            raise TrainingError(f"{name} learns by {self.default_objective}, not by {objective}; LambdaRank takes it")
        return objective

    def _measure(self) -> AnyMeasure:
        if self.measure is not None:
            return as_measure(self.measure)
        return self._objective().measure or NDCG(10)

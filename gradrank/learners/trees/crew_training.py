"""The training of a tree learner in one process of a crew: what every worker runs."""

from __future__ import annotations

import hashlib
import json
import resource
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from importlib import import_module
from typing import Any

from gradrank.cluster.child import Member
from gradrank.cluster.reading import read_share, together
from gradrank.data.ranking_data import RankingData
from gradrank.errors import ClusterError, GradrankError, GradrankWarning, TrainingError
from gradrank.learners.base.estimator import aligned
from gradrank.learners.base.loop import Step
from gradrank.learners.base.shared_crew import SharedCrew
from gradrank.learners.trees.diagnostics import Diagnostics
from gradrank.learners.trees.lambdamart import LambdaMART
from gradrank.models.ranker import plain
from gradrank.models.registry import ranker_from_dict
from gradrank.models.trees.ensemble import TreeEnsemble


def train(member: Member) -> dict[str, Any]:
    """Train on this process's share of the data, together with the others; the model, or what it is told by.

    Parameters
    ----------
    member
        This process. Its arguments: ``learner`` (module:class), ``parameters``, ``base`` (a model or None), ``reading``
        for each data set, ``shuffle``, ``checkpoint`` (the content of the file, if there is one) and
        ``checkpoint_name``. Its share: the shards of each data set by name, the first of which is learned from.
    """
    given = member.arguments
    crew = SharedCrew(member)
    learner = _learner(given).set_params(n_jobs=member.threads)
    sets = {
        name: read_share(member, shards, given["reading"][name], name=name, shuffle=given["shuffle"])
        for name, shards in member.arguments["share"].items()
    }
    data = sets.pop("train")
    failed: Exception | None = None
    try:
        _check(data)
        sets = {name: aligned(item, data, name) for name, item in sets.items()}
    except GradrankError as error:
        failed = error
    together(member, failed)
    if data.weight is not None and not crew.any(bool(data.weight.any())):
        raise TrainingError("all weights are zero: there is nothing to learn from")
    if data.document_weight is not None and not crew.any(bool(data.document_weight.any())):
        raise TrainingError("all weights of documents are zero: there is nothing to learn from")
    state = member.folder / "checkpoint"
    if given["checkpoint_name"] is not None:
        if given["checkpoint"] is not None:
            state.write_bytes(given["checkpoint"])
        learner.set_params(checkpoint=state)
    messenger = _Messenger(member, crew, learner, state)
    learner._crew = crew
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", GradrankWarning)
        try:
            ranker = learner._fit(data, sets, (messenger,))
        except TrainingError as error:
            raise TrainingError(str(error).replace(str(state), str(given["checkpoint_name"]))) from None
    model = ranker.to_dict()
    _same_everywhere(member, model)
    record = learner.record_
    found: dict[str, Any] = {
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "notes": [str(item.message) for item in said if issubclass(item.category, GradrankWarning)],
    }
    if member.rank == 0:
        flat = [tree for step in learner.trees_ for tree in step]
        found |= {
            "model": json.dumps(model),
            "trees": json.dumps(TreeEnsemble(flat, data.feature_names).to_dict()),
            "trees_per_step": len(learner.trees_[0]) if learner.trees_ else 1,
            "record": {
                "steps": record.steps, "best": record.best, "curves": plain(record.curves), "seconds": record.seconds,
                "interrupted": record.interrupted, "diagnostics": plain(record.diagnostics),
            },
            "held_out": None if record.held_out is None else plain(asdict(record.held_out)),
            "shape": asdict(learner._shape),
            "base_score": float(getattr(learner, "base_score_", 0.0)),
            "features": list(data.feature_names),
        }  # fmt: skip
    return found


class _Messenger:
    """Told after each step: passes it on to the one who asked, and lets all processes end at the same step."""

    def __init__(self, member: Member, crew: SharedCrew, learner: LambdaMART, state: Any) -> None:
        self._member = member
        self._crew = crew
        self._learner = learner
        self._state = state

    def begin(self, pairs: Any) -> None:
        """Tell what there is to learn from."""
        if self._member.rank == 0:
            self._member.tell({"pairs": [plain(vars(fact)) for fact in pairs]})

    def say(self, text: str) -> None:
        """Pass on what the training does."""
        if self._member.rank == 0:
            self._member.tell({"note": text})

    def __call__(self, step: Step) -> None:
        if self._member.rank == 0:
            if self._learner.checkpoint is not None and self._due(step):
                self._member.tell({"checkpoint": self._state.read_bytes()})
            names = [f"f{number}" for number in range(_width(step))]
            self._member.tell({
                "step": {
                    "number": step.number, "total": step.total, "values": plain(step.values), "best": step.best,
                    "seconds": step.seconds, "unit": step.unit, "note": step.note, "open_ended": step.open_ended,
                },
                "trees": json.dumps(TreeEnsemble(step.trees, names).to_dict()),
                "sent": self._member.mesh.sent,
            })  # fmt: skip
        if self._crew.any(self._member.stop_asked):
            raise KeyboardInterrupt

    def _due(self, step: Step) -> bool:
        return step.number % self._learner.checkpoint_every == 0 or step.number == step.total


def _width(step: Step) -> int:
    return 1 + max((int(tree.split_feature.max(initial=0)) for tree in step.trees), default=0)


def _learner(given: Mapping[str, Any]) -> LambdaMART:
    module, name = given["learner"].split(":")
    parameters = dict(given["parameters"])
    if given["base"] is not None:
        parameters["base"] = ranker_from_dict(json.loads(given["base"]))
    if isinstance(parameters.get("diagnostics"), Mapping):
        parameters["diagnostics"] = Diagnostics(**parameters["diagnostics"])
    learner: LambdaMART = getattr(import_module(module), name)(**parameters)
    return learner


def _check(data: RankingData) -> None:
    if not data.labels:
        raise TrainingError("the training data has no labels")
    if not data.n_features:
        raise TrainingError("the training data has no features")


def _same_everywhere(member: Member, model: Mapping[str, Any]) -> None:
    """Every process must have ended with the same model."""
    found = member.mesh.gather_values(model_digest(model))
    for rank, digest in enumerate(found):
        if digest != found[0]:
            raise ClusterError(
                f"{member.mesh.names[rank]} ended with another model than {member.mesh.names[0]}: nothing is kept; "
                "this is a fault of gradrank's"
            )


def model_digest(model: Mapping[str, Any]) -> str:
    """Tells models apart by all that they hold but the time that training took.

    >>> model_digest({"a": 1, "seconds": 3.5}) == model_digest({"seconds": 4.0, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(_timeless(model), sort_keys=True).encode()).hexdigest()


def _timeless(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _timeless(item) for key, item in value.items() if key != "seconds"}
    return [_timeless(item) for item in value] if isinstance(value, list) else value

"""Training a tree learner on workers: the side of the one who asks."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gradrank.cluster.launcher import Launcher, make_job
from gradrank.cluster.launchers import as_launcher
from gradrank.cluster.sources import Source, as_source
from gradrank.errors import ModelError, NotConvergedWarning, TrainingError
from gradrank.learners.algorithms import effective_parameters
from gradrank.learners.base.checkpoint import held_out_of
from gradrank.learners.base.loop import Record, Step, say
from gradrank.learners.base.progress import Progress
from gradrank.learners.trees.extra_parameters import ROW_SAMPLING, checked_extra
from gradrank.learners.trees.lambdamart import LambdaMART
from gradrank.learners.trees.size_rule import Shape
from gradrank.models.ranker import Ranker
from gradrank.models.registry import load_ranker, ranker_from_dict
from gradrank.models.trees.ensemble import TreeEnsemble
from gradrank.objectives import parse_objective
from gradrank.objectives.pair_facts import PairFacts
from gradrank.runtime.files import replacing
from gradrank.runtime.warn import warn

_TASK = "gradrank.learners.trees.crew_training:train"
# What is said or kept on the side of the one who asks.
_NOT_SENT = ("callbacks", "verbose", "checkpoint", "base", "warm_start", "n_jobs")
# LightGBM's own ways to spread work and to see part of the rows.
_NETWORK = {
    "tree_learner", "tree", "tree_type", "tree_learner_type", "num_machines", "num_machine", "local_listen_port",
    "local_port", "port", "time_out", "machine_list_filename", "machine_list_file", "machine_list", "mlist", "machines",
    "workers", "nodes", "pre_partition", "is_pre_partition", "use_quantized_grad",
}  # fmt: skip


def check_offered(learner: LambdaMART) -> None:
    """Refuse, before any data is read, what several workers cannot do.

    Parameters
    ----------
    learner
        The learner to be trained on workers.
    """
    learner.check_parameters()
    rules = learner._rules()
    if rules.step.startswith("optimal"):
        raise TrainingError(
            f"step {rules.step} looks at all queries at once, which no single worker has: use newton or gradient"
        )
    if learner.split_docs is not None:
        raise TrainingError("split_docs is not offered on workers: documents are drawn from all queries at once")
    if learner.warm_start:
        raise TrainingError("warm_start is not offered on workers: use checkpoint, which goes on from a file")
    for name in checked_extra(learner.lightgbm or {}):
        if name in ROW_SAMPLING or name in _NETWORK:
            raise TrainingError(f"lightgbm gives {name!r}, which does not go with workers")
    objective = learner._objective()
    if parse_objective(str(objective)) != objective:
        raise TrainingError(f"{objective} cannot be sent to workers: give an objective that has a name")


def fit_on_workers(
    learner: LambdaMART,
    workers: Any,
    train: Any,
    valid: Mapping[str, Any],
    *,
    reading: Mapping[str, Mapping[str, Any]] | None = None,
    shuffle: bool = False,
    ports: Sequence[int] | None = None,
) -> dict[str, Any]:
    """Train a learner on workers; it is then as after ``fit``.

    Parameters
    ----------
    learner
        The learner.
    workers
        A Dask client, a Spark session, a number of processes on this machine, or a launcher.
    train, valid
        The data to learn from, and sets to watch by name: files, folders, patterns, addresses or Dask dataframes.
    reading
        For each set by name how its files are read.
    shuffle
        Whether a query that stands in several files is brought together.
    ports
        First and last port that workers may listen on.

    Returns
    -------
    What the run took: ``sent`` (bytes that each worker sent) and ``peak`` (most memory of each, in bytes).
    """
    check_offered(learner)
    sent = _parameters(learner)
    if not valid and learner.early_stopping_rounds is not None and not learner.holds_out:
        warn("early_stopping_rounds needs validation data, and there is none: all steps are made and kept")
    base, feature = _base(learner)
    launcher = as_launcher(workers)
    sources = {"train": as_source(train), **{name: as_source(item) for name, item in valid.items()}}
    with _dealt(launcher, sources) as shares:
        path = None if learner.checkpoint is None else Path(learner.checkpoint)
        arguments = {
            "learner": f"{type(learner).__module__}:{type(learner).__qualname__}",
            "parameters": {**sent, **({"base": feature} if feature is not None else {})},
            "base": None if base is None else json.dumps(base.to_dict()),
            "reading": {name: dict((reading or {}).get(name, {})) for name in sources},
            "shuffle": bool(shuffle),
            "checkpoint": path.read_bytes() if path is not None and path.exists() else None,
            "checkpoint_name": None if path is None else str(path),
        }
        threads = None if learner.n_jobs in (None, -1) else learner.n_jobs
        job = make_job(_TASK, arguments, shares, threads=threads, ports=ports)
        with Progress(quiet=not learner.verbose, unit=learner.unit) as progress:
            listener = _Listener((*learner.callbacks, progress), path)
            with listener.hearing_ctrl_c():
                results = launcher.run(job, listener)
    _take_over(learner, [item["result"] for item in results], bool(valid))
    return {
        "sent": [item["sent"] for item in results],
        "peak": [item["result"]["peak"] for item in results],
    }


class _Listener:
    """Tells callbacks of steps that workers have made; one that raises KeyboardInterrupt ends the training."""

    def __init__(self, callbacks: Sequence[Any], checkpoint: Path | None) -> None:
        self._callbacks = callbacks
        self._checkpoint = checkpoint
        self._stop = False

    @contextmanager
    def hearing_ctrl_c(self) -> Iterator[None]:
        """Ctrl-C once ends the training with the best model so far, as in one process; twice ends it at once."""

        def ask(number: int, frame: Any) -> None:
            if self._stop:
                signal.default_int_handler(number, frame)
            self._stop = True

        main = threading.current_thread() is threading.main_thread()
        # Whoever has a way of their own, as the command line has, keeps it.
        if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return
        signal.signal(signal.SIGINT, ask)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def __call__(self, message: Mapping[str, Any]) -> str | None:
        if "checkpoint" in message:
            assert self._checkpoint is not None
            with replacing(self._checkpoint) as temporary:
                temporary.write_bytes(message["checkpoint"])
        elif "note" in message:
            say(self._callbacks, message["note"])
        elif "pairs" in message:
            facts = [PairFacts(**fact) for fact in message["pairs"]]
            for callback in self._callbacks:
                if hasattr(callback, "begin"):
                    callback.begin(facts)
        elif "step" in message:
            ensemble = ranker_from_dict(json.loads(message["trees"]))
            assert isinstance(ensemble, TreeEnsemble)
            values = {
                name: {measure: float(value) for measure, value in found.items()}
                for name, found in message["step"]["values"].items()
            }
            step = Step(**{**message["step"], "values": values}, trees=ensemble.trees)
            try:
                for callback in self._callbacks:
                    callback(step)
            except KeyboardInterrupt:
                self._stop = True
        return "stop" if self._stop else None


@contextmanager
def _dealt(launcher: Launcher, sources: Mapping[str, Source]) -> Iterator[list[dict[str, Any]]]:
    """The shards of each worker while the block lasts; what was made of frames for it is removed afterwards."""
    try:
        dealt = {name: source.deal(launcher) for name, source in sources.items()}
        yield [{name: shards[rank] for name, shards in dealt.items()} for rank in range(launcher.size)]
    finally:
        for source in sources.values():
            source.forget(launcher)


def _parameters(learner: LambdaMART) -> dict[str, Any]:
    """The parameters as plain values, with what the learner chooses by itself spelt out."""
    found: dict[str, Any] = {}
    for name, value in effective_parameters(learner).items():
        if name in _NOT_SENT:
            continue
        found[name] = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    try:
        json.dumps(found)
    except TypeError as error:
        raise TrainingError(f"a parameter cannot be sent to workers: {error}") from None
    return found


def _base(learner: LambdaMART) -> tuple[Ranker | None, str | None]:
    """The model to start from, or the name of the feature."""
    if learner.base is None or isinstance(learner.base, Ranker):
        base = learner.base
    elif Path(learner.base).is_file():
        base = load_ranker(learner.base)
    else:
        return None, str(learner.base)
    if base is not None:
        try:
            json.dumps(base.to_dict())
        except (NotImplementedError, TypeError, ModelError):
            raise TrainingError(f"a base of kind {base.kind!r} cannot be sent to workers") from None
    return base, None


def _take_over(learner: LambdaMART, results: Sequence[Mapping[str, Any]], validated: bool) -> None:
    """Make the learner what it is after fitting."""
    first = results[0]
    learner.ranker_ = ranker_from_dict(json.loads(first["model"]))
    ensemble = ranker_from_dict(json.loads(first["trees"]))
    assert isinstance(ensemble, TreeEnsemble)
    width = int(first["trees_per_step"])
    learner.trees_ = tuple(ensemble.trees[at : at + width] for at in range(0, len(ensemble.trees), width))
    told = first["record"]
    curves = {
        name: {measure: [float(value) for value in curve] for measure, curve in found.items()}
        for name, found in told["curves"].items()
    }
    learner.record_ = Record(**{**told, "curves": curves}, held_out=held_out_of(first))
    learner._take_shape(Shape(**first["shape"]))
    learner.base_score_ = first["base_score"]
    if learner.positions is not None:
        terms = learner.ranker_.training["position_terms"]
        learner.position_terms_ = {int(position): float(term) for position, term in terms.items()}
    learner.n_features_in_ = len(first["features"])
    learner.feature_names_in_ = np.array(first["features"], dtype=object)
    for note in dict.fromkeys(note for result in results for note in result["notes"]):
        warn(note)
    record = learner.record_
    if validated and not record.interrupted and record.best == learner._most_steps() > 1:
        warn(
            f"the best model is the last of {record.steps:,} {learner.unit}s: {learner._measure()} on the validation "
            f"data was still rising; more {learner.unit}s ({learner.steps_parameter}) are likely to be better",
            NotConvergedWarning,
        )
    if all(tree.n_leaves == 1 for step in learner.trees_[: record.best] for tree in step) and learner.base is None:
        warn("the model gives every document the same score: it has learned nothing from this data")

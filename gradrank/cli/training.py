"""Parts of ``gradrank train``: options become a learner, the learner is run, what came of it is said."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradrank.cli import options
from gradrank.cli.common import Notes, check_writable, load_data, print_table, print_text, with_features
from gradrank.cli.interruption import Interruption
from gradrank.cli.parameters import flag_of, learner_parameters, option_words
from gradrank.cli.reading import Reading
from gradrank.errors import DataError, GradrankError
from gradrank.learners.base.progress import Progress

if TYPE_CHECKING:
    from gradrank.data.ranking_data import RankingData
    from gradrank.learners.base.estimator import RankingEstimator
    from gradrank.models.ranker import Ranker

_DEFAULT_ALGORITHM = "lambdamart"
# Options that go with every learner: one that needs no chance or threads just does not use them.
_FOR_ALL = ("random_state", "n_jobs")


# ---------------------------------------------------------------------- options to a learner
def check_algorithm(
    name: str | None,
    given: Mapping[str, Any],
    *,
    construction: str | None = None,
    base: str | None = None,
    checkpoint: int | None = None,
) -> str:
    """The name of the algorithm; an option that it does not have is an error."""
    from gradrank.learners.algorithms import algorithm, parameters_of

    name = (name or _DEFAULT_ALGORITHM).lower()
    if name == _DEFAULT_ALGORITHM and base is not None:
        name = "lambdasmart"
    known = parameters_of(algorithm(name))
    if "objective" in known:
        known = (*known, "construction")
    every = {**given, "construction": construction, "base": base, "checkpoint": checkpoint}
    for option, value in every.items():
        if value is not None and option not in known and option not in _FOR_ALL:
            has = ", ".join(flag_of(item) for item in known if item in learner_parameters())
            raise DataError(f"{flag_of(option)} does not go with {name}; it has {has}")
    if name == "lambdasmart" and base is None:
        raise DataError("lambdasmart starts from a model: give --base MODEL, or --base with the name of a feature")
    if name == "mcrank" and base is not None:
        raise DataError("mcrank cannot start from a base: --base goes with lambdasmart and mart")
    return name


def make_learner(
    name: str, given: Mapping[str, Any], construction: str | None = None, convention: str | None = None
) -> RankingEstimator:
    """The learner with what it chooses by itself spelt out, so that its model tells and its command repeats it.

    ``convention`` is that of the measure that chooses the model, if the measure names none.
    """
    from gradrank.learners.algorithms import algorithm, effective_parameters, parameters_of

    kind = algorithm(name)
    known = parameters_of(kind)
    asked = {key: value for key, value in given.items() if key in known}
    if construction is not None:
        from gradrank.objectives import with_construction

        objective = asked.get("objective", getattr(kind, "default_objective", "NDCG@10"))
        asked["objective"] = str(with_construction(objective, construction))
    # LambdaSMART's base comes with the data.
    placeholder: dict[str, Any] = {"base": "-"} if name == "lambdasmart" else {}
    learner = kind(**effective_parameters(kind(**asked, **placeholder)))
    if convention is not None:
        from gradrank.measures import parse_measure

        learner.set_params(measure=str(parse_measure(str(learner._measure()), convention=convention)))
    return learner.set_params(base=None) if placeholder else learner


def base_ranker(base: str | None) -> Ranker | None:
    """The model to start from; None if there is none, or if it can only be the name of a feature."""
    if base is None or not Path(base).exists():
        return None
    from gradrank.models.registry import load_ranker

    return load_ranker(base)


def set_base(learner: RankingEstimator, data: RankingData, path: Path, base: str | None, ranker: Ranker | None) -> None:
    """Set the ranker that training starts from: a model, or a feature of the data."""
    if base is None:
        return
    if ranker is None and base not in data.feature_names:
        raise DataError(f"--base is {base!r}: there is no such file, and {path} has no such feature")
    learner.set_params(base=base if ranker is None else _fitted_base(ranker, base, data, path))


def _fitted_base(ranker: Ranker, base: str | None, data: RankingData, path: Path) -> Ranker:
    """The model to start from, under the training data's feature names if its own only number the features."""
    from gradrank.models.registry import under_names_of

    try:
        return under_names_of(ranker, data)
    except GradrankError as error:
        raise DataError(f"does not fit {path}: {error}", path=base) from None


# ---------------------------------------------------------------------- data
def numbered(name: str, files: Sequence[str] | None) -> dict[str, str]:
    """Data sets by name: ``valid``, ``valid2``, …"""
    return {name if number == 1 else f"{name}{number}": file for number, file in enumerate(files or (), start=1)}


def shared_out(name: str, files: Sequence[str] | None, labels: Sequence[str] | None) -> dict[str, list[str]]:
    """Label files for each of several data sets: the n-th of a name belongs to the n-th set."""
    sets: list[list[str]] = [[] for _ in files or ()]
    seen: dict[str, int] = {}
    for option in labels or ():
        source = option.partition("=")[0]
        number = seen.get(source, 0)
        if number >= len(sets):
            raise DataError(f"--{name}-label gives {source!r} {number + 1} times, but there are {len(sets)} --{name}")
        sets[number].append(option)
        seen[source] = number + 1
    return dict(zip(numbered(name, files), sets, strict=True))


def check_output(output: Path, inputs: Sequence[Path]) -> None:
    """The model can be written, and not over what is read."""
    check_writable(output, *inputs)


def load_sets(
    learner: RankingEstimator,
    files: Mapping[str, Path],
    notes: Notes,
    reading: Reading,
    labels: Mapping[str, Sequence[str]],
) -> dict[str, RankingData]:
    """Read all data sets, with the training data's features and the labels that are needed."""
    sets = {key: load_data(path, notes, reading, labels[key], _label_flag(key)) for key, path in files.items()}
    for key in sets:
        sets[key] = with_features(
            sets[key], files[key], sets["train"].feature_names, str(files["train"]), is_model=False
        )
        _check_labels(learner, sets[key], files[key], is_train=key == "train")
    return sets


def _check_labels(learner: RankingEstimator, data: RankingData, path: Path, *, is_train: bool) -> None:
    """The labels that training and evaluation need are there and can be used."""
    import numpy as np

    from gradrank.measures import bind_measures

    try:
        bind_measures(_measures(learner), data, n_jobs=learner.n_jobs)
        # Training over several label sources looks for pairs in all of them, and says what it found.
        objective = learner._objective()
        if not is_train or (objective is not None and len(objective.parts) > 1):
            return
        labels = data.label(learner._label_source())
    except GradrankError as error:
        raise DataError(str(error), path=path) from None
    judged = labels[~np.isnan(labels)]
    if not len(judged):
        raise DataError("no document is judged: there is nothing to learn from", path=path)
    if (judged == judged[0]).all():
        raise DataError(f"all labels are {judged[0]:g}: there is nothing to learn from", path=path)


def _measures(learner: RankingEstimator) -> list[Any]:
    return list(learner._measure().parts)


# ---------------------------------------------------------------------- training
def keep_state(learner: RankingEstimator, output: Path, every: int | None, notes: Notes) -> Path | None:
    """Let the learner keep its state beside the model; says if a state is there already."""
    from gradrank.learners.base.checkpoint import checkpoint_path

    path = checkpoint_path(output)
    if every is None:
        if path.exists():
            notes.say(f"{path} is left from another run and not used; --checkpoint N goes on from it")
        return None
    check_writable(path)
    if path.exists():
        notes.say(f"going on from {path}")
    learner.set_params(checkpoint=path, checkpoint_every=every)
    return path


@dataclass(frozen=True)
class Run:
    """One training run: a learner, the files it reads, the model it writes."""

    name: str
    learner: RankingEstimator
    files: Mapping[str, str]
    output: Path

    def fit(self, sets: Mapping[str, RankingData], quiet: bool) -> None:
        """Train, with progress on standard error; Ctrl-C keeps the best model so far."""
        learner = self.learner
        valid = {key: data for key, data in sets.items() if key.startswith("valid")}
        with Interruption(learner.unit) as interruption, Progress(quiet, learner.unit) as progress:
            learner.set_params(callbacks=(progress, interruption))
            learner.fit(sets["train"], valid=valid)

    @property
    def best(self) -> int:
        """Number of steps of the model."""
        return int(self.learner.ranker_.training.get("best", 0))

    @property
    def total(self) -> int:
        """Number of steps made."""
        return int(self.learner.ranker_.training.get("grown", self.best))

    @property
    def interrupted(self) -> bool:
        """Whether training was cut short."""
        return bool(self.learner.ranker_.training.get("interrupted", False))

    def counted(self, count: int) -> str:
        """A number of steps in words."""
        unit = self.learner.unit
        return f"1 {unit}" if count == 1 else f"{count:,} {unit}s"

    @property
    def measures(self) -> list[Any]:
        """What the model is judged by."""
        return _measures(self.learner)

    # ------------------------------------------------------------------ what is said of it
    def command(
        self,
        base: str | None,
        labels: Mapping[str, Sequence[str]],
        reading: Reading,
        checkpoint: int | None,
        more: Sequence[str] = (),
    ) -> str:
        """The command that repeats this run, whatever the defaults are then."""
        words = ["gradrank", "train", "--algorithm", self.name, *([] if base is None else ["--base", base])]
        words += _parameter_options(self.learner)
        for key, path in self.files.items():
            words += [f"--{key.rstrip('0123456789')}", str(path)]
            words += [word for option in labels[key] for word in (_label_flag(key), option)]
        words += reading.words()
        words += [*more, *(["--checkpoint", str(checkpoint)] if checkpoint else [])]
        n_jobs = self.learner.n_jobs
        words += ["--threads", str(n_jobs)] if n_jobs else []
        return shlex.join([*words, "-o", str(self.output)])

    def summarize(
        self,
        values: Mapping[str, Mapping[str, float]],
        seconds: float,
        command: str,
        show_as: options.TableOrJson,
    ) -> None:
        """Print the outcome on standard output."""
        from gradrank.evaluation.tables import Column, Table, to_json

        unit = self.learner.unit
        if show_as is options.TableOrJson.json:
            print_text(
                to_json({
                    "model": str(self.output),
                    "learner": type(self.learner).__name__,
                    f"{unit}s": self.best,
                    "grown": self.total,
                    "interrupted": self.interrupted,
                    "seconds": round(seconds, 3),
                    "files": {key: str(path) for key, path in self.files.items()},
                    "measures": values,
                    "command": command,
                })
            )  # fmt: skip
            return
        rows = [("model", str(self.output)), (f"{unit}s", f"{self.best:,} of {self.total:,}")]
        for key, found in values.items():
            rows += [(f"{measure} on {self.files[key]}", f"{value:.4f}") for measure, value in found.items()]
        rows.append(("seconds", f"{seconds:.1f}"))
        print_table(Table((Column(""), Column("")), tuple(rows)), options.OutputFormat.table)


def _label_flag(key: str) -> str:
    return "--label" if key == "train" else f"--{key.rstrip('0123456789')}-label"


def _parameter_options(learner: RankingEstimator) -> list[str]:
    words: list[str] = []
    offered, settled = learner_parameters(), learner._settled()
    for name in learner.declared:
        value = settled.get(name, getattr(learner, name))
        if name == "early_stopping_rounds" and "n_estimators" in settled:
            # Nothing is left to find.
            continue
        # The base is a file, and threads do not change the model: both are said elsewhere.
        if name in offered and name not in ("base", "n_jobs") and value not in (None, ()):
            words += option_words(name, value)
    return words

"""``gradrank train``."""

from __future__ import annotations

import inspect
import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gradrank.cli import options
from gradrank.cli.common import (
    Notes,
    Reading,
    check_writable,
    load_data,
    print_table,
    print_text,
    read_config,
    with_features,
)
from gradrank.cli.progress import EXIT_INTERRUPTED, Interruption, Progress
from gradrank.errors import DataError, GradrankError

if TYPE_CHECKING:
    from gradrank.data.ranking_data import RankingData
    from gradrank.learners import LambdaMART
    from gradrank.models.ranker import Ranker

# Panels of the help.
_DATA, _LEARNING, _TREES = "Data", "What is learned", "Trees and steps (what is not given is as the learner has it)"
_DEFAULT_ALGORITHM = "lambdamart"
# Parameters of the learners that the command line sets by other means than an option of their name.
_NOT_OPTIONS = ("base", "monotone", "categorical", "lightgbm", "threads", "warm_start", "callbacks", "checkpoint",
                "checkpoint_every")  # fmt: skip


def train(
    train_file: Annotated[
        Path, typer.Option("--train", metavar="FILE", help="Data to learn from.", rich_help_panel=_DATA)
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="Model file to write.")],
    valid: Annotated[
        list[Path] | None,
        typer.Option(
            "--valid",
            metavar="FILE",
            help="Data that chooses the number of trees. More are only recorded.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    test: Annotated[
        list[Path] | None,
        typer.Option("--test", metavar="FILE", help="Data to evaluate the model on at the end.", rich_help_panel=_DATA),
    ] = None,
    algorithm: Annotated[
        str | None,
        typer.Option(
            "--algorithm", metavar="NAME", help="lambdamart, lambdasmart, mart or mcrank.", rich_help_panel=_LEARNING
        ),
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(
            "--objective",
            metavar="OBJECTIVE",
            help="A measure to learn for, or Lambda(MAP, cost=sigmoid).",
            rich_help_panel=_LEARNING,
        ),
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(
            "--measure",
            "-m",
            metavar="MEASURE",
            help="Chooses the model; the objective's by default.",
            rich_help_panel=_LEARNING,
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            "--base",
            metavar="MODEL",
            help="Start from a model's scores (LambdaSMART), or from a feature.",
            rich_help_panel=_LEARNING,
        ),
    ] = None,
    trees: Annotated[
        int | None, typer.Option("--trees", metavar="N", help="Most trees to grow.", rich_help_panel=_TREES)
    ] = None,
    leaves: Annotated[
        int | None, typer.Option("--leaves", metavar="N", help="Most leaves of a tree.", rich_help_panel=_TREES)
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option("--rate", metavar="R", help="Learning rate: shrinks each tree.", rich_help_panel=_TREES),
    ] = None,
    min_docs: Annotated[
        int | None, typer.Option("--min-docs", metavar="N", help="Fewest documents in a leaf.", rich_help_panel=_TREES)
    ] = None,
    split: Annotated[
        str | None,
        typer.Option("--split", metavar="RULE", help="Splits by mse or newton; auto chooses.", rich_help_panel=_TREES),
    ] = None,
    step: Annotated[
        str | None,
        typer.Option(
            "--step", metavar="RULE", help="Leaf values by newton or gradient; auto chooses.", rich_help_panel=_TREES
        ),
    ] = None,
    max_depth: Annotated[
        int | None, typer.Option("--max-depth", metavar="N", help="Deepest a tree may be.", rich_help_panel=_TREES)
    ] = None,
    bins: Annotated[
        int | None, typer.Option("--bins", metavar="N", help="Most bins of a feature.", rich_help_panel=_TREES)
    ] = None,
    l2: Annotated[
        float | None,
        typer.Option("--l2", metavar="R", help="Added to leaf values' denominators.", rich_help_panel=_TREES),
    ] = None,
    min_hessian: Annotated[
        float | None,
        typer.Option(
            "--min-hessian", metavar="R", help="Least curvature in a leaf (split newton).", rich_help_panel=_TREES
        ),
    ] = None,
    features: Annotated[
        float | None,
        typer.Option(
            "--features", metavar="SHARE", help="Share of the features that each tree may use.", rich_help_panel=_TREES
        ),
    ] = None,
    queries: Annotated[
        float | None,
        typer.Option(
            "--queries", metavar="SHARE", help="Share of the queries that each tree sees.", rich_help_panel=_TREES
        ),
    ] = None,
    early_stopping: Annotated[
        int | None,
        typer.Option(
            "--early-stopping", metavar="N", help="Stop after N trees without a new best.", rich_help_panel=_TREES
        ),
    ] = None,
    monotone: Annotated[
        list[str] | None,
        typer.Option(
            "--monotone",
            metavar="FEATURE=SIGN",
            help="Scores may only rise (1) or fall (-1) with it.",
            rich_help_panel=_TREES,
        ),
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option("--categorical", metavar="FEATURE", help="The feature holds categories.", rich_help_panel=_TREES),
    ] = None,
    quantised: Annotated[
        bool | None,
        typer.Option(
            "--quantised/--no-quantised", help="Fast mode: coarse gradients in split search.", rich_help_panel=_TREES
        ),
    ] = None,
    train_measure: Annotated[
        bool | None, typer.Option("--train-measure/--no-train-measure", help="Record the measure on --train, too.")
    ] = None,
    lightgbm: Annotated[
        list[str] | None,
        typer.Option(
            "--lightgbm",
            metavar="KEY=VALUE",
            help="A further parameter of LightGBM's tree growing.",
            rich_help_panel=_TREES,
        ),
    ] = None,
    checkpoint: Annotated[
        int | None,
        typer.Option(
            "--checkpoint",
            metavar="N",
            min=1,
            help="Keep the state every N trees in MODEL.checkpoint; the same command goes on from there.",
        ),
    ] = None,
    label: options.LabelFiles = None,
    valid_label: Annotated[
        list[str] | None,
        typer.Option(
            "--valid-label",
            metavar="NAME=FILE",
            help="The same for --valid; for several, in their order.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    test_label: Annotated[
        list[str] | None,
        typer.Option(
            "--test-label",
            metavar="NAME=FILE",
            help="The same for --test; for several, in their order.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    format_from: options.FormatName = None,
    missing: options.Missing = False,
    zero_based: options.ZeroBased = False,
    n_features: options.FeatureCount = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Seed of all randomness.")] = None,
    threads: options.Threads = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            is_eager=True,
            callback=read_config,
            help="TOML file of options; those given here win.",
        ),
    ] = None,
    show_as: Annotated[
        options.TableOrJson, typer.Option("--format", help="Form of the summary.")
    ] = options.TableOrJson.table,
    quiet: options.Quiet = False,
) -> None:
    """Train a ranker for a measure."""
    notes = Notes(quiet)
    files = {"train": train_file, **_numbered("valid", valid), **_numbered("test", test)}
    _check_output(output, [*files.values(), *([Path(base)] if base else [])])
    # What the options say is checked before data is read, which may take long.
    given = {
        "objective": objective, "measure": measure, "trees": trees, "leaves": leaves, "rate": rate,
        "min_docs": min_docs, "split": split, "step": step, "max_depth": max_depth, "bins": bins, "l2": l2,
        "min_hessian": min_hessian, "features": features, "queries": queries, "early_stopping": early_stopping,
        "quantised": quantised, "train_measure": train_measure, "seed": seed, "threads": threads,
        "lightgbm": _lightgbm(lightgbm) or None,
    }  # fmt: skip
    name, learner = _learner(algorithm, base, given)
    ranker = _base(base)
    label_options = {
        "train": list(label or ()),
        **_shared_out("valid", valid, valid_label),
        **_shared_out("test", test, test_label),
    }
    reading = Reading(format_from, missing, zero_based, n_features=n_features)
    sets = {key: _load(key, path, notes, reading, label_options[key]) for key, path in files.items()}
    for key in sets:
        sets[key] = with_features(sets[key], files[key], sets["train"].feature_names, str(train_file))
        _check_labels(learner, sets[key], files[key], is_train=key == "train")
    if ranker is None and base is not None and base not in sets["train"].feature_names:
        raise DataError(f"--base is {base!r}: there is no such file, and {train_file} has no such feature")
    if ranker is not None:
        ranker = _fitted_base(ranker, base, sets["train"], train_file)
    learner.set_params(
        base=base if ranker is None else ranker,
        monotone=_monotone(monotone, sets["train"]),
        categorical=tuple(categorical or ()),
    )
    command = shlex.join([
        "gradrank", "train", "--algorithm", name, *_parameter_options(learner, base, monotone),
        *_file_options(files, label_options), *_reading_options(reading),
        *(["--checkpoint", str(checkpoint)] if checkpoint else []),
        *(["--threads", str(threads)] if threads else []), "-o", str(output),
    ])  # fmt: skip
    notes.say(f"this command repeats the run: {command}")
    validation = {key: data for key, data in sets.items() if key.startswith("valid")}
    if not validation:
        notes.say("there is no --valid: all trees are kept")
    state = _checkpoint(learner, output, checkpoint, notes)
    began = time.perf_counter()
    _fit(learner, sets["train"], validation, quiet)
    seconds = time.perf_counter() - began
    interrupted = learner.boosted_.interrupted
    learner.ranker_.remember(command=command)
    learner.ranker_.save(output)
    if interrupted:
        notes.say(f"interrupted: {output} is the best model of {_trees(len(learner.boosted_.steps))}")
        if state is not None and state.exists():
            notes.say(f"{state} is kept: the same command goes on from there")
    elif state is not None:
        state.unlink(missing_ok=True)
    with notes.working("evaluating"):
        values = {key: _values(learner, data) for key, data in sets.items()}
    _summarise(learner, output, files, values, seconds, command, show_as)
    if interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)


# ---------------------------------------------------------------------- options to objects
def _learner(name: str | None, base: str | None, given: Mapping[str, Any]) -> tuple[str, LambdaMART]:
    """The learner with what it chooses by itself spelt out, so that its model tells and its command repeats it."""
    from gradrank.learners.algorithms import algorithm, effective_parameters

    name = (name or _DEFAULT_ALGORITHM).lower()
    if name == _DEFAULT_ALGORITHM and base is not None:
        name = "lambdasmart"
    kind = algorithm(name)
    if name == "lambdasmart" and base is None:
        raise DataError("lambdasmart starts from a model: give --base MODEL, or --base with the name of a feature")
    if name == "mcrank" and base is not None:
        raise DataError("mcrank cannot start from a base: --base goes with lambdasmart and mart")
    asked = {key: value for key, value in given.items() if value is not None}
    return name, kind(**effective_parameters(kind(**asked)))


def _base(base: str | None) -> Ranker | None:
    """The model to start from; None if there is none, or if it can only be the name of a feature."""
    if base is None or not Path(base).exists():
        return None
    from gradrank.models.saved import load_ranker

    return load_ranker(base)


def _lightgbm(pairs: Sequence[str] | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not (key and equals and value):
            raise DataError(f"--lightgbm is {pair!r}, expected KEY=VALUE")
        found[key] = _number(value)
    return found


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _monotone(pairs: Sequence[str] | None, data: RankingData) -> tuple[int, ...] | None:
    signs = dict.fromkeys(data.feature_names, 0)
    for pair in pairs or ():
        feature, _, sign = pair.rpartition("=")
        if sign not in ("1", "+1", "-1", "0"):
            raise DataError(f"--monotone is {pair!r}, expected FEATURE=1 or FEATURE=-1")
        if feature not in signs:
            raise DataError(f"--monotone is {pair!r}, but the training data has no feature {feature!r}")
        signs[feature] = int(sign)
    return tuple(signs.values()) if pairs else None


def _numbered(name: str, files: Sequence[Path] | None) -> dict[str, Path]:
    """Data sets by name: ``valid``, ``valid2``, …"""
    return {name if number == 1 else f"{name}{number}": file for number, file in enumerate(files or (), start=1)}


def _shared_out(name: str, files: Sequence[Path] | None, labels: Sequence[str] | None) -> dict[str, list[str]]:
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
    return dict(zip(_numbered(name, files), sets, strict=True))


# ---------------------------------------------------------------------- checks before training
def _check_output(output: Path, inputs: Sequence[Path]) -> None:
    for path in inputs:
        if output.exists() and path.exists() and output.samefile(path):
            raise DataError("is read by this command and cannot be its output as well", path=output)
    check_writable(output)


def _load(key: str, path: Path, notes: Notes, reading: Reading, labels: Sequence[str]) -> RankingData:
    flag = "--label" if key == "train" else f"--{key.rstrip('0123456789')}-label"
    return load_data(path, notes, reading, labels, flag)


def _check_labels(learner: LambdaMART, data: RankingData, path: Path, *, is_train: bool) -> None:
    """The labels that training and evaluation need are there and can be used."""
    import numpy as np

    from gradrank.measures import Measure, bind_measures

    try:
        bind_measures(_measures(learner), data, threads=learner.threads)
        if not is_train:
            return
        objective = learner._objective()
        target = objective.measure
        if isinstance(target, Measure):
            source = target.label or target.default_source
        else:
            source = getattr(objective, "label", None)
        labels = data.label(source)
    except GradrankError as error:
        raise DataError(str(error), path=path) from None
    judged = labels[~np.isnan(labels)]
    if not len(judged):
        raise DataError("no document is judged: there is nothing to learn from", path=path)
    if (judged == judged[0]).all():
        raise DataError(f"all labels are {judged[0]:g}: there is nothing to learn from", path=path)


def _fitted_base(ranker: Ranker, base: str | None, data: RankingData, path: Path) -> Ranker:
    """The model to start from, under the training data's feature names if its own only number the features."""
    from gradrank.models.saved import under_names_of

    try:
        return under_names_of(ranker, data)
    except GradrankError as error:
        raise DataError(f"does not fit {path}: {error}", path=base) from None


def _measures(learner: LambdaMART) -> list[Any]:
    from gradrank.measures import Graded

    measure = learner._measure()
    return list(measure.parts) if isinstance(measure, Graded) else [measure]


# ---------------------------------------------------------------------- training
def _checkpoint(learner: LambdaMART, output: Path, every: int | None, notes: Notes) -> Path | None:
    from gradrank.learners.boosting import checkpoint_path

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


def _fit(learner: LambdaMART, data: RankingData, valid: Mapping[str, RankingData], quiet: bool) -> None:
    with Interruption() as interruption, Progress(quiet) as progress:
        learner.set_params(callbacks=(progress, interruption))
        learner.fit(data, valid=valid)


def _values(learner: LambdaMART, data: RankingData) -> dict[str, float]:
    from gradrank.measures import mean_value, measure_values

    scores = learner.ranker_.score(data, threads=learner.threads)
    found = measure_values(_measures(learner), scores, data, threads=learner.threads)
    return {str(measure): mean_value(values) for measure, values in found.items()}


# ---------------------------------------------------------------------- what is said of it
def _parameter_options(learner: LambdaMART, base: str | None, monotone: Sequence[str] | None) -> list[str]:
    words: list[str] = [] if base is None else ["--base", base]
    for name in inspect.signature(type(learner)).parameters:
        flag, value = name.replace("_", "-"), getattr(learner, name)
        if name in _NOT_OPTIONS or value is None:
            continue
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            words += [f"--{flag}", str(value)]
    for name, items in (("monotone", monotone or ()), ("categorical", learner.categorical)):
        words += [word for item in items for word in (f"--{name}", str(item))]
    return words + [
        word for key, value in (learner.lightgbm or {}).items() for word in ("--lightgbm", f"{key}={value}")
    ]


def _file_options(files: Mapping[str, Path], labels: Mapping[str, Sequence[str]]) -> list[str]:
    words = []
    for key, path in files.items():
        kind = key.rstrip("0123456789")
        flag = "--label" if kind == "train" else f"--{kind}-label"
        words += [f"--{kind}", str(path), *(word for option in labels[key] for word in (flag, option))]
    return words


def _reading_options(reading: Reading) -> list[str]:
    words = [] if reading.format is None else ["--from", reading.format]
    words += ["--missing"] if reading.missing else []
    words += ["--zero-based"] if reading.zero_based else []
    return words + ([] if reading.n_features is None else ["--n-features", str(reading.n_features)])


def _summarise(
    learner: LambdaMART,
    output: Path,
    files: Mapping[str, Path],
    values: Mapping[str, Mapping[str, float]],
    seconds: float,
    command: str,
    show_as: options.TableOrJson,
) -> None:
    from gradrank.evaluation.tables import Column, Table, to_json

    boosted = learner.boosted_
    if show_as is options.TableOrJson.json:
        print_text(
            to_json({
                "model": str(output),
                "learner": type(learner).__name__,
                "trees": boosted.best,
                "grown": len(boosted.steps),
                "interrupted": boosted.interrupted,
                "seconds": round(seconds, 3),
                "files": {key: str(path) for key, path in files.items()},
                "measures": values,
                "command": command,
            })
        )  # fmt: skip
        return
    rows = [("model", str(output)), ("trees", f"{boosted.best:,} of {len(boosted.steps):,} grown")]
    for key, found in values.items():
        rows += [(f"{measure} on {files[key]}", f"{value:.4f}") for measure, value in found.items()]
    rows.append(("seconds", f"{seconds:.1f}"))
    print_table(Table((Column(""), Column("")), tuple(rows)), options.OutputFormat.table)


def _trees(count: int) -> str:
    return "1 tree" if count == 1 else f"{count:,} trees"

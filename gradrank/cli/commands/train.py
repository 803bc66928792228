"""``gradrank train``: a ranker for a measure."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, read_config
from gradrank.cli.interruption import EXIT_INTERRUPTED
from gradrank.cli.parameters import parsed, takes_parameters
from gradrank.cli.provenance import remember_data
from gradrank.cli.reading import Reading, reads_data
from gradrank.cli.shared_training import SharedRun
from gradrank.cli.training import (
    Run,
    base_ranker,
    check_algorithm,
    check_output,
    keep_state,
    load_sets,
    make_learner,
    numbered,
    set_base,
    shared_out,
)
from gradrank.cli.workers import (
    Ports,
    Scheduler,
    Shuffle,
    Workers,
    check_workers,
    launcher_of,
    port_range,
    readings,
    worker_words,
)


def _option(panel: str | None, flag: str, metavar: str | None, text: str, **more: Any) -> Any:
    return typer.Option(flag, metavar=metavar, help=text, rich_help_panel=panel, **more)


# Panels of the help.
_data = partial(_option, "Data")
_learning = partial(_option, "What is learned")


@takes_parameters()
@reads_data
def train(
    train_file: Annotated[str, _data("--train", "FILE", "Data to learn from.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="Model file to write.")],
    valid: Annotated[
        list[str] | None,
        _data("--valid", "FILE", "Data that chooses the number of trees or epochs. More are only recorded."),
    ] = None,
    test: Annotated[list[str] | None, _data("--test", "FILE", "Data to evaluate the model on at the end.")] = None,
    algorithm: Annotated[
        str | None,
        _learning(
            "--algorithm",
            "NAME",
            "Trees: lambdamart (default), lambdasmart, mart, mcrank. "
            "Nets: lambdarank, ranknet, listnet, listmle, regressionnet, focusednet. "
            "Others: ranksvm, svmmap, focusedsvm, rankboost, adarank, focusedboost.",
        ),
    ] = None,
    construction: Annotated[
        str | None, _learning("--construction", "NAME", "How λ's are made of the measure, such as spring-smooth.")
    ] = None,
    checkpoint: Annotated[
        int | None,
        typer.Option(
            "--checkpoint",
            metavar="N",
            min=1,
            help="Keep the state every N trees or epochs in MODEL.checkpoint; the same command goes on from there.",
        ),
    ] = None,
    convention: options.ConventionName = None,
    label: options.LabelFiles = None,
    valid_label: Annotated[
        list[str] | None, _data("--valid-label", "NAME=FILE", "The same for --valid; for several, in their order.")
    ] = None,
    test_label: Annotated[
        list[str] | None, _data("--test-label", "NAME=FILE", "The same for --test; for several, in their order.")
    ] = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    shuffle: Shuffle = False,
    ports: Ports = None,
    *,
    reading: Reading,
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
    **parameters: Any,
) -> None:
    """Train a ranker for a measure.

    What is not given is as the learner has it.
    """
    notes = Notes(quiet)
    shared = check_workers(workers, scheduler, shuffle=shuffle, ports=ports)
    given_files = {"train": train_file, **numbered("valid", valid), **numbered("test", test)}
    files = {name: Path(file) for name, file in given_files.items()}
    given = parsed(parameters)
    base = given.pop("base", None)
    check_output(output, [*files.values(), *([Path(base)] if base else [])])
    # What the options say is checked before data is read, which may take long.
    name = check_algorithm(algorithm, given, construction=construction, base=base, checkpoint=checkpoint)
    learner = make_learner(name, given, construction, convention)
    ranker = base_ranker(base)
    labels = {
        "train": list(label or ()),
        **shared_out("valid", valid, valid_label),
        **shared_out("test", test, test_label),
    }
    run = Run(name, learner, given_files, output)
    more = worker_words(workers, scheduler, shuffle, ports)
    command = run.command(base, labels, reading, checkpoint, more)
    if shared:
        trainer = SharedRun(run, notes, given_files, readings(given_files, reading, labels), shuffle, port_range(ports))
        trainer.check(ranker if ranker is not None else base)
    else:
        sets = load_sets(learner, files, notes, reading, labels)
        set_base(learner, sets["train"], files["train"], base, ranker)
    notes.say(f"this command repeats the run: {command}")
    if not valid and learner.validated and not learner.holds_out:
        notes.say(f"there is no --valid: all {learner.unit}s are kept")
    state = keep_state(learner, output, checkpoint, notes)
    began = time.perf_counter()
    if shared:
        with launcher_of(workers, scheduler, notes) as launcher:
            values = trainer.fit(launcher, quiet)
    else:
        run.fit(sets, quiet)
    seconds = time.perf_counter() - began
    if not run.interrupted:
        said, command = command, run.command(base, labels, reading, checkpoint, more)
        if command != said:
            notes.say(f"with what the data decided, this command repeats the run: {command}")
    learner.ranker_.remember(command=command)
    learner.ranker_.save(output)
    if run.interrupted:
        notes.say(f"interrupted: {output} is the best model of {run.counted(run.total)}")
        if state is not None and state.exists():
            notes.say(f"{state} is kept: the same command goes on from there")
    elif state is not None:
        state.unlink(missing_ok=True)
    if not shared:
        with notes.working("evaluating"):
            values = remember_data(learner.ranker_, sets, files, run.measures, n_jobs=learner.n_jobs)
        # Saved a second time: a model that is there counts more than what is known of it.
        learner.ranker_.save(output)
    run.summarize(values, seconds, command, show_as)
    if run.interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)

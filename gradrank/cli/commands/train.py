"""``gradrank train``."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, Reading, read_config
from gradrank.cli.progress import EXIT_INTERRUPTED
from gradrank.cli.training import (
    Run,
    base_ranker,
    check_algorithm,
    check_output,
    keep_state,
    key_values,
    load_sets,
    make_learner,
    numbered,
    set_features,
    shared_out,
)


def _option(panel: str | None, flag: str, metavar: str | None, text: str, **more: Any) -> Any:
    return typer.Option(flag, metavar=metavar, help=text, rich_help_panel=panel, **more)


# Panels of the help.
_data = partial(_option, "Data")
_learning = partial(_option, "What is learned")
_trees = partial(_option, "Trees and steps (what is not given is as the learner has it)")
_nets = partial(_option, "Nets (with --rate, --early-stopping)")
_others = partial(_option, "SVM and feature boosting")


def train(
    train_file: Annotated[Path, _data("--train", "FILE", "Data to learn from.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="Model file to write.")],
    valid: Annotated[
        list[Path] | None,
        _data("--valid", "FILE", "Data that chooses the number of trees or epochs. More are only recorded."),
    ] = None,
    test: Annotated[list[Path] | None, _data("--test", "FILE", "Data to evaluate the model on at the end.")] = None,
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
    objective: Annotated[
        str | None, _learning("--objective", "OBJECTIVE", "A measure to learn for, or Lambda(MAP, cost=sigmoid).")
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(
            "--measure",
            "-m",
            metavar="MEASURE",
            help="Chooses the model; the objective's by default.",
            rich_help_panel="What is learned",
        ),
    ] = None,
    construction: Annotated[
        str | None, _learning("--construction", "NAME", "How λ's are made of the measure, such as spring-smooth.")
    ] = None,
    base: Annotated[
        str | None, _learning("--base", "MODEL", "Start from a model's scores (LambdaSMART), or from a feature.")
    ] = None,
    trees: Annotated[int | None, _trees("--trees", "N", "Most trees to grow.")] = None,
    leaves: Annotated[int | None, _trees("--leaves", "N", "Most leaves of a tree.")] = None,
    rate: Annotated[float | None, _trees("--rate", "R", "Learning rate: shrinks each tree, or a net's steps.")] = None,
    min_docs: Annotated[int | None, _trees("--min-docs", "N", "Fewest documents in a leaf.")] = None,
    split: Annotated[str | None, _trees("--split", "RULE", "Splits by mse or newton; auto chooses.")] = None,
    step: Annotated[
        str | None, _trees("--step", "RULE", "Leaf values by newton, gradient, optimal or optimal-leaf; auto chooses.")
    ] = None,
    max_depth: Annotated[int | None, _trees("--max-depth", "N", "Deepest a tree may be.")] = None,
    bins: Annotated[int | None, _trees("--bins", "N", "Most bins of a feature.")] = None,
    l2: Annotated[float | None, _trees("--l2", "R", "Added to leaf values' denominators.")] = None,
    min_hessian: Annotated[float | None, _trees("--min-hessian", "R", "Least curvature in a leaf (split newton).")] = (
        None
    ),
    features: Annotated[float | None, _trees("--features", "SHARE", "Share of features that each tree may use.")] = (
        None
    ),
    queries: Annotated[float | None, _trees("--queries", "SHARE", "Share of the queries that each tree sees.")] = None,
    early_stopping: Annotated[
        int | None, _trees("--early-stopping", "N", "Stop after N trees or epochs without a new best.")
    ] = None,
    monotone: Annotated[
        list[str] | None, _trees("--monotone", "FEATURE=SIGN", "Scores may only rise (1) or fall (-1) with it.")
    ] = None,
    categorical: Annotated[
        list[str] | None, _trees("--categorical", "FEATURE", "The feature holds categories.")
    ] = None,
    quantized: Annotated[
        bool | None, _trees("--quantized/--no-quantized", None, "Fast mode: coarse gradients in split search.")
    ] = None,
    diagnostics: Annotated[
        int | None, _trees("--diagnostics", "N", "Record every N trees how λ's and ranks change, for 'diagnose'.")
    ] = None,
    lightgbm: Annotated[
        list[str] | None, _trees("--lightgbm", "KEY=VALUE", "A further parameter of LightGBM's tree growing.")
    ] = None,
    hidden: Annotated[
        options.NumberOrText | None,
        _nets("--hidden", "N", "Hidden nodes; 0 = linear; 64,32 = two layers.", parser=options.number_or_text),
    ] = None,
    activation: Annotated[str | None, _nets("--activation", "NAME", "Of hidden nodes: tanh or relu.")] = None,
    epochs: Annotated[int | None, _nets("--epochs", "N", "Most passes over the data.")] = None,
    batch: Annotated[
        options.NumberOrText | None,
        _nets("--batch", "N", "Queries a step, or full.", parser=options.number_or_text),
    ] = None,
    optimizer: Annotated[
        str | None, _nets("--optimizer", "NAME", "adam, sgd, or donmez: the paper's schedule.")
    ] = None,
    rates: Annotated[
        str | None, _nets("--rates", "R,R,…", "Learning rates to try; the best on --valid is kept.")
    ] = None,
    weight_decay: Annotated[float | None, _nets("--weight-decay", "R", "Pulls weights towards 0.")] = None,
    restart: Annotated[
        int | None, _nets("--restart", "N", "Start anew after N epochs without change on --valid.")
    ] = None,
    scaling: Annotated[
        str | None, _nets("--scaling", "NAME", "Of features: standard, log or none; for SVMs also minmax.")
    ] = None,
    device: Annotated[str | None, _nets("--device", "NAME", "cpu, cuda or auto.")] = None,
    k: Annotated[int | None, _others("--k", "N", "Length of the top-k truth.")] = None,
    beta: Annotated[
        options.NumberOrText | None,
        _others("--beta", "SHARE", "Weight of the listwise part; auto chooses.", parser=options.number_or_text),
    ] = None,
    c: Annotated[
        options.NumberOrText | None,
        _others("--c", "R", "Weight of the errors; auto chooses.", parser=options.number_or_text),
    ] = None,
    rounds: Annotated[int | None, _others("--rounds", "N", "Most rounds of boosting.")] = None,
    train_measure: Annotated[
        bool | None, typer.Option("--train-measure/--no-train-measure", help="Record the measure on --train, too.")
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
    label: options.LabelFiles = None,
    valid_label: Annotated[
        list[str] | None, _data("--valid-label", "NAME=FILE", "The same for --valid; for several, in their order.")
    ] = None,
    test_label: Annotated[
        list[str] | None, _data("--test-label", "NAME=FILE", "The same for --test; for several, in their order.")
    ] = None,
    format_from: options.FormatName = None,
    missing: options.Missing = False,
    zero_based: options.ZeroBased = False,
    n_features: options.FeatureCount = None,
    random_state: Annotated[
        int | None, typer.Option("--random-state", "--seed", min=0, help="Seed of all randomness.")
    ] = None,
    n_jobs: options.Threads = None,
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
    files = {"train": train_file, **numbered("valid", valid), **numbered("test", test)}
    check_output(output, [*files.values(), *([Path(base)] if base else [])])
    # What the options say is checked before data is read, which may take long.
    given = {
        "objective": objective, "construction": construction, "measure": measure, "trees": trees, "leaves": leaves,
        "rate": rate, "min_docs": min_docs, "split": split, "step": step, "max_depth": max_depth, "bins": bins,
        "l2": l2, "min_hessian": min_hessian, "features": features, "queries": queries,
        "early_stopping": early_stopping, "quantized": quantized, "diagnostics": diagnostics, "hidden": hidden,
        "activation": activation, "epochs": epochs, "batch": batch, "optimizer": optimizer, "rates": rates,
        "weight_decay": weight_decay, "restart": restart, "scaling": scaling, "device": device, "k": k, "beta": beta,
        "c": c, "rounds": rounds, "train_measure": train_measure, "random_state": random_state, "n_jobs": n_jobs,
        "lightgbm": key_values(lightgbm, "--lightgbm") or None,
    }  # fmt: skip
    with_data = {"base": base, "monotone": monotone, "categorical": categorical, "checkpoint": checkpoint}
    name = check_algorithm(algorithm, given, with_data)
    learner = make_learner(name, given)
    ranker = base_ranker(base)
    labels = {
        "train": list(label or ()),
        **shared_out("valid", valid, valid_label),
        **shared_out("test", test, test_label),
    }
    reading = Reading(format_from, missing, zero_based, n_features=n_features)
    sets = load_sets(learner, files, notes, reading, labels)
    set_features(learner, sets["train"], train_file, base, ranker, monotone, categorical)
    run = Run(name, learner, files, output)
    command = run.command(tuple(given), base, monotone, labels, reading, checkpoint)
    notes.say(f"this command repeats the run: {command}")
    if not valid and learner.validated:
        notes.say(f"there is no --valid: all {learner.unit}s are kept")
    state = keep_state(learner, output, checkpoint, notes)
    began = time.perf_counter()
    run.fit(sets, quiet)
    seconds = time.perf_counter() - began
    learner.ranker_.remember(command=command)
    learner.ranker_.save(output)
    if run.interrupted:
        notes.say(f"interrupted: {output} is the best model of {run.counted(run.total)}")
        if state is not None and state.exists():
            notes.say(f"{state} is kept: the same command goes on from there")
    elif state is not None:
        state.unlink(missing_ok=True)
    with notes.working("evaluating"):
        values = {key: run.values(data) for key, data in sets.items()}
    run.summarize(values, seconds, command, show_as)
    if run.interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)

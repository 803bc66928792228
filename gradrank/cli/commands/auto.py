"""``gradrank auto``: several rankers within a time budget, combined."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, load_data, print_table, print_text, with_features
from gradrank.cli.interruption import EXIT_INTERRUPTED, Interruption
from gradrank.cli.provenance import remember_data
from gradrank.cli.reading import Reading, reads_data
from gradrank.cli.training import check_output
from gradrank.cli.workers import Scheduler, dask_client
from gradrank.errors import DataError

if TYPE_CHECKING:
    from gradrank.data.ranking_data import RankingData
    from gradrank.evaluation import Comparison, Evaluation
    from gradrank.measures import AnyMeasure
    from gradrank.selection.auto import AutoResult
    from gradrank.selection.crossfit import CrossFitted
    from gradrank.selection.distil import Distilled
    from gradrank.selection.members import Member

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h)?")
_FACTOR = re.compile(r"(\d+(?:\.\d+)?)\s*[x×]?")
# Of the budget, for the members; the rest is for cheaper rankers made from them.
_FOR_MEMBERS = 0.75
_SECONDS = {None: 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


@reads_data
def auto(
    train_file: Annotated[Path, typer.Option("--train", metavar="FILE", help="Data to learn from.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="Model file to write.")],
    valid_file: Annotated[
        Path | None,
        typer.Option("--valid", metavar="FILE", help="More data to learn from, unless --valid-apart is given."),
    ] = None,
    apart: Annotated[
        bool, typer.Option("--valid-apart", help="Do not learn from --valid: it only finds the weights.")
    ] = False,
    measure: Annotated[str, typer.Option("--measure", "-m", metavar="MEASURE", help="What to be good at.")] = "NDCG@10",
    budget: Annotated[
        str,
        typer.Option("--budget", metavar="TIME", help="Time for everything; all of it is used: 300s, 20min, 2h."),
    ] = "300s",
    most: Annotated[
        int | None,
        typer.Option(
            "--most", metavar="N", min=1, help="Most rankers to cross-fit; with an ample budget such a run repeats."
        ),
    ] = None,
    folds: Annotated[
        int, typer.Option("--folds", metavar="N", min=2, help="How often to train each, leaving out other queries.")
    ] = 4,
    members: Annotated[
        Path | None,
        typer.Option("--members", metavar="FOLDER", help="Keeps trained rankers, so that a run goes on after its end."),
    ] = None,
    serve_budget: Annotated[
        str | None,
        typer.Option(
            "--serve-budget",
            metavar="FACTOR",
            help="Write the best ranker that has at most so many times the trees of one plain model, such as 1.5x: the "
            "portfolio is distilled.",
        ),
    ] = None,
    test_file: Annotated[
        Path | None, typer.Option("--test", metavar="FILE", help="Data to evaluate everything on at the end.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="HTML report to write (on --test, else on left-out queries)."),
    ] = None,
    label: options.LabelFiles = None,
    valid_label: Annotated[
        list[str] | None, typer.Option("--valid-label", metavar="NAME=FILE", help="The same for --valid.")
    ] = None,
    test_label: Annotated[
        list[str] | None, typer.Option("--test-label", metavar="NAME=FILE", help="The same for --test.")
    ] = None,
    *,
    reading: Reading,
    random_state: Annotated[int, typer.Option("--random-state", "--seed", min=0, help="Seed of all randomness.")] = 0,
    processes: Annotated[
        int | None,
        typer.Option(
            "--processes", metavar="N", min=1, help="Rankers to train at the same time; by default one for each core."
        ),
    ] = None,
    scheduler: Scheduler = None,
    n_jobs: options.Threads = None,
    show_as: Annotated[
        options.TableOrJson, typer.Option("--format", help="Form of the summary.")
    ] = options.TableOrJson.table,
    quiet: options.Quiet = False,
) -> None:
    """Train many kinds of rankers within a budget of time and combine what pays."""
    notes = Notes(quiet)
    seconds = duration(budget, "--budget")
    factor = None if serve_budget is None else times(serve_budget, "--serve-budget")
    if apart and valid_file is None:
        raise DataError("--valid-apart is given, but no --valid")
    if scheduler is not None and processes is not None:
        raise DataError("--scheduler and --processes are both given, expected one of them")
    given = {"train": train_file, "valid": valid_file, "test": test_file}
    files = {key: path for key, path in given.items() if path is not None}
    check_output(output, list(files.values()))
    if report is not None:
        check_output(report, list(files.values()))
    from gradrank.measures import parse_measure
    from gradrank.selection.auto import auto as run_auto

    wanted = parse_measure(measure)
    labels = {"train": label, "valid": valid_label, "test": test_label}
    flags = {"train": "--label", "valid": "--valid-label", "test": "--test-label"}
    sets = {key: load_data(path, notes, reading, list(labels[key] or ()), flags[key]) for key, path in files.items()}
    for key, path in files.items():
        sets[key] = with_features(sets[key], path, sets["train"].feature_names, str(train_file))

    def announce(member: Member, fitted: CrossFitted | None, left: float) -> None:
        if fitted is None:
            notes.say(f"{member.name}: {_options(member)}")
        else:
            notes.say(f"{member.name}: done in {fitted.seconds:.1f} s of training; {max(left, 0.0):.0f} s are left")

    with dask_client(scheduler, notes) as client, Interruption("step") as interruption:
        result = run_auto(
            sets["train"],
            sets.get("valid"),
            wanted,
            budget=seconds if factor is None else _FOR_MEMBERS * seconds,
            most=most,
            folds=folds,
            apart=apart,
            random_state=random_state,
            processes=processes,
            n_jobs=n_jobs,
            folder=members,
            client=client,
            listener=announce,
            asked=interruption.asked,
        )
    distilled = None
    if factor is not None:
        from gradrank.selection.distil import distil

        try:
            with notes.working("distilling"):
                distilled = distil(result, wanted, factor, budget=(1.0 - _FOR_MEMBERS) * seconds, n_jobs=n_jobs)
            notes.say(f"{distilled.chosen} is the best of at most {distilled.most_trees:,} trees")
        except KeyboardInterrupt:
            result = replace(result, interrupted=True)
            notes.say("interrupted while distilling: the whole portfolio is written, not within --serve-budget")
    ranker = result.ranker if distilled is None else distilled.ranker
    ranker.remember(command=shlex.join(["gradrank", *sys.argv[1:]]))
    remember_data(ranker, sets, files, list(wanted.parts), n_jobs=n_jobs)
    ranker.save(output)
    if result.interrupted:
        notes.say(f"interrupted: {output} combines what was trained until then")
    judged_on = str(files["test"]) if "test" in sets else "queries that were left out in training"
    evaluation, comparison = _judged(result, sets.get("test"), wanted, n_jobs, distilled)
    if report is not None:
        from gradrank.report import write_report
        from gradrank.report.serving import serving_view

        write_report(
            report,
            title=f"Portfolio for {wanted}",
            evaluation=evaluation,
            comparison=comparison,
            data={files["test"].name: sets["test"]} if "test" in sets else {"left out": result.judged_on},
            commands=[shlex.join(["gradrank", *sys.argv[1:]])],
            serving=None
            if distilled is None
            else serving_view(distilled.curve, distilled.chosen, str(wanted.parts[0])),
            notes=[] if "test" in sets else ["Weights were chosen on these queries: give --test for an honest value."],
        )
        notes.say(f"wrote {report}")
    _summarize(result, distilled, output, judged_on, evaluation, comparison, show_as)
    if result.interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)


def duration(text: str, flag: str) -> float:
    """Seconds of a duration like ``300s``, ``20min`` or ``2h``.

    >>> duration("20min", "--budget")
    1200.0
    """
    found = _DURATION.fullmatch(text.strip())
    if found is None or float(found[1]) == 0.0:
        raise DataError(f"{flag} is {text!r}, expected a duration like 300s, 20min or 2h")
    return float(found[1]) * _SECONDS[found[2]]


def times(text: str, flag: str) -> float:
    """The number of a factor like ``1.5x``.

    >>> times("1.5x", "--serve-budget")
    1.5
    """
    found = _FACTOR.fullmatch(text.strip())
    if found is None or float(found[1]) == 0.0:
        raise DataError(f"{flag} is {text!r}, expected a factor like 1.5x")
    return float(found[1])


def _options(member: Member) -> str:
    words = [f"--{name.replace('_', '-')} {shlex.quote(str(value))}" for name, value in member.parameters.items()]
    return " ".join([f"--algorithm {member.algorithm}", *words])


def _judged(
    result: AutoResult,
    test: RankingData | None,
    measure: AnyMeasure,
    n_jobs: int | None,
    distilled: Distilled | None = None,
) -> tuple[Evaluation, Comparison | None]:
    """Plain training, the best member and the combination on test data, or by scores of left-out queries."""
    import numpy as np

    from gradrank.evaluation import compare, evaluate

    numbers = dict.fromkeys([0, result.best_single])
    if test is None:
        data = result.judged_on
        combined = np.sum([w * c for w, c in zip(result.blend.weights, result.columns, strict=True)], axis=0)
        columns = {result.rows[number].member.name: result.columns[number] for number in numbers}
        scores = {name: data.in_input_order(column) for name, column in {**columns, "combined": combined}.items()}
    else:
        data = test
        rankers = {result.rows[number].member.name: result.rankers[number] for number in numbers}
        rankers["combined"] = result.ranker
        if distilled is not None:
            rankers["distilled"] = distilled.ranker
        scores = {name: ranker.predict(test, n_jobs=n_jobs) for name, ranker in rankers.items()}
    evaluation = evaluate(data, scores, measure.parts, n_jobs=n_jobs)
    return evaluation, compare(evaluation)


def _summarize(
    result: AutoResult,
    distilled: Distilled | None,
    output: Path,
    judged_on: str,
    evaluation: Evaluation,
    comparison: Comparison | None,
    show_as: options.TableOrJson,
) -> None:
    from gradrank.evaluation.tables import Column, Table, to_json

    if show_as is options.TableOrJson.json:
        print_text(
            to_json({
                "model": str(output),
                "values": result.values,
                "rule": result.blend.rule,
                "judged": result.blend.judged,
                "members": [row.to_dict() for row in result.rows],
                "seconds": round(result.seconds, 3),
                "interrupted": result.interrupted,
                "distilled": None if distilled is None else distilled.to_dict(),
                "judged_on": judged_on,
                "evaluation": evaluation.to_dict(),
                "comparison": None if comparison is None else comparison.to_dict(),
            })
        )  # fmt: skip
        return
    name = next(iter(result.values))
    written = f", in {output}" if distilled is None else ""
    columns = (Column("member"), Column(f"{name} out of fold", "number"), Column("seconds", "number"),
               Column("weight", "number"), Column("verdict"))  # fmt: skip
    rows: list[tuple[Any, ...]] = [
        (row.member.name, row.value, row.seconds, row.weight, row.verdict) for row in result.rows
    ]
    rows.append(("combined", result.values[name], result.seconds, None, f"by {result.blend.rule} weights{written}"))
    print_table(Table(columns, tuple(rows)), options.OutputFormat.table)
    if distilled is not None:
        heads = (Column("to serve"), Column(f"{name} out of fold", "number"), Column("trees", "count"),
                 Column("µs per document", "number"), Column(""))  # fmt: skip
        lines = [
            (point.name, point.value, point.trees, point.microseconds,
             f"taken, in {output}" if point.name == distilled.chosen else "")
            for point in distilled.curve
        ]  # fmt: skip
        print_table(Table(heads, tuple(lines)), options.OutputFormat.table)
    if comparison is not None:
        table = comparison.table()
        print_table(
            Table(table.columns, table.rows, title=f"on {judged_on}, {table.title}"), options.OutputFormat.table
        )

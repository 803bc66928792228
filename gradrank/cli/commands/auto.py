"""``gradrank auto``: several rankers within a time budget, combined."""

from __future__ import annotations

import re
import shlex
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, load_data, print_table, print_text, with_features
from gradrank.cli.interruption import EXIT_INTERRUPTED, Interruption
from gradrank.cli.provenance import remember_data
from gradrank.cli.reading import Reading, reads_data
from gradrank.cli.training import check_output
from gradrank.errors import DataError
from gradrank.learners.base.progress import Progress

if TYPE_CHECKING:
    from gradrank.data.ranking_data import RankingData
    from gradrank.evaluation import Comparison, Evaluation
    from gradrank.measures import AnyMeasure
    from gradrank.selection.auto import AutoResult
    from gradrank.selection.members import Member

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h)?")
_SECONDS = {None: 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


@reads_data
def auto(
    train_file: Annotated[Path, typer.Option("--train", metavar="FILE", help="Data to learn from.")],
    valid_file: Annotated[Path, typer.Option("--valid", metavar="FILE", help="Data that chooses and combines.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="Model file to write.")],
    measure: Annotated[str, typer.Option("--measure", "-m", metavar="MEASURE", help="What to be good at.")] = "NDCG@10",
    budget: Annotated[
        str, typer.Option("--budget", metavar="TIME", help="Time for training: 300s, 20min, 2h.")
    ] = "300s",
    most: Annotated[int, typer.Option("--most", metavar="N", min=1, help="Most rankers to train.")] = 12,
    test_file: Annotated[
        Path | None, typer.Option("--test", metavar="FILE", help="Data to evaluate everything on at the end.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="HTML report to write (on --test, else --valid).")
    ] = None,
    level: Annotated[float, typer.Option("--level", help="Level of significance for what joins.")] = 0.05,
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
    n_jobs: options.Threads = None,
    show_as: Annotated[
        options.TableOrJson, typer.Option("--format", help="Form of the summary.")
    ] = options.TableOrJson.table,
    quiet: options.Quiet = False,
) -> None:
    """Train several kinds of rankers within a budget of time and combine what helps."""
    notes = Notes(quiet)
    seconds = duration(budget, "--budget")
    if not 0 < level < 1:
        raise DataError(f"--level is {level}, expected a number between 0 and 1")
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

    with Interruption("step") as interruption, ExitStack() as bars:

        def announce(member: Member, number: int) -> None:
            bars.close()
            notes.say(f"{number}: {member.name} ({_options(member)})")
            told[0] = bars.enter_context(Progress(quiet, "step"))

        told = [Progress(quiet, "step")]
        result = run_auto(
            sets["train"],
            sets["valid"],
            wanted,
            budget=seconds,
            most=most,
            random_state=random_state,
            n_jobs=n_jobs,
            level=level,
            callbacks=(lambda step: told[0](step), interruption),
            listener=announce,
        )
    result.ranker.remember(command=shlex.join(["gradrank", *sys.argv[1:]]))
    remember_data(result.ranker, sets, files, list(wanted.parts), n_jobs=n_jobs)
    result.ranker.save(output)
    if result.interrupted:
        notes.say(f"interrupted: {output} combines what was trained until then")
    key = "test" if "test" in sets else "valid"
    evaluation, comparison = _judged(result, sets[key], wanted, n_jobs)
    if report is not None:
        from gradrank.report import write_report

        write_report(
            report,
            title=f"Portfolio for {wanted}",
            evaluation=evaluation,
            comparison=comparison,
            data={files[key].name: sets[key]},
            commands=[shlex.join(["gradrank", *sys.argv[1:]])],
            notes=[] if key == "test" else ["Members were chosen on these queries: give --test for an honest value."],
        )
        notes.say(f"wrote {report}")
    _summarize(result, output, str(files[key]), evaluation, comparison, show_as)
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


def _options(member: Member) -> str:
    words = [f"--{name.replace('_', '-')} {shlex.quote(str(value))}" for name, value in member.parameters.items()]
    return " ".join([f"--algorithm {member.algorithm}", *words])


def _judged(
    result: AutoResult, data: RankingData, measure: AnyMeasure, n_jobs: int | None
) -> tuple[Evaluation, Comparison | None]:
    """The best single ranker and the combination on one data set."""
    from gradrank.evaluation import compare, evaluate

    single = result.best_single
    rankers = {result.rows[single].member.name: result.rankers[single], "combined": result.ranker}
    scores = {name: ranker.predict(data, n_jobs=n_jobs) for name, ranker in rankers.items()}
    evaluation = evaluate(data, scores, measure.parts, n_jobs=n_jobs)
    return evaluation, compare(evaluation)


def _summarize(
    result: AutoResult,
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
                "members": [row.to_dict() for row in result.rows],
                "seconds": round(result.seconds, 3),
                "interrupted": result.interrupted,
                "judged_on": judged_on,
                "evaluation": evaluation.to_dict(),
                "comparison": None if comparison is None else comparison.to_dict(),
            })
        )  # fmt: skip
        return
    name = next(iter(result.values))
    columns = (Column("member"), Column(f"{name} on valid", "number"), Column("seconds", "number"),
               Column("weight", "number"), Column("p", "p"), Column("verdict"))  # fmt: skip
    rows: list[tuple[Any, ...]] = [
        (row.member.name, row.value, row.seconds, row.weight, row.p, row.verdict) for row in result.rows
    ]
    rows.append(("combined", result.values[name], result.seconds, None, None, f"written to {output}"))
    print_table(Table(columns, tuple(rows)), options.OutputFormat.table)
    if comparison is not None:
        table = comparison.table()
        print_table(
            Table(table.columns, table.rows, title=f"on {judged_on}, {table.title}"), options.OutputFormat.table
        )

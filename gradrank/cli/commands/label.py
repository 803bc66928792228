"""``gradrank label``: the labeling tool."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gradrank.cli import options
from gradrank.cli.commands import label_simulate
from gradrank.cli.common import Notes, check_writable, print_table, print_text
from gradrank.cli.reading import Reading, reads_data
from gradrank.errors import DataError

if TYPE_CHECKING:
    from gradrank.labeling.project.store import Store

_MOST_FAULTS = 50

app = typer.Typer(help="Label documents: the ordered top k of each query with few judgments.", no_args_is_help=True)

Project = Annotated[Path, typer.Argument(metavar="PROJECT", help="The project's file.")]


class ToolChoice(StrEnum):
    """Which tools assessors use."""

    pairs = "pairs"
    grades = "grades"
    both = "both"


class DesignChoice(StrEnum):
    """Designs of assignment."""

    balanced = "balanced"
    paper = "paper"


class StrategyChoice(StrEnum):
    """Names of the strategies."""

    tournament = "tournament"
    heap = "heap"
    heap_infer = "heap-infer"
    insertion = "insertion"
    grades = "grades"


class ExportChoice(StrEnum):
    """Names of the exports."""

    topk = "topk"
    qrels = "qrels"
    letor = "letor"
    events = "events"
    preferences = "preferences"


class LabelSource(StrEnum):
    """Whose judgments become labels."""

    pairs = "pairs"
    grades = "grades"


class ReportFormat(StrEnum):
    """Forms of the report."""

    json = "json"
    html = "html"


def _open(path: Path) -> Store:
    from gradrank.labeling.project.store import Store

    return Store(path)


@app.command()
def init(
    project: Project,
    title: Annotated[str, typer.Option(help="What assessors see as the name; the file's name by default.")] = "",
    guidelines: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Text that tells assessors what to go by.")
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Make an empty project."""
    from gradrank.labeling.project.access import load_secret
    from gradrank.labeling.project.store import create_project

    text = _text(guidelines) if guidelines is not None else ""
    create_project(project, title=title, guidelines=text).close()
    load_secret(project)
    Notes(quiet).say(f"{project} is made; next: gradrank label import {project} --queries FILE --documents FILE")


@app.command("import")
def import_command(
    project: Project,
    queries: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Queries: TREC topics, JSONL, TSV or CSV.")
    ] = None,
    documents: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Documents: JSONL, TSV or CSV. May be repeated.")
    ] = None,
    run: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="TREC run: its first documents are candidates. May be repeated."),
    ] = None,
    qrels: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="TREC qrels: their documents are candidates.")
    ] = None,
    depth: Annotated[int, typer.Option(min=1, help="Candidates that each run gives for a query.")] = 50,
    html: Annotated[bool, typer.Option("--html", help="Texts of the documents are HTML.")] = False,
    skip_missing: Annotated[
        bool, typer.Option("--skip-missing", help="Leave out candidates without a text instead of refusing them.")
    ] = False,
    guidelines: Annotated[Path | None, typer.Option(metavar="FILE", help="Text for the assessors.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only look at the files; say what is wrong, by line.")
    ] = False,
    show_as: Annotated[
        options.TableOrJson, typer.Option("--format", help="Form of the output.")
    ] = options.TableOrJson.table,
    quiet: options.Quiet = False,
) -> None:
    """Read queries, documents and candidates into a project; if anything is wrong, nothing is read."""
    from gradrank.labeling.project.importing import import_files

    if queries is None and not documents and not run and not qrels and guidelines is None:
        raise DataError("nothing to import: give --queries, --documents, --run, --qrels or --guidelines")
    notes = Notes(quiet)
    text = None if guidelines is None else _text(guidelines)
    with _open(project) as store:
        with notes.working("reading"):
            found = import_files(
                store,
                queries=queries,
                documents=documents or [],
                runs=run or [],
                qrels=qrels or [],
                depth=depth,
                html=html,
                skip_missing=skip_missing,
                dry_run=dry_run,
            )
        if text is not None and not dry_run and not found.faults:
            store.set_setting("guidelines", text)
    for said in found.notes:
        notes.say(said)
    if show_as is options.TableOrJson.json:
        faults = [{"file": str(item.path), "line": item.line, "fault": item.message} for item in found.faults]
        print_text(json.dumps({**found.summary(), "faults": faults, "imported": not (dry_run or faults)}) + "\n")
    else:
        for fault in found.faults[:_MOST_FAULTS]:
            typer.echo(f"{fault}", err=True)
        if len(found.faults) > _MOST_FAULTS:
            typer.echo(f"… and {len(found.faults) - _MOST_FAULTS} more", err=True)
        counts = ", ".join(f"{count:,} {name}" for name, count in found.summary().items() if name != "faults")
        print_text(f"{'would import' if dry_run or found.faults else 'imported'} {counts}\n")
    if found.faults:
        count = len(found.faults)
        raise DataError(f"{count} fault{'s' * (count > 1)} in the files: nothing was imported")


@app.command()
def assign(
    project: Project,
    assessors: Annotated[int, typer.Option(metavar="N", min=1, help="How many assessors take part.")],
    overlap: Annotated[int, typer.Option(metavar="R", min=1, help="Assessors for each query and tool.")] = 1,
    k: Annotated[int, typer.Option("--k", "-k", min=1, help="How many documents at the top are put in order.")] = 10,
    strategy: Annotated[
        StrategyChoice, typer.Option(help="Which pairs are asked; insertion trusts the order of the run.")
    ] = StrategyChoice.tournament,
    tools: Annotated[ToolChoice, typer.Option(help="Pairs, five grades, or both.")] = ToolChoice.pairs,
    design: Annotated[
        DesignChoice, typer.Option(help="paper: folds of queries go round the assessors, both tools (Niu et al. 2012).")
    ] = DesignChoice.balanced,
    seed: options.Seed = 0,
    preview: Annotated[bool, typer.Option("--preview", help="Only show the plan.")] = False,
    show_as: Annotated[
        options.TableOrJson, typer.Option("--format", help="Form of the output.")
    ] = options.TableOrJson.table,
    quiet: options.Quiet = False,
) -> None:
    """Give queries to assessors; called again, it adds what is missing."""
    from gradrank.labeling.project.assignment import assign as assign_queries
    from gradrank.labeling.project.assignment import queries_without_candidates, summarize_plan, tool_strategies

    notes = Notes(quiet)
    with _open(project) as store:
        planned = assign_queries(
            store,
            assessors=assessors,
            overlap=overlap,
            k=k,
            strategies=tool_strategies(strategy.value, tools.value, design.value),
            design=design.value,
            seed=seed,
            preview=preview,
        )
        if left_out := [] if preview else queries_without_candidates(store):
            notes.say(f"{len(left_out)} queries have no candidates and are left out, such as {left_out[0]}")
    if show_as is options.TableOrJson.json:
        plan = [{"assessor": item.assessor, "query": item.query, "strategy": item.strategy} for item in planned]
        print_text(json.dumps({"assignments": plan, "preview": preview}) + "\n")
    else:
        from gradrank.evaluation.tables import Column, Table

        names = sorted({item.strategy for item in planned})
        rows = tuple((name, *(given.get(n, 0) for n in names)) for name, given in summarize_plan(planned).items())
        if rows:
            columns = (Column("assessor"), *(Column(name, "count") for name in names))
            print_table(Table(columns, rows, "Queries of each assessor"), options.OutputFormat.table)
    word = "would be made" if preview else "made"
    notes.say(f"{len(planned)} assignments {word}" + ("" if preview else "; next: gradrank label serve"))


@app.command()
def invite(
    project: Project,
    name: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Assessors; all if none is named.")
    ] = None,
    renew: Annotated[bool, typer.Option("--renew", help="New links; old ones and their sessions end.")] = False,
    url: Annotated[
        str, typer.Option(metavar="URL", help="Where the project is served; by default where it was served last.")
    ] = "",
) -> None:
    """Show the links by which assessors come in; a name that is new becomes an assessor."""
    from gradrank.labeling.project.access import Access, served_address

    with _open(project) as store:
        access = Access(store)
        base = url.rstrip("/") or served_address(store)
        names = name or [row[0] for row in store.read().execute("SELECT name FROM assessor ORDER BY id")]
        if not names:
            raise DataError("has no assessors yet: name some, or call 'gradrank label assign'", path=project)
        for each in names:
            print_text(f"{each}\t{base}/join/{access.invite(each, renew=renew)}\n")


@app.command()
def serve(
    project: Project,
    port: Annotated[int, typer.Option(metavar="P", min=0, max=65535, help="Port; 0 takes any that is free.")] = 8765,
    host: Annotated[
        str, typer.Option(help="Address to listen on; the default is for this machine only.")
    ] = "127.0.0.1",
    public_url: Annotated[
        str, typer.Option(metavar="URL", help="Address that assessors use, if a proxy stands before the server.")
    ] = "",
) -> None:
    """Serve the pages of assessors and owner until interrupted."""
    from gradrank.labeling.project.store import Store
    from gradrank.labeling.web.server import BUSY_SECONDS
    from gradrank.labeling.web.server import serve as serve_project

    with Store(project, busy_seconds=BUSY_SECONDS) as store:
        serve_project(store, host=host, port=port, public_url=public_url, say=typer.echo)


@app.command("status", hidden=True)
@app.command()
def board(
    project: Project,
    show_as: Annotated[
        options.TableOrJson, typer.Option("--format", help="Form of the output.")
    ] = options.TableOrJson.table,
) -> None:
    """Show how far the project is."""
    from gradrank.labeling.project.board import board as board_of
    from gradrank.labeling.project.judging import Desk

    with _open(project) as store:
        now = board_of(Desk(store))
    if show_as is options.TableOrJson.json:
        print_text(json.dumps(now.to_dict(), ensure_ascii=False) + "\n")
        return
    from gradrank.evaluation.tables import Column, Table

    done = f"{now.count('done')} of {len(now.assignments) - now.count('void')}"
    facts = (("queries", f"{now.queries:,}"), ("documents", f"{now.documents:,}"), ("assignments done", done))
    print_table(Table((Column(""), Column("")), facts, now.title), options.OutputFormat.table)
    if now.assessors:
        columns = (Column("assessor"), *(Column(name, "count") for name in ("queries", "done", "judgments", "minutes")))
        rows = tuple(
            (item.name, item.assigned, item.done, item.judgments, round(item.minutes)) for item in now.assessors
        )
        print_table(Table(columns, rows, "Assessors"), options.OutputFormat.table)
    if now.assignments:
        columns = (Column("no.", "count"), *map(Column, ("assessor", "query", "strategy", "state", "judged")))
        states = tuple(
            (item.number, item.assessor, item.query, item.strategy, item.status, str(item.asked))
            for item in now.assignments
        )
        print_table(Table(columns, states, "Assignments"), options.OutputFormat.table)


@app.command()
def void(
    project: Project,
    assignment: Annotated[int, typer.Argument(metavar="ASSIGNMENT", min=1, help="Its number on the board.")],
    reason: Annotated[str, typer.Option(help="Why; it is kept.")],
) -> None:
    """Take an assignment out of all results; its events stay in the project."""
    from gradrank.labeling.project.assignment import void as void_assignment

    with _open(project) as store:
        void_assignment(store, assignment, reason)


@app.command()
def backup(
    project: Project,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The copy; beside the project by default.")
    ] = None,
) -> None:
    """Copy a project, also while it is being served."""
    from gradrank.labeling.project.backup import backup as copy_project

    with _open(project) as store:
        print_text(f"{copy_project(store, output)}\n")


@app.command()
def restore(
    copy: Annotated[Path, typer.Argument(metavar="BACKUP", help="A copy that backup made.")],
    project: Project,
    quiet: options.Quiet = False,
) -> None:
    """Put a backup in the place of a project; the replaced file is kept beside it."""
    from gradrank.labeling.project.backup import restore as restore_project

    restored = restore_project(copy, project)
    if restored.aside is not None:
        Notes(quiet).say(f"the project of before is now {restored.aside}")
    if not restored.links_kept:
        Notes(quiet).say(f"all links are new: gradrank label invite {project}")


@app.command()
def report(
    project: Project,
    show_as: Annotated[ReportFormat, typer.Option("--format", help="Form of the output.")] = ReportFormat.json,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write here instead of standard output.")
    ] = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Times, agreement between assessors, tests between the tools."""
    if output is not None:
        check_writable(output)
    from gradrank.labeling.analysis.report import labeling_report
    from gradrank.labeling.project.results import outcomes, records

    notes = Notes(quiet)
    with _open(project) as store, notes.working("computing"):
        title = store.setting("title")
        found = labeling_report(records(store), outcomes(store), seed=seed)
    if show_as is ReportFormat.html:
        text = found.to_html(title)
    else:
        text = json.dumps(found.to_dict(), ensure_ascii=False, indent=2) + "\n"
    if output is None:
        print_text(text)
        return
    from gradrank.runtime.files import replacing

    with replacing(output) as temporary:
        temporary.write_text(text, encoding="utf-8")


@app.command()
@reads_data
def export(
    project: Project,
    to: Annotated[ExportChoice, typer.Option("--to", help="What to write.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="File; .csv gives CSV where that makes sense.")
    ],
    features: Annotated[
        Path | None, typer.Option(metavar="FILE", help="letor: data with document ids that gets the labels.")
    ] = None,
    source: Annotated[
        LabelSource | None,
        typer.Option("--labels", help="qrels, letor: judgments of pairs or grades; pairs where there are any."),
    ] = None,
    unfinished: Annotated[bool, typer.Option("--unfinished", help="topk: also what is not finished.")] = False,
    *,
    reading: Reading,
    quiet: options.Quiet = False,
) -> None:
    """Write results: ordered top k, qrels, LETOR text, all events, or preferences."""
    check_writable(output)
    from gradrank.labeling.project.exporting import EXPORTS
    from gradrank.labeling.records import Tool

    wanted: dict[str, Any] = {}
    if to is ExportChoice.letor:
        if features is None:
            raise DataError("--to letor joins labels to features: give --features FILE")
        from gradrank.data.formats.registry import format_to_read

        reading.check(format_to_read(features, reading.format), features)
        wanted |= {"features": features, "format": reading.format, **reading.options}
    elif features is not None or reading.words():
        flag = "--features" if features is not None else reading.words()[0]
        raise DataError(f"{flag} is for --to letor, not for --to {to.value}")
    if source is not None:
        if to not in (ExportChoice.qrels, ExportChoice.letor):
            raise DataError(f"--labels is for --to qrels or letor, not for --to {to.value}")
        wanted["tool"] = Tool.PREFERENCES if source is LabelSource.pairs else Tool.GRADES
    if unfinished:
        if to is not ExportChoice.topk:
            raise DataError(f"--unfinished is for --to topk, not for --to {to.value}")
        wanted["unfinished"] = True
    notes = Notes(quiet)
    with _open(project) as store, notes.working(f"writing {output}"):
        done = EXPORTS[to.value](store, output, **wanted)
    for said in done.notes:
        notes.say(said)
    notes.say(f"{output}: {done.rows} rows")


app.command("simulate")(label_simulate.simulate)


def _text(path: Path) -> str:
    from gradrank.labeling.project.source_files import Fault, read_text

    faults: list[Fault] = []
    text = read_text(path, faults)
    if text is None:
        raise DataError(faults[0].message, path=path, line=faults[0].line)
    return text.strip()

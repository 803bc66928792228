"""``gradrank experiment``: list, show and run the papers' tables and figures."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, check_writable, load_data, make_folder, named_files, print_table, print_text
from gradrank.cli.reading import Reading, reads_data
from gradrank.cli.workers import Scheduler, dask_client
from gradrank.errors import DataError

if TYPE_CHECKING:
    from gradrank.data.ranking_data import RankingData
    from gradrank.evaluation.tables import Table
    from gradrank.experiments.recipe import Recipe
    from gradrank.experiments.result import Result


class ScaleName(StrEnum):
    """How large an experiment is."""

    tiny = "tiny"
    small = "small"
    paper = "paper"


class ResultFormat(StrEnum):
    """How results go to standard output."""

    md = "md"
    json = "json"


app = typer.Typer(
    help="Run the tables and figures of the papers, on artificial data or on yours.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(metavar="ID", help="Table or figure, as 'gradrank experiment list' names it.")]


@app.command("list")
def list_recipes(show_as: options.ShowAs = options.OutputFormat.table) -> None:
    """List the tables and figures, with what the papers found."""
    from gradrank.evaluation.tables import Column, Table
    from gradrank.experiments import RECIPES, recipe

    rows = []
    for name in RECIPES:
        found = recipe(name)
        rows.append((name, found.paper, found.shows, found.finding))
    columns = (Column("id"), Column("paper"), Column("shows"), Column("the paper's finding"))
    print_table(Table(columns, tuple(rows)), show_as)


@app.command("show")
def show(name: Name, show_as: options.ShowAs = options.OutputFormat.table) -> None:
    """Show what an experiment does, and its settings at each scale."""
    from gradrank.experiments import recipe

    found = recipe(name)
    if show_as in (options.OutputFormat.table, options.OutputFormat.md):
        print_text(_described(name, found))
    print_table(_settings(found), show_as)


@app.command("run")
@reads_data
def run(
    names: Annotated[list[str], typer.Argument(metavar="ID…", help="Tables and figures, one after another.")],
    scale: Annotated[
        ScaleName,
        typer.Option(
            "--scale",
            help="Size: small as in the documentation, paper as in the paper where that is known, tiny for a try.",
        ),
    ] = ScaleName.small,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of the scale. May be repeated."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="DIR",
            help="Folder with train, vali and test files, or LETOR's S1 … S5 or Fold1 …. Artificial data without it.",
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            metavar="NAME=FILES",
            help="A further label source of --data, a file beside each of its files: clicks='*.clicks.txt', where * is "
            "the data file's name without its ending; one number per line in its row order. May be repeated.",
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option("--seeds", metavar="N", min=1, help="Run with so many seeds and give means and deviations.")
    ] = 1,
    seed: Annotated[
        int | None,
        typer.Option("--random-state", "--seed", min=0, help="Seed of all randomness, or the first of many."),
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", metavar="N", min=1, help="Trainings, or seeds, side by side in so many processes.")
    ] = 1,
    scheduler: Scheduler = None,
    threads: options.Threads = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Folder for the results and for trainings that are done."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw a figure's lines: .svg, .png or .pdf.")
    ] = None,
    *,
    reading: Reading,
    show_as: Annotated[ResultFormat, typer.Option("--format", help="Form of the results.")] = ResultFormat.md,
    quiet: options.Quiet = False,
) -> None:
    """Run tables or figures and print what came out, beside what the paper found."""
    from gradrank.evaluation.tables import to_json
    from gradrank.experiments import recipe
    from gradrank.experiments import run as run_recipe

    notes = Notes(quiet)
    chosen: dict[str, Any] = {}
    for name in names:
        own = {} if seed is None else {"random_state": seed}
        made = recipe(name).scale(scale.value).changed(settings or ())
        without_effect = [pair for pair in settings or () if pair.partition("=")[0] in made.of_data()]
        if data is not None and without_effect:
            raise DataError(f"--set {without_effect[0]} describes artificial data, --data gives other data: drop one")
        chosen[name.lower()] = replace(made, n_jobs=threads, **own)
    if plot is not None:
        if len(chosen) > 1:
            raise DataError("--plot draws one figure: give one ID")
        _check_plot(plot)
    if scheduler is not None and jobs > 1:
        raise DataError("--scheduler and --jobs are both given, expected one of them")
    if label and data is None:
        raise DataError("--label goes with --data")
    patterns = {key: str(pattern) for key, pattern in named_files(label)}
    if out is not None:
        make_folder(out)

    def read(file: Path) -> RankingData:
        from gradrank.experiments.folders import label_files_of

        labels = [f"{key}={path}" for key, path in label_files_of(file, patterns).items()]
        return load_data(file, notes, reading, labels)

    results = []
    with dask_client(scheduler, notes) as client:
        for name, each in chosen.items():

            def say(text: str, name: str = name) -> None:
                notes.say(f"{name}: {text}")

            result = run_recipe(
                name, scale=each, data=data, seeds=seeds, jobs=jobs, out=out, client=client, say=say, read=read
            )
            results.append(result)
            if plot is not None:
                _draw(result, plot, notes)
            if show_as is ResultFormat.md:
                print_text(("\n" if len(results) > 1 else "") + result.to_markdown())
    if show_as is ResultFormat.json:
        found = [result.to_dict() for result in results]
        print_text(to_json(found[0] if len(found) == 1 else found))


def _described(name: str, found: Recipe) -> str:
    return (
        f"{name.lower()}: {found.title}\n"
        f"{found.paper}, {found.shows}\n"
        f"The paper's finding: {found.finding}\n"
        f"{_READS[found.reads]}{_needs(found)}.\n\n"
    )


_READS = {
    "splits": "Runs on train, validation and test data, artificial unless --data gives some",
    "folds": "Runs on folds of train, validation and test data, artificial unless --data gives some",
    "judgments": "Runs on simulated people and artificial documents, or those of --data, or on judgments of people",
    "nothing": "Looks at no data",
}


def _needs(found: Recipe) -> str:
    return f", with the label source {', '.join(found.labels)}" if found.labels else ""


def _settings(found: Recipe) -> Table:
    """All settings with their values at each scale and their meanings, then the learners' fixed parameters."""
    from gradrank.evaluation.tables import Column, Table
    from gradrank.experiments.result import shown

    scales = {"small": found.small} | ({} if found.full is None else {"paper": found.full})
    rows: list[tuple[str, ...]] = [
        (key, *(shown(each.values()[key]) for each in scales.values()), meaning)
        for key, meaning in found.small.meanings().items()
        if key != "n_jobs"
    ]
    for learner in found.small.learners():
        for key in found.small.learners()[learner]:
            values = [shown(each.learners().get(learner, {}).get(key)) for each in scales.values()]
            if key not in found.small.meanings():
                rows.append((f"{learner}: {key}", *values, "pinned"))
    columns = (Column("setting"), *(Column(name) for name in scales), Column("meaning"))
    return Table(columns, tuple(rows))


def _check_plot(plot: Path) -> None:
    from gradrank.report.figures import IMAGES

    if plot.suffix.lower() not in IMAGES:
        raise DataError(f"has the suffix {plot.suffix!r}, expected {', '.join(IMAGES)}", path=plot)
    check_writable(plot)


def _draw(result: Result, plot: Path, notes: Notes) -> None:
    from gradrank.report.figures import write_figure
    from gradrank.report.lines import can_be_drawn, draw_tables

    if not any(can_be_drawn(table) for table in result.tables):
        notes.say(f"{result.name} has no lines to draw: {plot} is not written")
        return
    write_figure(draw_tables(result.tables), plot)

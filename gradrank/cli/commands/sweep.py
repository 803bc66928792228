"""``gradrank sweep``: one objective with several weights of its lower tiers."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, check_writable, print_table, print_text, read_config
from gradrank.cli.interruption import EXIT_INTERRUPTED, Interruption
from gradrank.cli.parameters import parsed, takes_parameters
from gradrank.cli.provenance import remember_data
from gradrank.cli.reading import Reading, reads_data
from gradrank.cli.training import check_algorithm, check_output, load_sets, make_learner
from gradrank.errors import DataError
from gradrank.learners.base.progress import Progress

if TYPE_CHECKING:
    from gradrank.data.ranking_data import RankingData
    from gradrank.learners.base.estimator import RankingEstimator
    from gradrank.objectives import Lambda

_DEFAULT_OBJECTIVE = "Tiered(NDCG, CNDCG)"
_LEARNER = "Learner (what is not given is as the learner has it)"


@takes_parameters(without=("base",))
@reads_data
def sweep(
    train_file: Annotated[Path, typer.Option("--train", metavar="FILE", help="Data to learn from.")],
    valid: Annotated[Path, typer.Option("--valid", metavar="FILE", help="Data that chooses the steps and the weight.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="File for the chosen model.")],
    test: Annotated[
        Path | None, typer.Option("--test", metavar="FILE", help="Data on which the models are compared as well.")
    ] = None,
    weights: Annotated[
        str, typer.Option("--weights", metavar="W,W,…", help="Weights of the lower tiers; 0 is always tried.")
    ] = "0.01,0.1,0.2,0.3,0.4,0.5",
    objective: Annotated[
        str,
        typer.Option(
            "--objective", metavar="OBJECTIVE", help="Tiers, the trusted one first: Tiered(NDCG, CNDCG(label=clicks))."
        ),
    ] = _DEFAULT_OBJECTIVE,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            "-m",
            metavar="MEASURE",
            help="A measure to choose by, the trusted one first; the tiers' by default. May be repeated.",
        ),
    ] = None,
    level: Annotated[float, typer.Option("--level", help="Level at which harm to the trusted measure counts.")] = 0.05,
    margin: Annotated[
        float | None,
        typer.Option("--margin", metavar="D", help="Rule out that the trusted measure is D lower or more."),
    ] = None,
    significance: Annotated[
        options.TestChoice, typer.Option("--significance", help="Significance test.")
    ] = options.TestChoice.t,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Trade-off as a page (.html) or .svg, .png, .pdf.")
    ] = None,
    label: options.LabelFiles = None,
    valid_label: Annotated[
        list[str] | None, typer.Option("--valid-label", metavar="NAME=FILE", help="The same for --valid.")
    ] = None,
    test_label: Annotated[
        list[str] | None, typer.Option("--test-label", metavar="NAME=FILE", help="The same for --test.")
    ] = None,
    algorithm: Annotated[
        str | None, typer.Option("--algorithm", metavar="NAME", help="The learner.", rich_help_panel=_LEARNER)
    ] = None,
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
        options.TableOrJson, typer.Option("--format", help="Form of the outcome.")
    ] = options.TableOrJson.table,
    quiet: options.Quiet = False,
    **parameters: Any,
) -> None:
    """Train tiers with several weights, show the trade-off, and keep the best that leaves the trusted measure unharmed.

    Finished models stay in the folder MODEL.sweep: a sweep that was stopped goes on from there.
    """
    notes = Notes(quiet)
    if not 0 < level < 1:
        raise DataError(f"--level is {level}, expected a number between 0 and 1")
    if margin is not None and not margin > 0:
        raise DataError(f"--margin is {margin}, expected a number above 0")
    files = {"train": train_file, "valid": valid, **({} if test is None else {"test": test})}
    check_output(output, list(files.values()))
    _check_plot(plot)
    from gradrank.selection.sweep import checked_weights, graded_objective
    from gradrank.selection.sweep import sweep as run_sweep

    grid = checked_weights(_numbers(weights))
    given = {**parsed(parameters), "objective": objective}
    if measure:
        given["measure"] = _graded(measure)
    learner = make_learner(check_algorithm(algorithm, given), given)
    tiers = graded_objective(learner).tiers
    labels = {"train": list(label or ()), "valid": list(valid_label or ()), "test": list(test_label or ())}
    sets = load_sets(learner, files, notes, reading, labels)
    _check_sources(tiers, sets["train"], train_file)
    folder = output.with_name(output.name + ".sweep")
    command = shlex.join(["gradrank", *sys.argv[1:]])
    try:
        with Interruption(learner.unit) as interruption:
            found = run_sweep(
                learner,
                sets["train"],
                sets["valid"],
                grid,
                test_data=sets.get("test"),
                level=level,
                margin=margin,
                test=significance.value,
                folder=folder,
                fit=_Fit(sets, interruption, notes, [f"w={weight:.10g}" for weight in grid], quiet),
            )
    except KeyboardInterrupt:
        notes.say(f"interrupted: finished models are in {folder}; the same command goes on from there")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    found.ranker.remember(command=command, choice=found.choice.to_dict())
    remember_data(found.ranker, sets, files, list(learner._measure().parts), n_jobs=learner.n_jobs)
    found.ranker.save(output)
    if plot is not None:
        from gradrank.report.tradeoff import write_tradeoff

        write_tradeoff(plot, found)
        notes.say(f"wrote {plot}")
    notes.say(f"the other models are in {folder}")
    if show_as is options.TableOrJson.json:
        from gradrank.evaluation.tables import to_json

        print_text(to_json({"model": str(output), "folder": str(folder), "command": command, **found.to_dict()}))
        return
    for name in found.evaluations:
        print_table(found.table(name), options.OutputFormat.table)
        print_text("\n")
    print_text(f"{found.choice.sentence()}.\n{output}: the chosen model\n")


class _Fit:
    """Trains one member of the sweep, with progress on standard error."""

    def __init__(
        self, sets: dict[str, RankingData], interruption: Interruption, notes: Notes, names: list[str], quiet: bool
    ) -> None:
        self._sets = sets
        self._interruption = interruption
        self._notes = notes
        self._names = names
        self._quiet = quiet

    def __call__(self, name: str, learner: RankingEstimator) -> None:
        self._notes.say(f"training {name}, {self._names.index(name) + 1} of {len(self._names)}")
        with Progress(self._quiet, learner.unit) as progress:
            if "callbacks" in learner.get_params(deep=False):
                learner.set_params(callbacks=(progress, self._interruption))
            learner.fit(self._sets["train"], valid=self._sets["valid"])


def _check_sources(tiers: Sequence[Lambda], data: RankingData, path: Path) -> None:
    try:
        for tier in tiers:
            data.label(tier.target.source)
    except DataError as error:
        raise DataError(f"{error} (--label NAME=FILE adds one)", path=path) from None


def _numbers(text: str) -> list[float]:
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise DataError(f"--weights is {text!r}, expected numbers between commas") from None


def _graded(measures: list[str]) -> str:
    return measures[0] if len(measures) == 1 else f"Graded({', '.join(measures)})"


def _check_plot(plot: Path | None) -> None:
    """A plot that could not be written would be found out after the whole sweep."""
    if plot is None:
        return
    from gradrank.report.figures import IMAGES, new_figure

    if plot.suffix.lower() not in (".html", ".htm", *IMAGES):
        raise DataError(f"is no plot that can be written, expected .html, {', '.join(IMAGES)}", path=plot)
    check_writable(plot)
    new_figure()  # says if the package that draws is missing

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
from gradrank.cli.improving import Asked, MemberFit, run_improvement
from gradrank.cli.interruption import EXIT_INTERRUPTED, Interruption
from gradrank.cli.parameters import parsed, takes_parameters
from gradrank.cli.provenance import remember_data
from gradrank.cli.reading import Reading, reads_data
from gradrank.cli.training import check_algorithm, check_output, load_sets, make_learner
from gradrank.errors import DataError

if TYPE_CHECKING:
    from gradrank.data.ranking_data import RankingData
    from gradrank.objectives import Objective
    from gradrank.selection.weights import Weight

_DEFAULT_OBJECTIVE = "Tiered(NDCG, CNDCG)"
_DEFAULT_WEIGHTS = "0.01,0.1,0.2,0.3,0.4,0.5"
_CONSTRAINTS = "Improve one measure, keep others"
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
        str | None,
        typer.Option(
            "--weights",
            metavar="W,W,…",
            help="Weights of the lower tiers together, or of each of them (0.2/0.1); 0 is always tried. "
            "[default: 0.01,0.1,0.2,0.3,0.4,0.5]",
        ),
    ] = None,
    points: Annotated[
        int | None,
        typer.Option(
            "--points", metavar="N", min=1, help="Instead of --weights: N weights of all lower tiers, spread evenly."
        ),
    ] = None,
    most: Annotated[
        float, typer.Option("--most", metavar="W", help="Largest weight of all lower tiers together for --points.")
    ] = 0.5,
    objective: Annotated[
        str | None,
        typer.Option(
            "--objective",
            metavar="OBJECTIVE",
            help=f"Tiers, the trusted one first. [default: {_DEFAULT_OBJECTIVE}]",
        ),
    ] = None,
    improve: Annotated[
        str | None,
        typer.Option(
            "--improve",
            metavar="MEASURE",
            help="Instead of tiers: improve this measure as far as --keep allows, over mixtures of a few rankers.",
            rich_help_panel=_CONSTRAINTS,
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="CONSTRAINT",
            help="What must hold: 'NDCG@10 >= 99%' of the baseline, or 'NDCG@10 >= 0.45'. May be repeated.",
            rich_help_panel=_CONSTRAINTS,
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            "--baseline",
            metavar="MODEL",
            help="The ranker that shares refer to; one trained for the first measure to keep unless given.",
            rich_help_panel=_CONSTRAINTS,
        ),
    ] = None,
    held_out: Annotated[
        Path | None,
        typer.Option(
            "--held-out",
            metavar="FILE",
            help="Data that constraints are tested on; half of the validation queries unless given.",
            rich_help_panel=_CONSTRAINTS,
        ),
    ] = None,
    held_out_label: Annotated[
        list[str] | None,
        typer.Option(
            "--held-out-label", metavar="NAME=FILE", help="As --label, for --held-out.", rich_help_panel=_CONSTRAINTS
        ),
    ] = None,
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

    Or improve one measure and keep others within bounds: --improve "CNDCG(label=clicks)@3" --keep "NDCG@10 >= 99%".

    Finished models stay in the folder MODEL.sweep: a sweep that was stopped goes on from there.
    """
    notes = Notes(quiet)
    if not 0 < level < 1:
        raise DataError(f"--level is {level}, expected a number between 0 and 1")
    if margin is not None and not margin > 0:
        raise DataError(f"--margin is {margin}, expected a number above 0")
    files = {"train": train_file, "valid": valid, **({} if test is None else {"test": test})}
    labels = {"train": list(label or ()), "valid": list(valid_label or ()), "test": list(test_label or ())}
    command = shlex.join(["gradrank", *sys.argv[1:]])
    if improve is not None or keep:
        for option, value in (("--objective", objective), ("--measure", measure), ("--points", points),
                              ("--margin", margin)):  # fmt: skip
            if value is not None:
                raise DataError(f"{option} goes with tiers, not with --improve and --keep")
        if improve is None or not keep:
            raise DataError("--improve and --keep go together: what to improve, and what to keep")
        if held_out is not None:
            files["held-out"] = held_out
            labels["held-out"] = list(held_out_label or ())
        check_output(output, list(files.values()))
        _check_plot(plot)
        asked = Asked(improve, keep, baseline, None if weights is None else _numbers(weights), level)
        learner = make_learner(check_algorithm(algorithm, parsed(parameters)), parsed(parameters))
        run_improvement(asked, learner, files, labels, output, plot, show_as, notes, reading, command, quiet)
        return
    if baseline is not None or held_out is not None:
        raise DataError("--baseline and --held-out go with --improve and --keep")
    objective = objective or _DEFAULT_OBJECTIVE
    check_output(output, list(files.values()))
    _check_plot(plot)
    from gradrank.selection.sweep import graded_objective
    from gradrank.selection.sweep import sweep as run_sweep
    from gradrank.selection.weights import named_shares, spread_weights

    given = {**parsed(parameters), "objective": objective}
    if measure:
        given["measure"] = _graded(measure)
    learner = make_learner(check_algorithm(algorithm, given), given)
    tiers = graded_objective(learner).tiers
    grid = (
        _weights(weights or _DEFAULT_WEIGHTS) if points is None else list(spread_weights(len(tiers), points, most=most))
    )
    names = list(named_shares(graded_objective(learner), grid))
    sets = load_sets(learner, files, notes, reading, labels)
    _check_sources(tiers, sets["train"], train_file)
    folder = output.with_name(output.name + ".sweep")
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
                fit=MemberFit(interruption, notes, names, quiet),
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


def _check_sources(tiers: Sequence[Objective], data: RankingData, path: Path) -> None:
    try:
        for tier in tiers:
            data.label(tier.sources[0])
    except DataError as error:
        raise DataError(f"{error} (--label NAME=FILE adds one)", path=path) from None


def _weights(text: str) -> list[Weight]:
    try:
        return [tuple(float(share) for share in word.split("/")) for word in text.split(",")]
    except ValueError:
        raise DataError(f"--weights is {text!r}, expected numbers between commas, such as 0.1,0.2 or 0.2/0.1") from None


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

"""``gradrank optimality``: whether a ranker's weights are a local optimum of a measure."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, check_writable, load_data, print_table, print_text, with_features
from gradrank.cli.interruption import EXIT_INTERRUPTED
from gradrank.cli.reading import Reading, reads_data
from gradrank.errors import DataError

if TYPE_CHECKING:
    from gradrank.evaluation.tables import Table
    from gradrank.measures import Measure
    from gradrank.models.ranker import Ranker
    from gradrank.optimality import Climb, OptimalityResult, Tried

_DEFAULT_MEASURE = "NDCG@10"
_LINES = 10


class ScaleChoice(StrEnum):
    """What a step of 1 is."""

    relative = "relative"
    absolute = "absolute"


@reads_data
def optimality(
    model: options.ModelFile,
    data: options.DataFile,
    measure: Annotated[
        str | None,
        typer.Option("--measure", "-m", metavar="MEASURE", help="The measure; the model's own by default."),
    ] = None,
    epsilon: Annotated[
        float, typer.Option("--epsilon", help="Share of directions that improve which would not be missed.")
    ] = 0.01,
    delta: Annotated[
        float, typer.Option("--delta", help="Probability of missing them all; the confidence is 1 − δ.")
    ] = 0.01,
    steps: Annotated[
        str,
        typer.Option(
            "--steps",
            metavar="LIST",
            help="Steps along each direction: numbers with commas, paper (0.1…1) or fine (0.001…0.01).",
        ),
    ] = "paper",
    scale: Annotated[
        ScaleChoice,
        typer.Option("--scale", help="A step of 1 is the length of the weight vector, or a distance of 1."),
    ] = ScaleChoice.relative,
    single_weights: Annotated[
        bool, typer.Option("--single-weights/--no-single-weights", help="Change each weight alone as well.")
    ] = True,
    climb: Annotated[
        bool, typer.Option("--climb", help="Move to better weights as long as some are found; write them to -o.")
    ] = False,
    moves: Annotated[int, typer.Option("--moves", metavar="N", min=1, help="climb: largest number of moves.")] = 100,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="climb: model file to write.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Write curves: a page (.html) or a picture (.svg, .png, .pdf)."),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result with all curves as JSON.")
    ] = None,
    label: options.LabelFiles = None,
    *,
    reading: Reading,
    show_as: Annotated[options.TableOrJson, typer.Option("--format", help="Form of the output.")] = (
        options.TableOrJson.table
    ),
    random_state: options.Seed = 0,
    n_jobs: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Test whether a net's or linear ranker's weights are a local optimum of a measure on data."""
    notes = Notes(quiet)
    if climb and output is None:
        raise DataError("--climb makes a better model: give -o FILE to write it to")
    if output is not None and not climb:
        raise DataError("-o is where --climb writes the better model; for curves give --plot or --json")
    for path in (output, plot, json_file):
        if path is not None:
            check_writable(path)
    if plot is not None:
        from gradrank.report.optimality import check_plot_name

        check_plot_name(plot)
    from gradrank import optimality as test
    from gradrank.errors import ModelError
    from gradrank.models.registry import load_ranker
    from gradrank.models.weight_vectors import weights_of

    sizes = _steps(steps)
    ranker = load_ranker(model)
    try:
        weights_of(ranker)
    except ModelError as error:
        raise ModelError(str(error), path=model) from None
    chosen = _measure(ranker, measure)
    loaded = load_data(data, notes, reading, label)
    loaded = with_features(loaded, data, ranker.feature_names, "the model")
    settings: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": delta,
        "steps": sizes,
        "scale": scale.value,
        "single_weights": single_weights,
        "random_state": random_state,
        "n_jobs": n_jobs,
    }
    tested: OptimalityResult | Climb
    with _Progress(quiet) as progress:
        if climb:
            tested = test.climb(ranker, loaded, chosen, most_moves=moves, callback=progress, **settings)
        else:
            tested = test.local_optimality(ranker, loaded, chosen, callback=progress, **settings)
    result = tested.result if isinstance(tested, test.Climb) else tested
    if isinstance(tested, test.Climb) and output is not None:
        tested.ranker.save(output)
    facts = {"model": str(model), "data": str(data)}
    if json_file is not None:
        _write_json({**tested.to_dict(), **facts}, json_file)
    if plot is not None:
        from gradrank.report.optimality import write_optimality

        write_optimality(plot, tested, title=f"Local optimality of {model.name}", facts=facts)
    if result.level == result.directions > 0:
        notes.say(f"no direction changes {chosen} at every step, so the test says little; larger steps tell more")
    _print(tested, show_as, facts, output)
    if not result.complete:
        raise typer.Exit(EXIT_INTERRUPTED)


def _print(
    tested: OptimalityResult | Climb, show_as: options.TableOrJson, facts: dict[str, str], output: Path | None
) -> None:
    from gradrank.optimality import Climb

    if show_as is options.TableOrJson.json:
        from gradrank.evaluation.tables import to_json

        print_text(to_json({**tested.to_dict(curves=False), **facts}))
        return
    result = tested.result if isinstance(tested, Climb) else tested
    if isinstance(tested, Climb):
        print_text(
            f"{len(tested.moves)} moves raise {result.measure} from {tested.values[0]:.6g} to {tested.values[-1]:.6g} "
            f"({tested.gain:+.3g}); {output} has the weights reached.\n"
        )
    print_text(f"{result.verdict()}\n")
    print_table(_table(result), options.OutputFormat.table)


def _table(result: OptimalityResult) -> Table:
    from gradrank.evaluation.tables import Column, Table
    from gradrank.optimality.result import noise

    least = noise(result.value)
    rows: list[tuple[Any, ...]] = []
    pairs = result.weight_changes.mean.reshape(result.weights_tried, -1)
    for name, changes in (("random directions", result.changes.mean), ("one weight, up or down", pairs)):
        if len(changes):
            improving, falling = (changes > least).any(axis=1), (changes < -least).all(axis=1)
            level = ~improving & ~falling
            counts = [int(mask.sum()) for mask in (improving, falling, level)]
            rows.append((name, len(changes), *counts, f"{changes.max():+.3g}"))
    names = ("tried", "improve", "fall", "level")
    columns = (Column("test"), *(Column(name, "count") for name in names), Column("largest change"))
    return Table(columns, tuple(rows), f"{result.measure} is {result.value:.4f} at the weights")


def _write_json(value: dict[str, Any], path: Path) -> None:
    from gradrank.evaluation.tables import to_json
    from gradrank.runtime.files import replacing

    with replacing(path) as temporary:
        temporary.write_text(to_json(value), encoding="utf-8")


def _steps(text: str) -> tuple[float, ...]:
    from gradrank.optimality import FINE_STEPS, STEPS

    named = {"paper": STEPS, "fine": FINE_STEPS}
    if text in named:
        return named[text]
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise DataError(f"--steps is {text!r}, expected numbers with commas between them, or paper or fine") from None


def _measure(ranker: Ranker, name: str | None) -> Measure:
    from gradrank.measures import parse_measure

    chosen = parse_measure(str(ranker.training.get("measure") or _DEFAULT_MEASURE) if name is None else name)
    if name is not None and len(chosen.parts) > 1:
        raise DataError(f"--measure is {name}, expected a single measure")
    # The first part of a graded measure is what the model was chosen by; the others only settle ties.
    return chosen.parts[0]


class _Progress:
    """Called after each batch of directions: a bar on a terminal, else a line for every tenth of them."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._bar: Any = None
        self._task: Any = None
        self._said = (-1, -1)

    def __enter__(self) -> Self:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn("direction {task.completed} of {task.total}"),
                BarColumn(),
                TextColumn("{task.description}"),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task("preparing", total=None)
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, tried: Tried) -> None:
        """Show how far the test is."""
        if self._quiet:
            return
        moves = f"move {tried.moves + 1}, " if tried.moves else ""
        found = f"{tried.improving} improve, best {tried.best:.6g}" if tried.improving else "none improves"
        described = f"{moves}{tried.value:.6g} at the weights, {found}"
        if self._bar is not None:
            self._bar.update(self._task, completed=tried.done, total=tried.total, description=described)
            return
        tenth = (tried.moves, tried.done * _LINES // tried.total)
        if tenth != self._said:
            self._said = tenth
            typer.echo(f"gradrank: direction {tried.done} of {tried.total}, {described}", err=True)

"""``gradrank experiment``."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, check_writable, make_folder, print_text
from gradrank.errors import DataError

if TYPE_CHECKING:
    from gradrank.experiments.result import Result


def experiment(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Table or figure; none: list them.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="DIR",
            help="Folder of data: LETOR's S1 … S5 or Fold1 …, or train, vali, test files. Artificial data without it.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Folder for the result and for trainings that are done."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of the experiment. May be repeated."),
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", metavar="N", min=1, help="Trainings side by side, where an experiment can.")
    ] = 1,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw a figure's lines: .svg, .png or .pdf.")
    ] = None,
    show_as: Annotated[
        options.TableOrJson, typer.Option("--format", help="Form of the result.")
    ] = options.TableOrJson.table,
    quiet: options.Quiet = False,
) -> None:
    """Run a table or figure of one of the papers, on artificial data or on yours."""
    from gradrank.experiments import RECIPES, recipe

    if name is None:
        print_text(_listed(RECIPES) + "\n")
        return
    notes = Notes(quiet)
    run = recipe(name)
    known = inspect.signature(run).parameters
    scale = _scale(run, settings or ())
    if plot is not None:
        _check_plot(plot)
    if out is not None:
        make_folder(out)
    given: dict[str, Any] = {"say": notes.say}
    if "out" in known:
        given |= {"out": out, "jobs": jobs}
    elif jobs > 1:
        notes.say(f"{name} has nothing to do side by side: --jobs is not used")
    if data is not None:
        with notes.working(f"reading {data}"):
            given |= _read(data, known, name)
    result = run(scale, **given)
    _write(result, out, plot, notes)
    if show_as is options.TableOrJson.json:
        from gradrank.evaluation.tables import to_json

        print_text(to_json(result.to_dict()))
    else:
        print_text(result.to_markdown())


def _listed(recipes: Mapping[str, str]) -> str:
    """All experiments, one a line, with the first sentence of what they do."""
    from gradrank.experiments import recipe

    width = max(map(len, recipes))
    return "\n".join(f"{name:{width}}  {_summary(recipe(name))}" for name in recipes)


def _summary(run: Any) -> str:
    return (inspect.getdoc(run) or "").split("\n")[0]


def _scale(run: Any, settings: Sequence[str]) -> Any:
    """The experiment's settings: its own scale with what ``--set`` changes."""
    module = inspect.getmodule(run)
    kind = getattr(module, "Scale", None)
    if kind is None:
        if settings:
            raise DataError("this experiment has no settings")
        return None
    known = {field.name: getattr(kind(), field.name) for field in fields(kind)}
    asked: dict[str, Any] = {}
    for pair in settings:
        key, equals, text = pair.partition("=")
        key = key.replace("-", "_")
        if not equals or key not in known:
            raise DataError(f"--set is {pair!r}, expected KEY=VALUE with one of {', '.join(known)}")
        asked[key] = _value(key, text, known[key])
    return kind(**asked)


def _value(key: str, text: str, default: Any) -> Any:
    """A setting's text as what its default is: a number, a word, several of them."""
    if isinstance(default, tuple):
        return tuple(_value(key, part.strip(), default[0] if default else "") for part in text.split(","))
    if isinstance(default, dict):
        raise DataError(f"--set {key}: this setting can be given in Python only")
    value = options.number_or_text(text)
    if isinstance(default, int | float) and not isinstance(value, int | float):
        raise DataError(f"--set {key} is {text!r}, expected a number")
    if isinstance(default, int) and not isinstance(default, bool) and not isinstance(value, int):
        raise DataError(f"--set {key} is {text!r}, expected a whole number")
    return value


def _read(folder: Path, known: Mapping[str, Any], name: str) -> dict[str, Any]:
    from gradrank.experiments.folders import read_folds, read_splits

    if "folds" in known:
        return {"folds": read_folds(folder)}
    if "data" in known:
        return {"data": read_splits(folder)}
    raise DataError(f"{name} makes its data itself: leave out --data")


def _check_plot(plot: Path) -> None:
    from gradrank.report.figures import IMAGES

    if plot.suffix.lower() not in IMAGES:
        raise DataError(f"has the suffix {plot.suffix!r}, expected {', '.join(IMAGES)}", path=plot)
    check_writable(plot)


def _write(result: Result, out: Path | None, plot: Path | None, notes: Notes) -> None:
    from gradrank.evaluation.tables import to_json
    from gradrank.runtime.files import replacing

    if out is not None:
        for suffix, text in ((".md", result.to_markdown()), (".json", to_json(result.to_dict()))):
            with replacing(out / f"{result.name}{suffix}") as temporary:
                temporary.write_text(text, encoding="utf-8")
    if plot is not None:
        from gradrank.report.figures import write_figure
        from gradrank.report.lines import can_be_drawn, draw_tables

        if not any(can_be_drawn(table) for table in result.tables):
            notes.say(f"{result.name} has no lines to draw: {plot} is not written")
            return
        write_figure(draw_tables(result.tables), plot)

"""The ``gradrank`` command."""

from __future__ import annotations

import io
import os
import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from gradrank.cli.commands import (
    adapt,
    auto,
    check,
    clicks,
    combine,
    constructions,
    convert,
    counterfactual,
    diagnose,
    evaluate,
    experiment,
    export,
    import_,
    importance,
    info,
    interleave,
    label,
    make_data,
    measures,
    optimality,
    profile,
    propensity,
    report,
    score,
    serve,
    split,
    sweep,
    train,
    unbiased,
)
from gradrank.errors import GradrankError

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


class _Group(TyperGroup):
    """Turns errors that a user can cause into one line and an exit code; lets all others through."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with warnings.catch_warnings():
                return super().invoke(ctx)
        except GradrankError as error:
            message = " ".join(str(error).split("\n"))
            typer.echo(f"gradrank: error: {message}", err=True)
            raise typer.Exit(EXIT_BAD_INPUT) from None
        except KeyboardInterrupt:
            raise typer.Exit(EXIT_INTERRUPTED) from None
        except BrokenPipeError:
            raise typer.Exit(EXIT_BROKEN_PIPE) from None


app = typer.Typer(
    cls=_Group,
    help="Learning to rank for the measure you care about.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("train")(train.train)
app.command("sweep")(sweep.sweep)
app.command("score")(score.score)
app.command("serve")(serve.serve)
app.command("evaluate")(evaluate.evaluate)
app.command("compare")(evaluate.compare)
app.command("combine")(combine.combine)
app.command("adapt")(adapt.adapt)
app.command("auto")(auto.auto)
app.command("report")(report.report)
app.command("measures")(measures.measures)
app.command("constructions")(constructions.constructions)
app.command("optimality")(optimality.optimality)
app.command("importance")(importance.importance)
app.command("diagnose")(diagnose.diagnose)
app.command("info")(info.info)
app.command("profile")(profile.profile)
app.command("check")(check.check)
app.command("convert")(convert.convert)
app.command("export")(export.export)
app.command("import")(import_.import_)
app.command("split")(split.split)
app.command("clicks")(clicks.clicks)
app.command("propensity")(propensity.propensity)
app.command("unbiased")(unbiased.unbiased)
app.command("counterfactual")(counterfactual.counterfactual)
app.command("interleave")(interleave.interleave)
app.add_typer(label.app, name="label")
app.command("make-data")(make_data.make_data)
app.add_typer(experiment.app, name="experiment")


def _show_version(asked: bool) -> None:
    if asked:
        from gradrank import __version__

        typer.echo(f"gradrank {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def run() -> None:
    """Entry point of the ``gradrank`` script."""
    # LightGBM's threads wait for each other by spinning, which costs a busy machine many times what it saves.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that lacks a character shows "?" instead of ending the command.
            stream.reconfigure(errors="replace")
    try:
        try:
            app(prog_name="gradrank")
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output has gone: nothing to say, and nothing may be flushed at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_BROKEN_PIPE)

"""The ``gradrank`` command."""

from __future__ import annotations

import io
import os
import signal
import sys
import warnings
from contextlib import suppress
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from gradrank.cli.commands import (
    adapt,
    auto,
    check,
    clicks,
    combine,
    compare_reports,
    constructions,
    convert,
    counterfactual,
    diagnose,
    evaluate,
    experiment,
    explain,
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
    tune,
    unbiased,
    warm_up,
)
from gradrank.cli.interruption import EXIT_INTERRUPTED
from gradrank.errors import GradrankError
from gradrank.runtime.files import NOT_WRITTEN

EXIT_BAD_INPUT = 2
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
        except OSError as error:
            if error.errno not in NOT_WRITTEN:
                raise
            where = "the output" if error.filename is None else f"{error.filename}:"
            typer.echo(f"gradrank: error: {where} cannot be written: {error.strerror}", err=True)
            raise typer.Exit(EXIT_BAD_INPUT) from None
        except Exception as error:
            said = _memory_error(error) or _usage_error(error)
            if said is None:
                raise
            typer.echo(f"gradrank: error: {said}", err=True)
            raise typer.Exit(EXIT_BAD_INPUT) from None


def _memory_error(error: Exception) -> str | None:
    """What did not fit into memory, in one line; None for any other error. PyTorch has no class for that."""
    text = " ".join(str(error).split())
    if not isinstance(error, MemoryError) and "DefaultCPUAllocator: can't allocate memory" not in text:
        return None
    return f"there is not enough memory{f' ({text})' if text else ''}"


def _usage_error(error: Exception) -> str | None:
    """What is wrong with the words of a command, in one line; None for any other error.

    Typer would draw a box of seven lines. Its errors are known by what they can do: their classes have moved from
    version to version. A group of commands without a word is no error: its help is shown.
    """
    if not hasattr(error, "format_message") or type(error).__name__ == "NoArgsIsHelpError":
        return None
    message = " ".join(str(error.format_message()).split())
    command = getattr(getattr(error, "ctx", None), "command_path", "gradrank")
    return f"{message.rstrip('.')} ({command} --help tells more)"


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
app.command("tune")(tune.tune)
app.command("report")(report.report)
app.command("compare-reports")(compare_reports.compare_reports)
app.command("measures")(measures.measures)
app.command("constructions")(constructions.constructions)
app.command("optimality")(optimality.optimality)
app.command("importance")(importance.importance)
app.command("explain")(explain.explain)
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
app.command("warm-up")(warm_up.warm_up)


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


def _interrupt(_number: int, _frame: Any) -> None:
    raise KeyboardInterrupt


def _flush() -> None:
    """Write what is left of the output; if there is no room for it, say so instead of a traceback."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        typer.echo(f"gradrank: error: the output cannot be written: {error.strerror}", err=True)
        sys.exit(EXIT_BAD_INPUT)


def run() -> None:
    """Entry point of the ``gradrank`` script."""
    # LightGBM's threads wait for each other by spinning, which costs a busy machine many times what it saves.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that lacks a character shows "?" instead of ending the command.
            stream.reconfigure(errors="replace")
    with suppress(ValueError):  # only the main thread may
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            # As Ctrl-C, so that nothing half-written stays behind and what can be saved is.
            signal.signal(signal.SIGTERM, _interrupt)
    try:
        try:
            app(prog_name="gradrank")
        finally:
            _flush()
    except BrokenPipeError:
        # The reader of our output has gone: nothing to say, and nothing may be flushed at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_BROKEN_PIPE)

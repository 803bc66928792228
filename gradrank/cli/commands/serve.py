"""``gradrank serve``: models behind HTTP."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, check_log
from gradrank.errors import DataError
from gradrank.serve.settings import Limits, MissingFeatures, Settings, UnknownFeatures, parse_shares, parse_sources

_LIMITS = Limits()
_STANDARD_ERROR = "-"


def serve(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...",
            help="Models: FILE, NAME=FILE or NAME@VERSION=FILE. The first one answers if nothing else decides.",
        ),
    ],
    host: Annotated[str, typer.Option("--host", help="Where to listen; only this machine by default.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes any that is free.")] = 8000,
    shares: Annotated[
        str | None,
        typer.Option(
            "--shares",
            metavar="NAME=SHARE,...",
            help="A/B test: shares of requests that name no model, such as old=0.9,new=0.1. Users keep their model.",
        ),
    ] = None,
    interleave: Annotated[
        str | None,
        typer.Option("--interleave", metavar="NAME,NAME", help="Two models that share every list, by team draft."),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="FILE", help="Append lists and clicks; 'gradrank clicks' reads it."),
    ] = None,
    rotate: Annotated[
        int | None,
        typer.Option("--rotate-bytes", metavar="BYTES", min=1024, help="Begin a new --log above this size."),
    ] = None,
    access_log: Annotated[
        str, typer.Option("--access-log", metavar="FILE", help="One line of JSON per request; - is standard error.")
    ] = _STANDARD_ERROR,
    missing: Annotated[
        MissingFeatures,
        typer.Option("--missing-features", help="Documents that lack a feature: refused, or it counts as missing."),
    ] = MissingFeatures.error,
    unknown: Annotated[
        UnknownFeatures, typer.Option("--unknown-features", help="Features that the model lacks: refused or ignored.")
    ] = UnknownFeatures.ignore,
    api_keys: Annotated[
        Path | None,
        typer.Option(
            "--api-keys",
            metavar="FILE",
            help="Keys that callers must show, one per line; the variable GRADRANK_API_KEYS unless given.",
        ),
    ] = None,
    salt: Annotated[
        str, typer.Option("--salt", help="Deals users to models anew, and hides their keys in the log.")
    ] = "gradrank",
    max_documents: Annotated[
        int, typer.Option("--max-documents", min=1, help="Most documents of a request.")
    ] = _LIMITS.documents,
    max_bytes: Annotated[int, typer.Option("--max-bytes", min=1, help="Most bytes of a request.")] = _LIMITS.bytes,
    max_seconds: Annotated[
        float, typer.Option("--max-seconds", help="Most seconds from request to answer.")
    ] = _LIMITS.seconds,
    at_once: Annotated[
        int, typer.Option("--at-once", min=1, help="Requests worked for, and large bodies held in memory; others wait.")
    ] = _LIMITS.at_once,
    waiting: Annotated[
        int,
        typer.Option(
            "--waiting", min=1, help="Requests that may wait, for a place or their own body; more are turned away."
        ),
    ] = _LIMITS.waiting,
    watch: Annotated[
        float,
        typer.Option("--watch", min=0.0, help="Seconds between looks at the model files; 0 reloads on SIGHUP only."),
    ] = 2.0,
    processes: Annotated[
        int, typer.Option("--processes", min=1, max=256, help="Processes that share the work; each loads the models.")
    ] = 1,
    quiet: options.Quiet = False,
) -> None:
    """Serve models over HTTP: POST /v1/rank gives scores and order of a query's documents.

    Changed model files are loaded without dropping a request; a bad one keeps the model that is served.
    """
    notes = Notes(quiet)
    pair: tuple[str, str] | None = None
    if interleave is not None:
        first, comma, second = (part.strip() for part in interleave.partition(","))
        if not (first and comma and second):
            raise DataError(f"--interleave is {interleave!r}, expected NAME,NAME")
        if log is None:
            raise DataError("--interleave needs --log FILE: without the lists and clicks nothing can be compared")
        pair = (first, second)
    settings = Settings(
        parse_sources(models),
        Limits(max_documents, max_bytes, max_seconds, at_once, waiting),
        missing,
        unknown,
        {} if shares is None else parse_shares(shares),
        pair,
        salt,
    )
    from gradrank.serve.api_keys import load_keys

    keys = load_keys(api_keys, notes.say)
    access_file = None if access_log == _STANDARD_ERROR else Path(access_log)
    for file in (log, access_file):
        # Both before either is begun.
        if file is not None:
            check_log(file)
    if processes > 1:
        from gradrank.serve.processes import Plan, run_processes

        plan = Plan(settings, keys, log, rotate, access_file, not quiet, watch, partial(_voice, quiet))
        run_processes(plan, processes, host=host, port=port, say=notes.say)
        return
    from gradrank.serve.line_log import LineLog
    from gradrank.serve.server import run_server, standard_error_log
    from gradrank.serve.service import Service

    with notes.working("loading models"):
        service = Service(settings)
    service.log = None if log is None else LineLog(log, rotate)
    access = LineLog(access_file) if access_file else None if quiet else standard_error_log()
    run_server(service, host=host, port=port, keys=keys, access_log=access, watch_seconds=watch, say=notes.say)


def _voice(quiet: bool) -> Callable[[str], None]:
    """How one of several processes says its notes."""
    return Notes(quiet).say

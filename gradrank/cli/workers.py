"""Options of commands that run on several workers, and the workers themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gradrank.cli.common import Notes, named_files
from gradrank.cli.reading import Reading
from gradrank.errors import DataError

if TYPE_CHECKING:
    from gradrank.cluster.launcher import Launcher

_PANEL = "Workers"

Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", metavar="N", min=1, rich_help_panel=_PANEL,
        help="Share the work among N processes of this machine; data may then be a folder or a pattern of files.",
    ),
]  # fmt: skip
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler", metavar="ADDRESS", rich_help_panel=_PANEL,
        help="Share the work among the workers of the Dask cluster whose scheduler is there, such as tcp://host:8786.",
    ),
]  # fmt: skip
Shuffle = Annotated[
    bool,
    typer.Option(
        "--shuffle", rich_help_panel=_PANEL,
        help="Bring queries together that stand in several files; otherwise they are an error.",
    ),
]  # fmt: skip
Ports = Annotated[
    str | None,
    typer.Option("--ports", metavar="FIRST-LAST", rich_help_panel=_PANEL, help="Ports that workers may listen on."),
]


def check_workers(workers: int | None, scheduler: str | None, **others: Any) -> bool:
    """Whether the work is shared; options that go with workers only are refused without them."""
    if workers is not None and scheduler is not None:
        raise DataError("--workers and --scheduler are both given, expected one of them")
    shared = workers is not None or scheduler is not None
    for name, value in others.items():
        if value and not shared:
            raise DataError(f"--{name} goes with --workers or --scheduler")
    return shared


def port_range(given: str | None) -> list[int] | None:
    """First and last port.

    >>> port_range("9000-9100")
    [9000, 9100]
    """
    if given is None:
        return None
    first, _, last = given.partition("-")
    if not (first.isdecimal() and last.isdecimal() and 1 <= int(first) <= int(last) <= 65535):
        raise DataError(f"--ports is {given!r}, expected FIRST-LAST such as 9000-9100")
    return [int(first), int(last)]


@contextmanager
def launcher_of(workers: int | None, scheduler: str | None, notes: Notes) -> Iterator[Launcher]:
    """The workers that the options name."""
    if workers is not None:
        from gradrank.cluster.local import LocalProcesses

        yield LocalProcesses(workers)
        return
    assert scheduler is not None
    from gradrank.cluster.dask import DaskWorkers, connected

    client = connected(scheduler)
    try:
        made = DaskWorkers(client)
        notes.say(f"{made.size} workers at {scheduler}")
        yield made
    finally:
        client.close(timeout=5)


@contextmanager
def dask_client(scheduler: str | None, notes: Notes) -> Iterator[Any]:
    """A Dask client, if there is a scheduler."""
    if scheduler is None:
        yield None
        return
    from gradrank.cluster.dask import DaskWorkers

    with launcher_of(None, scheduler, notes) as launcher:
        assert isinstance(launcher, DaskWorkers)
        yield launcher.client


def readings(
    files: Mapping[str, str], reading: Reading, labels: Mapping[str, Sequence[str]] | None = None
) -> dict[str, dict[str, Any]]:
    """How workers read each data set."""
    found: dict[str, dict[str, Any]] = {}
    for name, file in files.items():
        given = dict(named_files((labels or {}).get(name)))
        if given and not Path(file).is_file():
            raise DataError(
                f"label files have one line for each row of one file, but {file} is not one: put labels into columns"
            )
        found[name] = {
            "format": reading.format,
            "options": {key: list(item) if isinstance(item, tuple) else item for key, item in reading.options.items()},
            "labels": {key: str(path) for key, path in given.items()} or None,
        }
    return found


def worker_words(workers: int | None, scheduler: str | None, shuffle: bool, ports: str | None = None) -> list[str]:
    """The same options as words of a command."""
    words = ["--workers", str(workers)] if workers is not None else []
    words += ["--scheduler", scheduler] if scheduler is not None else []
    words += ["--shuffle"] if shuffle else []
    return words + (["--ports", ports] if ports is not None else [])

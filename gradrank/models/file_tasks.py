"""Scoring and converting on workers, file by file: each worker reads and writes its own."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gradrank.cluster.child import Member
from gradrank.cluster.launcher import Launcher, make_job
from gradrank.cluster.reading import together
from gradrank.cluster.shards import deal, fetched, list_shards
from gradrank.data.formats.columns import write_column
from gradrank.data.formats.registry import read_data, write_data
from gradrank.errors import ClusterError, DataError, GradrankError, NoDocumentsError
from gradrank.models.registry import ranker_from_dict, under_names_of
from gradrank.runtime.files import open_to_others

SCORE = "gradrank.models.file_tasks:score_share"
CONVERT = "gradrank.models.file_tasks:convert_share"


def files_on_workers(
    launcher: Launcher,
    task: str,
    data: str,
    target: Path,
    suffix: str,
    arguments: Mapping[str, Any],
    threads: int | None = None,
) -> list[str]:
    """Turn each file of a data set into one of a folder, which appears when all are there; their names."""
    found = [(str(path), int(size)) for path, size in launcher.call(list_shards, data)]
    names = output_names([path for path, _ in found], suffix)
    size = min(launcher.size, len(found))
    shares = [[[number, path, names[number]] for number, path, _, _ in own] for own in deal(found, size)]
    shares += [[] for _ in range(launcher.size - size)]
    temporary = launcher.call(_make_folder, str(target))
    done = False
    try:
        job = make_job(task, {**arguments, "target": temporary, "named": str(target)}, shares, threads=threads)
        launcher.run(job, lambda _message: None)
        launcher.call(_reveal, temporary, str(target))
        done = True
    finally:
        if not done:
            # What went wrong is told; a cluster that is gone cannot tidy up, and what it leaves is hidden.
            with suppress(ClusterError):
                launcher.call(_discard, temporary)
    return names


def _make_folder(target: str) -> str:
    """A hidden folder beside the one that is to appear, which must be new or empty."""
    path = Path(target).absolute()
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise DataError("is there already, expected a folder that is new or empty", path=target)
    try:
        made = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".parts", dir=path.parent))
        open_to_others(made)
    except OSError as error:
        raise DataError(f"cannot be made: {error.strerror}", path=target) from None
    return str(made)


def _reveal(temporary: str, target: str) -> None:
    try:
        # An empty folder may be replaced.
        Path(temporary).replace(target)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror}", path=target) from None


def _discard(temporary: str) -> None:
    shutil.rmtree(temporary, ignore_errors=True)


def output_names(paths: Sequence[str], suffix: str) -> list[str]:
    """Names of output files, one for each input: its name with another ending; with its folders if names clash.

    >>> output_names(["a/part-0.parquet", "a/part-1.parquet"], ".txt")
    ['part-0.txt', 'part-1.txt']
    >>> output_names(["in/day=1/part.parquet", "in/day=2/part.parquet"], ".txt")
    ['day=1-part.txt', 'day=2-part.txt']
    """
    parts = [path.split("/") for path in paths]
    for depth in range(1, max(map(len, parts)) + 1):
        names = ["-".join(item[-depth:]) for item in parts]
        stems = [name.split(".")[0] + suffix for name in names]
        if len(set(stems)) == len(stems):
            return stems
    return [f"{number:06}{suffix}" for number in range(len(paths))]


def score_share(member: Member) -> dict[str, Any]:
    """Score this process's files; each becomes a file of one number per line."""
    given = member.arguments
    ranker = ranker_from_dict(json.loads(given["model"]))

    def score(data: Any, target: Path) -> None:
        write_column(under_names_of(ranker, data).predict(data, n_jobs=member.threads), target)

    return _each_file(member, score)


def convert_share(member: Member) -> dict[str, Any]:
    """Write this process's files in another format."""
    return _each_file(member, lambda data, target: write_data(data, target, format=member.arguments["format"]))


def _each_file(member: Member, do: Any) -> dict[str, Any]:
    given = member.arguments
    reading, target, named = given["reading"], Path(given["target"]), Path(given["named"])
    failed: GradrankError | None = None
    try:
        for _, path, name in given["share"]:
            with fetched(path, member.folder) as local:
                try:
                    data = read_data(local, format=reading.get("format"), **reading.get("options", {}))
                except NoDocumentsError:
                    (target / name).write_text("")
                    continue
                try:
                    do(data, target / name)
                except DataError as error:
                    if error.path is None or not str(error.path).startswith(str(target)):
                        raise
                    raise DataError(error.message, path=named / name) from None
                except GradrankError as error:
                    raise DataError(str(error), path=path) from None
    except GradrankError as error:
        failed = error
    except OSError as error:
        failed = DataError(f"cannot be written: {error.strerror}", path=named)
    together(member, failed)
    return {}

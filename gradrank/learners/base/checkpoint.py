"""The state of a training on disk, so that a killed run goes on where it was."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gradrank.errors import ModelError, TrainingError
from gradrank.learners.base.fingerprint import fingerprint as fingerprint
from gradrank.learners.base.loop import HeldOut, Keeper, Record, ResumableCourse
from gradrank.models.ranker import plain
from gradrank.runtime.files import replacing

_FORMAT = "gradrank-checkpoint"
DAMAGED = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, IndexError, ModelError)
"""What reading a file raises that holds something else."""


def resume(course: ResumableCourse, path: str | Path, run: Mapping[str, Any]) -> Record | None:
    """Let a course go on from the state that a run with the same settings and data left; None if there is none.

    Parameters
    ----------
    course
        Takes the state over.
    path
        The file.
    run
        What must be the same: settings, and fingerprints of the data.
    """
    path = Path(path)
    if not path.exists():
        return None
    try:
        manifest, state = course.unpack(unsealed(path.read_bytes()))
        if manifest["format"] != _FORMAT:
            raise ValueError
        kept, steps, curves = dict(manifest["run"]), int(manifest["steps"]), manifest["curves"]
        record = Record(
            steps=steps,
            curves={n: {m: [float(x) for x in c] for m, c in per.items()} for n, per in curves.items()},
            seconds=float(manifest["seconds"]),
            held_out=held_out_of(manifest),
        )
    except (OSError, *DAMAGED):
        raise _unreadable(path) from None
    wanted = plain(dict(run))
    differing = [key for key in sorted({*wanted, *kept}) if kept.get(key) != wanted.get(key)]
    if differing:
        raise TrainingError(
            f"{path}: belongs to another run ({', '.join(differing)} differ); delete it or choose another file"
        )
    # Not before: the state of another run has other features and layers than this one.
    try:
        course.take_over(state)
    except (RuntimeError, *DAMAGED):
        raise _unreadable(path) from None
    return record


def _unreadable(path: Path) -> TrainingError:
    return TrainingError(f"{path}: is not a checkpoint that can be read; delete it to start anew")


def sealed(content: bytes) -> bytes:
    """Content behind a line that tells whether it is whole: half a state, or a wrong bit of it, would train on."""
    return b"%s %s\n%s" % (_FORMAT.encode(), hashlib.sha256(content).hexdigest().encode(), content)


def unsealed(content: bytes) -> bytes:
    """What was sealed; ValueError if it is not whole.

    >>> unsealed(sealed(b"state"))
    b'state'
    """
    line, _, rest = content.partition(b"\n")
    if line + b"\n" != sealed(rest)[: len(line) + 1]:
        raise ValueError("is damaged")
    return rest


def keeper(course: ResumableCourse, path: str | Path, run: Mapping[str, Any], every: int) -> Keeper:
    """Writes the state every so many steps and after the last one, each time as a whole."""

    def write(record: Record) -> None:
        if record.steps % every and record.steps != course.total:
            return
        manifest = {
            "format": _FORMAT,
            "run": plain(dict(run)),
            "steps": record.steps,
            "curves": plain(record.curves),
            "seconds": record.seconds,
            "held_out": None if record.held_out is None else asdict(record.held_out),
        }
        content = sealed(course.pack(manifest))
        with replacing(path) as temporary:
            try:
                temporary.write_bytes(content)
            except OSError as error:
                raise TrainingError(f"{path}: cannot be written: {error.strerror or error}") from None

    return write


def held_out_of(manifest: Mapping[str, Any]) -> HeldOut | None:
    """How the number of steps was found, if a first training did that."""
    found = manifest.get("held_out")
    if found is None:
        return None
    curves = {measure: [float(value) for value in curve] for measure, curve in found["curves"].items()}
    return HeldOut(int(found["queries"]), int(found["best"]), curves)


def checkpoint_path(path: str | Path) -> Path:
    """Where the state of a run that writes to ``path`` is kept.

    >>> checkpoint_path("model.json").name
    'model.json.checkpoint'
    """
    return Path(path).with_name(Path(path).name + ".checkpoint")

"""The state of a training on disk, so that a killed run goes on where it was."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gradrank.data.ranking_data import RankingData
from gradrank.errors import ModelError, TrainingError
from gradrank.learners.base.loop import Keeper, Record, ResumableCourse
from gradrank.models.ranker import plain
from gradrank.runtime.files import replacing

_FORMAT = "gradrank-checkpoint"


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
        manifest = course.unpack(path.read_bytes())
        if manifest["format"] != _FORMAT:
            raise ValueError
        kept, steps, curves = manifest["run"], int(manifest["steps"]), manifest["curves"]
        record = Record(
            steps=steps,
            curves={n: {m: [float(x) for x in c] for m, c in per.items()} for n, per in curves.items()},
            seconds=float(manifest["seconds"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ModelError):
        raise TrainingError(f"{path}: is not a checkpoint that can be read; delete it to start anew") from None
    wanted = plain(dict(run))
    differing = [key for key in sorted({*wanted, *kept}) if kept.get(key) != wanted.get(key)]
    if differing:
        raise TrainingError(
            f"{path}: belongs to another run ({', '.join(differing)} differ); delete it or choose another file"
        )
    return record


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
        }
        content = course.pack(manifest)
        with replacing(path) as temporary:
            temporary.write_bytes(content)

    return write


def checkpoint_path(path: str | Path) -> Path:
    """Where the state of a run that writes to ``path`` is kept.

    >>> checkpoint_path("model.json").name
    'model.json.checkpoint'
    """
    return Path(path).with_name(Path(path).name + ".checkpoint")


def data_fingerprint(data: RankingData) -> str:
    """Tells data sets apart by features, labels and weights.

    >>> data = RankingData.from_arrays([[0.0]], [1], qid=[1])
    >>> data_fingerprint(data) == data_fingerprint(data.with_document_weight([2.0]))
    False
    """
    weights = [np.asarray(weight) for weight in (data.weight, data.document_weight) if weight is not None]
    return fingerprint(data.X, *data.labels.values(), *weights)


def fingerprint(*arrays: Any) -> str:
    """Tells data sets apart: shapes and a sample of the values.

    >>> fingerprint(np.zeros(3)) == fingerprint(np.zeros(3)), fingerprint(np.zeros(3)) == fingerprint(np.ones(3))
    (True, False)
    """
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(repr(array.shape).encode())
        step = max(1, len(array) // 1000)
        digest.update(np.ascontiguousarray(array[::step]).tobytes())
    return digest.hexdigest()[:16]

"""The state of a run on disk, so that a killed training goes on where it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gradrank.errors import ModelError, TrainingError
from gradrank.learners.base.monitor import Curves
from gradrank.learners.trees.boosting import Callback, Step
from gradrank.models.ranker import plain
from gradrank.models.registry import ranker_from_dict
from gradrank.models.trees.ensemble import Tree, TreeEnsemble
from gradrank.runtime.files import replacing

_FORMAT = "gradrank-checkpoint"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Trees grown so far, step by step, and the record of the measures."""

    steps: tuple[tuple[Tree, ...], ...]
    curves: Curves


def read_checkpoint(path: str | Path, run: Mapping[str, Any]) -> Checkpoint | None:
    """The state that a run with the same settings and data left; None if there is none."""
    path = Path(path)
    if not path.exists():
        return None
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        if value["format"] != _FORMAT:
            raise ValueError
        kept, curves, ensemble = value["run"], value["curves"], ranker_from_dict(value["model"])
    except (OSError, ValueError, KeyError, TypeError, ModelError):
        raise TrainingError(f"{path}: is not a checkpoint that can be read; delete it to start anew") from None
    wanted = plain(dict(run))
    differing = [key for key in sorted({*wanted, *kept}) if kept.get(key) != wanted.get(key)]
    if differing:
        raise TrainingError(
            f"{path}: belongs to another run ({', '.join(differing)} differ); delete it or choose another file"
        )
    assert isinstance(ensemble, TreeEnsemble)
    trees, width = ensemble.trees, int(value["trees_per_step"])
    steps = tuple(trees[at : at + width] for at in range(0, len(trees), width))
    return Checkpoint(steps, {n: {m: [float(x) for x in c] for m, c in p.items()} for n, p in curves.items()})


def checkpoints(
    path: str | Path,
    run: Mapping[str, Any],
    feature_names: Sequence[str],
    every: int,
    start: Checkpoint | None,
) -> Callback:
    """A callback that writes the state every so many trees, each time as a whole."""
    trees = [tree for step in start.steps for tree in step] if start else []
    curves: Curves = {name: {m: list(c) for m, c in per.items()} for name, per in start.curves.items()} if start else {}

    def write(step: Step) -> None:
        trees.extend(step.trees)
        for name, values in step.values.items():
            for measure, value in values.items():
                curves.setdefault(name, {}).setdefault(measure, []).append(value)
        if step.number % every and step.number != step.total:
            return
        state = {
            "format": _FORMAT,
            "run": plain(dict(run)),
            "curves": plain(curves),
            "trees_per_step": len(step.trees),
            "model": TreeEnsemble(trees, feature_names).to_dict(),
        }
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(state), encoding="utf-8")

    return write


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

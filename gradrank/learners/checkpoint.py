"""The state of a run on disk, so that a killed training goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradrank.files import replacing
from gradrank.learners.boosting import Callback, Step
from gradrank.learners.grower import TrainingError
from gradrank.models.ranker import ModelError, plain
from gradrank.models.saved import ranker_from_dict
from gradrank.models.trees import Tree, TreeEnsemble

_FORMAT = "gradrank-checkpoint"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Trees grown so far, the record of the measures, and what the run was."""

    trees: tuple[Tree, ...]
    curves: dict[str, dict[str, list[float]]]


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
    return Checkpoint(ensemble.trees, {n: {m: [float(x) for x in c] for m, c in p.items()} for n, p in curves.items()})


def checkpoints(
    path: str | Path,
    run: Mapping[str, Any],
    feature_names: Sequence[str],
    every: int,
    start: Checkpoint | None,
) -> Callback:
    """A callback that writes the state every so many trees, each time as a whole."""
    trees = list(start.trees) if start else []
    curves: dict[str, dict[str, list[float]]] = (
        {name: {m: list(c) for m, c in per.items()} for name, per in start.curves.items()} if start else {}
    )

    def write(step: Step) -> None:
        trees.append(step.tree)
        for name, values in step.values.items():
            for measure, value in values.items():
                curves.setdefault(name, {}).setdefault(measure, []).append(value)
        if step.number % every and step.number != step.total:
            return
        state = {
            "format": _FORMAT,
            "run": plain(dict(run)),
            "curves": plain(curves),
            "model": TreeEnsemble(trees, feature_names).to_dict(),
        }
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(state), encoding="utf-8")

    return write

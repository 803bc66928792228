"""Trained models of a portfolio as files, so that a run that was killed goes on where it was."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gradrank.data.ranking_data import RankingData
from gradrank.errors import ModelError, TrainingError
from gradrank.learners.base.checkpoint import fingerprint
from gradrank.models.ranker import plain
from gradrank.models.registry import load_ranker
from gradrank.selection.crossfit import Fitted, Task


def run_facts(task: Task, pool: RankingData) -> dict[str, Any]:
    """What must be the same for a kept model to be taken as it is."""
    facts: dict[str, Any] = plain({**task.to_dict(), "data": data_fingerprint(pool)})
    return facts


def data_fingerprint(pool: RankingData) -> str:
    """Tells pools apart."""
    labels = [pool.labels[name] for name in sorted(pool.labels)]
    weights = [weight for weight in (pool.weight, pool.document_weight) if weight is not None]
    return fingerprint(pool.X, pool.indptr, *labels, *weights)


def path_of(task: Task, folder: Path) -> Path:
    """Where a task's model is kept.

    >>> from gradrank.selection.members import Member
    >>> path_of(Task(Member("mart 1", "mart", "mart", {}), 2, 0, 4, 0), Path("members")).as_posix()
    'members/mart-1.fold-3.json'
    """
    copy = f".{task.copy + 1}" if task.member.models_per_fold > 1 else ""
    return folder / f"{task.member.name.replace(' ', '-')}.fold-{task.fold + 1}{copy}.json"


def keep(fitted: Fitted, run: Mapping[str, Any], path: Path) -> None:
    """Write a model with its learning curve; one that was cut short is written, too, and says so."""
    fitted.ranker.remember(
        crossfit={
            "run": dict(run),
            "curve": fitted.curve.tolist(),
            "seconds": fitted.seconds,
            "cut_short": fitted.cut_short,
        }
    )
    fitted.ranker.save(path)


def kept(run: Mapping[str, Any], path: Path, *, whole: bool = True) -> Fitted | None:
    """The model that an earlier run left; None if there is none, or only one that was cut short.

    Parameters
    ----------
    run
        What must be the same: see :func:`run_facts`.
    path
        The file.
    whole
        Whether a model that was cut short does not count.
    """
    if not path.exists():
        return None
    ranker = load_ranker(path)
    found = ranker.training.get("crossfit")
    try:
        left, curve = dict(found["run"]), np.array(found["curve"], dtype=np.float64)  # type: ignore[index]
        fitted = Fitted(ranker, curve, float(found["seconds"]), bool(found["cut_short"]))  # type: ignore[index]
    except (KeyError, TypeError, ValueError, OverflowError):
        raise ModelError("is no member of a portfolio; choose another folder", path=path) from None
    differing = [key for key in sorted({*run, *left}) if left.get(key) != run.get(key)]
    if differing:
        raise TrainingError(
            f"{path}: belongs to another run ({', '.join(differing)} differ); delete it or choose another folder"
        )
    return None if whole and fitted.cut_short else fitted

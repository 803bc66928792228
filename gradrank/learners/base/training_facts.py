"""What a trained model remembers of its training."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from gradrank.data.ranking_data import RankingData
from gradrank.learners.base.loop import Record
from gradrank.models.ranker import Ranker
from gradrank.version import __version__

# Parameters that say nothing about the model.
_NOT_OF_THE_MODEL = ("callbacks", "checkpoint", "checkpoint_every", "n_jobs", "warm_start", "verbose")


def training_facts(
    learner: Any,
    train: RankingData,
    objective: str,
    measure: str,
    record: Record,
    *packages: str,
    count: Callable[[int], int] = int,
) -> dict[str, Any]:
    """Objective, parameters, learning curves, data and versions, as plain values for the model's manifest.

    ``count`` sums a number over the processes that trained together.
    """
    parameters = {
        name: (value if not isinstance(value, Ranker) else repr(value))
        for name, value in learner.get_params(deep=False).items()
        if name not in _NOT_OF_THE_MODEL
    }
    parameters |= learner._settled()
    parameters["objective"] = objective
    facts: dict[str, Any] = {
        "learner": type(learner).__name__,
        "objective": objective,
        "measure": measure,
        "parameters": parameters,
        "unit": learner.unit,
        "best": record.best,
        "grown": record.steps,
        "interrupted": record.interrupted,
        "curves": record.curves if record.held_out is None else {**record.curves, "held out": record.held_out.curves},
        "seconds": round(record.seconds, 3),
        "data": {
            "queries": count(train.n_queries),
            "documents": count(train.n_docs),
            "features": train.n_features,
            "dtype": str(train.X.dtype),
        },
        "versions": {
            "gradrank": __version__,
            "python": platform.python_version(),
            **package_versions("numpy", *packages),
        },
    }
    by_data = [name for name in learner._settled() if getattr(learner, name) is None]
    if by_data:
        facts["by_data"] = by_data
    if record.held_out is not None:
        facts["held_out"] = {"queries": record.held_out.queries, "best": record.held_out.best}
    if record.pairs:
        facts["pairs"] = [asdict(fact) for fact in record.pairs]
    if record.diagnostics is not None:
        facts["diagnostics"] = record.diagnostics
    return facts


def package_versions(*packages: str) -> dict[str, str]:
    """Versions of the packages that are installed.

    >>> sorted(package_versions("numpy", "no-such-package"))
    ['numpy']
    """
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found

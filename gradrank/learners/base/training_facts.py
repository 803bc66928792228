"""What a trained model remembers of its training."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from gradrank.data.ranking_data import RankingData
from gradrank.learners.trees.boosting import Boosted
from gradrank.models.ranker import Ranker
from gradrank.version import __version__


def training_facts(learner: Any, train: RankingData, objective: str, measure: str, boosted: Boosted) -> dict[str, Any]:
    """Objective, parameters, learning curves, data and versions, as plain values for the model's manifest."""
    parameters = {
        name: (value if not isinstance(value, Ranker) else repr(value))
        for name, value in learner.get_params(deep=False).items()
        if name not in ("callbacks", "checkpoint", "checkpoint_every", "n_jobs", "warm_start")
    }
    parameters["objective"] = objective
    return {
        "learner": type(learner).__name__,
        "objective": objective,
        "measure": measure,
        "parameters": parameters,
        "best": boosted.best,
        "grown": len(boosted.steps),
        "interrupted": boosted.interrupted,
        "curves": boosted.curves,
        "seconds": round(boosted.seconds, 3),
        "data": {"queries": train.n_queries, "documents": train.n_docs, "features": train.n_features},
        "versions": {
            "gradrank": __version__,
            "python": platform.python_version(),
            **package_versions("lightgbm", "numpy"),
        },
    }


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

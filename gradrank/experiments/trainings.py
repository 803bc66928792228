"""Trainings of an experiment: each is done once, side by side with others if there are processes, and kept on disk.

A kept training is found again by what it is made of: learner, all parameters, data, and the code that trains. Whatever
of these changes, the training is another one: a run that was killed goes on, and none uses what is out of date.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gradrank.data.fingerprint import data_fingerprint
from gradrank.data.ranking_data import RankingData
from gradrank.errors import ModelError
from gradrank.experiments.processes import side_by_side
from gradrank.experiments.recipe import Run
from gradrank.experiments.training_code import code_version
from gradrank.learners.algorithms import algorithm
from gradrank.models.ranker import Ranker
from gradrank.models.registry import load_ranker
from gradrank.models.trees.ensemble import TreeEnsemble
from gradrank.runtime.files import made_folder


@dataclass(frozen=True, eq=False)
class Training:
    """A learner with all its parameters, and the data that it learns from.

    Parameters
    ----------
    name
        what people read
    learner
        name of the algorithm
    parameters
        of the learner; objective and measure by their names
    train
        data to learn from
    valid
        data that chooses the number of steps, and further data that is only watched
    base
        ranker that the training starts from
    whole
        keep all trees that were grown, not only as many as validation data chose
    """

    name: str
    learner: str
    parameters: Mapping[str, Any]
    train: RankingData
    valid: RankingData | Mapping[str, RankingData] | None
    base: Ranker | None = None
    whole: bool = False

    def key(self, fingerprints: dict[int, str]) -> str:
        """What the training is made of, as a short digest."""

        def of_data(data: RankingData) -> str:
            if id(data) not in fingerprints:
                fingerprints[id(data)] = data_fingerprint(data)
            return fingerprints[id(data)]

        given = {name: value for name, value in self.parameters.items() if name not in ("n_jobs", "verbose")}
        watched = self.valid if isinstance(self.valid, Mapping) else {"valid": self.valid}
        facts = [
            self.learner,
            {name: repr(value) for name, value in given.items()},
            of_data(self.train),
            {name: None if data is None else of_data(data) for name, data in watched.items()},
            # A base is what it scores.
            None if self.base is None else hashlib.sha256(self.base.predict(self.train).tobytes()).hexdigest(),
            self.whole,
            code_version(),
        ]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def trained(trainings: Sequence[Training], run: Run) -> list[Ranker]:
    """The rankers of all trainings, in their order: those that are kept are read, the others trained.

    A ranker's ``training`` has its curves, the number of steps that validation data chose, and its seconds.
    """
    fingerprints: dict[int, str] = {}
    files: list[Path | None] = []
    found: dict[int, Ranker] = {}
    for number, training in enumerate(trainings):
        path = None if run.out is None else run.out / "trainings" / f"{training.key(fingerprints)}.model"
        files.append(path)
        if path is not None and path.exists():
            try:
                found[number] = load_ranker(path)
            except ModelError as error:
                run.say(f"a kept training is not used: {error}")
    if found:
        run.say(f"{len(found)} of {len(trainings)} trainings are kept from before")
    waiting = [number for number in range(len(trainings)) if number not in found]
    for place, ranker in side_by_side(train_one, [(trainings[number],) for number in waiting], run.jobs, run.client):
        number = waiting[place]
        path = files[number]
        if path is not None:
            made_folder(path.parent)
            ranker.save(path)
        found[number] = ranker
        run.say(f"{len(found)} of {len(trainings)}: {trainings[number].name}{_value(ranker)}")
    return [found[number] for number in range(len(trainings))]


def train_one(training: Training) -> Ranker:
    """Do one training; half of one is no result."""
    base = {} if training.base is None else {"base": training.base}
    learner = algorithm(training.learner)(**{**training.parameters, **base})
    learner.fit(training.train, valid=training.valid)
    ranker: Ranker = learner.ranker_
    if ranker.training.get("interrupted"):
        raise KeyboardInterrupt
    if training.whole:
        trees = [tree for (tree,) in learner.trees_]
        return TreeEnsemble(trees, ranker.feature_names, base_score=learner.base_score_, training=ranker.training)
    return ranker


def chosen_value(ranker: Ranker) -> float:
    """The deciding measure on the first data set that was watched, at the chosen number of steps; NaN if none was."""
    curves = ranker.training.get("curves", {})
    values = next((curve for name, per in curves.items() if name != "train" for curve in per.values()), ())
    best = int(ranker.training.get("best") or 0)
    return float(values[best - 1]) if 0 < best <= len(values) else float("nan")


def _value(ranker: Ranker) -> str:
    value = chosen_value(ranker)
    return "" if np.isnan(value) else f", {ranker.training['measure']} {value:.4f} on validation data"

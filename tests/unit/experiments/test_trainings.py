"""Trainings that are kept: never done twice, never mistaken for others, read back as they were."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gradrank.data.artificial import make_splits
from gradrank.experiments import recipe, run, trainings
from gradrank.experiments.recipe import Run
from gradrank.experiments.trainings import Training, trained
from gradrank.learners import LambdaMART
from gradrank.models.linear import LinearRanker

DATA = make_splits(20, n_docs=8, n_features=4, random_state=3)
PARAMETERS = {
    "objective": "Lambda(NDCG)", "measure": "NDCG@10", "n_estimators": 4, "num_leaves": 4, "min_child_samples": 3,
    "random_state": 1, "n_jobs": 1,
}  # fmt: skip
FIRST = Training("first", "lambdamart", PARAMETERS, DATA["train"], DATA["vali"])


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    done: list[str] = []
    whole = trainings.train_one

    def train_one(training: Training) -> object:
        done.append(training.name)
        return whole(training)

    monkeypatch.setattr(trainings, "train_one", train_one)
    return done


def test_are_the_learners_own(counted: list[str]) -> None:
    (ranker,) = trained([FIRST], Run())
    learner = LambdaMART(**PARAMETERS).fit(DATA["train"], valid=DATA["vali"])
    np.testing.assert_array_equal(ranker.predict(DATA["test"]), learner.predict(DATA["test"]))


def test_are_done_once_and_told_apart(tmp_path: Path, counted: list[str]) -> None:
    where = Run(out=tmp_path)
    (first,) = trained([FIRST], where)
    (again,) = trained([FIRST], where)
    assert counted == ["first"]
    np.testing.assert_array_equal(first.predict(DATA["test"]), again.predict(DATA["test"]))
    assert again.training["curves"] == first.training["curves"]
    others = [
        replace(FIRST, parameters={**PARAMETERS, "num_leaves": 5}, name="leaves"),
        replace(FIRST, train=DATA["test"], name="data"),
        replace(FIRST, valid=DATA["test"], name="valid"),
        replace(FIRST, base=LinearRanker([1.0, 0, 0, 0]), name="base"),
        replace(FIRST, whole=True, name="whole"),
    ]
    trained(others, where)
    assert counted == ["first", "leaves", "data", "valid", "base", "whole"]
    # Threads do not change a model.
    trained([replace(FIRST, parameters={**PARAMETERS, "n_jobs": 2})], where)
    assert len(counted) == 6


def test_other_code_is_another_training(tmp_path: Path, counted: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    trained([FIRST], Run(out=tmp_path))
    monkeypatch.setattr(trainings, "code_version", lambda: "other")
    trained([FIRST], Run(out=tmp_path))
    assert counted == ["first", "first"]


def test_a_broken_file_is_trained_again(tmp_path: Path, counted: list[str]) -> None:
    trained([FIRST], Run(out=tmp_path))
    (kept,) = (tmp_path / "trainings").iterdir()
    kept.write_text("{")
    said: list[str] = []
    trained([FIRST], Run(said.append, tmp_path))
    assert counted == ["first", "first"]
    assert "a kept training is not used" in said[0]


def test_whole_keeps_all_trees() -> None:
    chosen, whole = trained([FIRST, replace(FIRST, whole=True)], Run())
    assert len(whole.trees) == 4
    assert len(chosen.trees) == chosen.training["best"]


def test_a_recipe_goes_on_where_it_was_stopped(tmp_path: Path, counted: list[str]) -> None:
    scale = replace(recipe("svore-2").tiny, n_jobs=1)
    first = run("svore-2", scale=scale, out=tmp_path)
    total = len(counted)
    kept = sorted((tmp_path / "trainings").iterdir())
    kept[0].unlink()
    again = run("svore-2", scale=scale, out=tmp_path)
    assert len(counted) == total + 1
    assert again == first

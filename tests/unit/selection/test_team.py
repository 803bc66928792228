"""Processes that train members side by side."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from gradrank.data.artificial import make_data
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError, GradrankError, ModelError, TrainingError
from gradrank.selection import processes as processes_module
from gradrank.selection import team as team_module
from gradrank.selection.crossfit import Task
from gradrank.selection.kept import kept, path_of, run_facts
from gradrank.selection.members import Member
from gradrank.selection.processes import processes_for
from gradrank.selection.team import Team

POOL = make_data(30, n_docs=8, n_features=4, random_state=3)
TREES = Member("t 1", "trees", "lambdamart", {"objective": "NDCG", "n_estimators": 4})
WRONG = Member("w 1", "trees", "lambdamart", {"objective": "NDCG(label=clicks)", "n_estimators": 4})
LATER = 4e9


def task(member: Member = TREES, fold: int = 0) -> Task:
    return Task(member, fold, 0, 2, 0)


def test_other_processes_train_the_same_say_errors_and_end(tmp_path: Path) -> None:
    with Team(POOL) as alone:
        here = alone.train(task(), LATER).result()
        with pytest.raises(GradrankError) as told_here:
            alone.train(task(WRONG), LATER).result()
    with Team(POOL, processes=2, folder=tmp_path, n_jobs=2) as team:
        there = team.train(task(), LATER).result()
        with pytest.raises(TrainingError) as told_there:
            team.train(task(WRONG), LATER).result()
        cut = team.train(task(fold=1), 0.0).result()
        assert team._elsewhere is not None
        workers = list(team._elsewhere._all)
        np.testing.assert_array_equal(here.ranker.predict(POOL), there.ranker.predict(POOL))
        np.testing.assert_array_equal(here.curve, there.curve)
        assert str(told_here.value) == str(told_there.value)
        assert cut.cut_short
        assert cut.ranker.shape()["trees"] == 1
        # What was cut short is trained anew by whoever goes on.
        assert [path.name for path in tmp_path.iterdir()] == ["t-1.fold-1.json"]
        for worker in workers:
            worker.kill()
            worker.wait()
        with pytest.raises(TrainingError, match=r"t 1: the process that trains it ended with code -9; if memory"):
            team.train(task(fold=1), LATER).result()
        with pytest.raises(TrainingError, match="code -9"):
            team.train(task(fold=1), LATER).result()
        # Others have taken their place.
        assert not team.train(task(fold=1), LATER).result().cut_short
        workers = list(team._elsewhere._all)
    assert all(worker.poll() is not None for worker in workers)


def test_a_kept_model_is_not_trained_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Team(POOL, folder=tmp_path) as team:
        first = team.train(task(), LATER).result()
        monkeypatch.setattr(team_module, "fit_fold", None)
        again = team.train(task(), LATER).result()
    np.testing.assert_array_equal(first.ranker.predict(POOL), again.ranker.predict(POOL))
    np.testing.assert_array_equal(first.curve, again.curve)
    assert again.seconds == first.seconds


def test_a_file_that_is_no_member_is_an_error(tmp_path: Path) -> None:
    with Team(POOL, folder=tmp_path) as team:
        ranker = team.train(task(), LATER).result().ranker
    path = path_of(task(), tmp_path)
    ranker._training.clear()
    ranker.save(path)
    with pytest.raises(ModelError, match="is no member of a portfolio"):
        kept(run_facts(task(), POOL), path)
    path.write_text(path.read_text()[:100])
    with pytest.raises(ModelError, match=r"t-1\.fold-1\.json"):
        kept(run_facts(task(), POOL), path)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="cannot be made into a folder"), Team(POOL, folder=tmp_path / "file"):
        pass


def test_a_training_ends_in_time_or_when_the_user_asks() -> None:
    with Team(POOL) as team:
        assert team.train(task(), time.time() - 1.0).result().cut_short
        assert not team.stopped
    with Team(POOL, asked=lambda: True) as team:
        assert team.train(task(), LATER).result().cut_short
        assert team.stopped


def test_as_many_processes_as_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    many = RankingData.from_arrays(np.zeros((20_000, 2)), np.zeros(20_000), qid=np.repeat(np.arange(200), 100))
    assert processes_for(many, 600.0, 4) == 4
    assert processes_for(many, 5.0, 4) == 1, "too short"
    assert processes_for(POOL, 600.0, 4) == 1, "too small"
    monkeypatch.setattr(processes_module, "_MOST_BYTES", 2 * 2 * many.X.nbytes)
    assert processes_for(many, 600.0, 4) == 2, "more copies would not fit"
    monkeypatch.setattr(processes_module, "_MOST_BYTES", 2 * many.X.nbytes)
    assert processes_for(many, 600.0, 4) == 1

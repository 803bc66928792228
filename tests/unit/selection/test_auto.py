"""The budgeted portfolio."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gradrank.data.artificial import make_splits
from gradrank.data.ranking_data import RankingData
from gradrank.data.splits import concatenate
from gradrank.errors import DataError, TrainingError
from gradrank.learners.algorithms import algorithm, effective_parameters
from gradrank.learners.base.loop import Step
from gradrank.measures import ERR, NDCG, parse_measure
from gradrank.models.trees.ensemble import Tree, TreeEnsemble
from gradrank.selection import auto as auto_module
from gradrank.selection import team as team_module
from gradrank.selection.auto import auto
from gradrank.selection.crossfit import CrossFitted, Fitted, Task
from gradrank.selection.members import PLAIN, Member, Portfolio
from gradrank.selection.tune import tune

SETS = make_splits(60, n_docs=10, n_features=5, random_state=2)
TRAIN, VALID, TEST = SETS["train"], SETS["vali"], SETS["test"]
POOL = concatenate([TRAIN, VALID])


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few trees: what is tested here does not depend on how good they are."""
    monkeypatch.setattr("gradrank.selection.members._TREES", 15)
    original = Portfolio.member

    def member(self: Portfolio, family: str, number: int) -> Member:
        made = original(self, family, number)
        fewer = {"n_estimators": 15} if made.algorithm in ("lambdamart", "mart") else {}
        return replace(made, parameters={**made.parameters, **fewer})

    monkeypatch.setattr(Portfolio, "member", member)


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[Task]:
    """The trainings that were made, in order."""
    tasks: list[Task] = []
    original = team_module.fit_fold

    def fit_fold(task: Task, *data: RankingData, **options: object) -> Fitted:
        tasks.append(task)
        return original(task, *data, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(team_module, "fit_fold", fit_fold)
    return tasks


@pytest.mark.parametrize("measure", ["NDCG@10", "MAP(label=grade)", "Graded(NDCG@3, ERR)", "MRR"])
def test_every_member_is_a_learner_that_can_be_made(measure: str) -> None:
    portfolio = Portfolio(parse_measure(measure))
    for number in range(5):
        for member in portfolio.round(number, dict.fromkeys(portfolio.families(), 1.0) if number else None):
            chosen = effective_parameters(algorithm(member.algorithm)(**member.parameters))
            assert chosen["measure"] == measure


def test_members_differ_and_the_first_is_plain_training() -> None:
    portfolio = Portfolio(NDCG(10), random_state=5)
    members = [*portfolio.round(0), *portfolio.round(1, dict.fromkeys(portfolio.families(), 1.0))]
    assert len({(member.algorithm, str(member.parameters)) for member in members}) == len(members)
    assert {member.algorithm for member in members} >= {"lambdamart", "mart", "ranksvm", "lambdarank", "listnet"}
    assert members[0].family == PLAIN
    assert "lambdarank" not in {member.algorithm for member in Portfolio(NDCG(10), nets=False).round(0)}


def test_a_round_has_the_families_that_paid_the_heaviest_first() -> None:
    members = Portfolio(NDCG(10)).round(2, {"mart": 0.2, "trees": 0.5, "net": 0.0})
    assert [member.family for member in members] == ["trees", "mart"]


def test_never_worse_than_a_member_and_the_ranker_is_the_weighted_sum() -> None:
    result = auto(TRAIN, VALID, NDCG(10), most=4, random_state=3)
    assert len(result.rows) == 4
    assert result.rows[0].member.name == PLAIN
    columns = np.array(result.columns)
    mixed = result.blend.weights @ columns
    assert result.values["NDCG@10"] == pytest.approx(NDCG(10).mean(mixed, POOL))
    for row, column in zip(result.rows, columns, strict=True):
        assert row.value == pytest.approx(NDCG(10).mean(column, POOL))
        assert result.values["NDCG@10"] >= row.value - 1e-12
        assert (row.weight > 0.0) == (row.verdict == "joins")
    expected = result.blend.weights @ np.array([ranker.predict(TEST) for ranker in result.rankers])
    np.testing.assert_allclose(result.ranker.predict(TEST), expected, rtol=1e-9, atol=1e-9)


def test_repeats_exactly_and_by_seed() -> None:
    first, again, other = (auto(TRAIN, VALID, ERR(), most=2, random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.ranker.predict(TEST), again.ranker.predict(TEST))
    assert first.ranker.training["members"][1]["parameters"] != other.ranker.training["members"][1]["parameters"]
    assert not np.array_equal(first.ranker.predict(TEST), other.ranker.predict(TEST))


def test_goes_on_from_its_folder(tmp_path: Path, trained: list[Task]) -> None:
    short = auto(TRAIN, VALID, NDCG(10), most=2, folder=tmp_path)
    assert len(trained) == 8
    trained.clear()
    longer = auto(TRAIN, VALID, NDCG(10), most=3, folder=tmp_path)
    assert {task.member.name for task in trained} == {"symmetric-trees 1"}
    for before, after in zip(short.columns, longer.columns, strict=False):
        np.testing.assert_array_equal(before, after)
    anew = auto(TRAIN, VALID, NDCG(10), most=3)
    np.testing.assert_array_equal(anew.ranker.predict(TEST), longer.ranker.predict(TEST))


def test_a_folder_of_other_data_is_an_error(tmp_path: Path) -> None:
    auto(TRAIN, VALID, NDCG(10), most=1, folder=tmp_path)
    with pytest.raises(TrainingError, match=r"plain\.fold-1\.json: belongs to another run \(data differ\)"):
        auto(TRAIN, TEST, NDCG(10), most=1, folder=tmp_path)


def test_several_processes_give_the_same(tmp_path: Path) -> None:
    alone = auto(TRAIN, VALID, NDCG(10), most=2, processes=1)
    together = auto(TRAIN, VALID, NDCG(10), most=2, processes=2, folder=tmp_path)
    np.testing.assert_array_equal(alone.ranker.predict(TEST), together.ranker.predict(TEST))
    assert len(list(tmp_path.glob("*.json"))) == 8
    assert not list(tmp_path.glob(".*"))


def test_ctrl_c_combines_what_is_there(trained: list[Task]) -> None:
    def stop(_step: Step) -> None:
        if len(trained) == 6:
            raise KeyboardInterrupt

    result = auto(TRAIN, VALID, NDCG(10), callbacks=(stop,))
    assert result.interrupted
    assert [row.member.name for row in result.rows] == [PLAIN]
    assert len(trained) == 6
    assert result.ranker.training["interrupted"]


@pytest.mark.parametrize("way", ["callback", "asked"])
def test_ctrl_c_in_the_first_training_still_gives_a_model(way: str, trained: list[Task]) -> None:
    def stop(_step: Step) -> None:
        raise KeyboardInterrupt

    result = auto(
        TRAIN, VALID, NDCG(10),
        callbacks=(stop,) if way == "callback" else (), asked=(lambda: True) if way == "asked" else None,
    )  # fmt: skip
    assert result.interrupted
    assert len(trained) == 4
    assert np.isfinite(result.ranker.predict(TEST)).all()


def test_budget_too_short_for_one_member_still_gives_a_model() -> None:
    result = auto(TRAIN, VALID, NDCG(10), budget=1e-6)
    assert [row.member.name for row in result.rows] == [PLAIN]
    assert not result.interrupted
    assert result.ranker.shape()["trees"] == 4


def test_all_of_the_budget_is_used_and_no_member_begun_that_would_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    clock = SimpleNamespace(time=lambda: now[0], perf_counter=lambda: now[0])
    stump = Tree.numerical(split_feature=[0], threshold=[0.0], left=[-1], right=[-2], leaf_value=[0.0, 1.0])

    def fit_fold(task: Task, pool: RankingData, **_options: object) -> Fitted:
        seconds = 3.0 if task.member.family == "mart" else 1.0
        now[0] += seconds
        feature = Portfolio(NDCG(10)).families().index(task.member.family) % 5 if task.member.family != PLAIN else 0
        tree = replace(stump, split_feature=np.array([feature], dtype=np.int32))
        return Fitted(TreeEnsemble([tree], pool.feature_names), np.array([[0.5]]), seconds)

    for module in (auto_module, team_module):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(team_module, "fit_fold", fit_fold)
    told: list[tuple[str, bool, float]] = []

    def listen(member: Member, fitted: CrossFitted | None, left: float) -> None:
        told.append((member.name, fitted is None, left))

    result = auto(TRAIN, VALID, NDCG(10), budget=200.0, listener=listen)
    begun = [name for name, start, _ in told if start]
    assert len(begun) == len(result.rows), "every member that was begun was done"
    assert len(begun) > len(Portfolio(NDCG(10)).round(0)), "a second round follows the first"
    assert now[0] <= 200.0
    assert now[0] >= 200.0 * 0.96 - 12.0, "what was left would not have been enough for a member"


def test_a_member_that_cannot_be_trained_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    original = team_module.fit_fold

    def fit_fold(task: Task, *data: RankingData, **options: object) -> Fitted:
        if task.member.family == "map-trees":
            raise TrainingError("there is nothing to learn")
        return original(task, *data, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(team_module, "fit_fold", fit_fold)
    result = auto(TRAIN, VALID, NDCG(10), most=4)
    assert [row.member.name for row in result.rows] == [PLAIN, "deep-trees 1", "symmetric-trees 1", "map-trees 1"]
    assert result.rows[-1].verdict == "failed: there is nothing to learn"
    assert result.rows[result.best_single].value == max(row.value for row in result.rows[:-1])


def test_validation_data_that_stays_apart_is_not_learned_from() -> None:
    other = replace(VALID, labels={name: column[::-1].copy() for name, column in VALID.labels.items()})
    first, second = (auto(TRAIN, data, NDCG(10), most=2, apart=True) for data in (VALID, other))
    for one, two in zip(first.rankers, second.rankers, strict=True):
        np.testing.assert_array_equal(one.predict(TEST), two.predict(TEST))
    assert first.judged_on.n_queries == VALID.n_queries
    mixed = first.ranker.predict(VALID)
    assert first.values["NDCG@10"] == pytest.approx(NDCG(10).mean(mixed, VALID))
    assert not np.array_equal(auto(TRAIN, VALID, NDCG(10), most=1).ranker.predict(TEST), first.rankers[0].predict(TEST))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0.0}, "budget is 0.0, expected a positive number of seconds"),
        ({"budget": float("nan")}, "expected a positive"),
        ({"most": 0}, "most is 0, expected"),
        ({"folds": 1}, "folds is 1, expected 2 to "),
    ],
)
def test_bad_options(options: dict[str, float], message: str) -> None:
    with pytest.raises(DataError, match=message):
        auto(TRAIN, VALID, NDCG(10), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("choose", [auto, tune])
def test_one_query_cannot_be_cut_into_folds(choose: Any) -> None:
    with pytest.raises(DataError, match="there is one query to learn from, expected two or more"):
        choose(TRAIN.take_queries([0]), measure=NDCG(10))


def test_queries_in_both_files_are_an_error() -> None:
    with pytest.raises(DataError, match=r"do not go together: query .* is in an earlier part too"):
        auto(TRAIN, TRAIN, NDCG(10))

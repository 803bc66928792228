"""The recipes of Wu et al. (2009), very small."""

from __future__ import annotations

import pytest

from gradrank.experiments import recipe, run
from gradrank.learners import LambdaMART, McRank
from gradrank.measures import NDCG

SCALE = recipe("wu-1").tiny
DATA = SCALE.artificial_data()


def test_table_1() -> None:
    pytest.importorskip("torch")
    result = run("wu-1", scale=SCALE, data=DATA)
    rows = {row["system"]: row["NDCG@10"] for row in result.tables[0].records()}
    assert list(rows) == ["LambdaMART", "McRank", "LambdaRank"]
    model = SCALE.tree_learner(LambdaMART, SCALE.learning_rate, objective="Lambda(NDCG@10)").fit(
        DATA["train"], valid=DATA["vali"]
    )
    assert rows["LambdaMART"] == pytest.approx(NDCG(10).mean(model.predict(DATA["test"]), DATA["test"]))
    assert len(result.notes) == 2


def test_figure_2_counts_every_tree() -> None:
    scale = recipe("wu-fig2").tiny
    result = run("wu-fig2", scale=scale, data=DATA)
    rows = result.tables[0].records()
    # Five grades: with fewer than five trees McRank has not made a step.
    assert [row["trees"] for row in rows] == [6, 9, 12]
    for name, kind, options, steps in (
        ("LambdaMART", LambdaMART, {"objective": "Lambda(NDCG@10)"}, 12),
        ("McRank", McRank, {}, 2),
    ):
        model = scale.tree_learner(kind, scale.learning_rate, n_estimators=steps, **options)
        model.fit(DATA["train"], valid={"vali": DATA["vali"], "test": DATA["test"]})
        assert rows[-1][name] == model.record_.curves["test"]["NDCG@10"][-1]


def test_figure_3_has_a_curve_for_each_step_rule() -> None:
    said: list[str] = []
    scale = recipe("wu-fig3").tiny
    result = run("wu-fig3", scale=scale, data=DATA, say=said.append)
    train, test = result.tables
    assert [column.name.split(",")[0] for column in train.columns] == ["trees", "newton", "optimal", "optimal-leaf"]
    assert train.rows[-1][0] == test.rows[-1][0] == scale.n_estimators
    assert sum(", rate " in line for line in said) == 6
    assert result.notes[-1].startswith("12 trees, test data, against newton: optimal")

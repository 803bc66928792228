"""The recipes of Wu et al. (2009), very small."""

from __future__ import annotations

import pytest

from gradrank.experiments import recipe
from gradrank.experiments.wu import Scale
from gradrank.learners import LambdaMART, McRank
from gradrank.measures import NDCG

SCALE = Scale(queries=20, docs=8, features=4, trees=6, leaves=4, rates=(0.5, 1.0), min_docs=3, epochs=2)
DATA = SCALE.splits()


def test_table_1() -> None:
    pytest.importorskip("torch")
    result = recipe("wu-1")(SCALE, data=DATA)
    rows = {row["system"]: row["NDCG@10"] for row in result.tables[0].records()}
    assert list(rows) == ["LambdaMART", "McRank", "LambdaRank"]
    model = SCALE.trees_learner(objective="Lambda(NDCG@10)").fit(DATA["train"], valid=DATA["vali"])
    assert rows["LambdaMART"] == pytest.approx(NDCG(10).mean(model.predict(DATA["test"]), DATA["test"]))
    assert len(result.notes) == 2


def test_figure_2_counts_every_tree() -> None:
    result = recipe("wu-fig2")(SCALE, data=DATA)
    (row,) = result.tables[0].records()  # five grades: with fewer than five trees McRank has not made a step
    assert row["trees"] == 6
    for name, kind, options, steps in (
        ("LambdaMART", LambdaMART, {"objective": "Lambda(NDCG@10)"}, 6),
        ("McRank", McRank, {}, 1),
    ):
        model = SCALE.trees_learner(kind, n_estimators=steps, **options)
        model.fit(DATA["train"], valid={"vali": DATA["vali"], "test": DATA["test"]})
        assert row[name] == model.record_.curves["test"]["NDCG@10"][-1]


def test_figure_3_has_a_curve_for_each_step_rule() -> None:
    said: list[str] = []
    result = recipe("wu-fig3")(SCALE, data=DATA, say=said.append)
    train, test = result.tables
    assert [column.name.split(",")[0] for column in train.columns] == ["trees", "newton", "optimal", "optimal-leaf"]
    assert train.rows[-1][0] == test.rows[-1][0] == SCALE.trees
    assert len(said) == 6
    assert result.notes[-1].startswith("6 trees, test data, against newton: optimal")

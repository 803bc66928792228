"""The recipes of Wu et al. (2009), very small."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gradrank.data.artificial import make_splits
from gradrank.experiments import recipe, run
from gradrank.experiments.wu_adaptation import domains_of
from gradrank.learners import LambdaMART, McRank
from gradrank.measures import NDCG

SCALE = recipe("wu-1").tiny
DATA = SCALE.artificial_data()


def trees(scale, kind, **options):
    """A learner with the recipe's parameters, made by hand."""
    parameters = scale.tree_parameters(num_leaves=scale.num_leaves[0], learning_rate=0.1, **options)
    return kind(measure="NDCG@10", random_state=scale.random_state, n_jobs=1, **parameters)


def test_table_1() -> None:
    pytest.importorskip("torch")
    result = run("wu-1", scale=SCALE, data=DATA)
    rows = {row["system"]: row["NDCG@10"] for row in result.tables[0].records()}
    assert list(rows) == ["LambdaMART", "McRank", "LambdaRank"]
    model = trees(SCALE, LambdaMART, objective="Lambda(NDCG)").fit(DATA["train"], valid=DATA["vali"])
    assert rows["LambdaMART"] == pytest.approx(NDCG(10).mean(model.predict(DATA["test"]), DATA["test"]))
    assert result.claims[0].estimate().mean == pytest.approx(rows["LambdaMART"] - rows["McRank"])
    # Of two nets the one that is better on validation data.
    chosen = {row["system"]: row for row in result.tables[1].records()}
    assert chosen["LambdaRank"]["rate"] in SCALE.net_rates


def test_figure_2_counts_every_tree() -> None:
    scale = recipe("wu-fig2").tiny
    result = run("wu-fig2", scale=scale, data=DATA)
    rows = result.tables[0].records()
    # Five grades: with fewer than five trees McRank has not made a step.
    assert [row["trees"] for row in rows] == [6, 9, 12]
    for name, kind, options, steps in (
        ("LambdaMART", LambdaMART, {"objective": "Lambda(NDCG)"}, 12),
        ("McRank", McRank, {}, 2),
    ):
        model = trees(scale, kind, **{**options, "n_estimators": steps})
        model.fit(DATA["train"], valid={"vali": DATA["vali"], "test": DATA["test"]})
        assert rows[-1][name] == model.record_.curves["test"]["NDCG@10"][-1]


def test_figure_3_has_a_curve_for_each_step_rule() -> None:
    said: list[str] = []
    scale = recipe("wu-fig3").tiny
    result = run("wu-fig3", scale=scale, data=DATA, say=said.append)
    train, test = result.tables
    rules = [column.name.split(",")[0] for column in train.columns]
    assert rules[:5] == ["trees", "newton", "optimal", "optimal-leaf", "optimal-gradient"]
    assert train.rows[-1][0] == test.rows[-1][0] == scale.n_estimators
    assert sum(", rate " in line for line in said) == len(scale.learning_rates) * 4
    # The paper compares one weight per tree with Newton's step, both without shrinkage, on both sets of queries.
    assert len(result.claims) == 4
    for claim in result.claims:
        (sample,) = claim.samples
        (row,) = [
            row for row in (test if "test" in claim.says else train).records() if f" {row['trees']} " in claim.says
        ]
        gains = [row[f"{step}, rate 1"] - row["newton, rate 1"] for step in ("optimal", "optimal-gradient")]
        assert any(sample.mean == pytest.approx(gain) for gain in gains)


def test_adaptation_beats_its_base_on_data_that_is_given() -> None:
    pytest.importorskip("torch")
    scale = replace(recipe("wu-5").tiny, epochs=5, n_estimators=20)
    data = make_splits(90, n_docs=10, n_features=6, random_state=4)
    result = run("wu-5", scale=scale, data=data)
    rows = {row["system"]: row["NDCG@10"] for row in result.tables[0].records()}
    assert {"net of own", "net of domain 1", "domain 2 adapted", "interpolation", "merged data"} <= rows.keys()
    assert rows["domain 1 adapted"] > rows["net of domain 1"]


def test_domains_of_given_data_share_no_query_and_keep_the_distribution_of_features() -> None:
    scale = replace(recipe("wu-5").tiny, queries=20, shifts=(0.5, 1.0))
    data = make_splits(60, n_docs=6, n_features=5, random_state=4)
    sets = domains_of(scale, data)
    queries = [set(sets[name].qid) for name in ("train", "train 1", "vali 1", "train 2", "vali 2")]
    assert sum(map(len, queries)) == len(set.union(*queries)) == 60
    # With a shift of 1 every column is shuffled: the same values in another order, labels as they were.
    whole = data["train"].take_queries([q for q, qid in enumerate(data["train"].qid) if qid in queries[3] | queries[4]])
    shuffled = np.concatenate([sets["vali 2"].X, sets["train 2"].X])
    assert not np.array_equal(shuffled, whole.X)
    np.testing.assert_array_equal(np.sort(shuffled, axis=0), np.sort(whole.X, axis=0))

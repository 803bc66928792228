"""The recipes on local optimality, small."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gradrank.experiments import recipe, run


def test_random_weights_fail() -> None:
    result = run("donmez-fig6", scale="tiny")
    (row,) = result.tables[0].records()
    assert row["directions"] == 22
    assert row["improve"] > 0
    assert row["largest gain"] > 0
    # The figure in numbers: every curve starts at the weights.
    start, *rest = result.tables[1].records()
    assert start["lowest of all"] == start["highest of all"] == start["direction 1"] == row["NDCG"]
    assert len(rest) == 10


@pytest.mark.parametrize("name", ["donmez-fig1", "donmez-fig4"])
def test_nets_of_one_and_two_layers_are_tested_and_followed(name: str) -> None:
    pytest.importorskip("torch")
    said: list[str] = []
    result = run(name, scale="tiny", say=said.append)
    rows = result.tables[0].records()
    # Reciprocal rank is learnt in two ways: from misranked pairs, as the paper does, and from all.
    ways = 1 if name == "donmez-fig1" else 2
    assert [row["ranker"].split(",")[0] for row in rows] == (["single layer"] * 3 + ["two layers"] * 3) * ways
    assert [row["steps"] for row in rows] == ["0.1…1", "0.001…0.01", "0.1…1"] * 2 * ways
    measure = "NDCG" if name == "donmez-fig1" else "MRR(rel=2)"
    for row in rows:
        assert row["directions"] == 22
        if row["moves"]:
            assert row["reached"] > row[measure]
    trained, at_random = rows[0], rows[2]
    assert trained[measure] > at_random[measure]
    assert sum("directions" in line for line in said) == len(rows)


def test_the_rate_with_the_highest_measure_is_tested_and_alone_if_nothing_beside_it_is_wanted() -> None:
    pytest.importorskip("torch")
    scale = replace(recipe("donmez-fig1").tiny, hidden_nodes=(3,), beside=False, moves=0)
    by_rate = {
        rates: run("donmez-fig1", scale=replace(scale, learning_rates=rates)).tables[0].records()
        for rates in ((0.01,), (1e-9,), (1e-9, 0.01))
    }
    # With a rate of next to nothing the weights stay where they were at random.
    assert [len(rows) for rows in by_rate.values()] == [1, 1, 1]
    assert by_rate[1e-9,][0]["NDCG"] < by_rate[0.01,][0]["NDCG"]
    assert by_rate[1e-9, 0.01] == by_rate[0.01,]


def test_section_8_weights_of_early_epochs_and_of_another_measure() -> None:
    pytest.importorskip("torch")
    result = run("donmez-fig2", scale="tiny")
    tested = next(table for table in result.tables[1:] if "ranker" in [column.name for column in table.columns])
    assert [row["ranker"] for row in tested.records()] == ["NDCG@10, epoch 2", "learned for MRR"]
    rows = result.tables[-1].records()
    for row, at in zip(rows, tested.records(), strict=True):
        assert row["weights"] == at["ranker"]
        assert row["NDCG@10"] == pytest.approx(at["NDCG@10"])
        # Learning starts from these weights: at random ones it would be far below.
        assert row["an epoch on"] == pytest.approx(row["NDCG@10"], abs=0.05)
        assert row["best of 2 epochs on"] >= row["an epoch on"]


def test_steps_of_one_can_be_absolute() -> None:
    relative, absolute = (
        run("donmez-fig6", scale=replace(recipe("donmez-fig6").tiny, unit=unit)).tables[1].records()
        for unit in ("relative", "absolute")
    )
    # The random weights are a direction of length 1: both are the same walk.
    assert relative == absolute
    twice = run("donmez-fig1", scale=replace(recipe("donmez-fig1").tiny, unit="absolute", hidden_nodes=(0,), moves=0))
    once = run("donmez-fig1", scale=replace(recipe("donmez-fig1").tiny, hidden_nodes=(0,), moves=0))
    assert twice.tables[1].records()[0] == once.tables[1].records()[0]
    assert twice.tables[1].records()[1] != once.tables[1].records()[1]


def test_weight_decay_is_a_setting_of_adam_alone() -> None:
    scale = replace(recipe("donmez-fig4").tiny, weight_decay=0.0)
    assert scale.net(3)["weight_decay"] == 0.0
    assert recipe("donmez-fig4").small.net(3)["weight_decay"] == 0.1
    # The paper's schedule has none.
    assert recipe("donmez-fig4").full.net(3)["weight_decay"] == 0.0

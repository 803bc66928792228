"""The recipes on local optimality, small."""

from __future__ import annotations

import pytest

from gradrank.experiments import run


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

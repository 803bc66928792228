"""The experiments on graded and iteration-dependent objectives, in miniature: what is run, compared and said."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from gradrank.errors import DataError
from gradrank.experiments import recipe, run
from gradrank.experiments.svore import graded, scheduled
from gradrank.learners import LambdaMART
from gradrank.measures import CNDCG, NDCG


def test_table_1_is_what_training_and_testing_give() -> None:
    result = run("svore-1", scale="tiny")
    data = recipe("svore-1").tiny.artificial_data()
    shown = {(row[0], row[1]): row[2:-1] for row in result.tables[0].rows}
    (weight,) = recipe("svore-1").tiny.weights
    for name, share in (("λ(L)", 0.0), ("λ(L) + λ(C)", weight)):
        learner = LambdaMART(
            graded(share), measure="NDCG@3", n_estimators=6, num_leaves=5, min_child_samples=5, learning_rate=0.2,
            split="mse", subsample=1.0, n_jobs=1,
        ).fit(data["train"], valid=data["vali"])  # fmt: skip
        scores = learner.ranker_.predict(data["test"])
        for kind in (NDCG, CNDCG):
            for place, cutoff in enumerate(range(1, 11)):
                value = np.nanmean(kind(cutoff).values(scores, data["test"]))
                assert shown[name, kind.name][place] == pytest.approx(value)
    assert result.notes[0] == "Chosen on validation data by the rule unharmed: weight 0.5, rate 0.2."
    clicks, grades = result.claims
    for claim, kind in ((clicks, "CNDCG"), (grades, "NDCG")):
        difference = shown["λ(L) + λ(C)", kind][2] - shown["λ(L)", kind][2]
        assert claim.estimate().mean == pytest.approx(difference)


def test_the_weight_of_table_1_is_chosen_by_its_rule() -> None:
    scale = replace(recipe("svore-1").tiny, queries=120, n_estimators=20, weights=(0.01, 0.3, 0.9))
    by_rule = {rule: run("svore-1", scale=replace(scale, rule=rule)) for rule in ("NDCG@3", "unharmed")}
    alone, *weighed = by_rule["NDCG@3"].tables[1].records()
    best = max(weighed, key=lambda row: row["NDCG@3"])
    assert f"by the rule NDCG@3: weight {best['weight']}," in by_rule["NDCG@3"].notes[0]
    # By clicks: most of all with weight 0.9, but that harms the grades; 0.3 does not, and has more clicks than 0.01.
    by_clicks = sorted(weighed, key=lambda row: -row["CNDCG@3"])
    assert [row["weight"] for row in by_clicks] == ["0.9", "0.3", "0.01"]
    assert by_clicks[0]["NDCG@3"] < alone["NDCG@3"] - 0.05
    assert "by the rule unharmed: weight 0.3," in by_rule["unharmed"].notes[0]
    with pytest.raises(DataError, match="rule is 'best', expected NDCG@3 or unharmed"):
        run("svore-1", scale=replace(scale, rule="best"))


def test_table_2_has_the_papers_methods() -> None:
    result = run("svore-2", scale="tiny")
    methods = [row[0] for row in result.tables[0].rows]
    assert methods == [
        "λ(L), Newton", "λ(L), gradient", "λ(L) + λ(S), exponential", "λ(L) + λ(S), linear",
        "λ(L) + λ(S@3), exponential", "λ(L) + λ(S@3), linear",
    ]  # fmt: skip
    assert [claim.says.split(" has")[0] for claim in result.claims] == ["λ(L), gradient", "λ(L) + λ(S)", "λ(L) + λ(S)"]
    objectives = {row[0]: row[1] for row in result.tables[1].rows}
    assert objectives["λ(L) + λ(S@3), linear"] == str(scheduled("linear", 0.1, 0.1, 3))


@pytest.mark.parametrize(
    ("name", "columns"),
    [("svore-fig2", 5), ("svore-fig3", 5), ("svore-fig4", 5)],
)
def test_figures_are_curves(name: str, columns: int) -> None:
    result = run(name, scale="tiny")
    table = result.tables[0]
    assert len(table.columns) == columns
    assert table.rows[0][0] == 0
    assert len(table.rows) >= 6
    values = [cell for row in table.rows for cell in row[1:] if not math.isnan(cell)]
    assert all(0.0 <= value <= 1.0 for value in values)


def test_figure_7_grows_with_the_data() -> None:
    table, *panels = run("svore-fig7", scale="tiny").tables
    assert [row[1] for row in table.rows] == [10] * 4 + [40] * 4
    assert table.rows[1][-1] is None
    assert [panel.title for panel in panels] == [f"NDCG@{cutoff} on test data" for cutoff in (1, 3, 10)]
    # The panels draw the numbers of the table: queries, then one column per method.
    assert panels[1].rows[1] == (40, *(row[4] for row in table.rows[4:]))


def test_significance_is_said_by_cut_off() -> None:
    from types import SimpleNamespace

    from gradrank.experiments.svore import _significant

    def row(difference: float, p: float) -> SimpleNamespace:
        return SimpleNamespace(test=SimpleNamespace(difference=difference, p=p))

    assert _significant({1: row(0.1, 0.01), 2: row(0.1, 0.2), 3: row(-0.1, 0.04), 4: row(-0.1, 0.05)}) == (
        "higher @1; lower @3"
    )
    assert _significant({}) == ""

"""The experiments on graded and iteration-dependent objectives, in miniature: what is run, compared and said."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from gradrank.errors import GradrankError
from gradrank.experiments import RECIPES, recipe, run
from gradrank.experiments.svore import Scale, graded, main, scheduled
from gradrank.learners import LambdaMART
from gradrank.measures import CNDCG, NDCG

TINY = Scale(queries=40, docs=10, features=5, trees=6, leaves=5, min_docs=5, rates=(0.2,), weights=(0.5,),
             starts=(0.1,), linear=(0.1,), exponential=(100.0,), n_jobs=1)  # fmt: skip


def test_table_1_is_what_training_and_testing_give() -> None:
    result = run("svore-1", scale=TINY)
    data = TINY.splits()
    shown = {(row[0], row[1]): row[2:] for row in result.tables[0].rows}
    weight = next(float(row[0]) for row in result.tables[1].rows if row[-1] == "chosen")
    for name, share in (("λ(L)", 0.0), ("λ(L) + λ(C)", weight)):
        learner = LambdaMART(graded(share), measure="NDCG@3", n_estimators=6, num_leaves=5, min_child_samples=5, learning_rate=0.2, split="mse",
                             subsample=1.0, n_jobs=1).fit(data["train"], valid=data["vali"])  # fmt: skip
        scores = learner.ranker_.predict(data["test"])
        for kind in (NDCG, CNDCG):
            for place, cutoff in enumerate(range(1, 11)):
                value = np.nanmean(kind(cutoff).values(scores, data["test"]))
                assert shown[name, kind.name][place].rstrip("*°") == f"{100 * value:.2f}"
    assert result.notes[0].startswith("Chosen on validation data: w=")


def test_table_2_has_the_papers_methods() -> None:
    result = recipe("svore-2")(TINY)
    methods = [row[0] for row in result.tables[0].rows]
    assert methods == [
        "λ(L), Newton", "λ(L), gradient", "λ(L) + λ(S), exponential", "λ(L) + λ(S), linear",
        "λ(L) + λ(S@3), exponential", "λ(L) + λ(S@3), linear",
    ]  # fmt: skip
    assert len(result.notes) == 3
    objectives = {row[0]: row[1] for row in result.tables[1].rows}
    assert objectives["λ(L) + λ(S@3), linear"] == str(scheduled("linear", 0.1, 0.1, 3))


@pytest.mark.parametrize(
    ("name", "columns"),
    [("svore-fig2", 5), ("svore-fig3", 5), ("svore-fig4", 5)],
)
def test_figures_are_curves(name: str, columns: int) -> None:
    result = run(name, scale=TINY)
    table = result.tables[0]
    assert len(table.columns) == columns
    assert table.rows[0][0] == 0
    assert len(table.rows) >= 6
    values = [cell for row in table.rows for cell in row[1:] if not math.isnan(cell)]
    assert all(0.0 <= value <= 1.0 for value in values)


def test_figure_7_grows_with_the_data() -> None:
    result = recipe("svore-fig7")(TINY, shares=(0.25, 1.0))
    assert [row[1] for row in result.tables[0].rows] == [10] * 4 + [40] * 4
    assert result.tables[0].rows[1][-1] is None


def test_on_the_command_line(capsys) -> None:
    options = ["--queries", "20", "--docs", "8", "--features", "5", "--trees", "3", "--min-docs", "5", "--rates", "0.2"]
    main(["svore-fig4", *options, "--n_jobs", "1", "--json"])
    said = capsys.readouterr()
    assert json.loads(said.out)["name"] == "svore-fig4"
    assert "NDCG@3" in said.err
    main(["svore-fig3", *options, "--n_jobs", "1"])
    assert capsys.readouterr().out.startswith("### svore-fig3")


def test_names() -> None:
    assert {name for name in RECIPES if name.startswith("svore")} == {
        "svore-1", "svore-2", "svore-fig2", "svore-fig3", "svore-fig4", "svore-fig7",
    }  # fmt: skip
    with pytest.raises(GradrankError, match="there is no experiment 'svore-9'"):
        run("svore-9")

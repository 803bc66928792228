"""Running experiments by name: scales, settings, seeds, files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gradrank.errors import DataError, TrainingError
from gradrank.evaluation.tables import Column, Table, to_json
from gradrank.experiments import RECIPES, Result, recipe, run
from gradrank.experiments.pins import TREES, net, pinned
from gradrank.experiments.seeds import over_seeds


def test_names() -> None:
    assert run("DONMEZ-fig6", scale="tiny").name == "donmez-fig6"
    with pytest.raises(DataError, match="there is no experiment 'svore-9'; there are donmez-1, donmez-2"):
        run("svore-9")
    assert len(RECIPES) == 32


def test_scales() -> None:
    assert recipe("wu-1").scale("paper").queries == 10_000
    with pytest.raises(DataError, match=r"the paper's settings of figure 5 \(Donmez, .*\) are not known: choose small"):
        run("donmez-fig5", scale="paper")
    with pytest.raises(DataError, match="the scale is 'huge', expected tiny, small or paper"):
        run("wu-1", scale="huge")
    with pytest.raises(DataError, match=r"wu-1 takes a gradrank.experiments.wu.TableScale, not a StepScale"):
        run("wu-1", scale=recipe("wu-fig3").tiny)
    with pytest.raises(DataError, match="seeds is 0"):
        run("wu-1", scale="tiny", seeds=0)


def test_settings_are_read_as_what_they_are() -> None:
    scale = recipe("niu-4").tiny.changed(["k=5", "rankers=RankSVM, FocusedSVM", "C=auto", "beta=0.25", "noise=1"])
    assert (scale.k, scale.rankers, scale.C, scale.beta, scale.noise) == (
        5, ("RankSVM", "FocusedSVM"), "auto", 0.25, 1,
    )  # fmt: skip
    assert recipe("donmez-1").tiny.changed(["parameters=batch_size=64,learning_rate=0.1"]).parameters == (
        "batch_size=64",
        "learning_rate=0.1",
    )
    assert recipe("wu-fig3").tiny.changed(["min-child-samples=7"]).min_child_samples == 7
    # Words that may be numbers, and switches.
    mixed = recipe("niu-4").tiny.changed(["top=2", "beta=cv", "by-difference=true"])
    assert (mixed.top, mixed.beta, mixed.by_difference, mixed.err("graded")) == (2, "cv", True, "ERR(top=2)")
    assert recipe("svore-1").small.changed(["click_agreement=auto"]).click_agreement == "auto"
    with pytest.raises(DataError, match="--set by_difference is 'perhaps', expected true or false"):
        recipe("niu-4").tiny.changed(["by_difference=perhaps"])
    for pair, message in (
        ("foo=1", "--set is 'foo=1', expected KEY=VALUE with one of queries, docs"),
        ("k", "--set is 'k', expected KEY=VALUE"),
        ("k=x", "--set k is 'x', expected a number"),
        ("k=1.5", "--set k is '1.5', expected a whole number"),
        ("random_state=3", "--set is 'random_state=3', expected KEY=VALUE"),
    ):
        with pytest.raises(DataError, match=message):
            recipe("niu-4").tiny.changed([pair])


def test_much_memory_is_announced() -> None:
    # 2.5 × 108,000 queries × 175 documents × 860 features × 4 bytes.
    assert recipe("svore-1").full.gigabytes() == pytest.approx(162.54)
    assert recipe("wu-1").small.gigabytes() < 1.0


def test_several_seeds_give_means_and_deviations(tmp_path: Path) -> None:
    scale = replace(recipe("donmez-fig6").tiny, n_jobs=1)
    said: list[str] = []
    whole = run("donmez-fig6", scale=scale, seeds=3, out=tmp_path, say=said.append)
    single = [run("donmez-fig6", scale=replace(scale, random_state=seed)) for seed in range(3)]
    values = [each.tables[0].records()[0]["NDCG"] for each in single]
    (row,) = whole.tables[0].records()
    assert row["NDCG"] == pytest.approx(np.mean(values))
    assert row["NDCG ±"] == pytest.approx(np.std(values, ddof=1))
    assert whole.runs == tuple(single)
    assert whole.settings["random_state"] == "0 to 2"
    assert [note.split(":")[0] for note in whole.notes] == ["Seed 0", "Seed 1", "Seed 2"]
    assert said[0].startswith("seed 0: ")
    # Lines stay lines.
    assert [column.kind for column in whole.tables[1].columns] == ["number"] * 7
    assert whole.tables[1].rows[0][1] == pytest.approx(np.mean([each.tables[1].rows[0][1] for each in single]))
    written = json.loads((tmp_path / "donmez-fig6.json").read_text())
    assert "runs" not in written
    assert written["command"] == "gradrank experiment run donmez-fig6 --scale tiny --seeds 3"
    assert [claim["samples"][0][0] for claim in written["claims"]] == [whole.claims[0].samples[0].mean]
    assert [len(claim.samples) for claim in whole.claims] == [3]
    assert (tmp_path / "donmez-fig6.md").read_text() == whole.to_markdown()


def test_the_command_of_a_recipe_whose_paper_gives_no_settings_can_be_run(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    assert recipe("donmez-fig5").full is None
    run("donmez-fig5", scale=replace(recipe("donmez-fig5").tiny, shares=(1.0,), epochs=1), out=tmp_path)
    command = json.loads((tmp_path / "donmez-fig5.json").read_text())["command"]
    assert command.startswith("gradrank experiment run donmez-fig5 --scale small --set queries=30 ")
    assert command.endswith("--set shares=1.0")


def test_seeds_side_by_side_are_the_same() -> None:
    scale = replace(recipe("donmez-fig6").tiny, n_jobs=1)
    said: list[str] = []
    two = run("donmez-fig6", scale=scale, seeds=2, jobs=2, say=said.append)
    assert to_json(two.to_dict()) == to_json(run("donmez-fig6", scale=scale, seeds=2).to_dict())
    assert sorted(said) == ["seed 0 is done", "seed 1 is done"]


def test_rows_of_seeds_are_matched_by_name() -> None:
    columns = (Column("construction"), Column("MAP", "number"), Column("p", "p"), Column("verdict"))
    first = Table(columns, (("a", 0.4, 0.1, "–"), ("b", 0.2, 0.1, "worse"), ("only here", 0.1, 0.1, "")), "T")
    second = Table(columns, (("b", 0.6, 0.1, "better"), ("a", 0.4, 0.1, "–")), "T")
    runs = [Result("x", "X", (table,), settings={"random_state": seed}) for seed, table in ((4, first), (5, second))]
    (table,) = over_seeds(runs).tables
    assert [column.name for column in table.columns] == ["construction", "MAP", "verdict"]
    assert table.rows == (
        ("a", (0.4, 0.0), "– (2)"),
        ("b", (pytest.approx(0.4), pytest.approx(0.2 * np.sqrt(2))), "worse (1), better (1)"),
    )
    assert table.title == "T; mean ± standard deviation over 2 seeds"


def test_lines_whose_points_lie_elsewhere_in_each_run_are_means_of_points() -> None:
    heads = (Column("pairs", "number"), Column("MRR", "number"))
    points = [((600.0, 0.5), (5000.0, 0.7)), ((800.0, 0.3), (7000.0, 0.9))]
    runs = [
        Result("x", "X", (Table(heads, rows, "trained"),), settings={"random_state": seed})
        for seed, rows in enumerate(points)
    ]
    (table,) = over_seeds(runs).tables
    np.testing.assert_allclose(table.rows, [(700.0, 0.4), (6000.0, 0.8)])
    # One more point in a run: nothing says which ones belong together.
    longer = replace(runs[1], tables=(Table(heads, (*points[1], (9000.0, 1.0)), "trained"),))
    assert over_seeds([runs[0], longer]).tables[0].rows == ()


def test_a_parameter_that_is_not_pinned_is_found() -> None:
    whole = {**TREES, "n_estimators": 5, "num_leaves": 4, "learning_rate": 0.1, "min_child_samples": 3}
    assert pinned("lambdamart", whole) == whole
    for name in whole:
        rest = {key: value for key, value in whole.items() if key != name}
        with pytest.raises(TrainingError, match=f"leaves {name} of lambdamart to its defaults"):
            pinned("lambdamart", rest)
    made = net(hidden_layer_sizes=3, activation="relu", epochs=2)
    assert pinned("LambdaRank", made) == made

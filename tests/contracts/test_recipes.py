"""What every experiment promises: it runs, gives the table or figure it declares, and gives the same again."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from gradrank.evaluation.tables import to_json
from gradrank.experiments import RECIPES, Result, cells, donmez_optimality, pins, recipe, run, trainings
from gradrank.learners.algorithms import algorithm, parameters_of
from gradrank.report.lines import can_be_drawn

KEPT = Path(__file__).parents[1] / "reference" / "tiny_recipes.json"
SINGLE_PRECISION = {
    "length of weights": "",
    "0": "svore-fig3",
    "1": "svore-fig3",
    "2": "svore-fig3",
    "3 and 4": "svore-fig3",
}
"""Columns that tell the size of what is float32, weights of nets and λ's, and the recipe if they are of one only; all
others are computed in double."""
PAGES = Path(__file__).parents[2] / "docs" / "experiments"
pytest.importorskip("torch")


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    return {}


Trained = dict[str, list[tuple[str, dict[str, Any]]]]
"""Learner and parameters of every training, by recipe."""


@pytest.fixture(scope="module")
def trained() -> Trained:
    return {}


@pytest.fixture(params=list(RECIPES))
def result(request, results, trained: Trained, monkeypatch: pytest.MonkeyPatch) -> Result:
    name = request.param
    if name not in results:
        seen = trained.setdefault(name, [])
        train_one, run_cell = trainings.train_one, cells.run_cell

        def one(training: Any) -> Any:
            seen.append((training.learner, {**training.parameters, "base": training.base}))
            return train_one(training)

        def cell(what: Any, fold: Any) -> Any:
            seen.append((what.algorithm, dict(what.parameters)))
            return run_cell(what, fold)

        monkeypatch.setattr(trainings, "train_one", one)
        monkeypatch.setattr(donmez_optimality, "train_one", one)
        monkeypatch.setattr(cells, "run_cell", cell)
        results[name] = run(name, scale=replace(recipe(name).tiny, n_jobs=1))
    return results[name]


NO_TRAINING = {"donmez-fig6", "svore-fig5", "svore-fig6", "niu-1", "niu-2", "niu-3"}


def test_no_training_leaves_anything_to_a_default(result: Result, trained: Trained) -> None:
    """Whatever the defaults become, a table stays: each training is given every parameter that it depends on."""
    assert bool(trained[result.name]) == (result.name not in NO_TRAINING)
    for learner, parameters in trained[result.name]:
        open_ = [key for key in parameters_of(algorithm(learner)) if key not in (*parameters, *pins.OF_THE_RUN)]
        assert not open_, learner


def test_gives_the_table_or_figure_that_it_declares(result: Result) -> None:
    made = recipe(result.name)
    assert result.tables
    assert all(table.rows and all(len(row) == len(table.columns) for row in table.rows) for table in result.tables)
    assert any(can_be_drawn(table) for table in result.tables) == made.is_figure
    assert made.title in result.to_markdown()


def test_reproduces_what_it_gave_before(result: Result) -> None:
    """Pinned settings keep a table as it is, whatever the defaults become. A change on purpose: see the file's note.

    Counts and texts are the same everywhere, and so are the rankings. Sums of floats differ in their last digits
    between processors, whose vector units add in other orders; on one processor every bit is the same (see below).
    """
    kept = json.loads(KEPT.read_text(encoding="utf-8"))["first tables"][result.name]
    given = json.loads(to_json(result.tables[0].records()))
    assert [list(row) for row in given] == [list(row) for row in kept]
    for row, before in zip(given, kept, strict=True):
        for column, value in before.items():
            if isinstance(value, float):
                single = SINGLE_PRECISION.get(column) in ("", result.name)
                value = pytest.approx(value, rel=1e-6 if single else 1e-12, abs=1e-14)
            assert row[column] == value, column


def test_states_the_finding_as_claims(result: Result) -> None:
    assert result.claims
    assert len({claim.says for claim in result.claims}) == len(result.claims)
    assert result.to_dict()["verdict"] in ("holds", "does not hold", "undecided")


def test_gives_the_same_again_with_another_number_of_threads(result: Result) -> None:
    again = run(result.name, scale=replace(recipe(result.name).tiny, n_jobs=2))
    assert to_json(again.to_dict()) == to_json(result.to_dict())


def test_says_all_settings(result: Result) -> None:
    made = recipe(result.name)
    described = {item.name for item in fields(made.tiny)} - {"n_jobs"}
    assert described <= set(result.settings)
    for name, parameters in result.learners.items():
        assert parameters, name


@pytest.mark.parametrize("name", list(RECIPES))
def test_declares_what_it_is(name: str) -> None:
    made = recipe(name)
    paper, number = re.fullmatch(r"([a-z]+)-(?:fig)?(\d+)", name).groups()
    assert made.shows == f"{'figure' if 'fig' in name else 'table'} {number}"
    assert made.paper.lower().startswith(paper)
    assert re.fullmatch(r"\S.*[^.]\.", made.finding)
    for scale in (made.small, made.full):
        assert scale is None or type(scale) is type(made.tiny)
    assert all(made.small.meanings().values())
    # The documentation reports it.
    assert any(name in page.read_text() or made.shows in page.read_text().lower() for page in PAGES.glob("*.md"))


@pytest.mark.parametrize("name", list(RECIPES))
def test_no_scale_names_a_parameter_that_its_learner_does_not_have(name: str) -> None:
    made = recipe(name)
    for scale in (made.tiny, made.small, made.full):
        if scale is None:
            continue
        for learner, parameters in scale.learners().items():
            assert set(parameters) <= set(parameters_of(algorithm(learner.split(",")[0]))), learner

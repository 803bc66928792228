"""Every recipe on data that is given, in each of the layouts that a folder may have."""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradrank import RankingData, make_splits
from gradrank.data.formats.registry import read_data, write_data
from gradrank.data.splits import concatenate, letor_folds
from gradrank.errors import DataError
from gradrank.experiments import RECIPES, Result, recipe, run
from gradrank.experiments.claims import higher, joined
from gradrank.experiments.folders import label_files_of, read_folds, read_splits
from tests.support.commands import error_of
from tests.support.commands import run as command

LAYOUTS = ("files", "folds", "parts")
PARTS, FEATURES = 5, 7
"""No recipe's own data has so many features."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of each layout with the same first fold, and the clicks beside each file."""
    root = tmp_path_factory.mktemp("given")
    made = make_splits(20, n_docs=7, n_features=FEATURES, noise=0.3, clicks=True, random_state=2)
    whole = concatenate([made["train"], made["vali"], made["test"]])
    parts = [whole.take_queries(places) for places in np.array_split(np.arange(whole.n_queries), PARTS)]
    for number, part in enumerate(parts, 1):
        _write(part, root / "parts" / f"S{number}.txt.xz")
    for number, fold in enumerate(letor_folds(parts), 1):
        for name, data in zip(("train", "vali", "test"), fold, strict=True):
            _write(data, root / "folds" / f"Fold{number}" / f"{name}.txt")
            if number == 1:
                _write(data, root / "files" / f"{name}.txt.xz")
    return root


def _write(data: RankingData, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    plain = path.with_suffix("") if path.suffix == ".xz" else path
    # LETOR text has a place for one label.
    write_data(data, plain, label=data.label_names[0])
    if path != plain:
        path.write_bytes(lzma.compress(plain.read_bytes()))
        plain.unlink()
    clicks = "".join(f"{value:g}\n" for value in data.label("clicks"))
    plain.with_suffix(".clicks.txt").write_text(clicks, encoding="utf-8")


def _with_clicks(path: Path) -> RankingData:
    return read_data(path, label_files=label_files_of(path, {"clicks": "*.clicks.txt"}))


def test_layouts_of_the_same_data_are_the_same(folders: Path) -> None:
    files, folds, parts = (read_splits(folders / layout, _with_clicks) for layout in LAYOUTS)
    assert list(files) == ["train", "vali", "test"]
    for name, data in files.items():
        for other in (folds[name], parts[name]):
            assert data.qid == other.qid
            np.testing.assert_array_equal(data.X, other.X)
            np.testing.assert_array_equal(data.label(), other.label())
            np.testing.assert_array_equal(data.label("clicks"), other.label("clicks"))
    assert len(read_folds(folders / "parts")) == len(read_folds(folders / "folds")) == PARTS
    assert len(read_folds(folders / "files")) == 1


FEWER: dict[str, dict[str, Any]] = {
    "niu-4": {"rankers": ("SVMmap", "FocusedSVM"), "beta": 0.5},
    "niu-5": {"rankers": ("RankSVM", "FocusedSVM")},
    "donmez-1": {"constructions": ("local-cost",)},
    "donmez-2": {"constructions": ("local-cost",)},
    "wu-fig3": {"n_estimators": 3},
}
"""Fewer trainings of what takes longest."""


@pytest.mark.parametrize(("number", "name"), list(enumerate(RECIPES)))
def test_every_recipe_runs_on_given_data(number: int, name: str, folders: Path) -> None:
    pytest.importorskip("torch")
    made = recipe(name)
    folder = folders / LAYOUTS[number % 3]
    said: list[str] = []
    scale = replace(made.tiny, n_jobs=1, **FEWER.get(name, {}))
    result = run(name, scale=scale, data=folder, read=_with_clicks, say=said.append)
    if made.reads == "nothing":
        assert f"{name} looks at no data: what is given is not used" in said
        return
    _is_of(result, made.reads, read_splits(folder), len(read_folds(folder)))
    assert all(np.isfinite(claim.estimate().mean) for claim in result.claims)
    # Nothing of it is that of artificial data.
    assert not {"docs", "noise"} & result.settings.keys()


def _is_of(result: Result, reads: str, data: Mapping[str, RankingData], folds: int) -> None:
    if reads == "judgments":
        assert result.settings["queries"] == data["test"].n_queries
    else:
        assert result.settings["features"] == FEATURES
    if reads == "folds":
        assert result.settings["folds"] == folds


def test_simulated_people_judge_the_documents_of_given_data(folders: Path) -> None:
    test = read_splits(folders / "files")["test"]
    (_, grades) = run("niu-1", scale="tiny", data=folders / "files").tables[0].records()
    sizes = [len(labels) for labels in np.split(test.label(), test.indptr[1:-1]) if labels.min() < labels.max()]
    assert grades["judgments per query"] == pytest.approx(np.mean(sizes))
    same = test.with_label(test.label_names[0], np.ones(test.n_docs))
    with pytest.raises(DataError, match="no query whose documents differ in grade"):
        run("niu-2", scale="tiny", data={"test": same})


def test_clicks_are_asked_for_before_anything_is_trained(folders: Path) -> None:
    message = r"svore-1 needs the label source 'clicks', which the train data lacks: .* --label clicks='\*.clicks.txt'"
    with pytest.raises(DataError, match=message):
        run("svore-1", scale="tiny", data=folders / "files")


def test_clicks_on_the_command_line(folders: Path) -> None:
    options = ["--scale", "tiny", "--threads", 1, "--format", "json", "-q", "--data", folders / "folds"]
    found = command("experiment", "run", "svore-1", *options, "--label", "clicks=*.clicks.txt")
    assert found.exit_code == 0, found.stderr
    here = run("svore-1", scale=replace(recipe("svore-1").tiny, n_jobs=1), data=folders / "folds", read=_with_clicks)
    assert json.loads(found.stdout)["claims"] == json.loads(json.dumps(here.to_dict()["claims"]))
    for given, message in (
        ("clicks", "--label is 'clicks', expected NAME=FILE"),
        ("clicks=clicks.txt", "the files of label 'clicks' are 'clicks.txt', expected a * in the place of"),
        ("clicks=*.txt.gz", "train.txt.gz: is not there; it should hold the label 'clicks' of "),
    ):
        assert message in error_of(command("experiment", "run", "svore-1", *options, "--label", given))
    without = command("experiment", "run", "svore-1", "--scale", "tiny", "--label", "clicks=*.clicks.txt")
    assert error_of(without) == "--label goes with --data"


def test_too_few_queries_for_other_domains_are_an_error(folders: Path) -> None:
    data = {name: part.take_queries([0, 1, 2, 3]) for name, part in read_splits(folders / "files").items()}
    with pytest.raises(DataError, match="the training data has 4 queries, expected 9 or more: 2 other domains"):
        run("wu-4", scale="tiny", data=data)


def test_seeds_on_the_same_queries_do_not_count_as_more_queries() -> None:
    rng = np.random.default_rng(0)
    of_query = rng.normal(0.1, 1.0, 400)
    both = [higher("NDCG", "a", "b", of_query + rng.normal(0.0, 0.1, 400), np.zeros(400)) for _ in range(5)]
    error = joined(both, same_queries=True).estimate().standard_error
    # All runs together know the queries no better than one does.
    assert error == pytest.approx(of_query.std(ddof=1) / sqrt(400), rel=0.03)
    assert joined(both).estimate().standard_error < error / 2

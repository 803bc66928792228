"""What every export format promises: files that its reader scores as gradrank does, or one error and no file."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from gradrank.data import RankingData
from gradrank.errors import ModelError
from gradrank.learners import LambdaMART
from gradrank.models.exchange.plan import Losses, Plan
from gradrank.models.exchange.registry import EXPORTS, IMPORTS, ExportFormat
from gradrank.models.exchange.splits import largest_at_most
from gradrank.models.feature import FeatureRanker
from gradrank.models.ranker import Ranker
from gradrank.models.registry import load_ranker
from gradrank.models.trees.ensemble import Tree, TreeEnsemble
from tests.support.commands import content_of, error_of, run
from tests.support.consumers import CONSUMERS
from tests.support.export_matrix import APPROXIMATE, IDENTICAL, NO, USES_LIBRARY, compared, kinds, parsed
from tests.support.rankers import example_rankers

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "export.md"
STATED = parsed(PAGE.read_text(encoding="utf-8"))
ROWS = 250
# Where a format has no room for the origin, or only for the beginning of the hash.
HASH_SHOWN = {"ltr-plugin": 0, "solr": 12, "solr-9.2": 12}


def test_every_format_has_a_reader_and_a_row_of_the_matrix() -> None:
    assert set(CONSUMERS) == set(EXPORTS)
    assert set(STATED) == {(kind, form) for kind in kinds() for form in EXPORTS}


def test_kinds_of_rankers_are_among_the_kinds_of_the_matrix() -> None:
    assert {ranker.kind for ranker in kinds().values()} == set(example_rankers())


@pytest.mark.parametrize("form", EXPORTS)
@pytest.mark.parametrize("kind", kinds())
def test_the_matrix_says_what_is_so(kind: str, form: str, tmp_path: Path) -> None:
    result = compared(kinds()[kind], form, tmp_path, ROWS)
    stated = STATED[kind, form]
    assert result.reversed_pairs == 0
    if stated in (NO, APPROXIMATE):
        assert result.said == stated
        return
    assert result.said == IDENTICAL
    limit = 0.0 if stated == IDENTICAL else float(stated.removeprefix("≤ "))
    if kind in USES_LIBRARY or form == "onnx-double":
        # Other machines add up, and round tanh and exp, in their own ways.
        limit = max(limit, 1e-14)
    elif CONSUMERS[form].single and limit:
        limit *= 2
    assert result.difference <= limit


@pytest.mark.parametrize("form", EXPORTS)
def test_what_cannot_be_held_is_one_sentence_and_no_file(form: str, tmp_path: Path) -> None:
    refused = 0
    for kind, ranker in kinds().items():
        path = tmp_path / "model"
        path.write_text("the old one")
        if STATED[kind, form] in (NO, APPROXIMATE):
            refused += 1
            with pytest.raises(ModelError, match=rf"^{form} [^\n]+$"):
                ranker.export(path, form)
            assert content_of(tmp_path) == {"model": b"the old one"}, kind
        else:
            ranker.export(path, form)
            assert path.read_bytes() != b"the old one"
        for file in tmp_path.iterdir():
            file.unlink()
    assert refused == 0 or form not in ("c", "python")


@pytest.mark.parametrize("form", EXPORTS)
def test_files_carry_their_origin_and_are_the_same_every_time(form: str, tmp_path: Path) -> None:
    ranker = kinds()["single feature" if form in ("ranklib", "solr", "solr-9.2") else "trees"]
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        ranker.export(tmp_path / name / "model", form, name="my ränker")
    first, second = content_of(tmp_path / "one"), content_of(tmp_path / "two")
    assert first == second
    shown = ranker.sha256()[: HASH_SHOWN.get(form, 64)]
    assert shown.encode() in first["model"]


@pytest.mark.parametrize("form", EXPORTS)
def test_the_command_writes_what_python_writes(form: str, tmp_path: Path) -> None:
    ranker = kinds()["single feature" if form in ("ranklib", "solr", "solr-9.2") else "trees"]
    ranker.save(tmp_path / "model.json")
    result = run("export", tmp_path / "model.json", "--to", form, "-o", tmp_path / "by_command", "--name", "x")
    assert result.exit_code == 0, result.output
    ranker.export(tmp_path / "by_python", form, name="x")
    # The hash is that of the file that save writes.
    assert (tmp_path / "by_command").read_bytes() == (tmp_path / "by_python").read_bytes()


def test_help_names_every_format() -> None:
    shown = " ".join(run("export", "--help").output.replace("│", " ").split())
    for name in EXPORTS:
        assert f"{name} (" in shown
    message = error_of(run("export", Path(__file__), "--to", "x", "-o", "y"))
    assert "is not a model" in message


def test_every_import_format_is_recognized_by_its_content(tmp_path: Path) -> None:
    X = np.zeros((1, 6), dtype=np.float32)
    for name, form in IMPORTS.items():
        path = tmp_path / f"model{EXPORTS[name].suffix}"
        kinds()["trees"].export(path, name)
        assert form.recognized(path.read_bytes()[:64])
        assert np.isfinite(load_ranker(path).predict(X)).all()
        assert not form.recognized(b'{"format": "gradrank-model"')
        assert not form.recognized(b"0.25\n1.5\n")
        assert not form.recognized(b"## scores of bm25\n0.25\n")


def test_a_new_format_is_a_file_and_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The registry is all that the method, the command and its errors know of formats."""

    def write(plan: Plan, losses: Losses) -> dict[str, bytes]:
        if len(plan.feature_names) > 6:
            losses.lose("width", "feature 'x' is one too many", "it is left out")
        return {"": " ".join(plan.feature_names).encode(), ".more": plan.origin.name.encode()}

    module = ModuleType("gradrank.models.exchange.toy")
    module.write = write  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(EXPORTS, "toy", ExportFormat("a toy", ".toy", "toy:write"))
    kinds()["trees"].save(tmp_path / "model.json")
    result = run("export", tmp_path / "model.json", "--to", "toy", "-o", tmp_path / "out.toy")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out.toy").read_text().startswith("bm25 page rank")
    assert (tmp_path / "out.more").read_text() == "model.json"
    wide = FeatureRanker("f7", feature_names=[f"f{k}" for k in range(8)])
    with pytest.raises(ModelError, match="toy cannot hold the model: feature 'x' is one too many"):
        wide.export(tmp_path / "wide.toy", "toy")
    assert not (tmp_path / "wide.toy").exists()


def test_rankers_that_only_others_can_score_say_so(tmp_path: Path) -> None:
    from sklearn.linear_model import LinearRegression

    from gradrank.models.foreign import ForeignRanker

    foreign: Ranker = ForeignRanker(LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0]))
    with pytest.raises(ModelError, match="LinearRegression of sklearn cannot be exported"):
        foreign.export(tmp_path / "m", "c")


def test_approximations_are_warned_of_one_by_one(tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        kinds()["trees, missing values"].export(tmp_path / "m", "solr", approximate=True)
    assert 1 <= len(said) <= 2
    assert all(str(item.message).startswith("solr: tree ") for item in said)


def _symmetric(X: np.ndarray, scale: float = 1.0) -> Ranker:
    """Symmetric trees, which split what is missing from all that is there."""
    grades = np.clip(np.round(np.nan_to_num(X[:, 0]) + 2.0 * np.isnan(X[:, 1])) + 1.0, 0, 4)
    data = RankingData.from_arrays(
        X * np.array([scale, 1.0, 1.0]), grades, group=np.full(30, 12), feature_names=["a", "b", "c"]
    )
    return LambdaMART(n_estimators=4, grow_policy="symmetric", n_jobs=1).fit(data).ranker_


@pytest.mark.parametrize("form", EXPORTS)
def test_what_is_missing_is_told_from_what_is_there(form: str, tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(360, 3)).astype(np.float32)
    X[::3, 1] = np.nan
    ranker = _symmetric(X)
    assert min(tree.threshold.min() for tree in ranker.trees) < -1e300  # type: ignore[attr-defined]
    path = tmp_path / f"model{EXPORTS[form].suffix}"
    if CONSUMERS[form].missing_is_zero:
        with pytest.raises(ModelError, match="sends a missing 'b' left"):
            ranker.export(path, form)
        return
    ranker.export(path, form)
    rows = np.concatenate([X, np.full((1, 3), np.nan, np.float32), [[-1e38, -1e38, 1e38]]]).astype(np.float32)
    found = CONSUMERS[form].score(path, rows, ["a", "b", "c"])
    np.testing.assert_allclose(found, ranker.predict(rows), rtol=0, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-44, 1e-310])
def test_lightgbm_does_not_see_tiny_features_and_that_is_said(scale: float, tmp_path: Path) -> None:
    ranker = _symmetric(np.random.default_rng(0).normal(size=(360, 3)), scale)
    with pytest.raises(ModelError, match="LightGBM reads values up to 1e-35 as 0"):
        ranker.export(tmp_path / "model.txt", "lightgbm")
    assert not list(tmp_path.iterdir())
    # What XGBoost has for a split at 0.
    bound = largest_at_most(np.array([-1e-45], dtype=np.float32))
    at_zero = TreeEnsemble([Tree.numerical(split_feature=[0], threshold=bound, left=[-1], right=[-2],
                                           leaf_value=[1.0, 2.0])], ["a"])  # fmt: skip
    at_zero.export(tmp_path / "model.txt", "lightgbm")
    rows = np.array([[-1.0], [0.0], [1.0]], dtype=np.float32)
    assert CONSUMERS["lightgbm"].score(tmp_path / "model.txt", rows, ["a"]).tolist() == [1.0, 2.0, 2.0]

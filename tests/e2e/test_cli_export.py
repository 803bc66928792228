"""Exporting and importing on the command line, and the guide's way from training to a bare machine."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gradrank.models.linear import LinearRanker
from gradrank.models.registry import load_ranker
from gradrank.models.trees.ensemble import Tree, TreeEnsemble
from tests.support.commands import content_of, error_of, run
from tests.support.consumers import COMPILER, CONSUMERS
from tests.support.model_zoo import model_files

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "export.md"
_BLOCK = re.compile(r"^<!-- run -->\n```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
def test_the_guide_from_training_to_a_bare_machine(tmp_path: Path) -> None:
    blocks = _BLOCK.findall(GUIDE.read_text(encoding="utf-8"))
    assert [language for language, _ in blocks] == ["sh", "python"]
    scripts = Path(sys.executable).parent
    environment = {
        **os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "OMP_WAIT_POLICY": "passive"
    }  # fmt: skip
    for language, text in blocks:
        call = ["sh", "-ec", text] if language == "sh" else [sys.executable, "-c", text]
        result = subprocess.run(
            call, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300
        )
        assert result.returncode == 0, f"{text}\n{result.stdout}\n{result.stderr}"
    ours = np.loadtxt(tmp_path / "gradrank.scores")
    assert len(np.unique(ours)) > 100
    for name in ("python", "c"):
        assert np.argsort(-np.loadtxt(tmp_path / f"{name}.scores"), kind="stable").tolist() == (
            np.argsort(-ours, kind="stable").tolist()
        )


def stump(default_left: bool) -> TreeEnsemble:
    tree = Tree.numerical(
        split_feature=[0], threshold=[0.5], left=[-1], right=[-2], leaf_value=[1.0, 2.0], default_left=default_left
    )
    return TreeEnsemble([tree], ["bm25"])


def test_losses_are_errors_or_notes(tmp_path: Path) -> None:
    model, out = tmp_path / "model.json", tmp_path / "model.xml"
    stump(default_left=False).save(model)
    before = content_of(tmp_path)
    message = error_of(run("export", model, "--to", "ranklib", "-o", out))
    assert message == (
        "ranklib cannot hold the model: tree 0 sends a missing 'bm25' right, ranklib reads it as 0 and sends it left; "
        "with --approximate missing values count as 0"
    )
    assert content_of(tmp_path) == before
    result = run("export", model, "--to", "ranklib", "-o", out, "--approximate")
    assert result.exit_code == 0
    assert "gradrank: note: ranklib: tree 0 sends a missing 'bm25' right" in result.stderr
    assert run("export", model, "--to", "ranklib", "-o", out, "--approximate", "-q").stderr == ""


def test_the_origin_is_the_models_file(tmp_path: Path) -> None:
    model = tmp_path / "Ranker 7.txt"
    model.write_bytes(model_files()["lightgbm"])
    assert run("export", model, "--to", "python", "-o", tmp_path / "m.py").exit_code == 0
    module: dict[str, object] = {}
    exec((tmp_path / "m.py").read_text(), module)
    assert module["ORIGIN"] == "Ranker 7.txt"
    assert module["SHA256"] == hashlib.sha256(model.read_bytes()).hexdigest()


def test_imported_models_are_models_of_gradrank(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("bm25\npage rank\nä\nage\nclicks\ncategory\n", encoding="utf-8")
    for name in ("ranklib", "onnx", "catboost SymmetricTree", "xgboost ubj"):
        (tmp_path / "theirs").write_bytes(model_files()[name])
        result = run(
            "import", tmp_path / "theirs", "--feature-names", tmp_path / "names.txt", "-o", tmp_path / "ours.json"
        )
        assert result.exit_code == 0, result.output
        assert json.loads((tmp_path / "ours.json").read_text(encoding="utf-8"))["format"] == "gradrank-model"
        theirs, ours = load_ranker(tmp_path / "theirs"), load_ranker(tmp_path / "ours.json")
        assert ours.feature_names[:3] == ("bm25", "page rank", "ä")
        assert ours.training["imported_from"] == "theirs"
        X = np.random.default_rng(0).normal(size=(50, 6))
        assert ours.predict(X).tobytes() == theirs.predict(X).tobytes()
        shown = run("info", tmp_path / "theirs")
        assert shown.exit_code == 0
        assert "trees" in shown.stdout
    (tmp_path / "names.txt").write_text("a\n\nb\n")
    message = error_of(
        run("import", tmp_path / "theirs", "--feature-names", tmp_path / "names.txt", "-o", tmp_path / "new.json")
    )
    assert message.endswith("names.txt:2: is empty, expected a name")


def test_the_python_file_says_what_is_wrong_with_a_document(tmp_path: Path) -> None:
    stump(default_left=True).export(tmp_path / "m.py", "python")
    module: dict[str, object] = {}
    exec((tmp_path / "m.py").read_text(), module)
    score, rank = module["score"], module["rank"]
    assert callable(score)
    assert callable(rank)
    assert [score({"bm25": 0.4}), score([0.6]), score([None]), score({"bm25": float("nan"), "more": 1})] == [1, 2, 1, 1]
    assert rank([[0.1], [0.9], [0.2], [0.8]]) == [1, 3, 0, 2]
    with pytest.raises(ValueError, match="lacks the feature 'bm25'"):
        score({"BM25": 1.0})
    with pytest.raises(ValueError, match="has 2 features, expected 1"):
        score([1.0, 2.0])


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
def test_the_c_file_takes_strange_names_and_refuses_strange_input(tmp_path: Path) -> None:
    model = stump(default_left=True).renamed(['"; */ ??/ \\ é\n'])
    model.export(tmp_path / "m.c", "c", name="*/ int main(")
    scores = CONSUMERS["c"].score(tmp_path / "m.c", np.array([[0.4], [0.6], [np.nan]]), [])
    assert scores.tolist() == [1.0, 2.0, 1.0]
    result = subprocess.run([tmp_path / "m.program"], input="0.5 x 1", capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (2, "expected 1 numbers per document\n")


def test_facts_of_a_strangers_model_may_be_anything(tmp_path: Path) -> None:
    odd = {"curves": [1], "data": 5, "best": "x", "grown": None, "notes": 3, "effective_pairs": {"a": 1, "b": []}}
    odd |= {"versions": [], "parameters": "x", "seconds": "y", "held_out": 1, "by_data": 7, "sets": 0, "command": [1]}
    LinearRanker([1.0], feature_names=["a"], training=odd).save(tmp_path / "m.json")
    for form in ("table", "md", "json"):
        result = run("info", tmp_path / "m.json", "--format", form)
        assert result.exit_code == 0
        assert "linear" in result.stdout


@pytest.mark.parametrize(
    ("command", "over"),
    [
        (("export", "model.json", "--to", "c", "-o", "model.json"), "model.json"),
        (("import", "model.json", "-o", "./link.json"), "model.json"),
        (("info", "model.json", "--format", "md", "-o", "model.json"), "model.json"),
        (("profile", "data.txt", "-o", "data.txt"), "data.txt"),
        (("score", "model.json", "data.txt", "-o", "data.txt"), "data.txt"),
        (("score", "model.json", "data.txt", "-o", "model.json"), "model.json"),
        (("check", "model.json", "data.txt", "--html", "data.txt"), "data.txt"),
    ],
)
def test_no_command_writes_over_what_it_reads(
    command: tuple[str, ...], over: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    stump(default_left=False).save(tmp_path / "model.json")
    (tmp_path / "link.json").symlink_to("model.json")
    (tmp_path / "data.txt").write_text("1 qid:1 1:0.25\n0 qid:1 1:0.75\n")
    before = (tmp_path / over).read_bytes()
    assert "is read by this command and cannot be its output as well" in error_of(run(*command))
    assert (tmp_path / over).read_bytes() == before

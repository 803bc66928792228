"""``gradrank warm-up``: what it keeps, and what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import error_of, make_files, process, run

# In a process that has warmed up, a kernel that is still to be loaded or compiled is one that it has left out.
AFTER = """
import sys
from gradrank.cli.main import app
from gradrank.runtime.kernel_cache import cache_use

def call(words):
    app([*words.split(), "--quiet"], prog_name="gradrank", standalone_mode=False)

with cache_use() as warm:
    call("warm-up")
with cache_use() as after:
    call("train --train train.txt --valid vali.txt --n-estimators 3 -o model.json")
    call("train --algorithm mart --train train.txt --valid vali.txt --n-estimators 3 -o mart.json")
    call("score model.json test.txt -o model.scores")
    call("score mart.json test.txt -o mart.scores")
    call("evaluate test.txt --scores model.scores -m NDCG@5 -m MAP")
    call("compare test.txt --scores model.scores --scores mart.scores -m NDCG@10 -m MRR")
print("\\nkernels", warm.kept + warm.loaded, after.kept + after.loaded)
"""


def test_the_usual_commands_need_no_kernel_that_was_not_warmed_up(tmp_path: Path) -> None:
    make_files(tmp_path)
    call = [sys.executable, "-c", AFTER]
    result = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stderr
    word, warm, after = result.stdout.splitlines()[-1].split()
    assert (word, after) == ("kernels", "0")
    assert int(warm) > 5


def test_it_tells_how_far_it_is_and_where_kernels_are(tmp_path: Path) -> None:
    result = process("warm-up", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "1 of 7: train" in result.stderr
    assert "7 of 7: compare" in result.stderr
    folder = Path(result.stdout.split(" in ")[1].split(";")[0].strip())
    assert list(folder.rglob("*lambda_kernel*.nbi"))
    assert list(tmp_path.iterdir()) == []


def test_it_can_be_silent() -> None:
    result = process("warm-up", "-q")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "cache"))
    said = error_of(run("warm-up"))
    assert str(tmp_path / "file" / "cache") in said
    assert "cannot be written" in said


def test_kernels_that_cannot_be_kept_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gradrank.cli.commands import warm_up
    from gradrank.runtime import kernel_cache

    def refuse(group: object, call: list[str]) -> None:
        kernel_cache._tell_refused(OSError(28, "No space left on device", "cache/kernel.nbc"))

    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(warm_up, "_run", refuse)
    said = error_of(run("warm-up", "-q"))
    assert said.startswith("cache/kernel.nbc: cannot be written: No space left on device")

"""``gradrank warm-up``: kernels compiled before they are needed."""

from __future__ import annotations

import io
import os
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, print_text
from gradrank.errors import DataError, GradrankError

if TYPE_CHECKING:
    from gradrank.runtime.kernel_cache import CacheUse

_MEASURES = ("NDCG@10", "NDCG", "MAP", "MRR", "ERR@10", "P@10", "Recall@10")
_CALLS: tuple[tuple[str, ...], ...] = (
    ("train", "--train", "train.txt", "--valid", "vali.txt", "--n-estimators", "2", "-o", "model.json"),
    ("train", "--train", "train.txt", "--n-estimators", "2", "-o", "alone.json"),
    ("train", "--algorithm", "mart", "--train", "train.txt", "--valid", "vali.txt", "--n-estimators", "2",
     "-o", "mart.json"),
    ("score", "model.json", "test.txt", "-o", "model.scores"),
    ("score", "mart.json", "test.txt", "-o", "mart.scores"),
    ("evaluate", "test.txt", "--scores", "model.scores", *(word for name in _MEASURES for word in ("-m", name))),
    ("compare", "test.txt", "--scores", "model.scores", "--scores", "mart.scores", "-m", "NDCG@10", "-m", "MAP"),
)  # fmt: skip
_SUFFIXES = (".txt", ".json", ".scores")


def warm_up(context: typer.Context, quiet: options.Quiet = False) -> None:
    """Compile the kernels of train, score, evaluate and compare and keep them, so that nobody waits for it later.

    For images of containers: run it when the image is built, as the user who will run the commands. Kernels are kept
    in the folder that NUMBA_CACHE_DIR names, else beside the package, else in the user's cache.
    """
    notes = Notes(quiet)
    asked = os.environ.get("NUMBA_CACHE_DIR")
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        raise DataError("NUMBA_DISABLE_JIT is set: without a compiler there is nothing to keep")
    if asked:
        _check_folder(Path(asked))
    from gradrank.runtime.kernel_cache import cache_use

    group: Any = context.find_root().command
    with cache_use() as use, _workplace() as folder, notes.working("compiling kernels"):
        for number, call in enumerate(_CALLS, start=1):
            notes.say(f"{number} of {len(_CALLS)}: {call[0]}")
            _run(group, [str(folder / word) if Path(word).suffix in _SUFFIXES else word for word in call])
            if use.refused is not None:
                raise GradrankError(_refusal(use.refused))
    if not quiet:
        print_text(_summary(use) + "\n")


def _check_folder(folder: Path) -> None:
    """Numba would go elsewhere without a word."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        said = f"cannot be written: {error.strerror}; NUMBA_CACHE_DIR names it as the folder for compiled kernels"
        raise DataError(said, path=folder) from None


def _refusal(error: OSError) -> str:
    where = "the folder for compiled kernels" if error.filename is None else f"{error.filename}:"
    return f"{where} cannot be written: {error.strerror or error}; NUMBA_CACHE_DIR names another folder for them"


@contextmanager
def _workplace() -> Iterator[Path]:
    """A folder with small data, gone in the end.

    Written here and not by make-data, whose kernels nobody needs who brings data of his own.
    """
    draw = random.Random(0)
    with tempfile.TemporaryDirectory(prefix="gradrank-") as name:
        for part in ("train", "vali", "test"):
            lines = []
            for query in range(40):
                for document in range(12):
                    values = [draw.random() for _ in range(4)]
                    features = " ".join(f"{place}:{value:.8f}" for place, value in enumerate(values, start=1))
                    lines.append(f"{int(3 * values[0])} qid:{query} {features} # docid = {document}\n")
            Path(name, f"{part}.txt").write_text("".join(lines), encoding="utf-8")
        yield Path(name)


def _run(group: Any, call: list[str]) -> None:
    errors = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(errors):
        code = group.main([*call, "--quiet"], prog_name="gradrank", standalone_mode=False)
    if code:
        said = errors.getvalue().strip().removeprefix("gradrank: error: ")
        raise GradrankError(f"warming up {call[0]} failed: {said}")


def _summary(use: CacheUse) -> str:
    if use.folder is None:
        return "this version of Numba does not tell what it keeps, and where"
    there = f"; {use.loaded} were there already" if use.loaded and use.kept else ""
    if not use.kept:
        return f"all kernels were there already, in {use.folder}"
    return f"{use.kept} kernels compiled and kept in {use.folder}{there}"

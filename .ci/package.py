"""Build sdist and wheel, and try the wheel in clean environments: python .ci/package.py DIST [EXTRA …].

The wheel is made from the sdist. The base installation runs the usual commands on small data, and mypy checks somebody
else's program against its types; each extra alone imports the rooms that need it. Every extra of pyproject.toml that
users install must be told here what it is for.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
# Extras for developers, and those that only gather others.
NOT_TRIED = frozenset({"all", "peers", "docs", "test", "dev"})
# What each extra makes possible.
ROOMS = {
    "parquet": ("gradrank.data.formats.parquet", "pyarrow.parquet"),
    "frames": ("gradrank.data.frames", "pandas", "polars"),
    "report": ("gradrank.report.page", "gradrank.report.figures", "jinja2", "matplotlib"),
    "nets": ("gradrank.learners.nets.torch_nets", "safetensors.torch", "torch"),
    "labeling": ("gradrank.labeling.web.app", "nh3", "uvicorn"),
    "cluster": ("gradrank.cluster.dask", "dask.dataframe", "distributed"),
    "spark": ("gradrank.cluster.spark", "pyspark"),
    "onnx": ("gradrank.models.exchange.onnx_write", "onnx"),
    "serve": ("gradrank.serve.app", "orjson", "prometheus_client", "uvicorn"),
    "tune": ("gradrank.selection.tune", "optuna"),
}
TRIAL = (
    "make-data data --queries 30 --docs 8 --features 5 --seed 1 -q",
    "train --train data/train.txt --valid data/vali.txt --n-estimators 5 -o model.json -q",
    "score model.json data/test.txt -o scores.txt -q",
    "evaluate data/test.txt --scores scores.txt -m NDCG@10 -m MAP",
)


def project() -> dict[str, Any]:
    """What pyproject.toml tells of the project."""
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


def extras() -> list[str]:
    """The extras that users install."""
    return [name for name in project()["optional-dependencies"] if name not in NOT_TRIED]


def build(folder: Path) -> Path:
    """Build both into a folder; gives the wheel."""
    for old in folder.glob("gradrank-*"):
        old.unlink()
    run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)], ROOT, quiet=True)
    (wheel,) = folder.glob("gradrank-*.whl")
    return wheel


def install(wheel: Path, extra: str, folder: Path) -> Path:
    """A clean environment with the wheel and one extra; gives its programs' folder."""
    venv.create(folder, with_pip=True)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    add(programs, f"{wheel}[{extra}]" if extra else str(wheel))
    call = [str(programs / "gradrank"), "--version"]
    told = subprocess.run(call, cwd=folder, env=own_environment(), check=True, capture_output=True, text=True).stdout
    if told != f"gradrank {project()['version']}\n":
        raise SystemExit(f"gradrank --version says {told!r}, pyproject.toml {project()['version']}")
    return programs


def add(programs: Path, what: str) -> None:
    """Install something into an environment."""
    pip = [str(programs / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # torch of an open range brings gigabytes for graphics cards.
    run([*pip, "-c", str(ROOT / "constraints.txt"), what], programs)


def check_types(programs: Path, folder: Path) -> None:
    """Check a program that uses the package, far from the package's own settings."""
    add(programs, "mypy")
    shutil.copy(ROOT / ".ci" / "consumer.py", folder)
    run([str(programs / "python"), "-m", "mypy", "--strict", "consumer.py"], folder)


def own_environment() -> dict[str, str]:
    """This environment without what would lead to the source."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "NUMBA_CACHE_DIR")}


def run(call: list[str], folder: Path, quiet: bool = False) -> None:
    """Run in a folder where the source is not found; what fails ends everything."""
    stdout = subprocess.DEVNULL if quiet else None
    subprocess.run(call, cwd=folder, env=own_environment(), check=True, stdout=stdout)


def main(target: str, *chosen: str) -> None:
    """Build, then try the base installation and the extras; all unless some are chosen."""
    folder = Path(target).resolve()
    wheel = build(folder)
    with tempfile.TemporaryDirectory(prefix="gradrank-") as name:
        base = install(wheel, "", Path(name, "base"))
        for words in TRIAL:
            run([str(base / "gradrank"), *words.split()], Path(name))
        check_types(base, Path(name))
    for extra in chosen or extras():
        with tempfile.TemporaryDirectory(prefix="gradrank-") as name:
            programs = install(wheel, extra, Path(name, "extra"))
            run([str(programs / "python"), "-c", f"import {', '.join(ROOMS[extra])}"], Path(name))
        sys.stdout.write(f"{wheel.name}[{extra}]: {', '.join(ROOMS[extra])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])

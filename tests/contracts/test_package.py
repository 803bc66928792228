"""What users get: the files of sdist and wheel, types, licences; and the scripts of releases."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.support.scripts import script

ROOT = Path(__file__).parents[2]
DATA = (".html", ".css", ".js", ".sql", ".jinja", ".svg", ".typed")
BUILD = """
import sys
from setuptools import build_meta
target = sys.argv.pop()  # setup takes what is left of the words for its own
build_meta.build_sdist(target)
build_meta.build_wheel(target)
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Names of the files in sdist and wheel, relative to the project; built from a copy, which building litters."""
    pytest.importorskip("setuptools", minversion="77")
    folder = tmp_path_factory.mktemp("package")
    ignored = shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc")
    for name in ("gradrank", "tests", "docs"):
        shutil.copytree(ROOT / name, folder / "source" / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "source")
    call = [sys.executable, "-c", BUILD, str(folder)]
    done = subprocess.run(call, cwd=folder / "source", capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    with tarfile.open(sdist) as archive:
        in_sdist = {item.name.partition("/")[2] for item in archive if item.isfile()}
    with zipfile.ZipFile(wheel) as zipped:
        in_wheel = set(zipped.namelist())
    return {"sdist": in_sdist, "wheel": in_wheel}


@pytest.mark.parametrize("kind", ["sdist", "wheel"])
def test_packages_hold_all_of_the_package_and_no_tests(kind: str, packages: dict[str, set[str]]) -> None:
    files = packages[kind]
    package = ROOT / "gradrank"
    wanted = {
        str(file.relative_to(ROOT))
        for file in package.rglob("*")
        if file.is_file() and (file.suffix == ".py" or file.suffix in DATA)
    }
    assert {"gradrank/py.typed", "gradrank/labeling/project/schema.sql"} < wanted
    assert any("/templates/" in name for name in wanted)
    assert any("/static/" in name for name in wanted)
    assert wanted - files == set()
    assert [name for name in files if name.startswith(("tests/", "docs/"))] == []
    assert [name for name in files if name.endswith("LICENSE")]


def test_every_file_of_the_package_has_a_known_kind() -> None:
    kinds = {
        file.suffix for file in (ROOT / "gradrank").rglob("*") if file.is_file() and "__pycache__" not in file.parts
    }
    assert kinds - {".py", ".nbi", ".nbc", *DATA} == set()


# ---------------------------------------------------------------------- types
RIGHT = """
from gradrank import LambdaMART, RankingData, compare, evaluate, make_splits, read_data


def main(path: str) -> float:
    data: RankingData = read_data(path)
    splits = make_splits(10, n_docs=5, n_features=3, random_state=1)
    learner = LambdaMART("NDCG@10", n_estimators=10, learning_rate=0.1).fit(splits["train"], valid=splits["vali"])
    table: str = compare(data, {"a": learner, "b": "model.json"}, ["NDCG@10"]).table().to_markdown()
    return evaluate(data, learner, "NDCG@10").means()["a"]["NDCG@10"] + len(table)
"""
WRONG = """
from gradrank import LambdaMART, read_data

documents: str = read_data("train.txt").n_docs
learner = LambdaMART("NDCG@10", n_estimators="many")
"""


def test_programs_of_others_are_checked_against_our_types(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="a tool of developers, which tests of oldest versions do without")
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(WRONG)
    # With the project's own settings, what the check of its types has found out is not found out again.
    call = [sys.executable, "-m", "mypy", "--strict", str(tmp_path / "right.py"), str(tmp_path / "wrong.py")]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert done.returncode == 1, done.stderr
    assert [re.findall(r"(\w+\.py):(\d+)", line) for line in errors] == [[("wrong.py", "4")], [("wrong.py", "5")]]
    assert '"int"' in errors[0]
    assert 'expected "int | None"' in errors[1]


# ---------------------------------------------------------------------- licences
class _Package(Distribution):
    """A package that is not installed."""

    def __init__(self, headers: list[tuple[str, str]]) -> None:
        self._headers = Message()
        for name, value in headers:
            self._headers[name] = value

    @property
    def metadata(self) -> Any:
        return self._headers

    @property
    def requires(self) -> list[str]:
        return self._headers.get_all("Requires-Dist") or []

    def read_text(self, filename: str) -> str | None:
        return None

    def locate_file(self, path: Any) -> Any:
        raise NotImplementedError


INSTALLED = {
    "gradrank": [
        ("Requires-Dist", "base"),
        ("Requires-Dist", "Some_Extra[fast]; extra == 'x'"),
        ("Requires-Dist", "gradrank[x]; extra == 'all'"),
        ("Requires-Dist", "elsewhere; sys_platform == 'nowhere'"),
    ],
    "base": [("License-Expression", "MIT"), ("Requires-Dist", "deep")],
    "deep": [("Classifier", "License :: OSI Approved :: BSD License"), ("License", "BSD")],
    "some-extra": [("License", "Apache 2\nand more"), ("Requires-Dist", "quick; extra == 'fast'")],
    "quick": [("License", "x" * 100)],
}


def find(name: str) -> Distribution:
    """One of the packages above."""
    if name not in INSTALLED:
        raise PackageNotFoundError(name)
    return _Package(INSTALLED[name])


def test_licences_come_from_the_packages() -> None:
    notices = script("docs/make_notices.py")
    assert notices.runtime_extras(find) == ["x"]
    assert notices.page(["x"], find).removeprefix(notices.HEAD).splitlines() == [
        "| base |  | MIT |",
        "| deep |  | BSD License |",
        "| quick | `x` | see the package |",
        "| some-extra | `x` | Apache 2 |",
    ]


def test_the_page_of_licences_names_every_dependency() -> None:
    notices = script("docs/make_notices.py")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    (gathered,) = map(Requirement, extras["all"])
    lines = [*project["dependencies"], *(line for name in gathered.extras for line in extras[name])]
    wanted = {notices.canonical(Requirement(line).name) for line in lines} - {"gradrank"}
    page = notices.TARGET.read_text(encoding="utf-8")
    assert page.startswith(notices.HEAD)
    assert wanted - set(re.findall(r"^\| ([a-z0-9-]+) \|", page, re.MULTILINE)) == set()


# ---------------------------------------------------------------------- scripts of releases
def test_every_extra_is_tried_with_rooms_that_exist() -> None:
    package = script(".ci/package.py")
    assert list(package.ROOMS) == package.extras()
    for rooms in package.ROOMS.values():
        own = [name for name in rooms if name.startswith("gradrank.")]
        assert own
        for name in own:
            assert (ROOT / (name.replace(".", "/") + ".py")).exists(), name


CLEAN = {"name": "a", "version": "1", "vulns": []}
FAULTY = {"name": "b", "version": "2", "vulns": [{"id": "CVE-1", "fix_versions": ["3"]}]}
UNKNOWN = {"name": "c", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("packages", "code", "said"),
    [
        ([CLEAN], 0, "1 packages, 0 known"),
        ([CLEAN, FAULTY], 1, "b 2: CVE-1, mended in 3"),
        ([CLEAN, UNKNOWN], 0, "nothing is known of c"),
        ([UNKNOWN], 3, "cannot be reached"),
    ],
)
def test_an_audit_without_answers_is_no_success(packages: list[dict[str, Any]], code: int, said: str) -> None:
    found, text = script(".ci/audit.py").verdict({"dependencies": packages})
    assert found == code
    assert said in text

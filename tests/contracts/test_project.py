"""What the project promises about itself: its pages run, its names are explained, its version is one."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest
import typer
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

import gradrank
from gradrank.cli.main import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMANDS = sorted(typer.main.get_command(app).commands)
_BLOCK = re.compile(r"^<!-- run -->\n```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_tour_runs(tmp_path: Path) -> None:
    blocks = _BLOCK.findall((ROOT / "docs" / "guides" / "tour.md").read_text())
    assert {language for language, _ in blocks} == {"sh", "python"}
    scripts = Path(sys.executable).parent
    # Waiting threads of LightGBM sleep instead of spinning: other tests run beside this one.
    environment = {
        **os.environ,
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "OMP_WAIT_POLICY": "passive",
    }
    for language, text in blocks:
        call = ["sh", "-ec", text] if language == "sh" else [sys.executable, "-c", text]
        result = subprocess.run(
            call, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300
        )
        assert result.returncode == 0, f"{text}\n{result.stdout}\n{result.stderr}"
    assert (tmp_path / "model.json").exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_imports_of_the_pages_exist(page: Path) -> None:
    for text in _PYTHON.findall(page.read_text()):
        for node in ast.parse(text).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names: dict[str, object] = {}
                exec(compile(ast.Module([node], []), str(page), "exec"), names)
                wanted = {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
                assert wanted <= set(names), ast.unparse(node)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_the_pages_exist(page: Path) -> None:
    group = typer.main.get_command(app)
    for text in re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
        for line in text.replace("\\\n", " ").splitlines():
            words = line.partition(" #")[0].split()
            if words[:1] != ["gradrank"]:
                continue
            command = group.commands[words[1]]
            while hasattr(command, "commands"):
                words = words[1:]
                command = command.commands[words[1]]
            known = {spelling for item in command.params for spelling in (*item.opts, *item.secondary_opts)}
            used = {word for word in words[2:] if re.fullmatch(r"--?[a-z][a-z-]*", word)}
            assert used <= known, line


@pytest.mark.parametrize(
    "page", [ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *PAGES], ids=lambda page: str(page.relative_to(ROOT))
)
def test_files_that_the_pages_link_to_exist(page: Path) -> None:
    # Pages of the site that are made when it is built; the strict build checks links to them.
    made = ("reference/",)
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        target = (page.parent / link).resolve()
        if not target.is_relative_to(ROOT / "docs") or not str(target.relative_to(ROOT / "docs")).startswith(made):
            assert target.exists(), link


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_explained(command: str) -> None:
    pages = "\n".join(page.read_text() for page in PAGES)
    assert re.search(rf"gradrank {command}\b", pages)


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == gradrank.__version__
    assert f"## [{gradrank.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def requirements() -> dict[str, SpecifierSet]:
    """What the project asks for, extras included, each once."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
    found: dict[str, SpecifierSet] = {}
    for requirement in map(Requirement, lines):
        if requirement.name != "gradrank":
            assert found.setdefault(requirement.name, requirement.specifier) == requirement.specifier
    return found


def pinned(name: str) -> dict[str, Version]:
    """Versions of a file of constraints."""
    lines = [line for line in (ROOT / name).read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9.-]+==[\w.]+", line) for line in lines)
    return {line.partition("==")[0]: Version(line.partition("==")[2]) for line in lines}


def test_constraints_hold_every_dependency() -> None:
    versions = pinned("constraints.txt")
    for name, allowed in requirements().items():
        assert versions[name.lower()] in allowed, name


def test_the_oldest_constraints_are_the_lower_bounds() -> None:
    versions = pinned("constraints-oldest.txt")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    developers = {Requirement(line).name for line in (*extras["docs"], *extras["dev"])}
    for name, allowed in requirements().items():
        lower = [Version(part.version) for part in allowed if part.operator == ">="]
        if name == "torch":  # tested in one version only
            assert versions[name] == pinned("constraints.txt")[name]
        elif name not in developers:
            assert [versions[name]] == lower, name


def test_what_users_install_is_bounded_above() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for name in ("all", "peers") for line in extras[name])]
    lines += [line for name in ("parquet", "frames", "report", "nets", "labeling") for line in extras[name]]
    for requirement in map(Requirement, lines):
        if requirement.name != "gradrank":
            assert {part.operator for part in requirement.specifier} == {">=", "<"}, requirement


def test_hosted_checks_call_targets_that_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = re.findall(
        r"run: make ([a-z -]+?)(?: [A-Z_]+=.*)?$", (ROOT / ".github/workflows/ci.yml").read_text(), re.MULTILINE
    )
    assert {"lint", "test", "test-oldest", "docs"} <= set(called) <= targets


def test_no_file_of_the_package_knows_a_machine() -> None:
    machine = re.compile(r"""["'\s(](?:/home/|/root/|/work/|/Users/|/tmp/|[A-Z]:\\)""")
    for file in sorted((ROOT / "gradrank").rglob("*")):
        if file.is_file() and file.suffix in {".py", ".html", ".css", ".js", ".jinja"}:
            assert not machine.search(file.read_text()), file


def slices_assigned(source: str) -> list[int]:
    """Lines of kernels that assign an array to a slice; a number costs nothing."""
    found = []
    for kernel in ast.walk(ast.parse(source)):
        calls = [call.func for call in getattr(kernel, "decorator_list", []) if isinstance(call, ast.Call)]
        if not {"njit", "template"} & {call.id for call in calls if isinstance(call, ast.Name)}:
            continue
        for node in ast.walk(kernel):
            if isinstance(node, ast.Assign | ast.AugAssign) and not isinstance(node.value, ast.Constant):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                places = chain.from_iterable(ast.walk(at.slice) for at in targets if isinstance(at, ast.Subscript))
                found += [node.lineno for part in places if isinstance(part, ast.Slice)]
    return found


def test_kernels_assign_number_by_number() -> None:
    """For the message that the shapes do not fit, Numba compiles all that writes text: some seconds of a first use."""
    assert slices_assigned("@njit()\ndef f(a, b):\n    a[0, :] = b[1:]\n    a[1:] = 0.0\n    a[0] = b[0]\n") == [3]
    files = (ROOT / "gradrank").rglob("*.py")
    found = {str(file.relative_to(ROOT)): slices_assigned(file.read_text(encoding="utf-8")) for file in files}
    assert {file: lines for file, lines in found.items() if lines} == {}

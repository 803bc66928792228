"""The public names of the package: listed, loaded when used, explained with an example."""

from __future__ import annotations

import ast
import dataclasses
import doctest
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import gradrank

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "guides").glob("*.md")),
    *sorted((ROOT / "docs" / "tutorials").glob("*.md")),
    ROOT / "examples" / "demo.py",
]
NAMES = [name for name in gradrank.__all__ if name != "__version__"]


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_explained_with_an_example(name: str) -> None:
    thing = getattr(gradrank, name)
    assert inspect.getdoc(thing)
    assert doctest.DocTestParser().get_examples(thing.__doc__)


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_explained(name: str) -> None:
    thing = getattr(gradrank, name)
    if dataclasses.is_dataclass(thing) or (isinstance(thing, type) and issubclass(thing, Exception)):
        return  # fields of values are explained where they are declared; nobody else makes our errors
    wanted = [parameter for parameter in inspect.signature(thing).parameters if parameter != "self"]
    section = (inspect.getdoc(thing) or "").partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    lines = [line for line in section.splitlines() if line and not line.startswith(" ")]
    explained = [word.strip().lstrip("*") for line in lines for word in line.split(" : ")[0].split(",")]
    assert [parameter for parameter in wanted if parameter not in explained] == []


def test_public_names_are_listed() -> None:
    assert set(gradrank.__all__) <= set(dir(gradrank))
    assert set(gradrank.__all__) == {"__version__", *gradrank._PUBLIC}


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(gradrank.__file__).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    assert len(imports) == len(block.body)
    static = {alias.asname: node.module for node in imports for alias in node.names if alias.name == alias.asname}
    assert static == gradrank._PUBLIC
    for name, module in gradrank._PUBLIC.items():
        assert getattr(import_module(module), name) is getattr(gradrank, name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_and_the_demo_need_nothing_but_public_names(page: Path) -> None:
    texts = (
        [page.read_text()] if page.suffix == ".py" else re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    )
    for text in texts:
        for node in ast.walk(ast.parse(text)):
            found = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            ours = {module for module in found if module.partition(".")[0] == "gradrank"}
            # The labeling tool and the experiments are houses of their own.
            assert ours <= {"gradrank", "gradrank.labeling", "gradrank.experiments"}, text


def test_the_package_is_a_command() -> None:
    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "gradrank", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert call("--version").stdout == f"gradrank {gradrank.__version__}\n"
    helped = call("--help")
    assert helped.returncode == 0
    assert "Usage: gradrank " in helped.stdout
    wrong = call("info", "no-such-file.txt")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == "gradrank: error: no-such-file.txt: there is no such file\n"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'lambda_mart'"):
        gradrank.lambda_mart  # noqa: B018


def test_importing_loads_nothing_heavy() -> None:
    script = "import sys, gradrank; print({'numpy', 'numba', 'scipy', 'lightgbm'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout == "set()\n"

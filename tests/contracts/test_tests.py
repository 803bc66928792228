"""What every test promises: it can fail."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
FILES = sorted(TESTS.rglob("test_*.py"))
_FAILING_CALLS = ("pytest.raises", "pytest.warns", "pytest.fail", "parametrize_with_checks")


def asserts(node: ast.AST, helpers: set[str]) -> bool:
    """Whether code states something: an assertion, an expected error, a call of a helper that does, others' checks."""
    for part in ast.walk(node):
        if isinstance(part, ast.Assert):
            return True
        if isinstance(part, ast.Call):
            name = ast.unparse(part.func)
            if name in _FAILING_CALLS or name in helpers or name.rpartition(".")[2].startswith("assert_"):
                return True
    return False


def helpers_of(tree: ast.Module) -> set[str]:
    """Functions of a file, or of the support that it imports, that state something."""
    found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and asserts(node, set())}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests.support"):
            path = TESTS.parent.joinpath(*(node.module or "").split(".")).with_suffix(".py")
            if path.exists():
                theirs = helpers_of(ast.parse(path.read_text(encoding="utf-8")))
                found |= {alias.asname or alias.name for alias in node.names if alias.name in theirs}
    return found


def faults(text: str) -> list[str]:
    """Tests that state nothing, and assertions whose claim stands where the message belongs."""
    tree = ast.parse(text)
    helpers = {name for name in helpers_of(tree) if not name.startswith("test_")}
    found = [
        f"line {node.lineno}: {node.name} asserts nothing"
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and not asserts(node, helpers)
    ]
    return found + [
        f"line {node.lineno}: the message of an assertion is a claim: assert {ast.unparse(node.test)}, …"
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert) and isinstance(node.msg, ast.Compare | ast.BoolOp | ast.UnaryOp)
    ]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(TESTS)))
def test_every_test_states_something(file: Path) -> None:
    assert faults(file.read_text(encoding="utf-8")) == []


def test_what_states_nothing_is_found() -> None:
    assert faults("def test_a():\n    compute()\n") == ["line 1: test_a asserts nothing"]
    assert faults("def test_a():\n    assert a, b == c\n")[0].startswith(
        "line 2: the message of an assertion is a claim"
    )
    assert faults("def check(x):\n    assert x\ndef test_a():\n    check(1)\n") == []

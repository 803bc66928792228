"""What was to be gone in a version is gone in it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from packaging.version import Version

import gradrank

PACKAGE = Path(gradrank.__file__).parent


def due(source: str, version: str) -> list[int]:
    """Lines of calls that say a thing is gone in this version or an earlier one."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            for word in node.keywords:
                if word.arg == "gone_in" and isinstance(word.value, ast.Constant):
                    last = Version(str(word.value.value))
                    lines += [node.lineno] if last <= Version(version) else []
    return lines


def test_nothing_is_left_that_was_to_be_gone() -> None:
    late = {
        str(file.relative_to(PACKAGE)): found
        for file in sorted(PACKAGE.rglob("*.py"))
        if "gone_in" in (text := file.read_text(encoding="utf-8")) and (found := due(text, gradrank.__version__))
    }
    assert late == {}


@pytest.mark.parametrize(("version", "lines"), [("0.2.9", []), ("0.3.0", [1]), ("0.10.0", [1, 2])])
def test_what_is_due_is_found(version: str, lines: list[int]) -> None:
    source = 'deprecated(gone_in="0.3.0", instead="a")\nwarn_deprecated("b", gone_in="0.9.1", instead="c")\n'
    assert due(source, version) == lines

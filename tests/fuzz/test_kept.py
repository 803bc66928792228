"""Some changed files that commands leave for each other, and those of labeling projects; ``python -m tests.fuzz`` tries
as many as one likes."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradrank.data.formats.topk_files import read_top_k
from gradrank.errors import DataError, ModelError
from gradrank.labeling.project.backup import restore
from gradrank.report.several import read_report
from gradrank.selection.kept import kept as kept_member
from tests.conftest import EXAMPLES
from tests.fuzz import kept, labeling

INPUTS = max(8, EXAMPLES)


@pytest.mark.parametrize("target", [*kept.targets(), *labeling.targets()], ids=lambda target: target.name)
@pytest.mark.filterwarnings("ignore")
def test_changed_files_are_refused_or_taken(target, tmp_path: Path) -> None:
    assert {target.run(valid, tmp_path) for valid in target.seeds().values()} == {"accepted"}
    outcomes = Counter(target.run(target.input(number), tmp_path) for number in range(INPUTS))
    assert outcomes["refused"] > INPUTS // 10


@pytest.mark.parametrize("queries", ["Infinity", "NaN", '"x"', "null", "[]"])
def test_a_report_of_that_many_queries(queries: str, tmp_path: Path) -> None:
    content = kept.report_bytes().decode()
    path = tmp_path / "r.html"
    path.write_text(re.sub(r'"queries": ?\d+', f'"queries": {queries}', content, count=1))
    assert path.read_text() != content
    with pytest.raises(DataError, match=r"r\.html: is a report that is damaged"):
        read_report(path)


@pytest.mark.parametrize("run", [7, "x", [1], None])
def test_a_member_of_such_a_run(run: Any, tmp_path: Path) -> None:
    content = json.loads(kept.member_bytes())
    content["training"]["crossfit"]["run"] = run
    path = tmp_path / "m.json"
    path.write_text(json.dumps(content))
    with pytest.raises(ModelError, match=r"m\.json: is no member of a portfolio"):
        kept_member({}, path)


@pytest.mark.parametrize("statement", [b"CREATE TABLE assessor", b"CREATE TABLE query"])
def test_a_project_whose_tables_sqlite_cannot_even_name(statement: bytes, tmp_path: Path) -> None:
    content = labeling.judged_project()
    assert content.count(statement) == 1
    copy = tmp_path / "copy.db"
    copy.write_bytes(content.replace(statement, statement[:7] + b"\xdf\xff" + statement[9:]))
    with pytest.raises(DataError, match=r"copy\.db: cannot be read as a labeling project: its tables are damaged"):
        restore(copy, tmp_path / "p.db")
    assert [path.name for path in tmp_path.iterdir()] == ["copy.db"]


def test_damage_that_sqlite_names_in_several_lines(tmp_path: Path) -> None:
    content = labeling.judged_project()
    copy = tmp_path / "copy.db"
    # A table's name, as its row among all tables has it; and a statement that cannot be read, which is told by name.
    named = content.replace(b"tableassessorassessor", b"tableasse\n\x1borassessor")
    assert named != content
    copy.write_bytes(named.replace(b"CREATE TABLE assessor", b"CREATE TABLX assessor"))
    with pytest.raises(DataError, match=r"copy\.db: cannot be read as a labeling project: malformed") as caught:
        restore(copy, tmp_path / "p.db")
    assert str(caught.value).isprintable()


def test_a_project_with_a_column_of_another_name(tmp_path: Path) -> None:
    content = labeling.judged_project()
    changed = content.replace(b"  description TEXT NOT NULL", b"  descripsion TEXT NOT NULL")
    assert changed != content
    copy = tmp_path / "copy.db"
    copy.write_bytes(changed)
    with pytest.raises(DataError, match=r"copy\.db: is damaged \(there is no column description in query\)"):
        restore(copy, tmp_path / "p.db")
    assert [path.name for path in tmp_path.iterdir()] == ["copy.db"]


@pytest.mark.parametrize("k", ["1" + "0" * 400, "16777217", "true", "1.0"])
def test_a_truth_of_such_a_k(k: str, tmp_path: Path) -> None:
    path = tmp_path / "truth.jsonl"
    path.write_text(f'{{"query": "1", "k": {k}, "top": ["a"], "rest": []}}\n')
    with pytest.raises(DataError, match=r"truth\.jsonl:1: (k is above|expected)") as caught:
        read_top_k(path)
    assert len(str(caught.value)) < 400


def test_the_largest_k(tmp_path: Path) -> None:
    path = tmp_path / "truth.jsonl"
    path.write_text('{"query": "1", "k": 16777216, "top": ["a", "b"]}\n')
    labels = read_top_k(path)["1"]
    assert (labels["a"], labels["b"]) == (16777216, 16777215)
    assert float(np.float32(labels["a"])) != float(np.float32(labels["b"]))

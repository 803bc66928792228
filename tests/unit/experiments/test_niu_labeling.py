"""Tables 1 to 3 of Niu et al.: simulated assessors, and judgments of people."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradrank.errors import DataError
from gradrank.experiments import recipe, run
from gradrank.labeling.analysis.simulate import simulate_counts


def test_table_1_counts_judgments() -> None:
    scale = recipe("niu-1").tiny
    top, grades = run("niu-1", scale="tiny").tables[0].records()
    assert grades["judgments per query"] == scale.docs
    # Assessors who tie some pairs need about as many preferences as the heap takes for a strict order.
    counts = simulate_counts("heap", n=scale.docs, k=scale.k, runs=100).judgments
    assert min(counts) * 0.7 <= top["judgments per query"] <= max(counts) * 1.2


def test_rows_of_agreement_are_shares() -> None:
    for name in ("niu-2", "niu-3"):
        for row in run(name, scale="tiny").tables[0].records():
            assert sum(value for value in row.values() if isinstance(value, float)) == pytest.approx(1.0)


def test_preferences_of_people_against_their_grades(tmp_path: Path) -> None:
    (tmp_path / "judgments.txt").write_text("1 a b a\n1 a c c\n1 b c tie\n2 x y y\n2 x z x\n2 y unknown y\n")
    (tmp_path / "qrels.txt").write_text("1 0 a 2\n1 0 b 1\n1 0 c 1\n2 0 x 3\n2 0 y 3\n2 0 z 0\n")
    result = run("niu-3", data=tmp_path)
    # Nothing about simulated assessors.
    assert result.settings == {"random_state": 0}
    rows = result.tables[0].records()
    # a > b agrees, c > a does not; y ~ x by grade, x > z agrees; ties and ungraded documents do not count.
    assert [row["pairs"] for row in rows] == [2, 1, 1]
    with pytest.raises(DataError, match="run it without --data"):
        run("niu-1", data=tmp_path)
    (tmp_path / "qrels.txt").unlink()
    with pytest.raises(DataError, match="holds no file qrels"):
        run("niu-3", data=tmp_path)

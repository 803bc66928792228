"""Some changed files that commands leave for each other, and those of labeling projects; ``python -m tests.fuzz`` tries
as many as one likes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import EXAMPLES
from tests.fuzz import kept, labeling

INPUTS = max(8, EXAMPLES)


@pytest.mark.parametrize("target", [*kept.targets(), *labeling.targets()], ids=lambda target: target.name)
@pytest.mark.filterwarnings("ignore")
def test_changed_files_are_refused_or_taken(target, tmp_path: Path) -> None:
    assert {target.run(valid, tmp_path) for valid in target.seeds().values()} == {"accepted"}
    outcomes = Counter(target.run(target.input(number), tmp_path) for number in range(INPUTS))
    assert outcomes["refused"] > INPUTS // 10

"""Some changed files of data of every form; ``python -m tests.fuzz`` tries as many as one likes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import EXAMPLES
from tests.fuzz.data import targets

INPUTS = max(8, 2 * EXAMPLES)


@pytest.mark.checked
@pytest.mark.parametrize("target", targets(), ids=lambda target: target.name)
@pytest.mark.filterwarnings("ignore")
def test_changed_files_are_refused_or_hold_what_they_promise(target, tmp_path: Path) -> None:
    for valid in target.seeds().values():
        assert target.run(valid, tmp_path) == "accepted"
    outcomes = Counter(target.run(target.input(number), tmp_path) for number in range(INPUTS))
    assert outcomes["refused"] > INPUTS // 10

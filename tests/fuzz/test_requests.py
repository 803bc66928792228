"""Some changed requests of every form; ``python -m tests.fuzz --only requests`` tries as many as one likes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import EXAMPLES
from tests.fuzz.requests import targets


@pytest.mark.parametrize("target", targets(), ids=lambda target: target.name)
def test_changed_requests_are_refused_or_answered(target, tmp_path: Path) -> None:
    assert {target.run(valid, tmp_path) for valid in target.seeds().values()} == {"accepted"}
    outcomes = [target.run(target.input(number), tmp_path) for number in range(EXAMPLES)]
    assert set(outcomes) == {"accepted", "refused"}

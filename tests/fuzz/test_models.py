"""Some changed model files of every form; ``python -m tests.fuzz`` tries as many as one likes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from gradrank.errors import GradrankError
from gradrank.models.registry import load_ranker
from tests.conftest import EXAMPLES
from tests.fuzz.models import targets
from tests.support.model_zoo import model_files

INPUTS = max(6, EXAMPLES)


@pytest.mark.checked
@pytest.mark.parametrize("target", targets(), ids=lambda target: target.name)
@pytest.mark.filterwarnings("ignore")
def test_changed_files_are_refused_or_scored(target, tmp_path: Path) -> None:
    (valid,) = target.seeds().values()
    assert target.run(valid, tmp_path) == "accepted"
    outcomes = Counter(target.run(target.input(number), tmp_path) for number in range(INPUTS))
    assert outcomes["refused"] > INPUTS // 10


@pytest.mark.parametrize("name", list(model_files()))
def test_files_cut_off_anywhere_are_refused(name: str, tmp_path: Path) -> None:
    content = model_files()[name].rstrip()
    path = tmp_path / "cut"
    kept = 0
    said: list[str] = []
    for share in np.linspace(0.0, 0.999, 25):
        path.write_bytes(content[: int(len(content) * share)])
        try:
            load_ranker(path)
            kept += 1
        except GradrankError as error:
            said.append(str(error))
    assert [text for text in said if not text.startswith(f"{path}: ") or "\n" in text] == []
    # A line of weights, and the facts about the training at the end of LightGBM's file, may be cut without a trace.
    assert kept <= (12 if name in ("ranklib line", "lightgbm", "lightgbm pandas") else 0)

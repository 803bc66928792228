"""Files of JSON and TOML that are nested without end, or hold other types than they should, are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradrank.data.clicks.propensity_files import read_propensities
from gradrank.data.clicks.readers import read_click_log
from gradrank.data.clicks.traffic import read_traffic
from gradrank.data.feature_profile import load_profile
from gradrank.data.formats.topk_files import read_top_k
from gradrank.errors import DataError
from tests.support.commands import error_of, run

READERS = [read_propensities, read_click_log, read_traffic, load_profile, read_top_k]
POSITIONS = '{"format": "gradrank-propensities", "method": "m", "confidence": 1, "compared": 1, "position": %s, '


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
@pytest.mark.parametrize("start", ["[", '{"query":', '{"position":[', '{"event":"shown","shown":['])
def test_nesting_without_end(read: Callable[[Path], Any], start: str, tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text(start * 50_000 + "\n")
    with pytest.raises(DataError, match=r"^\S*file\.jsonl"):
        read(path)


@pytest.mark.parametrize("position", ["7", "[1, 9223372036854775807, -9223372036854775808]", "[1e400]", "[[1, 2]]"])
def test_positions_that_are_no_list_of_rising_numbers(position: str, tmp_path: Path) -> None:
    path = tmp_path / "propensities.json"
    rest = f'"probability": {position}, "low": {position}, "high": {position}}}'
    path.write_text(POSITIONS % position + rest)
    with pytest.raises(DataError, match="is no file of propensities"):
        read_propensities(path)


def test_options_nested_without_end(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("trees = " + "[" * 50_000)
    said = error_of(run("train", "--train", "a", "-o", "b", "--config", path))
    assert said == f"{path}: is not TOML that can be read: it is nested too deeply"

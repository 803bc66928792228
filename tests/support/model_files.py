"""Model files as plain values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def without_times(value: Any) -> Any:
    """A model file's content without the seconds that training took."""
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key != "seconds"}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def content(path: str | Path) -> Any:
    """What a model file of JSON holds, without times: equal for equal runs."""
    return without_times(json.loads(Path(path).read_text(encoding="utf-8")))

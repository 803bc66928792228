"""Which code a trained model depends on."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import gradrank

# Rooms whose code a training depends on.
_TRAINING_CODE = ("combine", "learners", "measures", "models", "objectives", "ranking.py")


@cache
def code_version() -> str:
    """Digest of the code that a trained model depends on."""
    digest = hashlib.sha256()
    root = Path(gradrank.__file__).parent
    for room in _TRAINING_CODE:
        place = root / room
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]

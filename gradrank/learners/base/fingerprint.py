"""Telling data sets apart without keeping them."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np


def fingerprint(*arrays: Any) -> str:
    """Tells data sets apart: shapes and a sample of the values.

    >>> fingerprint(np.zeros(3)) == fingerprint(np.zeros(3)), fingerprint(np.zeros(3)) == fingerprint(np.ones(3))
    (True, False)
    """
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(repr(array.shape).encode())
        step = max(1, len(array) // 1000)
        digest.update(np.ascontiguousarray(array[::step]).tobytes())
    return digest.hexdigest()[:16]

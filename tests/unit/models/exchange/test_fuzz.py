"""Whatever a model file says: one clear error, or a ranker that scores without reading beyond its arrays."""

from __future__ import annotations

import random
import re
import struct
from pathlib import Path

import numpy as np
import pytest

from gradrank.errors import GradrankError
from gradrank.models.registry import load_ranker
from tests.conftest import EXAMPLES
from tests.support.model_zoo import model_files

CHANGES = max(6, 2 * EXAMPLES)
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_STRANGE = [
    b"-1", b"0", b"1", b"7", b"255", b"2147483647", b"-2147483648", b"4294967295", b"9223372036854775808", b"1e999",
    b"NaN", b"Infinity", b"-Infinity", b"null", b"[]", b"{}", b'"x"', b"0.5", b"-0.0", b"1e-320", b"9" * 400,
]  # fmt: skip
_WORDS = [struct.pack(">i", -1), struct.pack(">q", 1 << 62), struct.pack("<f", float("nan")), b"\x00" * 8, b"\xff" * 8]


def changed(content: bytes, chance: random.Random) -> bytes:
    """The content with one to three changes: numbers, bytes, pieces, the end."""
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        at = chance.randrange(len(content) or 1)
        way = chance.randrange(8)
        numbers = list(_NUMBER.finditer(content)) if way < 4 else []
        if numbers and way < 3:
            found = chance.choice(numbers)
            content = content[: found.start()] + chance.choice(_STRANGE) + content[found.end() :]
        elif len(numbers) > 1:
            one, other = sorted(chance.sample(numbers, 2), key=lambda item: item.start())
            content = b"".join(
                (content[: one.start()], other[0], content[one.end() : other.start()], one[0], content[other.end() :])
            )
        elif way == 4:
            content = content[:at] + bytes([chance.randrange(256)]) + content[at + 1 :]
        elif way == 5:
            content = content[:at] + content[at + chance.randrange(1, 40) :]
        elif way == 6:
            word = chance.choice(_WORDS)
            content = content[:at] + word + content[at + len(word) :]
        else:
            start = chance.randrange(len(content) or 1)
            content = content[:at] + content[start : start + chance.randrange(60)] + content[at:]
    return content


def rows(count: int, n_features: int, kind: type) -> np.ndarray:
    X = np.random.default_rng(0).normal(size=(count, n_features)).astype(kind)
    X[::3] = np.nan
    X[1::5] = 1e30
    X[2::7] = -0.0
    return X


@pytest.mark.checked
@pytest.mark.parametrize("name", list(model_files()))
def test_changed_files_are_refused_or_scored(name: str, tmp_path: Path) -> None:
    content = model_files()[name]
    path = tmp_path / "model"
    path.write_bytes(content)
    assert load_ranker(path).n_features
    said: list[str] = []
    for seed in range(CHANGES):
        path.write_bytes(changed(content, random.Random(f"{name} {seed}")))
        try:
            with np.errstate(all="ignore"):
                ranker = load_ranker(path)
                if ranker.n_features < 5000:
                    for kind in (np.float32, np.float64):
                        # A few rows are walked, many go through the fast scorer.
                        assert ranker.predict(rows(2, ranker.n_features, kind), n_jobs=1).shape == (2,)
                        assert ranker.predict(rows(70, ranker.n_features, kind), n_jobs=1).shape == (70,)
        except GradrankError as error:
            said.append(str(error))
    assert len(said) > CHANGES // 10
    assert [text for text in said if not text.startswith(f"{path}: ") or "\n" in text] == []


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
    assert kept <= (12 if name in ("ranklib line", "lightgbm") else 0)

"""Changed model files of every form that is read: refused with the file's name, or scored within their arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import ModelError, ScoreError
from gradrank.models.registry import load_ranker
from gradrank.report.model_card import ModelCard
from tests.fuzz.mutations import changed, changed_json, either
from tests.fuzz.targets import Target
from tests.support.model_zoo import model_files

# Scoring a model of a hundred thousand features says nothing more than one of thousands.
_MOST_FEATURES = 5000


def rows(count: int, n_features: int, kind: type) -> NDArray[np.floating]:
    """Documents with missing, huge and negative zero values."""
    X = np.random.default_rng(0).normal(size=(count, n_features)).astype(kind)
    X[::3] = np.nan
    X[1::5] = 1e30
    X[2::7] = -0.0
    return X


def load_and_score(content: bytes, folder: Path) -> None:
    """Read a model file, and score with it if it can be read."""
    path = folder / "model"
    path.write_bytes(content)
    try:
        ranker = load_ranker(path)
    except ModelError as error:
        if not str(error).startswith(f"{path}: "):
            raise AssertionError(f"the error does not name the file: {error}") from error
        raise
    assert repr(ranker)
    assert ranker._repr_html_()
    if ranker.n_features > _MOST_FEATURES:
        return
    card = ModelCard(ranker, path)
    assert card.to_markdown()
    assert card.to_dict()
    with np.errstate(all="ignore"):
        for kind in (np.float32, np.float64):
            # A few rows are walked, many go through the fast scorer.
            for count in (2, 70):
                try:
                    scores = ranker.predict(rows(count, ranker.n_features, kind), n_jobs=1)
                except ScoreError:
                    continue
                assert scores.shape == (count,)
                assert np.isfinite(scores).all()


def targets() -> list[Target]:
    """One for every form of file."""
    found = []
    for name, content in model_files().items():
        is_json = content.lstrip().startswith(b'{"') or content.startswith(b"{\n")
        change = either(changed, changed_json) if is_json else changed
        found.append(Target(f"models/{name}", lambda content=content: {"file": content}, load_and_score, change))
    return found

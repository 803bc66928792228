"""The same text, read by LightGBM, by XGBoost and here: their models give their own scores, if it is read their way.

Both count the features of text from 0, so that number 1 is the second of a model. What a line leaves out is 0 to
LightGBM and missing to XGBoost.
"""

from __future__ import annotations

from pathlib import Path

import lightgbm
import numpy as np
import pytest
import xgboost

from tests.support.commands import run

QUERIES, SIZE, FEATURES = 40, 8, 6


def write_text(path: Path, seed: int) -> None:
    """Sparse text with features from 1 on, whose being absent tells something, and sizes of queries beside it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(QUERIES * SIZE, FEATURES)) + 1
    there = rng.random(X.shape) < 0.7
    there[:, -1] = True
    grades = np.clip(np.round(X[:, 0] * there[:, 0] + there[:, 1] + X[:, 5] / 2), 0, 3).astype(int)
    lines = [
        " ".join([str(grade), *(f"{place + 1}:{value:.3f}" for place, value in enumerate(row) if kept[place])])
        for grade, row, kept in zip(grades, X, there, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
    Path(f"{path}.query").write_text(f"{SIZE}\n" * QUERIES)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    write_text(folder / "train.txt", 1)
    write_text(folder / "test.txt", 2)
    return folder


def scores(folder: Path, model: str, *options: str) -> np.ndarray:
    made = run("score", folder / model, folder / "test.txt", "-o", folder / "scores.txt", *options)
    assert made.exit_code == 0, made.output
    return np.loadtxt(folder / "scores.txt")


def test_lightgbm(texts: Path) -> None:
    settings = {"objective": "lambdarank", "num_threads": 1, "verbose": -1, "min_data_in_leaf": 5}
    booster = lightgbm.train(settings, lightgbm.Dataset(str(texts / "train.txt")), 10)
    booster.save_model(texts / "lightgbm.txt")
    expected = booster.predict(str(texts / "test.txt"))
    assert np.ptp(expected) > 1
    assert np.array_equal(scores(texts, "lightgbm.txt", "--zero-based"), expected)
    # Read as gradrank reads text, it is a feature short, and what is said leads to the right numbers.
    for command in (["score"], ["evaluate", "--model"]):
        files = [texts / "lightgbm.txt", texts / "test.txt"][:: 1 if command[0] == "score" else -1]
        told = run(command[0], files[0], *command[1:], files[1])
        assert told.exit_code == 2
        assert "has 6 features" in told.stderr
        assert "--zero-based if the model counts features of such files from 0" in told.stderr
    # Taken for one without the last feature, all features would be its neighbours.
    assert not np.allclose(scores(texts, "lightgbm.txt", "--n-features", "7"), expected)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_xgboost(texts: Path) -> None:
    train, test = (xgboost.DMatrix(f"{texts / name}.txt?format=libsvm") for name in ("train", "test"))
    train.set_group([SIZE] * QUERIES)
    booster = xgboost.train({"objective": "rank:ndcg", "nthread": 1, "max_depth": 3}, train, 10)
    booster.save_model(texts / "xgboost.json")
    expected = booster.predict(test)
    found = scores(texts, "xgboost.json", "--zero-based", "--absent-missing")
    assert np.allclose(found, expected, atol=1e-5)
    assert not np.allclose(scores(texts, "xgboost.json", "--zero-based"), expected, atol=0.1)


def test_training_data_tells_what_training_data_can_mean(texts: Path, tmp_path: Path) -> None:
    """A file that lacks the last feature of another is no matter of where features begin."""
    (tmp_path / "few.txt").write_text("0 qid:1 1:1\n1 qid:1 5:2\n")
    told = run(
        "train", "--train", texts / "train.txt", "--valid", tmp_path / "few.txt", "-o", tmp_path / "m.json", "-q"
    )
    assert told.exit_code == 2
    assert "--n-features 6 reads them so" in told.stderr
    assert "--zero-based" not in told.stderr

"""What every kind of ranker promises: scores in the order of the rows, features by name, files that lose nothing."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from gradrank.data import RankingData
from gradrank.errors import GradrankError, ModelError
from gradrank.models.ranker import Ranker
from gradrank.models.registry import RANKERS, load_ranker
from tests.support.commands import content_of
from tests.support.rankers import NAMES, example_rankers, feature_rows

X, _ = feature_rows()
each_ranker = pytest.mark.parametrize("ranker", example_rankers().values(), ids=list(example_rankers()))


def frame_columns(order: list[int]) -> dict[str, np.ndarray]:
    """The features under their names in another order, with columns between that no ranker knows."""
    columns: dict[str, np.ndarray] = {}
    for place in order:
        columns |= {f"other {place}": np.arange(len(X), dtype=float), NAMES[place]: X[:, place]}
    return columns


def test_every_kind_has_an_example() -> None:
    assert {kind: ranker.kind for kind, ranker in example_rankers().items()} == {kind: kind for kind in RANKERS}


@each_ranker
def test_the_examples_tell_documents_apart(ranker: Ranker) -> None:
    scores = ranker.predict(X)
    assert scores.shape == (len(X),)
    assert scores.dtype == np.float64
    assert np.isfinite(scores).all()
    assert len(np.unique(scores)) > 20


@each_ranker
def test_interleaved_rows_keep_their_order(ranker: Ranker) -> None:
    qid = np.arange(len(X)) % 7
    exact = X.astype(np.float32)
    data = RankingData.from_arrays(exact, qid=qid, feature_names=NAMES)
    assert data.rows is not None
    expected = ranker.predict(exact)
    np.testing.assert_array_equal(ranker.predict(data), expected)
    np.testing.assert_array_equal(ranker.grouped_scores(data), expected[np.argsort(qid, kind="stable")])


@each_ranker
@pytest.mark.parametrize("order", [[2, 0, 1], [1, 2, 0]])
def test_features_are_found_by_name(ranker: Ranker, order: list[int]) -> None:
    columns = frame_columns(order)
    expected = ranker.predict(X)
    np.testing.assert_array_equal(ranker.predict(pd.DataFrame(columns)), expected)
    np.testing.assert_array_equal(ranker.predict(pl.DataFrame(columns)), expected)
    exact = X.astype(np.float32)
    data = RankingData.from_arrays(exact[:, order], qid=[1] * len(X), feature_names=[NAMES[place] for place in order])
    np.testing.assert_array_equal(ranker.predict(data), ranker.predict(exact))


@each_ranker
def test_a_row_has_its_score_whatever_stands_beside_it(ranker: Ranker) -> None:
    expected = ranker.predict(X)
    np.testing.assert_array_equal(np.concatenate([ranker.predict(X[i : i + 1]) for i in range(len(X))]), expected)
    np.testing.assert_array_equal(ranker.predict(X[::-1])[::-1], expected)
    np.testing.assert_array_equal(ranker.predict(np.asfortranarray(X)), expected)
    assert ranker.predict(X[:0]).shape == (0,)


@each_ranker
def test_threads_change_nothing(ranker: Ranker) -> None:
    many, _ = feature_rows(30_000)  # several blocks
    np.testing.assert_array_equal(ranker.predict(many, n_jobs=1), ranker.predict(many, n_jobs=2))


@each_ranker
def test_copies_and_pickles_score_the_same(ranker: Ranker) -> None:
    for again in (pickle.loads(pickle.dumps(ranker)), copy.deepcopy(ranker)):
        assert type(again) is type(ranker)
        assert again.predict(X).tobytes() == ranker.predict(X).tobytes()
        assert again.to_dict() == ranker.to_dict()


@each_ranker
def test_files_give_back_every_bit(ranker: Ranker, tmp_path: Path) -> None:
    path = tmp_path / "modèle.json"
    ranker.save(path)
    loaded = load_ranker(path)
    assert type(loaded) is type(ranker)
    assert loaded.feature_names == ranker.feature_names
    assert loaded.predict(X).tobytes() == ranker.predict(X).tobytes()
    assert loaded.to_dict() == ranker.to_dict()
    loaded.save(tmp_path / "again.json")
    assert content_of(tmp_path) == dict.fromkeys(("again.json", "modèle.json"), path.read_bytes())


@each_ranker
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 0.99])
def test_a_file_cut_off_is_refused_by_name(ranker: Ranker, share: float, tmp_path: Path) -> None:
    path = tmp_path / "cut.json"
    ranker.save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(ModelError, match=r"cut\.json: ") as caught:
        load_ranker(path)
    assert "\n" not in str(caught.value)


@each_ranker
def test_a_failed_save_leaves_the_old_file_and_nothing_else(
    ranker: Ranker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.json"
    path.write_text("the old one")

    def full(*_arguments: object, **_options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises((OSError, GradrankError), match="No space left"):
        ranker.save(path)
    monkeypatch.undo()
    assert content_of(tmp_path) == {"model.json": b"the old one"}
    with pytest.raises(GradrankError, match="cannot be written"):
        ranker.save(tmp_path / "nowhere" / "model.json")


@each_ranker
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (X[:, :2], "X has 2 features, the model expects 3"),
        (X[0], "X has 1 dimensions, expected 2"),
        (np.array([["a", "b", "c"]]), "X holds values of type <U1, expected numbers"),
        (pd.DataFrame(X, columns=["bm25", "prix", "clicks"]), "X lacks the model's feature \"prix d'été\""),
        (pl.DataFrame({"bm25": [1.0]}), "X lacks the model's features \"prix d'été\", 'clicks'"),
        (
            RankingData.from_arrays(X[:2].astype("f4"), qid=[1, 1], feature_names=["bm25", "age", "clicks"]),
            "X lacks the model's feature \"prix d'été\"",
        ),
    ],
)
def test_features_that_do_not_fit_are_told_in_one_sentence(ranker: Ranker, wrong: object, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        ranker.predict(wrong)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@each_ranker
@pytest.mark.parametrize("reference", [None, "other"])
def test_shares_of_the_features_add_up_to_differences_of_scores(ranker: Ranker, reference) -> None:
    scores = ranker.predict(X)
    first, second = np.arange(100), np.arange(100, 200)
    found = ranker.attribution(X, reference=reference).between(first, second)
    assert found.shape == (100, 3)
    np.testing.assert_allclose(found.sum(axis=1), scores[first] - scores[second], rtol=1e-11, atol=1e-11)
    unused = [place for place, name in enumerate(NAMES) if name not in ranker.used_features()]
    assert not found[:, unused].any()
    columns = frame_columns([2, 0, 1])
    by_frame = ranker.attribution(pd.DataFrame(columns), reference=reference).between(first, second)
    np.testing.assert_array_equal(by_frame, found)
    assert ranker.attribution(X, reference=reference, n_jobs=1).ways

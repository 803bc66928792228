"""What every algorithm promises: it learns, repeats, saves, goes on, and refuses what it cannot learn from."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from gradrank.cli.parameters import learner_parameters
from gradrank.data import RankingData
from gradrank.errors import GradrankError
from gradrank.learners import Step
from gradrank.learners.algorithms import ALGORITHMS, algorithm, effective_parameters, parameters_of
from gradrank.learners.base.estimator import RankingEstimator
from gradrank.learners.base.search import Options
from gradrank.measures import NDCG
from gradrank.models.registry import load_ranker
from gradrank.selection.space import space_of
from gradrank.selection.tune import tune
from tests.support.data import known_truth
from tests.support.model_files import without_times

TRAIN, VALID, TEST = (known_truth(part) for part in (1, 2, 3))
# Whatever of these an algorithm has: little work, and everything that is random.
QUICK = {
    "n_estimators": 8, "min_child_samples": 5, "colsample_bytree": 0.8, "epochs": 8, "batch_size": 8,
    "hidden_layer_sizes": 4, "k": 5, "n_jobs": 1,
}  # fmt: skip
THOROUGH = {**QUICK, "n_estimators": 40, "epochs": 20, "colsample_bytree": 1.0, "hidden_layer_sizes": 10}
NEEDED: dict[str, dict[str, Any]] = {"lambdasmart": {"base": "f1"}}
# Algorithms that learn from single documents, whatever list they stand in.
BY_DOCUMENT = {"mart", "mcrank", "regressionnet"}
# Algorithms whose trainings can be killed and go on.
RESUMING = [name for name in ALGORITHMS if "checkpoint" in parameters_of(algorithm(name))]
each_algorithm = pytest.mark.parametrize("name", ALGORITHMS)


def learner(name: str, settings: dict[str, Any] = QUICK, **more: Any) -> RankingEstimator:
    kind = algorithm(name)
    known = {key: value for key, value in settings.items() if key in parameters_of(kind)}
    return kind(**(known | NEEDED.get(name, {}) | more))


@cache
def fitted(name: str) -> RankingEstimator:
    """Trained once; tests must not change it."""
    return learner(name).fit(TRAIN, valid=VALID)


def payload(model: RankingEstimator) -> Any:
    """All that was learned."""
    return model.ranker_.to_dict()["payload"]


class Killed(Exception):
    """Stands for a process that ends without a chance to tidy up."""


def at_step(number: int, error: type[BaseException]) -> Callable[[Step], None]:
    def raise_there(step: Step) -> None:
        if step.number == number:
            raise error

    return raise_there


# ---------------------------------------------------------------- learning
@each_algorithm
def test_it_beats_chance_and_every_single_feature(name: str) -> None:
    measure = NDCG(10)
    rng = np.random.default_rng(0)
    by_chance = np.mean([measure.mean(rng.normal(size=TEST.n_docs), TEST) for _ in range(20)])
    columns = [sign * TEST.X[:, place].astype(float) for place in range(TEST.n_features) for sign in (1, -1)]
    by_one_feature = max(measure.mean(column, TEST) for column in columns)
    assert by_chance < 0.55  # so much for what is easy
    assert 0.8 < by_one_feature < 0.85
    model = learner(name, THOROUGH).fit(TRAIN, valid=VALID)
    assert measure.mean(model.predict(TEST), TEST) > by_one_feature + 0.06


@each_algorithm
def test_score_is_the_mean_of_the_measure(name: str) -> None:
    model = learner(name, measure="MAP(rel=2)").fit(TRAIN, valid=VALID)
    rel2 = algorithm("lambdamart")(measure="MAP(rel=2)")._score_measure()
    assert model.score(TEST) == pytest.approx(rel2.mean(model.predict(TEST), TEST), abs=1e-12)  # type: ignore[union-attr]
    assert model.score(TEST.X, TEST.label(), TEST.query_of_row()) == pytest.approx(model.score(TEST), abs=1e-12)


# ---------------------------------------------------------------- what goes in
@each_algorithm
def test_arrays_frames_and_ranking_data_train_the_same(name: str) -> None:
    expected = payload(fitted(name))
    qid = TRAIN.query_of_row()
    columns = {name: TRAIN.X[:, place] for place, name in enumerate(TRAIN.feature_names)}
    validation = (VALID.X, VALID.label(), VALID.query_of_row())
    arrays = learner(name).fit(TRAIN.X, TRAIN.label(), qid=qid, valid=validation)
    assert payload(arrays) == expected
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns)):
        model = learner(name).fit(frame, TRAIN.label(), qid=qid, eval_set=[validation[:2]], eval_qid=[validation[2]])
        assert payload(model) == expected
        np.testing.assert_array_equal(model.predict(frame), fitted(name).predict(TRAIN))


@each_algorithm
def test_rows_keep_their_places(name: str) -> None:
    shuffled = np.random.default_rng(1).permutation(TRAIN.n_docs)
    X, y, qid = TRAIN.X[shuffled], TRAIN.label()[shuffled], TRAIN.query_of_row()[shuffled]
    scattered = RankingData.from_arrays(X, y, qid=qid)
    by_arrays = learner(name).fit(X, y, qid=qid)
    assert payload(by_arrays) == payload(learner(name).fit(scattered))
    scores = by_arrays.predict(X)
    np.testing.assert_array_equal(by_arrays.predict(scattered), scores)
    np.testing.assert_array_equal(by_arrays.predict(TRAIN.X)[shuffled], scores)


@each_algorithm
def test_data_is_left_as_it_was(name: str) -> None:
    X, y = TRAIN.X.copy(), TRAIN.label().copy()
    for array in (X, y):
        array.setflags(write=False)
    learner(name).fit(X, y, qid=TRAIN.query_of_row(), valid=VALID)
    np.testing.assert_array_equal(X, TRAIN.X)
    np.testing.assert_array_equal(y, TRAIN.label())


@each_algorithm
def test_odd_data_does_no_harm(name: str) -> None:
    """Missing values, a constant and an empty feature, unjudged documents, lists of one document and of one grade."""
    X, y = TRAIN.X.copy(), TRAIN.label().copy()
    X[np.random.default_rng(2).random(X.shape) < 0.1] = np.nan
    X[:, 3], X[:, 4] = 7.0, np.nan
    y[5:12] = np.nan
    y[12:24] = 1.0
    qid = TRAIN.query_of_row().copy()
    qid[0] = 1000
    model = learner(name).fit(X, y, qid=qid)
    scores = model.predict(X)
    assert np.isfinite(scores).all()
    assert NDCG(10).mean(model.predict(TEST), TEST) > 0.6


@each_algorithm
def test_weights_of_one_change_nothing(name: str) -> None:
    weighted = learner(name).fit(TRAIN.with_weight(np.ones(TRAIN.n_queries)), valid=VALID)
    np.testing.assert_allclose(weighted.predict(TEST), fitted(name).predict(TEST), rtol=1e-9, atol=1e-12)


# ---------------------------------------------------------------- repeating
@each_algorithm
@pytest.mark.parametrize("n_jobs", [1, 2, None])
def test_it_repeats_for_any_number_of_threads(name: str, n_jobs: int | None) -> None:
    seed = {"random_state": 7} if "random_state" in parameters_of(algorithm(name)) else {}
    # Enough documents for several blocks.
    large = known_truth(4, queries=300)
    expected = learner(name, n_jobs=1, **seed).fit(large, valid=VALID)
    again = learner(name, n_jobs=n_jobs, **seed).fit(large, valid=VALID)
    assert payload(again) == payload(expected)
    assert again.record_.curves == expected.record_.curves


@each_algorithm
def test_nothing_is_left_of_an_earlier_training(name: str) -> None:
    model = learner(name).fit(known_truth(9, queries=20))
    assert payload(model.fit(TRAIN, valid=VALID)) == payload(fitted(name))


# ---------------------------------------------------------------- going on
@pytest.mark.parametrize("name", RESUMING)
def test_a_killed_training_goes_on_to_the_same_model(name: str, tmp_path: Path) -> None:
    state = {"checkpoint": tmp_path / "state", "checkpoint_every": 2}
    with pytest.raises(Killed):
        learner(name, **state, callbacks=[at_step(5, Killed)]).fit(TRAIN, valid=VALID)
    steps: list[int] = []
    model = learner(name, **state, callbacks=[lambda step: steps.append(step.number)]).fit(TRAIN, valid=VALID)
    assert steps[0] == 5  # four steps were on disk
    assert payload(model) == payload(fitted(name))
    assert model.record_.curves == fitted(name).record_.curves


@pytest.mark.parametrize("name", RESUMING)
def test_states_of_other_runs_and_damaged_ones_are_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "state"
    learner(name, checkpoint=path).fit(TRAIN, valid=VALID)
    kept = path.read_bytes()
    with pytest.raises(GradrankError, match=r"state: belongs to another run \(learning_rate"):
        learner(name, checkpoint=path, learning_rate=0.037).fit(TRAIN, valid=VALID)
    with pytest.raises(GradrankError, match="state: belongs to another run"):
        learner(name, checkpoint=path).fit(TEST, valid=VALID)
    assert path.read_bytes() == kept
    for share in (0.0, 0.3, 0.9):
        path.write_bytes(kept[: int(len(kept) * share)])
        with pytest.raises(GradrankError, match="state: is not a checkpoint that can be read"):
            learner(name, checkpoint=path).fit(TRAIN, valid=VALID)


@each_algorithm
def test_an_interrupted_training_keeps_its_model(name: str) -> None:
    model = learner(name, callbacks=[at_step(3, KeyboardInterrupt)]).fit(TRAIN, valid=VALID)
    assert model.record_.interrupted
    assert model.record_.steps == 3
    assert NDCG(10).mean(model.predict(TEST), TEST) > 0.6


# ---------------------------------------------------------------- keeping
@each_algorithm
def test_the_ranker_saves_and_loads_every_bit(name: str, tmp_path: Path) -> None:
    model = fitted(name)
    model.ranker_.save(tmp_path / "model.json")
    loaded = load_ranker(tmp_path / "model.json")
    assert loaded.to_dict() == model.ranker_.to_dict()
    assert loaded.predict(TEST).tobytes() == model.predict(TEST).tobytes()
    assert loaded.training["learner"] == type(model).__name__


@each_algorithm
def test_fitted_learners_can_be_kept_and_copied(name: str, tmp_path: Path) -> None:
    model = fitted(name)
    joblib.dump(model, tmp_path / "model.joblib")
    copies = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model), joblib.load(tmp_path / "model.joblib")]
    for again in copies:
        assert again.predict(TEST).tobytes() == model.predict(TEST).tobytes()
        assert again.score(TEST) == model.score(TEST)
        assert again.get_params() == model.get_params()
        assert without_times(again.ranker_.to_dict()) == without_times(model.ranker_.to_dict())


@each_algorithm
def test_clones_have_the_parameters_and_nothing_else(name: str) -> None:
    again = clone(fitted(name))
    assert again.get_params() == fitted(name).get_params()
    assert not hasattr(again, "ranker_")
    changed = clone(again).set_params(measure="ERR@5")
    assert changed.get_params() == {**again.get_params(), "measure": "ERR@5"}
    assert payload(again.fit(TRAIN, valid=VALID)) == payload(fitted(name))


# ---------------------------------------------------------------- refusing
def refused(name: str, *arguments: Any, **more: Any) -> str:
    """The one sentence that a training is refused with; it leaves no half-trained learner."""
    model = learner(name)
    with pytest.raises(GradrankError) as caught:
        model.fit(*arguments, **more)
    assert "\n" not in str(caught.value)
    assert not hasattr(model, "ranker_")
    return str(caught.value)


@each_algorithm
def test_data_that_teaches_nothing_is_refused(name: str) -> None:
    for value in (1.0, 0.1):
        said = refused(name, TRAIN.with_label("label", np.full(TRAIN.n_docs, value)))
        assert any(words in said for words in ("has one label only", f"has label {value:g}", "needs 2 to 64 grades"))
    said = refused(name, TRAIN.with_label("label", np.full(TRAIN.n_docs, np.nan)))
    assert "no document of the training data is judged" in said or "needs 2 to 64 grades" in said
    assert "no labels" in refused(name, TRAIN.X, None, TRAIN.query_of_row())
    if name not in BY_DOCUMENT:
        alone = RankingData.from_arrays(TRAIN.X, TRAIN.label(), qid=np.arange(TRAIN.n_docs))
        assert "has one label only" in (said := refused(name, alone)) or "not a single pair" in said


@each_algorithm
def test_data_that_does_not_fit_together_is_refused(name: str) -> None:
    X, y, qid = TRAIN.X, TRAIN.label(), TRAIN.query_of_row()
    assert "there are no query ids" in refused(name, X, y)
    assert f"{len(y) - 1}" in refused(name, X, y[:-1], qid)
    assert f"{len(y) - 1}" in refused(name, X, y, qid[:-1])
    assert "dimension" in refused(name, X[:, 0], y, qid)
    infinite = X.copy()
    infinite[17, 2] = np.inf
    assert refused(name, infinite, y, qid)
    assert "valid does not fit the training data" in refused(
        name, X, y, qid, valid=(VALID.X[:, :2], VALID.label(), VALID.query_of_row())
    )
    renamed = RankingData.from_arrays(VALID.X, VALID.label(), group=VALID.sizes, feature_names=list("abcdef"))
    named = RankingData.from_arrays(X, y, group=TRAIN.sizes, feature_names=list("uvwxyz"))
    assert "valid does not fit the training data" in refused(name, named, valid=renamed)


@each_algorithm
def test_parameters_out_of_range_are_refused(name: str) -> None:
    for parameter, value in {"measure": "NDGC@10", "n_jobs": 0, "n_estimators": 0, "epochs": -1, "C": 0.0}.items():
        if parameter in parameters_of(algorithm(name)):
            with pytest.raises(GradrankError) as caught:
                learner(name, **{parameter: value}).fit(TRAIN, valid=VALID)
            assert str(value).split("@")[0] in str(caught.value)
            assert "\n" not in str(caught.value)
    with pytest.raises(TypeError, match="no_such_parameter"):
        learner(name, no_such_parameter=1)


@each_algorithm
def test_scoring_refuses_what_does_not_fit(name: str) -> None:
    with pytest.raises(NotFittedError):
        learner(name).predict(TEST)
    with pytest.raises(GradrankError, match="X has 2 features, the model expects 6"):
        fitted(name).predict(TEST.X[:, :2])


# ---------------------------------------------------------------- searching
@each_algorithm
def test_its_parameters_can_be_searched(name: str) -> None:
    """Every range is allowed to its ends, has an option, and holds the default or lies beside it."""
    kind = algorithm(name)
    space = space_of(name, NDCG(10), fixed=NEEDED.get(name))
    offered = learner_parameters()
    assert space.searched or space.steps
    for item, where in space.searched.items():
        assert item in offered, "a config file could not hold it"
        for end in where.ends():
            kind(**{**space.defaults(), item: end}).check_parameters()
    near = space.nearest_to_defaults()
    chosen = effective_parameters(kind(**space.defaults()))
    for item, where in space.searched.items():
        given = chosen[item]
        if isinstance(where, Options) or (isinstance(given, int | float) and where.low <= given <= where.high):
            assert near[item] == given, "the defaults are a point of the space"
    if kind.steps_parameter is not None:
        assert {kind.steps_parameter, "early_stopping_rounds"} <= set(space.steps), "the number of steps is not guessed"


@each_algorithm
def test_a_search_trains_it(name: str) -> None:
    pytest.importorskip("optuna")
    quick = {"n_estimators": 4, "epochs": 2, "k": 5, "min_child_samples": 5, "max_cuts": 20, **NEEDED.get(name, {})}
    fixed = {item: value for item, value in quick.items() if item in parameters_of(algorithm(name))}
    small = TRAIN.take_queries(range(16))
    found = tune(small, algorithm=name, fixed=fixed, trials=2, folds=2, processes=1, n_jobs=1)
    assert [trial.state for trial in found.trials] == ["complete", "complete"]
    assert found.best.value >= found.defaults.value > 0.4
    again = algorithm(name)(**found.best_params).fit(small)
    np.testing.assert_array_equal(again.predict(TEST), found.ranker.predict(TEST))

"""Comparing ways to use rankers of another domain."""

from __future__ import annotations

import numpy as np
import pytest

from gradrank.data import RankingData
from gradrank.data.artificial import make_data
from gradrank.errors import DataError, ModelError
from gradrank.measures import NDCG
from gradrank.models.linear import LinearRanker
from gradrank.selection.adapt import INTERPOLATION, OWN, adapt, adapted, compare_adaptation, sensible_parameters

DATA = make_data(60, n_docs=10, n_features=4, random_state=2)
FAST = {"n_estimators": 8, "early_stopping_rounds": None}
BASES = {"one": LinearRanker([1.0, 0, 0, 0]), "two": LinearRanker([1.0, 0.5], feature_names=["f3", "f2"])}


def test_each_query_is_tested_once_by_models_that_did_not_see_it() -> None:
    result = compare_adaptation(BASES, DATA, measures=[NDCG(5)], folds=4, parameters=FAST)
    evaluation = result.evaluation
    assert evaluation.systems == ("one", "two", OWN, "one, adapted", "two, adapted", INTERPOLATION)
    # Bases are scored as they are, their features found by name.
    expected = NDCG(5).values(DATA.X[:, 2] + 0.5 * DATA.X[:, 1].astype(float), DATA)
    np.testing.assert_allclose(evaluation.values["two"][NDCG(5)], expected)
    assert all(len(counts) == 4 for counts in result.trees.values())
    assert [len(weights) for weights in result.weights] == [3] * 4
    assert [(other, row.system) for other, row in result.rows()][:3] == [
        ("one", adapted("one")), (OWN, adapted("one")), (INTERPOLATION, adapted("one")),
    ]  # fmt: skip
    for other, row in result.rows():
        difference = evaluation.values[row.system][NDCG(5)] - evaluation.values[other][NDCG(5)]
        assert row.test.difference == pytest.approx(difference.mean())
    # Labels that no feature tells cannot be learnt: who sees the test queries would be far above chance.
    rng = np.random.default_rng(0)
    noise = RankingData.from_arrays(rng.random((600, 4)), rng.integers(0, 5, 600), group=[10] * 60)
    many = {"n_estimators": 60, "early_stopping_rounds": None, "learning_rate": 0.5}
    chance = compare_adaptation({"base": BASES["one"]}, noise, measures=[NDCG(5)], parameters=many).evaluation.means()
    assert abs(chance["base, adapted"]["NDCG@5"] - chance["base"]["NDCG@5"]) < 0.08


def test_same_seed_same_result() -> None:
    first, again = (
        compare_adaptation({"one": BASES["one"]}, DATA, folds=3, parameters=FAST, random_state=3).to_dict()
        for _ in range(2)
    )
    assert first == again


def test_adapted_to_all_data() -> None:
    model = adapt(BASES["one"], DATA, trees=5, parameters={"learning_rate": 0.3})
    assert NDCG(5).mean(model.predict(DATA), DATA) > NDCG(5).mean(BASES["one"].predict(DATA), DATA)


def test_parameters_grow_with_the_data() -> None:
    few, many = (sensible_parameters(make_data(n, n_docs=4, n_features=3)) for n in (60, 3600))
    assert (few["num_leaves"], few["learning_rate"]) == (4, 0.05)
    assert (many["num_leaves"], many["learning_rate"]) == (20, 0.1)


def test_wrong_input() -> None:
    with pytest.raises(DataError, match="no base"):
        compare_adaptation({}, DATA)
    with pytest.raises(DataError, match="which names another system"):
        compare_adaptation({OWN: BASES["one"]}, DATA)
    with pytest.raises(DataError, match="folds is 2, expected 3 to 60"):
        compare_adaptation(BASES, DATA, folds=2)
    with pytest.raises(ModelError, match="lacks the model's feature 'price'"):
        compare_adaptation({"base": LinearRanker([1.0], feature_names=["price"])}, DATA)

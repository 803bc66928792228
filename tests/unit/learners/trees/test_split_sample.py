"""Splits searched on a sample of the documents."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gradrank import MART, LambdaMART, McRank
from gradrank.data.artificial import make_data
from gradrank.data.formats.binary import open_binary, write_binary
from gradrank.errors import GradrankError
from gradrank.learners.trees.grower import TreeGrower
from gradrank.learners.trees.parameters import TreeParameters
from gradrank.learners.trees.remote import check_offered
from gradrank.learners.trees.split_sample import draw_split_sample
from gradrank.models.trees.ensemble import TreeEnsemble, assign_leaves
from gradrank.objectives import parse_objective

DATA = make_data(60, n_docs=40, n_features=8, random_state=5)
SMALL = {"n_estimators": 6, "num_leaves": 6, "learning_rate": 0.3, "split_docs": 500, "random_state": 2}


def _derivatives(count: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    lambdas = (rng.normal(size=count) * rng.exponential(size=count) ** 3).astype(np.float32)
    rhos = (np.abs(lambdas) * rng.random(count)).astype(np.float32)
    silent = rng.random(count) < 0.2
    lambdas[silent], rhos[silent] = 0.0, 0.0
    return lambdas, rhos


@pytest.mark.kernel
@pytest.mark.parametrize("wanted", [1, 20, 150, 310])
def test_chances_are_those_of_the_definition(wanted: int) -> None:
    lambdas, rhos = _derivatives()
    sizes = np.sqrt((lambdas / np.abs(lambdas).mean()) ** 2 + 0.25 * (rhos / rhos.mean()) ** 2).astype(np.float64)
    low, high = 0.0, sizes.sum()
    for _ in range(100):  # by halving, as slowly as can be
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(1.0, sizes / middle).sum() > wanted else (low, middle)
    chances = np.minimum(1.0, sizes / high)
    assert chances.sum() == pytest.approx(wanted)
    draws = 300
    drawn = np.zeros(len(lambdas))
    for key in range(draws):
        rows, weights = draw_split_sample(lambdas, rhos, wanted, key)
        drawn[rows] += 1
        np.testing.assert_allclose(weights, 1.0 / chances[rows], rtol=1e-4)
    # Five deviations of a binomial count, for 400 of them.
    assert (np.abs(drawn - draws * chances) <= 5 * np.sqrt(draws * chances * (1 - chances)) + 2.5).all()
    assert not drawn[lambdas == 0].any()


@pytest.mark.kernel
def test_those_who_push_are_all_there_if_there_is_room() -> None:
    lambdas, rhos = _derivatives()
    rows, weights = draw_split_sample(lambdas, rhos, 399, key=1)
    np.testing.assert_array_equal(rows, np.flatnonzero(lambdas))
    assert (weights == 1.0).all()
    assert len(draw_split_sample(np.zeros(3, np.float32), np.zeros(3, np.float32), 2, key=1)[0]) == 0


@pytest.mark.parametrize("quantized", [True, False])
def test_a_tree_of_the_documents_that_push_is_the_tree_of_all(quantized: bool) -> None:
    gradients = parse_objective("NDCG@10").bind(DATA).gradients(np.zeros(DATA.n_docs))
    there = np.flatnonzero(np.repeat(np.arange(DATA.n_queries) % 3 == 0, DATA.sizes))
    lambdas, rhos = np.zeros(DATA.n_docs, np.float32), np.zeros(DATA.n_docs, np.float32)
    lambdas[there], rhos[there] = gradients.lambdas[there], gradients.rhos[there]
    # One document per leaf is enough, so that it does not matter who is counted.
    shape = {"num_leaves": 9, "min_child_samples": 1, "quantized": quantized, "random_state": 1}
    if quantized:  # to whole numbers, which rounding leaves as they are
        scale = np.float32(np.abs(lambdas).max() / 63)
        lambdas = np.round(lambdas / scale) * scale
        rhos = np.round(rhos / (rhos.max() / np.float32(126))) * (rhos.max() / np.float32(126))
    few, everyone = (
        TreeGrower(DATA, TreeParameters(**shape, split_docs=most), split="newton")  # type: ignore[arg-type]
        for most in (len(there), None)
    )
    small, large = few.grow(lambdas, rhos, 0), everyone.grow(lambdas, rhos, 0)
    assert small.n_leaves == 9
    np.testing.assert_array_equal(small.split_feature, large.split_feature)
    np.testing.assert_array_equal(assign_leaves(small, DATA.X)[there], assign_leaves(large, DATA.X)[there])
    # LightGBM saw the sample and nothing else.
    assert small.leaf_cover.sum() == np.count_nonzero((lambdas != 0) | (rhos != 0)) < large.leaf_cover.sum()


def test_leaf_values_and_counts_are_those_of_all_documents() -> None:
    learner = LambdaMART(**{**SMALL, "n_estimators": 1, "subsample": 1.0, "reg_lambda": 0.5}).fit(DATA)  # type: ignore[arg-type]
    ((tree,),) = learner.trees_
    leaf = assign_leaves(tree, DATA.X)
    gradients = parse_objective("NDCG@10").bind(DATA, random_state=2).gradients(np.zeros(DATA.n_docs))
    for number in range(tree.n_leaves):
        lambdas, rhos = gradients.lambdas[leaf == number], gradients.rhos[leaf == number]
        expected = 0.3 * lambdas.sum(dtype=np.float64) / (rhos.sum(dtype=np.float64) + 0.5)
        assert tree.leaf_value[number] == pytest.approx(expected, rel=1e-6)
    np.testing.assert_array_equal(tree.leaf_cover, np.bincount(leaf))


def test_as_many_as_there_are_is_the_same_as_all() -> None:
    def model(split_docs: int | None) -> dict[str, object]:
        ranker = LambdaMART(**{**SMALL, "split_docs": split_docs}).fit(DATA).ranker_  # type: ignore[arg-type]
        assert isinstance(ranker, TreeEnsemble)
        return {**ranker.to_dict(), "training": None}

    assert model(DATA.n_docs) == model(None) != model(500)


@pytest.mark.parametrize("options", [{}, {"colsample_bytree": 0.5}, {"quantized": False}, {"split": "mse"}])
def test_threads_and_interruptions_change_nothing(options: dict[str, object], tmp_path: Path) -> None:
    data = make_data(80, n_docs=50, n_features=130, random_state=1)  # enough for two threads of LightGBM

    def scores(**more: object) -> np.ndarray:
        return LambdaMART(**{**SMALL, **options, **more}).fit(data).predict(data)  # type: ignore[arg-type]

    whole = scores(n_jobs=1)
    np.testing.assert_array_equal(whole, scores(n_jobs=2))
    path = tmp_path / "checkpoint"
    scores(n_jobs=2, n_estimators=3, checkpoint=path, checkpoint_every=1)
    np.testing.assert_array_equal(whole, scores(n_jobs=2, checkpoint=path))


@pytest.mark.parametrize("kind", [LambdaMART, MART, McRank])
def test_a_fifth_of_the_documents_teaches_nearly_as_much(kind: type[LambdaMART]) -> None:
    learned = make_data(300, n_docs=30, n_features=10, random_state=4)
    unseen = make_data(200, n_docs=30, n_features=10, random_state=4, part=1)
    shape = {"n_estimators": 40, "num_leaves": 10, "learning_rate": 0.2, "random_state": 0}
    everyone, fifth = (
        kind(**shape, split_docs=most).fit(learned).score(unseen)  # type: ignore[arg-type]
        for most in (None, learned.n_docs // 5)
    )
    assert fifth != everyone
    assert fifth > everyone - 0.03  # a random ranker has 0.35, all documents 0.86 to 0.92


def test_refused_where_it_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(GradrankError, match="split_docs is not offered on workers"):
        check_offered(LambdaMART(split_docs=100))
    with pytest.raises(GradrankError, match="split_docs does not go with monotone_constraints"):
        LambdaMART(split_docs=100, monotone_constraints=(1,) + (0,) * 7).fit(DATA)
    write_binary(DATA, tmp_path / "data")
    with pytest.raises(GradrankError, match="split_docs needs the features in memory"):
        LambdaMART(split_docs=100).fit(open_binary(tmp_path / "data"))
    with pytest.raises(GradrankError, match="split_docs"):
        LambdaMART(split_docs=0).fit(DATA)

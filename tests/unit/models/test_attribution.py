"""Differences of scores divided among features, beside the definitions worked out over all subsets and fine lines."""

from __future__ import annotations

from itertools import combinations, pairwise
from math import factorial

import lightgbm
import numpy as np
import pytest
from sklearn.svm import SVR

from gradrank.errors import ModelError
from gradrank.models.attribution.mixtures import OfMixtures
from gradrank.models.foreign import ForeignRanker
from gradrank.models.linear import LinearRanker
from gradrank.models.nets.net import NetRanker
from gradrank.models.nets.scaling import Scaling
from gradrank.models.ranker import Ranker
from gradrank.models.trees.ensemble import Tree, TreeEnsemble
from gradrank.models.weighted_sum import WeightedSum
from tests.support.rankers import NAMES, example_rankers, feature_rows, trained_booster

X, _ = feature_rows(60)
FIRST, SECOND = np.arange(0, 30), np.arange(30, 60)


def all_subsets(value, n: int) -> np.ndarray:
    """Shapley values of a game by its definition; value takes the set of players that take part."""
    found = np.zeros(n)
    for player in range(n):
        others = [other for other in range(n) if other != player]
        for size in range(n):
            chance = factorial(size) * factorial(n - size - 1) / factorial(n)
            for chosen in combinations(others, size):
                found[player] += chance * (value({*chosen, player}) - value(set(chosen)))
    return found


def goes_left(tree: Tree, node: int, x: float) -> bool:
    """Which way a value goes, by the words of the model format, without the package's kernels."""
    kind = int(tree.decision[node])
    if kind & 1:
        if not x > -1:
            return False
        number = int(tree.threshold[node])
        words = tree.cat_words[tree.cat_start[number] : tree.cat_start[number + 1]]
        return int(x) // 32 < len(words) and bool(int(words[int(x) // 32]) >> (int(x) % 32) & 1)
    if np.isnan(x):
        return bool(kind & 2) if kind & 8 else tree.threshold[node] >= 0
    return bool(x <= tree.threshold[node])


def expected_value(tree: Tree, x: np.ndarray, known: set[int]) -> float:
    """The mean of a tree where only some features are known: unknown ones take both branches, by their documents."""
    cover = tree.node_cover()

    def documents(child: int) -> float:
        return float(cover[child] if child >= 0 else tree.leaf_cover[~child])

    def below(child: int) -> float:
        if child < 0:
            return float(tree.leaf_value[~child])
        left, right, feature = int(tree.left[child]), int(tree.right[child]), int(tree.split_feature[child])
        if feature in known:
            return below(left if goes_left(tree, child, x[feature]) else right)
        share = documents(left) / documents(child)
        return share * below(left) + (1 - share) * below(right)

    return below(0 if tree.n_nodes else -1)


@pytest.fixture(scope="module")
def trees() -> TreeEnsemble:
    """Splits by numbers and by categories, with missing values in both."""
    made = TreeEnsemble.from_lightgbm(trained_booster(cat_smooth=1))
    assert any((tree.decision & 1).any() for tree in made.trees)
    assert any((tree.decision & 8).any() for tree in made.trees)
    return made


def test_shares_by_training_documents_are_those_of_all_subsets_and_of_lightgbm(trees: TreeEnsemble) -> None:
    found = trees.attribution(X).between(FIRST, SECOND)
    lightgbms = trained_booster(cat_smooth=1).predict(X, pred_contrib=True)[:, :-1]
    np.testing.assert_allclose(found, lightgbms[FIRST] - lightgbms[SECOND], rtol=0, atol=1e-12)
    for pair in range(6):

        def of(x: np.ndarray) -> np.ndarray:
            return all_subsets(lambda known: sum(expected_value(tree, x, known) for tree in trees.trees), 3)

        np.testing.assert_allclose(found[pair], of(X[FIRST[pair]]) - of(X[SECOND[pair]]), rtol=0, atol=1e-12)


def mixtures_by_definition(ranker: Ranker, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Shapley values of the scores of mixtures of two documents, over all subsets."""

    def value(chosen: set[int]) -> float:
        mixed = b.copy()
        mixed[list(chosen)] = a[list(chosen)]
        return float(ranker.predict(mixed[None])[0])

    return all_subsets(value, len(a))


def test_shares_by_the_other_document_are_those_of_all_subsets(trees: TreeEnsemble) -> None:
    found = trees.attribution(X, reference="other").between(FIRST, SECOND)
    for pair in range(len(FIRST)):
        expected = mixtures_by_definition(trees, X[FIRST[pair]], X[SECOND[pair]])
        np.testing.assert_allclose(found[pair], expected, rtol=0, atol=1e-12)


def test_deep_trees_that_ask_a_feature_again_and_again() -> None:
    rng = np.random.default_rng(3)
    documents = np.round(rng.normal(size=(400, 7)), 1)
    y = np.sin(3 * documents[:, 0]) * documents[:, 1] + documents[:, 2] * documents[:, 3] - documents[:, 4]
    settings = {"verbose": -1, "num_threads": 1, "num_leaves": 60, "min_data_in_leaf": 2}
    model = TreeEnsemble.from_lightgbm(lightgbm.train(settings, lightgbm.Dataset(documents, y), 4))
    # As it is, and as the kernel reads float32.
    for given in (documents, documents.astype(np.float32)):
        found = model.attribution(given, reference="other").between(FIRST, SECOND)
        for pair in (0, 7, 11):
            expected = mixtures_by_definition(model, given[FIRST[pair]], given[SECOND[pair]])
            np.testing.assert_allclose(found[pair], expected, rtol=0, atol=1e-12)
        assert np.abs(found).max() > 0.1


def test_features_in_which_documents_agree_have_no_share_by_the_other(trees: TreeEnsemble) -> None:
    documents = X.copy()
    documents[30:, 0] = documents[:30, 0]
    found = trees.attribution(documents, reference="other").between(FIRST, SECOND)
    assert not found[:, 0].any()
    assert found[:, 2].any()


def test_trees_that_know_no_training_documents_explain_pairs() -> None:
    stump = Tree.numerical(split_feature=[0], threshold=[0.5], left=[-1], right=[-2], leaf_value=[1.0, 3.0])
    model = TreeEnsemble([stump, Tree.of(leaf_value=[5.0])], ["a", "b"])
    shares = model.attribution([[1.0, 0.0], [0.0, 9.0]])
    assert shares.between(np.array([0]), np.array([1])).tolist() == [[2.0, 0.0]]
    assert "between the two documents" in shares.ways[0]
    with pytest.raises(ModelError, match="number of training documents"):
        model.attribution([[1.0, 0.0]], reference="training")
    with pytest.raises(ModelError, match="knows nothing of its training documents"):
        example_rankers()["net"].attribution(X, reference="training")


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("log", [False, True])
def test_nets_follow_the_line_between_the_documents(activation: str, log: bool) -> None:
    rng = np.random.default_rng(5)
    sizes = [3, 6, 4, 1]
    layers = [(rng.normal(size=(b, a)), rng.normal(size=b)) for a, b in pairwise(sizes)]
    scaling = Scaling(np.array([0.2, 0.0, 12.0]), np.array([0.5, 0.0, 8.0]), log)
    net = NetRanker(layers, activation=activation, scaling=scaling)
    found = net.attribution(X).between(FIRST[:4], SECOND[:4])
    np.testing.assert_allclose(
        found.sum(axis=1), net.predict(X[FIRST[:4]]) - net.predict(X[SECOND[:4]]), rtol=0, atol=1e-11
    )
    assert not found[:, 1].any()  # constant in training
    # By the definition: small steps along the line, in the scaled space, slopes by finite differences.
    plain = NetRanker(layers, activation=activation)
    scaled = net.scaling.exactly(X)
    steps = (np.arange(4000) + 0.5) / 4000
    for pair in range(4):
        a, b = scaled[FIRST[pair]], scaled[SECOND[pair]]
        line = b + steps[:, None] * (a - b)
        for feature in range(3):
            nudge = np.zeros(3)
            nudge[feature] = 1e-6
            slope = ((plain.predict(line + nudge) - plain.predict(line - nudge)) / 2e-6).mean()
            assert found[pair, feature] == pytest.approx((a - b)[feature] * slope, abs=2e-3)


def test_a_net_whose_nodes_cancel_is_not_cut_forever() -> None:
    # The ends score 0, up to rounding of numbers of 1e9.
    layers = [([[1.0], [1.0]], [0.0, 1e-9]), ([[1e9, -1e9]], [0.0])]
    shares = NetRanker(layers).attribution([[1.0], [-1.0]])
    assert np.isfinite(shares.between(np.array([0]), np.array([1]))).all()


def test_expected_grades_weigh_the_classes_by_their_mean_slope() -> None:
    ranker = example_rankers()["expected_grade"]
    found = ranker.attribution(X).between(FIRST[:5], SECOND[:5])
    raw = np.column_stack([ensemble.predict(X) for ensemble in ranker.ensembles])
    classes = [ensemble.contributions(X)[:, :-1] for ensemble in ranker.ensembles]
    steps = (np.arange(20_000) + 0.5) / 20_000
    for pair in range(5):
        a, b = FIRST[pair], SECOND[pair]
        z = raw[b] + steps[:, None] * (raw[a] - raw[b])
        chances = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        slopes = (chances * (ranker.grades - (chances @ ranker.grades)[:, None])).mean(axis=0)
        expected = sum(slope * (part[a] - part[b]) for slope, part in zip(slopes, classes, strict=True))
        np.testing.assert_allclose(found[pair], expected, atol=1e-8)


def test_steep_expected_grades_still_add_up() -> None:
    stump = Tree.numerical(split_feature=[0], threshold=[0.5], left=[-1], right=[-2], leaf_value=[-400.0, 900.0])
    from gradrank.models.trees.expected_grade import ExpectedGrade

    ranker = ExpectedGrade([TreeEnsemble([stump], ["a"]), TreeEnsemble([Tree.of(leaf_value=[1.0])], ["a"])], [0.0, 3.0])
    shares = ranker.attribution([[0.0], [1.0]]).between(np.array([0]), np.array([1]))
    assert shares[0, 0] == pytest.approx(3.0, abs=1e-9)


@pytest.mark.parametrize("n_features", [4, 14])
def test_what_only_scores_is_explained_by_mixtures(n_features: int) -> None:
    rng = np.random.default_rng(9)
    documents = rng.normal(size=(80, n_features))
    y = documents[:, 0] * documents[:, 1] + documents[:, 2]
    ranker = ForeignRanker(SVR().fit(documents, y))
    shares = ranker.attribution(documents)
    found = shares.between(np.array([0, 1]), np.array([2, 1]))
    scores = ranker.predict(documents)
    assert found[0].sum() == pytest.approx(scores[0] - scores[2], abs=1e-12)
    assert not found[1].any()
    assert shares.against_all(5).sum() == pytest.approx(scores[5] - scores.mean(), abs=1e-12)
    if n_features == 4:
        expected = mixtures_by_definition(ranker, documents[0], documents[2])
        np.testing.assert_allclose(found[0], expected, atol=1e-12)


def test_random_orders_come_near_all_subsets() -> None:
    documents = np.random.default_rng(2).normal(size=(2, 12))
    weights = np.arange(1.0, 13.0)

    def score(rows: np.ndarray) -> np.ndarray:
        return rows @ weights + rows[:, 0] * rows[:, 11]

    found = OfMixtures(documents, score).between(np.array([0]), np.array([1]))[0]
    a, b = documents
    expected = weights * (a - b)
    # The product's two features share it by (a + b) / 2 of the other one.
    expected[0] += (a[0] - b[0]) * (a[11] + b[11]) / 2
    expected[11] += (a[11] - b[11]) * (a[0] + b[0]) / 2
    np.testing.assert_allclose(found, expected, atol=1e-12)  # exact, since each order has its reverse


def test_parts_of_a_sum_take_their_own_features() -> None:
    both = WeightedSum(
        [(2.0, LinearRanker([1.0, 10.0], feature_names=["b", "a"])), (0.0, LinearRanker([7.0], feature_names=["c"]))],
        feature_names=["a", "b", "c"],
    )
    shares = both.attribution([[1.0, 5.0, 3.0], [2.0, 4.0, 9.0]])
    assert shares.between(np.array([0]), np.array([1])).tolist() == [[-20.0, 2.0, 0.0]]
    assert shares.against_all(0).tolist() == [-10.0, 1.0, 0.0]


@pytest.mark.parametrize("ranker", example_rankers().values(), ids=list(example_rankers()))
@pytest.mark.parametrize("reference", [None, "other"])
def test_one_document_against_all_is_the_mean_over_each(ranker: Ranker, reference) -> None:
    shares = ranker.attribution(X, reference=reference)
    each = shares.between(np.full(len(X), 4), np.arange(len(X)))
    np.testing.assert_allclose(shares.against_all(4), each.mean(axis=0), rtol=0, atol=1e-10)
    assert shares.n_features == len(NAMES)

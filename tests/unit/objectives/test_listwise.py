"""Listwise, pairwise and focused losses: equal to enumeration, and λ, ρ are their derivatives."""

from __future__ import annotations

from itertools import permutations
from math import exp, factorial, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradrank.data import RankingData
from gradrank.errors import GradrankError
from gradrank.objectives import Focused, ListMLE, ListNet, Objective, RankNetPairs, Regression, parse_objective
from gradrank.objectives.judged_lists import subset_tables
from gradrank.objectives.kernels.listwise_kernel import _narrow_list, _wide_list

NAN = float("nan")


def one_query(labels: list[float]) -> RankingData:
    return RankingData.from_arrays(np.zeros((len(labels), 1)), labels, group=[len(labels)])


def plackett_luce(weights: np.ndarray, order: tuple[int, ...]) -> float:
    """Probability of an order: places are filled one by one, with chances in proportion to the weights left."""
    chance, left = 1.0, float(weights.sum())
    for i in order:
        chance *= weights[i] / left
        left -= weights[i]
    return chance


def enumerated(labels: np.ndarray, scores: np.ndarray) -> float:
    """ListNet's loss as printed: −Σ over all orders of P_labels·log P_scores."""
    truth, model = np.exp(labels), np.exp(scores)
    return -sum(
        plackett_luce(truth, order) * log(plackett_luce(model, order)) for order in permutations(range(len(labels)))
    )


def derivatives(bound: object, scores: np.ndarray, h: float = 1e-4) -> tuple[np.ndarray, np.ndarray]:
    """−∂loss/∂s and ∂²loss/∂s² by central differences."""
    loss = bound.loss  # type: ignore[attr-defined]
    slopes, bends = np.empty(len(scores)), np.empty(len(scores))
    for i in range(len(scores)):
        up, down = scores.copy(), scores.copy()
        up[i] += h
        down[i] -= h
        slopes[i] = -(loss(up) - loss(down)) / (2 * h)
        bends[i] = (loss(up) - 2 * loss(scores) + loss(down)) / h**2
    return slopes, bends


OBJECTIVES: list[Objective] = [
    ListNet(), ListNet(exact=True), ListMLE(), ListMLE(k=3), RankNetPairs(), RankNetPairs(sigma=1.7), Focused(k=4),
    Focused(k=3, beta=0.0), Focused(k=4, beta=1.0), Regression(),
]  # fmt: skip


def made_up(objective: Objective, random_state: int) -> tuple[RankingData, np.ndarray]:
    rng = np.random.default_rng(random_state)
    sizes = rng.integers(1, 9, 7)
    n = int(sizes.sum())
    labels = rng.integers(0, 4, n).astype(np.float32)
    if isinstance(objective, Focused):
        labels = np.concatenate([rng.permutation(np.maximum(4 - np.arange(size), 0)) for size in sizes])
    labels = labels.astype(np.float32)
    labels[rng.random(n) < 0.15] = np.nan
    data = RankingData.from_arrays(np.zeros((n, 1)), labels, group=sizes, weight=rng.uniform(0.5, 2.0, 7))
    return data, rng.normal(size=n)


@pytest.mark.kernel
@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
def test_gradients_are_derivatives_of_the_loss(objective: Objective) -> None:
    data, scores = made_up(objective, 4)
    bound = objective.bind(data)
    got = bound.gradients(scores)
    slopes, bends = derivatives(bound, scores)
    # λ and ρ are in single precision; second differences of a loss of about 50 lose seven more digits.
    np.testing.assert_allclose(got.lambdas, slopes, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(got.rhos, bends, rtol=1e-4, atol=1e-5)
    assert objective.has_curvature
    assert (got.rhos >= 0).all()


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6])
def test_exact_listnet_is_the_sum_over_all_orders(k: int) -> None:
    rng = np.random.default_rng(k)
    for labels in (rng.integers(0, 4, k).astype(float), np.arange(k, 0, -1.0), rng.permutation(k).astype(float)):
        if len(set(labels)) > 1:
            scores = rng.normal(size=k) * 2
            got = ListNet(exact=True).bind(one_query(list(labels))).loss(scores)
            np.testing.assert_allclose(got, enumerated(labels, scores), rtol=1e-10)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 5), st.floats(-4, 4)), min_size=2, max_size=5))
def test_exact_listnet_on_random_lists(documents: list[tuple[int, float]]) -> None:
    labels, scores = np.array(documents).T
    if len(set(labels)) == 1:
        return
    bound = ListNet(exact=True).bind(one_query(list(labels)))
    np.testing.assert_allclose(bound.loss(scores), enumerated(labels, scores), rtol=1e-9)


def test_listnet_of_two_documents_is_both_forms() -> None:
    """With two documents the first place decides the order: top one and exact agree."""
    data, scores = one_query([2.0, 0.0]), np.array([-0.3, 0.4])
    one, all_orders = (ListNet(exact=exact).bind(data) for exact in (False, True))
    p_y, p_s = 1 / (1 + exp(-2.0)), 1 / (1 + exp(0.7))
    np.testing.assert_allclose(one.loss(scores), -p_y * log(p_s) - (1 - p_y) * log(1 - p_s), rtol=1e-12)
    np.testing.assert_allclose(one.loss(scores), all_orders.loss(scores), rtol=1e-12)
    np.testing.assert_allclose(one.gradients(scores).lambdas, [p_y - p_s, p_s - p_y], rtol=1e-6)
    np.testing.assert_allclose(all_orders.gradients(scores).lambdas, [p_y - p_s, p_s - p_y], rtol=1e-6)


def test_listmle_worked_example() -> None:
    """Labels 0, 2, 1: the true order is second, third, first."""
    data, s = one_query([0.0, 2.0, 1.0]), np.array([1.0, 2.0, -1.0])
    first = log(exp(1) + exp(2) + exp(-1)) - 2.0
    second = log(exp(1) + exp(-1)) + 1.0
    np.testing.assert_allclose(ListMLE(k=1).bind(data).loss(s), first, rtol=1e-12)
    for k in (2, 3, 10, None):
        np.testing.assert_allclose(ListMLE(k=k).bind(data).loss(s), first + second, rtol=1e-12)


def test_listmle_is_the_likelihood_of_the_order() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=6)
    loss = ListMLE().bind(one_query([6.0, 5.0, 4.0, 3.0, 2.0, 1.0])).loss(scores)
    np.testing.assert_allclose(loss, -log(plackett_luce(np.exp(scores), tuple(range(6)))), rtol=1e-12)


def test_listmle_orders_tied_labels_by_the_seed() -> None:
    data, scores = one_query([1.0, 1.0, 1.0, 0.0]), np.array([3.0, 2.0, 1.0, 0.0])
    losses = {round(ListMLE().bind(data, random_state=random_state).loss(scores), 9) for random_state in range(60)}
    orders = [(*order, 3) for order in permutations(range(3))]
    assert losses == {round(-log(plackett_luce(np.exp(scores), order)), 9) for order in orders}
    assert ListMLE().bind(data, random_state=5).loss(scores) == ListMLE().bind(data, random_state=5).loss(scores)


def test_ranknet_worked_example() -> None:
    data, s = one_query([0.0, 2.0, NAN, 1.0]), np.array([1.0, 2.0, 5.0, -1.0])
    bound = RankNetPairs().bind(data)
    p = [1 / (1 + exp(o)) for o in (1.0, 3.0, -2.0)]  # second over first, second over fourth, fourth over first
    got = bound.gradients(s, count_pairs=True)
    np.testing.assert_allclose(got.lambdas, [-p[0] - p[2], p[0] + p[1], 0.0, p[2] - p[1]], rtol=1e-6)
    np.testing.assert_allclose(bound.loss(s), sum(log(1 + exp(-o)) for o in (1.0, 3.0, -2.0)), rtol=1e-12)
    assert got.effective_pairs == 3


def test_ranknet_takes_labels_below_zero_for_what_they_are() -> None:
    lambdas = RankNetPairs().bind(one_query([-2.0, -1.0, 0.0])).gradients(np.zeros(3)).lambdas
    assert lambdas.tolist() == [-1.0, 0.0, 1.0]


def test_focused_is_its_two_parts() -> None:
    rng = np.random.default_rng(2)
    labels = np.array([0.0, 3.0, 0.0, 1.0, 2.0, 0.0])
    scores = rng.normal(size=6)
    top, rest = [1, 4, 3], [0, 2, 5]
    listwise = enumerated(labels[top], scores[top]) / log(factorial(3))
    pairwise = sum(log(1 + exp(scores[f] - scores[t])) for t in top for f in rest) / (9 * log(2))
    for beta in (0.0, 0.3, 1.0):
        bound = Focused(k=3, beta=beta).bind(one_query(list(labels)))
        np.testing.assert_allclose(bound.loss(scores), beta * listwise + (1 - beta) * pairwise, rtol=1e-10)
        assert bound.gradients(scores, count_pairs=True).effective_pairs == (9 if beta < 1 else 0)
        np.testing.assert_allclose(bound.loss(np.zeros(6)), 1.0, rtol=1e-12)


def test_focused_takes_the_top_of_a_longer_truth() -> None:
    """A truth of ten and k = 3: labels below the third are the rest, whatever their order."""
    scores = np.random.default_rng(3).normal(size=5)
    long = Focused(k=3).bind(one_query([10.0, 9.0, 8.0, 7.0, 6.0]))
    short = Focused(k=3).bind(one_query([3.0, 2.0, 1.0, 0.0, 0.0]))
    np.testing.assert_allclose(long.loss(scores), short.loss(scores), rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "labels", "message"),
    [
        ("Focused", [2, 2, 0], "query 1 has two documents with label 2, expected position labels"),
        ("Focused(k=2)", [3, 2, 2, 0], "two documents with label 2"),
        ("Focused", [1.5, 0], "expected a position label"),
        ("ListNet(exact=true)", list(range(13)), r"query 1 has 13 judged documents, .* up to 12; use ListNet"),
        ("ListNet(label=clicks)", [1, 0], "clicks"),
    ],
)
def test_labels_that_do_not_fit(name: str, labels: list[float], message: str) -> None:
    with pytest.raises(GradrankError, match=message):
        parse_objective(name).bind(one_query(labels))


@pytest.mark.parametrize("objective", OBJECTIVES[:-1], ids=str)
def test_wild_scores_stay_finite_and_right(objective: Objective) -> None:
    data = one_query([4.0, 3.0, 2.0, 1.0, 0.0, 0.0])
    bound = objective.bind(data)
    for scores in (np.array([-1e6, 1e6, 0.0, 800.0, 1e-9, -5.0]), np.full(6, 1e8), np.array([0.0, 0, 0, 0, 0, 5e4])):
        got = bound.gradients(scores)
        assert np.isfinite(got.lambdas).all()
        assert np.isfinite(got.rhos).all()
        assert np.isfinite(bound.loss(scores))
    # Everything in the right order and far apart: nothing is left to push, but for ListNet's uncertain truth.
    perfect = np.array([4e3, 3e3, 2e3, 1e3, 0.0, 0.0])
    if "ListNet" not in str(objective) and not (isinstance(objective, Focused) and objective.beta > 0):
        got = bound.gradients(perfect).lambdas
        np.testing.assert_allclose(got[:4], 0.0, atol=1e-6)


@pytest.mark.kernel
@pytest.mark.parametrize("objective", [RankNetPairs(), ListNet(), ListMLE()], ids=str)
def test_far_apart_scores_are_no_special_case(objective: Objective) -> None:
    """Scores too far apart for single-precision powers still give close pairs their forces."""
    data = one_query([2.0, 1.0, 1.0, 0.0])
    bound = objective.bind(data)
    scores = np.array([0.3, 0.1, 500.0, 0.0])
    slopes, _ = derivatives(bound, scores, h=1e-3)
    np.testing.assert_allclose(bound.gradients(scores).lambdas, slopes, rtol=1e-5, atol=1e-6)


@settings(max_examples=25)
@given(st.lists(st.floats(-20, 20), min_size=2, max_size=6), st.integers(0, 1000))
def test_careful_and_fast_sums_over_orders_agree(scores: list[float], random_state: int) -> None:
    k = len(scores)
    z = np.array(scores)
    chances = subset_tables(
        np.sort(np.random.default_rng(random_state).random(k) * 5)[::-1], np.array([0]), np.array([k])
    )[0]
    fast, careful = np.empty((2, k)), np.empty((2, k))
    sums, best = np.empty(1 << k), np.empty(1 << k, dtype=np.int8)
    weights = np.random.default_rng(random_state).random(k) + 0.5
    one = _narrow_list(k, z, z.max(), weights, chances, True, sums, np.empty(2 << k), *fast)
    two = _wide_list(k, z, weights, chances, np.empty((k, k)), best, sums, *careful)
    np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(fast, careful, rtol=1e-9, atol=1e-9)


def test_tables_are_shared_by_lists_of_the_same_labels() -> None:
    data = RankingData.from_arrays(np.zeros((40, 1)), [3, 2, 1, 0] * 10, group=[4] * 10)
    bound = Focused(k=3).bind(data)
    assert len(bound._tables) == 2**3

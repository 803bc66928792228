"""Tiers: the weighted sum of their parts over the pairs that each may see."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank.data import RankingData
from gradrank.errors import GradrankError
from gradrank.measures import CNDCG, NDCG
from gradrank.objectives import Lambda, RankNet, Scheduled, Tiered, parse_objective, recommended
from tests.support.data import judged_lists

NAN = float("nan")


def made_up(random_state: int, *, missing: float = 0.0) -> tuple[RankingData, np.ndarray]:
    values = {"label": [0, 1, 2], "clicks": [0, 0.1, 0.3, 0.7], "fresh": [0, 1, 2]}
    data, scores = judged_lists(random_state, values, missing=missing)
    if missing:
        data.labels["label"][: data.sizes[0]] = np.nan  # a query without any grade
        data.labels["clicks"][-data.sizes[-1] :] = np.nan  # a query without any click label
    return data, scores


THREE = Tiered((Lambda(NDCG()), Lambda(CNDCG(3)), Lambda(NDCG(label="fresh"), cost=RankNet(2.0))), (0.7, 0.2, 0.1))
TWO = Tiered((Lambda(NDCG(5)), Lambda(CNDCG())), (0.6, 0.4))


def tied(a: float, b: float) -> bool:
    return a == b or (np.isnan(a) and np.isnan(b))


def by_definition(objective: Tiered, data: RankingData, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of documents, tier by tier."""
    lambdas, rhos = np.zeros(data.n_docs), np.zeros(data.n_docs)
    sources = [data.label(t.target.label or t.target.default_source).astype(float) for t in objective.tiers]
    for start, end in zip(data.indptr[:-1], data.indptr[1:], strict=True):
        rows = range(start, end)
        present = [
            w for w, labels in zip(objective.weights, sources, strict=True) if not np.isnan(labels[start:end]).all()
        ]
        for number, tier in enumerate(objective.tiers):
            labels = sources[number]
            deltas = tier.target.swap_deltas_by_definition(labels[start:end], scores[start:end])
            share = objective.weights[number] / sum(present) if present else 0.0
            for i in rows:
                for j in rows:
                    if not labels[i] > labels[j]:
                        continue
                    if not all(tied(above[i], above[j]) for above in sources[:number]):
                        continue
                    if number > 0 and not objective.zeros and (labels[i] == 0 or labels[j] == 0):
                        continue
                    o = scores[i] - scores[j]
                    size = share * abs(deltas[i - start, j - start])
                    lambdas[i] += size * tier.cost.force(o)
                    lambdas[j] -= size * tier.cost.force(o)
                    rhos[i] += size * tier.cost.curvature(o)
                    rhos[j] += size * tier.cost.curvature(o)
    return lambdas, rhos


@pytest.mark.parametrize("missing", [0.0, 0.25])
@pytest.mark.parametrize("objective", [TWO, THREE, Tiered(TWO.tiers, TWO.weights, zeros=True)], ids=str)
@given(random_state=st.integers(0, 500))
def test_tiers_are_the_weighted_sum_of_their_pairs(missing: float, objective: Tiered, random_state: int) -> None:
    data, scores = made_up(random_state, missing=missing)
    got = objective.bind(data).gradients(scores)
    lambdas, rhos = by_definition(objective, data, scores)
    np.testing.assert_allclose(got.lambdas, lambdas, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(got.rhos, rhos, rtol=1e-4, atol=1e-6)


@given(random_state=st.integers(0, 500))
def test_tiers_never_share_a_pair(random_state: int) -> None:
    data, _ = made_up(random_state, missing=0.2)
    labels = [data.label(source) for source in ("label", "clicks", "fresh")]
    bound = THREE.bind(data)
    possible = 0
    for start, end in zip(data.indptr[:-1], data.indptr[1:], strict=True):
        possible += (end - start) * (end - start - 1) // 2
    # A pair belongs to at most one tier, so the tiers together cannot have more pairs than there are.
    assert sum(bound.pairs()) <= possible
    graded = sum(
        int(labels[0][i] > labels[0][j])
        for start, end in zip(data.indptr[:-1], data.indptr[1:], strict=True)
        for i in range(start, end)
        for j in range(start, end)
    )
    assert bound.pairs()[0] == graded


@pytest.mark.kernel
def test_complete_labels_give_the_papers_mixture() -> None:
    data, scores = made_up(3)
    got = TWO.bind(data).gradients(scores).lambdas
    alone = Lambda(NDCG(5)).bind(data).gradients(scores).lambdas
    clicks = (got - 0.6 * alone) / 0.4
    equal_grades = Tiered(TWO.tiers, (0.0, 1.0)).bind(data).gradients(scores).lambdas
    np.testing.assert_allclose(clicks, equal_grades, atol=1e-5)


@pytest.mark.kernel
def test_clicks_never_push_against_grades() -> None:
    data = RankingData.from_arrays(np.zeros((2, 1)), {"label": [0, 1], "clicks": [0.9, 0.1]}, qid=[1, 1])
    lambdas = TWO.bind(data).gradients(np.array([1.0, 0.0])).lambdas
    assert lambdas[1] > 0 > lambdas[0]


@pytest.mark.parametrize(
    "name",
    [
        "Tiered(Lambda(NDCG), Lambda(CNDCG(label=clicks)), weight=0.2)",
        "Tiered(Lambda(NDCG@3), Lambda(CNDCG@3, cost=sigmoid), Lambda(NDCG(label=fresh)), weights=[0.7, 0.2, 0.1])",
        "Tiered(Lambda(NDCG), Lambda(CNDCG), weight=0.5, zeros=true)",
        "Tiered(Lambda(NDCG, construction=ideal-pairs), Lambda(CNDCG), weight=0.5, normalize=deviation)",
    ],
)
def test_name_round_trip(name: str) -> None:
    assert str(parse_objective(name)) == name
    assert parse_objective(str(parse_objective(name))) == parse_objective(name)


def test_bare_measures_in_a_name() -> None:
    name, measures = "Tiered(NDCG, CNDCG(label=clicks), weight=0.2)", (NDCG(), CNDCG(label="clicks"))
    assert parse_objective(name) == Tiered(tuple(recommended(m) for m in measures), (0.8, 0.2))
    assert parse_objective(name, bare=Lambda) == Tiered(tuple(Lambda(m) for m in measures), (0.8, 0.2))


def test_weights_of_the_lower_tiers_are_enough() -> None:
    tiers = "Tiered(NDCG, CNDCG, NDCG(label=fresh), "
    assert parse_objective(tiers + "weights=(0.2, 0.1))") == parse_objective(tiers + "weights=[0.7, 0.2, 0.1])")
    assert parse_objective("Tiered(NDCG, CNDCG, weights=[0.9])").weights == (0.1, 0.9)
    assert parse_objective("Tiered(NDCG, CNDCG)").weights == (0.8, 0.2)
    assert parse_objective("Tiered(NDCG, CNDCG, NDCG(label=fresh))").weights == (0.8, 0.1, 0.1)
    with pytest.raises(GradrankError, match="shares that add up to 1"):
        parse_objective(tiers + "weights=[0.7, 0.6])")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Tiered(NDCG)", "two tiers take weight"),
        ("Tiered(NDCG, CNDCG, weight=2)", "shares that add up to 1"),
        ("Tiered(NDCG, CNDCG, weights=[1, 2, 3])", "3 weights for 2 tiers"),
        ("Tiered(NDCG, CNDCG, weight=x)", "take weight=number"),
        ("Tiered(NDCG, CNDCG, NDCG(label=fresh), weight=0.1)", "more take weights"),
        ("Tiered(NDCG, MAP, weight=0.1)", "same label source"),
        ("Tiered(NDCG, Regression, weight=0.1)", "two or more measures"),
        ("Tiered(NDCG, Graded(MAP), weight=0.1)", "is not an objective"),
        ("Tiered(NDCG, CNDCG, foo=1)", "Tiered takes measures"),
        ("Tiered(NDCG, CNDCG, zeros=maybe)", "zeros is 'maybe'"),
        ("Tiered(3, CNDCG)", "expected a measure or an objective"),
    ],
)
def test_wrong_names(name: str, message: str) -> None:
    with pytest.raises(GradrankError, match=message):
        parse_objective(name)


@pytest.mark.parametrize("objective", [TWO, THREE, Tiered(TWO.tiers, TWO.weights, zeros=True)], ids=str)
@given(random_state=st.integers(0, 300))
def test_pair_facts_by_counting(objective: Tiered, random_state: int) -> None:
    data, _ = made_up(random_state, missing=0.3)
    sources = [data.label(t.target.label or t.target.default_source) for t in objective.tiers]
    facts = objective.bind(data).pair_facts(data)
    for number, fact in enumerate(facts):
        labels = sources[number]
        counts = []
        for start, end in zip(data.indptr[:-1], data.indptr[1:], strict=True):
            counts.append(
                sum(
                    labels[i] > labels[j]
                    and all(tied(above[i], above[j]) for above in sources[:number])
                    and (number == 0 or objective.zeros or labels[j] > 0)
                    for i in range(start, end)
                    for j in range(start, end)
                )
            )
        assert fact.pairs == sum(counts)
        assert fact.queries == sum(count > 0 for count in counts)
        assert fact.unlabeled_documents == np.isnan(labels).sum()
        parts = np.split(np.isnan(labels), data.indptr[1:-1])
        assert fact.unlabeled_queries == sum(part.all() for part in parts)
        assert (fact.weight, fact.of_queries) == (objective.weights[number], data.n_queries)
    assert [fact.source for fact in facts] == ["label", "clicks", "fresh"][: len(facts)]


def test_pair_facts_of_other_objectives() -> None:
    data, _ = made_up(1)
    single = Lambda(NDCG()).bind(data).pair_facts(data)
    scheduled = parse_objective("Scheduled(NDCG, Lambda(NDCG, cost=sigmoid))")
    both = scheduled.bind(data).pair_facts(data)
    assert [fact.pairs for fact in both] == [single[0].pairs] * 2
    assert parse_objective("Regression").bind(data).pair_facts(data) == []
    nothing = RankingData.from_arrays(np.zeros((2, 1)), [NAN, NAN], qid=[1, 1])
    (fact,) = Lambda(NDCG()).bind(nothing).pair_facts(nothing)
    assert fact.sentence() == (
        "Lambda(NDCG) on label 'label': not a single pair to learn from; 2 documents have no label, 1 query none at all"
    )


def test_a_tier_without_weight_is_not_heard() -> None:
    data, scores = made_up(3, missing=0.2)
    # Without the first query, which has no grade at all.
    complete, scores = data.take_queries(np.arange(1, data.n_queries)), scores[data.indptr[1] :]
    silent = Tiered(TWO.tiers, (1.0, 0.0)).bind(complete).gradients(scores)
    alone = TWO.tiers[0].bind(complete).gradients(scores)
    np.testing.assert_array_equal(silent.lambdas, alone.lambdas)
    np.testing.assert_array_equal(silent.rhos, alone.rhos)


# ---------------------------------------------------------------- normalization
def per_query(data: RankingData, values: np.ndarray) -> list[np.ndarray]:
    return np.split(values, data.indptr[1:-1])


@pytest.mark.parametrize("make", [
    lambda **more: Tiered(TWO.tiers, TWO.weights, **more),
    lambda **more: Scheduled(Lambda(NDCG()), Lambda(CNDCG()), w0=0.3, eta=0.0, **more),
], ids=["tiers", "schedule"])  # fmt: skip
@given(random_state=st.integers(0, 200))
def test_mixed_lambdas_are_divided_by_their_deviation(make: Any, random_state: int) -> None:
    data, scores = made_up(random_state, missing=0.2)
    weight = np.random.default_rng(random_state).uniform(0.5, 2.0, data.n_queries)
    weighted = replace(data, weight=weight)
    bare = make().bind(data).gradients(scores)
    got = make(normalize="deviation").bind(weighted).gradients(scores)
    parts = zip(*(per_query(data, v) for v in (bare.lambdas, bare.rhos, got.lambdas, got.rhos)), weight, strict=True)
    for lambdas, rhos, divided, divided_rhos, factor in parts:
        deviation = np.std(lambdas.astype(np.float64))
        if deviation == 0.0:
            assert not divided.any()
            continue
        np.testing.assert_allclose(divided, factor * lambdas / deviation, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(divided_rhos, factor * rhos / deviation, rtol=1e-4, atol=1e-6)


def test_a_gradient_step_leaves_the_normalization_to_the_user() -> None:
    mixed = TWO.normalized_by_deviation()
    assert mixed == Tiered(TWO.tiers, TWO.weights, normalize="deviation")
    assert mixed.normalized_by_deviation() == mixed
    each = Tiered(tuple(tier.normalized_by_deviation() for tier in TWO.tiers), TWO.weights)
    assert each.normalized_by_deviation() == each


@pytest.mark.parametrize(
    ("form", "normalize"),
    [(recommended, "none"), (Lambda, "none"), (Lambda, "deviation")],
    ids=["recommended", "bare", "divided"],
)
def test_without_weight_a_tier_changes_no_bit(form: Any, normalize: Any) -> None:
    data, scores = made_up(5)
    alone = form(NDCG(5)).normalized_by_deviation() if normalize == "deviation" else form(NDCG(5))
    expected = alone.bind(data).gradients(scores)
    got = Tiered((form(NDCG(5)), form(CNDCG())), (1.0, 0.0), normalize=normalize).bind(data).gradients(scores)
    np.testing.assert_array_equal(got.lambdas, expected.lambdas)
    np.testing.assert_array_equal(got.rhos, expected.rhos)

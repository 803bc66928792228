"""What every objective promises, whatever it is made of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank.data import RankingData
from gradrank.errors import GradrankError
from gradrank.measures import parse_measure
from gradrank.objectives import CONSTRUCTIONS, parse_objective
from gradrank.objectives.kernels.pair_weights import GAP_SCHEMES, LOSS_SCHEMES
from gradrank.objectives.registry import PLAIN

NAMES = [
    *PLAIN,
    "ListNet(exact=true)",
    "ListMLE(k=2)",
    "Focused(k=3, beta=1)",
    "XENDCG(terms=3)",
    "ApproxNDCG(temperature=1, k=3, normalize=deviation)",
    "NDCG@3",
    *(f"LambdaLoss(NDCG, scheme={scheme}, mu=5)" for scheme in LOSS_SCHEMES),
    "LambdaLoss(NDCG@3, normalize=log, gap=true)",
    "LambdaWide(NDCG, mu=0.5)",
    *(f"LambdaGap(P@2, form={form}, add={added})" for form, added in GAP_SCHEMES),
    "Noisy(NDCG@3, samples=2)",
    "Noisy(Lambda(MAP, construction=spring-smooth), scale=0.5)",
    "Tiered(NDCG, CNDCG, weight=0.3)",
    "Scheduled(NDCG, Lambda(MAP, cost=sigmoid), schedule=linear, w0=0.5, eta=0.01)",
    *(f"Lambda({measure}, construction={name})" for name in CONSTRUCTIONS for measure in ("NDCG", "MAP", "MRR")),
]
# Those whose λ's are not forces between documents: they need not add up to 0.
ALONE = ("Regression", "Logistic", "discrete-bounded", "terms=3")
# Losses that are not convex.
SMOOTH = ("ApproxNDCG", "NeuralNDCG")
CLICKS = "clicks"


def made_up(name: str, random_state: int = 0, n_queries: int = 12) -> tuple[RankingData, np.ndarray]:
    rng = np.random.default_rng(random_state)
    sizes = rng.integers(1, 11, n_queries)
    n = int(sizes.sum())
    labels = rng.integers(0, 4, n).astype(np.float32)
    if name.startswith("Focused"):
        labels = np.concatenate([rng.permutation(np.maximum(3 - np.arange(size), 0)) for size in sizes]).astype("f4")
    labels[rng.random(n) < 0.1] = np.nan
    clicks = rng.choice([0.0, 0.2, 0.7], n)
    return RankingData.from_arrays(np.zeros((n, 1)), {"label": labels, CLICKS: clicks}, group=sizes), rng.normal(size=n)


@pytest.mark.parametrize("name", NAMES)
def test_names_read_back(name: str) -> None:
    objective = parse_objective(name)
    assert parse_objective(str(objective)) == objective
    assert str(parse_objective(str(objective))) == str(objective)
    assert hash(objective) == hash(parse_objective(name))


NUMBERS = [
    "RankNet(sigma={})",
    "Focused(k=3, beta={})",
    "ApproxNDCG(temperature={})",
    "Lambda(NDCG, sigma={})",
    "Lambda(MAP, cost=sigmoid, mu={})",
    "Lambda(NDCG, construction=local-gradient, margin={})",
    "LambdaWide(NDCG, mu={})",
    "Noisy(MRR, scale={})",
    "Tiered(NDCG, CNDCG, weight={})",
    "Tiered(NDCG, CNDCG, MAP(label=c), weights=[{0}, {0}])",
    "Scheduled(NDCG, MAP, schedule=linear, w0={0}, eta={0})",
    "RBP(p={})",
    "Graded(NDCG@3, MAP, tolerance={})",
]


@pytest.mark.parametrize("name", NUMBERS)
@given(st.floats(1e-9, 0.4))
def test_names_keep_every_digit_of_a_number(name: str, number: float) -> None:
    """Models, cells and checkpoints are told apart by these names, and commands are repeated by them."""
    parse = parse_measure if name.startswith(("RBP", "Graded")) else parse_objective
    made, neighbor = (parse(name.format(repr(value))) for value in (number, np.nextafter(number, 1.0).item()))
    assert parse(str(made)) == made
    assert str(neighbor) != str(made)


@pytest.mark.parametrize("name", [name for name in NAMES if not any(word in name for word in ALONE)])
def test_forces_add_up_to_nothing(name: str) -> None:
    data, scores = made_up(name)
    lambdas = parse_objective(name).bind(data).gradients(scores).lambdas.astype(float)
    assert lambdas.any()
    for start, end in zip(data.indptr[:-1], data.indptr[1:], strict=True):
        assert abs(lambdas[start:end].sum()) <= 1e-5 * max(1.0, np.abs(lambdas[start:end]).max())


@pytest.mark.parametrize("name", NAMES)
def test_shifted_scores_matter_where_it_is_declared(name: str) -> None:
    data, scores = made_up(name)
    objective = parse_objective(name)
    bound = objective.bind(data)
    lambdas = bound.gradients(scores).lambdas
    # A shift of all scores of a query by a power of two rounds little.
    shifted = bound.gradients(scores + np.repeat(2.0 ** (np.arange(data.n_queries) % 5), data.sizes)).lambdas
    assert np.allclose(shifted, lambdas, rtol=1e-4, atol=1e-5) == objective.shift_invariant


@pytest.mark.parametrize("name", NAMES)
def test_a_convex_loss_lies_below_its_chords(name: str) -> None:
    data, one = made_up(name)
    objective = parse_objective(name)
    bound = objective.bind(data)
    if not objective.convex:
        # λ's of a measure are the derivative of no loss; smooth forms of a measure are losses.
        assert (bound.loss(one) is None) == (name not in SMOOTH)
        return
    for random_state in range(5):
        two = np.random.default_rng(random_state).normal(size=data.n_docs) * 5.0
        middle, ends = bound.loss((one + two) / 2), (bound.loss(one), bound.loss(two))
        assert middle is not None
        assert middle < sum(value or 0.0 for value in ends) / 2


@pytest.mark.parametrize("name", NAMES)
def test_parts_are_not_composed(name: str) -> None:
    objective = parse_objective(name)
    composed = name.startswith(("Tiered", "Scheduled"))
    assert objective.parts == (objective,) or composed
    assert len(objective.parts) == (2 if composed else 1)
    assert all(part.parts == (part,) for part in objective.parts)
    assert set(objective.leading) <= set(objective.parts)
    assert objective.leading[0] == objective.parts[0]
    assert set(objective.sources) == {source for part in objective.parts for source in part.sources}


@pytest.mark.parametrize("name", NAMES)
def test_declared_sources_are_what_is_read(name: str) -> None:
    data, scores = made_up(name)
    objective = parse_objective(name)
    wanted = {source or "label" for source in objective.sources}
    only = replace(data, labels={source: data.label(source) for source in sorted(wanted, reverse=True)})
    np.testing.assert_array_equal(
        objective.bind(only).gradients(scores).lambdas, objective.bind(data).gradients(scores).lambdas
    )
    if "clicks" in wanted:
        with pytest.raises(GradrankError, match="clicks"):
            objective.bind(replace(data, labels={"label": data.label()}))


@pytest.mark.parametrize("name", NAMES)
def test_unjudged_documents_and_single_ones_are_left_alone(name: str) -> None:
    data, scores = made_up(name)
    got = parse_objective(name).bind(data).gradients(scores)
    if "Tiered" not in name:
        unjudged = np.isnan(data.label())
        assert unjudged.any()
        assert not got.lambdas[unjudged].any()
        assert not got.rhos[unjudged].any()
    if name not in ("Regression", "Logistic"):
        single = np.repeat(data.sizes == 1, data.sizes)
        assert single.any()
        assert not got.lambdas[single].any()


@pytest.mark.parametrize("name", NAMES)
def test_nothing_to_learn_gives_nothing(name: str) -> None:
    for labels in ([1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [float("nan")] * 3):
        if name.startswith("Focused") and labels[0] == 1.0:
            continue
        data = RankingData.from_arrays(np.zeros((3, 1)), {"label": labels, CLICKS: np.zeros(3)}, group=[3])
        got = parse_objective(name).bind(data).gradients(np.array([0.3, 0.2, 0.1]), count_pairs=True)
        # Regressions learn from equal labels that scores are to be equal.
        if name not in ("Regression", "Logistic", "Differences"):
            assert not got.lambdas.any()
            assert not got.rhos.any()
            assert got.effective_pairs <= 0


@pytest.mark.parametrize("name", NAMES)
def test_documents_of_equal_weight_weigh_as_their_query(name: str) -> None:
    data, scores = made_up(name)
    weight = np.random.default_rng(1).uniform(0.5, 3.0, data.n_queries)
    given = data.with_document_weight(np.repeat(weight, data.sizes))
    expected = parse_objective(name).bind(data.with_weight(weight)).gradients(scores)
    weighted = parse_objective(name).bind(given).gradients(scores)
    np.testing.assert_allclose(weighted.lambdas, expected.lambdas, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(weighted.rhos, expected.rhos, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_weights_of_queries_scale_their_forces(name: str) -> None:
    data, scores = made_up(name)
    weight = np.random.default_rng(1).uniform(0.5, 3.0, data.n_queries)
    plain = parse_objective(name).bind(data).gradients(scores)
    weighted = parse_objective(name).bind(data.with_weight(weight)).gradients(scores)
    each = np.repeat(weight, data.sizes)
    np.testing.assert_allclose(weighted.lambdas, plain.lambdas * each, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(weighted.rhos, plain.rhos * each, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_threads_change_nothing(name: str) -> None:
    # Enough documents for several blocks; tied scores, which the seed orders.
    data, scores = made_up(name, n_queries=1700)
    scores = np.round(scores)
    one, two = (
        parse_objective(name).bind(data, random_state=3, n_jobs=t).gradients(scores, count_pairs=True) for t in (1, 2)
    )
    np.testing.assert_array_equal(one.lambdas, two.lambdas)
    np.testing.assert_array_equal(one.rhos, two.rhos)
    assert one.effective_pairs == two.effective_pairs


@pytest.mark.parametrize("name", NAMES)
def test_curvature_is_there_where_it_is_declared(name: str) -> None:
    data, scores = made_up(name)
    objective = parse_objective(name)
    rhos = objective.bind(data).gradients(scores).rhos
    if objective.has_curvature:
        assert rhos.any()
        assert (rhos >= 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_following_the_forces_lowers_the_loss(name: str) -> None:
    data, scores = made_up(name)
    bound = parse_objective(name).bind(data)
    before = bound.loss(scores)
    if before is None:
        assert name.startswith(("Lambda", "NDCG", "Tiered", "Scheduled", "Noisy", "XENDCG(terms", "ApproxNDCG(temp"))
        return
    after = bound.loss(scores + 0.01 * bound.gradients(scores).lambdas)
    assert after is not None
    assert after < before

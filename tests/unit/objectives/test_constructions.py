"""Constructions equal a double loop over pairs whose deltas and moves are made by evaluating the measure again."""

from __future__ import annotations

from math import exp, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradrank.data import RankingData
from gradrank.measures import DCG, MAP, MRR, NDCG, REGISTRY, Measure
from gradrank.objectives import (
    CONSTRUCTIONS,
    COSTS,
    Constructed,
    Construction,
    Lambda,
    Printed,
    RankNet,
    RankNetPairs,
    Sigmoid,
)
from gradrank.objectives.constructed import BoundMoves
from gradrank.objectives.constructions import (
    BestSwap,
    DiscreteBounded,
    DiscretePairs,
    HingePairs,
    IdealPairs,
    LocalCost,
    LocalGradient,
    MisrankedPairs,
    PairGradient,
    RankNetWeightPairs,
    SpringPairs,
    SpringSmooth,
    UnitPairs,
)
from tests.support.data import lists_for
from tests.support.measures import measure

TARGETS = ["NDCG", "NDCG@3", "DCG@5", "MeanNDCG", "MAP(rel=2)", "MAP@4", "MRR", "WTA", "P@3", "Recall@3", "RBP", "ERR",
           "CNDCG@4", "KappaNDCG@3", "KappaERR", "KendallTau", "Bpref"]  # fmt: skip
# A measure, a construction or a cost that is not named here is tested as it is.
TARGETS += [name for name in REGISTRY if name not in {measure(target).name for target in TARGETS}]
VARIANTS: list[Construction] = [
    RankNetWeightPairs(), MisrankedPairs(), SpringSmooth(), SpringSmooth(floor=0.2), LocalGradient(),
    LocalGradient(margin=0.3), LocalCost(), LocalCost(reach=3), DiscreteBounded(), DiscreteBounded(bound=0.05),
    UnitPairs(), DiscretePairs(), SpringPairs(margin=0.7), HingePairs(margin=0.7), PairGradient(), IdealPairs(),
    BestSwap(),
]  # fmt: skip
VARIANTS += [kind() for kind in CONSTRUCTIONS.values() if kind not in {type(variant) for variant in VARIANTS}]


def made_up(random_state: int, m: Measure, *, missing: float = 0.15) -> tuple[RankingData, np.ndarray]:
    data, scores = lists_for(m, random_state, queries=8, longest=10, missing=missing, weighted=True)
    return data, scores * 2


def value(m: Measure, labels: np.ndarray, order: list[int]) -> float:
    """The measure of one list in the given order."""
    scores = np.empty(len(order))
    scores[order] = np.arange(len(order), 0, -1)
    data = RankingData.from_arrays(np.zeros((len(order), 1)), {m.default_source or "label": labels}, group=[len(order)])
    return float(np.nan_to_num(m.values(scores, data)[0]))


def facts(m: Measure, labels: np.ndarray) -> tuple[np.ndarray, float, bool]:
    """What tells documents apart under the measure, the query's divisor, and whether nothing is relevant."""
    prepared = m.prepare(labels.astype(np.float32), np.array([0, len(labels)]), 1)
    return prepared.gain, float(prepared.norm[0]), bool(prepared.empty[0] or np.isnan(labels).all())


def oracle(
    objective: Constructed, labels: np.ndarray, scores: np.ndarray, classes: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """λ, ρ and forces of one query, from the definitions and nothing but evaluations of the measure.

    Only documents of the same class make pairs; each class has the places that its documents hold.
    """
    m, construction, n = objective.target, objective.construction, len(labels)
    lambdas, rhos = np.zeros(n), np.zeros(n)
    forces: list[float] = []
    judged = [i for i in range(n) if not np.isnan(labels[i])]
    gain, norm, empty = facts(m, labels)
    order = sorted(range(n), key=lambda i: -scores[i])
    rank = {i: order.index(i) for i in range(n)}
    standing = [i for i in order if i in judged]
    kind = np.zeros(n) if classes is None else classes
    at_ideal: dict[int, int] = {}
    for one in set(kind.tolist()):
        places = [i for i in standing if kind[i] == one]
        at_ideal |= zip(sorted(places, key=lambda i: -gain[i]), places, strict=True)
    now = value(m, labels, order)
    pairs = [(i, j) for i in judged for j in judged if gain[i] > gain[j] and kind[i] == kind[j]]
    if empty or not pairs:
        return lambdas, rhos, forces

    if isinstance(construction, DiscreteBounded):
        for i in judged:
            target = rank[at_ideal[i]]
            moved = [d for d in order if d != i]
            moved.insert(target, i)
            forces.append(min(max(value(m, labels, moved) - now, 0.0), construction.bound))
            lambdas[i] = forces[-1] * np.sign(rank[i] - target)
        return lambdas, rhos, forces

    weights = {}
    for i, j in pairs:
        swapped = [{i: j, j: i}.get(d, d) for d in order]
        weights[i, j] = abs(value(m, labels, swapped) - now)
    best: dict[int, int] = {}
    for i in judged:
        others = [(weights[pair], sum(pair) - i) for pair in pairs if i in pair]
        # Weights that differ in their last bits only are equal.
        largest = max((weight for weight, _ in others), default=0.0) - 1e-12
        if largest > 0.0:
            best[i] = min((j for weight, j in others if weight >= largest), key=rank.__getitem__)

    def acts(i: int, j: int) -> bool:
        distance = abs(standing.index(i) - standing.index(j))
        if isinstance(construction, MisrankedPairs):
            return rank[i] > rank[j]
        if isinstance(construction, LocalGradient):
            return distance == 1
        if isinstance(construction, LocalCost):
            return distance <= construction.reach
        if isinstance(construction, IdealPairs):
            return at_ideal[i] == j or at_ideal[j] == i
        if isinstance(construction, BestSwap):
            return best.get(i) == j or best.get(j) == i
        return True

    for i, j in pairs:
        if not acts(i, j):
            continue
        weight = weights[i, j]
        if isinstance(construction, SpringSmooth):
            weight = max(construction.floor, weight * norm) / norm
        if isinstance(construction, UnitPairs):
            weight = 1.0
        o = scores[i] - scores[j]
        force, bend = objective.cost.force(o), objective.cost.curvature(o)
        if isinstance(construction, LocalGradient | PairGradient):
            force, bend = 1.0 / (abs(o) + construction.margin), 0.0
        if isinstance(construction, DiscretePairs):
            force, bend = float(rank[i] > rank[j]), 0.0
        if isinstance(construction, SpringPairs):
            force, bend = max(0.0, construction.margin - o), float(o < construction.margin)
        if isinstance(construction, HingePairs):
            force, bend = float(o < construction.margin), 0.0
        lambdas[i] += weight * force
        lambdas[j] -= weight * force
        rhos[[i, j]] += weight * bend
        forces.append(weight * force)
    return lambdas, rhos, forces


def expected(
    objective: Constructed, data: RankingData, scores: np.ndarray, classes: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, int]:
    m = objective.target
    labels = data.label(m.label or m.default_source)
    lambdas, rhos, effective = np.zeros(data.n_docs), np.zeros(data.n_docs), 0
    for q in range(data.n_queries):
        rows = slice(data.indptr[q], data.indptr[q + 1])
        own, bend, forces = oracle(objective, labels[rows], scores[rows], None if classes is None else classes[rows])
        scale = float(data.weight[q])
        if objective.normalize == "deviation" and own.any():
            scale /= own.std()
        if objective.normalize == "log" and own.any():
            # A force between two documents acts on both.
            total = sum(forces) * (2 if objective.construction.pairwise else 1)
            scale *= log2(1 + total) / total
        lambdas[rows], rhos[rows] = own * scale, bend * scale
        effective += sum(force > 1e-12 for force in forces)
    return lambdas, rhos, effective


COST_VARIANTS = [
    Constructed(NDCG(), LocalCost(reach=2), cost=Sigmoid(0.5)),
    Constructed(MAP(), IdealPairs(), cost=Printed()),
    Constructed(NDCG(3), SpringSmooth(), cost=RankNet(sigma=1.7)),
    Constructed(NDCG(), BestSwap(), normalize="deviation"),
    Constructed(MAP(), DiscreteBounded(), normalize="deviation"),
    Constructed(NDCG(), DiscreteBounded(), normalize="log"),
    Constructed(NDCG(), SpringSmooth(floor=0.5), normalize="log"),
]
COST_VARIANTS += [
    Constructed(NDCG(), UnitPairs(), cost=kind())
    for kind in COSTS.values()
    if kind not in {type(item.cost) for item in COST_VARIANTS}
]


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("construction", VARIANTS, ids=str)
def test_kernel_is_the_definition(name: str, construction: Construction) -> None:
    m = measure(name)
    objective = Constructed(m, construction)
    data, scores = made_up(sum(map(ord, name)), m)
    got = objective.bind(data).gradients(scores, count_pairs=True)
    lambdas, rhos, effective = expected(objective, data, scores)
    # The results are stored in single precision.
    np.testing.assert_allclose(got.lambdas, lambdas, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(got.rhos, rhos, rtol=1e-6, atol=1e-7)
    assert got.effective_pairs == effective


@pytest.mark.parametrize("name", ["NDCG", "MAP", "ERR"])
@pytest.mark.parametrize("construction", VARIANTS, ids=str)
def test_constructions_in_tiers_keep_to_their_pairs(name: str, construction: Construction) -> None:
    m = measure(name)
    objective = Constructed(m, construction)
    data, scores = made_up(3 + sum(map(ord, name)), m)
    classes = np.random.default_rng(1).integers(0, 3, data.n_docs).astype(np.float64)
    bound = objective.bind_among(data, classes=classes)
    got = bound.gradients(scores, count_pairs=True)
    lambdas, rhos, effective = expected(objective, data, scores, classes)
    np.testing.assert_allclose(got.lambdas, lambdas, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(got.rhos, rhos, rtol=1e-6, atol=1e-7)
    assert got.effective_pairs == effective
    # A second tier adds to what is there.
    twice, rhos_twice = got.lambdas.copy(), got.rhos.copy()
    bound.add_to(twice, rhos_twice, scores)
    np.testing.assert_allclose(twice, 2 * got.lambdas, rtol=1e-6)


@pytest.mark.parametrize(
    "objective",
    # Few of them under other settings of Numba, as each family of measures and each cost is compiled anew.
    [pytest.param(item, marks=[pytest.mark.kernel] * (place in (0, 3, 4))) for place, item in enumerate(COST_VARIANTS)],
    ids=str,
)
def test_costs_and_normalization(objective: Constructed) -> None:
    data, scores = made_up(5, objective.target)
    got = objective.bind(data).gradients(scores)
    lambdas, rhos, _ = expected(objective, data, scores)
    np.testing.assert_allclose(got.lambdas, lambdas, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(got.rhos, rhos, rtol=1e-6, atol=1e-7)


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.sampled_from(["NDCG@3", "MAP", "MRR", "ERR"]), st.sampled_from(VARIANTS))
def test_kernel_is_the_definition_on_random_data(random_state: int, name: str, construction: Construction) -> None:
    m = measure(name)
    objective = Constructed(m, construction)
    data, scores = made_up(random_state, m)
    lambdas, _, _ = expected(objective, data, scores)
    np.testing.assert_allclose(objective.bind(data).gradients(scores).lambdas, lambdas, rtol=1e-6, atol=1e-7)


# Four documents, ranked a, b, c, d by scores 3, 2, 1, 0; relevant are b and d. AP = (1/2 + 2/4)/2 = 1/2.
LABELS, SCORES = [0.0, 1.0, 0.0, 1.0], np.array([3.0, 2.0, 1.0, 0.0])
# Swaps of a relevant with another document, and AP after: b↔a (1 + 2/4)/2, b↔c (1/3 + 2/4)/2, d↔a (1 + 2/2)/2,
# d↔c (1/2 + 2/3)/2.
BA, BC, DA, DC = 0.75 - 0.5, 0.5 - 5 / 12, 1.0 - 0.5, 7 / 12 - 0.5


def p(o: float) -> float:
    return 1.0 / (1.0 + exp(o))


@pytest.mark.parametrize(
    ("construction", "lambdas"),
    [
        # The gain before division by two relevant documents is 2·|ΔAP| ≤ 1, so all pairs weigh 1/2.
        (SpringSmooth(), [-(p(-1) + p(-3)) / 2, (p(-1) + p(1)) / 2, -(p(1) + p(-1)) / 2, (p(-3) + p(-1)) / 2]),
        # Neighbors are (a, b), (b, c), (c, d), one point apart: divided by 1 + margin.
        (LocalGradient(margin=1.0), [-BA / 2, (BA + BC) / 2, -(BC + DC) / 2, DC / 2]),
        (LocalCost(), [-BA * p(-1), BA * p(-1) + BC * p(1), -BC * p(1) - DC * p(-1), DC * p(-1)]),
        # Ideal order b, d, a, c. After one move each: b first: b a c d (1 + 2/4)/2; d second: a d b c (1/2 + 2/3)/2;
        # a third: b c a d (1 + 2/4)/2; c last: a b d c (1/2 + 2/3)/2.
        (DiscreteBounded(), [-0.25, 0.25, -(7 / 12 - 0.5), 7 / 12 - 0.5]),
        (DiscreteBounded(bound=0.1), [-0.1, 0.1, -(7 / 12 - 0.5), 7 / 12 - 0.5]),
        (UnitPairs(), [-p(-1) - p(-3), p(-1) + p(1), -p(1) - p(-1), p(-3) + p(-1)]),
        (DiscretePairs(), [-BA - DA, BA, -DC, DA + DC]),
        # Springs of length 1: b and c are just far enough apart.
        (SpringPairs(), [-2 * BA - 4 * DA, 2 * BA, -2 * DC, 4 * DA + 2 * DC]),
        # b and c are 1 apart, the others in the wrong order.
        (HingePairs(), [-BA - DA, BA, -DC, DA + DC]),
        (HingePairs(margin=1.5), [-BA - DA, BA + BC, -BC - DC, DA + DC]),
        (PairGradient(), [-BA / 2 - DA / 4, BA / 2 + BC / 2, -BC / 2 - DC / 2, DA / 4 + DC / 2]),
        # At the ideal place of b stands a, of d stands b (no pair: both relevant), of a stands c (none), of c stands d.
        (IdealPairs(), [-BA * p(-1), BA * p(-1), -DC * p(-1), DC * p(-1)]),
        # a and d change most by swapping, b by swapping with a, c (equally with b and d) with b, the higher ranked.
        (BestSwap(), [-BA * p(-1) - DA * p(-3), BA * p(-1) + BC * p(1), -BC * p(1), DA * p(-3)]),
    ],
    ids=str,
)
def test_worked_example(construction: Construction, lambdas: list[float]) -> None:
    data = RankingData.from_arrays(np.zeros((4, 1)), LABELS, group=[4])
    got = Constructed(MAP(), construction).bind(data).gradients(SCORES).lambdas
    np.testing.assert_allclose(got, lambdas, rtol=1e-6)


def test_what_constructions_have_in_common() -> None:
    data, scores = made_up(7, NDCG())
    plain = Lambda(NDCG()).bind(data).gradients(scores, count_pairs=True)
    for construction in (RankNetWeightPairs(), SpringSmooth(floor=0), LocalCost(reach=20)):
        got = Constructed(NDCG(), construction).bind(data).gradients(scores, count_pairs=True)
        # The kernel of Lambda works in single precision.
        np.testing.assert_allclose(got.lambdas, plain.lambdas, rtol=2e-5, atol=3e-6)
        np.testing.assert_allclose(got.rhos, plain.rhos, rtol=2e-5, atol=3e-6)
        assert got.effective_pairs == plain.effective_pairs
    misranked = Constructed(NDCG(), MisrankedPairs()).bind(data).gradients(scores).lambdas
    np.testing.assert_allclose(
        misranked, Lambda(NDCG(), pairs="misranked").bind(data).gradients(scores).lambdas, rtol=2e-5, atol=3e-6
    )
    for construction in (SpringSmooth(), UnitPairs()):
        got = Constructed(MRR(), construction).bind(data).gradients(scores)
        binary = data.label() > 0
        labels = np.where(np.isnan(data.label()), np.nan, binary).astype(np.float32)
        twin = RankingData.from_arrays(np.zeros((data.n_docs, 1)), labels, group=data.sizes, weight=data.weight)
        np.testing.assert_allclose(
            got.lambdas, RankNetPairs().bind(twin).gradients(scores).lambdas, rtol=2e-5, atol=3e-6
        )


def test_moves_are_made_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    data, scores = made_up(3, DCG())
    objective = Constructed(DCG(), DiscreteBounded())
    whole = objective.bind(data).gradients(scores)
    monkeypatch.setattr(BoundMoves, "_block", 7)
    np.testing.assert_array_equal(objective.bind(data).gradients(scores).lambdas, whole.lambdas)


def test_curvature_is_declared_only_where_there_is_one() -> None:
    data, scores = made_up(11, NDCG())
    for construction in VARIANTS:
        rhos = Constructed(NDCG(), construction).bind(data).gradients(scores).rhos
        assert Constructed(NDCG(), construction).has_curvature == bool(rhos.any())
        assert (rhos >= 0).all()
        if construction.takes_cost:
            assert not Constructed(NDCG(), construction, cost=Sigmoid()).has_curvature


def test_condensed_lists_leave_unjudged_documents_alone() -> None:
    data, scores = made_up(13, NDCG(), missing=0.3)
    judged = ~np.isnan(data.label())
    for construction in VARIANTS:
        got = Constructed(NDCG(unjudged="skip"), construction).bind(data).gradients(scores).lambdas
        sizes = [int(judged[a:b].sum()) for a, b in zip(data.indptr[:-1], data.indptr[1:], strict=True)]
        alone = RankingData.from_arrays(
            np.zeros((int(judged.sum()), 1)), data.label()[judged], group=[size for size in sizes if size],
            weight=[w for w, size in zip(data.weight, sizes, strict=True) if size],
        )  # fmt: skip
        np.testing.assert_allclose(
            got[judged], Constructed(NDCG(), construction).bind(alone).gradients(scores[judged]).lambdas, atol=1e-6
        )
        assert not got[~judged].any()

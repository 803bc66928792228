"""The fast kernel equals the textbook double loop, for every measure, cost and option."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank.data import RankingData
from gradrank.errors import GradrankError
from gradrank.measures import NDCG, REGISTRY, Measure
from gradrank.objectives import Lambda, Printed, RankNet, Sigmoid
from tests.support.data import lists_for
from tests.support.measures import measure

TARGETS = ["NDCG", "NDCG@3", "DCG@5", "MeanNDCG", "MAP", "MAP(rel=2)@4", "MRR", "MRR(rel=2)@3", "WTA", "P@3",
           "Recall@3", "RBP", "ERR", "ERR@3", "CNDCG@4", "KappaNDCG@3", "KappaERR", "KendallTau", "Bpref"]  # fmt: skip
# A measure that is not named here is tested as it is.
TARGETS += [name for name in REGISTRY if name not in {measure(target).name for target in TARGETS}]


def made_up(
    random_state: int, m: Measure, *, missing: bool = True, weighted: bool = False
) -> tuple[RankingData, np.ndarray]:
    share = 0.15 if missing else 0.0
    data, scores = lists_for(m, random_state, queries=12, longest=13, missing=share, weighted=weighted)
    return data, scores * 2


def textbook(objective: Lambda, data: RankingData, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """λ and ρ by a double loop over pairs, with the deltas of the definition (swap, evaluate again, subtract)."""
    m = objective.target
    lambdas, rhos, effective = np.zeros(data.n_docs), np.zeros(data.n_docs), 0
    labels = data.label(m.label or m.default_source).astype(float)
    for q in range(data.n_queries):
        rows = np.arange(data.indptr[q], data.indptr[q + 1])
        deltas = m.swap_deltas_by_definition(labels[rows], scores[rows])
        rank = np.empty(len(rows), dtype=int)
        rank[np.argsort(-scores[rows], kind="stable")] = np.arange(len(rows))
        spread = np.ptp(scores[rows]) > 0
        own_l, own_r, total = np.zeros(len(rows)), np.zeros(len(rows)), 0.0
        for i in range(len(rows)):
            for j in range(len(rows)):
                if not labels[rows[i]] > labels[rows[j]]:
                    continue
                if objective.pairs == "misranked" and rank[i] < rank[j]:
                    continue
                if objective.truncation is not None and min(rank[i], rank[j]) >= objective.truncation:
                    continue
                o = scores[rows[i]] - scores[rows[j]]
                size = abs(deltas[i, j])
                if objective.gap and spread:
                    size /= 0.01 + abs(o)
                force = size * objective.cost.force(o)
                bend = size * objective.cost.curvature(o)
                effective += force > 1e-12
                own_l[i] += force
                own_l[j] -= force
                own_r[i] += bend
                own_r[j] += bend
                total += force
        scale = 1.0 if data.weight is None else data.weight[q]
        if objective.normalize == "log" and total > 0:
            scale *= np.log2(1 + 2 * total) / (2 * total)
        if objective.normalize == "deviation" and total > 0:
            scale /= own_l.std()
        lambdas[rows], rhos[rows] = own_l * scale, own_r * scale
    return lambdas, rhos, effective


OPTIONS = [
    pytest.param({}, marks=pytest.mark.kernel),
    {"cost": RankNet(sigma=1.7)},
    {"cost": Sigmoid(mu=0.5)},
    {"cost": Printed()},
    {"pairs": "misranked"},
    {"truncation": 2},
    {"normalize": "log"},
    {"normalize": "deviation"},
    {"gap": True, "normalize": "log", "truncation": 4},
    {"cost": Sigmoid(), "pairs": "misranked", "normalize": "deviation"},
]


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_kernel_is_the_textbook_double_loop(name: str, options: dict[str, object]) -> None:
    m = measure(name)
    objective = replace(Lambda(m), **options)  # type: ignore[arg-type]
    data, scores = made_up(sum(map(ord, name)), m, weighted=len(options) == 1)
    got = objective.bind(data).gradients(scores, count_pairs=True)
    lambdas, rhos, effective = textbook(objective, data, scores)
    # Single precision in the kernel: errors of 1e-6 relative to the largest force of the list.
    np.testing.assert_allclose(got.lambdas, lambdas, rtol=2e-5, atol=3e-6 * max(1.0, np.abs(lambdas).max()))
    np.testing.assert_allclose(got.rhos, rhos, rtol=2e-5, atol=3e-6 * max(1.0, np.abs(rhos).max()))
    assert got.effective_pairs == effective


@given(st.integers(0, 10_000), st.sampled_from(TARGETS))
def test_forces_of_a_pair_are_equal_and_opposite(random_state: int, name: str) -> None:
    m = measure(name)
    data, scores = made_up(random_state, m)
    lambdas = Lambda(m).bind(data).gradients(scores).lambdas.astype(float)
    for start, end in zip(data.indptr[:-1], data.indptr[1:], strict=True):
        assert abs(lambdas[start:end].sum()) <= 1e-5 * max(1.0, np.abs(lambdas[start:end]).max())


@pytest.mark.kernel
def test_condensed_lists_leave_unjudged_documents_alone() -> None:
    data, scores = made_up(3, NDCG())
    judged = ~np.isnan(data.label())
    got = Lambda(NDCG(unjudged="skip")).bind(data).gradients(scores)
    assert not got.lambdas[~judged].any()
    sizes = [int(judged[a:b].sum()) for a, b in zip(data.indptr[:-1], data.indptr[1:], strict=True)]
    alone = RankingData.from_arrays(
        data.X[judged], data.label()[judged], group=[size for size in sizes if size], feature_names=["f1"]
    )
    np.testing.assert_allclose(
        got.lambdas[judged], Lambda(NDCG()).bind(alone).gradients(scores[judged]).lambdas, atol=1e-6
    )


def test_tied_scores_do_not_leak_the_order_of_the_file() -> None:
    """A file sorted by label must train as one in any other order: with all scores tied, no rank is better."""
    labels = np.repeat(np.arange(4, -1, -1), 40).astype(np.float32)
    data = RankingData.from_arrays(np.zeros((200, 1)), labels, qid=np.zeros(200))
    scores = np.zeros(200)
    leaked = Lambda(NDCG(), ties="file").bind(data).gradients(scores).lambdas
    sorted_file = np.mean([Lambda(NDCG()).bind(data, random_state=s).gradients(scores).lambdas[:40] for s in range(30)])
    turned = RankingData.from_arrays(np.zeros((200, 1)), labels[::-1], qid=np.zeros(200))
    reversed_file = np.mean(
        [Lambda(NDCG()).bind(turned, random_state=s).gradients(scores).lambdas[-40:] for s in range(30)]
    )
    np.testing.assert_allclose(sorted_file, reversed_file, rtol=0.05)
    assert abs(float(leaked[:40].mean()) - sorted_file) > 0.1 * sorted_file


def test_same_seed_same_gradients_for_any_number_of_threads() -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 60, 800)
    n = int(sizes.sum())
    data = RankingData.from_arrays(np.zeros((n, 1)), rng.integers(0, 5, n), group=sizes)
    scores = rng.integers(0, 9, n).astype(float)
    for name in ("NDCG@10", "MAP", "ERR"):
        results = [Lambda(measure(name)).bind(data, random_state=4, n_jobs=t).gradients(scores) for t in (1, 3)]
        np.testing.assert_array_equal(results[0].lambdas, results[1].lambdas)
        np.testing.assert_array_equal(results[0].rhos, results[1].rhos)


def test_long_lists_and_wild_scores_stay_finite() -> None:
    rng = np.random.default_rng(1)
    data = RankingData.from_arrays(np.zeros((1200, 1)), rng.integers(0, 5, 1200), qid=np.zeros(1200))
    for scores in (rng.normal(size=1200) * 1e6, rng.normal(size=1200) * 1e-12, np.full(1200, -1e30)):
        for objective in (Lambda(NDCG()), Lambda(NDCG(), cost=Sigmoid()), Lambda(NDCG(), gap=True, normalize="log")):
            got = objective.bind(data).gradients(scores)
            assert np.isfinite(got.lambdas).all()
            assert np.isfinite(got.rhos).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pairs": "some"}, "pairs is 'some'"),
        ({"truncation": 0}, "truncation is 0"),
        ({"normalize": "std"}, "normalize is 'std'"),
        ({"ties": "label"}, "ties is 'label'"),
    ],
)
def test_wrong_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(GradrankError, match=message):
        Lambda(NDCG(), **options)  # type: ignore[arg-type]
    with pytest.raises(GradrankError, match="needs a measure"):
        Lambda("NDCG")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["NDCG", "MAP", "ERR"])
def test_pairs_far_apart_are_effective_too(name: str) -> None:
    m = measure(name)
    data, scores = made_up(17, m)
    labels = data.label(m.label or m.default_source).astype(float)
    swaps = 0
    for start, end in zip(data.indptr[:-1], data.indptr[1:], strict=True):
        own = labels[start:end]
        deltas = m.swap_deltas_by_definition(own, scores[start:end])
        swaps += int(np.count_nonzero((own[:, None] > own[None, :]) & (np.abs(deltas) > 1e-12)))
    # Forces down to e^−60: added to a sum in single precision they change nothing.
    for factor in (1.0, 10.0):
        got = Lambda(m).bind(data).gradients(scores * factor, count_pairs=True)
        assert got.effective_pairs == swaps

"""Weak rankers, the distributions that lead to them, and RankBoost, AdaRank, FocusedBoost."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from gradrank.data import RankingData
from gradrank.data.artificial import make_splits
from gradrank.data.topk import top_k_labels
from gradrank.errors import TrainingError
from gradrank.learners import Step
from gradrank.learners.boosting.adarank import AdaRank
from gradrank.learners.boosting.feature_boosting import FeatureBoosting
from gradrank.learners.boosting.pair_weights import FactoredPairs
from gradrank.learners.boosting.rankboost import RankBoost
from gradrank.learners.boosting.weak_rankers import Quality, ScaledFeatures, Thresholds, WeakRankers, thresholds
from gradrank.learners.focused.beta_path import BETA_GRID
from gradrank.learners.focused.focused_boost import FocusedBoost, top_lists
from gradrank.measures import MAP, NDCG, KappaNDCG
from gradrank.models.registry import load_ranker

BOOSTERS = (RankBoost, AdaRank, FocusedBoost)


@pytest.fixture(scope="module")
def data() -> dict[str, RankingData]:
    return make_splits(50, n_docs=15, n_features=6, random_state=3)


def small_data(random_state: int, n_queries: int = 6, n_docs: int = 7, n_features: int = 3) -> RankingData:
    """Few different values and labels, with missing ones."""
    rng = np.random.default_rng(random_state)
    n = n_queries * n_docs
    X = rng.integers(0, 5, (n, n_features)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    labels = rng.integers(0, 3, n).astype(np.float32)
    labels[rng.random(n) < 0.1] = np.nan
    return RankingData.from_arrays(X, labels, group=np.full(n_queries, n_docs))


# ---------------------------------------------------------------------- pairs
def pair_table(data: RankingData, scores: np.ndarray, per_query: bool, own: np.ndarray) -> dict[tuple[int, int], float]:
    """D(u, v) of all pairs, one by one; each counts with its better document's own weight."""
    table = {}
    labels = data.label()
    for start, end in itertools.pairwise(data.indptr):
        pairs = [(u, v) for u, v in itertools.permutations(range(start, end), 2) if labels[u] > labels[v]]
        table.update({(u, v): own[u] / (len(pairs) if per_query else 1) for u, v in pairs})
    start_sum = sum(table.values())
    return {(u, v): weight / start_sum * np.exp(-(scores[u] - scores[v])) for (u, v), weight in table.items()}


@given(st.integers(0, 10_000), st.booleans(), st.booleans())
@settings(max_examples=40)
def test_potential_is_that_of_all_pairs(random_state: int, per_query: bool, weighted: bool) -> None:
    data = small_data(random_state)
    rng = np.random.default_rng(random_state)
    scores = rng.normal(size=data.n_docs)
    own = rng.choice([0.5, 1.0, 3.0], data.n_docs) if weighted else None
    table = pair_table(data, scores, per_query, np.ones(data.n_docs) if own is None else own)
    loss = sum(table.values())
    expected = np.zeros(data.n_docs)
    for (u, v), weight in table.items():
        expected[u] += weight / loss
        expected[v] -= weight / loss
    pairs = FactoredPairs(data.label(), data.indptr, uniform="query" if per_query else "pair", document_weight=own)
    found = pairs.potential(scores)
    assert found.values == pytest.approx(expected, abs=1e-12)
    assert found.log_loss == pytest.approx(np.log(loss), abs=1e-9)


def test_scores_of_any_size_do_not_overflow() -> None:
    pairs = FactoredPairs(np.array([1, 0, 1, 0], dtype=np.float32), np.array([0, 2, 4]))
    found = pairs.potential(np.array([-600.0, 600.0, 5.0, 5.0]))
    assert found.values == pytest.approx([1.0, -1.0, 0.0, 0.0])
    assert found.log_loss == pytest.approx(1200.0 + np.log(0.5))
    none = FactoredPairs(np.ones(3, dtype=np.float32), np.array([0, 3]))
    assert none.empty
    assert none.potential(np.zeros(3)).values.tolist() == [0.0] * 3


# ---------------------------------------------------------------------- weak rankers
def candidates(data: RankingData, kind: str) -> list[tuple[int, int, float | None, np.ndarray]]:
    """Every weak ranker with its values, made one by one."""
    found = []
    for j in range(data.n_features):
        column = data.X[:, j].astype(float)
        values = np.unique(column[~np.isnan(column)])
        if kind == "feature":
            scaled = np.nan_to_num((column - values[0]) / (values[-1] - values[0]))
            choices = [(None, scaled)]
        else:
            middles = (values[1:] + values[:-1]) / 2
            choices = [(float(middle), (column > middle).astype(float)) for middle in middles]
        for threshold, weak in choices:
            found += [(j, 1, threshold, weak), (j, -1, threshold, 1.0 - weak)]
    return found


@given(st.integers(0, 10_000), st.sampled_from(["threshold", "feature"]), st.sampled_from([0.0, 0.3, 1.0]))
@settings(max_examples=40, deadline=None)
def test_search_finds_the_best_of_all(random_state: int, kind: str, beta: float) -> None:
    data = small_data(random_state)
    rng = np.random.default_rng(random_state)
    potential = FactoredPairs(data.label(), data.indptr).potential(rng.normal(size=data.n_docs)).values
    weights = rng.random(data.n_queries)
    quality = Quality.of(NDCG(3).bind(data), above_chance=bool(random_state % 2))
    rows = np.arange(data.n_docs)
    weak: WeakRankers = (
        Thresholds(data, (rows, quality)) if kind == "threshold" else ScaledFeatures(data, (rows, quality))
    )
    found = weak.best(beta, potential, weights)
    values = [
        beta * (weights @ quality.values(values)) + (1 - beta) * (potential @ values)
        for *_, values in candidates(data, kind)
    ]
    assert found.r == pytest.approx(max(values), abs=1e-9)
    # And the ranker that it names has that r.
    named = found.values(data.X)
    assert beta * (weights @ quality.values(named)) + (1 - beta) * (potential @ named) == pytest.approx(found.r)


def test_many_values_share_thresholds_out() -> None:
    column = np.random.default_rng(0).normal(size=10_000).astype(np.float32)
    cuts = thresholds(column, 16)
    assert len(cuts) == 15
    share = np.diff(np.searchsorted(np.sort(column), cuts)) / len(column)
    assert share == pytest.approx(np.full(14, 1 / 16), abs=1e-3)
    assert len(thresholds(np.full(5, np.nan), 16)) == 0
    skewed = np.concatenate((np.zeros(9_000), column[:1000]))
    assert 1 <= len(thresholds(skewed, 16)) <= 15


def test_quality_above_chance() -> None:
    data = RankingData.from_arrays(np.zeros((6, 1)), [2, 1, 0, 0, 0, 0], group=[3, 3])
    quality = Quality.of(NDCG(3).bind(data), above_chance=True)
    assert quality.values(np.array([2.0, 1.0, 0.0] * 2)).tolist() == [1.0, 0.0]
    assert quality.values(np.zeros(6)).tolist() == [0.0, 0.0]
    orders = [list(order) for order in itertools.permutations([3.0, 2.0, 1.0])]
    assert np.mean([quality.values(np.array(order * 2))[0] for order in orders]) == pytest.approx(0.0, abs=1e-12)


# ---------------------------------------------------------------------- the algorithms' promises
def wrong_share(data: RankingData, scores: np.ndarray) -> float:
    """Share of pairs in wrong order, ties counting as wrong."""
    labels, wrong, total = data.label(), 0, 0
    for start, end in itertools.pairwise(data.indptr):
        above = labels[start:end, None] > labels[None, start:end]
        wrong += int((above & (scores[start:end, None] <= scores[None, start:end])).sum())
        total += int(above.sum())
    return wrong / total


@pytest.mark.parametrize("weak", ["threshold", "feature"])
def test_rankboost_keeps_its_bound(data: dict[str, RankingData], weak: str) -> None:
    """Freund et al., theorem 1: the share of wrong pairs ≤ Π Z_t ≤ Π √(1 − r_t²), in every round."""
    train = data["train"]
    model = RankBoost(n_estimators=60, weak=weak).fit(train)  # type: ignore[arg-type]
    pairs = FactoredPairs(train.label(), train.indptr)
    scores, bound = np.zeros(train.n_docs), 1.0
    for made in model.rounds_:
        loss = np.exp(pairs.potential(scores).log_loss)
        assert loss == pytest.approx(np.exp(made.log_pair_loss))
        assert wrong_share(train, scores) <= loss + 1e-12
        assert loss <= bound + 1e-12
        assert made.weak.r > 0
        bound *= np.sqrt(1.0 - made.weak.r**2)
        scores = scores + made.weak.alpha * made.weak.values(train.X)
    assert wrong_share(train, scores) <= bound
    assert bound < 0.9


def test_adarank_keeps_its_bound(data: dict[str, RankingData]) -> None:
    """Xu & Li, theorem 1: mean E ≥ 1 − Π exp(−δ_t)·√(1 − φ_t²), δ_t the least gain of a query beyond α·E(h)."""
    train = data["train"]
    measure = MAP().bind(train)
    model = AdaRank("MAP", n_estimators=15, running=False).fit(train)
    scores, before, product = np.zeros(train.n_docs), None, 1.0
    for made in model.rounds_:
        alone = measure.values(made.weak.values(train.X))
        there = ~measure.prepared.empty
        scores = scores + made.weak.alpha * made.weak.values(train.X)
        after = measure.values(scores)
        gain = after - made.weak.alpha * alone - (0.0 if before is None else before)
        product *= np.exp(-gain[there].min()) * np.sqrt(1.0 - made.weak.r**2)
        before = after
        assert after[there].mean() >= 1.0 - product - 1e-12
    assert product != 1.0


def test_adarank_chooses_for_the_queries_that_are_ordered_worst() -> None:
    """Three queries want feature 1, one wants feature 2: after a few rounds of feature 1 it is heard, too."""
    X = np.zeros((8, 2), dtype=np.float32)
    X[[0, 2, 4], 0] = 1.0
    X[6, 1] = 1.0
    train = RankingData.from_arrays(X, [1, 0] * 4, group=[2] * 4)
    chosen = [made.weak.feature for made in AdaRank("MRR", n_estimators=10).fit(train).rounds_]
    assert chosen[0] == 0
    assert 1 in chosen


def test_rankboost_separates_what_can_be_separated() -> None:
    X = np.random.default_rng(0).random((40, 2))
    train = RankingData.from_arrays(X, np.digitize(X[:, 1], [0.3, 0.7]), group=[20, 20])
    model = RankBoost(n_estimators=50, weak="threshold").fit(train)
    assert wrong_share(train, model.predict(train)) == 0.0


# ---------------------------------------------------------------------- as learners
@pytest.mark.parametrize("learner", BOOSTERS)
def test_rankers_score_as_the_ensemble(
    data: dict[str, RankingData], learner: type[FeatureBoosting], tmp_path: Path
) -> None:
    model = clone(learner(n_estimators=25)).fit(data["train"], valid=data["vali"])
    found = model
    assert found.record_.best == 1 + int(np.argmax(found.record_.curves["valid"][str(model._measure())]))
    X = data["test"].X.copy()
    X[::5, 1] = np.nan
    expected = sum(weak.alpha * weak.values(X) for weak in [made.weak for made in found.rounds_[: found.record_.best]])
    difference = model.ranker_.predict(X) - expected
    assert difference == pytest.approx(np.full(len(X), difference[0]), abs=1e-9)
    model.ranker_.save(tmp_path / "model.json")
    loaded = load_ranker(tmp_path / "model.json")
    assert np.array_equal(loaded.predict(X), model.ranker_.predict(X))
    assert loaded.training["best"] == found.record_.best
    assert loaded.training["grown"] == 25


@pytest.mark.parametrize("learner", BOOSTERS)
def test_threads_do_not_matter(learner: type[FeatureBoosting]) -> None:
    train = make_splits(400, n_docs=30, n_features=4, random_state=1)["train"]
    one, three = (learner(n_estimators=5, n_jobs=n_jobs).fit(train) for n_jobs in (1, 3))
    assert np.array_equal(one.predict(train), three.predict(train))


@pytest.mark.parametrize("learner", BOOSTERS)
def test_rounds_are_told_and_interruption_keeps_the_best(
    data: dict[str, RankingData], learner: type[FeatureBoosting]
) -> None:
    told: list[Step] = []

    def stop(step: Step) -> None:
        told.append(step)
        if step.number == 4:
            raise KeyboardInterrupt

    model = learner(n_estimators=20, callbacks=(stop,)).fit(data["train"], valid=data["vali"])
    assert [step.number for step in told] == [1, 2, 3, 4]
    assert model.ranker_.training["interrupted"]
    assert model.ranker_.training["best"] == told[-1].best
    assert told[-1].total == 20


def test_early_stopping(data: dict[str, RankingData]) -> None:
    model = RankBoost(n_estimators=300, early_stopping_rounds=5).fit(data["train"], valid=data["vali"])
    assert len(model.rounds_) == model.record_.best + 5


def test_focused_boost_with_beta_0_is_rankboost_on_top_and_rest(data: dict[str, RankingData]) -> None:
    graded = data["train"]
    labels = top_k_labels(graded.label(), graded.indptr, 5, random_state=2)
    focused = FocusedBoost(k=5, beta=0.0, n_estimators=20, uniform="pair", random_state=2).fit(graded)
    plain = RankBoost(n_estimators=20).fit(graded.with_label("label", labels > 0))
    assert [made.weak for made in focused.rounds_] == [made.weak for made in plain.rounds_]


def test_top_lists_are_the_ordered_documents(data: dict[str, RankingData]) -> None:
    train = data["train"]
    labels = top_k_labels(train.label(), train.indptr, 4, random_state=0)
    lists = top_lists(train, labels, KappaNDCG(4), False, None)
    assert lists is not None
    assert np.array_equal(lists.rows, np.flatnonzero(labels > 0))
    assert lists.values(labels.astype(float)) == pytest.approx(np.ones(train.n_queries))
    assert top_lists(train, (labels == 4).astype(np.float32), KappaNDCG(4), False, None) is None


def test_beta_is_chosen_on_validation_data(data: dict[str, RankingData]) -> None:
    told: list[Step] = []
    model = FocusedBoost(k=5, beta="auto", n_estimators=3, callbacks=(told.append,)).fit(
        data["train"], valid=data["vali"]
    )
    path = model.ranker_.training["paths"]["beta"]
    assert path["beta"] == list(BETA_GRID)
    assert model.beta_ == BETA_GRID[int(np.argmax(path["KappaNDCG@5"]))]
    assert told[-1].number == told[-1].total == 3 * len(BETA_GRID)
    alone = FocusedBoost(k=5, beta=model.beta_, n_estimators=3).fit(data["train"], valid=data["vali"])
    assert np.array_equal(alone.predict(data["test"]), model.predict(data["test"]))
    with pytest.raises(TrainingError, match="beta is auto"):
        FocusedBoost(beta="auto").fit(data["train"])


def test_truths_with_one_part_only() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((30, 2))
    one_best = (np.arange(30) % 5 == 0).astype(float) + 0.0
    X[:, 0] += one_best
    for labels, k in ((one_best, 10), (rng.permutation(30) % 5 + 1.0, 5)):
        model = FocusedBoost(k=k, n_estimators=5).fit(X, labels, qid=np.repeat(np.arange(6), 5))
        assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("learner", BOOSTERS)
def test_parameters_out_of_range(data: dict[str, RankingData], learner: type[FeatureBoosting]) -> None:
    wrong: list[dict[str, object]] = [{"n_estimators": 0}, {"n_estimators": 2.5}, {"early_stopping_rounds": 0}]
    if learner is not AdaRank:
        wrong += [{"max_bin": 1}, {"weak": "tree"}]
    if learner is FocusedBoost:
        wrong += [{"k": 0}, {"beta": -0.1}, {"beta": "best"}]
    for given_ in wrong:
        with pytest.raises(TrainingError, match=f"{next(iter(given_))} is"):
            learner(**given_).fit(data["train"])
    with pytest.raises(TrainingError, match="one label only"):
        learner().fit([[0.0], [1.0]], [1, 1], qid=[1, 1])


def test_features_that_know_nothing() -> None:
    with pytest.raises(TrainingError, match="no feature of the training data orders"):
        RankBoost().fit([[1.0], [1.0], [2.0], [2.0]], [0, 1, 0, 1], qid=[1, 1, 2, 2])


def test_long_lists_need_no_memory_for_pairs() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((5000, 3)).astype(np.float32)
    train = RankingData.from_arrays(X, (X[:, 0] + 0.3 * rng.random(5000) > 0.9) * 1.0, group=[1000] * 5)
    model = RankBoost(n_estimators=5).fit(train)
    assert wrong_share(train, model.predict(train)) < 0.2

"""Diagnostics of training, each against its definition or worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank.data import RankingData
from gradrank.data.artificial import make_data
from gradrank.errors import GradrankError
from gradrank.learners import LambdaMART, McRank
from gradrank.learners.trees.diagnostics import (
    Agreement,
    Diagnostics,
    Recorder,
    rank_changes,
    sampled_queries,
)
from gradrank.learners.trees.gradient_shares import GradientShares, Levels, graded_parts
from gradrank.measures import CNDCG, ERR, MAP, NDCG, parse_measure
from gradrank.models.registry import load_ranker
from gradrank.objectives import Lambda, RankNet, Sigmoid, Tiered, parse_objective, recommended
from tests.support.data import judged_lists

NAN = float("nan")
GRADED = Tiered((Lambda(NDCG()), Lambda(CNDCG())), (0.8, 0.2))


def made_up(random_state: int, *, missing: float = 0.0, grades: int = 5) -> tuple[RankingData, np.ndarray]:
    values = {"label": range(grades), "clicks": [0, 0.1, 0.3, 0.7]}
    return judged_lists(random_state, values, queries=8, missing=missing)


def pair_sizes(part: Lambda, data: RankingData, scores: np.ndarray) -> np.ndarray:
    """λ_jk of every two documents: positive where j is pushed up."""
    result = np.zeros((data.n_docs, data.n_docs))
    labels = data.label(part.target.label or part.target.default_source)
    for start, end in zip(data.indptr[:-1], data.indptr[1:], strict=True):
        deltas = part.target.swap_deltas_by_definition(labels[start:end], scores[start:end])
        for j in range(start, end):
            for k in range(start, end):
                if labels[j] > labels[k]:
                    size = abs(deltas[j - start, k - start]) * part.cost.force(scores[j] - scores[k])
                    result[j, k] += size
                    result[k, j] -= size
    return result


# ---------------------------------------------------------------- figure 3a: gradient shares
@pytest.mark.parametrize(
    "part", [Lambda(NDCG()), Lambda(NDCG(3), cost=Sigmoid(0.5)), Lambda(ERR(), cost=RankNet(2.0)),
             Lambda(NDCG(), normalize="deviation")], ids=str
)  # fmt: skip
@given(random_state=st.integers(0, 200))
def test_gradient_shares_by_definition(part: Lambda, random_state: int) -> None:
    data, scores = made_up(random_state)
    labels = data.label()
    levels = Levels.of(labels, high=3.0)
    got = GradientShares(part, data, levels).at(scores)
    sizes = np.abs(pair_sizes(part, data, scores))
    shares = []
    for j in np.flatnonzero(labels >= 3):
        if sizes[j].sum() > 1e-12:
            below = [sizes[j][labels == v].sum() for v in range(3) if (labels == v).any()]
            shares.append(np.array([*below, sizes[j][labels >= 3].sum()]) / sizes[j].sum())
    if shares:
        np.testing.assert_allclose(list(got.values()), np.mean(shares, axis=0), atol=2e-5)
        assert sum(got.values()) == pytest.approx(1.0)
    else:
        assert np.isnan(list(got.values())).all()


@given(random_state=st.integers(0, 200))
def test_gradient_shares_of_top_documents_are_those_of_the_paper(random_state: int) -> None:
    # No better document pushes the best ones down, so that λ_j is the sum of its parts' sizes: eq. 11 to the letter.
    data, scores = made_up(random_state)
    labels = data.label()
    pairs = pair_sizes(Lambda(NDCG()), data, scores)
    best = np.flatnonzero((labels == labels.max()) & (pairs.sum(axis=1) > 1e-9))
    grades = np.unique(labels)
    got = GradientShares(Lambda(NDCG()), data, Levels.of(labels, high=float(labels.max()))).at(scores)
    if len(best):
        wanted = [np.mean([pairs[j][labels == v].sum() / pairs[j].sum() for j in best]) for v in grades[:-1]]
        np.testing.assert_allclose(list(got.values())[:-1], wanted, atol=2e-5)


def test_gradient_shares_by_hand() -> None:
    # Ranks 1, 2, 3 and labels 3, 1, 0, all scores equal but for a hair: the forces are 1/2, so shares follow the
    # swap deltas (2³ − 2¹)(1/log2 2 − 1/log2 3) and (2³ − 2⁰)(1/log2 2 − 1/log2 4).
    data = RankingData.from_arrays(np.zeros((3, 1)), [3, 1, 0], qid=[1, 1, 1])
    one, nothing = 6 * (1 - 1 / np.log2(3)), 7 * (1 - 1 / 2)
    got = GradientShares(Lambda(NDCG()), data, Levels.of(data.label())).at(np.array([3e-9, 2e-9, 1e-9]))
    assert list(got) == ["0", "1", "3"]
    assert got["0"] == pytest.approx(nothing / (one + nothing), abs=1e-6)
    assert got["1"] == pytest.approx(one / (one + nothing), abs=1e-6)
    assert got["3"] == 0.0


# ---------------------------------------------------------------- figure 2: agreement
@given(random_state=st.integers(0, 300))
def test_agreement_by_definition(random_state: int) -> None:
    data, scores = made_up(random_state, missing=0.1, grades=3)
    grades, clicks = data.label("label"), data.label("clicks")
    # Condensed lists are those of the judged documents: the λ's of each source know its own documents only.
    got = Agreement(GRADED, 1, data).at(scores)
    lambdas = {"first": np.zeros(data.n_docs), "tied pairs": np.zeros(data.n_docs), "all pairs": np.zeros(data.n_docs)}
    for start, end in zip(data.indptr[:-1], data.indptr[1:], strict=True):
        graded = NDCG().swap_deltas_by_definition(grades[start:end], scores[start:end])
        clicked = CNDCG().swap_deltas_by_definition(clicks[start:end], scores[start:end])
        for i in range(start, end):
            for j in range(start, end):
                force = RankNet().force(scores[i] - scores[j])
                if grades[i] > grades[j]:
                    size = abs(graded[i - start, j - start]) * force
                    lambdas["first"][[i, j]] += [size, -size]
                if clicks[i] > clicks[j]:
                    size = abs(clicked[i - start, j - start]) * force
                    lambdas["all pairs"][[i, j]] += [size, -size]
                    tied = grades[i] == grades[j] or (np.isnan(grades[i]) and np.isnan(grades[j]))
                    if tied and clicks[i] > 0 and clicks[j] > 0:
                        lambdas["tied pairs"][[i, j]] += [size, -size]
    judged = ~np.isnan(grades) & ~np.isnan(clicks)
    signs = {name: np.sign(np.where(np.abs(value) > 1e-9, value, 0.0))[judged] for name, value in lambdas.items()}
    for kind in ("tied pairs", "all pairs"):
        agree = (signs[kind] == signs["first"]) | (signs[kind] == 0)
        assert got[kind]["agree"] == pytest.approx(agree.mean())
        assert got[kind]["opposed"] == pytest.approx((signs[kind] * signs["first"] < 0).mean())


def test_agreement_by_hand() -> None:
    # Grades want the first document up; clicks the second. The last two are tied by grade, and clicks lift the last.
    labels = {"label": [1, 0, 0], "clicks": [0.1, 0.2, 0.9]}
    data = RankingData.from_arrays(np.zeros((3, 1)), labels, qid=[1, 1, 1])
    got = Agreement(GRADED, 1, data).at(np.array([3.0, 2.0, 1.0]))
    # Tied pairs: the first is left alone, the second is pushed down by both tiers, the third up against its grade.
    assert got["tied pairs"] == {"agree": pytest.approx(2 / 3), "opposed": pytest.approx(1 / 3)}
    # All pairs: the first is pushed down by clicks, too.
    assert got["all pairs"]["opposed"] > got["tied pairs"]["opposed"]


def test_agreement_without_common_labels_is_unknown() -> None:
    labels = {"label": [1, 0, NAN, NAN], "clicks": [NAN, NAN, 0.2, 0.9]}
    data = RankingData.from_arrays(np.zeros((4, 1)), labels, qid=[1, 1, 1, 1])
    assert np.isnan(Agreement(GRADED, 1, data).at(np.arange(4.0))["tied pairs"]["agree"])


# ---------------------------------------------------------------- figures 3b and 4: the top, and changes of rank
def test_top_labels_by_hand() -> None:
    labels = [2, 0, 0, 1, NAN, 1]
    data = RankingData.from_arrays(np.zeros((6, 1)), labels, group=[4, 2])
    levels = Levels.of(data.label())
    # Query 1 shows 2, 0 and 1; query 2 has two documents, one of them unjudged.
    got = levels.shares(np.array([0, 1, 3, 4, 5]), data)
    assert got == {"0": pytest.approx(1 / 6), "1": pytest.approx((1 / 3 + 1 / 2) / 2),
                   "2": pytest.approx(1 / 6), "unjudged": pytest.approx(1 / 4)}  # fmt: skip


def test_many_labels_are_put_into_ranges() -> None:
    labels = np.linspace(0, 1, 101, dtype=np.float32)
    levels = Levels.of(labels)
    assert levels.names == ("0 to 0.2", "0.2 to 0.4", "0.4 to 0.6", "0.6 to 0.8", "0.8 to 1")
    assert np.bincount(levels.group).tolist() == [20, 20, 20, 20, 21]
    assert (levels.high, levels.n_low) == (pytest.approx(0.6), 3)


@pytest.mark.parametrize(
    ("labels", "high", "n_low"), [([0, 1], 1.0, 1), ([0, 1, 2], 2.0, 2), ([0, 1, 2, 3], 2.0, 2), ([5], 5.0, 0)]
)
def test_what_is_highly_relevant_by_default(labels: list[int], high: float, n_low: int) -> None:
    levels = Levels.of(np.array(labels, dtype=np.float32))
    assert (levels.high, levels.n_low) == (high, n_low)


@given(random_state=st.integers(0, 300), top=st.integers(1, 5))
def test_rank_changes_by_definition(random_state: int, top: int) -> None:
    rng = np.random.default_rng(random_state)
    data, scores = made_up(random_state)
    later = scores + rng.normal(size=data.n_docs)
    orders = []
    whole, upper = [], []
    for start, end in zip(data.indptr[:-1], data.indptr[1:], strict=True):
        one, two = (start + np.argsort(-s[start:end]) for s in (scores, later))
        orders.append((one, two))
        rank_one, rank_two = (list(order) for order in (one, two))
        whole.append(np.mean([rank_one.index(d) != rank_two.index(d) for d in range(start, end)]))
        places = range(min(top, end - start))
        upper.append(np.mean([rank_one[place] != rank_two[place] for place in places]))
    before, after = (np.concatenate([pair[which] for pair in orders]) for which in (0, 1))
    got = rank_changes(before, after, data.indptr, top)
    assert got == (pytest.approx(np.mean(whole)), pytest.approx(np.mean(upper)))


# ---------------------------------------------------------------- the recorder
def test_the_sample_is_some_whole_queries() -> None:
    data = make_data(50, n_docs=(1, 9), n_features=3, random_state=4)
    sample, rows = sampled_queries(data, 20, random_state=1)
    assert sample.n_queries == 20
    assert sample.sizes.min() > 1
    np.testing.assert_array_equal(sample.label(), data.label()[rows])
    np.testing.assert_array_equal(sampled_queries(data, 20, random_state=1)[1], rows)
    assert not np.array_equal(sampled_queries(data, 20, random_state=2)[1], rows)
    assert sampled_queries(data, 1000, random_state=1)[0].n_queries == np.count_nonzero(data.sizes > 1)
    lonely = RankingData.from_arrays(np.zeros((3, 1)), [0, 1, 2], qid=[1, 2, 3])
    assert sampled_queries(lonely, 10, random_state=0)[0].n_queries == 3


def test_what_is_looked_at_when() -> None:
    data, scores = made_up(1)
    recorder = Recorder(Diagnostics(every=3, top=2), GRADED, data, [parse_measure("Graded(NDCG@3, CNDCG@3)")])
    later = scores.copy()
    later[: data.indptr[1]] *= -1
    for step in range(8):
        # Steps 2, 4 and 7 change a list; only those after a look are seen: 4 (after 3) and 7 (after 6).
        recorder.observe(step, scores if step in (0, 1, 4, 5, 6) else later)
    found = recorder.record()
    assert found["steps"] == [0, 3, 6]
    lists = data.sizes > 1
    size = data.sizes[0]
    turned = (size - size % 2) / size / lists.sum()
    assert found["rank_changes"]["all"] == [0.0, pytest.approx(turned), pytest.approx(turned)]
    assert found["measures"]["NDCG@3"][0] == pytest.approx(NDCG(3).values(scores, data)[lists].mean())
    assert set(found["agreement"]) == {"Lambda(CNDCG)"}
    assert set(found["gradient_shares"]) == {"Lambda(NDCG)"}
    assert sum(curve[0] for curve in found["top_labels"].values()) == pytest.approx(1.0)


def test_the_parts_on_grades() -> None:
    scheduled = parse_objective("Scheduled(NDCG, Lambda(NDCG@3, cost=sigmoid))")
    assert graded_parts(scheduled) == [recommended(NDCG()), Lambda(NDCG(3), cost=Sigmoid())]
    assert graded_parts(GRADED) == [Lambda(NDCG())]
    assert graded_parts(parse_objective("Regression")) == []


def model(**options: object) -> LambdaMART:
    data = make_data(40, n_docs=12, n_features=5, random_state=2, clicks=True)
    valid = make_data(20, n_docs=12, n_features=5, random_state=2, clicks=True, part=1)
    return LambdaMART(GRADED, n_estimators=12, min_child_samples=5, n_jobs=1, **options).fit(data, valid=valid)  # type: ignore[arg-type]


def without_times(found: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in found.items() if name != "seconds"}


def test_diagnostics_change_nothing_and_are_kept_with_the_model(tmp_path) -> None:
    plain, watched = model(), model(diagnostics=Diagnostics(queries=15, every=4))
    assert plain.ranker_.to_dict()["payload"] == watched.ranker_.to_dict()["payload"]
    assert "diagnostics" not in plain.ranker_.training
    found = watched.ranker_.training["diagnostics"]
    assert (found["steps"], found["queries"]) == ([0, 4, 8, 12], 15)
    assert len(found["rank_changes"]["all"]) == 3
    watched.ranker_.save(tmp_path / "model.json")
    assert load_ranker(tmp_path / "model.json").training["diagnostics"] == found


def test_a_run_that_goes_on_records_the_same(tmp_path) -> None:
    whole = model(diagnostics=3)
    path = tmp_path / "state"

    class Stop(Exception):
        pass

    def stop(step) -> None:
        if step.number == 7:
            raise Stop

    with pytest.raises(Stop):
        model(diagnostics=3, checkpoint=path, checkpoint_every=5, callbacks=(stop,))
    resumed = model(diagnostics=3, checkpoint=path, checkpoint_every=5)
    assert resumed.ranker_.to_dict()["payload"] == whole.ranker_.to_dict()["payload"]
    one, two = (learner.ranker_.training["diagnostics"] for learner in (whole, resumed))
    assert without_times(one) == without_times(two)


@pytest.mark.parametrize("objective", ["Regression", "MAP", "Scheduled(NDCG, Lambda(NDCG@3, cost=sigmoid))"])
def test_objectives_of_all_kinds_are_diagnosed(objective: str) -> None:
    data = make_data(20, n_docs=8, n_features=5, random_state=2)
    found = (
        LambdaMART(objective, n_estimators=4, min_child_samples=5, diagnostics=2, n_jobs=1)
        .fit(data)
        .ranker_.training["diagnostics"]
    )
    assert found["steps"] == [0, 2, 4]
    assert len(found["top_labels"]["0"]) == 3
    assert len(found.get("gradient_shares", {})) == {"Regression": 0, "MAP": 1}.get(objective, 2)


@pytest.mark.parametrize("diagnostics", [0, -1, 2.5, True])
def test_wrong_numbers(diagnostics: object) -> None:
    data = make_data(5, n_docs=8, n_features=5, random_state=2)
    with pytest.raises(GradrankError, match=r"diagnostics is .*, expected a whole number of 1 or more"):
        LambdaMART(n_estimators=2, diagnostics=diagnostics).fit(data)


def test_learners_without_gradients_refuse() -> None:
    with pytest.raises(GradrankError, match="no λ-gradients to diagnose"):
        McRank(n_estimators=2, diagnostics=1).fit(make_data(5, n_docs=8, n_features=5, random_state=2))


def test_map_of_high_labels_only() -> None:
    # Labels of one kind leave nothing to share out.
    data = RankingData.from_arrays(np.zeros((4, 1)), [1, 1, 1, 1], group=[4])
    got = GradientShares(Lambda(MAP()), data, Levels.of(data.label())).at(np.arange(4.0))
    assert np.isnan(list(got.values())).all()

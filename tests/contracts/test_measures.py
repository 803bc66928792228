"""What every measure of the registry promises."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank.data import RankingData
from gradrank.errors import GradrankError
from gradrank.measures import CONVENTIONS, REGISTRY, Measure, measure_values, parse_measure
from tests.support.measures import measure

VARIANTS = {
    "NDCG": ["NDCG", "NDCG@1", "NDCG@3", "NDCG(gain=linear, discount=letor)@4", "NDCG(convention=letor4)@3"],
    "DCG": ["DCG", "DCG(gain=[0, 1, 5, 6, 7])@2", "DCG(discount=ln)@3", "DCG(discount=reciprocal)"],
    "MeanNDCG": ["MeanNDCG", "MeanNDCG(convention=letor4)"],
    "MAP": ["MAP", "MAP(rel=2)", "MAP@3", "MAP(denominator=cutoff)@2"],
    "MRR": ["MRR", "MRR(rel=2)@2"],
    "WTA": ["WTA", "WTA(target=top)", "WTA(rel=2)"],
    "P": ["P@1", "P@3", "P(per=list)@5", "P"],
    "Recall": ["Recall@2", "Recall(rel=2)@3"],
    "RBP": ["RBP", "RBP(p=0.5)@3"],
    "ERR": ["ERR", "ERR@2", "ERR(top=query)@3", "ERR(top=7)"],
    "CNDCG": ["CNDCG", "CNDCG@2", "CNDCG(top=2)"],
    "KappaNDCG": ["KappaNDCG", "KappaNDCG@2"],
    "KappaERR": ["KappaERR", "KappaERR@3"],
    "KendallTau": ["KendallTau", "KendallTau(variant=a)", "KendallTau(variant=b)"],
    "Bpref": ["Bpref", "Bpref(rel=2)"],
    "PPref": ["PPref", "PPref@1", "PPref@3"],
    "RPref": ["RPref", "RPref@2", "RPref(over=ideal)@3"],
    "WPref": ["WPref", "WPref@2", "WPref(discount=reciprocal)@4"],
    "NWPref": ["NWPref", "NWPref@1", "NWPref@3"],
}
# A measure without variants here is tested as it is.
ALL = [name for kind in REGISTRY for name in VARIANTS.get(kind, [kind])]


def labels_for(name: str, labels: list[float | None]) -> np.ndarray:
    """Labels 0…4 (None = unjudged) in the range that the measure reads."""
    column = np.array([np.nan if label is None else label for label in labels], dtype=np.float32)
    return column / 4 if name.startswith("CNDCG") else column


def one_query(m: Measure, labels: np.ndarray, repeat: int = 1) -> RankingData:
    source = m.label or m.default_source or "label"
    return RankingData.from_arrays(
        np.zeros((len(labels) * repeat, 1)),
        {source: np.tile(labels, repeat)},
        qid=np.repeat(np.arange(repeat), len(labels)),
    )


graded = st.lists(st.one_of(st.integers(0, 4), st.none()), min_size=1, max_size=9)


def test_variants_are_of_measures_that_there_are() -> None:
    assert set(VARIANTS) <= set(REGISTRY)


@pytest.mark.parametrize("name", ALL)
def test_name_round_trip(name: str) -> None:
    m = measure(name)
    assert str(m) == name
    assert parse_measure(str(m)) == m
    assert hash(parse_measure(str(m))) == hash(m)
    assert measure(name.lower()) == m
    assert measure(name.replace("(", " ( ").replace("=", " = ").replace("@", " @ ")) == m
    assert measure(name.replace(m.name, m.name.lower(), 1)) == m


@pytest.mark.parametrize("name", ALL)
def test_a_single_measure_is_its_only_part(name: str) -> None:
    m = measure(name)
    assert m.parts == (m,)
    assert m.sources == (m.source,)
    assert m.best([[0.1], [0.3], [float("nan")], [0.3]]) == 1


def test_a_graded_measure_has_the_sources_of_its_parts() -> None:
    both = parse_measure("Graded(NDCG@3, CNDCG@3, MAP(label=clicks), tolerance=0.01)")
    assert both.sources == (None, "clicks")
    assert both.best([[0.5, 0.1, 0.0], [0.495, 0.3, 0.0], [0.4, 0.9, 1.0]]) == 1


@pytest.mark.kernel
@pytest.mark.parametrize("name", ALL)
@given(labels=graded, random_state=st.integers(0, 1000))
def test_swap_delta_is_swap_and_evaluate_again(name: str, labels: list[float | None], random_state: int) -> None:
    m = measure(name)
    column = labels_for(name, labels)
    scores = np.random.default_rng(random_state).permutation(len(labels)).astype(float)
    np.testing.assert_allclose(
        m.swap_deltas(column, scores), m.swap_deltas_by_definition(column, scores), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("name", ["NDCG(unjudged=skip)@3", "MAP(unjudged=skip)", "ERR(unjudged=skip)"])
@given(labels=graded)
def test_swap_delta_of_condensed_lists(name: str, labels: list[float | None]) -> None:
    m = measure(name)
    column = labels_for(name, labels)
    scores = -np.arange(len(labels), dtype=float)
    np.testing.assert_allclose(m.swap_deltas(column, scores), m.swap_deltas_by_definition(column, scores), atol=1e-12)


@pytest.mark.kernel
@pytest.mark.parametrize("name", [name for name in ALL if "letor4" not in name and "variant=b" not in name])
@given(labels=st.lists(st.one_of(st.integers(0, 4), st.none()), min_size=1, max_size=6), data=st.data())
def test_tied_scores_count_as_the_expectation_over_their_orders(
    name: str, labels: list[float | None], data: st.DataObject
) -> None:
    m = measure(name)
    column = labels_for(name, labels)
    n = len(labels)
    scores = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)), dtype=float)
    got = m.values(scores, one_query(m, column))[0]
    # Every order that respects the scores, equally likely.
    orders = [p for p in permutations(range(n)) if all(scores[a] >= scores[b] for a, b in pairwise(p))]
    standing = np.empty((len(orders), n))
    for row, order in enumerate(orders):
        standing[row, list(order)] = np.arange(n, 0, -1)
    expected = m.values(standing.ravel(), one_query(m, column, repeat=len(orders)))
    np.testing.assert_allclose(got, expected.mean(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in ALL if not name.startswith("KendallTau")])
@given(labels=graded, random_state=st.integers(0, 1000))
def test_pessimistic_and_optimistic_bound_every_order(name: str, labels: list[float | None], random_state: int) -> None:
    head, _, at = name.partition("@")
    head = head[:-1] + ", " if head.endswith(")") else head + "("
    low, high, middle = (
        measure(f"{head}ties={ties})" + (f"@{at}" if at else "")) for ties in ("pessimistic", "optimistic", "file")
    )
    if name.startswith("PPref@"):
        # An unjudged document above the cut-off takes right and wrong pairs out of a share: no order by label is worst.
        labels = [0 if label is None else label for label in labels]
    column = labels_for(name, labels)
    scores = np.random.default_rng(random_state).integers(0, 3, len(labels)).astype(float)
    values = [np.nan_to_num(m.values(scores, one_query(m, column))[0]) for m in (low, middle, high)]
    # Bpref ignores unjudged documents, which both policies put in one place; all others agree on what is better.
    assert values[0] <= values[1] + 1e-12
    assert values[1] <= values[2] + 1e-12


@pytest.mark.parametrize("name", ALL)
def test_best_possible_order_is_best(name: str) -> None:
    m = measure(name)
    rng = np.random.default_rng(5)
    for _ in range(20):
        column = labels_for(name, list(rng.integers(0, 5, 6)))
        ideal = m.values(column.astype(float) * 2.0, one_query(m, column))
        other = m.values(rng.normal(size=6), one_query(m, column))
        assert np.nan_to_num(ideal[0]) >= np.nan_to_num(other[0]) - 1e-12


@pytest.mark.parametrize("name", ["NDCG@10", "MAP", "MRR", "ERR@10", "KendallTau", "Bpref", "P@5", "MeanNDCG"])
def test_same_result_for_any_number_of_threads(name: str) -> None:
    m = measure(name)
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 80, 900)
    n = int(sizes.sum())
    data = RankingData.from_arrays(np.zeros((n, 1)), rng.integers(0, 5, n), group=sizes)
    scores = rng.integers(0, 30, n).astype(float)
    one, three = (measure_values([m], scores, data, n_jobs=t)[m] for t in (1, 3))
    np.testing.assert_array_equal(one, three)


@pytest.mark.parametrize("name", REGISTRY)
def test_the_definition_explains_every_parameter(name: str) -> None:
    head, _, section = (REGISTRY[name].__doc__ or "").partition("Parameters\n    ----------\n")
    shared = (Measure.__doc__ or "").partition("Parameters\n    ----------\n")[2]
    assert head.strip().split("\n")[0].endswith(".")
    for parameter in REGISTRY[name].parameters():
        assert f"    {parameter}\n" in section or f"    {parameter}\n" in shared


@pytest.mark.parametrize("name", REGISTRY)
def test_conventions_either_define_a_measure_or_say_so(name: str) -> None:
    for convention in CONVENTIONS.values():
        if convention.defines(name):
            assert REGISTRY[name](convention=convention.name).convention == convention.name
        else:
            with pytest.raises(GradrankError, match=f"{convention.name} does not define {name}"):
                REGISTRY[name](convention=convention.name)


@pytest.mark.parametrize("name", ALL)
@given(labels=graded, random_state=st.integers(0, 100))
def test_documents_that_were_not_retrieved_earn_nothing(
    name: str, labels: list[float | None], random_state: int
) -> None:
    m = measure(name)
    if name.startswith("KendallTau") or "letor4" in name:
        return  # τ is a correlation of whole lists; the LETOR scripts know only whole lists
    column = labels_for(name, labels)
    rng = np.random.default_rng(random_state)
    scores = rng.permutation(len(labels)).astype(float)
    hidden = rng.random(len(labels)) < 0.5
    partly = np.where(hidden, -np.inf, scores)
    value = np.nan_to_num(m.values(partly, one_query(m, column))[0])
    # The same list with the hidden documents' own labels replaced by non-relevant ones, renormalized by the truth:
    # no document at −inf may raise the value above that of the list in which it stands last.
    last = np.where(hidden, scores - 1000.0, scores)
    assert value <= np.nan_to_num(m.values(last, one_query(m, column))[0]) + 1e-12
    assert np.nan_to_num(m.values(np.full(len(labels), -np.inf), one_query(m, column))[0]) == 0.0


@pytest.mark.parametrize("name", ALL)
def test_swap_deltas_want_a_score_for_each_label(name: str) -> None:
    for swap_deltas in (measure(name).swap_deltas, measure(name).swap_deltas_by_definition):
        with pytest.raises(GradrankError, match=r"scores have shape \(2,\), expected one number for each of 3"):
            swap_deltas([0, 1, 1], [2.0, 1.0])


@pytest.mark.parametrize("name", [name for name in REGISTRY if measure(name).takes_cutoff])
@pytest.mark.parametrize("cutoff", [2**31, 2**63, 10**30])
def test_cut_offs_beyond_all_lists_are_refused(name: str, cutoff: int) -> None:
    with pytest.raises(GradrankError, match=f"cut-off is {cutoff}, expected at most 2147483647"):
        measure(f"{name}@{cutoff}")

"""Agreement, its statistics and tests, against published and hand-worked values."""

from __future__ import annotations

from itertools import combinations, product
from math import isnan
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2_contingency
from sklearn.metrics import cohen_kappa_score

from gradrank.errors import DataError
from gradrank.labeling import Outcome, Record, Tool, Verdict
from gradrank.labeling.analysis.agreement import agreement, compare_tools, grade_agreement, top_overlap
from gradrank.labeling.analysis.efficiency import efficiency, standing_records
from gradrank.labeling.analysis.statistics import (
    chi_square,
    clustered_permutation,
    cohen_kappa,
    coincidences,
    krippendorff_alpha,
    side_bias,
)

# ---------------------------------------------------------------------- statistics
# Krippendorff, "Computing Krippendorff's alpha-reliability" (2011), example C: 4 observers, 12 units, missing values.
KRIPPENDORFF = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
    [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
]


def test_krippendorff_alpha_of_his_own_example() -> None:
    values = np.array(KRIPPENDORFF).T
    counts = np.stack([(values == category).sum(axis=1) for category in range(1, 6)], axis=1)
    found = coincidences(counts)
    # The coincidence matrix as printed there.
    assert found[0] == pytest.approx([7, 4 / 3, 1 / 3, 1 / 3, 0])
    assert found.sum() == pytest.approx(40)
    assert krippendorff_alpha(found) == pytest.approx(0.743, abs=0.0005)
    assert krippendorff_alpha(found, "ordinal") == pytest.approx(0.815, abs=0.0005)


def test_krippendorff_alpha_of_two_observers_and_two_values() -> None:
    # Example A there: 10 units, α = 0.095.
    one, other = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    counts = [[(a == 0) + (b == 0), (a == 1) + (b == 1)] for a, b in zip(one, other, strict=True)]
    assert krippendorff_alpha(coincidences(counts)) == pytest.approx(0.095, abs=0.0005)


def test_alpha_and_kappa_without_variation_are_unknown() -> None:
    assert isnan(krippendorff_alpha(coincidences([[2, 0], [2, 0]])))
    assert isnan(krippendorff_alpha(np.zeros((3, 3))))
    assert isnan(cohen_kappa([[5, 0], [0, 0]]))
    assert isnan(cohen_kappa(np.zeros((3, 3))))


@settings(max_examples=50, deadline=None)
@given(pairs=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=30))
@pytest.mark.parametrize("weights", ["none", "linear", "quadratic"])
def test_kappa_is_scikit_learns(weights: str, pairs: list[tuple[int, int]]) -> None:
    one, other = zip(*pairs, strict=True)
    table = np.zeros((4, 4))
    for a, b in pairs:
        table[a, b] += 1
    if len({*one, *other}) < 2:
        assert isnan(cohen_kappa(table, weights))  # type: ignore[arg-type]
        return
    expected = cohen_kappa_score(one, other, labels=range(4), weights=None if weights == "none" else weights)
    assert cohen_kappa(table, weights) == pytest.approx(expected)  # type: ignore[arg-type]


def test_kappa_of_a_hand_worked_table() -> None:
    # 45 + 15 of 100 agreed; expected 0.6·0.7 + 0.4·0.3 = 0.54; κ = (0.60 − 0.54) / 0.46.
    assert cohen_kappa([[45, 15], [25, 15]]) == pytest.approx(0.06 / 0.46)


def test_a_table_that_is_not_square_is_refused() -> None:
    with pytest.raises(DataError, match="expected a square one"):
        cohen_kappa([[1, 2, 3]])


@settings(max_examples=50, deadline=None)
@given(cells=st.lists(st.integers(1, 500), min_size=4, max_size=4))
def test_chi_square_is_scipys(cells: list[int]) -> None:
    a, b, c, d = cells
    expected = chi2_contingency([[a, b], [c, d]], correction=False)
    found = chi_square((a, b), (c, d))
    assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue))
    assert bool(found.note) == (expected.expected_freq.min() < 5)


def test_chi_square_of_the_papers_own_counts() -> None:
    # The paper prints no counts. Table 2 and the rates 74.5 % and 89.7 % fix the shares of its rows: 64 % of ties, as
    # 780 of the 1225 pairs of 50 documents lie outside the top 10. The number of pairs is chosen to fit the first χ²
    # (3 or 5 queries of 1225 pairs would give 315 or 525); the second is then a check. Rates are printed to 0.1 %: a
    # difference of 19.8 ± 0.1 points moves χ² by 1 %, one of 6.6 ± 0.1 by 3 %.
    pairs = 4 * 1225
    table_2 = np.array([[0.6749, 0.2766, 0.0485], [0.1138, 0.8198, 0.0664], [0.1047, 0.3779, 0.5174]])
    table_3 = np.array([[0.6272, 0.2913, 0.0815], [0.2825, 0.5232, 0.1944], [0.1534, 0.3826, 0.4640]])
    counts = [_row_shares(table_2, 0.745, 0.897), _row_shares(table_3, 0.547, 0.831)]
    assert counts[0][1].sum() == pytest.approx(780 / 1225, abs=0.01)
    agreed = [round(pairs * float(np.trace(table))) for table in counts]
    with_ties = chi_square((agreed[0], agreed[1]), (pairs - agreed[0], pairs - agreed[1]))
    assert with_ties.statistic == pytest.approx(420.7, rel=0.015)
    strict = [pairs * table[np.ix_([0, 2], [0, 2])] for table in counts]
    agreed = [round(float(np.trace(table))) for table in strict]
    apart = [round(float(table.sum() - np.trace(table))) for table in strict]
    without = chi_square((agreed[0], agreed[1]), (apart[0], apart[1]))
    assert without.statistic == pytest.approx(28.5, rel=0.04)
    assert without.p < 0.001


def _row_shares(rows: np.ndarray, overall: float, without_ties: float) -> np.ndarray:
    """The joint table whose rows are these and whose agreement is as given: three equations for three shares."""
    strict = rows[:, 0] + rows[:, 2]
    equations = np.array(
        [
            [1.0, 1.0, 1.0],
            np.diag(rows),
            [rows[0, 0] - without_ties * strict[0], 0.0, rows[2, 2] - without_ties * strict[2]],
        ]
    )
    shares = np.linalg.solve(equations, [1.0, overall, 0.0])
    return rows * shares[:, None]


def test_chi_square_without_pairs_or_variation_says_so() -> None:
    assert chi_square((0, 5), (0, 5)).note == "one of the tools has no pairs"
    assert chi_square((5, 5), (0, 0)).note == "all pairs agree"
    assert isnan(chi_square((0, 0), (5, 5)).statistic)


def test_the_permutation_test_is_the_exact_one_by_enumeration() -> None:
    agreed = np.array([[40, 20], [35, 30], [45, 33], [20, 22], [38, 25]])
    totals = np.array([[50, 50], [50, 40], [50, 50], [40, 40], [50, 50]])
    observed = agreed[:, 0].sum() / totals[:, 0].sum() - agreed[:, 1].sum() / totals[:, 1].sum()
    extreme = 0
    for swaps in product([False, True], repeat=5):
        sides = np.array([[1, 0] if swap else [0, 1] for swap in swaps])
        good, every = np.take_along_axis(agreed, sides, 1).sum(0), np.take_along_axis(totals, sides, 1).sum(0)
        extreme += abs(good[0] / every[0] - good[1] / every[1]) >= abs(observed) - 1e-12
    found = clustered_permutation(agreed, totals, permutations=20_000, seed=3)
    assert found.difference == pytest.approx(observed)
    # Four standard errors of 20,000 draws.
    exact = extreme / 32
    assert found.p == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 20_000))


def test_queries_with_one_tool_are_dealt_anew() -> None:
    # Rates 1, 1, 1 against 0, 0, 0 of equally long queries: 2 of the 20 ways to deal are as extreme.
    agreed = [[10, 0], [10, 0], [10, 0], [0, 0], [0, 0], [0, 0]]
    totals = [[10, 0], [10, 0], [10, 0], [0, 10], [0, 10], [0, 10]]
    found = clustered_permutation(agreed, totals, permutations=10_000, seed=1)
    assert found.difference == 1
    assert found.p == pytest.approx(0.1, abs=0.012)


def test_clusters_make_the_test_honest() -> None:
    # Two tools that are alike, but each query agrees wholly or not at all: χ² over pairs is certain of a difference
    # where there is none, far more often than its level; the permutation test is not.
    random = Random(4)
    wrong_chi = wrong_permutation = 0
    for trial in range(100):
        agreed = np.array([[1000 * random.randrange(2), 1000 * random.randrange(2)] for _ in range(10)])
        totals = np.full((10, 2), 1000)
        sums = agreed.sum(axis=0)
        wrong_chi += chi_square((sums[0], sums[1]), (10_000 - sums[0], 10_000 - sums[1])).p < 0.05
        wrong_permutation += clustered_permutation(agreed, totals, permutations=300, seed=trial).p < 0.05
    assert wrong_chi > 60
    assert wrong_permutation <= 10


def test_a_permutation_test_that_cannot_be_made_says_why() -> None:
    assert clustered_permutation([[3, 2]], [[5, 5]]).note == "only one query: no test is possible"
    assert clustered_permutation([[3, 0]], [[5, 0]]).note == "one of the tools has no pairs"
    assert clustered_permutation(np.zeros((0, 2)), np.zeros((0, 2))).note == "one of the tools has no pairs"


def test_side_bias_by_hand() -> None:
    # 1 + 10 + 45 of 1024 outcomes on each side.
    bias = side_bias(8, 10)
    assert bias.p == pytest.approx(2 * 56 / 1024)
    assert bias.low == pytest.approx(0.490, abs=0.001)
    assert isnan(side_bias(0, 0).share)


# ---------------------------------------------------------------------- agreement of outcomes
def preferring(assessor: str, top: list[str], *, query: str = "q", documents: str = "abcde") -> Outcome:
    """A top given as a string of documents for each tie group."""
    groups = tuple(tuple(group) for group in top)
    return Outcome(assessor, query, Tool.PREFERENCES, "tournament", 2, tuple(documents), groups)


def grading(assessor: str, grades: dict[str, int], *, query: str = "q") -> Outcome:
    return Outcome(assessor, query, Tool.GRADES, "grades", 2, tuple(grades), (), grades=tuple(grades.items()))


def brute_force(levels: list[dict[str, int]], documents: str) -> np.ndarray:
    table = np.zeros((3, 3), dtype=int)
    for a, b in combinations(documents, 2):
        said = [1 - int(np.sign(level[a] - level[b])) for level in levels]
        table[said[0], said[1]] += 1
    return table


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_counts_are_those_of_brute_force(data: st.DataObject) -> None:
    documents = "abcdefgh"
    levels = [
        dict(zip(documents, data.draw(st.lists(st.integers(0, 4), min_size=8, max_size=8)), strict=True))
        for _ in range(2)
    ]
    graded = agreement(Tool.GRADES, [grading(name, level) for name, level in zip("xy", levels, strict=True)])
    assert graded.counts.tolist() == brute_force(levels, documents).tolist()
    # As tops: the upper two levels in order, all else outside.
    tops = [[g for g in ("".join(d for d in documents if level[d] == v) for v in (4, 3)) if g] for level in levels]
    outcomes = [preferring(name, top, documents=documents) for name, top in zip("xy", tops, strict=True)]
    flat = [{d: max(2, level[d]) for d in documents} for level in levels]
    assert agreement(Tool.PREFERENCES, outcomes).counts.tolist() == brute_force(flat, documents).tolist()


def test_a_hand_worked_table() -> None:
    # Pairs ab ac ad bc bd cd; x: a > b > (c d); y: b > c > (a d).
    outcomes = [preferring("x", ["a", "b"], documents="abcd"), preferring("y", ["b", "c"], documents="abcd")]
    found = agreement(Tool.PREFERENCES, outcomes)
    # x says ≻ ≻ ≻ ≻ ≻ ~, y says ≺ ≺ ~ ≻ ≻ ≻.
    assert found.counts.tolist() == [[2, 1, 2], [1, 0, 0], [0, 0, 0]]
    assert found.overall() == pytest.approx(2 / 6)
    assert found.overall(ties=False) == pytest.approx(2 / 4)
    # Both directions: rows ≻ 4, 2, 2 of 8 and ~ 2 of 2 and ≺ 2 of 2.
    assert found.rows().tolist() == [[0.5, 0.25, 0.25], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    # x and y between them have a, b, c in a top: no pair lies outside.
    assert agreement(Tool.PREFERENCES, outcomes, scope="top").pairs == 6


def test_pairs_outside_both_tops_count_only_in_the_scope_all() -> None:
    outcomes = [preferring("x", ["a"]), preferring("y", ["a"])]
    assert agreement(Tool.PREFERENCES, outcomes).counts.tolist() == [[4, 0, 0], [0, 6, 0], [0, 0, 0]]
    assert agreement(Tool.PREFERENCES, outcomes, scope="top").counts.tolist() == [[4, 0, 0], [0, 0, 0], [0, 0, 0]]


def test_judged_pairs_count_as_they_were_answered() -> None:
    outcomes = [preferring("x", ["a"]), preferring("y", ["a"])]

    def said(assessor: str, verdict: Verdict, first: str, second: str) -> Record:
        return Record(assessor, "q", Tool.PREFERENCES, verdict, first, second)

    records = [
        said("x", Verdict.FIRST, "a", "b"),
        said("x", Verdict.TIE, "c", "d"),
        said("x", Verdict.FIRST_BAD, "a", "c"),
        said("y", Verdict.FIRST, "b", "a"),
        said("y", Verdict.FIRST, "c", "d"),
        said("y", Verdict.FIRST, "d", "e"),
    ]
    found = agreement(Tool.PREFERENCES, outcomes, records, "judged")
    assert found.counts.tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 0]]


def test_three_assessors_make_three_pairs() -> None:
    outcomes = [preferring(name, [top]) for name, top in zip("xyz", ["a", "a", "b"], strict=True)]
    found = agreement(Tool.PREFERENCES, outcomes)
    assert found.pairs == 3 * 10
    assert set(found.by_assessors) == {("x", "y"), ("x", "z"), ("y", "z")}
    # κ is the mean of the three; x and y agree wholly.
    kappas = [cohen_kappa(table) for table in found.by_assessors.values()]
    assert found.kappa() == pytest.approx(np.mean(kappas))
    assert kappas[0] == 1


def test_alpha_of_relations_is_that_of_all_values() -> None:
    # All pairs of all three assessors as units with three values each, counted by hand.
    outcomes = [preferring(name, [top]) for name, top in zip("xyz", ["a", "ab", "b"], strict=True)]
    levels = [dict.fromkeys("abcde", 0) | dict.fromkeys(top, 1) for top in ("a", "ab", "b")]
    counts = [
        [sum(1 - np.sign(level[a] - level[b]) == value for level in levels) for value in range(3)]
        for a, b in combinations("abcde", 2)
    ]
    expected = coincidences(counts)
    assert agreement(Tool.PREFERENCES, outcomes).alpha("ordinal") == pytest.approx(
        krippendorff_alpha(expected, "ordinal")
    )


def test_unfinished_work_and_lone_assessors_do_not_count() -> None:
    lone = preferring("x", ["a"], query="other")
    unfinished = Outcome("y", "q", Tool.PREFERENCES, "heap", 2, tuple("abcde"), (), complete=False)
    found = agreement(Tool.PREFERENCES, [preferring("x", ["a"]), unfinished, lone])
    assert found.pairs == 0
    assert isnan(found.overall())
    assert isnan(found.kappa())
    assert isnan(found.alpha())
    assert np.isnan(found.rows()).all()


def test_documents_that_only_one_assessor_had_are_left_out() -> None:
    found = agreement(Tool.PREFERENCES, [preferring("x", ["a"]), preferring("y", ["a"], documents="xabc")])
    assert found.pairs == 3


def test_an_unknown_scope_is_refused() -> None:
    with pytest.raises(DataError, match="scope is 'some'"):
        agreement(Tool.PREFERENCES, [], scope="some")  # type: ignore[arg-type]


def test_grades_agree_as_scikit_learn_says() -> None:
    one, other = [4, 3, 0, 1, 2, 2], [4, 2, 0, 1, 3, 1]
    documents = "abcdef"
    outcomes = [grading(name, dict(zip(documents, given, strict=True))) for name, given in (("x", one), ("y", other))]
    found = grade_agreement(outcomes)
    assert found.kappa == pytest.approx(cohen_kappa_score(one + other, other + one, weights="quadratic"))
    assert found.counts.sum() == 12


def test_compare_tools_adds_up_queries() -> None:
    outcomes = []
    for query in "pq":
        outcomes += [preferring("x", ["a"], query=query), preferring("y", ["b"], query=query)]
        outcomes += [grading("u", dict.fromkeys("abcde", 3), query=query)]
        outcomes += [grading("v", dict.fromkeys("abcde", 2), query=query)]
    found = compare_tools(*(agreement(tool, outcomes) for tool in Tool), permutations=50)
    # T1: of 10 pairs the 3 among c, d, e agree; T2: all 10.
    assert found.permutation.difference == pytest.approx(0.3 - 1.0)
    assert found.chi_square.statistic == pytest.approx(chi2_contingency([[6, 20], [14, 0]], correction=False).statistic)
    without = compare_tools(*(agreement(tool, outcomes) for tool in Tool), ties=False)
    assert without.chi_square.note == "one of the tools has no pairs"


def test_overlap_of_tops() -> None:
    outcomes = [preferring("x", ["ab"]), preferring("y", ["b", "c"])]
    assert top_overlap(outcomes, Tool.PREFERENCES) == pytest.approx(1 / 3)
    assert isnan(top_overlap(outcomes, Tool.GRADES))


# ---------------------------------------------------------------------- cost
def test_time_counts_answers_that_stand_and_queries_all_time() -> None:
    def event(verdict: Verdict, seconds: float, *, query: str = "q", voided: bool = False) -> Record:
        return Record("x", query, Tool.PREFERENCES, verdict, "a", "b", None, seconds, True, voided)

    records = [
        event(Verdict.FIRST, 10),
        event(Verdict.UNDO, 2),
        event(Verdict.SKIP, 4),
        event(Verdict.SECOND, 20),
        event(Verdict.TIE, 24),
        event(Verdict.TIE, 100, query="void", voided=True),
        event(Verdict.FIRST, 7, query="open"),
    ]
    unfinished = Outcome("x", "open", Tool.PREFERENCES, "tournament", 2, ("a", "b"), (), complete=False)
    (row,) = efficiency(records, [preferring("x", ["a"]), unfinished])
    assert row.seconds_per_judgment == pytest.approx((20 + 24 + 7) / 3)
    assert row.median_seconds == 20
    assert row.judgments_per_query == 2
    assert row.minutes_per_query == pytest.approx(1.0)
    assert (row.finished, row.unfinished, row.judgments, row.undone, row.skipped) == (1, 1, 3, 1, 1)


def test_undo_takes_back_a_skip_as_well() -> None:
    first = Record("x", "q", Tool.PREFERENCES, Verdict.FIRST, "a", "b")
    skip = Record("x", "q", Tool.PREFERENCES, Verdict.SKIP, "a", "c")
    undo = Record("x", "q", Tool.PREFERENCES, Verdict.UNDO)
    assert standing_records([first, skip, undo]) == [first]
    assert standing_records([first, skip, undo, undo]) == []

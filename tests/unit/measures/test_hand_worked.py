"""Values worked by hand from the definitions."""

from __future__ import annotations

from math import log, log2, sqrt

import numpy as np
import pytest

from gradrank.data import RankingData
from gradrank.errors import MeasureError
from gradrank.measures import Graded, Measure, parse_measure

NAN = float("nan")

# (measure, labels in rank order, value)
CASES = [
    ("NDCG", [0, 2, 1], (3 / log2(3) + 1 / log2(4)) / (3 + 1 / log2(3))),
    ("NDCG@1", [0, 2, 1], 0.0),
    ("NDCG@2", [0, 2, 1], (3 / log2(3)) / (3 + 1 / log2(3))),
    ("NDCG(gain=linear)", [0, 2, 1], (2 / log2(3) + 1 / log2(4)) / (2 + 1 / log2(3))),
    ("NDCG(gain=[0, 10, 20])", [0, 2, 1], (20 / log2(3) + 10 / log2(4)) / (20 + 10 / log2(3))),
    ("NDCG(discount=letor)", [0, 0, 1], 1 / log2(3)),
    ("NDCG(convention=letor4)@5", [2, 1, 0], 0.0),
    ("NDCG", [0.5, 0], 1.0),
    ("NDCG", [-2, 1], 1 / log2(3)),
    ("NDCG", [NAN, 1], 1 / log2(3)),
    ("NDCG(unjudged=skip)", [NAN, 1], 1.0),
    ("NDCG", [0, 0], 0.0),
    ("NDCG(empty=1)", [0, 0], 1.0),
    ("NDCG(empty=skip)", [0, 0], NAN),
    ("NDCG", [NAN, NAN], NAN),
    ("NDCG", [3], 1.0),
    ("DCG", [2, 0, 1], 3 + 1 / log2(4)),
    ("DCG(discount=ln)", [2], 3 / log(2)),
    ("DCG(discount=reciprocal)@2", [0, 1, 1], 0.5),
    ("MeanNDCG(convention=letor4)", [0, 1, 1], (0 + 1 / 2 + (1 + 1 / log2(3)) / 2) / 3),
    ("MAP", [1, 0, 1], (1 + 2 / 3) / 2),
    ("MAP@1", [1, 0, 1], 1 / 2),
    ("MAP(denominator=cutoff)@1", [1, 0, 1], 1.0),
    ("MAP(rel=2)", [1, 2, 1], 1 / 2),
    ("MRR", [0, 0, 1], 1 / 3),
    ("MRR@2", [0, 0, 1], 0.0),
    ("WTA", [1, 2], 1.0),
    ("WTA(target=top)", [1, 2], 0.0),
    ("WTA(rel=2)", [1, 2], 0.0),
    ("P@4", [1, 0], 1 / 4),
    ("P(per=list)@4", [1, 0], 1 / 2),
    ("P", [1, 0, 0], 1 / 3),
    ("Recall@1", [1, 0, 1], 1 / 2),
    ("RBP(p=0.5)", [1, 0, 1], 0.5 * (1 + 0.25)),
    # R(4) = 15/16, R(2) = 3/16, R(1) = 1/16
    ("ERR", [2, 1, 4], 3 / 16 + (13 / 16) * (1 / 16) / 2 + (13 / 16) * (15 / 16) * (15 / 16) / 3),
    ("ERR@1", [2, 1, 4], 3 / 16),
    ("ERR(top=2)", [2], 3 / 4),
    ("ERR(top=query)", [1, 2], 1 / 4 + (3 / 4) * (3 / 4) / 2),
    ("CNDCG(label=label)", [0.25, 1], (1 + 15 / log2(3)) / (15 + 1 / log2(3))),
    ("CNDCG(label=label, top=2)", [0.5, 1], (1 + 3 / log2(3)) / (3 + 1 / log2(3))),
    ("KappaNDCG", [1, 2, 0], (1 + 3 / log2(3)) / (3 + 1 / log2(3))),
    ("KappaERR", [2, 1, 0], 3 / 4 + (1 / 4) * (1 / 4) / 2),
    ("KendallTau", [2, 1, 0], 1.0),
    ("KendallTau", [0, 1, 2], -1.0),
    ("KendallTau", [1, 1, 0, 0], 1.0),
    ("KendallTau(variant=a)", [1, 1, 0, 0], 4 / 6),
    ("KendallTau(variant=b)", [1, 1, 0, 0], 4 / sqrt(4 * 6)),
    ("KendallTau", [1, 1], NAN),
    ("Bpref", [1, 0, 1, 0], (1 + (1 - 1 / 2)) / 2),
    ("Bpref", [1, NAN, 1, 0], 1.0),
    ("Bpref", [1, 1], 1.0),
    # Pairs of [1, 2, 0, 0]: 1 ≺ 2 is wrong; 1 ≻ 0 twice and 2 ≻ 0 twice are right.
    ("PPref", [1, 2, 0, 0], 4 / 5),
    ("PPref@1", [1, 2, 0, 0], 2 / 3),
    ("PPref@1", [0, 0, 1], 0.0),
    ("PPref@1", [NAN, 1, 0], 0.0),
    ("PPref@2", [NAN, 1, 0], 1.0),
    ("PPref", [1, 1], NAN),
    ("RPref", [1, 2, 0, 0], 4 / 5),
    ("RPref@1", [1, 2, 0, 0], 2 / 5),
    ("RPref(over=ideal)@1", [1, 2, 0, 0], 2 / 3),
    ("WPref", [1, 2, 0, 0], 2 + 2 / log2(3)),
    ("WPref@1", [1, 2, 0, 0], 2.0),
    ("NWPref", [1, 2, 0, 0], (2 + 2 / log2(3)) / (3 + 2 / log2(3))),
    ("NWPref@1", [1, 2, 0, 0], 2 / 3),
    ("NWPref", [0, NAN, 1], 0.0),
]


@pytest.mark.kernel
@pytest.mark.parametrize(("name", "labels", "expected"), CASES)
def test_value(name: str, labels: list[float], expected: float) -> None:
    measure = parse_measure(name)
    assert isinstance(measure, Measure)
    data = RankingData.from_arrays(np.zeros((len(labels), 1)), labels, qid=[1] * len(labels))
    scores = -np.arange(len(labels), dtype=float)
    np.testing.assert_allclose(measure.values(scores, data)[0], expected, rtol=1e-14)


@pytest.mark.kernel
def test_niu_figures_of_a_top_2_truth() -> None:
    """κ-ERR needs 1/rank, not 1/n, to give the second-best order less than the best."""
    kappa = parse_measure("KappaERR")
    assert isinstance(kappa, Measure)
    data = RankingData.from_arrays(np.zeros((3, 1)), [2, 1, 0], qid=[1] * 3)
    best = kappa.mean([3.0, 2.0, 1.0], data)
    swapped = kappa.mean([2.0, 3.0, 1.0], data)
    np.testing.assert_allclose(best, 0.78125)
    np.testing.assert_allclose(swapped, 1 / 4 + (3 / 4) * (3 / 4) / 2)


@pytest.mark.kernel
def test_label_above_the_top_grade_is_refused() -> None:
    data = RankingData.from_arrays(np.zeros((2, 1)), [5, 0], qid=[1, 1])
    with pytest.raises(MeasureError, match=r"label 5 is above the top grade 4.*ERR\(top=5\)"):
        parse_measure("ERR").values([1.0, 2.0], data)  # type: ignore[union-attr]


@pytest.mark.kernel
def test_labels_too_large_for_exponential_gain_are_refused() -> None:
    data = RankingData.from_arrays(np.zeros((2, 1)), [5000, 0], qid=[1, 1])
    with pytest.raises(MeasureError, match="label 5000 is too large"):
        parse_measure("NDCG").values([1.0, 2.0], data)  # type: ignore[union-attr]
    linear = parse_measure("NDCG(gain=linear)")
    assert isinstance(linear, Measure)
    assert linear.mean([2.0, 1.0], data) == 1.0


@pytest.mark.kernel
def test_labels_of_sixty_grades_work() -> None:
    """XGBoost once reported an NDCG of 112 here: 2^60 does not fit its integers."""
    data = RankingData.from_arrays(np.zeros((3, 1)), [60, 30, 0], qid=[1] * 3)
    ndcg = parse_measure("NDCG")
    assert isinstance(ndcg, Measure)
    value = ndcg.mean([1.0, 2.0, 3.0], data)
    gains = [2.0**60 - 1, 2.0**30 - 1]
    expected = (gains[0] / log2(4) + gains[1] / log2(3)) / (gains[0] + gains[1] / log2(3))
    np.testing.assert_allclose(value, expected)


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("name", "labels", "message"),
    [
        ("NDCG(gain=[0, 1])", [2, 0], "label 2 has no entry in the list of 2 gains"),
        ("CNDCG(label=label)", [2, 0], "click label is 2, expected a rate"),
        ("KappaNDCG", [0.5, 0], "label is 0.5, expected a position label"),
        ("KappaERR", [-1, 0], "label is -1, expected a position label"),
    ],
)
def test_labels_that_do_not_fit(name: str, labels: list[float], message: str) -> None:
    data = RankingData.from_arrays(np.zeros((2, 1)), labels, qid=[1, 1])
    measure = parse_measure(name)
    assert isinstance(measure, Measure)
    with pytest.raises(MeasureError, match=message):
        measure.values([1.0, 2.0], data)


@pytest.mark.kernel
def test_graded_choice_is_lexicographic_with_tolerance() -> None:
    graded = parse_measure("Graded(NDCG@3, CNDCG@3, MAP, tolerance=0.01)")
    assert isinstance(graded, Graded)
    assert graded.compare((0.50, 0.1, 0.1), (0.40, 0.9, 0.9)) == 1
    assert graded.compare((0.50, 0.1, 0.1), (0.505, 0.9, 0.0)) == -1
    assert graded.compare((0.50, 0.1, 0.1), (0.505, 0.105, 0.1)) == 0
    values = [(0.50, 0.30, 0.1), (0.495, 0.305, 0.2), (0.48, 0.9, 0.9), (0.492, 0.29, 0.9)]
    # Third falls out on NDCG; of the rest, within .01 of .305 are all but the last; MAP picks the second.
    assert graded.best(values) == 1
    assert graded.best([(float("nan"), 0.1, 0.1), (0.1, 0.1, 0.1)]) == 1

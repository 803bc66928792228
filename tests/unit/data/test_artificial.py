from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gradrank.data.artificial import WEB_CUTS, cut_quantiles, make_data, make_splits, make_truth
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError

SMALL = {"n_docs": 20, "n_features": 10}


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(a, b)[0, 1])


def linear_fit(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.linalg.lstsq(np.c_[X, np.ones(len(X))], y, rcond=None)[0]


def predict(weights: np.ndarray, X: np.ndarray) -> np.ndarray:
    return np.c_[X, np.ones(len(X))] @ weights


def same(a: RankingData, b: RankingData) -> bool:
    return (
        np.array_equal(a.X, b.X)
        and np.array_equal(a.indptr, b.indptr)
        and a.label_names == b.label_names
        and all(np.array_equal(a.label(name), b.label(name)) for name in a.label_names)
        and a.docid == b.docid
        and a.qid == b.qid
    )


def test_grades_are_the_cut_polynomial_worked_out_term_by_term() -> None:
    data, truth = make_data(2, **SMALL, random_state=5), make_truth(10, random_state=5)
    polynomial = truth.relevance
    for row in range(data.n_docs):
        x = [float(value) for value in data.X[row]]
        value = sum(w * v for w, v in zip(polynomial.linear, x, strict=True))
        value += sum(w * x[i] * x[j] for w, (i, j) in zip(polynomial.pair_weights, polynomial.pairs, strict=True))
        value += sum(
            w * x[i] * x[j] * x[k] for w, (i, j, k) in zip(polynomial.triple_weights, polynomial.triples, strict=True)
        )
        standardized = (value - truth.mean) / truth.deviation
        assert truth.standardized(data.X[row : row + 1])[0] == pytest.approx(standardized, abs=1e-12)
        assert data.label()[row] == sum(standardized > cut for cut in truth.cuts)


def test_monomials_have_distinct_features_and_weights_span_the_unit_interval() -> None:
    polynomial = make_truth(10, random_state=2).relevance
    assert all(len(set(term)) == len(term) for term in [*polynomial.pairs.tolist(), *polynomial.triples.tolist()])
    for weights in (polynomial.linear, polynomial.pair_weights, polynomial.triple_weights):
        assert np.abs(weights).max() <= 1
        assert weights.min() < 0 < weights.max()


def test_features_are_uniform_between_minus_one_and_one() -> None:
    X = make_data(500, **SMALL).X
    assert X.dtype == np.float32
    # 100,000 values: standard errors are 0.002 and 0.001.
    assert_allclose([X.mean(), X.var(), X.min(), X.max()], [0, 1 / 3, -1, 1], atol=0.01)


@pytest.mark.parametrize("noise", [0.0, 0.7])
def test_shares_of_the_grades_are_those_of_the_quantiles_with_and_without_noise(noise: float) -> None:
    data = make_data(1500, **SMALL, noise=noise, second_graders=0.5)
    for name in ("label", "second"):
        # Within about three standard errors for 30,000 documents plus those of the cuts.
        below = [(data.label(name) <= grade).mean() for grade in range(4)]
        assert_allclose(below, WEB_CUTS, atol=0.012)


def test_noise_moves_labels_and_second_graders_disagree() -> None:
    exact = make_data(300, **SMALL)
    noisy = make_data(300, **SMALL, noise=0.3, second_graders=0.3)
    assert_array_equal(noisy.X, exact.X)
    moved = (noisy.label() != exact.label()).mean()
    assert 0.1 < moved < 0.5
    # Two sets of judges with independent errors agree less with each other than with the truth.
    assert (noisy.label() != noisy.label("second")).mean() > moved


def test_the_same_seed_gives_the_same_data_for_any_number_of_threads() -> None:
    options = {"n_docs": (5, 30), "n_features": 10, "clicks": True, "second_graders": 0.4, "noise": 0.2}
    one = make_data(700, **options, n_jobs=1)  # type: ignore[arg-type]
    assert same(one, make_data(700, **options, n_jobs=2))  # type: ignore[arg-type]
    assert not same(one, make_data(700, **options, random_state=1))  # type: ignore[arg-type]


def test_a_longer_data_set_begins_with_the_shorter_one() -> None:
    options = {**SMALL, "n_docs": (3, 8), "clicks": True, "second_graders": 0.4}
    short, long = make_data(300, **options), make_data(600, **options)  # type: ignore[arg-type]
    assert same(short, long.take_queries(np.arange(300)))


def test_list_lengths_fill_the_range() -> None:
    assert set(make_data(300, n_docs=(2, 5), n_features=5).sizes.tolist()) == {2, 3, 4, 5}


def test_splits_share_the_truth_but_no_query() -> None:
    splits = make_splits(600, **SMALL, random_state=4)  # type: ignore[arg-type]
    assert [data.n_queries for data in splits.values()] == [600, 300, 600]
    names = [set(data.qid) for data in splits.values()]
    assert len(names[0] | names[1] | names[2]) == 1500
    train, test = splits["train"], splits["test"]
    assert not np.isin(train.X[:, 0], test.X[:, 0]).all()
    weights = linear_fit(train.X, train.label())
    on_train = correlation(predict(weights, train.X), train.label())
    on_test = correlation(predict(weights, test.X), test.label())
    # Linear terms carry 1/9 each and 10 of them 10/9 of the variance, the monomials 16/27 + 32/81: R² about
    # a half of the relevance, and less of its grades. This truth's own weights scatter around that.
    assert on_train > 0.5
    assert on_test == pytest.approx(on_train, abs=0.03)


def test_domain_shift_is_the_share_of_the_truth_that_changes() -> None:
    X = make_data(300, n_docs=50, n_features=50).X
    base = make_truth(random_state=7).standardized(X)
    previous = 1.0
    for shift in (0.25, 0.5, 1.0):
        shifted = correlation(base, make_truth(random_state=7, domain_shift=shift).standardized(X))
        # One truth's terms differ in weight, so the correlation only scatters around 1 − shift.
        assert shifted == pytest.approx(1 - shift, abs=0.25)
        assert shifted < previous
        previous = shifted


def test_domains_share_features_and_differ_from_each_other() -> None:
    domains = ((0, 1), (0.4, 1), (0.4, 2))
    data = [make_data(200, **SMALL, domain_shift=shift, domain=domain) for shift, domain in domains]
    assert len({one.feature_names for one in data}) == 1
    truths = [make_truth(10, domain_shift=shift, domain=domain).standardized(data[0].X) for shift, domain in domains]
    assert correlation(truths[0], truths[1]) < 0.95
    assert correlation(truths[1], truths[2]) < 0.95
    assert_allclose([(one.label() == 0).mean() for one in data], WEB_CUTS[0], atol=0.05)


def test_clicks_rise_with_the_grade_and_deep_documents_have_none() -> None:
    data = make_data(400, n_features=20, clicks=True)
    clicks, grade = data.label("clicks"), data.label()
    assert clicks.min() == 0
    assert 0.3 < clicks.max() <= 1
    means = [clicks[grade == g].mean() for g in range(5)]
    assert (np.diff(means) > 0).all()
    # Four versions of the ranker show ten each, so at most 40 of the 50 documents were ever seen.
    assert (np.add.reduceat(clicks > 0, data.indptr[:-1]) <= 40).all()
    assert (clicks == 0).mean() > 0.5


def test_clicks_conflict_with_grades_in_a_way_that_features_explain() -> None:
    splits = make_splits(1000, n_features=20, clicks=True)  # type: ignore[arg-type]
    train, test = splits["train"], splits["test"]
    for grade in (2, 3, 4):
        seen = [(data.label() == grade) & (data.label("clicks") > 0) for data in (train, test)]
        weights = linear_fit(train.X[seen[0]], train.label("clicks")[seen[0]])
        assert correlation(predict(weights, test.X[seen[1]]), test.label("clicks")[seen[1]]) > 0.15
    # A document of a lower grade is often clicked more than one of a higher grade that was also clicked.
    clicks, label = test.label("clicks"), test.label()
    fair, good = clicks[(label == 2) & (clicks > 0)], clicks[(label == 3) & (clicks > 0)]
    assert 0.1 < (fair[:1000, None] > good[None, :1000]).mean() < 0.5


def test_ids() -> None:
    data = make_data(3, n_docs=2, n_features=4, first_qid=17)
    assert list(data.qid) == ["17", "18", "19"]
    assert data.docid is not None
    assert list(data.docid)[:3] == ["q17d1", "q17d2", "q18d1"]


@pytest.mark.parametrize("grades", [2, 3, 4, 6, 10, 32])
def test_any_number_of_grades_has_rising_cuts(grades: int) -> None:
    cuts = np.array(cut_quantiles(grades))
    assert len(cuts) == grades - 1
    assert (np.diff(cuts) > 0).all()
    assert cuts[0] > 0
    assert cuts[-1] < 1
    assert set(make_data(400, **SMALL, grades=grades).label()) <= set(range(grades))


def test_grades_by_given_quantiles() -> None:
    label = make_data(1000, **SMALL, grades=(0.8,)).label()
    assert label.mean() == pytest.approx(0.2, abs=0.015)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_queries": 0}, "n_queries is 0, expected 1 or more"),
        ({"n_docs": (5, 2)}, "n_docs"),
        ({"n_docs": 0}, "n_docs"),
        ({"n_features": 2}, "n_features is 2, expected 3 or more"),
        ({"grades": 1}, "grades is 1, expected 2 to 32"),
        ({"grades": (0.5, 0.5)}, "rising numbers between 0 and 1"),
        ({"noise": -0.1}, "noise is -0.1, expected a number of 0 or more"),
        ({"second_graders": -1.0}, "second_graders is -1.0"),
        ({"domain_shift": 1.5}, "domain_shift is 1.5, expected a number from 0 to 1"),
        ({"random_state": -1}, "random_state is -1, expected 0 or more"),
        ({"domain": -1, "domain_shift": 0.5}, "domain is -1"),
    ],
)
def test_impossible_wishes_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        make_data(**{"n_queries": 2, **SMALL, **options})  # type: ignore[arg-type]

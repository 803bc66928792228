"""The budgeted portfolio."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from gradrank.data.artificial import make_splits
from gradrank.errors import DataError, FewQueriesWarning
from gradrank.evaluation.significance import t_test
from gradrank.learners.algorithms import algorithm, effective_parameters
from gradrank.measures import ERR, NDCG, parse_measure
from gradrank.models.trees.ensemble import TreeEnsemble
from gradrank.selection.auto import auto
from gradrank.selection.members import portfolio

SETS = make_splits(60, n_docs=10, n_features=5, random_state=2)
TRAIN, VALID, TEST = SETS["train"], SETS["vali"], SETS["test"]


def test_every_member_is_a_learner_that_can_be_made() -> None:
    for measure in ("NDCG@10", "MAP(label=grade)", "Graded(NDCG@3, ERR)"):
        for member in islice(portfolio(parse_measure(measure)), 9):
            chosen = effective_parameters(algorithm(member.algorithm)(**member.parameters))
            assert chosen["measure"] == measure


def test_members_differ() -> None:
    first = list(islice(portfolio(NDCG(10), random_state=5), 12))
    assert len({(member.algorithm, str(member.parameters)) for member in first}) == 12
    assert {member.algorithm for member in first} >= {"lambdamart", "mart", "ranksvm", "lambdarank"}
    assert "lambdarank" not in {member.algorithm for member in islice(portfolio(NDCG(10), nets=False), 12)}


def test_equal_sum_of_standardized_trees() -> None:
    result = auto(TRAIN, VALID, NDCG(10), most=2, random_state=3)
    columns = [ranker.predict(VALID) for ranker in result.rankers]
    centered = [
        column - np.repeat(np.add.reduceat(column, VALID.indptr[:-1]) / VALID.sizes, VALID.sizes) for column in columns
    ]
    expected = sum(column / np.sqrt(np.mean(part**2)) for column, part in zip(columns, centered, strict=True))
    np.testing.assert_allclose(result.ranker.predict(VALID), expected, rtol=1e-10, atol=1e-10)
    assert isinstance(result.ranker, TreeEnsemble)
    assert result.values["NDCG@10"] == pytest.approx(NDCG(10).mean(expected, VALID))


def test_members_can_be_trained_again() -> None:
    result = auto(TRAIN, VALID, ERR(), most=3, random_state=1)
    for row, ranker in zip(result.rows, result.rankers, strict=True):
        again = algorithm(row.member.algorithm)(**row.member.parameters).fit(TRAIN, valid=VALID)
        np.testing.assert_array_equal(again.ranker_.predict(TEST), ranker.predict(TEST))
        assert row.value == pytest.approx(ERR().mean(ranker.predict(VALID), VALID))


def test_what_does_not_help_stays_out_and_what_helps_joins() -> None:
    result = auto(TRAIN, VALID, NDCG(10), most=4, random_state=1)
    newcomers = [row for row in result.rows if not row.member.in_bag]
    assert newcomers
    for row in newcomers:
        assert (row.weight > 0.0) == (row.verdict == "helps")
        assert 0.0 <= row.p <= 1.0
    assert sum(row.weight > 0.0 for row in result.rows) >= 3


def test_a_strong_newcomer_joins() -> None:
    from gradrank.combine import Combiner
    from gradrank.measures import bind_measures
    from gradrank.selection.auto import Row, _combined

    rng = np.random.default_rng(0)
    noise = rng.normal(size=VALID.n_docs)
    truth = VALID.label().astype(np.float64) + 0.3 * rng.normal(size=VALID.n_docs)
    members = list(islice(portfolio(NDCG(10)), 3))
    rows = [Row(members[0], 0.1, 1.0), Row(members[2], 0.9, 1.0)]
    bound = bind_measures([NDCG(10)], VALID)
    done, weights = _combined(rows, [noise, truth], VALID, Combiner(VALID, NDCG(10)), bound, 0.05, 0)
    assert done[1].verdict == "helps"
    assert done[1].p < 0.001
    mixed = weights[0] * noise + weights[1] * truth
    assert t_test(NDCG(10).values(mixed, VALID), NDCG(10).values(noise, VALID)).p < 0.001
    assert NDCG(10).mean(mixed, VALID) >= NDCG(10).mean(truth, VALID) - 1e-12
    done, weights = _combined(rows, [truth, noise], VALID, Combiner(VALID, NDCG(10)), bound, 0.05, 0)
    assert weights[1] == 0.0
    assert done[1].verdict == "does not help significantly"


def test_a_newcomer_left_out_on_few_queries_is_not_silent() -> None:
    few = VALID.take_queries(np.arange(6))
    with pytest.warns(FewQueriesWarning, match="what joins the combination means little: on 6 queries"):
        result = auto(TRAIN, few, NDCG(10), most=3)
    assert result.rows[2].verdict == "does not help significantly"


def test_budget_too_short_for_one_member_still_gives_a_model() -> None:
    result = auto(TRAIN, VALID, NDCG(10), budget=1e-6)
    assert len(result.rows) == 1
    assert result.rows[0].member.parameters["n_estimators"] == 1
    assert not result.interrupted
    again = algorithm("lambdamart")(**result.rows[0].member.parameters).fit(TRAIN, valid=VALID)
    np.testing.assert_array_equal(again.ranker_.predict(TEST), result.rankers[0].predict(TEST))


@pytest.mark.parametrize("options", [{"budget": 0.0}, {"budget": float("nan")}, {"most": 0}])
def test_bad_options(options: dict[str, float]) -> None:
    with pytest.raises(DataError, match="expected a"):
        auto(TRAIN, VALID, NDCG(10), **options)  # type: ignore[arg-type]

"""Objectives by name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank.errors import GradrankError
from gradrank.measures import NDCG
from gradrank.objectives import Lambda, Regression, Sigmoid, parse_objective, recommended


@pytest.mark.parametrize(
    "name",
    [
        "Lambda(NDCG@10)",
        "Lambda(MAP(rel=2), cost=sigmoid, mu=0.5, pairs=misranked)",
        "Lambda(NDCG, cost=ranknet, sigma=2, truncation=30, normalise=log, gap=true)",
        "Lambda(ERR@5, normalise=deviation, ties=file)",
        "Regression",
        "Regression(label=clicks)",
    ],
)
def test_name_round_trip(name: str) -> None:
    assert str(parse_objective(name)) == name
    assert parse_objective(str(parse_objective(name))) == parse_objective(name)


def test_what_names_mean() -> None:
    assert parse_objective("NDCG@10") == recommended(NDCG(10))
    assert parse_objective("Lambda(NDCG, cost=sigmoid, mu=1)") == Lambda(NDCG(), cost=Sigmoid(1))
    assert parse_objective("regression") == Regression()
    assert parse_objective("Lambda(NDCG, truncation=none)") == Lambda(NDCG())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Lambda()", "takes one measure"),
        ("Lambda(NDCG, MAP)", "takes one measure"),
        ("Lambda(NDCG)@3", "takes one measure"),
        ("Lambda(3)", "takes a measure"),
        ("Lambda(NDGC)", "did you mean NDCG"),
        ("Lambda(NDCG, foo=1)", "no option 'foo'; it has cost, sigma"),
        ("Lambda(NDCG, cost=hinge)", "cost is 'hinge', expected ranknet or sigmoid"),
        ("Lambda(NDCG, cost=sigmoid, sigma=2)", "cost sigmoid does not take sigma"),
        ("Lambda(NDCG, truncation=0)", "truncation is 0"),
        ("Lambda(NDCG, truncation=x)", "truncation is 'x'"),
        ("Lambda(NDCG, gap=perhaps)", "gap is 'perhaps'"),
        ("Lambda(Graded(NDCG))", "takes one measure"),
        ("Graded(NDCG, MAP)", "is not an objective"),
        ("Regression@3", "takes label=NAME"),
    ],
)
def test_wrong_names(name: str, message: str) -> None:
    with pytest.raises(GradrankError, match=message):
        parse_objective(name)


@given(st.text(alphabet="LambdaNDCGcost=sigmoid,mu1()@ ", max_size=50))
def test_near_names_raise_nothing_else(text: str) -> None:
    try:
        parse_objective(text)
    except GradrankError:
        return

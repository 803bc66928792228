"""Objectives by name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank.errors import GradrankError
from gradrank.measures import NDCG
from gradrank.objectives import (
    Constructed,
    Focused,
    Lambda,
    RankNetPairs,
    Regression,
    Sigmoid,
    parse_objective,
    recommended,
    with_construction,
)
from gradrank.objectives.constructions import SpringSmooth


@pytest.mark.parametrize(
    "name",
    [
        "Lambda(NDCG@10)",
        "Lambda(MAP(rel=2), cost=sigmoid, mu=0.5, pairs=misranked)",
        "Lambda(NDCG, cost=ranknet, sigma=2, truncation=30, normalize=log, gap=true)",
        "Lambda(ERR@5, normalize=deviation, ties=file)",
        "Regression",
        "Regression(label=clicks)",
        "RankNet",
        "RankNet(sigma=2, label=clicks)",
        "ListNet",
        "ListNet(exact=true, label=clicks)",
        "ListMLE",
        "ListMLE(k=10)",
        "Focused(k=5, beta=0.25, label=topk)",
        "Lambda(NDCG@10, construction=spring-smooth)",
        "Lambda(MAP, construction=local-cost, reach=3, cost=sigmoid, mu=1, normalize=log, ties=file)",
        "Lambda(MRR, construction=local-gradient, margin=0.1)",
        "Scheduled(Lambda(NDCG), Lambda(NDCG, construction=discrete-bounded), schedule=linear, w0=0.1, eta=0.01)",
    ],
)
def test_name_round_trip(name: str) -> None:
    assert str(parse_objective(name)) == name
    assert parse_objective(str(parse_objective(name))) == parse_objective(name)


def test_none_is_a_word_where_it_is_the_default() -> None:
    assert str(parse_objective("ApproxNDCG(normalize=none, k=5)")) == "ApproxNDCG(k=5)"
    assert parse_objective("ListMLE(k=none)") == parse_objective("ListMLE")


def test_what_names_mean() -> None:
    assert parse_objective("NDCG@10") == recommended(NDCG(10))
    assert parse_objective("Lambda(NDCG, cost=sigmoid, mu=1)") == Lambda(NDCG(), cost=Sigmoid(1))
    assert parse_objective("regression") == Regression()
    assert parse_objective("Lambda(NDCG, truncation=none)") == Lambda(NDCG())
    assert parse_objective("ranknet") == RankNetPairs()
    assert parse_objective("Focused") == Focused(k=10, beta=0.5)
    assert parse_objective("Lambda(NDCG, construction=ranknet-weight-pairs)") == Lambda(NDCG())
    assert parse_objective("Lambda(NDCG, construction=misranked-pairs)") == Lambda(NDCG(), pairs="misranked")
    for spelling in ("spring-smooth", "spring_smooth", "SpringSmooth", "Spring-Smooth"):
        assert parse_objective(f"Lambda(NDCG, construction = {spelling})") == Constructed(NDCG(), SpringSmooth())


@pytest.mark.parametrize(
    ("goal", "target"),
    [
        ("NDCG@10", "NDCG"),
        ("NDCG(convention=letor4)@10", "NDCG(convention=letor4)"),
        ("NDCG", "NDCG"),
        ("DCG@5", "DCG"),
        ("CNDCG@3", "CNDCG"),
        ("KappaNDCG@10", "KappaNDCG"),
        ("KappaERR@10", "KappaNDCG"),
        ("ERR@10", "NDCG"),
        ("ERR(label=fresh)", "NDCG(label=fresh)"),
        ("MRR(rel=2)", "NDCG(gain=linear)"),
        ("WTA", "NDCG(gain=linear)"),
        ("P@5", "NDCG(gain=linear)"),
        ("Recall(label=fresh)@5", "NDCG(label=fresh, gain=linear)"),
        ("MAP@10", "NDCG(gain=linear)"),
        ("MAP", "MAP"),
        ("RBP@10", "RBP"),
        ("P(rel=0)@5", "P(rel=0)"),
        ("KendallTau", "KendallTau"),
    ],
)
def test_a_measure_as_goal_trains_deep_and_chooses_by_itself(goal: str, target: str) -> None:
    objective = parse_objective(goal)
    assert isinstance(objective, Lambda)
    assert str(objective.target) == target
    assert objective.target.cutoff is None
    assert str(objective.measure) == goal
    assert parse_objective(str(objective)) == objective
    exact = parse_objective(f"Lambda({goal})")
    assert isinstance(exact, Lambda)
    assert (str(exact.target), str(exact.measure)) == (goal, goal)


def test_goals_inside_compositions_choose_the_model() -> None:
    tiers = parse_objective("Tiered(NDCG@3, CNDCG@3, weight=0.2)")
    assert str(tiers.measure) == "Graded(NDCG@3, CNDCG@3)"
    assert str(parse_objective("Scheduled(P@5, MAP)").measure) == "P@5"
    assert str(parse_objective("Noisy(MRR)").measure) == "MRR"


def test_with_construction_keeps_what_both_have() -> None:
    made = with_construction(Lambda(NDCG(), cost=Sigmoid(1), normalize="log", ties="file"), "spring-smooth")
    assert str(made) == "Lambda(NDCG, construction=spring-smooth, cost=sigmoid, mu=1, normalize=log, ties=file)"
    assert with_construction(made, "ranknet-weight-pairs") == Lambda(
        NDCG(), cost=Sigmoid(1), normalize="log", ties="file"
    )
    with pytest.raises(GradrankError, match=r"has pairs of its own: .* gives truncation"):
        with_construction("Lambda(NDCG, truncation=3)", "spring-smooth")
    with pytest.raises(GradrankError, match="ListNet is not built on one"):
        with_construction("ListNet", "spring-smooth")


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
        ("ListNet(5)", "ListNet takes exact=…, label=…, nothing else"),
        ("ListNet(exact=perhaps)", "exact is 'perhaps'"),
        ("ListMLE(k=0)", "k is 0, expected a whole number of 1 or more"),
        ("ListMLE(k=2.5)", "k is 2.5"),
        ("ListMLE@5", "nothing else"),
        ("Focused(k=13)", "k is 13, expected a whole number of 1 to 12"),
        ("Focused(beta=2)", "beta is 2"),
        ("Focused(label=3)", "label is 3, expected the name"),
        ("RankNet(sigma=0)", "sigma is 0"),
        ("ListNett", "objectives that are no measures are Lambda, .*ListNet"),
        ("Lambda(NDCG, construction=spring)", "there is no construction 'spring'; there are ranknet-weight-pairs"),
        ("Lambda(NDCG, construction=spring-smooth, margin=1)", "spring-smooth has no option 'margin'; it has floor"),
        ("Lambda(NDCG, construction=unit-pairs, foo=1)", "unit-pairs has no option 'foo'; it has none"),
        ("Lambda(NDCG, construction=spring-smooth, floor=x)", "floor is 'x'"),
        ("Lambda(NDCG, construction=local-gradient, margin=0)", "margin is 0"),
        ("Lambda(NDCG, construction=local-cost, reach=1.5)", "reach is 1.5"),
        ("Lambda(NDCG, construction=discrete-bounded, bound=0)", "bound is 0"),
        ("Lambda(NDCG, construction=spring-smooth, pairs=all)", "does not take pairs"),
        ("Lambda(NDCG, construction=local-gradient, cost=sigmoid)", "takes no cost"),
        ("Lambda(NDCG, construction=spring-smooth, normalize=x)", "normalize is 'x'"),
        ("Tiered(NDCG, CNDCG, normalize=log)", "normalize is 'log', expected none or deviation"),
        ("Regression@3", "takes label=…"),
    ],
)
def test_wrong_names(name: str, message: str) -> None:
    with pytest.raises(GradrankError, match=message):
        parse_objective(name)


@given(st.text(alphabet="LambdaNDCGcost=sigmoid,mu1()@ ", max_size=50))
def test_near_names_raise_nothing_else(text: str) -> None:
    try:
        found = parse_objective(text)
    except GradrankError:
        return
    assert parse_objective(str(found)) == found

"""Names of measures: every wrong one is refused with a sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank.errors import MeasureError
from gradrank.measures import NDCG, as_measures, parse_measure
from gradrank.measures.grammar import Expression, parse_expression


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "is empty"),
        ("NDGC@10", "did you mean NDCG"),
        ("NDCG@", "is not a name like"),
        ("NDCG@x", "cut-off after @ is 'x'"),
        ("NDCG@2.5", "cut-off after @ is 2.5"),
        ("NDCG@0", "cut-off is 0"),
        ("NDCG@-1", "cut-off is -1"),
        ("NDCG@3@4", "does not belong"),
        ("NDCG(5)", "parameters are given as name=value"),
        ("NDCG(foo=1)", "no parameter 'foo'; it has label, convention, ties"),
        ("NDCG(gain=cubic)", "gain is 'cubic', expected exp2 or linear or a list"),
        ("NDCG(gain=[1, -1])", "expected exp2 or linear or a list"),
        ("NDCG(empty=2)", "empty is 2, expected skip or a number in 0…1"),
        ("NDCG(ties=random)", "ties is 'random'"),
        ("NDCG(convention=lucene)", "no convention 'lucene'; the conventions are gradrank, letor4"),
        ("ERR(convention=letor4)", "letor4 does not define ERR; it has NDCG, MeanNDCG, MAP, P"),
        ("NDCG(cutoff=3)", "no parameter 'cutoff'"),
        ("NDCG(gain=linear, gain=exp2)", "each once"),
        ("NDCG(label='a b')", "expected the name of a label source"),
        ("WTA@3", "takes no cut-off"),
        ("RBP(p=1.5)", "p is 1.5"),
        ("MAP(rel=-1)", "rel is -1"),
        ("1 + 2", "does not belong"),
        ("__import__('os')", "no measure"),
        ("NDCG.x", "does not belong"),
        ("lambda: 0", "does not belong"),
        ("Graded()", "at least one measure"),
        ("Graded(Graded(NDCG))", "takes measures"),
        ("Graded(NDCG, weight=2)", "tolerance=number"),
        ("Graded(NDCG, tolerance=-1)", "tolerance is -1"),
        ("Graded(3)", "takes measures, found 3"),
        ("(" * 3000, "longer than"),
        ("(" * 900 + ")" * 900, "is not a name|does not belong"),
        ("-" * 1500 + "1", "is not a name|does not belong"),
        ("NDCG@10\x00", "is not a name like"),
    ],
)
def test_wrong_names(name: str, message: str) -> None:
    with pytest.raises(MeasureError, match=message):
        parse_measure(name)


@given(st.text(max_size=40) | st.text(alphabet="NDCGMAPERgraded(),=@0123456789.[] '-ties", max_size=40))
def test_any_text_is_a_measure_or_a_measure_error(text: str) -> None:
    try:
        found = parse_measure(text)
    except MeasureError:
        return
    assert parse_measure(str(found)) == found


def test_expression_keeps_nested_calls() -> None:
    expression = parse_expression("Tiered(NDCG, CNDCG(label=clicks)@3, weight=0.2)")
    assert expression.name == "Tiered"
    assert expression.arguments == ("NDCG", Expression("CNDCG", (), {"label": "clicks"}, 3))
    assert expression.keywords == {"weight": 0.2}


def test_names_of_trec_eval_mean_its_convention() -> None:
    for name, meant in {
        "ndcg_cut_10": "NDCG(convention=trec_eval)@10",
        "ndcg_cut.10": "NDCG(convention=trec_eval)@10",
        "map_cut_100": "MAP(convention=trec_eval)@100",
        "recip_rank": "MRR(convention=trec_eval)",
        "P_5": "P(convention=trec_eval)@5",
        "P.5": "P(convention=trec_eval)@5",
        "recall_1000": "Recall(convention=trec_eval)@1000",
        "P_5(rel=2)": "P(convention=trec_eval, rel=2)@5",
    }.items():
        assert str(parse_measure(name)) == meant
        assert str(parse_measure(name, convention="letor4")) == meant
    graded = parse_measure("Graded(ndcg_cut.3, recip_rank)")
    assert str(graded) == "Graded(NDCG(convention=trec_eval)@3, MRR(convention=trec_eval))"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ndcg_cut_10@5", "has two cut-offs"),
        ("ndcg_cut", "did you mean ndcg_cut_K"),
        ("recip_rnk", "did you mean recip_rank"),
        ("P_x", "no measure 'P_x'"),
        ("P_0", "cut-off is 0"),
        ("Rprec", r"no measure 'Rprec'.*of trec_eval's names ndcg_cut_K, map_cut_K, recip_rank, P_K, recall_K"),
        ("NDCG(gian=linear)", "no parameter 'gian'; did you mean gain"),
    ],
)
def test_near_misses_are_named(name: str, message: str) -> None:
    with pytest.raises(MeasureError, match=message):
        parse_measure(name)


def test_a_convention_holds_for_measures_that_name_none() -> None:
    assert parse_measure("NDCG@5", convention="mslr") == NDCG(5, convention="mslr")
    assert parse_measure("ndcg", convention="trec_eval") == NDCG(convention="trec_eval")
    assert parse_measure("NDCG(convention=letor4)@5", convention="mslr") == NDCG(5, convention="letor4")
    with pytest.raises(MeasureError, match="the convention mslr does not define ERR"):
        parse_measure("ERR", convention="mslr")
    with pytest.raises(MeasureError, match="there is no convention 'lucene'"):
        parse_measure("NDCG", convention="lucene")


def test_one_or_several_measures_or_names() -> None:
    assert as_measures("NDCG@10") == as_measures(NDCG(10)) == as_measures([NDCG(10), "ndcg@10"]) == (NDCG(10),)
    assert as_measures(parse_measure("Graded(NDCG@3, MAP)")) == (NDCG(3), parse_measure("MAP"))
    assert as_measures([]) == ()


def test_spellings_mean_the_same() -> None:
    # As ir_measures and ranx spell them.
    assert parse_measure("nDCG@10") == parse_measure("ndcg@10") == NDCG(10)
    assert parse_measure("RR@10") == parse_measure("mrr@10") == parse_measure("MRR@10")
    assert parse_measure("R@100") == parse_measure("recall@100") == parse_measure("Recall@100")
    assert parse_measure(" ndcg( ties = average ) @ 10 ") == NDCG(10)
    assert NDCG() @ 10 == NDCG(10)
    assert parse_measure("AP") == parse_measure("MAP")
    assert parse_measure("Precision@5") == parse_measure("P@5")
    assert parse_measure("NDCG(convention=letor4, gain=exp2)@10") == parse_measure("NDCG(convention=letor4)@10")
    assert NDCG(10) != NDCG(10, convention="ranklib")

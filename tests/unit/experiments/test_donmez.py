"""Studies of constructions and of training measures: what they report is what separate training gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gradrank.data.artificial import make_splits
from gradrank.errors import GradrankError
from gradrank.evaluation import t_test
from gradrank.experiments import recipe, run
from gradrank.experiments.constructions import REFERENCE, check_study, study_constructions
from gradrank.experiments.donmez import queries_with_pairs
from gradrank.experiments.train_test_measures import pairs_table, study_measures, study_pairs
from gradrank.learners import LambdaMART, LambdaRank
from gradrank.measures import MAP, MRR, NDCG
from gradrank.objectives import Lambda, parse_objective

QUICK = {"n_estimators": 8, "min_child_samples": 5}


@pytest.fixture(scope="module")
def splits():
    return make_splits(60, n_docs=12, n_features=6, random_state=2)


def test_a_study_is_one_training_for_each_construction(splits) -> None:
    train, valid = splits["train"], splits["vali"]
    study = study_constructions(
        train, valid, MAP(), constructions=["spring-smooth", "local-cost(reach=2)"], parameters=QUICK, n_jobs=1
    )
    assert study.evaluation.systems == (REFERENCE, "spring-smooth", "local-cost(reach=2)")
    values = {}
    for name in ("ranknet-weight-pairs", "spring-smooth"):
        learner = LambdaMART(
            f"Lambda(MAP, construction={name})", step="gradient", split="mse", measure="MAP", n_jobs=1, **QUICK
        ).fit(train, valid=valid)
        values[name] = MAP().values(learner.ranker_.predict(valid), valid)
        np.testing.assert_allclose(study.evaluation.values[name][MAP()], values[name])
    summary = study.to_dict()["constructions"]["spring-smooth"]
    error = values["spring-smooth"].std(ddof=1) / np.sqrt(valid.n_queries)
    np.testing.assert_allclose(summary["standard_error"], error)
    row = next(row for row in study.comparison.rows if row.system == "spring-smooth")
    np.testing.assert_allclose(row.test.p, t_test(values["spring-smooth"], values[REFERENCE]).p)
    shown = study.table().rows
    assert [row[1] for row in shown] == sorted((row[1] for row in shown), reverse=True)


def test_ctrl_c_keeps_the_constructions_that_are_done(splits) -> None:
    done = []

    def said(name: str, value: float) -> None:
        done.append(name)

    def interrupt(step) -> None:
        if len(done) == 2:
            raise KeyboardInterrupt

    study = study_constructions(
        splits["train"], splits["vali"], "MAP", parameters={**QUICK, "callbacks": (interrupt,)}, said=said
    )
    assert study.interrupted
    assert study.evaluation.systems == tuple(done)
    assert len(done) == 2
    with pytest.raises(KeyboardInterrupt):
        study_constructions(splits["train"], splits["vali"], "MAP", parameters={**QUICK, "callbacks": (interrupt,)})


# With misranked pairs alone there may be nothing left to learn, which is said.
@pytest.mark.filterwarnings("ignore:nothing is left to learn")
def test_training_and_test_measures(splits) -> None:
    objectives = {"NDCG": "Lambda(NDCG)", "MRR(rel=2)": Lambda(MRR(rel=2), pairs="misranked")}
    study = study_measures(
        splits["train"], splits["vali"], splits["test"], objectives, parameters={**QUICK, "subsample": 1.0}, n_jobs=1
    )
    for name, objective in (("NDCG", Lambda(NDCG())), ("MRR(rel=2)", Lambda(MRR(rel=2), pairs="misranked"))):
        learner = LambdaMART(objective, measure=name, subsample=1.0, n_jobs=1, **QUICK)
        learner.fit(splits["train"], valid=splits["vali"])
        scores = learner.ranker_.predict(splits["test"])
        for measure in (NDCG(), MRR(rel=2)):
            np.testing.assert_allclose(study.evaluation.values[name][measure], measure.values(scores, splits["test"]))
        pairs = objective.bind(splits["train"]).gradients(learner.ranker_.predict(splits["train"]), count_pairs=True)
        assert study.effective_pairs[name] == pairs.effective_pairs
    # The row of the matching measure has nothing to be compared with.
    assert [row[6] == "–" for row in study.table().rows] == [True, False, False, True]
    assert study.effective_pairs["MRR(rel=2)"] < study.effective_pairs["NDCG"]


def test_more_training_queries_have_more_effective_pairs(splits) -> None:
    studies = study_pairs(
        splits["train"], splits["vali"], splits["test"], [15, 60], {"NDCG": "Lambda(NDCG)", "MRR": "Lambda(MRR)"},
        parameters=QUICK,
    )  # fmt: skip
    rows = pairs_table(studies, "MRR").rows
    assert [row[:2] for row in rows] == [("MRR", 15), ("MRR", 60), ("NDCG", 15), ("NDCG", 60)]
    assert rows[0][2] < rows[1][2]
    assert rows[2][2] < rows[3][2]
    with pytest.raises(GradrankError, match="sizes has 61"):
        study_pairs(splits["train"], splits["vali"], splits["test"], [61])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measure": "Graded(MAP, MRR)"}, "is a graded measure"),
        ({"constructions": ["spring"]}, "there is no construction 'spring'"),
        ({"constructions": ["local-cost(3)"]}, "is not a construction like"),
        ({"algorithm": "lambdamrt"}, "there is no algorithm"),
        ({"algorithm": "mart"}, "learns by regression"),
        ({"parameters": {"tree": 3}}, "has no parameter 'tree'"),
        ({"parameters": {"objective": "MAP"}}, "has no parameter 'objective' to set"),
        ({"parameters": {"n_estimators": 0}}, "n_estimators is 0"),
    ],
)
def test_wrong_arguments_are_found_without_data(options, message: str) -> None:
    given = {"measure": "MAP", "constructions": None, "algorithm": "lambdamart", "parameters": None, **options}
    with pytest.raises(GradrankError, match=message):
        check_study(**given)


TREES = ("n_estimators=8", "min_child_samples=5")


@pytest.mark.parametrize(("name", "rows"), [("donmez-1", 3), ("donmez-2", 3), ("donmez-3", 16), ("donmez-4", 16)])
def test_recipes_run_with_trees_on_given_data(name: str, rows: int, splits) -> None:
    said: list[str] = []
    scale = replace(recipe(name).tiny, algorithm="lambdamart", parameters=TREES, n_jobs=1)
    result = run(name, scale=scale, data=splits, say=said.append)
    assert result.name == name
    assert said
    assert result.settings["queries"] == 60
    assert "noise" not in result.settings  # it describes artificial data
    assert len(result.tables[0].rows) == rows
    assert result.learners["lambdamart"]["n_estimators"] == 8


def test_figure_5_has_a_curve_for_each_training_measure(splits) -> None:
    scale = replace(recipe("donmez-fig5").tiny, algorithm="lambdamart", parameters=TREES, n_jobs=1)
    points, *curves = run("donmez-fig5", scale=scale, data=splits).tables
    assert len(points.rows) == 8
    assert [curve.title for curve in curves] == [
        f"trained for {name}" for name in ("MAP(rel=2)", "MRR(rel=2)", "NDCG", "NDCG@10")
    ]
    np.testing.assert_allclose(10 ** curves[0].rows[0][0], points.rows[0][2])
    rows = points.records()
    mrr = [row["effective pairs"] for row in rows if row["train"] == "MRR(rel=2)"]
    assert [row["queries"] for row in rows if row["train"] == "MRR(rel=2)"] == [30, 60]
    # The others have fewer queries, and as many pairs at least.
    for row in rows:
        if row["train"] == "NDCG":
            assert row["queries"] < 30
            assert row["effective pairs"] >= min(mrr)
    assert curves[0].rows[0][1] == points.rows[0][3]


def test_queries_are_as_few_as_have_the_pairs(splits) -> None:
    train, objective = splits["train"], parse_objective("Lambda(MAP(rel=2))")
    # Each relevant document makes a pair with each other one, in any order.
    labels = [train.take_queries([query]).label() for query in range(train.n_queries)]
    pairs = np.cumsum([int((label >= 2).sum() * (label < 2).sum()) for label in labels])
    for count in (5, 17, 59):
        assert queries_with_pairs(objective, train, int(pairs[count - 1])) == 1 + int(
            np.argmax(pairs >= pairs[count - 1])
        )


def test_pairs_of_an_epoch_are_those_that_its_training_met(splits) -> None:
    pytest.importorskip("torch")
    scale = replace(recipe("donmez-fig5").tiny, shares=(1.0,), learning_rates=(0.01,), n_jobs=1)
    points = run("donmez-fig5", scale=scale, data=splits).tables[0].records()
    row = next(row for row in points if row["train"] == "MRR(rel=2)")
    learner = LambdaRank(
        **{**scale.candidates()[0], "objective": "Lambda(MRR(rel=2), pairs=misranked)", "measure": "MRR(rel=2)"},
        random_state=0,
        n_jobs=1,
    ).fit(splits["train"], valid=splits["vali"])
    assert row["effective pairs"] == round(np.mean(learner.state_.pairs))


def test_claims_are_about_the_constructions_of_the_papers_table(splits) -> None:
    scale = replace(
        recipe("donmez-1").tiny, algorithm="lambdamart", parameters=TREES, n_jobs=1,
        constructions=("unit-pairs", "local-cost(reach=2)", "best-swap"),
    )  # fmt: skip
    result = run("donmez-1", scale=scale, data=splits)
    assert len(result.tables[0].rows) == 4
    assert [claim.says for claim in result.claims] == [
        "ranknet-weight-pairs has a higher MAP(rel=2) than local-cost(reach=2)"
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters": ("n_estimators",)}, "parameters has 'n_estimators', expected KEY=VALUE"),
        ({"parameters": ("tree=3",)}, "lambdarank has no parameter 'tree'"),
        ({"algorithm": "mart"}, "algorithm is 'mart', expected lambdarank or lambdamart"),
        ({"optimizer": "sgd"}, "optimizer is 'sgd', expected adam or donmez"),
    ],
)
def test_wrong_settings(changes, message: str, splits) -> None:
    with pytest.raises(GradrankError, match=message):
        run("donmez-1", scale=replace(recipe("donmez-1").tiny, **changes), data=splits)


def test_the_nets_are_those_of_the_tables_whatever_the_defaults_are() -> None:
    # The tables of the documentation were made with tanh.
    assert recipe("donmez-3").small.learners()["lambdarank"]["activation"] == "tanh"
    paper = recipe("donmez-3").full.learners()["lambdarank"]
    assert (paper["optimizer"], paper["epochs"], paper["restart"], paper["hidden_layer_sizes"]) == (
        "donmez",
        700,
        50,
        10,
    )


def test_the_papers_objectives_are_names() -> None:
    from gradrank.experiments.train_test_measures import PAPER_OBJECTIVES

    for measure, objective in PAPER_OBJECTIVES.items():
        assert str(parse_objective(objective).measure) == measure

"""``gradrank evaluate`` and ``gradrank compare``, from files to output."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import pytest
from scipy import stats

from tests.support.commands import run

# Query a: relevant second; query b: relevant first and second, in rows that are not consecutive.
LETOR = "0 qid:a 1:1\n1 qid:a 1:2\n1 qid:b 1:1\n0 qid:b 1:2\n2 qid:b 1:3\n"
SCATTERED = "1 qid:b 1:1\n0 qid:a 1:1\n0 qid:b 1:2\n1 qid:a 1:2\n2 qid:b 1:3\n"
GOOD = [1, 2, 2, 1, 3]  # RR 1, 1
BAD = [2, 1, 1, 3, 2]  # RR 1/2, 1/2; AP 1/2, (1/2 + 2/3)/2
BAD_SCATTERED = [1, 2, 3, 1, 2]


def column(path: Path, values) -> Path:
    path.write_text("".join(f"{value}\n" for value in values))
    return path


@pytest.fixture
def files(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("data.txt").write_text(LETOR)
    column(Path("good.txt"), GOOD)
    column(Path("bad.txt"), BAD)
    return tmp_path


def test_json_has_exactly_this_shape(files) -> None:
    scores = ("--scores", "good.txt", "--scores", "bad.txt")
    result = run("evaluate", "data.txt", *scores, "-m", "mrr", "-m", "MAP", "--format", "json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "good.txt": {"MRR": 1.0, "MAP": 1.0},
        "bad.txt": {"MRR": 0.5, "MAP": pytest.approx((1 / 2 + 7 / 12) / 2)},
        "queries": 2,
    }


def test_conventions_keep_their_name(files) -> None:
    result = run("evaluate", "data.txt", "--scores", "good.txt", "-m", "MAP(convention=mslr)", "--format", "json")
    # Relevant is label 2: none in query a (0), first in query b.
    assert json.loads(result.stdout)["good.txt"] == {"MAP(convention=mslr)": 0.5}


@pytest.mark.parametrize("command", ["evaluate", "compare", "report"])
def test_a_convention_for_all_measures(files, command) -> None:
    scores = ("--scores", "good.txt", "--scores", "bad.txt")
    names = ("-m", "MAP", "-m", "MAP(convention=letor4)", "-m", "P_1", "--convention", "mslr")
    if command == "report":
        run("report", "data.txt", *scores, *names, "-o", "out.html")
        shown = Path("out.html").read_text()
    else:
        shown = run(command, "data.txt", *scores, *names, "--format", "csv").stdout
    for name in ("MAP(convention=mslr)", "MAP(convention=letor4)", "P(convention=trec_eval)@1"):
        assert name in shown
    result = run("evaluate", "data.txt", *scores, "--convention", "mslr", "--format", "json")
    # Of the usual measures the convention lacks MRR.
    assert list(json.loads(result.stdout)["good.txt"]) == ["NDCG(convention=mslr)@10", "MAP(convention=mslr)"]
    result = run("evaluate", "data.txt", *scores, "--convention", "trec")
    assert result.exit_code == 2
    assert "there is no convention 'trec'; did you mean trec_eval?" in result.stderr


def test_models_without_a_name_are_called_as_their_file(files) -> None:
    from gradrank import LinearRanker

    LinearRanker([1.0]).save("up=1.json")
    LinearRanker([-1.0]).save("down.json")
    models = ("--model", "up=1.json", "--model", "down.json", "--model", "x=up=1.json")
    told = json.loads(run("evaluate", "data.txt", *models, "-m", "MRR", "--format", "json").stdout)
    # Query a: relevant has the higher value; query b: 3, 2, 1 with labels 2, 0, 1.
    assert told == {"up=1.json": {"MRR": 1.0}, "down.json": {"MRR": 0.75}, "x": {"MRR": 1.0}, "queries": 2}


def test_default_measures(files) -> None:
    result = run("evaluate", "data.txt", "--scores", "good.txt", "--format", "json")
    assert json.loads(result.stdout)["good.txt"] == {"NDCG@10": 1.0, "MAP": 1.0, "MRR": 1.0}


def test_nan_becomes_null(files) -> None:
    Path("zero.txt").write_text("0 qid:a 1:1\n0 qid:a 1:2\n")
    column(Path("s.txt"), [1, 2])
    result = run("evaluate", "zero.txt", "--scores", "s.txt", "-m", "NDCG(empty=skip)", "--format", "json")
    assert json.loads(result.stdout) == {"s.txt": {"NDCG(empty=skip)": None}, "queries": 1}
    assert "leaves out 1 of 1 queries" in result.stderr
    assert "1 without a relevant document" in result.stderr


def test_forms_agree(files) -> None:
    arguments = ("evaluate", "data.txt", "--scores", "bad.txt", "-m", "MRR", "--format")
    (row,) = csv.DictReader(run(*arguments, "csv").stdout.splitlines())
    assert row == {"system": "bad.txt", "MRR": "0.5", "MRR ±": "0.0"}
    assert "| bad.txt | 0.5000 ± 0.0000 |" in run(*arguments, "md").stdout.splitlines()
    assert "0.5000 ± 0.0000" in run(*arguments, "table").stdout


def test_scores_follow_the_rows_of_a_file_that_was_regrouped(files) -> None:
    Path("scattered.txt").write_text(SCATTERED)
    column(Path("s.txt"), BAD_SCATTERED)
    result = run("evaluate", "scattered.txt", "--scores", "s.txt", "-m", "MAP", "--format", "json")
    assert json.loads(result.stdout)["s.txt"]["MAP"] == pytest.approx((1 / 2 + 7 / 12) / 2)
    assert "gradrank: note: scattered.txt: rows of some queries are not consecutive" in result.stderr
    quiet = run("evaluate", "scattered.txt", "--scores", "s.txt", "-m", "MAP", "--format", "json", "--quiet")
    assert quiet.stderr == ""
    assert quiet.stdout == result.stdout


def test_label_files_follow_the_rows_too(files) -> None:
    Path("scattered.txt").write_text(SCATTERED)
    column(Path("s.txt"), BAD_SCATTERED)
    column(Path("clicks.txt"), [0, 0, 1, 1, 0])  # clicked: rank 1 of b, rank 2 of a
    result = run(
        "evaluate", "scattered.txt", "--scores", "s.txt", "--label", "clicks=clicks.txt", "-m", "MRR(label=clicks)",
        "-m", "Graded(MRR, CNDCG@1)", "--format", "json",
    )  # fmt: skip
    assert json.loads(result.stdout)["s.txt"] == {"MRR(label=clicks)": 0.75, "MRR": 0.5, "CNDCG@1": 0.5}


def test_per_query_file(files) -> None:
    result = run("evaluate", "data.txt", "--scores", "bad.txt", "-m", "MAP", "--per-query", "values.csv")
    assert result.exit_code == 0
    with open("values.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["system"], row["qid"]) for row in rows] == [("bad.txt", "a"), ("bad.txt", "b")]
    assert [float(row["MAP"]) for row in rows] == pytest.approx([1 / 2, 7 / 12])


def test_unjudged_labels_need_to_be_allowed(files) -> None:
    Path("gaps.txt").write_text("nan qid:a 1:1\n1 qid:a 1:2\n")
    column(Path("s.txt"), [2, 1])
    assert run("evaluate", "gaps.txt", "--scores", "s.txt").exit_code == 2
    result = run(
        "evaluate", "gaps.txt", "--scores", "s.txt", "-m", "MRR(unjudged=skip)", "--missing", "--format", "json"
    )
    assert json.loads(result.stdout)["s.txt"] == {"MRR(unjudged=skip)": 1.0}


# ---------------------------------------------------------------- TREC
def test_trec_files(files) -> None:
    # The tool's own values, as pytrec_eval gives them.
    import pytrec_eval

    qrels = {"q1": {"d1": 1, "d2": 0, "d3": 2}, "q2": {"d1": 1}, "q3": {"d9": 1}}
    run_scores = {"q1": {"d2": 3.0, "d3": 2.0, "dx": 1.0}, "q2": {"d1": 1.0}, "q9": {"d1": 1.0}}
    Path("qrels.txt").write_text("".join(f"{q} 0 {d} {g}\n" for q, by in qrels.items() for d, g in by.items()))
    Path("run.txt").write_text("".join(f"{q} Q0 {d} 1 {s} x\n" for q, by in run_scores.items() for d, s in by.items()))
    values = pytrec_eval.RelevanceEvaluator(qrels, {"map", "ndcg"}).evaluate(run_scores)
    result = run(
        "evaluate", "qrels.txt", "--scores", "run.txt", "--format", "json",
        "-m", "MAP(convention=trec_eval)", "-m", "NDCG(convention=trec_eval)",
    )  # fmt: skip
    # pytrec_eval leaves the missing query q3 out; here it counts as nothing retrieved.
    assert json.loads(result.stdout) == {
        "run.txt": {
            "MAP(convention=trec_eval)": pytest.approx(sum(v["map"] for v in values.values()) / 3, rel=1e-6),
            "NDCG(convention=trec_eval)": pytest.approx(sum(v["ndcg"] for v in values.values()) / 3, rel=1e-6),
        },
        "queries": 3,
    }
    assert "run.txt: lacks 1 queries" in result.stderr
    assert "run.txt: has 1 queries that are not in the qrels" in result.stderr


def test_a_run_can_be_evaluated_on_data_with_document_ids(files) -> None:
    Path("ids.txt").write_text("0 qid:a 1:1 # d1\n1 qid:a 1:2 # d2\n")
    Path("run.txt").write_text("a Q0 d1 1 2 x\na Q0 d2 2 1 x\n")
    result = run("evaluate", "ids.txt", "--scores", "run.txt", "-m", "MRR", "--format", "json")
    assert json.loads(result.stdout)["run.txt"] == {"MRR": 0.5}


# ---------------------------------------------------------------- errors
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope.txt", "--scores", "good.txt"], "nope.txt: there is no such file"),
        (["data.txt", "--scores", "nope.txt"], "nope.txt: there is no such file"),
        (["data.txt", "--scores", "word.txt"], "word.txt:2: "),
        (["data.txt", "--scores", "short.txt"], "short.txt: holds 2 scores, expected 5"),
        (["broken.txt", "--scores", "good.txt"], "broken.txt:2: "),
        (["data.txt", "--scores", "good.txt", "--scores", "good.txt"], "system 'good.txt' is given twice"),
        (["data.txt", "--scores", "good.txt", "-m", "NDGC@10"], "there is no measure 'NDGC'"),
        (["data.txt"], "there is no system: give --scores FILE or --model MODEL"),
        (["data.txt", "--model", "nope.json"], "nope.json: there is no such file"),
        (["data.txt", "--model", "a=data.txt"], "data.txt: is not a model"),
        (["data.txt", "--scores", "good.txt", "--label", "clicks"], "--label is 'clicks', expected NAME=FILE"),
        (["data.txt", "--scores", "good.txt", "--weighted"], "this data has no query weights"),
        (["data.txt", "--scores", "good.txt", "-m", "CNDCG@3"], "there is no label source 'clicks'"),
        (["data.txt", "--scores", "good.txt", "--from", "xml"], "there is no format 'xml'"),
        (["data.txt", "--scores", "good.txt", "--per-query", "no/folder.csv"], "no/folder.csv: cannot be written"),
        ([".", "--scores", "good.txt"], "."),
    ],
)
def test_an_error_is_one_line(files, arguments, message) -> None:
    column(Path("word.txt"), [1, "x", 3, 4, 5])
    column(Path("short.txt"), [1, 2])
    Path("broken.txt").write_text("1 qid:a 1:1\n1 qid:a one\n")
    before = sorted(path.name for path in files.iterdir())
    result = run("evaluate", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = [line for line in result.stderr.splitlines() if not line.startswith("gradrank: note:")]
    assert line.startswith("gradrank: error: ")
    assert message in line
    assert sorted(path.name for path in files.iterdir()) == before


def test_usage_errors_exit_with_two(files) -> None:
    assert run("evaluate", "data.txt").exit_code == 2
    assert run("evaluate", "data.txt", "--scores", "good.txt", "--threads", "0").exit_code == 2
    assert run("evaluate", "data.txt", "--scores", "good.txt", "--format", "xml").exit_code == 2


# ---------------------------------------------------------------- compare
@pytest.fixture
def many(tmp_path, monkeypatch) -> Path:
    """Forty queries of two documents: B finds the relevant one in 30, A in 20, both in 15."""
    monkeypatch.chdir(tmp_path)
    a = [1] * 20 + [0] * 20
    b = [1] * 15 + [0] * 5 + [1] * 15 + [0] * 5
    Path("data.txt").write_text("".join(f"1 qid:{q} 1:0\n0 qid:{q} 1:0\n" for q in range(40)))
    for name, found in (("a.txt", a), ("b.txt", b)):
        column(Path(name), [score for hit in found for score in ((1, 0) if hit else (0, 1))])
    return tmp_path


def reciprocal_ranks() -> tuple[list[float], list[float]]:
    return [1.0] * 20 + [0.5] * 20, [1.0] * 15 + [0.5] * 5 + [1.0] * 15 + [0.5] * 5


def test_compare_json(many) -> None:
    result = run("compare", "data.txt", "--scores", "a.txt", "--scores", "b.txt", "-m", "MRR", "--format", "json")
    described = json.loads(result.stdout)
    (row,) = described["rows"]
    a, b = reciprocal_ranks()
    theirs = stats.ttest_rel(b, a)
    assert (described["baseline"], described["level"], described["correction"]) == ("a.txt", 0.05, "holm")
    assert (row["system"], row["measure"], row["test"]) == ("b.txt", "MRR", "t")
    assert (row["wins"], row["ties"], row["losses"]) == (15, 20, 5)
    assert row["difference"] == pytest.approx(0.125)
    assert row["p"] == row["p_corrected"] == pytest.approx(theirs.pvalue)
    assert row["verdict"] == "better"


def test_compare_randomization_is_near_the_sign_test(many) -> None:
    # All differences have one size, so the exact p-value is that of the sign test, 15 of 20.
    exact = stats.binomtest(15, 20).pvalue
    result = run(
        "compare", "data.txt", "--scores", "a.txt", "--scores", "b.txt", "-m", "MRR", "--test", "randomization",
        "--resamples", "40000", "--seed", "1", "--format", "json",
    )  # fmt: skip
    (row,) = json.loads(result.stdout)["rows"]
    assert row["p"] == pytest.approx(exact, abs=5 * math.sqrt(exact * (1 - exact) / 40000))


def test_compare_forms(many) -> None:
    arguments = ("compare", "data.txt", "--scores", "a.txt", "--scores", "b.txt", "-m", "MRR", "-m", "MAP", "--format")
    rows = list(csv.DictReader(run(*arguments, "csv").stdout.splitlines()))
    assert [row["measure"] for row in rows] == ["MRR", "MAP"]
    assert float(rows[0]["p (holm)"]) == pytest.approx(2 * float(rows[0]["p"]))
    assert "15/20/5" in run(*arguments, "md").stdout
    assert "against a.txt" in run(*arguments, "table").stdout
    plain = run(*arguments, "csv", "--correction", "none").stdout
    assert "p (holm)" not in plain


def test_compare_bootstrap_is_seeded(many) -> None:
    arguments = (
        "compare",
        "data.txt",
        "--scores",
        "a.txt",
        "--scores",
        "b.txt",
        "--test",
        "bootstrap",
        "--format",
        "json",
    )
    assert run(*arguments, "--seed", 3).stdout == run(*arguments, "--seed", 3).stdout
    assert run(*arguments, "--seed", 3).stdout != run(*arguments, "--seed", 4).stdout


def test_compare_errors(many) -> None:
    alone = run("compare", "data.txt", "--scores", "a.txt")
    assert (alone.exit_code, "expected two or more" in alone.stderr) == (2, True)
    level = run("compare", "data.txt", "--scores", "a.txt", "--scores", "b.txt", "--level", "5")
    assert (level.exit_code, "--level is 5.0" in level.stderr) == (2, True)

"""``gradrank report``, from files to the HTML file."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from gradrank.cli.main import app
from gradrank.models.linear import LinearRanker

LETOR = "0 qid:a 1:1\n1 qid:a 1:2\n1 qid:b 1:1\n0 qid:b 1:2\n2 qid:b 1:3\n1 qid:c 1:9\n0 qid:c 1:3\n"


@pytest.fixture
def files(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("data.txt").write_text(LETOR)
    Path("good.txt").write_text("1\n2\n2\n1\n3\n2\n1\n")
    Path("bad.txt").write_text("2\n1\n1\n3\n2\n1\n2\n")
    LinearRanker([1.0], feature_names=["f1"], training={"curves": {"valid": {"MRR": [0.5, 0.75]}}}).save("model.json")
    return tmp_path


def run(monkeypatch, *arguments: str):
    monkeypatch.setattr("sys.argv", ["/somewhere/gradrank", *arguments])
    return CliRunner().invoke(app, list(arguments))


def test_scores_and_models(files, monkeypatch) -> None:
    result = run(
        monkeypatch,
        *("report", "data.txt", "--scores", "bad.txt", "--scores", "good.txt", "--model", "lin=model.json"),
        *("-m", "MRR", "-o", "out.html", "--title", "My <title>"),
    )
    assert result.exit_code == 0, result.output
    assert "wrote out.html" in result.stderr
    text = Path("out.html").read_text(encoding="utf-8")
    assert "<h1>My &lt;title&gt;</h1>" in text
    # RR of the first relevant document: bad 1/2 each; good 1 each; the model 1, 1, 1.
    assert 'data-value="0.5"' in text
    assert text.count('data-value="1.0"') == 2
    assert "against 0.5000, +100.0%" in text
    assert "Learning curve of lin by MRR" in text
    assert "gradrank report data.txt --scores bad.txt" in text
    assert "--title &#39;My &lt;title&gt;&#39;" in text


def test_one_model_alone(files, monkeypatch) -> None:
    assert run(monkeypatch, "report", "data.txt", "--model", "lin=model.json", "-o", "out.html").exit_code == 0
    assert "lin reaches NDCG@10" in Path("out.html").read_text(encoding="utf-8")


def test_a_model_of_a_score_file(files, monkeypatch) -> None:
    arguments = ("report", "data.txt", "--scores", "bad.txt", "--model", "bad.txt=model.json", "-m", "MRR")
    assert run(monkeypatch, *arguments, "-o", "out.html").exit_code == 0
    assert "bad.txt reaches MRR 0.5000" in Path("out.html").read_text(encoding="utf-8")


def test_another_baseline(files, monkeypatch) -> None:
    arguments = ("report", "data.txt", "--scores", "bad.txt", "--scores", "good.txt", "--baseline", "good.txt")
    assert run(monkeypatch, *arguments, "-o", "out.html").exit_code == 0
    assert "good.txt stays ahead" in Path("out.html").read_text(encoding="utf-8")


def test_trec_files(files, monkeypatch) -> None:
    Path("qrels").write_text("1 0 d1 1\n1 0 d2 0\n2 0 d1 1\n")
    Path("run").write_text("1 Q0 d1 1 2.0 x\n1 Q0 d2 2 1.0 x\n2 Q0 d1 1 1.0 x\n")
    assert run(monkeypatch, "report", "qrels", "--scores", "run", "-m", "MRR", "-o", "out.html").exit_code == 0
    assert "run reaches MRR 1.0000" in Path("out.html").read_text(encoding="utf-8")
    refused = run(monkeypatch, "report", "qrels", "--scores", "run", "--model", "m=model.json", "-o", "out.html")
    assert refused.exit_code == 2
    assert "needs features to score" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "there is no system: give --scores FILE or --model MODEL"),
        (("--model", "=model.json"), "--model is '=model.json', expected MODEL or NAME=MODEL"),
        (("--model", "a=model.json", "--model", "a=model.json"), "--model names 'a' twice"),
        (("--model", "a=none.json"), "none.json: there is no such file"),
        (("--scores", "good.txt", "--scores", "good.txt"), "system 'good.txt' is given twice"),
        (("--scores", "good.txt", "--baseline", "x"), "--baseline is 'x', expected one of good.txt"),
        (("--scores", "good.txt", "--level", "2"), "--level is 2.0, expected a number between 0 and 1"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(files, monkeypatch, arguments, said) -> None:
    result = run(monkeypatch, "report", "data.txt", *arguments, "-o", "out.html")
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not Path("out.html").exists()


TABLE = (
    "qid,docid,label,f1,market,size,words,title\n"
    "a,d1,0,1,de,10,red shoes,Boots\na,d2,1,2,de,10,red shoes,<b>Red</b>\nb,d1,1,1,fr,20,blue,Boots\n"
    "b,d3,0,2,fr,20,blue,Hat\nc,d4,1,9,de,30,green hat,Hat\nc,d5,0,3,de,30,green hat,\n"
)


def test_texts_and_segments_from_columns(files, monkeypatch) -> None:
    Path("table.csv").write_text(TABLE)
    Path("old.txt").write_text("2\n1\n2\n1\n1\n2\n")
    LinearRanker([1.0, 0.1], feature_names=["f1", "size"]).save("two.json")
    arguments = ("report", "table.csv", "--scores", "old.txt", "--model", "new=two.json", "-m", "MRR")
    beside = ("--query-texts", "words", "--document-texts", "title", "--segments", "market", "--segments", "size")
    result = run(monkeypatch, *arguments, *beside, "-o", "out.html")
    assert result.exit_code == 0, result.output
    text = Path("out.html").read_text(encoding="utf-8")
    for shown in ("de (2)", "fr (1)", "10 (1)", "30 (1)", "red shoes", "&lt;b&gt;Red&lt;/b&gt;", "2 words (2)"):
        assert shown in text, shown
    assert "<b>Red" not in text


def test_texts_and_segments_from_files(files, monkeypatch) -> None:
    Path("queries.tsv").write_text("a\tred shoes\nb\tblue\n")
    Path("markets.tsv").write_text("a\tde\nb\tfr\n")
    arguments = ("report", "data.txt", "--scores", "bad.txt", "--scores", "good.txt", "-m", "MRR", "-o", "out.html")
    result = run(
        monkeypatch,
        *(*arguments, "--query-texts", "queries.tsv", "--segments", "market=markets.tsv", "--segments", "markets.tsv"),
    )
    assert result.exit_code == 0, result.output
    text = Path("out.html").read_text(encoding="utf-8")
    for shown in ("By market<", "By markets<", "unknown (1)", "red shoes"):
        assert shown in text, shown


@pytest.mark.parametrize(
    ("data", "more", "said"),
    [
        (
            "table.csv",
            ("--segments", "title", "--ignore-column", "market", "--ignore-column", "words"),
            "table.csv: query a has 'Boots' and '<b>Red</b>' in column 'title', expected one title per query",
        ),
        (
            "table.csv",
            ("--query-texts", "nothing"),
            "--query-texts is 'nothing': there is no such file, and no such col",
        ),
        ("data.txt", ("--segments", "market"), "--segments is 'market': there is no such file, and no such column"),
        ("data.txt", ("--segments", "good.txt"), "good.txt:1: found '1', expected an id, a tab and a good"),
        ("data.txt", ("--segments", "=x"), "expected COLUMN, FILE or NAME=FILE"),
    ],
)
def test_what_stands_beside_must_be_there(files, monkeypatch, data, more, said) -> None:
    Path("table.csv").write_text(TABLE)
    Path("six.txt").write_text("1\n" * 6)
    scores = "six.txt" if data == "table.csv" else "bad.txt"
    Path("more.txt").write_text("2\n" * (6 if data == "table.csv" else 7))
    other = ("--scores", "more.txt")
    result = run(monkeypatch, "report", data, "--scores", scores, *other, *more, "-o", "out.html")
    assert result.exit_code == 2
    assert said in result.stderr
    assert not Path("out.html").exists()


def test_reports_on_one_page(files, monkeypatch) -> None:
    for name in ("bad", "good"):
        assert run(monkeypatch, "report", "data.txt", "--scores", f"{name}.txt", "-o", f"{name}.html").exit_code == 0
    result = run(monkeypatch, "compare-reports", "bad.html", "good.html", "-o", "all.html")
    assert result.exit_code == 0, result.output
    assert "Every pair over the same 3 queries" in Path("all.html").read_text(encoding="utf-8")

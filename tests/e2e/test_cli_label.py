"""``gradrank label`` from an empty project to labels that a ranker learns from."""

from __future__ import annotations

import json
import secrets
import signal
import socket
import subprocess
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from gradrank.cli.main import app
from gradrank.data.formats.letor import write_letor
from gradrank.data.ranking_data import RankingData
from gradrank.labeling.judgments import Verdict
from gradrank.labeling.project.judging import Desk, Vote
from gradrank.labeling.project.store import Store
from tests.support import commands

QUERIES, DOCUMENTS = 6, 8


run = partial(commands.run, "label")


def good(*arguments: object) -> Result:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("queries.tsv").write_text("".join(f"q{n}\tquery {n}\n" for n in range(QUERIES)))
    Path("documents.tsv").write_text("".join(f"d{n}\tpassage {n}\n" for n in range(DOCUMENTS)))
    Path("run.txt").write_text(
        "".join(f"q{q} Q0 d{d} {d} {DOCUMENTS - d} bm25\n" for q in range(QUERIES) for d in range(DOCUMENTS))
    )
    return tmp_path


@pytest.fixture
def project() -> str:
    good("init", "p.db", "--title", "A test")
    good("import", "p.db", "--queries", "queries.tsv", "--documents", "documents.tsv", "--run", "run.txt")
    return "p.db"


def judge_all(path: str) -> None:
    """Every assignment by the same hidden order: the higher the number, the better."""
    with Store(path) as store:
        desk = Desk(store)
        for (number,) in store.read().execute("SELECT id FROM assignment").fetchall():
            while not (work := desk.work(number)).state.done:
                values = [int(name[1:]) for name in work.shown]
                shown = tuple(work.assignment.numbers[name] for name in work.shown)
                if len(values) == 1:
                    vote = Vote(work.seq, secrets.token_urlsafe(16), Verdict.GRADE, shown, values[0] // 2)
                else:
                    verdict = Verdict.FIRST if values[0] > values[1] else Verdict.SECOND
                    vote = Vote(work.seq, secrets.token_urlsafe(16), verdict, shown)
                desk.vote(number, vote)


def test_from_files_to_a_ranker(project: str) -> None:
    good("assign", project, "--assessors", 2, "--overlap", 1, "--k", 3, "--strategy", "tournament")
    judge_all(project)
    good("export", project, "--to", "topk", "-o", "top.jsonl")
    tops = [json.loads(line) for line in Path("top.jsonl").read_text().splitlines()]
    assert [item["top"] for item in tops] == [[["d7"], ["d6"], ["d5"]]] * QUERIES
    rng = np.random.default_rng(0)
    features = RankingData.from_arrays(
        rng.random((QUERIES * DOCUMENTS, 3)),
        np.zeros(QUERIES * DOCUMENTS),
        qid=np.repeat([f"q{n}" for n in range(QUERIES)], DOCUMENTS),
        docid=[f"d{n}" for n in range(DOCUMENTS)] * QUERIES,
    )
    write_letor(features, "features.txt")
    good("export", project, "--to", "letor", "--features", "features.txt", "-o", "train.txt")
    trained = CliRunner().invoke(
        app, ["train", "--train", "train.txt", "--trees", "3", "--min-docs", "2", "--threads", "1", "-o", "model.json"]
    )
    assert trained.exit_code == 0, trained.output
    for name in ("events", "qrels", "preferences"):
        good("export", project, "--to", name, "-o", f"{name}.txt")
    assert len(Path("qrels.txt").read_text().splitlines()) == QUERIES * DOCUMENTS


def test_the_papers_study_with_its_report(project: str) -> None:
    good("assign", project, "--assessors", 4, "--overlap", 2, "--k", 3, "--design", "paper")
    judge_all(project)
    report = json.loads(good("report", project, "--format", "json").stdout)
    assert isinstance(report, dict)
    good("report", project, "--format", "html", "-o", "report.html")
    assert Path("report.html").read_text().lower().startswith("<!doctype html>")


def test_faults_are_listed_with_lines_and_nothing_is_imported(project: str) -> None:
    Path("bad.tsv").write_text("x1\tone\nx2\nx 3\tthree\n")
    for more in ([], ["--dry-run"]):
        result = run("import", project, "--queries", "bad.tsv", *more)
        assert result.exit_code == 2
        assert "bad.tsv:2: has 1 field" in result.stderr
        assert "bad.tsv:3: query id 'x 3' holds a blank" in result.stderr
        assert "2 faults in the files: nothing was imported" in result.stderr
    found = json.loads(run("import", project, "--queries", "bad.tsv", "--dry-run", "--format", "json").stdout)
    assert [fault["line"] for fault in found["faults"]] == [2, 3]
    assert json.loads(good("board", project, "--format", "json").stdout)["queries"] == QUERIES


def test_a_dry_run_imports_nothing(project: str) -> None:
    Path("more.tsv").write_text("x1\tone\n")
    assert "would import 1 queries" in good("import", project, "--queries", "more.tsv", "--dry-run").stdout
    assert json.loads(good("status", project, "--format", "json").stdout)["queries"] == QUERIES


def test_preview_assign_board_void_and_again(project: str) -> None:
    arguments = ("assign", project, "--assessors", 4, "--overlap", 2, "--tools", "both", "--format", "json")
    plan = json.loads(good(*arguments, "--preview").stdout)
    assert plan["preview"]
    assert json.loads(good("board", project, "--format", "json").stdout)["assignments"]["new"] == 0
    assert json.loads(good(*arguments).stdout)["assignments"] == plan["assignments"]
    assert len(plan["assignments"]) == QUERIES * 4
    assert "A test" in good("board", project).stdout
    good("void", project, 1, "--reason", "asleep")
    state = json.loads(good("board", project, "--format", "json").stdout)
    assert state["assignments"] == {"new": QUERIES * 4 - 1, "open": 0, "done": 0, "void": 1}


def test_invitations(project: str) -> None:
    assert run("invite", project).exit_code == 2
    links = good("invite", project, "Ada", "Ben", "--url", "https://label.example/").stdout.splitlines()
    assert [line.split("\t")[0] for line in links] == ["Ada", "Ben"]
    assert links[0].split("\t")[1].startswith("https://label.example/join/1-")
    assert good("invite", project, "Ada").stdout.split("/join/")[1] == links[0].split("/join/")[1] + "\n"
    assert good("invite", project, "Ada", "--renew").stdout.split("/join/")[1] != links[0].split("/join/")[1] + "\n"


def test_invitations_name_the_port_that_is_served(project: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import uvicorn

    ports: list[int] = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda _self, sockets: ports.append(sockets[0].getsockname()[1]))
    good("invite", project, "Ada")
    said = good("serve", project, "--port", 0).stdout
    link = good("invite", project, "Ada").stdout.strip().split("\t")[1]
    assert link.startswith(f"http://127.0.0.1:{ports[0]}/join/1-")
    assert f"Ada: {link}" in said


def test_backup_and_restore(project: str) -> None:
    copy = good("backup", project).stdout.strip()
    good("assign", project, "--assessors", 1)
    good("restore", copy, project)
    state = json.loads(good("board", project, "--format", "json").stdout)
    assert (state["queries"], state["assignments"]["new"]) == (QUERIES, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("init", "p.db"), "p.db: is already there"),
        (("board", "none.db"), "there is no such project"),
        (("board", "queries.tsv"), "labeling project"),
        (("import", "p.db"), "nothing to import"),
        (("import", "p.db", "--queries", "none.tsv"), "there is no such file"),
        (("assign", "p.db", "--assessors", 1, "--overlap", 2), "needs 2 assessors"),
        (("assign", "p.db", "--assessors", 3, "--overlap", 2, "--tools", "both"), "needs 4 assessors"),
        (("export", "p.db", "--to", "letor", "-o", "x.txt"), "give --features"),
        (
            ("export", "p.db", "--to", "topk", "-o", "x.txt", "--features", "queries.tsv"),
            "--features is for --to letor",
        ),
        (("export", "p.db", "--to", "topk", "-o", "x.txt", "--labels", "grades"), "--labels is for"),
        (("export", "p.db", "--to", "qrels", "-o", "x.txt", "--unfinished"), "--unfinished is for"),
        (("export", "p.db", "--to", "topk", "-o", "no/such/folder.txt"), "cannot be written"),
        (("void", "p.db", 1, "--reason", "x"), "there is no assignment 1"),
        (("restore", "queries.tsv", "p.db"), "labeling project"),
        (("serve", "p.db", "--host", "no such host"), "no address of a machine"),
        (("serve", "p.db", "--port", 0, "--public-url", "label.example"), "public URL"),
    ],
)
def test_wrong_calls_are_one_sentence(project: str, arguments: tuple[object, ...], message: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, message in result.stderr) == (2, True), result.output
    assert result.stderr.count("gradrank: error:") == 1
    assert not Path("x.txt").exists()


def test_a_port_or_project_in_use(project: str) -> None:
    from gradrank.labeling.project.backup import in_use

    with socket.create_server(("127.0.0.1", 0)) as other:
        result = run("serve", project, "--port", other.getsockname()[1])
    assert (result.exit_code, "cannot listen" in result.stderr) == (2, True)
    with in_use(project):
        result = run("serve", project, "--port", 0)
    assert (result.exit_code, "is being served" in result.stderr) == (2, True)


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_having_stopped_as_asked_is_no_failure(by: signal.Signals, project: str) -> None:
    command = [*commands.PROGRAM, "label", "serve", project, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert server.stdout is not None
        while "your own page" not in server.stdout.readline():
            assert server.poll() is None
        server.send_signal(by)
        said = server.stdout.read()
        assert server.wait(60) == 0
    assert "Traceback" not in said

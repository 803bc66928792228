"""Routes: who may see what, forms only from our own pages, votes through the browser's door."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from gradrank.errors import DataError
from gradrank.labeling.project.access import Access
from gradrank.labeling.project.assignment import assign
from gradrank.labeling.project.board import board
from gradrank.labeling.project.importing import import_files
from gradrank.labeling.project.judging import Desk
from gradrank.labeling.project.store import Store, create_project
from gradrank.labeling.web.app import create_app
from gradrank.labeling.web.security import LARGEST_BODY

ORIGIN = "http://testserver"


class Client:
    """A browser with cookies that follows nothing by itself."""

    def __init__(self, app: Any, runner: asyncio.Runner) -> None:
        self.runner = runner
        self.http = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app), base_url=ORIGIN, headers={"origin": ORIGIN}, follow_redirects=False
        )

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.runner.run(self.http.get(path, **more))

    def post(self, path: str, **more: Any) -> httpx.Response:
        return self.runner.run(self.http.post(path, **more))


@dataclass
class Place:
    """A served project and three visitors."""

    store: Store
    ada: Client
    ben: Client
    owner: Client
    stranger: Client
    tokens: dict[str, str]

    def own(self, client: Client) -> int:
        """The first assignment of an assessor."""
        name = "Ada" if client is self.ada else "Ben"
        sql = "SELECT a.id FROM assignment a JOIN assessor u ON u.id = a.assessor WHERE u.name = ?"
        return int(self.store.read().execute(sql, (name,)).fetchone()[0])

    def events(self) -> int:
        return int(self.store.read().execute("SELECT count(*) FROM event").fetchone()[0])


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    (tmp_path / "q.tsv").write_text("q1\tblue sky\tphysics\nq2\ttall mountains\n")
    (tmp_path / "d.tsv").write_text("".join(f"d{n}\ttext number {n}\n" for n in range(1, 5)))
    store = create_project(tmp_path / "p.db", title="Test <b>project</b>", guidelines="Be <i>fair</i>.")
    import_files(store, queries=tmp_path / "q.tsv", documents=[tmp_path / "d.tsv"])
    access = Access(store)
    tokens = {"ada": access.invite("Ada"), "ben": access.invite("Ben"), "owner": access.owner_token(), "stranger": ""}
    assign(store, assessors=2, k=2)
    app = create_app(store, hosts=["testserver"], backups=False)
    with asyncio.Runner() as runner:
        clients = {name: Client(app, runner) for name in tokens}
        for name, token in tokens.items():
            if token:
                assert clients[name].post(f"/join/{token}").status_code == 303
        yield Place(store, **clients, tokens=tokens)
    store.close()


def form_of(page: httpx.Response) -> dict[str, str]:
    """The hidden fields of the page's vote."""
    text = page.text[page.text.index('action="/task/') :]
    return dict(re.findall(r'name="(csrf|token|seq|shown)" value="([^"]*)"', page.text)) | {
        "page": re.findall(r'action="([^"]*/vote)"', text)[0]
    }


def vote(client: Client, number: int, verdict: str, **changes: str) -> httpx.Response:
    form = form_of(client.get(f"/task/{number}")) | {"verdict": verdict} | changes
    return client.post(f"/task/{number}/vote", data=form)


# ---------------------------------------------------------------------- who may see what
PAGES = ["/", "/work", "/task/1", "/task/2", "/owner", "/owner/people", "/owner/assign", "/owner/files"]
EXPORTS = ["/owner/export/events", "/owner/export/topk", "/owner/export/qrels", "/owner/export/preferences-csv"]
FORMS = ["/leave", "/task/1/vote", "/task/1/pause", "/task/1/resume", "/task/1/activity"]
OWNER_FORMS = ["/owner/invite", "/owner/guidelines", "/owner/void", "/owner/backup", "/owner/assign"]


@pytest.mark.parametrize("path", [*PAGES, *EXPORTS])
def test_strangers_see_nothing(place: Place, path: str) -> None:
    answer = place.stranger.get(path)
    assert answer.status_code == 401
    assert "sky" not in answer.text


@pytest.mark.parametrize("path", [*FORMS, *OWNER_FORMS])
def test_strangers_do_nothing(place: Place, path: str) -> None:
    assert place.stranger.post(path, data={"csrf": ""}).status_code == 401


@pytest.mark.parametrize("path", [*PAGES[4:], *EXPORTS])
def test_the_owners_pages_do_not_exist_for_assessors(place: Place, path: str) -> None:
    assert place.ada.get(path).status_code == 404
    assert place.owner.get(path).status_code == 200


@pytest.mark.parametrize("path", OWNER_FORMS)
def test_the_owners_forms_do_not_exist_for_assessors(place: Place, path: str) -> None:
    csrf = form_of(place.ada.get(f"/task/{place.own(place.ada)}"))["csrf"]
    data = {"csrf": csrf, "name": "Eve", "guidelines": "x", "assignment": "1", "reason": "x"}
    assert place.ada.post(path, data=data).status_code == 404
    assert place.store.setting("guidelines") == "Be <i>fair</i>."


def test_another_assessors_work_does_not_exist(place: Place) -> None:
    theirs, mine = place.own(place.ben), place.own(place.ada)
    form = form_of(place.ada.get(f"/task/{mine}")) | {"verdict": "a", "kind": "hidden"}
    assert place.ada.get(f"/task/{theirs}").status_code == 404
    assert place.ada.get("/task/999").status_code == 404
    for action in ("vote", "pause", "resume", "activity"):
        assert place.ada.post(f"/task/{theirs}/{action}", data=form).status_code == 404
    assert place.events() == 0


def test_the_owner_judges_nobodys_queries(place: Place) -> None:
    assert place.owner.get("/task/1").status_code == 404
    assert place.owner.get("/").headers["location"] == "/owner"


def test_leaving_ends_the_session(place: Place) -> None:
    csrf = form_of(place.ada.get(f"/task/{place.own(place.ada)}"))["csrf"]
    assert place.ada.post("/leave", data={"csrf": csrf}).status_code == 303
    assert place.ada.get("/work").status_code == 401


# ---------------------------------------------------------------------- coming in
def test_opening_a_link_begins_no_session(place: Place) -> None:
    page = place.stranger.get(f"/join/{place.tokens['ada']}")
    assert "Ada" in page.text
    assert "set-cookie" not in page.headers


def test_the_cookie_is_out_of_reach(place: Place) -> None:
    cookie = place.stranger.post(f"/join/{place.tokens['ada']}").headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie


def test_guessing_links_is_slowed_down(place: Place) -> None:
    codes = [place.stranger.post(f"/join/1-guess{number}").status_code for number in range(12)]
    assert codes == [404] * 10 + [429] * 2
    assert place.stranger.post("/join/1-guess").status_code == 429


def test_those_who_fail_lock_nobody_out(place: Place) -> None:
    """All have one address, as behind a proxy that does not pass addresses on."""
    for number in range(12):
        place.stranger.post(f"/join/1-guess{number}")
    assert "Ada" in place.stranger.get(f"/join/{place.tokens['ada']}").text
    assert place.stranger.post(f"/join/{place.tokens['ada']}").status_code == 303


@pytest.mark.parametrize("number", ["9223372036854775808", "9" * 5000, "-1", "0", "1.0", "x", "٣"])
def test_numbers_that_no_assignment_has(place: Place, number: str) -> None:
    assert place.ada.get(f"/task/{number}").status_code == 404
    for action in ("vote", "pause", "resume", "activity"):
        assert place.ada.post(f"/task/{number}/{action}", data={"csrf": ""}).status_code == 404


# ---------------------------------------------------------------------- only our own forms
def test_a_form_needs_the_sessions_token(place: Place) -> None:
    number = place.own(place.ada)
    others = form_of(place.ben.get(f"/task/{place.own(place.ben)}"))["csrf"]
    for csrf in ("", "wrong", others):
        assert vote(place.ada, number, "a", csrf=csrf).status_code == 403
    assert place.events() == 0


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://testserver.evil.example"},
        {"origin": "http://testserver:8080"},
        {"origin": "http://["},
        {"origin": "http://testserver:port"},
        {"origin": "testserver"},
        {"origin": ""},
    ],
)
def test_forms_of_other_sites_are_refused(place: Place, headers: dict[str, str]) -> None:
    number = place.own(place.ada)
    form = form_of(place.ada.get(f"/task/{number}")) | {"verdict": "a"}
    assert place.ada.post(f"/task/{number}/vote", data=form, headers=headers).status_code == 403
    assert place.stranger.post(f"/join/{place.tokens['ada']}", headers=headers).status_code == 403
    assert place.events() == 0


def test_without_an_origin_the_browsers_own_word_counts(place: Place) -> None:
    number = place.own(place.ada)
    del place.ada.http.headers["origin"]
    form = form_of(place.ada.get(f"/task/{number}")) | {"verdict": "a"}
    for site in ("cross-site", "same-site"):
        answer = place.ada.post(f"/task/{number}/vote", data=form, headers={"sec-fetch-site": site})
        assert answer.status_code == 403
    assert place.ada.post(f"/task/{number}/vote", data=form).status_code == 303


def test_other_names_of_the_server_are_refused(place: Place) -> None:
    for host in ("evil.example", "testserver.evil.example", "", "[::1"):
        assert place.ada.get("/", headers={"host": host}).status_code == 421


def test_too_much_is_refused(place: Place) -> None:
    number = place.own(place.ada)
    assert vote(place.ada, number, "a", comment="x" * LARGEST_BODY).status_code == 413

    async def parts() -> AsyncIterator[bytes]:
        for _ in range(4):
            yield b"x" * 100_000

    assert place.ada.post(f"/task/{number}/vote", content=parts()).status_code == 400
    assert place.ada.post(f"/task/{number}/vote", content=b"a=%ff").status_code == 400


@pytest.mark.parametrize("path", ["/", "/task/1", "/nowhere", "/static/page.js", "/owner/export/events"])
def test_every_answer_carries_the_headers(place: Place, path: str) -> None:
    for client in (place.ada, place.owner, place.stranger):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store"


def test_pages_hold_nothing_inline(place: Place) -> None:
    pages = [place.ada.get(path).text for path in ("/", f"/task/{place.own(place.ada)}")]
    pages += [place.owner.get(path).text for path in PAGES[4:]]
    for page in pages:
        assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son[a-z]+=|javascript:", page)
        assert "<b>project</b>" not in page
        assert "<i>fair</i>" not in page


# ---------------------------------------------------------------------- votes
def test_a_session_by_forms_alone(place: Place) -> None:
    """Every page by its plain form, as a browser without scripts sends it."""
    number = place.own(place.ada)
    desk = Desk(place.store)
    while not (work := desk.work(number)).state.done:
        verdict = "a" if work.shown[0] > work.shown[1] else "b"
        answer = vote(place.ada, number, verdict)
        assert answer.headers["location"] == f"/task/{number}?said=accepted"
    assert desk.work(number).state.top == (("d4",), ("d3",))
    assert "This query is finished and saved." in place.ada.get(f"/task/{number}").text
    assert "1 done" in place.ada.get("/").text or "All 1 done" in place.ada.get("/").text


def test_a_stale_page_gets_the_current_pair_and_a_notice(place: Place) -> None:
    number = place.own(place.ada)
    old = form_of(place.ada.get(f"/task/{number}")) | {"verdict": "a"}
    assert vote(place.ada, number, "b").headers["location"].endswith("said=accepted")
    answer = place.ada.post(f"/task/{number}/vote", data=old)
    assert answer.headers["location"].endswith("said=stale")
    page = place.ada.get(answer.headers["location"])
    assert "Not counted" in page.text
    assert form_of(page)["seq"] == "2"
    assert place.events() == 1


def test_the_same_form_again_counts_once(place: Place) -> None:
    number = place.own(place.ada)
    form = form_of(place.ada.get(f"/task/{number}")) | {"verdict": "tie", "comment": "hm"}
    locations = [place.ada.post(f"/task/{number}/vote", data=form).headers["location"] for _ in range(3)]
    assert [location.partition("said=")[2] for location in locations] == ["accepted", "repeated", "repeated"]
    assert place.events() == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"verdict": "maybe"},
        {"verdict": ""},
        {"verdict": "grade-x"},
        {"verdict": "grade"},
        {"verdict": "a-1"},
        {"seq": "one"},
        {"seq": ""},
        {"shown": "1 x"},
        {"token": "short"},
        {"token": "x" * 65},
        {"verdict": "grade-2"},
    ],
)
def test_odd_forms_are_refused(place: Place, changes: dict[str, str]) -> None:
    assert vote(place.ada, place.own(place.ada), **({"verdict": "a"} | changes)).status_code == 400
    assert place.events() == 0


def test_pause_hides_the_documents(place: Place) -> None:
    number = place.own(place.ada)
    form = form_of(place.ada.get(f"/task/{number}"))
    place.ada.post(f"/task/{number}/pause", data=form)
    page = place.ada.get(f"/task/{number}").text
    assert "Paused" in page
    assert "text number" not in page
    place.ada.post(f"/task/{number}/resume", data=form)
    assert "text number" in place.ada.get(f"/task/{number}").text


def test_pages_tell_about_themselves(place: Place) -> None:
    number = place.own(place.ada)
    form = form_of(place.ada.get(f"/task/{number}"))
    assert place.ada.post(f"/task/{number}/activity", data=form | {"kind": "hidden"}).status_code == 204
    assert place.ada.post(f"/task/{number}/activity", data=form | {"kind": "pause"}).status_code == 400
    kinds = [kind for (kind,) in place.store.read().execute("SELECT kind FROM activity ORDER BY id")]
    assert kinds == ["shown", "hidden"]


def test_documents_seen_before_are_marked(place: Place) -> None:
    number = place.own(place.ada)
    assert "seen before" not in place.ada.get(f"/task/{number}").text
    vote(place.ada, number, "tie")
    vote(place.ada, number, "undo")
    assert place.ada.get(f"/task/{number}").text.count("seen before") == 2


# ---------------------------------------------------------------------- the owner
def owner_form(place: Place, path: str, **data: str) -> httpx.Response:
    csrf = re.findall(r'name="csrf" value="([^"]*)"', place.owner.get("/owner/people").text)[0]
    return place.owner.post(path, data={"csrf": csrf, **data})


def test_the_owner_invites_and_renews(place: Place) -> None:
    owner_form(place, "/owner/invite", name="Eve <script>")
    page = place.owner.get("/owner/people").text
    assert "Eve &lt;script&gt;" in page
    assert place.tokens["ada"] in page
    owner_form(place, "/owner/invite", name="Ada", renew="1")
    assert place.tokens["ada"] not in place.owner.get("/owner/people").text
    assert place.ada.get("/").status_code == 401


def test_the_owner_voids_with_a_reason(place: Place) -> None:
    number = place.own(place.ada)
    assert owner_form(place, "/owner/void", assignment=str(number), reason=" ").status_code == 400
    assert owner_form(place, "/owner/void", assignment="x", reason="r").status_code == 400
    assert owner_form(place, "/owner/void", assignment=str(number), reason="left early").status_code == 303
    assert "left early" in place.owner.get("/owner").text
    assert "Withdrawn" in place.ada.get(f"/task/{number}").text


def test_the_owner_previews_and_assigns(place: Place) -> None:
    values = {"assessors": "4", "overlap": "2", "k": "3", "strategy": "heap", "tools": "pairs", "seed": "1"}
    before = place.store.read().execute("SELECT count(*) FROM assignment").fetchone()[0]
    page = owner_form(place, "/owner/assign", **values, design="balanced", do="preview")
    assert "Preview: 4 assignments" in page.text
    assert place.store.read().execute("SELECT count(*) FROM assignment").fetchone()[0] == before
    assert owner_form(place, "/owner/assign", **values, design="balanced", do="assign").status_code == 303
    assert place.store.read().execute("SELECT count(*) FROM assignment").fetchone()[0] == before + 4
    wrong = owner_form(place, "/owner/assign", **(values | {"overlap": "9"}), design="balanced", do="assign")
    assert "needs 9 assessors" in wrong.text


def test_exports_are_downloads(place: Place) -> None:
    vote(place.ada, place.own(place.ada), "a")
    for path in EXPORTS:
        answer = place.owner.get(path)
        assert answer.headers["content-disposition"].startswith("attachment")
        assert answer.headers["content-type"] == "application/octet-stream"
    assert place.owner.get("/owner/export/events").text.count("\n") == 1
    assert place.owner.get("/owner/export/nothing").status_code == 404


def test_the_owner_copies_and_reads_what_was_done(place: Place) -> None:
    owner_form(place, "/owner/backup")
    owner_form(place, "/owner/guidelines", guidelines="New\r\nones")
    assert place.store.setting("guidelines") == "New\nones"
    page = place.owner.get("/owner/files").text
    assert "MB" in page
    assert "guidelines" in page


# ---------------------------------------------------------------------- when the project cannot be written
def test_a_vote_on_a_locked_project_is_told_to_come_again(place: Place) -> None:
    number = place.own(place.ada)
    form = form_of(place.ada.get(f"/task/{number}")) | {"verdict": "a"}
    place.store.close()
    place.store.busy_seconds = 0.05
    other = sqlite3.connect(place.store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        refusals = [place.ada.post(f"/task/{number}/vote", data=form), place.ada.get(f"/task/{number}")]
    finally:
        other.close()
    for refused in refusals:
        assert refused.status_code == 503
        assert int(refused.headers["retry-after"]) > 0
        assert place.store.path.name not in refused.text
    assert place.events() == 0
    assert place.ada.post(f"/task/{number}/vote", data=form).status_code == 303
    assert place.events() == 1


def test_errors_do_not_tell_where_the_project_lies(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise DataError("is odd", path=place.store.path)

    monkeypatch.setattr("gradrank.labeling.web.owner.backup", refuse)
    csrf = re.findall(r'name="csrf" value="([^"]*)"', place.owner.get("/owner/files").text)[0]
    answer = place.owner.post("/owner/backup", data={"csrf": csrf})
    assert (answer.status_code, "is odd" in answer.text) == (400, True)
    assert place.store.path.name not in answer.text


def test_the_board_counts_what_stands(place: Place) -> None:
    number = place.own(place.ada)
    for verdict in ("a", "undo", "skip", "b"):
        assert vote(place.ada, number, verdict).status_code == 303
    assert place.events() == 4
    assert board(Desk(place.store)).to_dict()["judgments"] == 1
    assert re.search(r"<dt>Judgments</dt><dd>1</dd>", place.owner.get("/owner").text)

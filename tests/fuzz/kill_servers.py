"""Kill the two servers under load, as ``kill -9`` does: what they said was kept must be there.

The labeling server takes votes of several people; each vote whose answer arrived must be among the project's events,
and the one that was on its way may be sent again and counts once. ``serve`` takes lists and clicks; each that was said
to be logged must be a whole line of its log, while its model file is replaced under it.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import secrets
import shutil
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlencode

Start = Callable[[list[str], Path], int]
"""Starts a command in a folder; gives the number of its process, which leads a group of its own."""
_HTTP_ERRORS = (OSError, http.client.HTTPException)
_SECONDS_TO_START = 120.0


def attack_labeling(start: Start, folder: Path, kills: int, until: float, chance: random.Random) -> dict[str, int]:
    """Kill ``label serve`` while three people vote."""
    from gradrank.errors import DataError
    from gradrank.labeling.project.access import Access
    from gradrank.labeling.project.assignment import assign
    from gradrank.labeling.project.importing import import_files
    from gradrank.labeling.project.store import Store, create_project

    seen = {"kills": 0, "acknowledged": 0, "lost": 0, "twice": 0, "damaged": 0}
    place = folder / "label"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    (place / "q.tsv").write_text("".join(f"q{n}\tquery {n}\n" for n in range(3)))
    (place / "d.tsv").write_text("".join(f"d{n}\ttext number {n}\n" for n in range(30)))
    store = create_project(place / "p.db", title="Test")
    import_files(store, queries=place / "q.tsv", documents=[place / "d.tsv"])
    assign(store, assessors=3, k=10)
    access = Access(store)
    people = store.read().execute("SELECT u.name, a.id FROM assignment a JOIN assessor u ON u.id = a.assessor")
    voters = [(access.invite(name), number) for name, number in people.fetchall()]
    store.close()
    said: dict[int, list[tuple[int, str]]] = {number: [] for _, number in voters}
    waiting: dict[int, dict[str, str]] = {}
    while seen["kills"] < kills and time.monotonic() < until:
        port = free_port()
        server = start(["label", "serve", "p.db", "--port", str(port)], place)
        for _, number in voters:
            (place / f"said-{number}").write_text("")
        crowd = [_forked(_vote_on, port, token, number, place, waiting.get(number)) for token, number in voters]
        _wait_for_lines([place / f"said-{number}" for _, number in voters], chance.randrange(40))
        time.sleep(chance.random() * 0.03)
        _end(server)
        for voter in crowd:
            os.waitpid(voter, 0)
        seen["kills"] += 1
        store = Store(place / "p.db")
        try:
            store.check()
        except DataError:
            seen["damaged"] += 1
        for _, number in voters:
            told = [json.loads(line) for line in (place / f"said-{number}").read_text().splitlines()]
            said[number] += [(entry["seq"], entry["token"]) for entry in told if entry["answer"] == "accepted"]
            seen["acknowledged"] += sum(entry["answer"] in ("accepted", "repeated") for entry in told)
            waiting[number] = json.loads((place / f"waiting-{number}").read_text() or "null")
            rows = store.read().execute("SELECT seq, token FROM event WHERE assignment = ?", (number,)).fetchall()
            kept, tokens = set(rows), [token for _, token in rows]
            seen["lost"] += sum(entry not in kept for entry in said[number])
            seen["lost"] += sum(entry["answer"] == "stale" for entry in told)
            seen["twice"] += len(tokens) - len(set(tokens))
        store.close()
    return seen


def _vote_on(port: int, token: str, number: int, place: Path, again: dict[str, str] | None) -> None:
    """Vote until the server is gone. A vote without an answer is kept, and sent first by the next who comes."""
    (place / f"waiting-{number}").write_text("")
    with (place / f"said-{number}").open("w") as log:
        if not wait_for(port):
            return
        with suppress(*_HTTP_ERRORS):
            browser = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            origin = {"Origin": f"http://127.0.0.1:{port}", "Content-Type": "application/x-www-form-urlencoded"}
            entered = _ask(browser, "POST", f"/join/{token}", headers=origin)
            cookie = {"Cookie": entered.headers["Set-Cookie"].split(";")[0]}
            for _ in range(100_000):
                page = _ask(browser, "GET", f"/task/{number}", headers=cookie).text
                fields = dict(re.findall(r'name="(csrf|seq|shown)" value="([^"]*)"', page))
                form = again or {
                    "verdict": "undo" if "This query is finished" in page or int(fields["seq"]) % 5 == 0 else "tie",
                    "token": secrets.token_urlsafe(16), "seq": fields["seq"], "shown": fields.get("shown", ""),
                }  # fmt: skip
                again = None
                (place / f"waiting-{number}").write_text(json.dumps(form))
                body = urlencode(form | {"csrf": fields["csrf"]})
                answer = _ask(browser, "POST", f"/task/{number}/vote", body=body, headers=origin | cookie)
                if answer.status != 303:
                    raise AssertionError(f"a vote was answered with {answer.status}: {answer.text}")
                word = {"undone": "accepted"}.get(said := answer.headers["Location"].partition("said=")[2], said)
                log.write(json.dumps({"seq": int(form["seq"]), "token": form["token"], "answer": word}) + "\n")
                log.flush()
                (place / f"waiting-{number}").write_text("")


def attack_serving(start: Start, folder: Path, kills: int, until: float, chance: random.Random) -> dict[str, int]:
    """Kill ``serve`` while lists are asked for, clicks are sent and its model changes."""
    from tests.support.rankers import NAMES, example_rankers

    seen = {"kills": 0, "acknowledged": 0, "lost": 0, "half lines": 0, "other answers": 0}
    place = folder / "serve"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    ranker = example_rankers()["linear"]
    ranker.save(place / "m.json")
    rows = [dict.fromkeys(NAMES, float(n)) for n in range(4)]
    order = ranker.predict([[float(n)] * len(NAMES) for n in range(4)]).argsort()[::-1].tolist()
    clients = range(2)
    while seen["kills"] < kills and time.monotonic() < until:
        port = free_port()
        server = start(
            ["serve", "m.json", "--port", str(port), "--log", "log.jsonl", "--access-log", "access.jsonl", "--watch",
             "0.05", "--rotate-bytes", "60000"],
            place,
        )  # fmt: skip
        for number in clients:
            (place / f"said-{number}").write_text("")
        crowd = [_forked(_ask_for_lists, port, rows, order, place / f"said-{number}") for number in clients]
        _wait_for_lines(
            [place / f"said-{number}" for number in clients],
            chance.randrange(200),
            lambda: ranker.save(place / "m.json"),
        )
        _end(server)
        for client in crowd:
            os.waitpid(client, 0)
        seen["kills"] += 1
        lines = [line for path in place.glob("log.jsonl*") for line in path.read_bytes().split(b"\n") if line]
        whole = set()
        for line in lines:
            try:
                event = json.loads(line)
                whole.add((event["event"], event["id"]))
            except ValueError:
                seen["half lines"] += 1
        for number in clients:
            told = [tuple(json.loads(line)) for line in (place / f"said-{number}").read_text().splitlines()]
            seen["other answers"] += sum(entry[0] == "other" for entry in told)
            told = [entry for entry in told if entry[0] != "other"]
            seen["acknowledged"] += len(told)
            seen["lost"] += sum(entry not in whole for entry in told)
        if seen["kills"] % 50 == 0:  # the logs would grow without end
            for path in place.glob("log.jsonl*"):
                path.unlink()
    return seen


def _ask_for_lists(port: int, rows: list[dict[str, float]], order: list[int], path: Path) -> None:
    with path.open("w") as log:
        if not wait_for(port):
            return
        with suppress(*_HTTP_ERRORS):
            client = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            kind = {"Content-Type": "application/json"}
            for _ in range(100_000):
                id = secrets.token_hex(8)
                body = json.dumps({"documents": rows, "qid": "q", "ids": ["a", "b", "c", "d"], "id": id})
                answer = _ask(client, "POST", "/v1/rank", body=body, headers=kind)
                good = answer.status == 200 and json.loads(answer.text)["order"] == order
                log.write(json.dumps(["shown" if good else "other", id]) + "\n")
                answer = _ask(client, "POST", "/v1/click", body=json.dumps({"id": id, "docid": "a"}), headers=kind)
                log.write(json.dumps(["click" if answer.status < 300 else "other", id]) + "\n")
                log.flush()


def _wait_for_lines(paths: list[Path], wanted: int, meanwhile: Callable[[], object] = lambda: None) -> None:
    """Wait until so many answers were heard: on a busy machine the clock tells nothing of the load."""
    end = time.monotonic() + _SECONDS_TO_START
    while sum(path.read_bytes().count(b"\n") for path in paths) < wanted and time.monotonic() < end:
        meanwhile()
        time.sleep(0.01)


class _Answer:
    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status, self.headers, self.text = answer.status, answer.headers, answer.read().decode()


def _ask(client: http.client.HTTPConnection, method: str, path: str, **more: object) -> _Answer:
    client.request(method, path, **more)  # type: ignore[arg-type]
    return _Answer(client.getresponse())


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def wait_for(port: int) -> bool:
    """Wait until somebody listens; False if nobody does for long."""
    end = time.monotonic() + _SECONDS_TO_START
    while time.monotonic() < end:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        time.sleep(0.02)
    return False


def _forked(work: Callable[..., None], *arguments: object) -> int:
    """A process that does something and ends."""
    number = os.fork()
    if number == 0:
        code = 1
        try:
            work(*arguments)
            code = 0
        finally:
            os._exit(code)
    return number


def _end(server: int) -> None:
    os.killpg(server, signal.SIGKILL)
    os.waitpid(server, 0)

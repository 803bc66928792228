"""``gradrank serve`` as a process: no request is dropped by a reload, and stopping answers what has begun."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from gradrank.models.linear import LinearRanker
from tests.support.commands import PROGRAM, error_of, run


@contextmanager
def serving(*arguments: object, **environment: str) -> Iterator[tuple[subprocess.Popen[str], int, list[str]]]:
    """The process, its port, and what it has said until it was ready."""
    command = [*PROGRAM, "serve", *map(str, arguments), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})
    assert process.stderr is not None
    said = []
    try:
        for line in process.stderr:
            said.append(line)
            if "http://" in line:
                break
        yield process, int(said[-1].rsplit(":", 1)[1]), said
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def ask(connection: HTTPConnection, value: Any, **headers: str) -> tuple[int, Any]:
    connection.request("POST", "/v1/rank", json.dumps(value), {"content-type": "application/json", **headers})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def next_line(process: subprocess.Popen[str], containing: str) -> str:
    assert process.stderr is not None
    return next(line for line in process.stderr if containing in line)


def test_reload_keys_and_graceful_stop(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    LinearRanker([1.0], feature_names=["a"]).save(path)
    keys = {"GRADRANK_API_KEYS": "k" * 20}
    with serving(f"m@3={path}", "--watch", 0, "--log", tmp_path / "log.jsonl", **keys) as (process, port, said):
        assert said[-1].startswith("gradrank: note: m@3: http://127.0.0.1:")
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        bearer = {"authorization": "Bearer " + "k" * 20}
        assert ask(connection, {"documents": [[2]]})[0] == 401
        assert ask(connection, {"documents": [[2]]}, **bearer)[1]["scores"] == [2.0]
        # A request that begins before the reload and ends after it.
        begun = socket.create_connection(("127.0.0.1", port), timeout=60)
        body = b'{"documents": [[3]], "qid": "7", "ids": ["x"]}'
        head = f"POST /v1/rank HTTP/1.1\r\nhost: x\r\nx-api-key: {'k' * 20}\r\ncontent-type: application/json\r\n"
        begun.sendall(head.encode() + f"content-length: {len(body)}\r\n\r\n".encode() + body[:10])
        LinearRanker([10.0], feature_names=["a"]).save(path)
        process.send_signal(signal.SIGHUP)
        assert "m@3 was loaded anew" in next_line(process, "loaded anew")
        assert ask(connection, {"documents": [[2]]}, **bearer)[1]["scores"] == [20.0]
        path.write_text("no model")
        process.send_signal(signal.SIGHUP)
        assert "m.json" in next_line(process, "stays as it was")
        assert ask(connection, {"documents": [[2]]}, **bearer)[1]["scores"] == [20.0]
        # Told to stop, the server still answers it.
        process.send_signal(signal.SIGTERM)
        begun.sendall(body[10:])
        answer = b""
        while chunk := begun.recv(65536):
            answer += chunk
        assert b'"scores":[30.0]' in answer
        begun.close()
        connection.close()
        assert process.wait(60) == 0
    line = json.loads((tmp_path / "log.jsonl").read_text())
    assert (line["event"], line["qid"], line["shown"]) == ("shown", "7", ["x"])


def test_a_clear_word_when_other_machines_can_ask(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    LinearRanker([1.0], feature_names=["a"]).save(path)
    with serving(path, "--host", "0.0.0.0") as (process, _, said):
        assert any("WARNING: 0.0.0.0 can be reached by other machines and without a key" in line for line in said)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--shares", "m=0.5"), "add up to 0.5"),
        (("--interleave", "m,n"), "needs --log"),
        (("--interleave", "m", "--log", "log"), "expected NAME,NAME"),
        (("--max-seconds", "0"), "limit of seconds"),
        (("--api-keys", "nothing"), "nothing: there is no such file"),
        (("--host", "256.1.1.1"), "256.1.1.1"),
        (("--log", "nowhere/log"), "nowhere/log: cannot be written"),
    ],
)
def test_wrong_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], said: str) -> None:
    monkeypatch.chdir(tmp_path)
    LinearRanker([1.0], feature_names=["a"]).save("m.json")
    assert said in error_of(run("serve", "m=m.json", *options))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.json"]


def counted(port: int, name: str) -> float:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))


def connections_to_all(port: int, access_log: Path, processes: int) -> list[HTTPConnection]:
    """Connections until every process has at least one; each answers with the same list."""
    found: list[HTTPConnection] = []
    seen: set[int] = set()
    while len(seen) < processes:
        assert len(found) < 500
        found.append(HTTPConnection("127.0.0.1", port, timeout=60))
        assert ask(found[-1], {"documents": [[2]]})[1]["scores"] == [2.0]
        seen = {json.loads(line)["process"] for line in access_log.read_text().splitlines()}
    return found


def test_several_processes_share_socket_counters_logs_and_signals(tmp_path: Path) -> None:
    path, log, access = tmp_path / "m.json", tmp_path / "log.jsonl", tmp_path / "access.jsonl"
    LinearRanker([1.0], feature_names=["a"]).save(path)
    options = (f"m={path}", "--processes", 2, "--watch", 0, "--log", log, "--access-log", access)
    with serving(*options) as (process, port, said):
        assert said[-1].startswith("gradrank: note: m@1: http://127.0.0.1:")
        connections = connections_to_all(port, access, 2)
        asked = len(connections)
        assert counted(port, "gradrank_rankings_total") == asked
        # All of them load the new file, and only that one is told of.
        LinearRanker([10.0], feature_names=["a"]).save(path)
        process.send_signal(signal.SIGHUP)
        told = {next_line(process, "loaded anew") for _ in range(2)}
        assert told == {f"gradrank: note: process {number}: m@1 was loaded anew\n" for number in (1, 2)}
        for number, connection in enumerate(connections):
            asking = {"documents": [[2]], "qid": "q", "ids": [f"d{number}"]}
            assert ask(connection, asking)[1]["scores"] == [20.0]
        assert counted(port, "gradrank_reloads_total") == 2
        assert counted(port, "gradrank_model_info") == 1
        shown = [json.loads(line)["shown"] for line in log.read_text().splitlines()]
        assert sorted(shown) == sorted([f"d{number}"] for number in range(asked))
        # One that is killed is replaced; what it has done still counts, and nobody is refused meanwhile.
        first = json.loads(access.read_text().splitlines()[0])["process"]
        os.kill(first, signal.SIGKILL)
        assert "was ended by SIGKILL; another one takes its place" in next_line(process, "WARNING")
        fresh = HTTPConnection("127.0.0.1", port, timeout=60)
        assert ask(fresh, {"documents": [[2]]})[1]["scores"] == [20.0]
        assert counted(port, "gradrank_rankings_total") == 2 * asked + 1
        begun = socket.create_connection(("127.0.0.1", port), timeout=60)
        body = b'{"documents": [[3]]}'
        head = "POST /v1/rank HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        begun.sendall(head.encode() + f"content-length: {len(body)}\r\n\r\n".encode() + body[:10])
        while counted(port, "gradrank_requests_waiting") != 1:
            pass
        process.send_signal(signal.SIGTERM)
        begun.sendall(body[10:])
        answer = b""
        while chunk := begun.recv(65536):
            answer += chunk
        assert b'"scores":[30.0]' in answer
        for connection in (*connections, fresh):
            connection.close()
        begun.close()
        assert process.wait(60) == 0


def test_a_model_that_no_process_can_load_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text("no model")
    message = error_of(run("serve", tmp_path / "m.json", "--processes", 2, "--port", 0))
    assert message.count("is not a model") == 1


def test_processes_end_with_the_one_that_looks_after_them(tmp_path: Path) -> None:
    path, access = tmp_path / "m.json", tmp_path / "access.jsonl"
    LinearRanker([1.0], feature_names=["a"]).save(path)
    with serving(f"m={path}", "--processes", 2, "--access-log", access) as (process, port, _):
        connections = connections_to_all(port, access, 2)
        process.kill()
        # The end of standard error comes when the last process has closed it.
        assert process.stderr is not None
        process.stderr.read()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=60)
        for connection in connections:
            connection.close()

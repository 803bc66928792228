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

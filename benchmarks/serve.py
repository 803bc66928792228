"""Requests per second beside LightGBM's ``predict`` behind the same server, in the same run; a thousand at once.

    python benchmarks/serve.py [--seconds 5] [--rounds 3] [--documents 100] [--features 136] [--trees 500] [--leaves 31]
    python benchmarks/serve.py --small

Both servers are this package's, in a process of their own; the second one scores with ``lightgbm.Booster.predict``
instead of gradrank's trees (with one thread and with its default; the faster of the two counts). A client process keeps
some requests in flight on open connections and takes the time of each. Bodies are JSON objects, JSON lists and NumPy
arrays. The last column is the least processor time of the server per request, LightGBM's and gradrank's.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
from numpy.typing import NDArray
from score import random_documents, trained_model

from gradrank.models.ranker import Ranker
from gradrank.serve.served_models import ServedModel
from gradrank.serve.server import run_server
from gradrank.serve.service import Service
from gradrank.serve.settings import Limits, Settings, parse_sources

FORMS = ("JSON objects", "JSON lists", "NumPy")


class LightGBMRanker(Ranker):
    """LightGBM's own scores."""

    kind = "lightgbm"

    def __init__(self, path: Path, threads: int | None) -> None:
        self.booster = lightgbm.Booster(model_file=path)
        super().__init__(self.booster.feature_name())
        self._more: dict[str, Any] = {} if threads is None else {"num_threads": threads}

    def _score(self, X: NDArray[Any], n_jobs: int | None) -> NDArray[np.float64]:
        return np.asarray(self.booster.predict(X, raw_score=True, **self._more))

    def _payload(self) -> dict[str, Any]:
        raise NotImplementedError

    _from_payload = classmethod(lambda cls, *_: cls(Path(), None))  # type: ignore[assignment]


def serve(path: Path, peer: str | None) -> None:
    """The server process: says its address on standard output."""
    service = Service(Settings(parse_sources([f"m={path}"]), Limits(waiting=20_000, seconds=60.0)))
    if peer is not None:
        ranker = LightGBMRanker(path, None if peer == "default" else int(peer))
        (model,) = service.table
        service.table._models[model.label] = ServedModel(model.source, ranker, model.sha256, model.stamp)
    run_server(service, port=0, watch_seconds=0.0, say=lambda text: print(text, flush=True))


class Server:
    """A server process."""

    def __init__(self, path: Path, peer: str | None) -> None:
        command = [sys.executable, __file__, "--serve", str(path), *(["--peer", peer] if peer else [])]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])

    def megabytes(self) -> float:
        """Memory that the process holds now."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        return float("nan")

    def cpu_seconds(self) -> float:
        """Processor time that the process has used: what a request costs, however busy the machine is."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()


def request_bytes(X: NDArray[np.float32], form: str, names: list[str]) -> bytes:
    """A whole HTTP request."""
    if form == "NumPy":
        file = io.BytesIO()
        np.save(file, X)
        body, kind = file.getvalue(), "application/x-npy"
    else:
        # Six digits, as features mostly have.
        rows = [[float(f"{value:.6g}") for value in row] for row in X]
        documents: Any = rows if form == "JSON lists" else [dict(zip(names, row, strict=True)) for row in rows]
        body, kind = json.dumps({"documents": documents}).encode(), "application/json"
    head = f"POST /v1/rank HTTP/1.1\r\nhost: localhost\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> float:
    """Seconds of one request on an open connection; anything but 200 is an error."""
    began = time.perf_counter()
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    body = await reader.readexactly(length)
    if not head.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"the server answered {head[:60]!r} {body[:200]!r}")
    return time.perf_counter() - began


async def load(port: int, requests: list[bytes], in_flight: int, go_on: Callable[[int], bool]) -> list[float]:
    """Seconds of every request, with so many in flight."""
    seconds: list[float] = []

    async def client(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
        turn = number
        while go_on(len(seconds)):
            seconds.append(await one(reader, writer, requests[turn % len(requests)]))
            turn += in_flight
        writer.close()

    await asyncio.gather(*(client(number) for number in range(in_flight)))
    return seconds


def measured(server: Server, requests: list[bytes], in_flight: int, seconds: float) -> tuple[float, float, float]:
    """Requests per second, the 99th percentile of their times, and the server's processor time for each."""
    asyncio.run(load(server.port, requests, in_flight, lambda count: count < 20))
    end = time.perf_counter() + seconds
    began, used = time.perf_counter(), server.cpu_seconds()
    taken = asyncio.run(load(server.port, requests, in_flight, lambda count: time.perf_counter() < end))
    rate = len(taken) / (time.perf_counter() - began)
    return rate, float(np.quantile(taken, 0.99)), (server.cpu_seconds() - used) / len(taken)


def compare(path: Path, options: argparse.Namespace) -> None:
    names = lightgbm.Booster(model_file=path).feature_name()
    batches = [random_documents(options.documents, options.features, seed) for seed in range(20)]
    print(
        f"{options.documents} documents x {options.features} features, {options.trees} x {options.leaves} leaves, "
        f"{options.in_flight} requests in flight"
    )
    print(
        f"{'body':>14} {'LightGBM req/s':>15} {'p99 ms':>8} {'gradrank req/s':>15} {'p99 ms':>8} {'ratio':>7} "
        f"{'p99 ratio':>10} {'CPU ms':>13}"
    )
    with Server(path, None) as ours, Server(path, "1") as single, Server(path, "default") as default:
        for form in FORMS:
            requests = [request_bytes(X, form, names) for X in batches]
            found: dict[str, list[tuple[float, float, float]]] = {"ours": [], "theirs": []}
            for _ in range(options.rounds):
                for key, server in (("theirs", single), ("ours", ours), ("theirs", default)):
                    found[key].append(measured(server, requests, options.in_flight, options.seconds))
            theirs, mine = (max(found[key]) for key in ("theirs", "ours"))
            low = min(p99 for _, p99, _ in found["theirs"])
            own = min(p99 for _, p99, _ in found["ours"])
            cpu = " / ".join(f"{1e3 * min(cpu for _, _, cpu in found[key]):.2f}" for key in ("theirs", "ours"))
            print(f"{form:>14} {theirs[0]:>15.0f} {1e3 * low:>8.1f} {mine[0]:>15.0f} {1e3 * own:>8.1f} "
                  f"{mine[0] / theirs[0]:>7.2f} {low / own:>10.2f} {cpu:>13}", flush=True)  # fmt: skip


def thousand(path: Path, options: argparse.Namespace) -> None:
    """A thousand requests in flight, again and again: none fails, and memory does not grow with their number."""
    names = lightgbm.Booster(model_file=path).feature_name()
    requests = [request_bytes(random_documents(options.documents, options.features, 1), "JSON lists", names)]
    with Server(path, None) as server:
        asyncio.run(load(server.port, requests, 8, lambda count: count < 100))
        print(f"1,000 requests in flight, {len(requests[0]):,} bytes each; memory before: {server.megabytes():.0f} MB")
        for number in range(options.rounds):
            taken = asyncio.run(load(server.port, requests, 1000, lambda count: count < 2000))
            print(f"round {number + 1}: {len(taken):,} answered, none failed, slowest {max(taken):.2f} s; "
                  f"memory after: {server.megabytes():.0f} MB", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=100)
    parser.add_argument("--features", type=int, default=136)
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--leaves", type=int, default=31)
    parser.add_argument("--in-flight", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="one short round")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve, options.peer)
        return
    if options.small:
        options.seconds, options.rounds = 1.5, 1
    # A thousand connections on both sides.
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    assert socket.SOMAXCONN >= 128
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    path = trained_model(options.trees, options.leaves, options.features)
    compare(path, options)
    thousand(path, options)


if __name__ == "__main__":
    main()

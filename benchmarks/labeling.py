"""How a labeling server bears many assessors at once: time of a vote, and whether every vote is there afterwards.

    python benchmarks/labeling.py [--assessors 50] [--votes 40] [--think 1.0]

Each assessor is a connection of its own that looks at the open pair, thinks (exponentially, on average ``--think``
seconds; people take five), and votes; the time of a vote is that from sending it to its acknowledgement, which
comes after it is on disk. A second round lets all of them vote without thinking, which shows the most the server
can take. Server and assessors share the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from gradrank.labeling.project.access import Access
from gradrank.labeling.project.assignment import assign
from gradrank.labeling.project.importing import import_files
from gradrank.labeling.project.store import Store, create_project

DOCUMENTS, K = 50, 10
_FIELD = re.compile(r'name="(csrf|token|seq|shown)" value="([^"]*)"')
SERVER = [sys.executable, "-c", "from gradrank.cli.main import run; run()", "label", "serve"]


def make_project(path: Path, assessors: int, rounds: int) -> list[str]:
    """A project with passages of the usual length; gives the assessors' links."""
    generator = random.Random(0)
    words = [f"word{number}" for number in range(2000)]
    folder = path.parent
    (folder / "queries.tsv").write_text(
        "".join(f"q{n}\t{' '.join(generator.choices(words, k=5))}\n" for n in range(rounds))
    )
    (folder / "documents.tsv").write_text(
        "".join(f"d{n}\t{' '.join(generator.choices(words, k=70))}\n" for n in range(DOCUMENTS))
    )
    with create_project(path) as store:
        import_files(store, queries=folder / "queries.tsv", documents=[folder / "documents.tsv"])
        assign(store, assessors=assessors, overlap=assessors, k=K)
        access = Access(store)
        return [access.token(*row) for row in store.read().execute("SELECT id, edition FROM assessor ORDER BY id")]


@dataclass
class Client:
    """An assessor's browser, reduced to one connection."""

    host: str
    port: int
    seed: int
    cookie: str = ""
    acknowledged: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    async def connect(self) -> None:
        """Open the connection."""
        self.reader, self.writer = await asyncio.open_connection(self.host, self.port)

    async def ask(self, method: str, path: str, form: dict[str, str] | None = None) -> tuple[int, dict[str, str], str]:
        """Send a request; gives status, headers and body."""
        body = urlencode(form or {}).encode()
        address = f"{self.host}:{self.port}"
        lines = [
            f"{method} {path} HTTP/1.1",
            f"Host: {address}",
            f"Cookie: {self.cookie}",
            f"Content-Length: {len(body)}",
        ]
        if method == "POST":
            lines += [f"Origin: http://{address}", "Content-Type: application/x-www-form-urlencoded"]
        self.writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await self.writer.drain()
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        content = await self.reader.readexactly(int(headers.get("content-length", 0)))
        return int(head[0].split()[1]), headers, content.decode()

    async def enter(self, token: str) -> None:
        """Come in by the link."""
        status, headers, _ = await self.ask("POST", f"/join/{token}")
        assert status == 303, status
        self.cookie = headers["set-cookie"].partition(";")[0]

    async def work(self, votes: int, think: float) -> None:
        """Vote so many times."""
        generator = random.Random(self.seed)
        while votes:
            _, headers, _ = await self.ask("GET", "/work")
            path = headers["location"]
            while votes:
                _, _, page = await self.ask("GET", path)
                form = dict(_FIELD.findall(page))
                if not form.get("shown"):
                    break
                if think:
                    await asyncio.sleep(generator.expovariate(1 / think))
                form["verdict"] = generator.choice(["a", "b"])
                start = time.perf_counter()
                status, headers, _ = await self.ask("POST", f"{path}/vote", form)
                self.seconds.append(time.perf_counter() - start)
                assert status == 303, status
                assert headers["location"].endswith("said=accepted"), headers["location"]
                self.acknowledged.append(form["token"])
                votes -= 1


async def round_of_votes(clients: list[Client], votes: int, think: float) -> tuple[list[float], float]:
    """All clients vote; gives the sorted times of the votes and the length of the round."""
    for client in clients:
        client.seconds.clear()
    start = time.perf_counter()
    await asyncio.gather(*(client.work(votes, think) for client in clients))
    return sorted(second for client in clients for second in client.seconds), time.perf_counter() - start


def show(name: str, times: list[float], length: float) -> None:
    """Print one line."""
    at = [times[min(int(len(times) * share), len(times) - 1)] * 1000 for share in (0.5, 0.95, 0.99)]
    print(
        f"{name}: {len(times)} votes in {length:.1f} s ({len(times) / length:.0f} a second), "
        f"median {at[0]:.1f} ms, p95 {at[1]:.1f} ms, p99 {at[2]:.1f} ms, longest {times[-1] * 1000:.1f} ms"
    )


async def main(arguments: argparse.Namespace) -> None:
    """Run the benchmark."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "project.db"
        tokens = make_project(path, arguments.assessors, rounds=4)
        server = subprocess.Popen([*SERVER, str(path), "--port", "0"], stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            address = urlsplit(server.stdout.readline().split()[-1])
            clients = [Client(address.hostname or "", address.port or 0, number) for number in range(len(tokens))]
            for client, token in zip(clients, tokens, strict=True):
                await client.connect()
                await client.enter(token)
            show("thinking", *await round_of_votes(clients, arguments.votes, arguments.think))
            show("no pause", *await round_of_votes(clients, arguments.votes // 2, 0))
        finally:
            # As a crash would: what was acknowledged must be there all the same.
            server.kill()
            server.wait()
        with Store(path) as store:
            store.check()
            kept = [token for (token,) in store.read().execute("SELECT token FROM event")]
        sent = [token for client in clients for token in client.acknowledged]
        lost, doubled = len(set(sent) - set(kept)), len(kept) - len(set(kept))
        print(f"acknowledged {len(sent)}, kept {len(kept)}, lost {lost}, doubled {doubled}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Load on a labeling server.")
    parser.add_argument("--assessors", type=int, default=50)
    parser.add_argument("--votes", type=int, default=40)
    parser.add_argument("--think", type=float, default=1.0)
    asyncio.run(main(parser.parse_args()))

"""Kill commands at random moments, as ``kill -9`` does, and look for what was lost.

    python -m tests.fuzz.kill_commands [--kills 20] [--seed 1] [--only train,convert] [--keep .kills]

Commands are children of a process that has loaded what they import, so that most kills hit their work. The two servers
are in :mod:`tests.fuzz.kill_servers`. Each other command runs once undisturbed. Then it is started and killed after a
random part of that time, one to five times in a row, in half of the cases over an output that is there already. After
every kill each file under its own name is looked at: it must be whole (the old one or the new one). A command that is
then run to its end must give the files of the undisturbed run, whatever was left by those that were killed, and leave
no hidden files behind.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.fuzz.kill_servers import attack_labeling, attack_serving

LOADED = [
    "lightgbm", "uvicorn", "starlette.applications", "gradrank.cli.main", "gradrank.labeling.web.server",
    "gradrank.learners.algorithms", "gradrank.selection.auto", "gradrank.selection.sweep", "gradrank.serve.server",
]  # fmt: skip
GOOD = ("kills", "in time", "resumed", "acknowledged")
SERVERS = {"label": attack_labeling, "serve": attack_serving}


@dataclass(frozen=True)
class Command:
    """A command that is killed."""

    name: str
    arguments: list[str]
    output: str
    """What it writes, in the folder that it runs in."""
    digest: Callable[[Path], Any]
    """What a whole output holds that does not depend on time; raises for half an output."""
    kept: list[str]
    """What a killed run may leave for the next one."""


def model_digest(path: Path) -> Any:
    """A model without times and the words of the command."""
    whole = json.loads(path.read_text())
    return whole["kind"], whole["payload"]


def portfolio_digest(path: Path) -> Any:
    """A portfolio is what could be trained in the time: it is looked at, not compared."""
    return json.loads(path.read_text())["kind"]


def folder_digest(path: Path) -> Any:
    """The data of a folder of arrays."""
    from gradrank.data.fingerprint import data_fingerprint
    from gradrank.data.formats.binary import open_binary

    return data_fingerprint(open_binary(path))


def commands() -> list[Command]:
    """Those that take long enough to be killed."""
    sets = ["--train", "d/train.txt", "--valid", "d/vali.txt", "--quiet", "--format", "json"]
    two = ["--label", "clicks=d/clicks.txt", "--valid-label", "clicks=d/valid-clicks.txt"]
    return [
        Command(
            "train",
            ["train", *sets, "--trees", "60", "--min-docs", "5", "--threads", "1", "--checkpoint", "2", "-o", "m.json"],
            "m.json", model_digest, ["m.json.checkpoint"],
        ),
        Command("convert", ["convert", "d/train.txt", "c.gradrank", "--quiet"], "c.gradrank", folder_digest, []),
        Command(
            "sweep",
            ["sweep", *sets, *two, "--objective", "Tiered(NDCG, NDCG(label=clicks))", "--trees", "8", "--min-docs",
             "5", "--threads", "1", "--weights", "0.1,0.5", "-o", "s.json"],
            "s.json", model_digest, ["s.json.sweep"],
        ),
        Command(
            "auto",
            ["auto", *sets, "--budget", "6s", "--processes", "1", "--threads", "1", "--members", "a.members", "-o",
             "a.json"],
            "a.json", portfolio_digest, ["a.members"],
        ),
    ]  # fmt: skip


def load_imports() -> None:
    """What commands import: done once, before processes are made."""
    for name in LOADED:
        import_module(name)


def start(arguments: list[str], folder: Path) -> int:
    """A command as a session of its own, so that a kill takes its workers, too; its errors go to a file ``errors``."""
    number = os.fork()
    if number:
        return number
    code: Any = 1
    try:
        os.setsid()
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(os.open("errors", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        sys.argv = ["gradrank", *arguments]
        from gradrank.cli.main import run

        run()
        code = 0
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def finish(arguments: list[str], folder: Path) -> float:
    """Run a command to its end; gives the seconds that it took."""
    began = time.perf_counter()
    _, status = os.waitpid(start(arguments, folder), 0)
    if status:
        said = (folder / "errors").read_text(errors="replace")
        raise SystemExit(f"{arguments[0]} ended with {os.waitstatus_to_exitcode(status)}:\n{said}")
    return time.perf_counter() - began


def killed(arguments: list[str], folder: Path, seconds: float) -> bool:
    """Start a command and kill it after some seconds; False if it had ended by then."""
    number = start(arguments, folder)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if os.waitpid(number, os.WNOHANG)[0]:
            return False
        time.sleep(0.002)
    os.kill(number, signal.SIGKILL)  # before it leads its group there is nobody else
    with suppress(ProcessLookupError):
        os.killpg(number, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(number, 0)[1])


def hidden(folder: Path) -> list[str]:
    """Files that nobody asked for."""
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def clear(command: Command, folder: Path) -> None:
    """Take away what earlier runs made."""
    for name in (command.output, *command.kept, *hidden(folder)):
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def attack(command: Command, folder: Path, kills: int, until: float, chance: random.Random) -> dict[str, int]:
    """Kill a command so many times, or until the clock says so; gives what was seen."""
    seen = {"kills": 0, "in time": 0, "half files": 0, "resumed": 0, "other results": 0, "leftovers": 0}
    clear(command, folder)
    finish(command.arguments, folder)
    clear(command, folder)
    seconds = finish(command.arguments, folder)
    wanted = command.digest(folder / command.output)
    while seen["kills"] < kills and time.monotonic() < until:
        clear(command, folder)
        if chance.random() < 0.5:  # over an output that is there already
            finish(command.arguments, folder)
        for _ in range(min(chance.randint(1, 5), kills - seen["kills"])):
            hit = killed(command.arguments, folder, chance.random() * seconds)
            seen["kills" if hit else "in time"] += 1
            output = folder / command.output
            if output.exists():
                try:
                    command.digest(output)
                except Exception as error:
                    seen["half files"] += 1
                    print(f"{command.name}: {error!r}")
        for name in hidden(folder):  # leftovers are removed when they are old enough to belong to nobody
            os.utime(folder / name, (0, 0))
        finish(command.arguments, folder)
        seen["resumed"] += 1
        seen["other results"] += command.digest(folder / command.output) != wanted
        seen["leftovers"] += len(hidden(folder))
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="of each command")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin nothing new after so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="names of commands, apart by commas")
    parser.add_argument("--keep", type=Path, default=Path(".fuzz") / "kills", help="folder to work in")
    options = parser.parse_args()
    folder = options.keep
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    load_imports()
    made = ["make-data", "d", "--queries", "60", "--docs", "12", "--features", "6", "--seed", "5", "--quiet"]
    finish(made, folder)
    for source, target in (("train", "clicks"), ("vali", "valid-clicks")):
        lines = (folder / "d" / f"{source}.txt").read_text().splitlines()
        (folder / "d" / f"{target}.txt").write_text("".join(f"{len(line) % 3}\n" for line in lines))
    until = time.monotonic() + 60.0 * options.minutes
    chance, bad = random.Random(options.seed), 0
    attacks: dict[str, Callable[[], dict[str, int]]] = {
        command.name: partial(attack, command, folder, options.kills, until, chance) for command in commands()
    }
    attacks |= {name: partial(action, start, folder, options.kills, until, chance) for name, action in SERVERS.items()}
    for name, attempt in attacks.items():
        if options.only and name not in options.only.split(","):
            continue
        seen = attempt()
        bad += sum(value for key, value in seen.items() if key not in GOOD)
        print(name, ", ".join(f"{key} {value}" for key, value in seen.items()), flush=True)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

"""Kill commands at random moments, as ``kill -9`` does, and look for what was lost.

    python -m tests.fuzz.kill_commands [--kills 20] [--seed 1] [--only train,convert] [--keep .kills]

Each command runs once undisturbed. Then it is started and killed after a random part of that time, one to five times
in a row, in half of the cases over an output that is there already. After every kill each file under its own name is
looked at: it must be whole (the old one or the new one). A command that is then run to its end must give the files of
the undisturbed run, whatever was left by those that were killed, and leave no hidden files behind.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PROGRAM = [sys.executable, "-c", "from gradrank.cli.main import run; run()"]


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
            ["sweep", *sets, *two, "--objective", "Graded(NDCG@5, NDCG(label=clicks)@5)", "--trees", "8", "--min-docs",
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


def start(command: Command, folder: Path) -> subprocess.Popen[bytes]:
    """The command as a session of its own, so that a kill takes its workers, too."""
    return subprocess.Popen(
        [*_PROGRAM, *command.arguments],
        cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def finish(command: Command, folder: Path) -> float:
    """Run a command to its end; gives the seconds that it took."""
    began = time.perf_counter()
    run = start(command, folder)
    _, errors = run.communicate()
    if run.returncode:
        raise SystemExit(f"{command.name} ended with {run.returncode}:\n{errors.decode(errors='replace')}")
    return time.perf_counter() - began


def hidden(folder: Path) -> list[str]:
    """Files that nobody asked for."""
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def clear(command: Command, folder: Path) -> None:
    """Take away what earlier runs made."""
    for name in (command.output, *command.kept, *hidden(folder)):
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def attack(command: Command, folder: Path, kills: int, chance: random.Random) -> dict[str, int]:
    """Kill a command so many times; gives what was seen."""
    seen = {"kills": 0, "in time": 0, "half files": 0, "resumed": 0, "other results": 0, "leftovers": 0}
    clear(command, folder)
    seconds = finish(command, folder)
    wanted = command.digest(folder / command.output)
    while seen["kills"] < kills:
        clear(command, folder)
        if chance.random() < 0.5:  # over an output that is there already
            finish(command, folder)
        for _ in range(min(chance.randint(1, 5), kills - seen["kills"])):
            run = start(command, folder)
            try:
                run.communicate(timeout=chance.random() * seconds)
                seen["in time"] += 1
            except subprocess.TimeoutExpired:
                os.killpg(run.pid, 9)
                run.communicate()
                seen["kills"] += 1
            output = folder / command.output
            if output.exists():
                try:
                    command.digest(output)
                except Exception as error:
                    seen["half files"] += 1
                    print(f"{command.name}: {error!r}")
        for name in hidden(folder):  # leftovers are removed when they are old enough to belong to nobody
            os.utime(folder / name, (0, 0))
        finish(command, folder)
        seen["resumed"] += 1
        seen["other results"] += command.digest(folder / command.output) != wanted
        seen["leftovers"] += len(hidden(folder))
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="of each command")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="names of commands, apart by commas")
    parser.add_argument("--keep", type=Path, default=Path(".fuzz") / "kills", help="folder to work in")
    options = parser.parse_args()
    folder = options.keep
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    made = ["make-data", "d", "--queries", "60", "--docs", "12", "--features", "6", "--seed", "5", "--quiet"]
    subprocess.run([*_PROGRAM, *made], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    for source, target in (("train", "clicks"), ("vali", "valid-clicks")):
        lines = (folder / "d" / f"{source}.txt").read_text().splitlines()
        (folder / "d" / f"{target}.txt").write_text("".join(f"{len(line) % 3}\n" for line in lines))
    chance, bad = random.Random(options.seed), 0
    for command in commands():
        if options.only and command.name not in options.only.split(","):
            continue
        seen = attack(command, folder, options.kills, chance)
        bad += seen["half files"] + seen["other results"] + seen["leftovers"]
        print(command.name, ", ".join(f"{key} {value}" for key, value in seen.items()), flush=True)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

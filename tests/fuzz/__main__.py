"""Try changed inputs for as long as wanted, each target in a process of its own; keep those that make trouble.

    python -m tests.fuzz --minutes 60 [--only models] [--seed 1] [--keep .fuzz] [--processes 2] [--checked]
    python -m tests.fuzz --inputs 100000          so many in all, or those that the --minutes suffice for
    python -m tests.fuzz --again .fuzz/FILE       one kept input once more

Ctrl-C ends a run with the table of what was tried.

Trouble is: an exception other than GradrankError, the end of the process, more than 2 seconds of a
processor (or 60 of the clock), more than 256 MB. With
``--checked`` compiled kernels check every index. The exit code is 1 if there was any trouble.
"""

from __future__ import annotations

import argparse
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow

from tests.fuzz.targets import Target, all_targets

SLOW_SECONDS = 2.0
HANGING_SECONDS = 60.0
MOST_MEGABYTES = 256
# Beyond this the process is stopped by the system before the machine suffers.
_ADDRESS_SPACE = 12 << 30
# Inputs of one process: starting takes as long as thousands of them, and memory that leaks shows sooner in long ones.
_BATCH = 100_000
# Files that live for a millisecond are written to memory where there is such a folder: a disk takes most of the time.
_IN_MEMORY = Path("/dev/shm")
# The input that is tried, for whoever finds the process dead.
_CURRENT = "now"
_TURN_BYTES = 8
# A word for each input would take a third of the time.
_SECONDS_BETWEEN_WORDS = 0.5
FINE = ("accepted", "refused", "untold")


@dataclass
class Tally:
    """What came of a target's inputs."""

    outcomes: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0

    def line(self, name: str) -> str:
        """One row of the table."""
        count = self.outcomes
        trouble = " ".join(f"{key} {count[key]}" for key in sorted(count) if key not in ("accepted", "refused"))
        total = sum(count.values())
        return f"{name:<32} {total:>8} {count['accepted']:>9} {count['refused']:>8} {self.slowest:>8.2f} s  {trouble}"


def megabytes() -> float:
    """The most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def kept_name(target: str, seed: int, number: int, outcome: str) -> str:
    """The name of the file that keeps an input."""
    return f"{target.replace('/', '-').replace(' ', '_')}-{seed}-{number}-{outcome}"


def child(targets: list[Target], options: argparse.Namespace) -> None:
    """Try inputs of all targets in turn; a line on standard output for each: outcome, seconds, target."""
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    warnings.simplefilter("ignore")
    end = time.monotonic() + 60.0 * options.minutes
    current, folder = options.place / _CURRENT, options.place / "files"
    folder.mkdir()
    pyarrow.set_cpu_count(1)  # files are small: handing them to other threads takes longer than reading them
    # Valid inputs load modules and compile kernels, before time and memory count.
    for target in targets:
        for content in target.seeds().values():
            target.run(content, folder)
    print("ready 0 -", flush=True)
    told = time.monotonic()
    for turn in range(options.first, options.first + options.inputs):
        target, number = targets[turn % len(targets)], turn // len(targets)
        content = target.input(number, options.seed)
        current.write_bytes(turn.to_bytes(_TURN_BYTES, "little") + content)
        before, note = megabytes(), ""
        try:
            outcome, seconds = timed(target, content, folder)
            if seconds > SLOW_SECONDS:  # perhaps it compiled a kernel that no valid input needs: that is done once
                outcome, seconds = timed(target, content, folder)
        except Exception as error:
            outcome, seconds, note = "foreign", 0.0, "".join(traceback.format_exception(error))
        grown = megabytes() - before
        if outcome in FINE and (seconds > SLOW_SECONDS or grown > MOST_MEGABYTES):
            outcome, note = "slow" if seconds > SLOW_SECONDS else "large", f"{seconds:.2f} s, {grown:.0f} MB"
        if outcome not in FINE:
            kept = options.keep / kept_name(target.name, options.seed, number, outcome)
            kept.write_bytes(content)
            kept.with_name(kept.name + ".txt").write_text(f"{target.name}\n{note}")
        now = time.monotonic()
        due = outcome not in FINE or now - told > _SECONDS_BETWEEN_WORDS
        print(f"{outcome} {seconds:.4f} {target.name}", flush=due)
        told = now if due else told
        if now > end:
            break
    print(f"end {megabytes():.0f} -", flush=True)


def timed(target: Target, content: bytes, folder: Path) -> tuple[str, float]:
    """What comes of an input, and the processor's time: on a busy machine the clock tells nothing of the input."""
    began = time.process_time()
    outcome: str = target.run(content, folder)
    return outcome, time.process_time() - began


def heard(handle: int, seconds: float | None, stopped: threading.Event) -> bool:
    """Whether a child says something in time. Seconds in which this process did not run either do not count.

    Starting takes as long as it takes (None): kernels are compiled, and the machine may be busy.
    """
    while (seconds is None or seconds > 0) and not stopped.is_set():
        if select.select([handle], [], [], 1.0)[0]:
            return True
        seconds = None if seconds is None else seconds - 1.0
    return False


def batch(names: list[str], first: int, minutes: float, options: argparse.Namespace, tallies: dict[str, Tally]) -> int:
    """Inputs in a child process; gives how many were tried. A child that ends or hangs loses its last input only."""
    with tempfile.TemporaryDirectory(dir=_IN_MEMORY if os.access(_IN_MEMORY, os.W_OK) else None) as place:
        return _batch(names, first, minutes, options, tallies, Path(place))


def _batch(
    names: list[str], first: int, minutes: float, options: argparse.Namespace, tallies: dict[str, Tally], place: Path
) -> int:
    environment = dict(os.environ)
    if options.checked:
        environment |= {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(Path(".numba-checked").absolute())}
    arguments = {
        "--child": ",".join(names), "--first": first, "--inputs": min(_BATCH, options.inputs - first),
        "--minutes": minutes, "--seed": options.seed, "--keep": options.keep, "--place": place,
    }  # fmt: skip
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.fuzz"]
    command += [str(part) for pair in arguments.items() for part in pair]
    errors = options.keep / f"stderr-{threading.get_ident()}"
    tried = 0
    started = False
    pipes = {"stdout": subprocess.PIPE, "env": environment}
    with errors.open("wb") as log, subprocess.Popen(command, stderr=log, **pipes) as run:
        assert run.stdout is not None
        rest = b""
        while True:
            ready = heard(run.stdout.fileno(), HANGING_SECONDS if started else None, options.stopped)
            piece = os.read(run.stdout.fileno(), 1 << 16) if ready else b""
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                word, seconds, name = line.decode().split(" ", 2)
                if word == "ready":
                    started = True
                    continue
                if word == "end":
                    options.peaks.append(float(seconds))
                    continue
                tallies[name].outcomes[word] += 1
                tallies[name].slowest = max(tallies[name].slowest, float(seconds))
                tried += 1
            if not piece:
                break
        if not ready:
            run.kill()
        code = run.wait()
    said = errors.read_text(errors="replace")
    errors.unlink()
    if options.stopped.is_set():  # Ctrl-C in a terminal ends the child as well
        return tried
    if code == 0:
        return tried
    if not started:
        raise RuntimeError(f"the process did not start:\n{said}")
    word = "crash" if ready else "hang"
    left = (place / _CURRENT).read_bytes()
    turn, content = int.from_bytes(left[:_TURN_BYTES], "little"), left[_TURN_BYTES:]
    for between in range(first + tried, turn):  # fine, or the process would have said so at once
        tallies[names[between % len(names)]].outcomes["untold"] += 1
    name = names[turn % len(names)]
    kept = options.keep / kept_name(name, options.seed, turn // len(names), word)
    kept.write_bytes(content)
    kept.with_name(kept.name + ".txt").write_text(f"{name}\nexit code {code}\n{said}")
    tallies[name].outcomes[word] += 1
    return turn + 1 - first


def work(names: list[str], options: argparse.Namespace, tallies: dict[str, Tally]) -> None:
    """Child processes one after another, until the time or the inputs are used up."""
    end = time.monotonic() + 60.0 * options.minutes
    done = 0
    while done < options.inputs and time.monotonic() < end and not options.stopped.is_set():
        done += batch(names, done, (end - time.monotonic()) / 60.0, options, tallies)


def again(path: Path) -> None:
    """Try a kept input; its neighbor with the ending .txt tells of which target."""
    target = all_targets()[path.with_name(path.name + ".txt").read_text().split("\n")[0]]
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        print(target.run(path.read_bytes(), Path(folder)), f"{time.perf_counter() - began:.2f} s", megabytes(), "MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, help="1 unless --inputs is given")
    parser.add_argument("--inputs", type=int, help="at most so many in all")
    parser.add_argument("--only", default="", help="targets whose name starts so")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path(".fuzz"), help="folder for inputs that make trouble")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--checked", action="store_true", help="compiled kernels check every index")
    parser.add_argument("--again", type=Path, metavar="FILE", help="try a kept input once more")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--place", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.again is not None:
        again(options.again)
        return
    options.keep.mkdir(parents=True, exist_ok=True)
    if options.child is not None:
        child([all_targets()[name] for name in options.child.split(",")], options)
        return
    names = [name for name in all_targets() if name.startswith(options.only)]
    if not names:
        raise SystemExit(f"no target starts with {options.only!r}, expected one of {', '.join(all_targets())}")
    tallies = {name: Tally() for name in names}
    options.peaks, options.stopped = [], threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):  # the table of what was tried until then
        signal.signal(number, lambda *_: options.stopped.set())
    if options.minutes is None:
        options.minutes = 1.0 if options.inputs is None else float("inf")
    options.inputs = sys.maxsize if options.inputs is None else -(-options.inputs // options.processes)
    parts = [names[start :: options.processes] for start in range(options.processes)]
    with ThreadPoolExecutor(options.processes) as pool:
        runs = [pool.submit(work, part, options, tallies) for part in parts if part]
    for run in runs:
        run.result()
    print(f"{'target':<32} {'inputs':>8} {'accepted':>9} {'refused':>8} {'slowest':>10}  trouble")
    total = Tally()
    for name, tally in tallies.items():
        print(tally.line(name))
        total.outcomes += tally.outcomes
        total.slowest = max(total.slowest, tally.slowest)
    print(total.line("all"))
    print(f"most memory of a process: {max(options.peaks, default=0.0):.0f} MB")
    if set(total.outcomes) - set(FINE):
        print(f"inputs that made trouble are in {options.keep}; try one again with --again FILE")
        sys.exit(1)


if __name__ == "__main__":
    main()

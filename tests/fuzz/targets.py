"""What a fuzz target is, and which there are: every module of this folder that has a function ``targets``."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal

from gradrank.errors import GradrankError
from tests.fuzz.mutations import Mutation, changed

Outcome = Literal["accepted", "refused"]


@dataclass(frozen=True)
class Target:
    """A reader that is tried with changed inputs."""

    name: str
    """``group/format``."""
    seeds: Callable[[], Mapping[str, bytes]]
    """Valid inputs by name; small, so that a change in a random place matters."""
    attempt: Callable[[bytes, Path], None]
    """Tries one input, in a folder that it may write to. What was refused rightly is a GradrankError; every other
    exception is a fault of the reader's, an AssertionError one that the attempt found itself."""
    change: Mutation = changed

    def input(self, number: int, seed: int = 0) -> bytes:
        """The input of this number, always the same for the same seed."""
        valid = self.seeds()
        chance = random.Random(f"{self.name} {seed} {number}")
        return self.change(valid[chance.choice(list(valid))], chance)

    def run(self, content: bytes, folder: Path) -> Outcome:
        """Try one input."""
        try:
            self.attempt(content, folder)
        except GradrankError as error:
            said = str(error)
            assert said, "the error says nothing"
            assert "\n" not in said, f"the error has several lines: {said!r}"
            assert len(said) < 2000, f"the error is {len(said)} characters long"
            return "refused"
        return "accepted"


def all_targets() -> dict[str, Target]:
    """Every target, by name."""
    modules = [
        path.stem for path in sorted(Path(__file__).parent.glob("[a-z]*.py")) if not path.stem.startswith("test")
    ]
    found: dict[str, Target] = {}
    for name in modules:
        for target in getattr(import_module(f"tests.fuzz.{name}"), "targets", list)():
            found[target.name] = target
    return found

"""Ctrl-C during a training: once to stop with the best model so far, twice to end at once."""

from __future__ import annotations

import os
import signal
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from gradrank.learners.base.loop import Step

_STDERR = 2
EXIT_INTERRUPTED = 130


class Interruption:
    """Ctrl-C once: training stops after the step at work, and its best model is kept; twice: the command ends."""

    def __init__(self, unit: str = "tree") -> None:
        self._unit = unit
        self._asked = False
        self._before: Any = None

    def __enter__(self) -> Self:
        try:
            self._before = signal.signal(signal.SIGINT, self._ask)
        except ValueError:
            # Only the main thread may; elsewhere nobody presses Ctrl-C.
            self._before = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _ask(self, _number: int, _frame: Any) -> None:
        if self._asked:
            # Not KeyboardInterrupt, which training takes for the wish to keep what it has.
            raise SystemExit(EXIT_INTERRUPTED)
        self._asked = True
        # Straight to the stream: the signal may have come in the middle of a buffered write.
        os.write(_STDERR, f"\ngradrank: stopping after this {self._unit}; press Ctrl-C again to end at once\n".encode())

    def asked(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self._asked

    def __call__(self, _step: Step) -> None:
        """After each step: stop here if asked to."""
        if self._asked:
            raise KeyboardInterrupt

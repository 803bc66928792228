"""Ctrl-C or SIGTERM during a training: once to stop with the best model so far, twice to end at once.

SIGTERM is what batch systems, containers and ``kill`` send before they take the process away.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from gradrank.learners.base.loop import Step

_STDERR = 2
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143
_SIGNALS = {signal.SIGINT: EXIT_INTERRUPTED, signal.SIGTERM: EXIT_TERMINATED}


class Interruption:
    """Ctrl-C (or SIGTERM) once: training stops after the step at work, and its best model is kept; twice: the end."""

    def __init__(self, unit: str = "tree") -> None:
        self._unit = unit
        self._asked = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        # Only the main thread may; elsewhere nobody presses Ctrl-C.
        with suppress(ValueError):
            for number in _SIGNALS:
                self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _ask(self, number: int, _frame: Any) -> None:
        if self._asked:
            # Not KeyboardInterrupt, which training takes for the wish to keep what it has.
            raise SystemExit(_SIGNALS[signal.Signals(number)])
        self._asked = True
        # Straight to the stream: the signal may have come in the middle of a buffered write.
        os.write(_STDERR, f"\ngradrank: stopping after this {self._unit}; press Ctrl-C again to end at once\n".encode())

    def asked(self) -> bool:
        """Whether Ctrl-C was pressed or SIGTERM came."""
        return self._asked

    def __call__(self, _step: Step) -> None:
        """After each step: stop here if asked to."""
        if self._asked:
            raise KeyboardInterrupt

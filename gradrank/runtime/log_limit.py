"""Logs that strangers cannot fill: of many messages in a short time, the first few are kept."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class LogLimit(logging.Filter):
    """Lets ``most`` messages through in ``seconds``; the first one after that tells how many were left out.

    >>> limit = LogLimit(most=1, seconds=60, clock=lambda: 0.0)
    >>> record = logging.makeLogRecord({"msg": "odd request"})
    >>> limit.filter(record), limit.filter(record)
    (True, False)
    """

    def __init__(self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._most, self._seconds, self._clock = most, seconds, clock
        self._begun, self._let_through, self._left_out = clock(), 0, 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the message is kept."""
        now = self._clock()
        if now - self._begun >= self._seconds:
            if self._left_out:
                record.msg, record.args = f"{record.getMessage()} ({self._left_out} messages before were left out)", ()
            self._begun, self._let_through, self._left_out = now, 0, 0
        if self._let_through >= self._most:
            self._left_out += 1
            return False
        self._let_through += 1
        return True


@contextmanager
def limited_logs(*names: str, most: int = 20, seconds: float = 60.0) -> Iterator[None]:
    """Limit what loggers say together, for as long as the block lasts."""
    limit = LogLimit(most, seconds)
    loggers = [logging.getLogger(name) for name in names]
    for logger in loggers:
        logger.addFilter(limit)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(limit)

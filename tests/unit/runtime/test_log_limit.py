"""Floods of messages."""

from __future__ import annotations

import logging

import pytest

from gradrank.runtime.log_limit import LogLimit, limited_logs


def test_a_flood_is_cut_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    with limited_logs("flooded", "beside", most=3):
        for number in range(100):
            logging.getLogger("flooded").warning("odd request %d", number)
        logging.getLogger("beside").warning("one more")
    logging.getLogger("flooded").warning("after")
    assert caplog.messages == ["odd request 0", "odd request 1", "odd request 2", "after"]


def test_the_next_message_tells_what_was_left_out() -> None:
    now = [0.0]
    limit = LogLimit(1, 60, clock=lambda: now[0])
    kept = [limit.filter(logging.makeLogRecord({"msg": "x"})) for _ in range(5)]
    now[0] = 61.0
    record = logging.makeLogRecord({"msg": "odd %s", "args": ("request",)})
    assert (kept, limit.filter(record)) == ([True] + [False] * 4, True)
    assert record.getMessage() == "odd request (4 messages before were left out)"

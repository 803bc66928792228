"""Seconds of work: union over pages, without what was hidden, idle or paused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank.labeling.project.active_time import KINDS, active_seconds


@pytest.mark.parametrize(
    ("activity", "until", "seconds"),
    [
        ([], 10, 0),
        ([(0, "p", "shown")], 10, 10),
        # Two tabs count once.
        ([(0, "p", "shown"), (2, "q", "shown")], 10, 10),
        ([(0, "p", "shown"), (2, "q", "shown"), (3, "p", "closed")], 10, 10),
        ([(0, "p", "shown"), (2, "p", "closed"), (8, "q", "shown")], 10, 4),
        ([(0, "p", "shown"), (4, "p", "idle"), (9, "p", "active")], 10, 5),
        ([(0, "p", "shown"), (4, "p", "pause"), (9, "p", "resume"), (9, "q", "shown")], 10, 5),
        # Left overnight without a word: up to the limit.
        ([(0, "p", "shown")], 50_000, 100),
        ([(0, "p", "shown"), (50_000, "q", "shown")], 50_005, 105),
        # A clock that goes backwards takes nothing away.
        ([(10, "p", "shown"), (5, "p", "hidden")], 20, 0),
    ],
)
def test_cases(activity: list[tuple[float, str, str]], until: float, seconds: float) -> None:
    assert active_seconds(activity, until, limit=100) == seconds


@given(
    st.lists(st.tuples(st.integers(0, 500), st.sampled_from("pq"), st.sampled_from(sorted(KINDS))), max_size=12),
    st.integers(0, 600),
)
def test_never_negative_nor_longer_than_the_wall(activity: list[tuple[int, str, str]], after: int) -> None:
    events = sorted(activity)
    until = (events[-1][0] if events else 0) + after
    total = active_seconds([(float(at), page, kind) for at, page, kind in events], until, limit=1e9)
    # By brute force: at each whole second, is any page being looked at?
    looked_at = 0
    for second in range(until):
        working: set[str] = set()
        for at, page, kind in events:
            if at > second:
                break
            if kind in ("shown", "visible", "active"):
                working.add(page)
            elif kind in ("hidden", "idle", "closed"):
                working.discard(page)
            elif kind == "pause":
                working.clear()
        looked_at += bool(working)
    assert total == looked_at

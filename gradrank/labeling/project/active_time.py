"""How long an assessor worked on a judgment, computed from what the pages reported about themselves."""

from __future__ import annotations

from collections.abc import Iterable

IDLE_SECONDS = 300.0
"""Nothing happened for so long: nobody is working, unless there is more to read."""
WORDS_PER_SECOND = 100 / 60
"""A slow reader; two long documents may take longer than the idle time."""

_WORKING = frozenset({"shown", "visible", "active"})
_AWAY = frozenset({"hidden", "idle", "closed"})
KINDS = _WORKING | _AWAY | {"pause", "resume"}


def idle_limit(words: int, least: float = IDLE_SECONDS) -> float:
    """Seconds without a sign of life after which the assessor counts as away.

    >>> idle_limit(50), idle_limit(10_000)
    (300.0, 6000.0)
    """
    return max(least, words / WORDS_PER_SECOND)


def active_seconds(activity: Iterable[tuple[float, str, str]], until: float, limit: float) -> float:
    """Seconds of work on one judgment.

    ``activity`` holds (time, page, kind) in the order of time; kinds are those of :data:`KINDS`. Two pages that
    are open at once count once. A stretch in which nothing was heard counts up to ``limit``, for without scripts
    a page cannot tell that it was left.

    >>> day = [(0, "p", "shown"), (8, "p", "hidden"), (60, "p", "visible")]
    >>> active_seconds(day, until=65, limit=300)
    13.0
    """
    total, before = 0.0, None
    working: set[str] = set()
    for at, page, kind in [*activity, (until, "", "closed")]:
        if working and before is not None:
            total += min(max(at - before, 0.0), limit)
        before = at
        if kind in _WORKING:
            working.add(page)
        elif kind in _AWAY:
            working.discard(page)
        elif kind == "pause":
            working.clear()
    return total

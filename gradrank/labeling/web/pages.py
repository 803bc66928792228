"""The values that each page shows, for the templates."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import cache
from typing import Any

from gradrank.errors import MissingExtraError
from gradrank.labeling.judgments import GRADE_NAMES
from gradrank.labeling.project.active_time import idle_limit
from gradrank.labeling.project.judging import Answer, Desk, Work, words_of
from gradrank.labeling.strategies import Pair
from gradrank.labeling.web.documents import document_html, plain

LISTED = 200
"""Longer lists are cut: a page with a hundred thousand rows helps nobody."""

NOTICES = {
    Answer.ACCEPTED.value: "Saved.",
    Answer.REPEATED.value: "Saved.",
    Answer.STALE.value: "Not counted: that page was out of date. This is the question that is open now.",
    "undone": "The last answer was taken back.",
    "skipped": "Skipped; it comes back later.",
}
_SECONDS_A_MINUTE = 60


@dataclass(frozen=True)
class ShownDocument:
    """A document as a pane shows it."""

    title: str
    body: Any
    seen: bool


@cache
def templates() -> Any:
    """The environment of the templates; everything is escaped unless it was cleaned."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise MissingExtraError("jinja2", "labeling") from None
    return Environment(
        loader=PackageLoader("gradrank.labeling.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def work_page(desk: Desk, work: Work, notice: str) -> tuple[str, dict[str, Any]]:
    """Template and values for an assignment's page."""
    assignment, state = work.assignment, work.state
    token = secrets.token_urlsafe(16)
    guidelines = desk.store.setting("guidelines")
    values: dict[str, Any] = {
        "number": assignment.id,
        "title": plain(assignment.text)[:80],
        "text": plain(assignment.text),
        "description": plain(assignment.description),
        "guidelines": plain(guidelines),
        "token": token,
        "seq": work.seq,
        "shown": "",
        "paused": work.paused,
        "clock": not state.done and work.void is None,
        "can_undo": state.can_undo,
        "void": work.void,
        "notice": NOTICES.get(notice, ""),
        "warning": notice == Answer.STALE.value,
        "asked": state.asked,
        "expected": max(state.remaining.expected, int(state.asked == 0)),
        "progress": _progress(desk, work),
    }
    if work.void is not None or state.request is None:
        values["more"] = desk.next_of(assignment.assessor) is not None
        return "done.html", values
    if work.paused:
        return "paused.html", values
    desk.shown(assignment.id, token)
    connection = desk.store.read()
    numbers = [assignment.numbers[name] for name in work.shown]
    seen = desk.seen(assignment.id)
    values |= {
        "shown": " ".join(map(str, numbers)),
        "documents": [
            _document(connection, number, name in seen, assignment.text)
            for number, name in zip(numbers, work.shown, strict=True)
        ],
        "idle": int(idle_limit(words_of(connection, numbers))),
        "grades": GRADE_NAMES,
    }
    return ("pair.html" if isinstance(state.request, Pair) else "grade.html"), values


def _document(connection: Any, number: int, seen: bool, query: str) -> ShownDocument:
    from markupsafe import Markup

    title, body, kind = connection.execute("SELECT title, body, kind FROM document WHERE id = ?", (number,)).fetchone()
    return ShownDocument(plain(title), Markup(document_html(body, kind, query)), seen)


def _progress(desk: Desk, work: Work) -> str:
    state = work.state
    (seconds,) = (
        desk.store.read()
        .execute("SELECT coalesce(sum(active_seconds), 0) FROM event WHERE assignment = ?", (work.assignment.id,))
        .fetchone()
    )
    words = [f"{state.asked} judged"]
    if not state.done:
        left = state.remaining
        words.append(f"about {left.expected} left")
        if left.low != left.high:
            words[-1] += f" ({left.low} to {left.high})"
    if seconds >= _SECONDS_A_MINUTE:
        words.append(f"{seconds / _SECONDS_A_MINUTE:.0f} min")
    return " · ".join(words)


def home_page(desk: Desk, assessor: int) -> dict[str, Any]:
    """Values for an assessor's own page."""
    rows = list(desk.statuses(assessor))
    finished = sum(status == "done" for _number, _text, status in rows)
    items = [{"number": number, "text": plain(text), "status": status} for number, text, status in rows[:LISTED]]
    return {
        "items": items,
        "total": len(rows),
        "finished": finished,
        "open": finished < len(rows),
        "started": any(status == "open" for _number, _text, status in rows),
        "guidelines": plain(desk.store.setting("guidelines")),
    }

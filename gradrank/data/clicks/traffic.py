"""The log of a service: which documents it showed, by which model, and what was clicked, as events of JSON lines.

Two kinds of lines, in the order in which things happened:

``{"event": "shown", "id": "i1", "time": …, "qid": "7", "shown": ["a", "b"], "model": "new@2"}``
    a list as it was shown. If two rankers shared the list, ``models`` names both instead of ``model``, and ``teams``
    says for each document which of the two (0 or 1) brought it in. ``unit`` tells users or sessions apart.
``{"event": "click", "id": "i1", "time": …, "docid": "b"}``
    a click on the list of that id, minutes or hours later.

Clicks are joined to lists by id when the log is read, so that a service need not remember what it showed. A last line
without an end, as a killed machine leaves it, is left out.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradrank.data.formats.compressed import read_bytes
from gradrank.errors import DataError

SHOWN, CLICK = "shown", "click"


@dataclass
class Impression:
    """One list that was shown, with the clicks on it."""

    id: str
    qid: str
    shown: list[str]
    models: tuple[str, ...]
    """The model, or the two that shared the list."""
    teams: list[int] | None = None
    """For each document which of the two models brought it in; None if one model made the list."""
    unit: str | None = None
    """The user or session, if it was told."""
    clicks: list[str] = field(default_factory=list)
    """Clicked documents in the order of the clicks."""


@dataclass(frozen=True)
class Traffic:
    """All lists of a log."""

    impressions: list[Impression]
    clicks_without_list: int
    """Clicks whose list is not in the log."""
    repeated: int
    """Lists whose id was there before, such as a request that was sent again; the first one counts."""

    def sessions(self) -> list[tuple[str, list[str], list[str]]]:
        """Query, documents shown and documents clicked of each list.

        As :func:`~gradrank.data.clicks.click_log.click_log` takes them.
        """
        return [(item.qid, item.shown, item.clicks) for item in self.impressions]


def shown_event(impression: Impression, time: str) -> dict[str, Any]:
    """The line of a list.

    >>> shown_event(Impression("i1", "7", ["a"], ("m@1",)), "2026-01-01T00:00:00Z")["model"]
    'm@1'
    """
    event: dict[str, Any] = {
        "event": SHOWN,
        "id": impression.id,
        "time": time,
        "qid": impression.qid,
        "shown": impression.shown,
    }
    if impression.teams is None:
        event["model"] = impression.models[0]
    else:
        event |= {"models": list(impression.models), "teams": impression.teams}
    return event if impression.unit is None else {**event, "unit": impression.unit}


def click_event(id: str, docid: str, time: str) -> dict[str, Any]:
    """The line of a click."""
    return {"event": CLICK, "id": id, "time": time, "docid": docid}


def is_traffic(head: bytes) -> bool:
    """Whether a file that starts so is such a log.

    >>> is_traffic(b'{"event": "shown", "id": "1"}'), is_traffic(b'{"qid": "7"}')
    (True, False)
    """
    return head.lstrip().split(b"\n", 1)[0].replace(b" ", b"").startswith(b'{"event":"')


def read_traffic(*paths: str | Path) -> Traffic:
    """Read the log of a service, of one file or of several that were rotated; clicks are joined over all of them.

    Parameters
    ----------
    paths
        The files, plain or compressed, in any order.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "log.jsonl"
    >>> shown = shown_event(Impression("i1", "7", ["a", "b"], ("m@1",)), "t")
    >>> _ = path.write_text(json.dumps(shown) + "\\n" + json.dumps(click_event("i1", "b", "t")) + "\\n")
    >>> read_traffic(path).sessions()
    [('7', ['a', 'b'], ['b'])]
    """
    impressions: dict[str, Impression] = {}
    clicks: list[tuple[str, str, str]] = []
    repeated = 0
    for path in paths:
        for number, event in _events(path):
            kind = event.get("event")
            if kind == SHOWN:
                impression = _impression(event, path, number)
                if impressions.setdefault(impression.id, impression) is not impression:
                    repeated += 1
            elif kind == CLICK:
                clicks.append((_text(event, "time", path, number), *_click(event, path, number)))
            else:
                raise DataError(f"'event' is {kind!r}, expected 'shown' or 'click'", path=path, line=number)
    lost = 0
    # Times put the clicks of rotated files in order; where they are equal, the order of the lines stays.
    for _, id, docid in sorted(clicks, key=lambda click: click[0]) if len(paths) > 1 else clicks:
        if id in impressions:
            impressions[id].clicks.append(docid)
        else:
            lost += 1
    return Traffic(list(impressions.values()), lost, repeated)


def _events(path: str | Path) -> Sequence[tuple[int, dict[str, Any]]]:
    found = []
    for number, line in enumerate(io.BytesIO(read_bytes(path).tobytes()), 1):
        if line.isspace():
            continue
        try:
            event = json.loads(line)
        except (ValueError, RecursionError) as error:
            if not line.endswith(b"\n"):
                break
            raise DataError(f"is not JSON: {error}", path=path, line=number) from None
        if not isinstance(event, dict):
            raise DataError(f"holds {line.strip()[:60]!r}, expected an object {{…}}", path=path, line=number)
        found.append((number, event))
    return found


def _impression(event: dict[str, Any], path: str | Path, line: int) -> Impression:
    shown = event.get("shown")
    if not isinstance(shown, list) or not shown or not all(isinstance(item, str) and item for item in shown):
        raise DataError("'shown' is not a list of document ids", path=path, line=line)
    teams = event.get("teams")
    models = tuple(event["models"]) if isinstance(event.get("models"), list) else (_text(event, "model", path, line),)
    if teams is not None and (
        not isinstance(teams, list)
        or len(teams) != len(shown)
        or any(team not in (0, 1) for team in teams)
        or len(models) != 2
    ):
        raise DataError("'teams' does not say 0 or 1 for each document of two models", path=path, line=line)
    unit = event.get("unit")
    return Impression(
        _text(event, "id", path, line),
        _text(event, "qid", path, line),
        shown,
        tuple(str(model) for model in models),
        None if teams is None else [int(team) for team in teams],
        None if unit is None else str(unit),
    )


def _click(event: dict[str, Any], path: str | Path, line: int) -> tuple[str, str]:
    return _text(event, "id", path, line), _text(event, "docid", path, line)


def _text(event: dict[str, Any], key: str, path: str | Path, line: int) -> str:
    value = event.get(key)
    if not isinstance(value, str) or not value:
        raise DataError(f"{key!r} is {value!r}, expected text", path=path, line=line)
    return value

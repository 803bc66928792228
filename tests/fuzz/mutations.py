"""Changes to valid inputs, drawn from a seeded source of chance: bytes, numbers and pieces of files, values of JSON."""

from __future__ import annotations

import json
import random
import re
import struct
from collections.abc import Callable
from copy import deepcopy
from typing import Any

Mutation = Callable[[bytes, random.Random], bytes]

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_STRANGE = [
    b"-1", b"0", b"1", b"7", b"255", b"2147483647", b"-2147483648", b"4294967295", b"9223372036854775807",
    b"-9223372036854775808", b"9223372036854775808", b"99999999999", b"1e999", b"NaN", b"Infinity", b"-Infinity",
    b"null", b"[]", b"{}", b'"x"', b"0.5", b"-0.0", b"1e-320", b"1e308", b"9" * 400,
]  # fmt: skip
_WORDS = [
    struct.pack(">i", -1), struct.pack(">q", 1 << 62), struct.pack("<q", -(1 << 62)), struct.pack("<i", 1 << 30),
    struct.pack("<f", float("nan")), struct.pack("<d", float("inf")), b"\x00" * 8, b"\xff" * 8,
]  # fmt: skip
_VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 7, 0.5, -0.0, 1e308, -1e308, 5e-324, 2**31, -(2**31), 2**32 + 1, 2**53, 2**62,
    2**63 - 1, -(2**63), 2**64, 10**11, 10**30, float("nan"), float("inf"), float("-inf"), "", "x", "1", "nan",
    "é\ud800", [], {}, [[]], [0], {"a": 0}, [None, True, "x", 0.5], [0] * 40,
]  # fmt: skip


def changed(content: bytes, chance: random.Random) -> bytes:
    """The content with one to three changes: numbers, bytes, pieces, the end.

    >>> changed(b"1 qid:7 1:0.5", random.Random(1))
    b'1 qid:7 7:0.5'
    """
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        content = _changed_once(content, chance)
    return content


def _changed_once(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content) or 1)
    way = chance.randrange(10)
    numbers = list(_NUMBER.finditer(content)) if way < 4 else []
    if numbers and way < 3:
        found = chance.choice(numbers)
        return content[: found.start()] + chance.choice(_STRANGE) + content[found.end() :]
    if len(numbers) > 1:
        one, other = sorted(chance.sample(numbers, 2), key=lambda item: item.start())
        return b"".join(
            (content[: one.start()], other[0], content[one.end() : other.start()], one[0], content[other.end() :])
        )
    if way == 4:
        return content[:at] + bytes([chance.randrange(256)]) + content[at + 1 :]
    if way == 5:
        return content[:at] + content[at + chance.randrange(1, 40) :]
    if way == 6:
        word = chance.choice(_WORDS)
        return content[:at] + word + content[at + len(word) :]
    if way == 7:
        return (
            content[:at] + bytes([content[at] ^ (1 << chance.randrange(8))]) + content[at + 1 :] if content else b"\0"
        )
    if way == 8 and chance.random() < 0.3:
        return content[:at]
    start = chance.randrange(len(content) or 1)
    return content[:at] + content[start : start + chance.randrange(60)] + content[at:]


def changed_json(content: bytes, chance: random.Random) -> bytes:
    """JSON with one to three values replaced by others, taken out, doubled or exchanged; still JSON.

    >>> changed_json(b'{"a": [1, 2]}', random.Random(3))
    b'{"a": [1, 0]}'
    """
    value = [json.loads(content)]
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        _change_value(value, chance)
    return json.dumps(value[0]).encode() if value else b""


def either(*mutations: Mutation) -> Mutation:
    """One of several ways to change an input, drawn each time."""
    return lambda content, chance: chance.choice(mutations)(content, chance)


def _change_value(root: list[Any], chance: random.Random) -> None:
    """Change one value somewhere in a tree of lists and mappings; deep places are as likely as high ones."""
    holder: Any = root
    key: Any = 0
    while holder and isinstance(holder[key], list | dict) and holder[key] and chance.random() < 0.85:
        holder = holder[key]
        key = chance.choice(list(holder)) if isinstance(holder, dict) else chance.randrange(len(holder))
    if not holder:
        return
    way = chance.randrange(10)
    here = holder[key]
    if way < 5 or (way > 7 and not isinstance(here, int | float)):
        holder[key] = deepcopy(chance.choice(_VALUES))  # later changes must not reach the list of values
    elif way == 5:
        del holder[key]
    elif way == 6 and isinstance(holder, list):
        holder.insert(key, here)
    elif isinstance(holder, list) and way == 7:
        other = chance.randrange(len(holder))
        holder[key], holder[other] = holder[other], here
    elif isinstance(here, int | float):
        holder[key] = here + chance.choice([-2, -1, 1, 2, 10, 0.5])

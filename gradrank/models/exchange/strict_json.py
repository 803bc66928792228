"""JSON of model files: a key that is given twice, or nesting without end, is an error and no guess."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from gradrank.errors import ModelError


def parse_json(content: bytes | str) -> Any:
    """The value that a JSON text holds.

    >>> parse_json('{"a": 1, "a": 2}')
    Traceback (most recent call last):
        ...
    gradrank.errors.ModelError: gives 'a' twice in one JSON object
    """
    try:
        text = content.decode("utf-8") if isinstance(content, bytes) else content
        return json.loads(text, object_pairs_hook=_once)
    except UnicodeDecodeError:
        raise ModelError("is not a model: it is not UTF-8 text") from None
    except RecursionError:
        raise ModelError("is not a model: its JSON is nested too deeply") from None
    except ModelError:
        raise
    except ValueError:
        raise ModelError("is not a whole model: its JSON breaks off or is damaged") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ModelError(f"gives {twice[:40]!r} twice in one JSON object")
    return value

"""Keys that callers must show; kept as digests and compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

from gradrank.errors import DataError

VARIABLE = "GRADRANK_API_KEYS"
_SHORTEST = 16


class ApiKeys:
    """The keys of a service; without any, everybody is let in.

    >>> keys = ApiKeys(["0123456789abcdef"])
    >>> keys.admit("0123456789abcdef"), keys.admit("0123456789abcdeX"), ApiKeys([]).admit("")
    (True, False, True)
    """

    def __init__(self, keys: Iterable[str]) -> None:
        self._digests = [_digest(key) for key in keys]

    def __len__(self) -> int:
        return len(self._digests)

    def admit(self, shown: str) -> bool:
        """Whether a key is one of them; takes as long for a wrong one as for a right one."""
        if not self._digests:
            return True
        found = _digest(shown)
        right = False
        for digest in self._digests:
            right |= hmac.compare_digest(digest, found)
        return right


def load_keys(path: Path | None, say: Callable[[str], None] = lambda text: None) -> ApiKeys:
    """Keys from a file, one per line (``#`` begins a comment), or from the environment.

    Parameters
    ----------
    path
        The file; None = the variable ``GRADRANK_API_KEYS``, keys apart by white space or commas.
    say
        Called with a warning if others may read the file.
    """
    if path is None:
        return ApiKeys(_checked(os.environ.get(VARIABLE, "").replace(",", " ").split(), VARIABLE))
    try:
        text = path.read_text(encoding="utf-8")
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise DataError("there is no such file", path=path) from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8 text'}", path=path) from None
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    keys = _checked([line for line in lines if line], str(path))
    if not keys:
        raise DataError("holds no key, expected one per line", path=path)
    if mode & (stat.S_IRGRP | stat.S_IROTH):
        say(f"WARNING: other users of this machine can read {path}; chmod 600 keeps it private")
    return ApiKeys(keys)


def _checked(keys: list[str], where: str) -> list[str]:
    for number, key in enumerate(keys, 1):
        if len(key) < _SHORTEST or not key.isascii() or not key.isprintable():
            # The key itself is not shown: messages end in logs.
            raise DataError(f"{where}: key {number} is not at least {_SHORTEST} printable ASCII characters")
    return keys


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()

"""Which model answers a request: the one it names, or one by the shares of an A/B test, or two that share the list."""

from __future__ import annotations

import hashlib

from gradrank.serve.settings import Settings


def chosen_models(settings: Settings, default: str, named: str | None, unit: str) -> tuple[str, ...]:
    """Names of one model, or of two to interleave.

    Parameters
    ----------
    settings
        Shares and interleaving.
    default
        The model if nothing else decides.
    named
        The model that the request names.
    unit
        The user or session, so that each gets the same model every time; or the request's own id.

    >>> from gradrank.serve.settings import parse_sources
    >>> settings = Settings(parse_sources(["old=a.json", "new=b.json"]), shares={"old": 0.5, "new": 0.5})
    >>> chosen_models(settings, "old", None, "anna") == chosen_models(settings, "old", None, "anna")
    True
    """
    if named is not None:
        return (named,)
    if settings.interleave is not None:
        return settings.interleave
    if not settings.shares:
        return (default,)
    point = unit_interval(settings.salt, unit)
    for name, share in settings.shares.items():
        point -= share
        if point < 0.0 and share > 0.0:
            return (name,)
    # Shares may add up to a little less than 1.
    return (next(name for name, share in reversed(settings.shares.items()) if share > 0.0),)


def unit_interval(salt: str, unit: str) -> float:
    """A number of [0, 1) that depends on the unit and the salt alone, on any machine.

    >>> unit_interval("s", "anna") == unit_interval("s", "anna"), 0 <= unit_interval("s", "bert") < 1
    (True, True)
    """
    return int.from_bytes(_digest(salt, unit)[:6], "big") / 2.0**48


def unit_label(salt: str, unit: str) -> str:
    """A name of a unit for logs that does not tell the unit itself."""
    return _digest(f"unit {salt}", unit)[:8].hex()


def _digest(salt: str, unit: str) -> bytes:
    return hashlib.blake2b(f"{salt}\0{unit}".encode("utf-8", "surrogatepass"), digest_size=16).digest()

"""A request that cannot be answered."""

from __future__ import annotations


class RequestError(Exception):
    """What is wrong with a request, in one sentence, and the HTTP status that says whose fault it is.

    >>> RequestError("'k' is 0, expected 1 or more").status
    400
    """

    def __init__(self, sentence: str, status: int = 400, reason: str = "request") -> None:
        super().__init__(sentence)
        self.status = status
        self.reason = reason
        """A word for the metrics: which kind of fault."""


def shown(value: object, longest: int = 60) -> str:
    """A value of a request for a message, shortened.

    >>> shown("x" * 100, 5)
    "'xxxx…"
    """
    text = repr(value)
    return text if len(text) <= longest else text[:longest] + "…"

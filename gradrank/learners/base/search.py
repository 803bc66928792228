"""Where a search for parameters looks: a range of numbers, some values, or the number of steps that a curve tells.

A parameter's declaration says it once (``search=Range(4, 128, log=True)``); ``gradrank tune`` and the documentation
read it there.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from gradrank.errors import TrainingError

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_RANGE = re.compile(rf"({_NUMBER})\.\.({_NUMBER})(:log)?")


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, whole ones if both are; on a logarithmic scale if ``log``.

    >>> str(Range(4, 128, log=True)), Range(4, 128).whole, Range(0.5, 1).whole
    ('4..128:log', True, False)
    """

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise TrainingError(f"a range is {self}, expected its first number below its second")
        if self.log and self.low <= 0:
            raise TrainingError(f"a range is {self}, expected a positive start on a logarithmic scale")

    def __str__(self) -> str:
        return f"{_spelt(self.low)}..{_spelt(self.high)}{':log' if self.log else ''}"

    @property
    def whole(self) -> bool:
        """Whether it has whole numbers only."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def nearest(self, value: Any) -> float:
        """The number of the range that is nearest to a value; its middle if the value is no number.

        >>> Range(4, 64, log=True).nearest(None), Range(4, 64).nearest(1000), Range(0.5, 1.0).nearest(0.7)
        (16, 64, 0.7)
        """
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            value = math.sqrt(self.low * self.high) if self.log else (self.low + self.high) / 2
        inside = min(max(value, self.low), self.high)
        return round(inside) if self.whole else float(inside)

    def rounded(self, value: float) -> float:
        """A number of the range in at most four digits, so that it can be read and typed.

        >>> Range(0.02, 0.3, log=True).rounded(0.0637281)
        0.06373
        """
        return int(value) if self.whole else float(self.nearest(float(f"{value:.4g}")))

    def ends(self) -> tuple[Any, ...]:
        """What must be allowed for the whole range to be."""
        return self.low, self.high


@dataclass(frozen=True)
class Options:
    """Some values to choose from.

    >>> str(Options(("relu", "tanh")))
    'relu|tanh'
    """

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        if len(set(map(repr, self.values))) < 2 or len(set(map(repr, self.values))) < len(self.values):
            raise TrainingError(f"values to search are {self}, expected two or more that differ")

    def __str__(self) -> str:
        return "|".join(map(_spelt, self.values))

    def nearest(self, value: Any) -> Any:
        """The value itself if it is one of them, else the first."""
        return value if value in self.values else self.values[0]

    def rounded(self, value: Any) -> Any:
        """The value itself."""
        return value

    def ends(self) -> tuple[Any, ...]:
        """What must be allowed for all of them to be."""
        return self.values


@dataclass(frozen=True)
class Steps:
    """A number of steps that is not guessed: training goes on until left-out queries gain no more."""

    most: int
    """Most steps to make."""
    patience: int
    """Stop after so many without a new best."""

    def __str__(self) -> str:
        return f"by watching: up to {self.most:,}, until {self.patience:,} bring nothing new"


Searched = Range | Options
"""Where the value of one parameter is looked for."""


def parse_search(text: str) -> Searched:
    """A range or values as they are typed: ``4..128``, ``0.01..0.3:log`` or ``relu|tanh``.

    >>> parse_search("0.01..0.3:log"), parse_search("10|64,32")
    (Range(low=0.01, high=0.3, log=True), Options(values=(10, '64,32')))
    """
    found = _RANGE.fullmatch(text.strip())
    if found is not None:
        low, high = (parse_value(end) for end in found.group(1, 2))
        return Range(low, high, log=found[3] is not None)
    values = tuple(parse_value(part.strip()) for part in text.split("|"))
    if len(values) < 2 or "" in values:
        raise TrainingError(f"{text!r} is nothing to search, expected LOW..HIGH, LOW..HIGH:log or A|B|C")
    return Options(values)


def parse_value(text: str) -> Any:
    """A value as it is typed: a whole number, a number, true, false, none, or the text itself.

    >>> [parse_value(text) for text in ("4", "0.5", "true", "none", "relu")]
    [4, 0.5, True, None, 'relu']
    """
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _spelt(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)

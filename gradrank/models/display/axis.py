"""From numbers to places on a chart: percent of its width or height, and round numbers to label."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

_ROUND_STEPS = (1.0, 2.0, 5.0, 10.0)
# Steps are sums of floats; this keeps the last tick of an axis that ends on a round number.
_SLACK = 1e-9


@dataclass(frozen=True)
class Axis:
    """Numbers from ``low`` to ``high`` laid out from 0 to 100 percent.

    >>> axis = Axis(-0.1, 0.3)
    >>> axis.at(0.0), axis.ticks(5)
    (25.0, ['-0.1', '0.0', '0.1', '0.2', '0.3'])
    """

    low: float
    high: float

    @classmethod
    def around(cls, values: Iterable[float], *, zero: bool = False, margin: float = 0.05) -> Axis:
        """An axis that holds all finite values, with a margin; ``zero`` puts 0 on it as well."""
        held = [float(value) for value in values if isfinite(value)] + ([0.0] if zero else [])
        if not held:
            return cls(0.0, 1.0)
        low, high = min(held), max(held)
        # A single value gets room that suits its size.
        room = margin * (high - low) or 0.1 * abs(high) or 1.0
        return cls(low - room, high + room)

    def at(self, value: float) -> float:
        """Place of a value in percent."""
        return round(100.0 * (value - self.low) / (self.high - self.low), 3)

    def steps(self, most: int) -> list[float]:
        """At most so many round numbers on the axis."""
        step = _round_step((self.high - self.low) / (most + 1))
        while floor(self.high / step + _SLACK) - ceil(self.low / step - _SLACK) + 1 > most:
            step = _round_step(step * 1.5)
        first, last = ceil(self.low / step - _SLACK), floor(self.high / step + _SLACK)
        return [count * step for count in range(first, last + 1)]

    def ticks(self, most: int) -> list[str]:
        """The same numbers as text, all with as many digits as the steps need."""
        steps = self.steps(most)
        step = steps[1] - steps[0] if len(steps) > 1 else max(abs(self.high), abs(self.low))
        digits = max(0, -floor(log10(step) + _SLACK))
        return [f"{value if round(value, digits) else 0.0:.{digits}f}" for value in steps]

    def labels(self, most: int) -> list[tuple[float, str]]:
        """Place and text of each tick."""
        return [(self.at(value), text) for value, text in zip(self.steps(most), self.ticks(most), strict=True)]


def _round_step(size: float) -> float:
    power = 10.0 ** floor(log10(size))
    return next(step * power for step in _ROUND_STEPS if step * power >= size * (1 - _SLACK))

"""One judgment of an assessor, and which of many judgments stand after undo."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from gradrank.errors import StaleJudgment

GRADE_NAMES = ("bad", "fair", "good", "excellent", "perfect")
"""The five grades of the absolute tool, from 0 up (Niu et al. 2012)."""


class Verdict(StrEnum):
    """What can be answered to "which of the two is more relevant?" and to "which grade?"; undo and skip besides.

    >>> Verdict("a_bad") is Verdict.FIRST_BAD
    True
    """

    FIRST = "a"
    """The first document is more relevant."""
    SECOND = "b"
    """The second document is more relevant."""
    TIE = "tie"
    """Neither is more relevant."""
    FIRST_BAD = "a_bad"
    """The first document is useless (or cannot be read) and leaves the race; nothing is said of the second."""
    SECOND_BAD = "b_bad"
    """The second document leaves the race; nothing is said of the first."""
    BOTH_BAD = "both_bad"
    """Both documents leave the race."""
    SKIP = "skip"
    """Not now: the question comes back after the others that can be asked."""
    UNDO = "undo"
    """Takes back the last judgment that still stands, a skip included."""
    GRADE = "grade"
    """The document has the grade given, 0 (bad) to 4 (perfect)."""


PAIR_VERDICTS = frozenset(Verdict) - {Verdict.GRADE, Verdict.UNDO}
"""What can be said of a pair."""
SINGLE_VERDICTS = frozenset({Verdict.GRADE, Verdict.FIRST_BAD, Verdict.SKIP})
"""What can be said of a single document."""
PREFERENCES = frozenset({Verdict.FIRST, Verdict.SECOND, Verdict.TIE})
"""The verdicts that order two documents."""


@dataclass(frozen=True, slots=True)
class Judgment:
    """One answer. Documents stand in the order in which the strategy asked, wherever they were on the screen.

    >>> Judgment(Verdict.FIRST, "d1", "d2").effective
    True
    >>> Judgment(Verdict.UNDO).effective
    False
    """

    verdict: Verdict
    first: str = ""
    second: str | None = None
    grade: int | None = None

    @property
    def effective(self) -> bool:
        """Whether it is an answer: neither a skip nor an undo."""
        return self.verdict is not Verdict.SKIP and self.verdict is not Verdict.UNDO


def standing(history: Iterable[Judgment]) -> list[Judgment]:
    """The judgments (and skips) that no undo has taken back, in order.

    >>> a, b = Judgment(Verdict.FIRST, "x", "y"), Judgment(Verdict.SKIP, "x", "z")
    >>> standing([a, b, Judgment(Verdict.UNDO)]) == [a]
    True
    """
    kept: list[Judgment] = []
    for judgment in history:
        if judgment.verdict is not Verdict.UNDO:
            kept.append(judgment)
        elif kept:
            kept.pop()
        else:
            raise StaleJudgment("there is no judgment left to undo")
    return kept

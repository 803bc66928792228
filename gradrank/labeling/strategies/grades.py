"""``grades``: one of five grades for each document (tool T2 of Niu et al. 2012)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradrank.labeling.judgments import GRADE_NAMES
from gradrank.labeling.records import Tool
from gradrank.labeling.strategies.base import Estimate, Race, Request, Single, Strategy


class GradesRace(Race):
    """Each document once, in random order; grade 0 is "bad" and keeps a document out of the top.

    >>> race = GradesRace(["d1", "d2", "d3"], 1)
    >>> for document, grade in [("d1", 2), ("d2", 4), ("d3", 4)]:
    ...     race.answer(Single(document), grade)
    >>> race.top()
    (('d2', 'd3'),)
    """

    def __init__(self, order: Sequence[str], k: int) -> None:
        # A dict for its order and its cheap removal.
        self._left = dict.fromkeys(order)
        self._k = k
        self._grades: dict[str, int] = {}

    def requests(self) -> Iterator[Request]:
        return (Single(document) for document in self._left)

    def answer(self, request: Request, value: int) -> None:
        (document,) = request.documents
        del self._left[document]
        self._grades[document] = value

    def remove(self, documents: Sequence[str]) -> None:
        for document in documents:
            del self._left[document]

    def top(self) -> tuple[tuple[str, ...], ...]:
        groups: list[tuple[str, ...]] = []
        if self._left:
            return ()
        for grade in range(len(GRADE_NAMES) - 1, 0, -1):
            if sum(map(len, groups)) >= self._k:
                break
            if group := tuple(document for document, given in self._grades.items() if given == grade):
                groups.append(group)
        return tuple(groups)

    def remaining(self) -> Estimate:
        return Estimate(len(self._left), len(self._left), len(self._left))

    def grades(self) -> tuple[tuple[str, int], ...]:
        return tuple(self._grades.items())


GRADES = Strategy("grades", "Five grades, one document at a time", Tool.GRADES, GradesRace, "O(n)")

"""What earlier answers say about pairs of documents that were not asked."""

from __future__ import annotations


class KnownRelations:
    """The answers so far and what follows from them: preferences and ties are both taken for transitive.

    Tied documents are one class; a class remembers the classes directly above it. Whether one document is above
    another is found by walking up: documents at the top have little above them, and those that were dropped are
    not asked about again, so the walk is short.

    >>> known = KnownRelations()
    >>> known.add("a", "b", 1)
    >>> known.add("b", "c", 0)
    >>> known.relation("a", "c"), known.relation("c", "a"), known.relation("a", "d")
    (1, -1, None)
    """

    def __init__(self) -> None:
        self._direct: dict[tuple[str, str], int] = {}
        self._class_of: dict[str, str] = {}
        self._members: dict[str, list[str]] = {}
        self._above: dict[str, set[str]] = {}

    def add(self, first: str, second: str, value: int) -> None:
        """Remember an answer: 1 if the first is better, −1 if the second is, 0 for a tie."""
        self._direct[first, second], self._direct[second, first] = value, -value
        if value == 0:
            self._merge(self._find(first), self._find(second))
        else:
            better, worse = (first, second) if value > 0 else (second, first)
            self._above.setdefault(self._find(worse), set()).add(better)

    def relation(self, first: str, second: str) -> int | None:
        """1, 0 or −1 as the first is better than, as good as, or worse than the second; None if that is open."""
        # What was said counts for more than what follows; they differ when answers contradict each other.
        said = self._direct.get((first, second))
        if said is not None:
            return said
        mine, other = self._find(first), self._find(second)
        if mine == other:
            return 0
        if self._is_above(mine, other):
            return 1
        return -1 if self._is_above(other, mine) else None

    def tied_with(self, document: str) -> list[str]:
        """All documents known to be as good, itself included."""
        return self._members.get(self._find(document), [document])

    def _find(self, document: str) -> str:
        return self._class_of.get(document, document)

    def _merge(self, kept: str, gone: str) -> None:
        if kept == gone:
            return
        members = self._members.setdefault(kept, [kept])
        joining = self._members.pop(gone, [gone])
        members += joining
        for document in joining:
            self._class_of[document] = kept
        if above := self._above.pop(gone, None):
            self._above.setdefault(kept, set()).update(above)

    def _is_above(self, upper: str, lower: str) -> bool:
        seen, waiting = {lower}, [lower]
        while waiting:
            for document in self._above.get(waiting.pop(), ()):
                found = self._find(document)
                if found == upper:
                    return True
                if found not in seen:
                    seen.add(found)
                    waiting.append(found)
        return False

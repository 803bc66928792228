"""``heap`` and ``heap-infer``: a min-heap of the k best so far (Niu et al. 2012, Algorithm 1).

1. Random k documents become a min-heap: the least relevant is the root (Floyd's way, bottom up, which is
   the O(k) that the paper counts).
2. Each remaining document meets the root, takes its place if it is more relevant, and the heap is repaired.
3. The heap is sorted by taking the root away again and again.

A tie moves nothing: the newcomer is dropped. So exactly k documents stay, and which of equally good ones
at the border they are is chance; the dropped ones are listed as ``tied_out``. O(n log k) judgments; at n = 50 and
k = 10 it is 151 on average for a strict order (the paper's assessors, with ties, took 142.76).
``heap-infer`` is the same but never asks what was answered or follows from answers: 129 on average.
"""

from __future__ import annotations

from collections.abc import Generator
from math import exp, floor, log2

from gradrank.labeling.records import Tool
from gradrank.labeling.strategies.base import Estimate, Strategy
from gradrank.labeling.strategies.serial import Algorithm, Answer, Question, SerialRace


class HeapRace(SerialRace):
    """Algorithm 1.

    >>> from gradrank.labeling.strategies.base import Pair
    >>> race = HeapRace(["d1", "d2"], 1)
    >>> list(race.requests())
    [Pair(first='d2', second='d1')]
    >>> race.answer(Pair("d2", "d1"), 1)
    >>> race.top()
    (('d2',),)
    """

    infer = False

    def run(self, order: list[str]) -> Algorithm:
        heap, rest = order[: self.k], order[self.k :]
        self._heap, self._rest = heap, rest
        self._to_build = len(heap) // 2
        while self._to_build:
            yield from _repair(heap, self._to_build - 1)
            self._to_build -= 1
        while rest:
            answer = yield Question(rest, heap[0], newcomers=True)
            if answer is None:
                continue
            newcomer, value = answer
            rest.remove(newcomer)
            if value > 0:
                heap[0] = newcomer
                yield from _repair(heap, 0)
        worst_first = []
        while heap:
            worst_first.append(heap[0])
            last = heap.pop()
            if heap:
                heap[0] = last
                yield from _repair(heap, 0)
        return self.grouped(worst_first[::-1])

    def tied_out(self) -> tuple[str, ...]:
        if not self._groups:
            return ()
        inside = {document for group in self._groups for document in group}
        racing = set(self._order)
        tied = self._all_known().tied_with(self._groups[-1][-1])
        return tuple(document for document in tied if document not in inside and document in racing)

    def remaining(self) -> Estimate:
        question = self._question
        if question is None:
            return Estimate(0, 0, 0)
        size, rest = len(self._heap), len(self._rest)
        depth = 2 * _levels(size, 0)
        # A repair asks at most two questions per level.
        build = sum(2 * _levels(size, root) for root in range(self._to_build))
        sort = sum(2 * _levels(left, 0) for left in range(1, size))
        repairing = not question.newcomers and not self._to_build
        high = build + rest * (1 + depth) + sort + repairing * depth
        # In random order the i-th document is among the k best so far with chance k/i.
        entered = len(self._order) - rest
        repairs = sum(self.k / (entered + 1 + later) for later in range(rest)) + 0.5 * repairing
        expected = rest + (0.85 * build + 0.75 * repairs * depth + 0.85 * sort) * self.share_asked()
        low = rest + (not question.newcomers) + self.least_to_sort(size)
        return Estimate(min(low, high), max(low, min(high, round(expected))), high)

    def share_asked(self) -> float:
        """Expected share of the questions of a strict order that ties leave over (fitted to simulations)."""
        return max(0.1, 1 - 2 * self.tie_share() ** 2)

    def least_to_sort(self, size: int) -> int:
        """Fewest questions that sorting a heap takes: one for each root taken away, until two are left."""
        return max(0, size - 2)


class InferringHeapRace(HeapRace):
    """Algorithm 1 without questions whose answer is known or follows.

    >>> InferringHeapRace(["d1"], 1).top()
    (('d1',),)
    """

    infer = True

    def share_asked(self) -> float:
        return 0.81 * exp(-3 * self.tie_share())

    def least_to_sort(self, size: int) -> int:
        return 0


def _levels(size: int, root: int) -> int:
    """Levels below a place of a heap."""
    return floor(log2(size / (root + 1))) if size > root else 0


def _repair(heap: list[str], place: int) -> Generator[Question, Answer | None, None]:
    """Let the document at a place sink below all that are less relevant."""
    while (child := 2 * place + 1) < len(heap):
        if child + 1 < len(heap) and (yield from _less(heap[child + 1], heap[child])):
            child += 1
        if not (yield from _less(heap[child], heap[place])):
            return
        heap[place], heap[child] = heap[child], heap[place]
        place = child


def _less(first: str, second: str) -> Generator[Question, Answer | None, bool]:
    answer = yield Question([first], second)
    assert answer is not None
    return answer[1] < 0


HEAP = Strategy("heap", "Heap, exactly as Algorithm 1 of Niu et al. 2012", Tool.PREFERENCES, HeapRace, "O(n log k)")
HEAP_INFER = Strategy(
    "heap-infer",
    "Heap that never asks what it was told or can infer",
    Tool.PREFERENCES,
    InferringHeapRace,
    "O(n log k)",
)

"""How far assessors agree on which of two documents is better (Niu et al. 2012, tables 2 and 3).

Every finished outcome orders all documents of its query in levels, so it says of each pair of documents (A, B)
one of A≻B, A~B, A≺B. For the preference tool the levels are the tie groups of the top k, and all documents
outside it are one last level: that is the top-k ground truth. The paper does not say how it counted, but its
figures imply 63 to 64 % of ties, which is the share 40·39 / (50·49) of pairs outside the top 10 of 50. For the
absolute tool the levels are the grades. Two assessors agree on a pair if they say the same.
Three scopes of pairs are counted:

- ``all``: every pair, as the paper seems to count. Pairs outside both top k's count as agreement on a tie.
- ``top``: pairs with a document in either assessor's top.
- ``judged``: pairs that both assessors were shown, by what they answered; for grades, all graded pairs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import nan
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import DataError
from gradrank.labeling.analysis.statistics import (
    ChiSquare,
    Permutation,
    chi_square,
    clustered_permutation,
    cohen_kappa,
    coincidences,
    krippendorff_alpha,
)
from gradrank.labeling.judgments import GRADE_NAMES, PREFERENCES, Verdict
from gradrank.labeling.records import Outcome, Record, Tool

Scope = Literal["all", "top", "judged"]
SCOPES: tuple[Scope, ...] = ("all", "top", "judged")
RELATIONS = ("A≻B", "A~B", "A≺B")

Table = NDArray[np.int64]


@dataclass
class Agreement:
    """Counts of what two assessors said of the same pairs with one tool.

    ``counts[i, j]`` is the number of pairs of which the assessor whose name sorts first said relation i and the
    other one relation j, summed over all pairs of assessors.
    """

    tool: Tool
    scope: Scope
    counts: Table = field(default_factory=lambda: np.zeros((3, 3), dtype=np.int64))
    by_query: dict[str, Table] = field(default_factory=dict)
    by_assessors: dict[tuple[str, str], Table] = field(default_factory=dict)
    coincidence: NDArray[np.float64] = field(default_factory=lambda: np.zeros((3, 3)))

    def add(self, query: str, assessors: tuple[str, str], table: Table) -> None:
        """Count one query of one pair of assessors."""
        self.counts += table
        self.by_query[query] = self.by_query.get(query, 0) + table
        self.by_assessors[assessors] = self.by_assessors.get(assessors, 0) + table

    @property
    def pairs(self) -> int:
        """Pairs counted."""
        return int(self.counts.sum())

    def rows(self) -> NDArray[np.float64]:
        """P(one assessor says the column | another said the row); NaN where nobody said the row.

        Either assessor may be "another", so both directions are counted.
        """
        both = self.counts + self.counts.T
        sums = both.sum(axis=1, keepdims=True)
        rows = np.full((3, 3), nan)
        np.divide(both, sums, out=rows, where=sums > 0)
        return rows

    def overall(self, *, ties: bool = True) -> float:
        """Share of pairs agreed on; without ties, among the pairs that neither calls a tie."""
        agreed, disagreed = agreed_and_not(self.counts, ties=ties)
        return agreed / (agreed + disagreed) if agreed + disagreed else nan

    def kappa(self) -> float:
        """Cohen's κ, averaged over pairs of assessors with their numbers of pairs as weights."""
        values = [(cohen_kappa(table), int(table.sum())) for table in self.by_assessors.values()]
        values = [(kappa, weight) for kappa, weight in values if not np.isnan(kappa)]
        total = sum(weight for _, weight in values)
        return sum(kappa * weight for kappa, weight in values) / total if total else nan

    def alpha(self, level: Literal["nominal", "ordinal"] = "nominal") -> float:
        """Krippendorff's α of the relations, over all assessors of a query at once."""
        return krippendorff_alpha(self.coincidence, level)


def agreed_and_not(table: Table, *, ties: bool = True) -> tuple[int, int]:
    """Pairs agreed and not agreed on in a 3 × 3 table.

    >>> table = np.array([[5, 2, 1], [0, 7, 0], [1, 1, 3]])
    >>> agreed_and_not(table), agreed_and_not(table, ties=False)
    ((15, 5), (8, 2))
    """
    kept = table if ties else table[np.ix_([0, 2], [0, 2])]
    agreed = int(np.trace(kept))
    return agreed, int(kept.sum()) - agreed


def agreement(
    tool: Tool, outcomes: Iterable[Outcome], records: Iterable[Record] = (), scope: Scope = "all"
) -> Agreement:
    """Count the agreement on all queries that two or more assessors finished with a tool.

    Parameters
    ----------
    tool
        whose outcomes count
    outcomes
        outcomes of all assessors
    records
        judgments that stand; needed for the scope ``judged`` only
    scope
        which pairs of documents count: ``all``, ``top`` or ``judged``

    Examples
    --------
    >>> ann = Outcome("ann", "q", Tool.PREFERENCES, "heap", 2, ("a", "b", "c"), (("a",), ("b",)))
    >>> bob = Outcome("bob", "q", Tool.PREFERENCES, "heap", 2, ("a", "b", "c"), (("a",), ("c",)))
    >>> agreement(Tool.PREFERENCES, [ann, bob]).counts.tolist()
    [[2, 0, 1], [0, 0, 0], [0, 0, 0]]
    """
    if scope not in SCOPES:
        raise DataError(f"scope is {scope!r}, expected one of {', '.join(SCOPES)}")
    result = Agreement(tool, scope)
    said = _direct_answers(records) if scope == "judged" and tool is Tool.PREFERENCES else None
    for query, finished in _by_query(tool, outcomes).items():
        shared = set.intersection(*(set(outcome.documents) for outcome in finished))
        documents = [document for document in finished[0].documents if document in shared]
        relations = np.stack(
            [
                _relations(outcome, documents) if said is None else _answered(said[outcome.assessor, query], documents)
                for outcome in finished
            ]
        )
        reach = np.stack([_in_top(outcome, documents) for outcome in finished]) if scope == "top" else None
        for one, other in combinations(range(len(finished)), 2):
            counted = (relations[one] >= 0) & (relations[other] >= 0)
            if reach is not None:
                counted &= reach[one] | reach[other]
            cells = 3 * relations[one][counted].astype(np.int64) + relations[other][counted]
            table = np.bincount(cells, minlength=9).reshape(3, 3)
            if table.any():
                result.add(query, (finished[one].assessor, finished[other].assessor), table)
        units = np.stack([(relations == value).sum(axis=0) for value in range(3)], axis=1)
        if reach is not None:
            units = units[reach.any(axis=0)]
        result.coincidence += coincidences(units)
    return result


@dataclass(frozen=True)
class ToolComparison:
    """Whether the two tools differ in agreement, once over pairs and once over queries."""

    scope: Scope
    ties: bool
    chi_square: ChiSquare
    permutation: Permutation


def compare_tools(
    first: Agreement, second: Agreement, *, ties: bool = True, permutations: int = 2000, seed: int = 0
) -> ToolComparison:
    """Test that two tools have the same rate of agreement.

    >>> from gradrank.labeling.analysis.simulate import simulate_study
    >>> study = simulate_study(queries=4, n=12, k=4, seed=1)
    >>> found = [agreement(tool, study.outcomes) for tool in Tool]
    >>> compare_tools(*found).permutation.queries
    4
    """
    tables = [first.by_query, second.by_query]
    queries = sorted({*tables[0], *tables[1]})
    none = np.zeros((3, 3), dtype=np.int64)
    each = np.array(
        [[agreed_and_not(table.get(query, none), ties=ties) for table in tables] for query in queries], dtype=np.int64
    ).reshape(len(queries), 2, 2)
    sums = each.sum(axis=0)
    return ToolComparison(
        first.scope,
        ties,
        chi_square((int(sums[0, 0]), int(sums[1, 0])), (int(sums[0, 1]), int(sums[1, 1]))),
        clustered_permutation(each[:, :, 0], each.sum(axis=2), permutations=permutations, seed=seed),
    )


@dataclass(frozen=True)
class GradeAgreement:
    """Agreement on the grades themselves."""

    alpha: float
    """Krippendorff's α, ordinal."""
    kappa: float
    """Cohen's κ with quadratic weights, over all pairs of assessors at once."""
    counts: Table
    """5 × 5, both directions of each pair of assessors."""


def grade_agreement(outcomes: Iterable[Outcome]) -> GradeAgreement:
    """Agreement on grades, document by document.

    >>> grades = {"documents": ("a", "b"), "top": (), "tool": Tool.GRADES, "strategy": "grades", "k": 1}
    >>> ann = Outcome("ann", "q", grades=(("a", 4), ("b", 1)), **grades)
    >>> bob = Outcome("bob", "q", grades=(("a", 4), ("b", 2)), **grades)
    >>> round(grade_agreement([ann, bob]).kappa, 3)
    0.852
    """
    levels = len(GRADE_NAMES)
    counts = np.zeros((levels, levels), dtype=np.int64)
    coincidence = np.zeros((levels, levels))
    for finished in _by_query(Tool.GRADES, outcomes).values():
        given = [dict(outcome.grades) for outcome in finished]
        units = np.zeros((len(finished[0].documents), levels), dtype=np.int64)
        for row, document in enumerate(finished[0].documents):
            values = [grades[document] for grades in given if document in grades]
            for value in values:
                units[row, value] += 1
            for one, other in combinations(values, 2):
                counts[one, other] += 1
                counts[other, one] += 1
        coincidence += coincidences(units)
    return GradeAgreement(krippendorff_alpha(coincidence, "ordinal"), cohen_kappa(counts, "quadratic"), counts)


def top_overlap(outcomes: Iterable[Outcome], tool: Tool) -> float:
    """Mean share of documents in common between the tops of two assessors, |S ∩ T| / |S ∪ T|.

    >>> ann = Outcome("ann", "q", Tool.PREFERENCES, "heap", 2, ("a", "b", "c"), (("a",), ("b",)))
    >>> bob = Outcome("bob", "q", Tool.PREFERENCES, "heap", 2, ("a", "b", "c"), (("a",), ("c",)))
    >>> round(top_overlap([ann, bob], Tool.PREFERENCES), 3)
    0.333
    """
    shares = []
    for finished in _by_query(tool, outcomes).values():
        tops = [{document for group in outcome.top for document in group} for outcome in finished]
        shares += [len(one & other) / len(one | other) for one, other in combinations(tops, 2) if one | other]
    return float(np.mean(shares)) if shares else nan


def _by_query(tool: Tool, outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    """The finished outcomes of each query that has two or more, by name of assessor."""
    found: defaultdict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.tool is tool and outcome.complete:
            found[outcome.query].append(outcome)
    return {
        query: sorted(found[query], key=lambda outcome: outcome.assessor)
        for query in sorted(found)
        if len(found[query]) > 1
    }


def _levels(outcome: Outcome, documents: Sequence[str]) -> NDArray[np.int64]:
    """The level of each document, higher is better."""
    if outcome.tool is Tool.GRADES:
        level = dict(outcome.grades)
        return np.array([level.get(document, 0) for document in documents])
    level = {document: -place for place, group in enumerate(outcome.top) for document in group}
    return np.array([level.get(document, -len(outcome.top)) for document in documents])


def _relations(outcome: Outcome, documents: Sequence[str]) -> NDArray[np.int8]:
    """0, 1, 2 for A≻B, A~B, A≺B of all pairs of documents in their order."""
    levels = _levels(outcome, documents)
    one, other = np.triu_indices(len(documents), 1)
    relations: NDArray[np.int8] = (1 - np.sign(levels[one] - levels[other])).astype(np.int8)
    return relations


def _in_top(outcome: Outcome, documents: Sequence[str]) -> NDArray[np.bool_]:
    top = {document for group in outcome.top for document in group}
    inside = np.array([document in top for document in documents], dtype=np.bool_)
    one, other = np.triu_indices(len(documents), 1)
    found: NDArray[np.bool_] = inside[one] | inside[other]
    return found


_Answers = dict[tuple[str, str], int]
_RELATION_OF = {Verdict.FIRST: 0, Verdict.TIE: 1, Verdict.SECOND: 2}


def _direct_answers(records: Iterable[Record]) -> defaultdict[tuple[str, str], _Answers]:
    """What was answered, in both orders of the documents; the last answer counts."""
    said: defaultdict[tuple[str, str], _Answers] = defaultdict(dict)
    for record in records:
        if record.tool is Tool.PREFERENCES and record.verdict in PREFERENCES and record.second is not None:
            relation = _RELATION_OF[record.verdict]
            answers = said[record.assessor, record.query]
            answers[record.first, record.second] = relation
            answers[record.second, record.first] = 2 - relation
    return said


def _answered(answers: _Answers, documents: Sequence[str]) -> NDArray[np.int8]:
    """As :func:`_relations`, with −1 for pairs that were not asked."""
    place = {document: index for index, document in enumerate(documents)}
    n = len(documents)
    relations = np.full((n, n), -1, dtype=np.int8)
    for (first, second), relation in answers.items():
        if first in place and second in place:
            relations[place[first], place[second]] = relation
    found: NDArray[np.int8] = relations[np.triu_indices(n, 1)]
    return found

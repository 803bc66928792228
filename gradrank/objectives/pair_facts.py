"""How many pairs of documents the labels of a source give to learn from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PairFacts:
    """What the labels of one source give a λ-gradient to learn from."""

    objective: str
    source: str
    weight: float
    pairs: int
    """Pairs of documents that the labels order."""
    queries: int
    """Queries that have any such pair."""
    of_queries: int
    unlabeled_documents: int
    unlabeled_queries: int
    """Queries without a single label of this source."""

    def sentence(self) -> str:
        """The facts as one note.

        >>> PairFacts("Lambda(CNDCG)", "clicks", 0.2, 120, 9, 10, 31, 1).sentence()
        "Lambda(CNDCG) on label 'clicks': 120 pairs in 9 of 10 queries; 31 documents have no label, 1 query none at all"
        """
        known = f"{self.objective} on label {self.source!r}: "
        if self.pairs == 0:
            known += "not a single pair to learn from"
        else:
            known += f"{_counted(self.pairs, 'pair')} in {self.queries:,} of {_counted(self.of_queries, 'query')}"
        if self.unlabeled_documents:
            have = "has" if self.unlabeled_documents == 1 else "have"
            known += f"; {_counted(self.unlabeled_documents, 'document')} {have} no label"
            if self.unlabeled_queries:
                known += f", {_counted(self.unlabeled_queries, 'query')} none at all"
        return known


def _counted(count: int, what: str) -> str:
    many = "queries" if what == "query" else f"{what}s"
    return f"{count:,} {what if count == 1 else many}"

"""Counts of the queries on which a label source leaves little or nothing to rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradrank.data.ranking_data import RankingData


@dataclass(frozen=True)
class LabelFacts:
    """Queries on which measures disagree by convention, counted for one label source."""

    queries: int
    no_relevant: int
    """Judged queries without a document whose label is above 0."""
    no_judged: int
    """Queries without a judged document."""
    one_label: int
    """Queries of two or more documents whose judged ones all carry the same label."""
    one_document: int
    """Queries with a single document."""

    def sentences(self) -> list[str]:
        """The facts worth saying, as parts of a sentence."""
        said = (
            (self.no_relevant, "without a relevant document"),
            (self.no_judged, "without a judged document"),
            (self.one_label, "with all labels equal"),
            (self.one_document, "with one document"),
        )
        return [f"{count:,} {what}" for count, what in said if count]


def label_facts(data: RankingData, source: str | None = None) -> LabelFacts:
    """Count the queries on which a label source leaves little or nothing to rank.

    >>> data = RankingData.from_arrays(np.zeros((4, 1)), [0, 0, 2, 1], qid=[1, 1, 2, 3])
    >>> label_facts(data)
    LabelFacts(queries=3, no_relevant=1, no_judged=0, one_label=1, one_document=2)
    """
    labels, starts = data.label(source), data.indptr[:-1]
    highest, lowest = np.fmax.reduceat(labels, starts), np.fmin.reduceat(labels, starts)
    single = data.sizes == 1
    return LabelFacts(
        queries=data.n_queries,
        no_relevant=int(np.count_nonzero(highest <= 0)),
        no_judged=int(np.count_nonzero(np.isnan(highest))),
        one_label=int(np.count_nonzero((highest == lowest) & ~single)),
        one_document=int(np.count_nonzero(single)),
    )

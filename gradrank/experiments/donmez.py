"""Donmez, Svore, Burges (2009), On the Local Optimality of LambdaRank: tables 1 to 4, figure 5.

The paper's web data is not public. The recipes run on artificial data (:mod:`gradrank.data.artificial`), or on data
that is given: splits ``train``, ``vali`` and ``test``. The learner is the paper's two-layer net (``lambdarank``) unless
the scale names another one. Figures 1 to 4 and 6, on local optimality, are what ``gradrank optimality`` does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from gradrank.data.artificial import make_splits
from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.evaluation.tables import Column, Table
from gradrank.experiments.constructions import REFERENCE, ConstructionStudy, study_constructions
from gradrank.experiments.result import Result
from gradrank.experiments.train_test_measures import (
    PAPER_OBJECTIVES,
    MeasureStudy,
    pairs_table,
    study_measures,
    study_pairs,
)
from gradrank.objectives import CONSTRUCTIONS

Say = Callable[[str], None]
# The paper's second web data has 2.2 times the training queries of the first.
_LARGER = 2.2
# Figure 5: shares of the training queries.
_SHARES = (0.05, 0.1, 0.25, 0.5, 1.0)


@dataclass(frozen=True)
class Scale:
    """How large an experiment is, and the learner."""

    queries: int = 1000
    """Training queries; half as many for validation, as many for test."""
    docs: int = 50
    features: int = 50
    noise: float = 0.3
    """Of the judges, in deviations of the true relevance."""
    algorithm: str = "lambdarank"
    parameters: tuple[str, ...] = ()
    """Of the learner, where they differ from its defaults, as ``epochs=40``."""
    constructions: tuple[str, ...] = tuple(CONSTRUCTIONS)
    shares: tuple[float, ...] = _SHARES
    """Figure 5: shares of the training queries."""
    random_state: int = 0
    n_jobs: int | None = None

    def splits(self) -> dict[str, RankingData]:
        """Artificial data."""
        return make_splits(
            self.queries, n_docs=self.docs, n_features=self.features, random_state=self.random_state, noise=self.noise,
            n_jobs=self.n_jobs,
        )  # fmt: skip

    def options(self) -> dict[str, Any]:
        """What all studies take."""
        return {
            "algorithm": self.algorithm,
            "parameters": dict(_parameter(pair) for pair in self.parameters),
            "random_state": self.random_state,
            "n_jobs": self.n_jobs,
        }


def table_1(
    scale: Scale | None = None, *, data: Mapping[str, RankingData] | None = None, say: Say | None = None
) -> Result:
    """λ constructions of MAP by validation accuracy; in the paper RankNetWeightPairs wins significantly."""
    return _constructions("donmez-1", "MAP(rel=2)", scale, data, say)


def table_2(
    scale: Scale | None = None, *, data: Mapping[str, RankingData] | None = None, say: Say | None = None
) -> Result:
    """λ constructions of MRR by validation accuracy; in the paper RankNetWeightPairs wins significantly."""
    return _constructions("donmez-2", "MRR(rel=2)", scale, data, say)


def table_3(
    scale: Scale | None = None, *, data: Mapping[str, RankingData] | None = None, say: Say | None = None
) -> Result:
    """Training measure × test measure; in the paper matching wins for NDCG and MAP, training on NDCG for the others."""
    return _measures("donmez-3", scale, data, say)


def table_4(
    scale: Scale | None = None, *, data: Mapping[str, RankingData] | None = None, say: Say | None = None
) -> Result:
    """Table 3 with 2.2 times the training queries: in the paper the gap to training on NDCG gets smaller."""
    scale = scale or Scale()
    if data is None:
        scale = replace(scale, queries=round(_LARGER * scale.queries))
    return _measures("donmez-4", scale, data, say)


def figure_5(
    scale: Scale | None = None, *, data: Mapping[str, RankingData] | None = None, say: Say | None = None
) -> Result:
    """MRR against effective pairs by training measure; in the paper, for equally many pairs, matching wins."""
    scale = scale or Scale()
    data = data or scale.splits()
    train = data["train"]
    sizes = sorted({max(1, round(share * train.n_queries)) for share in scale.shares})
    studies = study_pairs(train, data["vali"], data["test"], sizes, said=_said(say), **scale.options())
    points = pairs_table(studies, "MRR(rel=2)")
    facts = _facts(scale, data, "constructions")
    return Result("donmez-fig5", "MRR against effective pairs", (points, *_curves(points)), (), facts)


# ---------------------------------------------------------------------- parts
def _constructions(
    name: str, measure: str, scale: Scale | None, data: Mapping[str, RankingData] | None, say: Say | None
) -> Result:
    scale = scale or Scale()
    data = data or scale.splits()
    study = study_constructions(
        data["train"], data["vali"], measure, constructions=scale.constructions, said=_said(say), **scale.options()
    )
    facts = _facts(scale, data, "shares", "constructions")
    return Result(name, f"constructions by {measure}", (study.table(),), (_winner(study),), facts)


def _winner(study: ConstructionStudy) -> str:
    rows = study.comparison.rows if study.comparison else ()
    better = [row.system for row in rows if row.verdict == "better"]
    worse = [row.system for row in rows if row.verdict == "worse"]
    return (
        f"Against {REFERENCE}, by {study.measure} with Holm's correction: significantly better "
        f"{', '.join(better) or 'none'}; significantly worse {', '.join(worse) or 'none'}."
    )


def _measures(name: str, scale: Scale | None, data: Mapping[str, RankingData] | None, say: Say | None) -> Result:
    scale = scale or Scale()
    data = data or scale.splits()
    study = study_measures(
        data["train"], data["vali"], data["test"], PAPER_OBJECTIVES, said=_said(say), **scale.options()
    )
    facts = _facts(scale, data, "shares", "constructions")
    return Result(name, "training measure × test measure", (study.table(),), tuple(_matching(study)), facts)


def _matching(study: MeasureStudy) -> list[str]:
    notes = []
    for measure, comparison in study.comparisons.items():
        better = [row.system for row in comparison.rows if row.verdict == "better"]
        worse = [row.system for row in comparison.rows if row.verdict == "worse"]
        notes.append(
            f"{measure}: against training on it, significantly better {', '.join(better) or 'none'}, "
            f"significantly worse {', '.join(worse) or 'none'}."
        )
    return notes


def _curves(points: Table) -> list[Table]:
    """For each training measure the test accuracy over the logarithm of effective pairs, as the paper plots it."""
    columns = (Column("log10 of effective pairs", "number"), Column("MRR(rel=2)", "number"))
    return [
        Table(
            columns,
            tuple((math.log10(max(row[2], 1)), row[3]) for row in points.rows if row[0] == name),
            f"trained for {name}",
        )
        for name in dict.fromkeys(row[0] for row in points.rows)
    ]


def _parameter(pair: str) -> tuple[str, int | float | str]:
    name, equals, text = pair.partition("=")
    if not (name and equals and text):
        raise TrainingError(f"parameters has {pair!r}, expected KEY=VALUE")
    for kind in (int, float):
        try:
            return name, kind(text)
        except ValueError:
            continue
    return name, text


def _said(say: Say | None) -> Callable[[str, float], None] | None:
    return None if say is None else lambda name, value: say(f"{name}: {value:.4f} on validation data")


def _facts(scale: Scale, data: Mapping[str, RankingData], *leave_out: str) -> dict[str, Any]:
    train = data["train"]
    facts = {name: value for name, value in asdict(scale).items() if name not in ("n_jobs", "docs", *leave_out)}
    return facts | {"queries": train.n_queries, "documents": train.n_docs, "features": train.n_features}

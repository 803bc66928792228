"""Niu, Guo, Lan, Cheng (2012), Top-k Learning to Rank: tables 1 to 3, what labeling costs and how assessors agree.

The paper's five people are simulated by assessors who differ, slip and take their time as its tables say
(:mod:`gradrank.labeling.analysis.simulate`): their times are the paper's, so that what a run can show is the number of
judgments, and how agreement comes about from one and the same opinions with two tools. Real people speak in a folder
with preferences (``judgments``, lines ``query a b winner``) and graded judgments of the same documents (``qrels``),
such as those of the TREC 2021 deep learning track: then table 3 tells how preferences agree with the order of grades.
Graded data has its test documents judged by the simulated assessors: their true relevance lies in the order of the
grades, and at random within one.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.formats.registry import read_data
from gradrank.data.formats.topk_files import read_preferences
from gradrank.data.formats.trec import read_qrels
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError
from gradrank.evaluation.tables import Column, Table
from gradrank.experiments.claims import Claim, higher, number
from gradrank.experiments.folders import Reader, read_splits
from gradrank.experiments.recipe import Recipe, Run
from gradrank.experiments.result import Outcome
from gradrank.experiments.settings import Scale, setting
from gradrank.labeling.analysis.agreement import RELATIONS, Agreement, agreed_and_not, agreement
from gradrank.labeling.analysis.efficiency import efficiency
from gradrank.labeling.analysis.simulate import Study, simulate_study
from gradrank.labeling.records import Tool

PAPER = "Niu, Guo, Lan, Cheng (2012)"
_JUDGMENTS = ("judgments", "preferences")
_NAMES = {Tool.PREFERENCES: "top-k labeling", Tool.GRADES: "five grades"}


@dataclass(frozen=True, kw_only=True)
class StudyScale(Scale):
    """Size of the study."""

    queries: int = setting(50, "queries to label", of_data=True)
    docs: int = setting(50, "documents per query", of_data=True)
    k: int = setting(10, "documents wanted in order, by simulated assessors")
    assessors: int = setting(5, "simulated assessors")
    strategy: str = setting("heap", "how the top k is found: heap, as the paper has it, or another")

    def artificial_data(self) -> Study:
        """A simulated study."""
        return _study(self.queries, self.docs, self.k, self.assessors, self.strategy, self.random_state)

    def study_of(self, data: RankingData) -> Study:
        """A simulated study of graded documents, those of queries whose documents differ in grade."""
        truths = {}
        for query, qid in enumerate(data.qid):
            grades = data.label()[int(data.indptr[query]) : int(data.indptr[query + 1])]
            judged = grades[~np.isnan(grades)]
            if len(judged) > 1 and judged.min() < judged.max():
                truths[str(qid)] = _within_grades(judged, zlib.crc32(f"{self.random_state} {qid}".encode()))
        if not truths:
            raise DataError("the test data has no query whose documents differ in grade")
        return simulate_study(
            truths=truths, k=self.k, assessors=self.assessors, name=self.strategy, seed=self.random_state
        )

    def gigabytes(self) -> float:
        return 0.0

    def without_effect(self, data: Any) -> tuple[str, ...]:
        # People have judged as they did.
        people = ("k", "assessors", "strategy") if isinstance(data, HumanJudgments) else ()
        return (*self.of_data(), *people)


@cache
def _study(queries: int, docs: int, k: int, assessors: int, strategy: str, seed: int) -> Study:
    return simulate_study(queries=queries, n=docs, k=k, assessors=assessors, name=strategy, seed=seed)


def _within_grades(grades: NDArray[np.float32], seed: int) -> list[float]:
    """Relevance with normal ranks, in the order of the grades and at random within each."""
    chance = np.random.default_rng(seed).permutation(len(grades))
    order = np.lexsort((chance, grades))
    found = np.empty(len(grades))
    normal = NormalDist()
    found[order] = [normal.inv_cdf((place + 0.5) / len(grades)) for place in range(len(grades))]
    return [float(value) for value in found]


@dataclass(frozen=True)
class HumanJudgments:
    """Preferences and grades of the same documents by people."""

    preferences: Mapping[str, list[tuple[str, str]]]
    """(winner, loser) by query."""
    grades: Mapping[str, Mapping[str, float]]


def read_opinions(folder: str | Path, read: Reader = read_data) -> HumanJudgments | Mapping[str, RankingData]:
    """What people say, if a folder has judgments of theirs; else its graded data."""
    folder = Path(folder)
    named = [path.name.lower() for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []
    if any(name.startswith(_JUDGMENTS) for name in named):
        return read_judgments(folder)
    return read_splits(folder, read)


def read_judgments(folder: str | Path) -> HumanJudgments:
    """Preferences (in a file ``judgments…`` or ``preferences…``) and grades (``qrels…``) of a folder."""
    folder = Path(folder)
    files = sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []
    found = {}
    for kind, starts in (("judgments", _JUDGMENTS), ("qrels", ("qrels",))):
        path = next((path for path in files if path.name.lower().startswith(starts)), None)
        if path is None:
            raise DataError(
                f"holds no file {' or '.join(starts)}, expected preferences and graded judgments", path=folder
            )
        found[kind] = path
    return HumanJudgments(read_preferences(found["judgments"]), read_qrels(found["qrels"]).to_dict())


Opinions = Study | HumanJudgments | Mapping[str, RankingData]
"""A simulated study, judgments of people, or graded data to simulate one on."""


# ---------------------------------------------------------------------- the tables
def table_1(scale: StudyScale, data: Opinions, run: Run) -> Outcome:
    """Time per judgment and per query, and judgments per query, of top-k labeling and of five grades."""
    study = _simulated(scale, data, "table 1 is about the time of judgments")
    rows = {row.tool: row for row in efficiency(study.records, study.outcomes)}
    table = Table(
        (Column("method"), Column("seconds per judgment", "number"), Column("judgments per query", "number"),
         Column("minutes per query", "number"), Column("complexity")),
        tuple(
            (_NAMES[tool], row.seconds_per_judgment, row.judgments_per_query, row.minutes_per_query, row.complexity)
            for tool, row in rows.items()
        ),
    )  # fmt: skip
    top, grades = rows[Tool.PREFERENCES], rows[Tool.GRADES]
    claims = (
        number("a preference takes less than half the time of a grade", "ratio of the seconds",
               top.seconds_per_judgment / grades.seconds_per_judgment, below=0.5),
        number("a query takes about as long with both tools", "ratio of the minutes",
               top.minutes_per_query / grades.minutes_per_query, above=0.8, below=1.25),
    )  # fmt: skip
    return Outcome((table,), (), claims)


def table_2(scale: StudyScale, data: Opinions, run: Run) -> Outcome:
    """What a second assessor says of a pair, given what the first said, with top-k labeling."""
    study = _simulated(scale, data, "table 2 is about assessors of the same pairs")
    found = agreement(Tool.PREFERENCES, study.outcomes)
    return Outcome((_agreement_table(found),), (_overall(found),), _most_agree(found))


def table_3(scale: StudyScale, data: Opinions, run: Run) -> Outcome:
    """The same of preferences that are inferred from grades, and which tool has the higher agreement."""
    if isinstance(data, HumanJudgments):
        return _people(data)
    outcomes = _simulated(scale, data, "").outcomes
    both = {tool: agreement(tool, outcomes) for tool in (Tool.PREFERENCES, Tool.GRADES)}
    claims = []
    for ties, said in ((True, "agreement"), (False, "agreement without ties")):
        rates = [_rates(found, ties) for found in both.values()]
        claims.append(higher(said, "top-k labeling", "grades", *rates))
    notes = tuple(_overall(found) for found in both.values())
    return Outcome((_agreement_table(both[Tool.GRADES]),), notes, tuple(claims))


def _simulated(scale: StudyScale, data: Opinions, why: str) -> Study:
    if isinstance(data, HumanJudgments):
        raise DataError(
            f"{why}, of which preferences and grades alone say nothing: run it without --data, or on graded data"
        )
    return data if isinstance(data, Study) else scale.study_of(data["test"])


def _agreement_table(found: Agreement) -> Table:
    rows = tuple((name, *row) for name, row in zip(RELATIONS, found.rows().tolist(), strict=True))
    return Table(
        (Column("one says"), *(Column(f"other says {name}", "number") for name in RELATIONS)), rows, _NAMES[found.tool]
    )


def _overall(found: Agreement) -> str:
    return (
        f"{_NAMES[found.tool].capitalize()}: {found.overall():.1%} of {found.pairs:,} pairs agreed on, "
        f"{found.overall(ties=False):.1%} without ties."
    )


def _most_agree(found: Agreement) -> tuple[Claim, ...]:
    rates = _rates(found, ties=True)
    return (
        higher(
            "agreement", "assessors of preferences", "a toss between agreeing and not", rates, np.full(len(rates), 0.5)
        ),
    )


def _rates(found: Agreement, ties: bool) -> list[float]:
    """Share of pairs agreed on, query by query."""
    counts = [agreed_and_not(found.by_query[query], ties=ties) for query in sorted(found.by_query)]
    return [agreed / (agreed + not_agreed) if agreed + not_agreed else float("nan") for agreed, not_agreed in counts]


def _people(data: HumanJudgments) -> Outcome:
    """How people's preferences agree with the order of the grades."""
    shares = []
    totals = np.zeros(3, dtype=np.int64)
    for query, pairs in data.preferences.items():
        grades = data.grades.get(query, {})
        differences = [
            grades[winner] - grades[loser] for winner, loser in pairs if winner in grades and loser in grades
        ]
        signs = np.sign(differences)
        counts = np.array([(signs > 0).sum(), (signs == 0).sum(), (signs < 0).sum()])
        totals += counts
        if counts[0] + counts[2]:
            shares.append(counts[0] / (counts[0] + counts[2]))
    said = ("winner has the higher grade", "both have the same grade", "winner has the lower grade")
    rows = tuple(
        (name, int(count), count / max(1, totals.sum())) for name, count in zip(said, totals.tolist(), strict=True)
    )
    table = Table((Column("grades"), Column("pairs", "count"), Column("share", "number")), rows, "People's preferences")
    claim = higher("agreement", "preferences with the order of the grades", "a toss", shares, np.full(len(shares), 0.5))
    return Outcome((table,), (), (claim,))


# ---------------------------------------------------------------------- the recipes
_TINY: dict[str, Any] = {"queries": 6, "docs": 12, "k": 4}


def _recipe(function: Any, number_of: int, title: str, finding: str) -> Recipe:
    return Recipe(
        function, PAPER, f"table {number_of}", title, finding, small=StudyScale(), tiny=StudyScale(**_TINY),
        full=StudyScale(), reads="judgments",
    )  # fmt: skip


TABLE_1 = _recipe(
    table_1, 1, "the cost of labeling",
    "A preference takes less than half the time of a grade, and a query about as long with both tools.",
)  # fmt: skip
TABLE_2 = _recipe(table_2, 2, "agreement on preferences", "Assessors agree on most pairs with top-k labeling.")
TABLE_3 = _recipe(
    table_3, 3, "agreement on preferences that grades imply",
    "Assessors agree more with top-k labeling than by grades, with and without ties.",
)  # fmt: skip

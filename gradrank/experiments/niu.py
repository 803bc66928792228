"""Niu, Guo, Lan, Cheng (2012), Top-k Learning to Rank: tables 4 and 5, figures 1 and 2.

Ten rankers on graded labels and on a top-k truth. The paper takes the top-k truth of MQ2007 from MQ2007-list and that
of TD2003 from its own assessors; neither is at hand as a rule, so the truth is made from the grades by a seeded random
order that respects them (a folder of data with position labels of its own is taken as it is). κ-NDCG is then lower than
in the paper, since nobody can learn a random order; who wins is what to look at.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gradrank.data.artificial import make_data
from gradrank.data.ranking_data import RankingData
from gradrank.data.splits import letor_folds
from gradrank.data.topk import is_top_k, top_k_labels
from gradrank.evaluation.significance import holm, t_test
from gradrank.evaluation.tables import Column, Table
from gradrank.experiments.cells import Cell, Values, run_cells
from gradrank.experiments.folders import Fold
from gradrank.experiments.result import Result
from gradrank.learners.focused.beta_path import BETA_GRID

Say = Callable[[str], None]

# Each focused ranker with its listwise and its pairwise end.
FAMILIES = {
    "FocusedSVM": ("SVMmap", "RankSVM"),
    "FocusedBoost": ("AdaRank", "RankBoost"),
    "FocusedNet": ("ListNet", "RankNet"),
}
RANKERS = (*(name for focused, ends in FAMILIES.items() for name in (*ends, focused)), "ListMLE")
TRUTHS = {"graded": ("NDCG@{}", "ERR(top=query)"), "topk": ("KappaNDCG@{}", "KappaERR")}
"""Kinds of labels with the measures that go with them."""


@dataclass(frozen=True)
class Scale:
    """How large an experiment is, and the learners' parameters."""

    k: int = 10
    rankers: tuple[str, ...] = RANKERS
    truths: tuple[str, ...] = tuple(TRUTHS)
    beta: float | str = "auto"
    betas: tuple[float, ...] = BETA_GRID
    """Figures 1 and 2."""
    c: float | str = "auto"
    rounds: int = 300
    epochs: int = 50
    hidden: int = 0
    """Nodes of the nets' hidden layer; the paper's nets are linear."""
    queries: int = 300
    """Of the artificial data, if no other is given."""
    docs: int = 40
    features: int = 20
    random_state: int = 1
    n_jobs: int | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    """Further parameters of all learners."""

    def folds(self) -> list[Fold]:
        """Artificial data in five parts, as LETOR rotates them; judges err, as people do."""
        whole = make_data(
            self.queries, n_docs=self.docs, n_features=self.features, random_state=self.random_state, noise=0.5
        )
        parts = [whole.take_queries(part) for part in np.array_split(np.arange(self.queries), 5)]
        return [Fold(*sets) for sets in letor_folds(parts)]

    def learner(self, ranker: str, truth: str, beta: float | str | None = None) -> tuple[str, dict[str, Any]]:
        """Name and parameters of a ranker's learner."""
        chooser = TRUTHS[truth][0].format(self.k)
        own: dict[str, dict[str, Any]] = {
            "SVMmap": {"C": self.c},
            "RankSVM": {"C": self.c},
            "FocusedSVM": {"C": self.c},
            "AdaRank": {"boosts": chooser, "n_estimators": self.rounds},
            "RankBoost": {"n_estimators": self.rounds},
            "FocusedBoost": {"n_estimators": self.rounds},
            "ListMLE": {"k": self.k},
        }
        given = {"measure": chooser, "n_jobs": self.n_jobs, **own.get(ranker, {})}
        if ranker in FAMILIES:
            given |= {"k": self.k, "beta": self.beta if beta is None else beta, "random_state": self.random_state}
        if ranker in ("ListNet", "RankNet", "FocusedNet", "ListMLE"):
            given |= {"epochs": self.epochs, "hidden_layer_sizes": self.hidden, "random_state": self.random_state}
        return ranker.lower(), given | self.parameters

    def measures(self, truth: str) -> tuple[str, ...]:
        """Columns of the tables: cut-offs 1…k, then ERR."""
        at, err = TRUTHS[truth]
        return (*(at.format(cutoff) for cutoff in range(1, self.k + 1)), err)


def table_4(
    scale: Scale | None = None,
    *,
    folds: Sequence[Fold] | None = None,
    out: Path | None = None,
    jobs: int = 1,
    say: Say | None = None,
) -> Result:
    """Ten rankers on graded and top-k MQ2007; in the paper focused rankers beat their two ends on the top-k truth."""
    return _table("niu-4", "ten rankers on graded labels and on a top-k truth", scale, folds, out, jobs, say)


def table_5(
    scale: Scale | None = None,
    *,
    folds: Sequence[Fold] | None = None,
    out: Path | None = None,
    jobs: int = 1,
    say: Say | None = None,
) -> Result:
    """The same on a small collection (TD2003 in the paper, 50 queries)."""
    return _table("niu-5", "ten rankers, small collection", scale, folds, out, jobs, say)


def figure_1(
    scale: Scale | None = None,
    *,
    folds: Sequence[Fold] | None = None,
    out: Path | None = None,
    jobs: int = 1,
    say: Say | None = None,
) -> Result:
    """Measures on test data against β; in the paper they rise to a maximum inside 0…1, then fall."""
    return _figure("niu-fig1", scale, folds, out, jobs, say)


def figure_2(
    scale: Scale | None = None,
    *,
    folds: Sequence[Fold] | None = None,
    out: Path | None = None,
    jobs: int = 1,
    say: Say | None = None,
) -> Result:
    """The same on a small collection (TD2003 in the paper)."""
    return _figure("niu-fig2", scale, folds, out, jobs, say)


# ---------------------------------------------------------------------- parts
def _table(
    name: str,
    title: str,
    scale: Scale | None,
    folds: Sequence[Fold] | None,
    out: Path | None,
    jobs: int,
    say: Say | None,
) -> Result:
    scale = scale or Scale()
    given = list(folds) if folds is not None else scale.folds()
    truths = _truths(scale, given)
    cells = [
        Cell(ranker, *scale.learner(ranker, truth), fold, truth, scale.measures(truth))
        for truth in scale.truths
        for ranker in scale.rankers
        for fold in range(len(given))
    ]
    found = run_cells(cells, truths, out=out, jobs=jobs, say=say)
    tables, notes = [], []
    for truth in scale.truths:
        values = {
            ranker: _joined([found[cell] for cell in cells if cell.truth == truth and cell.name == ranker])
            for ranker in scale.rankers
        }
        measures = scale.measures(truth)
        verdicts, said = _verdicts(values, measures[-2])
        rows = tuple(
            (ranker, *(_mean_of_folds(found, cells, truth, ranker, measure) for measure in measures), verdicts[ranker])
            for ranker in scale.rankers
        )
        columns = (
            Column("ranker"),
            *(Column(measure, "number") for measure in measures),
            Column("against its ends"),
        )
        tables.append(Table(columns, rows, f"{truth} labels: means of {len(given)} folds"))
        notes += [f"{truth}: {note}" for note in said]
    return Result(name, title, tuple(tables), tuple(notes), _facts(scale, given, "betas"))


def _figure(
    name: str, scale: Scale | None, folds: Sequence[Fold] | None, out: Path | None, jobs: int, say: Say | None
) -> Result:
    scale = scale or Scale()
    given = list(folds) if folds is not None else scale.folds()
    truths = _truths(scale, given)
    focused = [ranker for ranker in scale.rankers if ranker in FAMILIES]
    cells = [
        Cell(f"{ranker} beta {beta:g}", *scale.learner(ranker, truth, beta), fold, truth, scale.measures(truth))
        for truth in scale.truths
        for ranker in focused
        for beta in scale.betas
        for fold in range(len(given))
    ]
    found = run_cells(cells, truths, out=out, jobs=jobs, say=say)
    tables, notes = [], []
    for ranker in focused:
        for truth in scale.truths:
            at, err = TRUTHS[truth]
            shown = list(dict.fromkeys((at.format(min(5, scale.k)), at.format(scale.k), err)))
            rows = tuple(
                (beta, *(_mean_of_folds(found, cells, truth, f"{ranker} beta {beta:g}", each) for each in shown))
                for beta in scale.betas
            )
            columns = (Column("β", "number"), *(Column(measure, "number") for measure in shown))
            tables.append(Table(columns, rows, f"{ranker}, {truth} labels"))
            best = max(rows, key=lambda row: row[-2])
            notes.append(f"{ranker}, {truth}: {shown[-2]} is highest at β = {best[0]:g} ({best[-2]:.4f}; "
                         f"{rows[0][-2]:.4f} at {rows[0][0]:g}, {rows[-1][-2]:.4f} at {rows[-1][0]:g}).")  # fmt: skip
    return Result(name, "performance against β", tuple(tables), tuple(notes), _facts(scale, given, "beta"))


def _truths(scale: Scale, folds: Sequence[Fold]) -> dict[str, list[Fold]]:
    """The folds under each kind of labels. A query's truth is the same in all folds that it is in."""

    def topk(data: RankingData) -> RankingData:
        labels = data.label()
        if is_top_k(labels, data.indptr) and np.nanmax(labels) <= scale.k:
            return data
        labels = labels.copy()
        for query, qid in enumerate(data.qid):
            start, end = int(data.indptr[query]), int(data.indptr[query + 1])
            random_state = zlib.crc32(f"{scale.random_state} {qid}".encode())
            labels[start:end] = top_k_labels(labels[start:end], np.array([0, end - start]), scale.k, random_state)
        return data.with_label(data.label_names[0], labels)

    made: dict[str, list[Fold]] = {"graded": list(folds)}
    if "topk" in scale.truths:
        made["topk"] = [Fold(*(topk(data) for data in fold)) for fold in folds]
    return made


def _joined(parts: Sequence[Values]) -> Values:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _mean_of_folds(found: dict[Cell, Values], cells: Sequence[Cell], truth: str, name: str, measure: str) -> float:
    chosen = [found[cell][measure] for cell in cells if cell.truth == truth and cell.name == name]
    return float(np.mean([np.nanmean(values) for values in chosen]))


def _verdicts(values: dict[str, Values], measure: str) -> tuple[dict[str, str], list[str]]:
    """Focused rankers against their ends: paired t-tests over all queries, Holm's correction over the table."""
    pairs = [(focused, end) for focused, ends in FAMILIES.items() for end in ends if {focused, end} <= values.keys()]
    tests = [t_test(values[focused][measure], values[end][measure]) for focused, end in pairs]
    corrected = holm([test.p for test in tests]).tolist()
    verdicts = dict.fromkeys(values, "")
    notes = []
    for (focused, end), test, p in zip(pairs, tests, corrected, strict=True):
        sure = "significantly " if p < 0.05 else ""
        word = f"{sure}{'better' if test.difference > 0 else 'worse'}"
        mark = ("▲" if test.difference > 0 else "▼") if sure else "·"
        verdicts[focused] = f"{verdicts[focused]} {mark}{end}".strip()
        notes.append(f"{focused} is {word} than {end} by {measure}: {test.difference:+.4f}, p {p:.4f} (Holm).")
    return verdicts, notes


def _facts(scale: Scale, folds: Sequence[Fold], *leave_out: str) -> dict[str, Any]:
    left_out = ("n_jobs", "parameters", "queries", "docs", "features", *leave_out)
    facts = {name: value for name, value in asdict(scale).items() if name not in left_out}
    return {
        **facts,
        **scale.parameters,
        "folds": len(folds),
        "test queries": sum(fold.test.n_queries for fold in folds),
        "features": folds[0].train.n_features,
    }

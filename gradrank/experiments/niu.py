"""Niu, Guo, Lan, Cheng (2012), Top-k Learning to Rank: tables 4 and 5, figures 1 and 2.

The paper's ten rankers on graded labels and on a top-k truth, and LambdaMART as an eleventh, which learns what is
measured. The paper takes the top-k truth of MQ2007 from MQ2007-list and that of TD2003 from its own assessors. Here
artificial data has an order of its documents by people who err, of which the top k are the truth and which the grades
were cut from. Data that is given has its truth from a second folder with a total order (``lists``, such as
MQ2007-list), or has position labels of its own, or else the truth is made from the grades by a seeded random order that
respects them: κ-NDCG is then lower, since nobody can learn a random order; who wins is what to look at.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.artificial import make_data, make_truth
from gradrank.data.ranking_data import RankingData
from gradrank.data.splits import concatenate, letor_folds
from gradrank.data.topk import is_top_k, top_k_labels
from gradrank.errors import DataError
from gradrank.evaluation.significance import holm, t_test
from gradrank.evaluation.tables import Column, Table
from gradrank.experiments import pins
from gradrank.experiments.cells import Cell, Values, run_cells
from gradrank.experiments.claims import Claim, higher
from gradrank.experiments.folders import Fold, read_folds
from gradrank.experiments.recipe import Recipe, Run
from gradrank.experiments.result import Outcome
from gradrank.experiments.settings import Scale, setting
from gradrank.measures import ERR

PAPER = "Niu, Guo, Lan, Cheng (2012)"
# Each focused ranker with its listwise and its pairwise end.
FAMILIES = {
    "FocusedSVM": ("SVMmap", "RankSVM"),
    "FocusedBoost": ("AdaRank", "RankBoost"),
    "FocusedNet": ("ListNet", "RankNet"),
}
RANKERS = (*(name for focused, ends in FAMILIES.items() for name in (*ends, focused)), "ListMLE", "LambdaMART")
TRUTHS = {"graded": ("NDCG@{}", "ERR"), "topk": ("KappaNDCG@{}", "KappaERR")}
"""Kinds of labels with the measures that go with them."""


_NETS = ("ListNet", "RankNet", "FocusedNet", "ListMLE")
_GRID = tuple(round(0.05 * step, 2) for step in range(21))
ORDER = "order"
"""Label source of a total order: the higher, the better."""
# The order of documents has a stream of its own.
_ORDER_NOISE = 77


@dataclass(frozen=True, kw_only=True)
class RankerScale(Scale):
    """Size of the data, and the learners."""

    queries: int = setting(300, "queries, in five parts that take turns", of_data=True)
    docs: int = setting(40, "documents per query", of_data=True)
    features: int = setting(20, "features", of_data=True)
    noise: float = setting(0.5, "error of the judges, in deviations of the true relevance", of_data=True)
    order_noise: float = setting(
        0.5, "error of the people who order documents, in deviations of the true relevance", of_data=True
    )
    lists: str = setting("none", "folder of the same documents in total order, as MQ2007-list, for data that is given")
    random_state: int = setting(1, "seed of the artificial data, the top-k truth and all trainings")
    k: int = setting(10, "depth of the top-k truth")
    rankers: tuple[str, ...] = setting(RANKERS, "rankers to compare")
    truths: tuple[str, ...] = setting(tuple(TRUTHS), "labels to learn from: graded, topk")
    top: float | str = setting("query", "top grade of ERR on graded labels: one for all, or query: each query's own")
    C: float | str = setting("auto", "C of the support vector machines; auto: chosen on validation data")
    n_estimators: int = setting(300, "rounds of boosting")
    epochs: int = setting(50, "epochs of the nets")
    hidden_layer_sizes: int = setting(0, "hidden nodes of the nets; the paper's are linear")
    by_difference: bool = setting(
        False, "whether FocusedSVM and FocusedBoost weigh pairs by the difference of labels, as the paper prints"
    )
    num_leaves: int = setting(10, "leaves per tree of LambdaMART")
    learning_rate: float = setting(0.1, "learning rate of LambdaMART")
    min_child_samples: int = setting(20, "fewest documents per leaf of LambdaMART")

    def artificial_data(self) -> list[Fold]:
        """Artificial data in five parts, as LETOR rotates them; judges err, as people do, and so do those who order."""
        whole = make_data(
            self.queries, n_docs=self.docs, n_features=self.features, random_state=self.random_state, noise=self.noise
        )
        truth = make_truth(self.features, random_state=self.random_state, noise=self.noise)
        errors = np.random.default_rng((self.random_state, _ORDER_NOISE)).standard_normal(whole.n_docs)
        whole = whole.with_label(ORDER, truth.standardized(whole.X.astype(np.float32)) + self.order_noise * errors)
        parts = [whole.take_queries(part) for part in np.array_split(np.arange(self.queries), 5)]
        return [Fold(*sets) for sets in letor_folds(parts)]

    def gigabytes(self) -> float:
        return self.queries * self.docs * self.features * 4 / 1e9

    def learners(self) -> dict[str, dict[str, Any]]:
        net = pins.net(hidden_layer_sizes=self.hidden_layer_sizes, activation="relu", epochs=self.epochs)
        svm = {**pins.SVM, "C": self.C}
        boosting = {**pins.BOOSTING, "n_estimators": self.n_estimators}
        focused = {"label": None, "k": self.k}
        found: dict[str, dict[str, Any]] = {
            "SVMmap": {**svm, "rel": 1.0},
            "RankSVM": {**svm, "pairs": "mean"},
            "FocusedSVM": {**svm, **focused, "by_difference": self.by_difference},
            "AdaRank": {"n_estimators": self.n_estimators, "running": True, "early_stopping_rounds": None},
            "RankBoost": {**boosting, "uniform": "pair"},
            "FocusedBoost": {
                **boosting, **focused, "running": False, "uniform": "query", "boosts": None,
                "by_difference": self.by_difference,
            },
            "ListNet": net,
            "RankNet": net,
            "FocusedNet": {**net, **focused},
            "ListMLE": {**net, "k": self.k},
            "LambdaMART": {
                **pins.TREES, "n_estimators": self.n_estimators, "num_leaves": self.num_leaves,
                "learning_rate": self.learning_rate, "min_child_samples": self.min_child_samples,
            },
        }  # fmt: skip
        unknown = [ranker for ranker in self.rankers if ranker not in found]
        if unknown:
            raise DataError(f"rankers has {unknown[0]!r}, expected some of {', '.join(found)}")
        return {ranker: found[ranker] for ranker in self.rankers}

    def cell(self, name: str, ranker: str, truth: str, fold: int, beta: float | str) -> Cell:
        """One training of a ranker."""
        chooser = TRUTHS[truth][0].format(self.k)
        given: dict[str, Any] = {**self.learners()[ranker], "measure": chooser, "n_jobs": self.n_jobs}
        if ranker in FAMILIES:
            given["beta"] = beta
        if ranker in FAMILIES or ranker in (*_NETS, "LambdaMART"):
            given["random_state"] = self.random_state
        objectives = {
            "ListNet": "ListNet", "RankNet": "RankNet", "ListMLE": f"ListMLE(k={self.k})",
            "LambdaMART": f"Lambda({chooser})",
        }  # fmt: skip
        if ranker in objectives:
            given["objective"] = objectives[ranker]
        if ranker == "AdaRank":
            given["boosts"] = chooser
        return Cell(name, ranker.lower(), pins.pinned(ranker, given), fold, truth, self.measures(truth))

    def measures(self, truth: str) -> tuple[str, ...]:
        """Columns of the tables: cut-offs 1…k, then ERR."""
        at, _ = TRUTHS[truth]
        return (*(at.format(cutoff) for cutoff in range(1, self.k + 1)), self.err(truth))

    def err(self, truth: str) -> str:
        """ERR of a kind of labels. Position labels have no grade for all: the first of k has the top one."""
        return str(ERR(top=self.top)) if truth == "graded" else TRUTHS[truth][1]


@dataclass(frozen=True, kw_only=True)
class TableScale(RankerScale):
    """Learners with one balance of the focused rankers."""

    beta: float | str = setting(
        "auto", "β of the focused rankers; auto: of 0, 0.05, … 1 the best on validation data; cv: by cross-validation"
    )
    cv_betas: tuple[float, ...] = setting((0.1, 0.3, 0.5, 0.7, 0.9), "values of β that cross-validation compares")
    cv_folds: int = setting(4, "parts of the training and validation queries that take turns in cross-validation")


@dataclass(frozen=True, kw_only=True)
class BetaScale(RankerScale):
    """Learners with several balances of the focused rankers."""

    rankers: tuple[str, ...] = setting(tuple(FAMILIES), "focused rankers to draw")
    betas: tuple[float, ...] = setting(_GRID, "values of β")


# ---------------------------------------------------------------------- parts
def ranker_table(scale: TableScale, folds: Sequence[Fold], run: Run) -> Outcome:
    """All rankers on graded labels and on a top-k truth, means over folds."""
    truths = _truths(scale, folds)
    betas = _cross_validated(scale, truths, run) if scale.beta == "cv" else {}
    cells = [
        scale.cell(ranker, ranker, truth, fold, betas.get((ranker, truth, fold), scale.beta))
        for truth in scale.truths
        for ranker in scale.rankers
        for fold in range(len(folds))
    ]
    found = run_cells(cells, truths, out=run.out, jobs=run.jobs, client=run.client, say=run.say)
    tables, notes = [], []
    claims: list[Claim] = []
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
        tables.append(Table(columns, rows, f"{truth} labels: means of {len(folds)} folds"))
        notes += [f"{truth}: {note}" for note in said]
        if truth == "topk":
            measure = measures[-2]
            claims += [
                higher(measure, focused, end, values[focused][measure], values[end][measure])
                for focused, ends in FAMILIES.items()
                for end in ends
                if {focused, end} <= values.keys()
            ]
    if betas:
        tables.append(_beta_table(betas))
    return Outcome(tuple(tables), tuple(notes), tuple(claims))


def _cross_validated(
    scale: TableScale, truths: Mapping[str, Sequence[Fold]], run: Run
) -> dict[tuple[str, str, int], float]:
    """For each focused ranker, truth and fold the β with the best mean over a cross-validation.

    The training and validation queries of the fold are cut into parts that take turns as validation data: a value of β
    is judged by all of these queries, not by the luckiest epoch of one part. Test data is not looked at.
    """
    turns: dict[str, list[Fold]] = {
        truth: [turn for fold in truths[truth] for turn in _turns(fold, scale.cv_folds)] for truth in scale.truths
    }
    chooser = {truth: TRUTHS[truth][0].format(scale.k) for truth in scale.truths}
    tried = {
        (ranker, truth, at, beta): replace(
            scale.cell(f"{ranker} beta {beta:g} turn", ranker, truth, at, beta), measures=(chooser[truth],)
        )
        for truth in scale.truths
        for ranker in scale.rankers
        if ranker in FAMILIES
        for at in range(len(turns[truth]))
        for beta in scale.cv_betas
    }
    found = run_cells(list(tried.values()), turns, out=run.out, jobs=run.jobs, client=run.client, say=run.say)
    chosen = {}
    for ranker, truth in dict.fromkeys((ranker, truth) for ranker, truth, _, _ in tried):
        for fold in range(len(truths[truth])):
            own = range(fold * scale.cv_folds, (fold + 1) * scale.cv_folds)

            def value(beta: float, ranker: str = ranker, truth: str = truth, own: range = own) -> float:
                parts = [found[tried[ranker, truth, at, beta]][chooser[truth]] for at in own]
                return float(np.nanmean(np.concatenate(parts)))

            chosen[ranker, truth, fold] = max(scale.cv_betas, key=value)
    return chosen


def _turns(fold: Fold, count: int) -> list[Fold]:
    """Parts of a fold's training and validation queries, each as validation data once, and as what is measured."""
    whole = concatenate([fold.train, fold.valid])
    found = []
    for part in np.array_split(np.arange(whole.n_queries), count):
        held = np.zeros(whole.n_queries, dtype=bool)
        held[part] = True
        valid = whole.take_queries(held)
        found.append(Fold(whole.take_queries(~held), valid, valid))
    return found


def _beta_table(betas: Mapping[tuple[str, str, int], float]) -> Table:
    rows: dict[tuple[str, str], list[str]] = {}
    for (ranker, truth, _), beta in betas.items():
        rows.setdefault((ranker, truth), []).append(f"{beta:g}")
    columns = (Column("ranker"), Column("labels"), Column("β, fold by fold"))
    found = tuple((ranker, truth, ", ".join(chosen)) for (ranker, truth), chosen in rows.items())
    return Table(columns, found, "β chosen by cross-validation")


def beta_figure(scale: BetaScale, folds: Sequence[Fold], run: Run) -> Outcome:
    """Measures of the focused rankers on test data against β, means over folds."""
    truths = _truths(scale, folds)
    focused = [ranker for ranker in scale.rankers if ranker in FAMILIES]
    cells = [
        scale.cell(f"{ranker} beta {beta:g}", ranker, truth, fold, beta)
        for truth in scale.truths
        for ranker in focused
        for beta in scale.betas
        for fold in range(len(folds))
    ]
    found = run_cells(cells, truths, out=run.out, jobs=run.jobs, client=run.client, say=run.say)
    tables, notes = [], []
    claims: list[Claim] = []
    for ranker in focused:
        for truth in scale.truths:
            at, _ = TRUTHS[truth]
            shown = list(dict.fromkeys((at.format(min(5, scale.k)), at.format(scale.k), scale.err(truth))))
            rows = tuple(
                (beta, *(_mean_of_folds(found, cells, truth, f"{ranker} beta {beta:g}", each) for each in shown))
                for beta in scale.betas
            )
            columns = (Column("β", "number"), *(Column(measure, "number") for measure in shown))
            tables.append(Table(columns, rows, f"{ranker}, {truth} labels"))
            if truth == "topk":
                by_beta = {
                    beta: _joined([found[cell] for cell in cells if cell.truth == truth and cell.name == name])
                    for beta in scale.betas
                    for name in [f"{ranker} beta {beta:g}"]
                }
                claims += _maximum_inside(ranker, shown[-2], by_beta)
            best = max(rows, key=lambda row: row[-2])
            notes.append(f"{ranker}, {truth}: {shown[-2]} is highest at β = {best[0]:g} ({best[-2]:.4f}; "
                         f"{rows[0][-2]:.4f} at {rows[0][0]:g}, {rows[-1][-2]:.4f} at {rows[-1][0]:g}).")  # fmt: skip
    return Outcome(tuple(tables), tuple(notes), tuple(claims))


def _maximum_inside(ranker: str, measure: str, by_beta: Mapping[float, Values]) -> list[Claim]:
    """That a curve first rises and later falls: what β in the lower half give, beside each end.

    The highest of many values lies above the ends by chance alone; the mean of values that are named beforehand does
    not. A curve that falls from its first point on, however slowly, has no maximum inside.
    """
    lower = [beta for beta in by_beta if 0.0 < beta <= 0.5]
    if not lower or not {0.0, 1.0} <= by_beta.keys():
        return []
    inside = np.mean([by_beta[beta][measure] for beta in lower], axis=0)
    said = f"{ranker} with β above 0 and up to 0.5"
    return [higher(measure, said, f"with β = {end:g}", inside, by_beta[end][measure]) for end in (0.0, 1.0)]


def _truths(scale: RankerScale, folds: Sequence[Fold]) -> dict[str, list[Fold]]:
    """The folds under each kind of labels. A query's truth is the same in all folds that it is in."""

    places = None if scale.lists == "none" else _total_order(scale.lists)

    def topk(data: RankingData) -> RankingData:
        labels = data.label()
        if places is not None:
            data = data.with_label(ORDER, _ordered(data, places, scale.lists))
        if ORDER in data.label_names:
            # No two documents are equal in it, so that chance decides nothing.
            return data.with_label(data.label_names[0], top_k_labels(data.label(ORDER), data.indptr, scale.k))
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


def _total_order(folder: str) -> dict[tuple[str, str], float]:
    """Degrees of documents in a total order, the higher the better, by query and document."""
    found: dict[tuple[str, str], float] = {}
    for data in read_folds(folder, most=1)[0]:
        degrees, documents = data.label().tolist(), _document_ids(data)
        for query, qid in enumerate(data.qid):
            for row in range(int(data.indptr[query]), int(data.indptr[query + 1])):
                found[qid, documents[row]] = degrees[row]
    return found


def _document_ids(data: RankingData) -> Sequence[str]:
    if data.docid is None:
        raise DataError("documents need ids, so that they can be found in a total order of them")
    return list(data.docid)


def _ordered(data: RankingData, places: Mapping[tuple[str, str], float], folder: str) -> NDArray[np.float32]:
    """The degrees of the data's documents; documents that the order does not have are unjudged."""
    found = np.full(data.n_docs, np.nan, dtype=np.float32)
    documents = _document_ids(data)
    for query, qid in enumerate(data.qid):
        for row in range(int(data.indptr[query]), int(data.indptr[query + 1])):
            found[row] = places.get((qid, documents[row]), np.nan)
    if np.isnan(found).all():
        raise DataError("orders no document of the data; documents are found by query and document id", path=folder)
    return found


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
        word = f"{sure}{'better' if test.difference > 0 else 'worse'}" if test.difference else "no better"
        mark = ("▲" if test.difference > 0 else "▼") if sure else "·"
        verdicts[focused] = f"{verdicts[focused]} {mark}{end}".strip()
        notes.append(f"{focused} is {word} than {end} by {measure}: {test.difference:+.4f}, p {p:.4f} (Holm).")
    return verdicts, notes


# ---------------------------------------------------------------------- the recipes
_TINY: dict[str, Any] = {
    "queries": 40, "docs": 12, "features": 4, "n_estimators": 3, "epochs": 1, "C": 1.0, "k": 3, "min_child_samples": 3,
}  # fmt: skip
_MQ2007: dict[str, Any] = {"queries": 1692, "docs": 41, "features": 46}
_TD2003: dict[str, Any] = {"queries": 50, "docs": 50, "features": 64}


def _recipe(
    function: Callable[[Any, Any, Run], Outcome],
    shows: str,
    title: str,
    finding: str,
    small: RankerScale,
    tiny: RankerScale,
    full: RankerScale,
) -> Recipe:
    return Recipe(function, PAPER, shows, title, finding, small, tiny, full, reads="folds", side_by_side=True)


TABLE_4 = _recipe(
    ranker_table,
    "table 4",
    "the rankers on graded labels and on a top-k truth",
    "On top-k MQ2007 focused rankers beat the pairwise and listwise rankers that they are made of.",
    small=TableScale(beta="cv"),
    tiny=TableScale(**_TINY, beta="cv", cv_betas=(0.2, 0.8), cv_folds=2),
    full=TableScale(**_MQ2007, beta="cv", cv_betas=_GRID),
)
TABLE_5 = _recipe(
    ranker_table,
    "table 5",
    "the rankers on a small collection",
    "On top-k TD2003 focused rankers beat the pairwise and listwise rankers that they are made of.",
    small=TableScale(queries=100, beta="cv"),
    tiny=TableScale(**_TINY, beta=0.5),
    full=TableScale(**_TD2003, beta="cv", cv_betas=_GRID),
)
FIGURE_1 = _recipe(
    beta_figure,
    "figure 1",
    "performance against β",
    "On MQ2007 the measures rise to a maximum inside 0…1 and fall again.",
    small=BetaScale(),
    tiny=BetaScale(**_TINY, rankers=("FocusedSVM",), betas=(0.0, 0.5, 1.0)),
    full=BetaScale(**_MQ2007),
)
FIGURE_2 = _recipe(
    beta_figure,
    "figure 2",
    "performance against β on a small collection",
    "On TD2003 the measures rise to a maximum inside 0…1 and fall again.",
    small=BetaScale(queries=100),
    tiny=BetaScale(**_TINY, rankers=("FocusedSVM",), betas=(0.0, 0.5, 1.0)),
    full=BetaScale(**_TD2003),
)

"""Training for one measure and testing on another (Donmez et al. 2009, tables 3 and 4, figure 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.evaluation import Comparison, Evaluation, compare, evaluate
from gradrank.evaluation.tables import Column, Table
from gradrank.experiments.training import Said, learner_for, single_measure, train_all
from gradrank.measures import Measure
from gradrank.objectives import Objective, as_objective

PAPER_OBJECTIVES: dict[str, str] = {
    "NDCG": "Lambda(NDCG)",
    "NDCG@10": "Lambda(NDCG@10)",
    "MAP(rel=2)": "Lambda(MAP(rel=2))",
    "MRR(rel=2)": "Lambda(MRR(rel=2), pairs=misranked)",
}
"""The paper's target measures and how it trains for them; labels of 2 and more are relevant (§6), and reciprocal rank
learns from misranked pairs alone (eq. 11)."""


@dataclass(frozen=True, eq=False)
class MeasureStudy:
    """Models trained for different measures, tested on all of them."""

    algorithm: str
    evaluation: Evaluation
    """The systems are named by the measure that they were trained for."""
    comparisons: Mapping[Measure, Comparison]
    """For each test measure the others against the model that was trained for it."""
    effective_pairs: Mapping[str, int]
    """Pairs with a non-zero λ, by training measure, at the trained model's scores."""
    train_queries: int
    interrupted: bool = False

    def table(self) -> Table:
        """Test measure, training measure, score, standard error, and whether the difference is significant."""
        rows: list[tuple[Any, ...]] = []
        for measure, comparison in self.comparisons.items():
            tests = {row.system: row for row in comparison.rows}
            for system in self.evaluation.systems:
                summary, row = self.evaluation.summary(system, measure), tests.get(system)
                rows.append((
                    str(measure), system, summary.mean, summary.standard_error,
                    None if row is None else row.test.difference, None if row is None else row.test.p,
                    "–" if row is None else {"better": "Y, better", "worse": "Y, worse"}.get(row.verdict, "N"),
                    self.effective_pairs[system],
                ))  # fmt: skip
        columns = (
            Column("test"), Column("train"), Column("score", "number"), Column("standard error", "number"),
            Column("difference", "signed"), Column("p", "p"), Column("significant"), Column("effective pairs", "count"),
        )  # fmt: skip
        title = f"{self.algorithm}, {self.train_queries:,} training and {len(self.evaluation.qids):,} test queries"
        return Table(columns, tuple(rows), title)

    def to_dict(self) -> dict[str, Any]:
        """The study as plain Python values."""
        return {
            "algorithm": self.algorithm,
            "train_queries": self.train_queries,
            "interrupted": self.interrupted,
            "effective_pairs": dict(self.effective_pairs),
            "test": {str(measure): comparison.to_dict() for measure, comparison in self.comparisons.items()},
            "scores": self.evaluation.to_dict()["systems"],
        }


def study_measures(
    train: RankingData,
    valid: RankingData,
    test: RankingData,
    objectives: Mapping[str, str | Objective] | None = None,
    *,
    algorithm: str = "lambdamart",
    parameters: Mapping[str, Any] | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    said: Said | None = None,
) -> MeasureStudy:
    """Train once for each measure and test every model on all of them, with paired t-tests at 95 %.

    As in the paper, p-values are not corrected for their number.

    Parameters
    ----------
    train
        data to learn from
    valid
        data that chooses each model's number of steps, by its own measure
    test
        data on which all models are tested
    objectives
        objectives by the measure that they train for; the paper's four unless given
    algorithm
        ``lambdamart`` or ``lambdarank``
    parameters
        of the learner
    random_state
        seed of all trainings
    n_jobs
        threads; all cores by default
    said
        called after each training with the measure and its mean on the validation data

    Returns
    -------
    MeasureStudy
        values per query, comparisons, and the number of effective pairs by training measure

    Examples
    --------
    >>> from gradrank.data.artificial import make_splits
    >>> data = make_splits(30, n_docs=10, n_features=5, random_state=1)
    >>> objectives = {"NDCG": "Lambda(NDCG)", "MRR": "Lambda(MRR)"}
    >>> study = study_measures(data["train"], data["vali"], data["test"], objectives,
    ...                        parameters={"n_estimators": 5, "min_child_samples": 5})
    >>> [row[:2] for row in study.table().rows]
    [('NDCG', 'NDCG'), ('NDCG', 'MRR'), ('MRR', 'NDCG'), ('MRR', 'MRR')]
    """
    wanted = dict(objectives or PAPER_OBJECTIVES)
    parsed = {name: as_objective(item) for name, item in wanted.items()}
    learners = {
        name: learner_for(algorithm, parsed[name], single_measure(name), parameters or {}, random_state, n_jobs)
        for name in wanted
    }
    scores, interrupted = train_all(learners, train, valid, {"train": train, "test": test}, None, said)
    return with_tests(algorithm, parsed, scores, train, test, random_state, n_jobs, interrupted)


def with_tests(
    algorithm: str,
    objectives: Mapping[str, Objective],
    scores: Mapping[str, Mapping[str, Any]],
    train: RankingData,
    test: RankingData,
    random_state: int,
    n_jobs: int | None,
    interrupted: bool = False,
) -> MeasureStudy:
    """The study of models whose scores on training (``train``) and test data (``test``) are there."""
    measures = {name: single_measure(name) for name in scores}
    systems = {name: found["test"] for name, found in scores.items()}
    evaluation = evaluate(test, systems, list(measures.values()), n_jobs=n_jobs)
    comparisons = {}
    for name in scores if len(scores) > 1 else ():
        alone = evaluate(test, systems, [measures[name]], n_jobs=n_jobs)
        comparisons[measures[name]] = compare(alone, baseline=name, correction=None)
    counts = {}
    for name, found in scores.items():
        bound = objectives[name].bind(train, random_state=random_state, n_jobs=n_jobs)
        counts[name] = bound.gradients(found["train"], count_pairs=True).effective_pairs
    return MeasureStudy(algorithm, evaluation, comparisons, counts, train.n_queries, interrupted)


def study_pairs(
    train: RankingData,
    valid: RankingData,
    test: RankingData,
    sizes: Sequence[int],
    objectives: Mapping[str, str | Objective] | None = None,
    **options: Any,
) -> list[MeasureStudy]:
    """Repeat :func:`study_measures` with parts of the training data (figure 5).

    Parameters
    ----------
    train, valid, test, objectives
        as :func:`study_measures` takes them
    sizes
        numbers of training queries; the first so many are taken
    **options
        further arguments of :func:`study_measures`

    Examples
    --------
    >>> from gradrank.data.artificial import make_splits
    >>> data = make_splits(30, n_docs=10, n_features=5, random_state=1)
    >>> studies = study_pairs(data["train"], data["vali"], data["test"], [10, 30],
    ...                       {"NDCG": "Lambda(NDCG)", "MRR": "Lambda(MRR)"},
    ...                       parameters={"n_estimators": 5, "min_child_samples": 5})
    >>> pairs_table(studies, "MRR").columns[2].name
    'effective pairs'
    """
    for size in sizes:
        if not 1 <= size <= train.n_queries:
            raise TrainingError(f"sizes has {size}, expected a number of queries from 1 to {train.n_queries}")
    return [study_measures(train.take_queries(np.arange(size)), valid, test, objectives, **options) for size in sizes]


def pairs_table(studies: Sequence[MeasureStudy], measure: Measure | str) -> Table:
    """Test accuracy by one measure against the number of effective pairs, for every training measure and size."""
    target = single_measure(measure)
    rows = [
        (system, study.train_queries, study.effective_pairs[system], summary.mean, summary.standard_error)
        for study in studies
        for system in study.evaluation.systems
        for summary in [study.evaluation.summary(system, target)]
    ]
    columns = (
        Column("train"), Column("queries", "count"), Column("effective pairs", "count"),
        Column(str(target), "number"), Column("standard error", "number"),
    )  # fmt: skip
    return Table(columns, tuple(sorted(rows, key=lambda row: (row[0], row[1]))), f"{target} on the test data")

"""Comparing λ constructions by their accuracy on validation data (Donmez et al. 2009, tables 1 and 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gradrank.data.ranking_data import RankingData
from gradrank.evaluation import Comparison, Evaluation, compare, evaluate
from gradrank.evaluation.tables import Column, Table
from gradrank.experiments.training import Said, learner_for, single_measure, train_all
from gradrank.learners.algorithms import algorithm as learner_named
from gradrank.learners.algorithms import effective_parameters, parameters_of
from gradrank.learners.base.estimator import RankingEstimator
from gradrank.measures import Measure
from gradrank.objectives import CONSTRUCTIONS, Construction, constructed, construction_of

REFERENCE = "ranknet-weight-pairs"
"""The construction that the others are compared with."""


@dataclass(frozen=True, eq=False)
class ConstructionStudy:
    """The λ constructions of one measure, compared on validation data."""

    measure: Measure
    algorithm: str
    evaluation: Evaluation
    comparison: Comparison | None
    """Each construction against the reference; None if only one was trained."""
    interrupted: bool = False

    def table(self) -> Table:
        """Mean, standard error, difference from the reference with its p-value; best first."""
        tests = {row.system: row for row in self.comparison.rows} if self.comparison else {}
        rows = []
        for name in self.evaluation.systems:
            summary = self.evaluation.summary(name, self.measure)
            row = tests.get(name)
            against = ("–",) if row is None else (row.verdict,)
            numbers = (None, None, None) if row is None else (row.test.difference, row.test.p, row.p_corrected)
            rows.append((name, summary.mean, summary.standard_error, *numbers, *against))
        columns = (
            Column("construction"),
            Column(str(self.measure), "number"),
            Column("standard error", "number"),
            Column("difference", "signed"),
            Column("p", "p"),
            Column("p (holm)", "p"),
            Column(f"against {self.comparison.baseline if self.comparison else REFERENCE}"),
        )
        title = f"{self.algorithm}, {len(self.evaluation.qids):,} validation queries"
        return Table(columns, tuple(sorted(rows, key=lambda row: -row[1])), title)

    def to_dict(self) -> dict[str, Any]:
        """The study as plain Python values."""
        return {
            "measure": str(self.measure),
            "algorithm": self.algorithm,
            "queries": len(self.evaluation.qids),
            "interrupted": self.interrupted,
            "constructions": {
                name: asdict(self.evaluation.summary(name, self.measure)) for name in self.evaluation.systems
            },
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
        }


def study_constructions(
    train: RankingData,
    valid: RankingData,
    measure: Measure | str = "MAP",
    *,
    constructions: Sequence[str | Construction] | None = None,
    algorithm: str = "lambdamart",
    parameters: Mapping[str, Any] | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    said: Said | None = None,
) -> ConstructionStudy:
    """Train a learner once for each λ construction of a measure and compare them on the validation data.

    As in the paper the validation data both chooses each model's number of steps and is what is reported. Ctrl-C ends
    the study with the constructions that are done.

    Parameters
    ----------
    train
        data to learn from
    valid
        data that chooses each model's number of steps, and on which the models are compared
    measure
        the measure to learn for
    constructions
        constructions to compare with ``ranknet-weight-pairs``, by name, with options if need be:
        ``"local-cost(reach=3)"``; all unless given
    algorithm
        ``lambdamart`` or ``lambdarank``
    parameters
        of the learner. Trees take gradient steps on λ's divided by their deviation unless ``step`` and ``split`` are
        among them, since not every construction has a second derivative
    random_state
        seed of all trainings
    n_jobs
        threads; all cores by default
    said
        called after each training with the construction and its mean on the validation data

    Returns
    -------
    ConstructionStudy
        values per query, and each construction compared with the reference

    Examples
    --------
    >>> from gradrank.data.artificial import make_splits
    >>> data = make_splits(30, n_docs=10, n_features=5, random_state=1)
    >>> study = study_constructions(data["train"], data["vali"], "MAP", constructions=["local-cost"],
    ...                             parameters={"n_estimators": 5, "min_child_samples": 5})
    >>> study.evaluation.systems
    ('ranknet-weight-pairs', 'local-cost')
    """
    target = single_measure(measure)
    learners = construction_learners(target, constructions, algorithm, parameters, random_state, n_jobs)
    scores, interrupted = train_all(learners, train, valid, {"": valid}, target, said)
    return compared(target, algorithm, {name: found[""] for name, found in scores.items()}, valid, n_jobs, interrupted)


def compared(
    measure: Measure,
    algorithm: str,
    systems: Mapping[str, Any],
    valid: RankingData,
    n_jobs: int | None,
    interrupted: bool = False,
) -> ConstructionStudy:
    """The study of constructions whose rankers, or scores on the validation data, are there."""
    evaluation = evaluate(valid, systems, [measure], n_jobs=n_jobs)
    comparison = compare(evaluation, baseline=REFERENCE) if len(systems) > 1 else None
    return ConstructionStudy(measure, algorithm, evaluation, comparison, interrupted)


def check_study(
    measure: Measure | str,
    constructions: Sequence[str | Construction] | None,
    algorithm: str,
    parameters: Mapping[str, Any] | None,
) -> None:
    """Find out what is wrong with the arguments of :func:`study_constructions` without any data.

    >>> check_study("MAP", ["local-cost"], "lambdamart", {"n_estimators": 5})
    """
    for learner in construction_learners(
        single_measure(measure), constructions, algorithm, parameters, 0, None
    ).values():
        effective_parameters(learner)


def construction_learners(
    measure: Measure,
    constructions: Sequence[str | Construction] | None,
    algorithm: str,
    parameters: Mapping[str, Any] | None,
    random_state: int,
    n_jobs: int | None,
) -> dict[str, RankingEstimator]:
    """A learner for each construction by its name, the reference first."""
    chosen = [construction_of(item) if isinstance(item, str) else item for item in constructions or CONSTRUCTIONS]
    named = {REFERENCE: construction_of(REFERENCE), **{_name(item): item for item in chosen}}
    alike = {"step": "gradient", "split": "mse"} if "step" in parameters_of(learner_named(algorithm)) else {}
    settings = {**alike, **(parameters or {})}
    return {
        name: learner_for(algorithm, constructed(measure, item), measure, settings, random_state, n_jobs)
        for name, item in named.items()
    }


def _name(construction: Construction) -> str:
    """The construction with the options that it was given."""
    options = ", ".join(construction.options())
    return f"{construction.name}({options})" if options else construction.name

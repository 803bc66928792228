"""Sweeps: one learner trained with several weights of the lower tiers, and the choice among the models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from gradrank.data.interpret import takes_frames
from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.evaluation.compare import Comparison, TestName, compare
from gradrank.evaluation.evaluate import Evaluation, evaluate
from gradrank.evaluation.sensitivity import warn_about_few_queries
from gradrank.evaluation.tables import Column, Table
from gradrank.learners.base.estimator import RankingEstimator
from gradrank.learners.base.fingerprint import data_fingerprint, fingerprint
from gradrank.measures import AnyMeasure, Graded, Measure, single_measures
from gradrank.models.ranker import Ranker, plain
from gradrank.models.registry import load_ranker
from gradrank.objectives import Tiered
from gradrank.runtime.files import made_folder
from gradrank.selection.choice import Choice, choose
from gradrank.selection.weights import WEIGHTS, Shares, Weight, named_shares, reweighted

# Parameters that do not change what is learned.
_NO_MATTER = ("n_jobs", "checkpoint", "checkpoint_every", "callbacks", "warm_start", "diagnostics")

Fit = Callable[[str, RankingEstimator, RankingData, RankingData], None]
"""Trains the learner of a model's name on training and validation data."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """The models of a sweep, the first one without the lower tiers, and the one that was chosen."""

    weights: Mapping[str, Shares]
    """Weight of each lower tier, by name of the model."""
    rankers: Mapping[str, Ranker]
    evaluations: Mapping[str, Evaluation]
    """``valid``, on which the choice was made, and ``test`` if it was given."""
    choice: Choice
    test: TestName = "t"

    @property
    def ranker(self) -> Ranker:
        """The chosen model."""
        return self.rankers[self.choice.system]

    def comparison(self, data: str = "valid") -> Comparison | None:
        """Every model against the one with weight 0, not corrected for their number; None if there is no other."""
        if len(self.rankers) < 2:
            return None
        evaluation = self.evaluations[data]
        return compare(
            evaluation, baseline=self.choice.baseline, test=self.test, level=self.choice.level, correction=None
        )

    def efficient(self, data: str = "valid") -> list[str]:
        """Models that no other model equals on all measures and beats on one, by means."""
        evaluation = self.evaluations[data]
        means = np.array([[evaluation.summary(name, m).mean for m in evaluation.measures] for name in self.rankers])
        return [
            name
            for name, own in zip(self.rankers, means, strict=True)
            if not ((means >= own).all(axis=1) & (means > own).any(axis=1)).any()
        ]

    def table(self, data: str = "valid") -> Table:
        """One row per model: means, differences from weight 0 with p-values, and what was decided."""
        evaluation = self.evaluations[data]
        comparison = self.comparison(data)
        rows_of = {(row.system, row.measure): row for row in comparison.rows} if comparison else {}
        columns = [Column("weight", "text"), Column("steps", "count")]
        for measure in evaluation.measures:
            columns += [Column(str(measure), "number"), Column(f"Δ {measure}", "signed"), Column(f"p {measure}", "p")]
        columns += [Column("efficient"), Column("chosen")]
        efficient = self.efficient(data)
        rows = []
        for name in self.weights:
            cells: list[Any] = [name.removeprefix("w="), self.rankers[name].training.get("best")]
            for measure in evaluation.measures:
                row = rows_of.get((name, measure))
                cells += [evaluation.summary(name, measure).mean]
                cells += [None, None] if row is None else [row.test.difference, row.test.p]
            cells += ["yes" if name in efficient else "", "chosen" if name == self.choice.system else ""]
            rows.append(tuple(cells))
        title = f"{data}: {len(evaluation.qids):,} queries; Δ and p against weight 0, not corrected for many tests"
        return Table(tuple(columns), tuple(rows), title)

    def to_dict(self) -> dict[str, Any]:
        """Everything but models and values per query, as plain Python values."""
        comparisons = {name: self.comparison(name) for name in self.evaluations}
        return {
            "weights": {name: list(shares) for name, shares in self.weights.items()},
            "steps": {name: ranker.training.get("best") for name, ranker in self.rankers.items()},
            "choice": self.choice.to_dict(),
            "data": {
                name: {
                    "means": evaluation.means(),
                    "efficient": self.efficient(name),
                    "comparison": None if (found := comparisons[name]) is None else found.to_dict(),
                }
                for name, evaluation in self.evaluations.items()
            },
        }


@takes_frames("train", "valid")
def sweep(
    learner: RankingEstimator,
    train: RankingData,
    valid: RankingData,
    weights: Sequence[Weight] = WEIGHTS,
    *,
    test_data: RankingData | None = None,
    measures: Sequence[Measure] | Graded | None = None,
    level: float = 0.05,
    margin: float | None = None,
    test: TestName = "t",
    folder: str | Path | None = None,
    fit: Fit | None = None,
) -> Sweep:
    """Train a graded objective with several weights of its lower tiers, and choose one of the models.

    Weight 0, the upper tier alone, is always among them: it is the baseline that must not be harmed. The rule of choice
    is :func:`gradrank.selection.choice.choose`.

    Parameters
    ----------
    learner
        template of all trainings; its objective is tiered: ``"Tiered(NDCG, CNDCG(label=clicks))"``
    train
        data to learn from
    valid
        data that chooses each model's number of steps, and the weight
    weights
        shares of all lower tiers together, from 0 to 1, which keep their proportions; or one share for each of them,
        such as those of :func:`gradrank.selection.weights.spread_weights`
    test_data
        data on which all models are evaluated as well; it decides nothing
    measures
        measures that decide, the trusted one first; the learner's unless given
    level, margin, test
        of the choice, see :func:`gradrank.selection.choice.choose`
    folder
        where finished models are kept, so that a sweep that was killed goes on, and weights can be added later
    fit
        called with each model's name, learner, training and validation data instead of
        ``learner.fit(train, valid=valid)``, to show progress

    Returns
    -------
    Sweep
        all models with their evaluations, and the choice

    Warns
    -----
    FewQueriesWarning
        if the validation queries are too few to see harm to the trusted measure

    Examples
    --------
    >>> from gradrank.data.artificial import make_splits
    >>> from gradrank.learners import LambdaMART
    >>> data = make_splits(200, n_docs=10, n_features=5, random_state=1, clicks=True)
    >>> learner = LambdaMART("Tiered(NDCG@3, CNDCG@3)", n_estimators=10, min_child_samples=5)
    >>> found = sweep(learner, data["train"], data["vali"], [0.2, 0.5])
    >>> list(found.rankers), found.ranker is found.rankers[found.choice.system]
    (['w=0', 'w=0.2', 'w=0.5'], True)
    """
    objective = graded_objective(learner)
    grid = named_shares(objective, weights)
    measure = _measure(learner, objective)
    folder = None if folder is None else made_folder(Path(folder))
    parts = single_measures(measure if measures is None else measures)
    rankers: dict[str, Ranker] = {}
    for name, shares in grid.items():
        member = clone(learner).set_params(objective=reweighted(objective, shares), measure=measure)
        rankers[name] = trained(member, name, train, valid, folder, fit)
    sets = {"valid": valid} if test_data is None else {"valid": valid, "test": test_data}
    evaluations = {name: evaluate(data, rankers, parts) for name, data in sets.items()}
    choice = choose(evaluations["valid"], parts, level=level, margin=margin, test=test)
    trusted = {name: evaluations["valid"].values[name][parts[0]] for name in rankers}
    remedy = "take more validation queries" + ("" if margin is not None else ", or rule out harm with a margin")
    warn_about_few_queries(trusted, parts[0], "the choice of the weight", level=level, remedy=remedy)
    return Sweep(grid, rankers, evaluations, choice, test)


def graded_objective(learner: RankingEstimator) -> Tiered:
    """The graded objective of a learner; another is an error."""
    objective = learner._objective()
    if not isinstance(objective, Tiered):
        raise TrainingError(f"the objective is {objective}, expected tiers: Tiered(NDCG, CNDCG(label=clicks))")
    return objective


def _measure(learner: RankingEstimator, objective: Tiered) -> AnyMeasure:
    """The learner's measure; without one that of all tiers, also of those that the template gives no weight."""
    if getattr(learner, "measure", None) is not None:
        return learner._measure()
    return Graded(tuple(tier.chosen_by for tier in objective.tiers))


def trained(
    learner: RankingEstimator, name: str, train: RankingData, valid: RankingData, folder: Path | None, fit: Fit | None
) -> Ranker:
    """The model of a member: the one in the folder, or a newly trained one, which is put there."""
    run = _run_facts(learner, train, valid)
    path = None if folder is None else folder / f"{name}.json"
    if path is not None and path.exists():
        ranker = load_ranker(path)
        kept = ranker.training.get("sweep", {})
        differing = [key for key in sorted({*run, *kept}) if kept.get(key) != run.get(key)]
        if differing:
            raise TrainingError(
                f"{path}: belongs to another sweep ({', '.join(differing)} differ); delete it or choose another folder"
            )
        return ranker
    state = None
    if path is not None and "checkpoint" in learner.get_params(deep=False):
        state = path.with_name(path.name + ".checkpoint")
        learner.set_params(checkpoint=state)
    if fit is None:
        learner.fit(train, valid=valid)
    else:
        fit(name, learner, train, valid)
    if learner.ranker_.training.get("interrupted"):
        raise KeyboardInterrupt
    if path is not None:
        learner.ranker_.remember(sweep=run)
        learner.ranker_.save(path)
        if state is not None:
            state.unlink(missing_ok=True)
    return learner.ranker_


def _run_facts(learner: RankingEstimator, train: RankingData, valid: RankingData) -> dict[str, Any]:
    """What must be the same for a finished model to be taken as it is."""
    facts: dict[str, Any] = {
        name: value for name, value in learner.get_params(deep=False).items() if name not in _NO_MATTER
    }
    if isinstance(facts.get("base"), Ranker):
        facts["base"] = fingerprint(np.asarray(facts["base"].grouped_scores(train)))
    facts["data"] = [data_fingerprint(data) for data in (train, valid)]
    found: dict[str, Any] = plain(facts)
    return found

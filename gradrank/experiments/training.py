"""Training several learners on the same data in order to compare them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.experiments.recipe import Run
from gradrank.experiments.trainings import Training, chosen_value, trained
from gradrank.learners.algorithms import algorithm as learner_named
from gradrank.learners.algorithms import parameters_of
from gradrank.learners.base.estimator import RankingEstimator
from gradrank.measures import Measure, as_measure
from gradrank.models.ranker import Ranker
from gradrank.objectives import Objective

Said = Callable[[str, float], None]
"""Called after each training with its name and its mean on the validation data."""


def single_measure(measure: Measure | str) -> Measure:
    """A measure from itself or its name; a graded one is refused.

    >>> single_measure("map(rel=2)")
    MAP(rel=2)
    """
    made = as_measure(measure)
    if len(made.parts) > 1:
        raise TrainingError(f"{made} is a graded measure, expected a single one")
    return made.parts[0]


def learner_for(
    algorithm: str,
    objective: Objective,
    measure: Measure,
    parameters: Mapping[str, Any],
    random_state: int,
    n_jobs: int | None,
) -> RankingEstimator:
    """A learner by its name, for an objective, whose number of steps ``measure`` chooses.

    >>> from gradrank.objectives import Lambda
    >>> target = single_measure("MAP")
    >>> learner_for("lambdamart", Lambda(target), target, {"n_estimators": 5}, 0, None).n_estimators
    5
    """
    kind = learner_named(algorithm)
    known = parameters_of(kind)
    if "objective" not in known:
        raise TrainingError(f"{algorithm} takes no objective; lambdamart and lambdarank do")
    for name in parameters:
        if name not in known or name in ("objective", "measure"):
            raise TrainingError(f"{algorithm} has no parameter {name!r} to set; it has {', '.join(known)}")
    given = {
        "random_state": random_state,
        "n_jobs": n_jobs,
        "objective": str(objective),
        "measure": str(measure),
        **parameters,
    }
    return kind(**{name: value for name, value in given.items() if name in known})


def train_all(
    learners: Mapping[str, RankingEstimator],
    train: RankingData,
    valid: RankingData,
    scored: Mapping[str, RankingData],
    decider: Measure | None,
    said: Said | None,
) -> tuple[dict[str, dict[str, Any]], bool]:
    """Scores of every learner's model on some data sets; Ctrl-C keeps the learners that are done, if any is."""
    scores: dict[str, dict[str, Any]] = {}
    for name, learner in learners.items():
        try:
            ranker = learner.fit(train, valid=valid).ranker_
            if ranker.training.get("interrupted"):
                raise KeyboardInterrupt  # a learner keeps what it has; a study compares complete trainings only
        except KeyboardInterrupt:
            if not scores:
                raise
            return scores, True
        scores[name] = {key: ranker.predict(data) for key, data in scored.items()}
        if said is not None:
            measure = decider or single_measure(name)
            said(name, measure.mean(ranker.predict(valid), valid))
    return scores, False


def best_of(
    candidates: Mapping[str, Sequence[RankingEstimator]],
    algorithm: str,
    train: RankingData,
    valid: RankingData,
    run: Run,
) -> dict[str, Ranker]:
    """For each name the ranker of the learner that is best on the validation data; trainings are kept."""
    trainings = [
        Training(f"{name}, {number} of {len(learners)}", algorithm, learner.get_params(deep=False), train, valid)
        for name, learners in candidates.items()
        for number, learner in enumerate(learners, 1)
    ]
    rankers = iter(trained(trainings, run))
    return {name: max((next(rankers) for _ in learners), key=chosen_value) for name, learners in candidates.items()}

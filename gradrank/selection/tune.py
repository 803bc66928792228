"""The parameters of a learner, searched by cross-validation over queries."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gradrank.data.doubts import training_doubts
from gradrank.data.fingerprint import data_fingerprint
from gradrank.data.interpret import takes_frames
from gradrank.data.ranking_data import RankingData
from gradrank.data.splits import check_folds
from gradrank.errors import DataError, DoubtfulDataWarning, GradrankWarning
from gradrank.learners.base.fingerprint import fingerprint
from gradrank.learners.base.loop import Callback
from gradrank.learners.base.search import Searched
from gradrank.measures import AnyMeasure, as_measure
from gradrank.models.ranker import Ranker
from gradrank.selection.pool import pooled, together
from gradrank.selection.processes import processes_for
from gradrank.selection.space import Space, space_of
from gradrank.selection.study import Study
from gradrank.selection.team import Asked
from gradrank.selection.trials import Cut, Trial
from gradrank.selection.tuned import Tuned
from gradrank.selection.tuner import Listener, Tuner

DEFAULT_BUDGET = 300.0
DEFAULT_FOLDS = 4


@takes_frames("train", "valid")
def tune(
    train: RankingData,
    valid: RankingData | None = None,
    measure: AnyMeasure | str = "NDCG@10",
    *,
    algorithm: str = "lambdamart",
    search: Mapping[str, str | Searched] | None = None,
    fixed: Mapping[str, Any] | None = None,
    budget: float | None = None,
    trials: int | None = None,
    folds: int = DEFAULT_FOLDS,
    apart: bool = False,
    prune: bool = True,
    random_state: int = 0,
    processes: int | None = None,
    n_jobs: int | None = None,
    storage: str | Path | None = None,
    refit: bool = True,
    callbacks: Sequence[Callback] = (),
    listener: Listener | None = None,
    asked: Asked | None = None,
) -> Tuned:
    """Search the parameters of a learner by cross-validation, and train a model with the best of them.

    The queries of training and validation data are cut into folds; a trial trains a setting once for each fold without
    its queries, and is judged on them. The first trial is the learner as it is without options, so that the result is
    not worse than that in cross-validation. How many trees, rounds or epochs there are is not guessed: they are watched
    on the queries that are left out; a fold is judged at the number that is best on the others. The value of the best
    of many trials is nevertheless higher than what new queries will show: judge the model on queries that have not
    chosen it.

    Parameters
    ----------
    train
        data to learn from
    valid
        more data to learn from, unless it is to stay apart
    measure
        what to be good at, or its name; of a graded one the sampler sees mainly the first part, the choice is the
        measure's
    algorithm
        name of the learner
    search
        where to look for parameters, if not where their declaration says: ``{"num_leaves": "4..128:log"}``
    fixed
        parameters that are not searched, with their values
    budget
        time for everything in seconds, the final training included; 300 unless it or ``trials`` is given
    trials
        number of trials, those in ``storage`` included; with one process such a search repeats exactly
    folds
        number of folds
    apart
        whether ``valid`` must not be learned from: every trial is trained on ``train`` and judged on ``valid``
    prune
        whether trials end early that are worse than half of the others at the same step
    random_state
        seed of folds, sampler and trainings
    processes
        how many trials run at the same time; by default as many as there are cores, but one for data that is small or
        very large
    n_jobs
        threads of all processes together; all cores by default
    storage
        SQLite file that keeps the trials; a search that was ended goes on from there
    refit
        whether a model is trained on all queries at the end
    callbacks
        called after each step of each training; with one process only
    listener
        told of each trial that came to an end
    asked
        tells whether the user wants to stop: the best so far is then trained

    Returns
    -------
    Tuned
        the best setting, its model, and all trials

    Examples
    --------
    >>> from gradrank.data.artificial import make_splits
    >>> data = make_splits(40, n_docs=10, n_features=5, random_state=1)
    >>> found = tune(data["train"], data["vali"], "NDCG@5", trials=3, folds=2, fixed={"n_estimators": 20}, processes=1)
    >>> len(found.trials), found.best.value >= found.defaults.value
    (3, True)
    """
    if trials is not None and trials < 1:
        raise DataError(f"trials is {trials!r}, expected a whole number of 1 or more")
    if budget is None:
        budget = DEFAULT_BUDGET if trials is None else math.inf
    if not isinstance(budget, int | float) or not budget > 0.0:
        raise DataError(f"budget is {budget!r}, expected a positive number of seconds")
    measure = as_measure(measure)
    began = time.time()
    space = space_of(algorithm, measure, search=search, fixed=fixed, random_state=random_state)
    learned, held = pooled(train, valid, apart)
    if held is None:
        check_folds("folds", folds, learned.n_queries)
    for doubt in training_doubts(learned, {} if held is None else {"valid": held}, measure.parts[0].source):
        warnings.warn(doubt, DoubtfulDataWarning, stacklevel=2)
    pool = learned if held is None else together(learned, held)
    cut = Cut(folds, random_state) if held is None else Cut(1, random_state, apart=learned.n_queries)
    if processes is None:
        processes = processes_for(pool, budget, n_jobs)
    study = Study(
        space, measure, _facts(space, measure, pool, cut, prune),
        storage=storage, random_state=random_state, parallel=processes > 1,
    )  # fmt: skip
    with study:
        tuner = Tuner(
            study, space, measure, pool, cut, began + budget, trials, prune, processes, n_jobs, callbacks, listener,
            asked,
        )  # fmt: skip
        tuner.run()
        found, importances = study.trials(), study.importances()
    best = _best(found, measure)
    result = Tuned(
        space, measure, tuple(found), best.number, importances, cut, learned, time.time() - began, tuner.stopped
    )
    if not refit:
        return result
    model = refitted(result, best, n_jobs=n_jobs)
    result = replace(result, fitted=model, seconds=time.time() - began)
    model.remember(tuning=result.facts())
    return result


def refitted(result: Tuned, trial: Trial, *, n_jobs: int | None = None) -> Ranker:
    """A model of all queries to learn from, with a trial's parameters and number of steps.

    Parameters
    ----------
    result
        A search.
    trial
        One of its trials.
    n_jobs
        Threads to use; all cores by default.
    """
    learner = result.space.kind(**result.parameters_of(trial), n_jobs=n_jobs)
    with warnings.catch_warnings():
        # Said before the search.
        warnings.simplefilter("ignore", GradrankWarning)
        return learner.fit(result.pool).ranker_


def _best(trials: Sequence[Trial], measure: AnyMeasure) -> Trial:
    """The best trial by the measure, the first among equals."""
    done = [trial for trial in trials if trial.state == "complete"]
    if not done:
        raise KeyboardInterrupt
    return done[measure.best([trial.values for trial in done])]


def _facts(space: Space, measure: AnyMeasure, pool: RankingData, cut: Cut, prune: bool) -> dict[str, Any]:
    """What must be the same for a search to go on."""
    weights = () if pool.document_weight is None else (pool.document_weight,)
    base = space.common.get("base")
    bases = [Path(base).read_bytes()] if isinstance(base, str) and Path(base).is_file() else []
    return {
        **space.to_dict(),
        "base": [fingerprint(np.frombuffer(content, dtype=np.uint8)) for content in bases],
        "measure": str(measure),
        "data": [data_fingerprint(pool), fingerprint(*weights)],
        "folds": cut.folds,
        "seed": cut.seed,
        "valid-apart": cut.apart,
        "prune": prune,
    }

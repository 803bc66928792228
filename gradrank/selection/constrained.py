"""Improve one measure and keep others: a walk from a baseline towards the goal, for as long as a test allows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from gradrank.combine import Combiner
from gradrank.data.interpret import takes_frames
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError, MeasureError, TrainingError
from gradrank.evaluation.significance import standard_error
from gradrank.learners.base.estimator import RankingEstimator
from gradrank.measures import Graded, Measure, as_measure, bind_measures, bound_values
from gradrank.models.ranker import Ranker
from gradrank.models.registry import under_names_of
from gradrank.models.trees.merge import merged
from gradrank.models.weighted_sum import WeightedSum
from gradrank.objectives import Objective, Scheduled, Tiered, recommended
from gradrank.runtime.files import made_folder
from gradrank.selection.improvement import Improvement, Stop
from gradrank.selection.keep import Keep
from gradrank.selection.sweep import Fit, trained

WEIGHTS = (0.3, 0.7)
"""Weights of the goal between the baseline and a ranker that is trained for the goal alone."""
_STEPS = 24
"""Points of the walk between two rankers."""

Values = Mapping[Measure, NDArray[np.float64]]


@takes_frames("train", "valid")
def improve(
    learner: RankingEstimator,
    train: RankingData,
    valid: RankingData,
    goal: Measure | str,
    keep: Keep | str | Sequence[Keep | str],
    *,
    held_out: RankingData | None = None,
    baseline: Ranker | None = None,
    weights: Sequence[float] = WEIGHTS,
    level: float = 0.05,
    random_state: int = 0,
    folder: str | Path | None = None,
    fit: Fit | None = None,
) -> Improvement:
    """Improve a measure as far as others can be kept, by a test on data that chose nothing before.

    A few rankers are trained: for the measure to keep, for both with growing weights of the goal, and for the goal
    alone. The walk goes from the first to the last, over mixtures of neighbors, in an order that is fixed before the
    data is seen; each point is tested for every constraint by a one-sided t-test over queries, and the walk ends at the
    first that fails. Tests in a fixed order need no correction for their number: the chance that *any* allowed point
    breaks a constraint in truth is at most ``level``. Of the allowed points the one with the best goal is taken, moved
    to the exact optimum between its neighbors if the test allows that too.

    Parameters
    ----------
    learner
        template of all trainings; its objective and measure are replaced
    train
        data to learn from
    valid
        data that chooses each ranker's number of steps
    goal
        measure to improve
    keep
        constraints, such as ``"NDCG@10 >= 99%"`` (of the baseline) or ``"MRR >= 0.3"``; the first is what the baseline
        is trained for
    held_out
        data for the walk; a random half of the validation queries, which then choose no steps, unless given
    baseline
        ranker that shares refer to and the walk starts from; one trained for the first measure to keep unless given
    weights
        weights of the goal of the rankers between
    level
        chance of an allowed point that breaks a constraint
    random_state
        seed of the halves
    folder
        where finished rankers are kept, so that a run that was killed goes on
    fit
        as for :func:`gradrank.selection.sweep.sweep`

    Returns
    -------
    Improvement
        the ranker and the walk

    Examples
    --------
    >>> from gradrank.data.artificial import make_splits
    >>> from gradrank.learners import LambdaMART
    >>> data = make_splits(200, n_docs=10, n_features=5, random_state=1, clicks=True)
    >>> learner = LambdaMART(n_estimators=20, min_child_samples=5)
    >>> found = improve(learner, data["train"], data["vali"], "CNDCG(label=clicks)@3", "NDCG@10 >= 95%")
    >>> found.chosen.holds, found.chosen.goal > found.stops[0].goal
    (True, True)
    """
    target = as_measure(goal)
    if not isinstance(target, Measure):
        raise MeasureError(f"the goal is {target}, expected one measure")
    keeps = tuple(Keep.parse(item) if isinstance(item, str) else item for item in _listed(keep))
    if not keeps:
        raise TrainingError("there is nothing to keep, expected at least one constraint like 'NDCG@10 >= 99%'")
    if not 0.0 < level < 0.5:
        raise TrainingError(f"the level is {level!r}, expected a number between 0 and 0.5")
    if any(not 0.0 < weight < 1.0 for weight in weights):
        raise TrainingError(f"weights are {list(weights)}, expected numbers between 0 and 1")
    if held_out is None:
        valid, held_out = _halves(valid, random_state)
    place = None if folder is None else made_folder(Path(folder))
    rankers: dict[str, Ranker] = {} if baseline is None else {"baseline": under_names_of(baseline, train)}
    for name, (objective, measure) in _members(keeps, target, weights).items():
        member = clone(learner).set_params(objective=objective, measure=measure)
        rankers[name] = trained(member, name, train, valid, place, fit)
    return _walked(rankers, held_out, target, keeps, level)


def _listed(keep: Keep | str | Sequence[Keep | str]) -> Sequence[Keep | str]:
    return [keep] if isinstance(keep, Keep | str) else keep


def _halves(data: RankingData, random_state: int) -> tuple[RankingData, RankingData]:
    if data.n_queries < 4:
        raise DataError(f"there are {data.n_queries} validation queries, expected at least 4, or data for the walk")
    order = np.random.default_rng(random_state).permutation(data.n_queries)
    half = data.n_queries // 2
    return data.take_queries(np.sort(order[:half])), data.take_queries(np.sort(order[half:]))


def _members(
    keeps: Sequence[Keep], goal: Measure, weights: Sequence[float]
) -> dict[str, tuple[Objective, Measure | Graded]]:
    """Objective and measure of each training, from what is kept to the goal alone."""
    kept = tuple(dict.fromkeys(keep.measure for keep in keeps))
    found: dict[str, tuple[Objective, Measure | Graded]] = {"w=0": (recommended(kept[0]), kept[0])}
    for weight in sorted(set(weights)):
        found[f"w={weight:g}"] = (_mixed(kept, goal, weight), Graded((kept[0], goal)))
    found["w=1"] = (recommended(goal), goal)
    return found


def _mixed(kept: Sequence[Measure], goal: Measure, weight: float) -> Objective:
    """Both together: tiers if they look at different labels, else a mixture of all pairs."""
    upper = list({measure.source: measure for measure in reversed(kept)}.values())[::-1]
    if goal.source in [measure.source for measure in upper]:
        return Scheduled(recommended(kept[0]), recommended(goal), w0=weight, eta=0.0)
    shares = [round((1.0 - weight) / len(upper), 12)] * len(upper)
    return Tiered(tuple(recommended(measure) for measure in (*upper, goal)), (*shares[1:], weight))


# ---------------------------------------------------------------------- the walk
class _Walk:
    """The data of the walk with the rankers' scores, all of one spread, and what the baseline reaches."""

    def __init__(
        self, rankers: Mapping[str, Ranker], data: RankingData, goal: Measure, keeps: Sequence[Keep], level: float
    ) -> None:
        self.data, self.goal, self.keeps, self.level = data, goal, keeps, level
        measures = list(dict.fromkeys([goal, *(keep.measure for keep in keeps)]))
        self._bound = bind_measures(measures, data)
        self.scores = {name: ranker.grouped_scores(data) for name, ranker in rankers.items()}
        # Mixtures by shares mean little between scores of different spread.
        self.scale = {name: _spread(column, data.indptr) for name, column in self.scores.items()}
        self._baseline: Values = self.values(self.scores[next(iter(rankers))])

    def values(self, scores: NDArray[np.float64]) -> Values:
        return bound_values(self._bound, scores)

    def weights(self, first: str, second: str, share: float) -> tuple[float, float]:
        return (1.0 - share) / self.scale[first], share / self.scale[second]

    def stop(self, first: str, second: str, share: float) -> Stop:
        one, two = self.weights(first, second, share)
        # Added up as a weighted sum of rankers does.
        values = self.values(one * self.scores[first] + two * self.scores[second])
        bounds = tuple(
            _lower_bound(keep.excess(values[keep.measure], self._baseline[keep.measure]), self.level)
            for keep in self.keeps
        )
        means = tuple(float(np.nanmean(values[keep.measure])) for keep in self.keeps)
        return Stop(first, second, share, float(np.nanmean(values[self.goal])), means, bounds)

    def refined(self, stop: Stop, last: Stop) -> Stop:
        """The exact best mixture between the neighbors of a point, if the test allows it; else the point."""
        width = 1.0 / _STEPS
        end = last.share if (last.first, last.second) == (stop.first, stop.second) else 1.0
        low, high = max(0.0, stop.share - width), min(end, stop.share + width)
        one, two = (self.scores[name] / self.scale[name] for name in (stop.first, stop.second))
        if not low < high:
            return stop
        found = Combiner(self.data, self.goal).search(one, two, form="convex", low=low, high=high)
        exact = self.stop(stop.first, stop.second, found.alpha)
        return exact if exact.holds and exact.goal > stop.goal else stop


def _walked(
    rankers: Mapping[str, Ranker], data: RankingData, goal: Measure, keeps: tuple[Keep, ...], level: float
) -> Improvement:
    walk = _Walk(rankers, data, goal, keeps, level)
    names = list(rankers)
    stops = [walk.stop(names[0], names[1], 0.0)]
    if not stops[0].holds:
        broken = [
            f"{keep} (mean {mean:.4f}, bound of the excess {bound:+.4f})"
            for keep, mean, bound in zip(keeps, stops[0].kept, stops[0].bounds, strict=True)
            if not bound >= 0.0
        ]
        raise TrainingError(
            f"the baseline itself does not keep {broken[0]} on {data.n_queries:,} queries: take more queries, a lower "
            "bound, or a better baseline"
        )
    for first, second in pairwise(names):
        for step in range(1, _STEPS + 1):
            stops.append(walk.stop(first, second, step / _STEPS))
            if not stops[-1].holds:
                break
        if not stops[-1].holds:
            break
    allowed = [stop for stop in stops if stop.holds]
    best = max(allowed, key=lambda stop: stop.goal)
    chosen = best if best == stops[0] else walk.refined(best, allowed[-1])
    stops = [chosen if stop == best else stop for stop in stops]
    one, two = walk.weights(chosen.first, chosen.second, chosen.share)
    parts = [(one, rankers[chosen.first])] + ([(two, rankers[chosen.second])] if two else [])
    ranker = rankers[names[0]] if chosen == stops[0] else merged(WeightedSum(parts))
    found = Improvement(ranker, goal, keeps, level, data.n_queries, tuple(stops), chosen, rankers)
    ranker.remember(improvement={key: value for key, value in found.to_dict().items() if key != "walk"})
    return found


def _spread(scores: NDArray[np.float64], indptr: NDArray[np.int64]) -> float:
    """Standard deviation of the scores within queries; 1 if they are all the same."""
    sizes = np.diff(indptr)
    means = np.add.reduceat(scores, indptr[:-1]) / sizes
    spread = float(np.sqrt(np.mean((scores - np.repeat(means, sizes)) ** 2)))
    return spread if spread > 0.0 else 1.0


def _lower_bound(excess: NDArray[np.float64], level: float) -> float:
    """Lower end of the one-sided interval of the mean; −inf if there are too few queries to tell.

    >>> round(_lower_bound(np.array([1.0, 2.0, 3.0]), 0.05), 4)  # 2 − 2.92/√3
    0.3141
    """
    from scipy.special import stdtrit

    known = excess[~np.isnan(excess)]
    if len(known) < 2:
        return -np.inf
    error = standard_error(known)
    return float(known.mean() - (float(stdtrit(len(known) - 1, 1.0 - level)) * error if error > 0.0 else 0.0))

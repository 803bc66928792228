"""The test of local optimality: random directions, then one weight at a time (Donmez et al. 2009, §5 and §7.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError
from gradrank.measures import Measure
from gradrank.models.ranker import Ranker
from gradrank.optimality.directions import direction_count, random_direction
from gradrank.optimality.result import OptimalityResult, Scale
from gradrank.optimality.terrain import Changes, Terrain

STEPS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""The paper's steps."""
FINE_STEPS = tuple(round(step / 100, 3) for step in STEPS)
"""The paper's second set of steps, 0.001 to 0.01."""

# Directions that share one pass over the data; progress is told after each.
_BATCH = 16
# Stream from which the single weights are drawn; directions take the numbers from 0 on.
_WEIGHT_STREAM = 1 << 32


@dataclass(frozen=True)
class Tried:
    """How far a test is, told after each batch of directions."""

    done: int
    """Directions tried, random ones and single weights up and down."""
    total: int
    improving: int
    value: float
    """The measure at the weights."""
    best: float
    """The highest value found, at the weights or elsewhere."""
    moves: int = 0
    """Moves made so far when climbing."""


@dataclass(frozen=True)
class Plan:
    """What a test tries, checked."""

    epsilon: float = 0.01
    delta: float = 0.01
    steps: tuple[float, ...] = STEPS
    scale: Scale = "relative"
    single_weights: bool = True

    def __post_init__(self) -> None:
        direction_count(self.epsilon, self.delta)
        if not self.steps:
            raise DataError("there are no steps, expected one or more")
        for step in self.steps:
            if not 0.0 < step < float("inf"):
                raise DataError(f"a step is {step}, expected a number above 0")
        if list(self.steps) != sorted(set(self.steps)):
            raise DataError("steps are not in ascending order, each once")
        if self.scale not in ("relative", "absolute"):
            raise DataError(f"scale is {self.scale!r}, expected relative or absolute")


def local_optimality(
    ranker: Ranker,
    data: RankingData,
    measure: Measure,
    *,
    epsilon: float = 0.01,
    delta: float = 0.01,
    steps: Sequence[float] = STEPS,
    scale: Scale = "relative",
    single_weights: bool = True,
    random_state: int = 0,
    n_jobs: int | None = None,
    callback: Callable[[Tried], None] | None = None,
) -> OptimalityResult:
    """Test whether a ranker's weights are a local maximum of a measure on data.

    K = ⌈ln δ / ln(1 − ε)⌉ random directions are followed for several steps. If none of them improves the measure
    anywhere, then with confidence 1 − δ fewer than a share ε of all directions does. After that each weight is changed
    alone, up and down by the same steps; of more than K weights, K drawn at random. KeyboardInterrupt ends the test;
    the result then tells what is known so far.

    Parameters
    ----------
    ranker
        a net or a linear ranker
    data
        data on which the measure is looked at, as a rule the training data
    measure
        the measure
    epsilon
        share of improving directions that would not be missed
    delta
        probability of missing them all; the confidence is 1 − δ
    steps
        steps along each direction, in ascending order
    scale
        what a step of 1 is: the length of the weight vector (``relative``), or a distance of 1 in the space of weights
        (``absolute``, as in the paper). A linear ranker orders documents by the direction of its weights alone, so only
        relative steps give the same verdict for weights that rank alike
    single_weights
        whether to change each weight alone as well
    random_state
        seed of the directions
    n_jobs
        threads; all cores by default
    callback
        called after each batch of directions

    Returns
    -------
    OptimalityResult
        the verdict, and the change of the measure at every point that was tried

    Examples
    --------
    >>> from gradrank.measures import MRR
    >>> from gradrank.models.linear import LinearRanker
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0]], [0, 1], qid=[1, 1])
    >>> result = local_optimality(LinearRanker([-1.0, 1.0]), data, MRR())
    >>> result.local_optimum, result.directions, result.improving, result.confidence
    (True, 459, 0, 0.99)
    >>> local_optimality(LinearRanker([1.0, 0.5]), data, MRR()).local_optimum
    False
    """
    plan = Plan(epsilon, delta, tuple(float(step) for step in steps), scale, single_weights)

    def after_batch(_result: OptimalityResult, tried: Tried) -> bool:
        if callback is not None:
            callback(tried)
        return False

    return search(Terrain(ranker, data, measure, n_jobs=n_jobs), plan, (random_state,), after_batch)


AfterBatch = Callable[[OptimalityResult, Tried], bool]


def search(terrain: Terrain, plan: Plan, key: tuple[int, ...], after_batch: AfterBatch) -> OptimalityResult:
    """Try what the plan asks for; ``after_batch`` sees the result so far and may end the search by returning True."""
    weights = terrain.weights()
    norm = float(np.linalg.norm(weights))
    if plan.scale == "relative" and norm == 0.0:
        raise DataError("all weights are 0, so steps relative to their length are 0; take absolute steps")
    planned = direction_count(plan.epsilon, plan.delta)
    chosen = _chosen_weights(len(weights), planned, key) if plan.single_weights else np.empty(0, dtype=np.int64)
    none = Changes(np.empty((0, len(plan.steps))), np.empty((0, len(plan.steps))))
    result = OptimalityResult(
        terrain.measure, terrain.value, plan.epsilon, plan.delta, plan.steps, plan.scale, norm, planned, none,
        terrain.weight_names(), chosen, none, key, terrain.n_queries,
    )  # fmt: skip
    tried = Tried(0, planned + 2 * len(chosen), 0, terrain.value, terrain.value)
    parts = (
        ("changes", planned, _random_batches(planned, len(weights), key)),
        ("weight_changes", 2 * len(chosen), _single_batches(chosen, len(weights))),
    )
    try:
        for part, size, batches in parts:
            mean, error = np.empty((2, size, len(plan.steps)))
            done = 0
            for batch in batches:
                changes = terrain.changes(batch, result.distances)
                mean[done : done + len(batch)] = changes.mean
                error[done : done + len(batch)] = changes.standard_error
                done += len(batch)
                so_far: dict[str, Any] = {part: Changes(mean[:done], error[:done])}
                result = replace(result, **so_far)
                tried = replace(
                    tried,
                    done=tried.done + len(batch),
                    improving=tried.improving + int(result.improves(changes).any(axis=1).sum()),
                    best=max(tried.best, terrain.value + float(changes.mean.max())),
                )
                if after_batch(result, tried):
                    return result
    except KeyboardInterrupt:
        pass
    return result


def _chosen_weights(n_weights: int, most: int, key: tuple[int, ...]) -> NDArray[np.int64]:
    if n_weights <= most:
        return np.arange(n_weights)
    rng = np.random.default_rng((*key, _WEIGHT_STREAM))
    return np.sort(rng.choice(n_weights, size=most, replace=False))


def _random_batches(count: int, n_weights: int, key: tuple[int, ...]) -> Iterator[NDArray[np.float64]]:
    for first in range(0, count, _BATCH):
        yield np.array([random_direction((*key, i), n_weights) for i in range(first, min(first + _BATCH, count))])


def _single_batches(chosen: NDArray[np.int64], n_weights: int) -> Iterator[NDArray[np.float64]]:
    for first in range(0, len(chosen), _BATCH // 2):
        places = chosen[first : first + _BATCH // 2]
        batch = np.zeros((2 * len(places), n_weights))
        batch[np.arange(0, len(batch), 2), places] = 1.0
        batch[np.arange(1, len(batch), 2), places] = -1.0
        yield batch

"""Climbing: following the better directions that the test of local optimality finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError
from gradrank.measures import Measure
from gradrank.models.ranker import Ranker
from gradrank.models.weight_vectors import weights_of
from gradrank.optimality.result import OptimalityResult, Probe, Scale, noise
from gradrank.optimality.search import STEPS, Plan, Tried, search
from gradrank.optimality.terrain import Terrain


@dataclass(frozen=True, eq=False)
class Climb:
    """A ranker that was moved uphill."""

    ranker: Ranker
    values: tuple[float, ...]
    """Mean of the measure at the start and after each move; it rises."""
    moves: tuple[Probe, ...]
    result: OptimalityResult
    """The test of the last weights; it ends at the limit of moves, when stopped, or with everything tried."""

    @property
    def gain(self) -> float:
        """Last value − first value."""
        return self.values[-1] - self.values[0]

    def to_dict(self, *, curves: bool = True) -> dict[str, Any]:
        """Everything but the ranker as plain values: the test of the last weights, and how they were reached."""
        path = {"values": list(self.values), "moves": [probe.to_dict() for probe in self.moves], "gain": self.gain}
        return {**self.result.to_dict(curves=curves), "climb": path}


def climb(
    ranker: Ranker,
    data: RankingData,
    measure: Measure,
    *,
    most_moves: int = 100,
    epsilon: float = 0.01,
    delta: float = 0.01,
    steps: Sequence[float] = STEPS,
    scale: Scale = "relative",
    single_weights: bool = True,
    random_state: int = 0,
    n_jobs: int | None = None,
    callback: Callable[[Tried], None] | None = None,
) -> Climb:
    """Test local optimality and move to the best point found whenever a batch of directions holds a better one.

    Each move starts a new test with new directions, so a climb that ends before ``most_moves`` ends at weights that
    pass the whole test. A move is made only if the ranker, evaluated anew at its end, is better: the measure never
    falls. KeyboardInterrupt ends the climb and keeps the moves made.

    Parameters
    ----------
    ranker
        a net or a linear ranker
    data
        data on which the measure is to rise
    measure
        the measure
    most_moves
        largest number of moves
    epsilon, delta, steps, scale, single_weights, random_state, n_jobs
        as :func:`gradrank.optimality.local_optimality` takes them
    callback
        called after each batch of directions

    Returns
    -------
    Climb
        the moved ranker, its way, and the test of the last weights

    Examples
    --------
    >>> from gradrank.measures import MRR
    >>> from gradrank.models.linear import LinearRanker
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0]], [0, 1], qid=[1, 1])
    >>> found = climb(LinearRanker([1.0, 0.5]), data, MRR())
    >>> found.values, found.result.local_optimum
    ((0.5, 1.0), True)
    """
    if most_moves < 1:
        raise DataError(f"most_moves is {most_moves}, expected 1 or more")
    plan = Plan(epsilon, delta, tuple(float(step) for step in steps), scale, single_weights)
    terrain = Terrain(ranker, data, measure, n_jobs=n_jobs)
    values = [terrain.value]
    moves: list[Probe] = []
    while True:
        reached: tuple[Probe, Terrain] | None = None
        seen = 0

        def after_batch(result: OptimalityResult, tried: Tried) -> bool:
            nonlocal reached, seen
            if callback is not None:
                callback(replace(tried, moves=len(moves)))
            if len(moves) < most_moves and tried.improving > seen:
                # Points of earlier batches are there too: refused before, since only rounding made them look better.
                seen = tried.improving
                reached = _best_that_holds(terrain, result, data, n_jobs)  # noqa: B023
            return reached is not None

        result = search(terrain, plan, (random_state, len(moves)), after_batch)
        if reached is None:
            break
        probe, terrain = reached
        moves.append(probe)
        values.append(terrain.value)
    moved = terrain.ranker
    if moves:
        moved.remember(climb={"measure": str(measure), "from": values[0], "to": values[-1], "moves": len(moves)})
    return Climb(moved, tuple(values), tuple(moves), result)


def _best_that_holds(
    terrain: Terrain, result: OptimalityResult, data: RankingData, n_jobs: int | None
) -> tuple[Probe, Terrain] | None:
    weighted = weights_of(terrain.ranker)
    for probe in result.improvements():
        weights = terrain.weights() + probe.distance * result.direction_of(probe)
        there = Terrain(weighted.with_weight_vector(weights), data, terrain.measure, n_jobs=n_jobs)
        if there.value > terrain.value + noise(terrain.value):
            return probe, there
    return None

"""The result of a test of local optimality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gradrank.measures import Measure
from gradrank.optimality.directions import confidence_of, random_direction
from gradrank.optimality.terrain import Changes

Scale = Literal["relative", "absolute"]

LEVEL = 0.05
"""Level of significance of an improvement, after correction for all points tried."""
_NOISE = 1e-12


def noise(value: float) -> float:
    """Largest difference from ``value`` that rounding may cause."""
    return _NOISE * max(1.0, abs(value))


@dataclass(frozen=True)
class Probe:
    """One point that was tried: a direction and a step along it."""

    name: str
    """``direction 17``, or the name of the single weight that was changed."""
    weight: int | None
    """Place of the single weight, or None for a random direction."""
    index: int
    """Number of the random direction, or the sign (1, −1) of the change of a single weight."""
    step: float
    distance: float
    gain: float
    """Mean of the measure there minus that at the weights."""
    p: float
    """One-sided p-value of the gain by a paired t-test over queries, times the number of points tried (Bonferroni)."""

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "name": self.name,
            "weight": self.weight,
            "index": self.index,
            "step": self.step,
            "distance": self.distance,
            "gain": self.gain,
            "p": None if np.isnan(self.p) else self.p,
        }


@dataclass(frozen=True, eq=False)
class OptimalityResult:
    """The outcome of a test of local optimality; the numbers of an interrupted one are of what had been tried.

    The two tests have a verdict each: :attr:`local_optimum` of the random directions, :attr:`gradient_vanishes` of the
    weights changed alone. A direction *improves* if the measure is higher at one of its steps by more than rounding, it
    *falls* if the measure is lower at all of them, else it is *level*.
    """

    measure: Measure
    value: float
    """Mean of the measure at the weights."""
    epsilon: float
    delta: float
    steps: tuple[float, ...]
    scale: Scale
    norm: float
    """Length of the weight vector."""
    planned: int
    """Random directions that the confidence asked for needs."""
    changes: Changes
    """Of the random directions, in order: directions × steps."""
    weight_names: tuple[str, ...]
    """What each weight belongs to."""
    weights: NDArray[np.int64]
    """Places of the weights that were to be changed alone."""
    weight_changes: Changes
    """Two rows per weight, up and down."""
    key: tuple[int, ...]
    """Key of the random stream that the directions are drawn from."""
    n_queries: int

    # ------------------------------------------------------------------ random directions
    @property
    def directions(self) -> int:
        """Random directions tried."""
        return len(self.changes.mean)

    @property
    def improving(self) -> int:
        """Directions that improve."""
        return int(self.improves(self.changes).any(axis=1).sum())

    @property
    def falling(self) -> int:
        """Directions that fall at all steps."""
        return int((self.changes.mean < -noise(self.value)).all(axis=1).sum())

    @property
    def level(self) -> int:
        """Directions that neither improve nor fall at all steps."""
        return self.directions - self.improving - self.falling

    @property
    def significant(self) -> int:
        """Directions that improve significantly over queries, corrected for all points tried."""
        return int((self._p(self.changes) < LEVEL).any(axis=1).sum())

    @property
    def confidence(self) -> float:
        """Confidence that fewer than a share ε of all directions improves, if none of those tried does."""
        return 1.0 - self.delta if self.directions >= self.planned else confidence_of(self.directions, self.epsilon)

    # ------------------------------------------------------------------ single weights
    @property
    def weights_tried(self) -> int:
        """Weights that were changed alone."""
        return len(self.weight_changes.mean) // 2

    @property
    def improving_weights(self) -> tuple[str, ...]:
        """Names of the weights that improve the measure when they alone are changed."""
        rows = np.flatnonzero(self.improves(self.weight_changes).any(axis=1))
        return tuple(self.weight_names[self.weights[place]] for place in np.unique(rows // 2))

    # ------------------------------------------------------------------ verdict
    @property
    def complete(self) -> bool:
        """Whether everything was tried."""
        return self.directions >= self.planned and self.weights_tried >= len(self.weights)

    @property
    def local_optimum(self) -> bool | None:
        """The verdict of the random directions: False if any improves, True if all were tried and none does, else None,
        which is "not known"."""
        if self.improving:
            return False
        return True if self.directions >= self.planned else None

    @property
    def gradient_vanishes(self) -> bool | None:
        """The verdict of the single weights: False if any improves, True if all that were to be tried were and none
        does, else None."""
        if self.improving_weights:
            return False
        return True if 0 < len(self.weights) <= self.weights_tried else None

    @property
    def best(self) -> Probe | None:
        """The point with the largest gain; None if nothing improves."""
        return next(iter(self.improvements()), None)

    def improvements(self) -> list[Probe]:
        """Every point that improves, the largest gain first."""
        found: list[Probe] = []
        for changes, single in ((self.changes, False), (self.weight_changes, True)):
            p = self._p(changes)
            for row, column in np.argwhere(self.improves(changes)).tolist():
                found.append(self._probe(row, column, single, float(changes.mean[row, column]), float(p[row, column])))
        return sorted(found, key=lambda probe: -probe.gain)

    def direction_of(self, probe: Probe) -> NDArray[np.float64]:
        """The unit vector along which a point lies."""
        if probe.weight is None:
            return random_direction((*self.key, probe.index), len(self.weight_names))
        unit = np.zeros(len(self.weight_names))
        unit[probe.weight] = probe.index
        return unit

    def verdict(self) -> str:
        """The outcome in a few sentences."""
        share = f"{100 * self.epsilon:g} % of directions"
        if self.local_optimum is False:
            parts = [
                f"Not a local optimum of {self.measure}: {self.improving} of {self.directions} random directions "
                "improve it."
            ]
        elif self.local_optimum is None:
            parts = [
                f"Stopped after {self.directions} of {self.planned} random directions, of which none improves "
                f"{self.measure}: that fewer than {share} do is known with confidence {self.confidence:.4g}."
            ]
        else:
            parts = [
                f"Local optimum of {self.measure} with confidence {self.confidence:g}: none of {self.directions} "
                f"random directions improves it at any of {len(self.steps)} steps, so fewer than {share} do."
            ]
        if self.weights_tried:
            count = len(self.improving_weights)
            how_many = f"{count} of {self.weights_tried}" if count else f"None of {self.weights_tried}"
            parts.append(f"{how_many} weights changed alone improve{'s' * (not count)} it.")
        best = self.best
        if best is not None:
            parts.append(
                f"The largest gain is {best.gain:+.3g}, from {self.value:.6g} to {self.value + best.gain:.6g}, at step "
                f"{best.step:g} along {best.name} ({'' if best.p < LEVEL else 'not '}significant over queries)."
            )
        if self.level:
            parts.append(f"{self.level} directions leave it unchanged at some step and improve it at none.")
        return " ".join(parts)

    def to_dict(self, *, curves: bool = True) -> dict[str, Any]:
        """Everything as plain values; ``curves`` adds the measure at every point tried."""
        best = self.best
        facts: dict[str, Any] = {
            "local_optimum": self.local_optimum,
            "directions": self.directions,
            "improving": self.improving,
            "confidence": self.confidence,
            "measure_at_optimum": self.value,
            "measure": str(self.measure),
            "falling": self.falling,
            "level": self.level,
            "significant": self.significant,
            "best": None if best is None else best.to_dict(),
            "weights": len(self.weight_names),
            "weights_tried": self.weights_tried,
            "improving_weights": list(self.improving_weights),
            "gradient_vanishes": self.gradient_vanishes,
            "complete": self.complete,
            "planned": self.planned,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "steps": list(self.steps),
            "scale": self.scale,
            "norm": self.norm,
            "queries": self.n_queries,
            "seed": self.key[0],
            "verdict": self.verdict(),
        }
        if curves:
            facts["curves"] = (self.value + self.changes.mean).tolist()
            names = [self.weight_names[place] for place in self.weights[: self.weights_tried]]
            pairs = (self.value + self.weight_changes.mean).reshape(-1, 2, len(self.steps)).tolist()
            facts["weight_curves"] = [
                {"weight": name, "up": up, "down": down} for name, (up, down) in zip(names, pairs, strict=True)
            ]
        return facts

    # ------------------------------------------------------------------ inside
    @property
    def distances(self) -> NDArray[np.float64]:
        """Lengths of the steps in the space of weights."""
        return np.array(self.steps) * (self.norm if self.scale == "relative" else 1.0)

    def improves(self, changes: Changes) -> NDArray[np.bool_]:
        """Which points are better than the weights by more than rounding."""
        return np.asarray(changes.mean > noise(self.value))

    def _p(self, changes: Changes) -> NDArray[np.float64]:
        from scipy import stats

        points = self.changes.mean.size + self.weight_changes.mean.size
        with np.errstate(divide="ignore", invalid="ignore"):
            t = changes.mean / changes.standard_error
        p = np.asarray(stats.t.sf(t, max(1, self.n_queries - 1)))
        return np.minimum(1.0, p * points)

    def _probe(self, row: int, column: int, single: bool, gain: float, p: float) -> Probe:
        step, distance = self.steps[column], float(self.distances[column])
        if not single:
            return Probe(f"direction {row + 1}", None, row, step, distance, gain, p)
        place, sign = int(self.weights[row // 2]), 1 - 2 * (row % 2)
        name = f"weight {self.weight_names[place]} {'up' if sign > 0 else 'down'}"
        return Probe(name, place, sign, step, distance, gain, p)

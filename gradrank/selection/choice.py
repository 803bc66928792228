"""Choosing among systems measure by measure, the trusted one first, by significance tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any

import numpy as np

from gradrank.errors import DataError
from gradrank.evaluation.compare import ComparisonRow, TestName, compare
from gradrank.evaluation.evaluate import Evaluation
from gradrank.measures import Graded, Measure, single_measures


@dataclass(frozen=True)
class Choice:
    """The system that was chosen, and why each of the others was not."""

    system: str
    baseline: str
    measures: tuple[Measure, ...]
    level: float
    margin: float | None
    reasons: dict[str, str]
    """What decided about each system, in words."""

    def sentence(self) -> str:
        """The outcome in words."""
        first = self.measures[0]
        if self.system == self.baseline:
            return f"{self.system} is kept: {self.reasons[self.system]}"
        promise = f"not significantly below {self.baseline} at level {self.level:g}"
        if self.margin is not None:
            promise = f"at most {self.margin:g} below {self.baseline} with {1 - self.level:.6g} confidence"
        return f"{self.system} is chosen: {first} is {promise}, and {self.reasons[self.system]}"

    def to_dict(self) -> dict[str, Any]:
        """The choice as plain Python values."""
        return {
            "system": self.system,
            "baseline": self.baseline,
            "measures": [str(measure) for measure in self.measures],
            "level": self.level,
            "margin": self.margin,
            "reasons": dict(self.reasons),
        }


def choose(
    evaluation: Evaluation,
    measures: Sequence[Measure] | Graded | None = None,
    *,
    baseline: str | None = None,
    test: TestName = "t",
    level: float = 0.05,
    margin: float | None = None,
    resamples: int = 10_000,
    random_state: int = 0,
) -> Choice:
    """Choose the system that is best on the later measures among those that leave the first one unharmed.

    On the first measure a system stays if it is not significantly below the baseline in a paired test; on each further
    one but the last if it is not significantly below the best of those that are left; on the last the highest mean
    wins, and among equals the one given first. The baseline always stays on the first measure, so there is always a
    choice. P-values are not corrected for the number of systems: a correction would make harm harder to see.

    Parameters
    ----------
    evaluation
        values per query of all systems, by all measures that decide
    measures
        measures that decide, the trusted one first; a graded measure stands for its parts; those of the evaluation
        unless given
    baseline
        system that must not be harmed; the first unless named
    test
        paired test: ``t``, ``randomization`` or ``bootstrap``
    level
        level at which harm counts
    margin
        rule harm out instead of merely not seeing it: the lower end of the interval that covers 1 − ``level`` of the
        difference must lie above −margin
    resamples, random_state
        number of resamples of the randomization and bootstrap tests, and their seed

    Returns
    -------
    Choice
        the system, and in words what decided about each

    Examples
    --------
    >>> from gradrank.data.ranking_data import RankingData
    >>> from gradrank.evaluation.evaluate import evaluate
    >>> from gradrank.measures import parse_measure
    >>> labels = {"label": [1, 1, 0] * 4, "clicks": [0.1, 0.9, 0.5] * 4}
    >>> data = RankingData.from_arrays(np.zeros((12, 1)), labels, group=[3] * 4)
    >>> scores = {"plain": [3, 2, 1] * 4, "clicked": [2, 3, 1] * 4, "clicks only": [1, 3, 2] * 4}
    >>> result = evaluate(data, scores, [parse_measure("NDCG@3"), parse_measure("CNDCG@3")])
    >>> choose(result).system
    'clicked'
    """
    wanted = evaluation.measures if measures is None else measures
    tiers = single_measures(wanted)
    missing = [str(measure) for measure in tiers if measure not in evaluation.measures]
    if not tiers or missing:
        raise DataError(f"the evaluation lacks the measure {missing[0]}" if missing else "there is no measure")
    base = evaluation.systems[0] if baseline is None else baseline
    if base not in evaluation.values:
        raise DataError(f"there is no system {base!r} to compare with; there are {', '.join(evaluation.systems)}")
    if margin is not None and not 0.0 < margin < np.inf:
        raise DataError(f"the margin is {margin!r}, expected a positive number")

    means = {system: [evaluation.summary(system, measure).mean for measure in tiers] for system in evaluation.systems}
    reasons: dict[str, str] = {}
    left = list(evaluation.systems)
    for number, measure in enumerate(tiers[:-1]):
        reference = base if number == 0 else _best(left, means, number)
        others = [system for system in left if system != reference]
        if not others:
            continue
        values = {system: evaluation.values[system] for system in (reference, *others)}
        part = replace(evaluation, measures=(measure,), values=values)
        tested = compare(
            part,
            baseline=reference,
            test=test,
            level=level,
            correction=None,
            resamples=resamples,
            random_state=random_state,
        )
        harm = {row.system: _harm(row, reference, level, margin) for row in tested.rows}
        reasons |= {system: words for system, words in harm.items() if words is not None}
        left = [system for system in left if harm.get(system) is None]
    chosen = _best(left, means, len(tiers) - 1)
    last = tiers[-1]
    value = means[chosen][-1]
    for system in left:
        if system != chosen:
            reasons[system] = f"its {last} of {means[system][-1]:.4f} is not above the {value:.4f} of {chosen}"
    reasons[chosen] = f"its {last} is {value:.4f}" + (f", the highest of {len(left)}" if len(left) > 1 else "")
    if len(left) == 1 and len(evaluation.systems) > 1:
        reasons[chosen] += "; no other system leaves the earlier measures unharmed"
    ordered = {system: reasons[system] for system in evaluation.systems}
    return Choice(chosen, base, tiers, level, margin, ordered)


def _best(systems: Sequence[str], means: dict[str, list[float]], tier: int) -> str:
    """The system with the highest mean; the first among equals, and the first if none has a value."""
    return max(systems, key=lambda system: -np.inf if isnan(means[system][tier]) else means[system][tier])


def _harm(row: ComparisonRow, reference: str, level: float, margin: float | None) -> str | None:
    """What speaks against a system, in words; None if nothing does."""
    test = row.test
    if margin is not None:
        if test.low > -margin or (test.difference == 0.0 and row.wins == row.losses == 0):
            return None
        return (
            f"its {row.measure} may be more than {margin:g} below {reference} "
            f"({test.difference:+.4f}, interval from {test.low:+.4f})"
        )
    if test.difference < 0 and test.p < level:
        return f"its {row.measure} is significantly below {reference} ({test.difference:+.4f}, p {test.p:.2g})"
    return None

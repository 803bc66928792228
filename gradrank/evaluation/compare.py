"""Comparing systems with a baseline over the same queries, with significance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from math import isnan, nan
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import DataError
from gradrank.evaluation.evaluate import Evaluation, evaluate
from gradrank.evaluation.significance import PairedTest, bootstrap_test, differences, holm, randomization_test, t_test
from gradrank.evaluation.tables import Column, Table
from gradrank.measures import DEFAULT_MEASURES, AnyMeasure, Measure
from gradrank.models.display.markup import Html, colored, markup, notes_html, small, strong, table_html
from gradrank.models.systems import Data, System

TestName = Literal["t", "randomization", "bootstrap"]
Correction = Literal["holm"]
Verdict = Literal["better", "worse", "no significant difference"]


SIGNS: dict[Verdict, str] = {"better": "▲", "worse": "▼", "no significant difference": "="}
TEST_NAMES = {"t": "paired t-test", "randomization": "randomization test", "bootstrap": "bootstrap test"}
CORRECTION_NAMES = {"holm": "Holm's correction"}


@dataclass(frozen=True)
class ComparisonRow:
    """One system against the baseline by one measure, over the queries where both have a value."""

    system: str
    measure: Measure
    baseline_mean: float
    mean: float
    test: PairedTest
    wins: int
    """Queries on which the system has the higher value."""
    ties: int
    losses: int
    p_corrected: float
    """The p-value corrected for all rows of the comparison; the plain one without a correction."""
    verdict: Verdict

    @property
    def relative(self) -> float:
        """The difference as a share of the baseline's mean; NaN if that is 0."""
        return self.test.difference / self.baseline_mean if self.baseline_mean != 0 else nan


@dataclass(frozen=True, repr=False)
class Comparison:
    """All systems but the baseline, by all measures, each tested against the baseline.

    >>> import numpy as np
    >>> from gradrank import RankingData, compare
    >>> data = RankingData.from_arrays(np.zeros((16, 1)), [0, 1] * 8, qid=np.repeat(np.arange(8), 2))
    >>> compare(data, {"old": [1, 0] * 6 + [0, 1] * 2, "new": [0, 1] * 8}, "MRR")
    Comparison against old: paired t-test, level 0.05, Holm's correction
    | system | measure | baseline | mean | difference | p (holm) | verdict |
    |---|---|--:|--:|--:|--:|---|
    | new | MRR | 0.6250 | 1.0000 | +0.3750 | 0.0025 | ▲ better |
    """

    baseline: str
    level: float
    correction: Correction | None
    rows: tuple[ComparisonRow, ...]
    evaluation: Evaluation | None = field(default=None, repr=False, compare=False)
    """The evaluation that was tested."""

    def table(self) -> Table:
        """One row per system and measure."""
        columns = (
            Column("system"),
            Column("measure"),
            Column("baseline", "number"),
            Column("mean", "number"),
            Column("difference", "signed"),
            Column("relative", "percent"),
            Column(f"{100 * (1 - self.level):.6g} % interval", "interval"),
            Column("p", "p"),
            *((Column(f"p ({self.correction})", "p"),) if self.correction else ()),
            Column("wins/ties/losses", "counts"),
            Column("verdict"),
        )
        rows = tuple(
            (
                row.system,
                str(row.measure),
                row.baseline_mean,
                row.mean,
                row.test.difference,
                row.relative,
                (row.test.low, row.test.high),
                row.test.p,
                *((row.p_corrected,) if self.correction else ()),
                (row.wins, row.ties, row.losses),
                row.verdict,
            )
            for row in self.rows
        )
        return Table(columns, rows, title=f"against {self.baseline}")

    def _title(self) -> str:
        test = TEST_NAMES.get(self.rows[0].test.test, self.rows[0].test.test) if self.rows else "no test"
        corrected = f", {CORRECTION_NAMES[self.correction]}" if self.correction else ""
        return f"against {self.baseline}: {test}, level {self.level:g}{corrected}"

    def __repr__(self) -> str:
        columns = (
            *(Column("system"), Column("measure"), Column("baseline", "number"), Column("mean", "number")),
            *(Column("difference", "signed"), Column(f"p ({self.correction})" if self.correction else "p", "p")),
            Column("verdict"),
        )
        rows = tuple(
            (
                *(row.system, str(row.measure), row.baseline_mean, row.mean, row.test.difference, row.p_corrected),
                f"{SIGNS[row.verdict]} {row.verdict}",
            )
            for row in self.rows
        )
        return f"Comparison {self._title()}\n{Table(columns, rows).to_markdown()}".rstrip()

    def _repr_html_(self) -> str:
        """Means by system and measure, those of the best in bold, with a sign for what differs significantly."""
        measures = list(dict.fromkeys(row.measure for row in self.rows))
        found = {(row.system, row.measure): row for row in self.rows}
        systems = [self.baseline, *dict.fromkeys(row.system for row in self.rows)]
        base = {row.measure: row.baseline_mean for row in self.rows}
        best = {
            measure: max(
                (found[s, measure].mean for s in systems[1:]), default=nan, key=lambda mean: (mean == mean, mean)
            )
            for measure in measures
        }
        rows = []
        for system in systems:
            cells: list[str] = [system if system != self.baseline else Html(f"{markup(system)} {small('baseline')}")]
            for measure in measures:
                row = found.get((system, measure))
                mean = base[measure] if row is None else row.mean
                highest = mean >= best[measure] and mean >= base[measure]
                cells.append(_mean_html(mean, highest, row))
            rows.append(cells)
        table = table_html(
            ["system", *map(str, measures)],
            rows,
            numeric=[False, *(True for _ in measures)],
            caption=f"Means, compared {self._title()}",
        )
        legend = "▲ significantly better than the baseline, ▼ significantly worse, = no significant difference"
        return table + notes_html([legend, *self.notes()])

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain Python values."""
        return {
            "baseline": self.baseline,
            "level": self.level,
            "correction": self.correction,
            "rows": [
                {
                    "system": row.system,
                    "measure": str(row.measure),
                    "baseline_mean": row.baseline_mean,
                    "mean": row.mean,
                    "relative": row.relative,
                    **asdict(row.test),
                    "p_corrected": row.p_corrected,
                    "wins": row.wins,
                    "ties": row.ties,
                    "losses": row.losses,
                    "verdict": row.verdict,
                }
                for row in self.rows
            ],
        }

    def notes(self) -> list[str]:
        """What a reader of the p-values must know, one sentence each."""
        return list(
            dict.fromkeys(
                f"{row.system} by {row.measure}: {row.test.note}"
                for row in self.rows
                if isnan(row.test.p) or row.test.n == 1
            )
        )


@overload
def compare(
    data: Evaluation,
    *,
    baseline: str | None = None,
    test: TestName = "t",
    level: float = 0.05,
    correction: Correction | None = "holm",
    resamples: int = 10_000,
    random_state: int = 0,
) -> Comparison: ...


@overload
def compare(
    data: Data,
    systems: Mapping[str, System],
    measures: AnyMeasure | str | Iterable[AnyMeasure | str] = DEFAULT_MEASURES,
    *,
    baseline: str | None = None,
    test: TestName = "t",
    level: float = 0.05,
    correction: Correction | None = "holm",
    resamples: int = 10_000,
    random_state: int = 0,
    weighted: bool = False,
    n_jobs: int | None = None,
) -> Comparison: ...


def compare(
    data: Evaluation | Data,
    systems: Mapping[str, System] | None = None,
    measures: AnyMeasure | str | Iterable[AnyMeasure | str] = DEFAULT_MEASURES,
    *,
    baseline: str | None = None,
    test: TestName = "t",
    level: float = 0.05,
    correction: Correction | None = "holm",
    resamples: int = 10_000,
    random_state: int = 0,
    weighted: bool = False,
    n_jobs: int | None = None,
) -> Comparison:
    """Test systems against a baseline over the same queries.

    A verdict other than "no significant difference" needs a p-value — corrected over all rows of the table with
    ``correction="holm"`` — below ``level``. Weighted evaluations are tested on their weighted mean difference.

    Parameters
    ----------
    data
        An Evaluation; or data, whose systems are evaluated first, as :func:`~gradrank.evaluate` takes it.
    systems, measures, weighted, n_jobs
        As :func:`~gradrank.evaluate` takes them; not with an Evaluation, which has its own.
    baseline
        Name of the system to compare with; the first one unless given.
    test
        ``t``: paired t-test; ``randomization``: of the differences' signs; ``bootstrap``: of the queries.
    level
        Level of significance.
    correction
        ``holm``, or None for p-values as they are.
    resamples
        Number of permutations or bootstrap resamples.
    random_state
        Seed of the resampling.

    >>> from gradrank import RankingData
    >>> data = RankingData.from_arrays(np.zeros((6, 1)), [0, 1, 0, 1, 0, 1], qid=[1, 1, 2, 2, 3, 3])
    >>> row, = compare(data, {"old": [1, 0, 0, 1, 1, 0], "new": [0, 1, 0, 1, 0, 1]}, "MRR").rows
    >>> row.wins, row.ties, row.losses, row.verdict
    (2, 1, 0, 'no significant difference')
    """
    if isinstance(data, Evaluation):
        if systems is not None:
            raise DataError("an evaluation has its systems and measures: give none beside it")
        evaluation = data
    elif isinstance(systems, Mapping):
        evaluation = evaluate(data, systems, measures, weighted=weighted, n_jobs=n_jobs)
    else:
        raise DataError("there are no systems to compare, expected two or more by name")
    base = evaluation.systems[0] if baseline is None else baseline
    if base not in evaluation.values:
        raise DataError(f"there is no system {base!r} to compare with; there are {', '.join(evaluation.systems)}")
    others = [system for system in evaluation.systems if system != base]
    if not others:
        raise DataError("there is one system only, expected two or more to compare")

    rows = [
        _row(evaluation, system, base, measure, test, level, resamples, random_state)
        for system in others
        for measure in evaluation.measures
    ]
    p_values = [row.test.p for row in rows]
    corrected = holm(p_values).tolist() if correction == "holm" else p_values
    return Comparison(
        base,
        level,
        correction,
        tuple(
            replace(row, p_corrected=p, verdict=verdict_of(row.test.difference, p, level))
            for row, p in zip(rows, corrected, strict=True)
        ),
        evaluation,
    )


def _row(
    evaluation: Evaluation,
    system: str,
    base: str,
    measure: Measure,
    test: TestName,
    level: float,
    resamples: int,
    random_state: int,
) -> ComparisonRow:
    """One row, its p-value not yet corrected."""
    a, b, weights = evaluation.values[system][measure], evaluation.values[base][measure], evaluation.weights
    if test == "t":
        result = t_test(a, b, weights=weights, level=level)
    else:
        resampling = randomization_test if test == "randomization" else bootstrap_test
        result = resampling(a, b, weights=weights, level=level, resamples=resamples, random_state=random_state)
    d = differences(a, b)
    used = ~np.isnan(d) if weights is None else ~np.isnan(d) & (weights > 0)
    used_weights = None if weights is None else weights[used]
    return ComparisonRow(
        system=system,
        measure=measure,
        baseline_mean=_mean(b[used], used_weights),
        mean=_mean(a[used], used_weights),
        test=result,
        wins=int(np.count_nonzero(d[used] > 0)),
        ties=int(np.count_nonzero(d[used] == 0)),
        losses=int(np.count_nonzero(d[used] < 0)),
        p_corrected=result.p,
        verdict="no significant difference",
    )


def _mean_html(mean: float, highest: bool, row: ComparisonRow | None) -> Html:
    shown = Column("", "number").show(mean)
    cell = strong(shown) if highest else markup(shown)
    if row is None:
        return cell
    p = Column("", "p").show(row.p_corrected)
    title = f"{row.verdict}: difference {Column('', 'signed').show(row.test.difference)}, p {p}, " + (
        f"{row.wins:,} queries won, {row.ties:,} tied, {row.losses:,} lost"
    )
    return Html(f"{cell} {colored(SIGNS[row.verdict], row.verdict, title)}")


def _mean(values: NDArray[np.float64], weights: NDArray[np.float64] | None) -> float:
    return float(np.average(values, weights=weights)) if len(values) else nan


def verdict_of(difference: float, p: float, level: float) -> Verdict:
    """A difference and its p-value in words."""
    if not p < level:
        return "no significant difference"
    return "better" if difference > 0 else "worse"

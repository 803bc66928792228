"""The report of a labeling project: cost, agreement, tests and side bias, as JSON and as one HTML page."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.resources import files
from math import isnan
from typing import Any

import numpy as np

from gradrank.errors import MissingExtraError
from gradrank.labeling.analysis.agreement import (
    RELATIONS,
    SCOPES,
    Agreement,
    GradeAgreement,
    ToolComparison,
    agreed_and_not,
    agreement,
    compare_tools,
    grade_agreement,
    top_overlap,
)
from gradrank.labeling.analysis.efficiency import Efficiency, efficiency, standing_records
from gradrank.labeling.analysis.statistics import SideBias, cohen_kappa, side_bias
from gradrank.labeling.judgments import GRADE_NAMES, Verdict
from gradrank.labeling.records import Outcome, Record, Tool
from gradrank.version import __version__

TOOL_NAMES = {Tool.PREFERENCES: "preferences", Tool.GRADES: "five grades"}


@dataclass(frozen=True)
class LabelingReport:
    """All figures of a project."""

    efficiency: tuple[Efficiency, ...]
    agreements: tuple[Agreement, ...]
    """For each tool and scope."""
    comparisons: tuple[ToolComparison, ...]
    """Between the tools, for the scopes ``all`` and ``top``, with and without ties."""
    grades: GradeAgreement
    overlap: dict[Tool, float]
    """Mean share of documents that two assessors' tops have in common."""
    sides: dict[str, SideBias]
    """By assessor; ``""`` for all together."""
    notes: tuple[str, ...]
    """What a reader should know about the figures."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; what cannot be computed is None."""
        plain: dict[str, Any] = _plain(
            {
                "efficiency": [asdict(row) for row in self.efficiency],
                "agreement": [_agreement_dict(found, self.overlap) for found in self.agreements],
                "tools": [asdict(comparison) for comparison in self.comparisons],
                "grades": {
                    "krippendorff_alpha_ordinal": self.grades.alpha,
                    "cohen_kappa_quadratic": self.grades.kappa,
                    "counts": self.grades.counts.tolist(),
                },
                "side_bias": {name or "all": asdict(bias) for name, bias in self.sides.items() if name == ""},
                "side_bias_by_assessor": {name: asdict(bias) for name, bias in self.sides.items() if name},
                "notes": list(self.notes),
            }
        )
        plain["side_bias"] = plain["side_bias"].get("all")
        return plain

    def to_html(self, title: str = "Labeling report") -> str:
        """One page without scripts or outside resources."""
        try:
            from jinja2 import Environment, PackageLoader, StrictUndefined
        except ImportError:
            raise MissingExtraError("jinja2", "labeling") from None
        environment = Environment(
            loader=PackageLoader("gradrank.labeling.analysis"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters.update(number=_number, share=_share, p=_p)
        style = (files("gradrank.labeling.analysis") / "templates" / "report.css").read_text(encoding="utf-8")
        return environment.get_template("report.html").render(
            report=self,
            title=title or "Labeling report",
            style=style,
            style_hash=b64encode(sha256(f"\n{style}".encode()).digest()).decode(),
            version=__version__,
            tools=TOOL_NAMES,
            relations=RELATIONS,
            grade_names=GRADE_NAMES,
            by_scope={scope: [found for found in self.agreements if found.scope == scope] for scope in SCOPES},
            kappas=_kappas(self.agreements),
        )


def labeling_report(
    records: Iterable[Record], outcomes: Iterable[Outcome], *, seed: int = 0, permutations: int = 2000
) -> LabelingReport:
    """Compute the report from plain records (in order of time) and one outcome per (assessor, query).

    >>> from gradrank.labeling.analysis.simulate import simulate_study
    >>> study = simulate_study(queries=5, n=12, k=4, seed=1)
    >>> report = labeling_report(study.records, study.outcomes, permutations=100)
    >>> [row.strategy for row in report.efficiency]
    ['heap', 'grades']
    """
    records, outcomes = list(records), list(outcomes)
    standing = standing_records(records)
    agreements = {
        (tool, scope): agreement(tool, outcomes, standing, scope)
        for scope in SCOPES
        for tool in Tool
        if scope != "judged" or tool is Tool.PREFERENCES
    }
    comparisons = [
        compare_tools(
            agreements[Tool.PREFERENCES, scope],
            agreements[Tool.GRADES, scope],
            ties=ties,
            permutations=permutations,
            seed=seed,
        )
        for scope in SCOPES[:2]
        for ties in (True, False)
    ]
    return LabelingReport(
        efficiency=tuple(efficiency(records, outcomes)),
        agreements=tuple(agreements.values()),
        comparisons=tuple(comparisons),
        grades=grade_agreement(outcomes),
        overlap={tool: top_overlap(outcomes, tool) for tool in Tool},
        sides=_sides(standing),
        notes=tuple(_notes(records, outcomes, agreements[Tool.PREFERENCES, "all"], agreements[Tool.GRADES, "all"])),
    )


def _sides(standing: Iterable[Record]) -> dict[str, SideBias]:
    left: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for record in standing:
        if record.first_left is not None and record.verdict in (Verdict.FIRST, Verdict.SECOND):
            for name in ("", record.assessor):
                total[name] += 1
                left[name] += (record.verdict is Verdict.FIRST) == record.first_left
    return {name: side_bias(left[name], total[name]) for name in sorted(total)}


def _notes(records: Sequence[Record], outcomes: Sequence[Outcome], *found: Agreement) -> list[str]:
    notes = []
    if void := sum(record.voided for record in records):
        notes.append(f"{void:,} void judgments are left out.")
    if unfinished := sum(not outcome.complete for outcome in outcomes):
        notes.append(f"{unfinished:,} unfinished queries count for the time per judgment only.")
    for each in found:
        finished = sum(outcome.tool is each.tool and outcome.complete for outcome in outcomes)
        if finished and not each.pairs:
            notes.append(
                f"No query was finished by two assessors with {TOOL_NAMES[each.tool]}, so their agreement is unknown."
            )
    if records and all(record.seconds is None for record in records):
        notes.append("No times were recorded.")
    return notes


def _agreement_dict(found: Agreement, overlap: dict[Tool, float]) -> dict[str, Any]:
    agreed, disagreed = agreed_and_not(found.counts)
    agreed_strict, disagreed_strict = agreed_and_not(found.counts, ties=False)
    return {
        "tool": found.tool.value,
        "scope": found.scope,
        "queries": len(found.by_query),
        "pairs": found.pairs,
        "relations": list(RELATIONS),
        "counts": found.counts.tolist(),
        "row_normalized": found.rows().tolist(),
        "agreed": agreed,
        "disagreed": disagreed,
        "overall": found.overall(),
        "agreed_without_ties": agreed_strict,
        "disagreed_without_ties": disagreed_strict,
        "overall_without_ties": found.overall(ties=False),
        "cohen_kappa": found.kappa(),
        "krippendorff_alpha_nominal": found.alpha(),
        "krippendorff_alpha_ordinal": found.alpha("ordinal"),
        "top_overlap": overlap[found.tool],
    }


def _kappas(agreements: Iterable[Agreement]) -> list[tuple[Tool, str, str, int, float, float]]:
    """(tool, assessor, assessor, pairs, agreement, κ) for each two assessors, over all pairs of documents."""
    return [
        (found.tool, *names, int(table.sum()), float(np.trace(table) / table.sum()), cohen_kappa(table))
        for found in agreements
        if found.scope == "all"
        for names, table in sorted(found.by_assessors.items())
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and isnan(value) else value


def _number(value: float, digits: int = 2) -> str:
    return "–" if isnan(value) else f"{value:,.{digits}f}".replace("-", "−")


def _share(value: float) -> str:
    return "–" if isnan(value) else f"{100 * value:.1f} %"


def _p(value: float) -> str:
    return "–" if isnan(value) else "< 0.001" if value < 0.001 else f"{value:.3f}"

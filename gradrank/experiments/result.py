"""The result of an experiment: tables, sentences about them, and all settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gradrank.evaluation.tables import Table
from gradrank.experiments.claims import Claim, overall, verdict_table


class Outcome(NamedTuple):
    """What the function of a recipe returns: tables, sentences about them, and the paper's finding as claims."""

    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True)
class Result:
    """Tables and what is to be said of them, with everything that is needed to repeat the run.

    >>> print(Result("a", "A table", (), ("Nothing was found.",)).to_markdown(), end="")
    ### a: A table
    <BLANKLINE>
    Nothing was found.
    """

    name: str
    title: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    """What the paper found, as statements about the numbers of this run, or of all runs."""
    settings: dict[str, Any] = field(default_factory=dict)
    learners: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The learners with the parameters that were the same in all of their trainings."""
    runs: tuple[Result, ...] = ()
    """The runs with one seed each, if this is their summary."""

    def to_markdown(self) -> str:
        """Title, settings, notes and tables as Markdown."""
        parts = [f"### {self.name}: {self.title}"]
        if self.settings:
            parts.append("Settings: " + ", ".join(f"{key} {shown(item)}" for key, item in self.settings.items()) + ".")
        if self.claims:
            parts += [
                f"The finding: **{overall(self.claims)}**.",
                verdict_table(self.claims).to_markdown().rstrip("\n"),
            ]
        parts += [*self.notes, *(table.to_markdown().rstrip("\n") for table in self.tables)]
        return "\n\n".join(parts) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values."""
        found = {
            "name": self.name,
            "title": self.title,
            "settings": dict(self.settings),
            "learners": {name: dict(parameters) for name, parameters in self.learners.items()},
            "verdict": overall(self.claims) if self.claims else None,
            "claims": [claim.to_dict() for claim in self.claims],
            "notes": list(self.notes),
            "tables": [{"title": table.title, "rows": table.records()} for table in self.tables],
        }
        if self.runs:
            found["runs"] = [run.to_dict() for run in self.runs]
        return found


def shown(value: Any) -> str:
    """A setting as people read it and as ``--set`` takes it.

    >>> shown((0.1, 0.2)), shown(None)
    ('0.1,0.2', 'none')
    """
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "none"
    return "none" if value is None else str(value)

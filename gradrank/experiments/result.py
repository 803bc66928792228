"""What an experiment gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gradrank.evaluation.tables import Table


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
    settings: dict[str, Any] = field(default_factory=dict)

    def to_markdown(self) -> str:
        """Title, notes and tables as Markdown."""
        parts = [f"### {self.name}: {self.title}"]
        if self.settings:
            parts.append("Settings: " + ", ".join(f"{key} {value}" for key, value in self.settings.items()) + ".")
        parts += [*self.notes, *(table.to_markdown().rstrip("\n") for table in self.tables)]
        return "\n\n".join(parts) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values."""
        return {
            "name": self.name,
            "title": self.title,
            "settings": dict(self.settings),
            "notes": list(self.notes),
            "tables": [{"title": table.title, "rows": table.records()} for table in self.tables],
        }

"""What objectives share that are built on no measure, but on the labels of one source."""

from __future__ import annotations

from dataclasses import fields
from typing import ClassVar

from gradrank.measures import AnyMeasure
from gradrank.measures.grammar import spelt
from gradrank.objectives.judged_lists import check_label
from gradrank.objectives.objective import Objective


class LabelObjective(Objective):
    """An objective on the labels of one source; a dataclass whose fields are its options, ``label`` among them."""

    name: ClassVar[str | None] = None
    """What it is called where that is not the name of its class."""
    label: str | None

    def __post_init__(self) -> None:
        check_label(self._called(), self.label)

    @classmethod
    def _called(cls) -> str:
        return cls.name or cls.__name__

    @property
    def measure(self) -> AnyMeasure | None:
        """It is built on no measure."""
        return None

    @property
    def sources(self) -> tuple[str | None, ...]:
        """The label source."""
        return (self.label,)

    def __str__(self) -> str:
        given = [
            f"{field.name}={spelt(value)}"
            for field in fields(self)
            if (value := getattr(self, field.name)) != field.default
        ]
        return f"{self._called()}({', '.join(given)})" if given else self._called()

    def __repr__(self) -> str:
        return str(self)

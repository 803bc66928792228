"""Learning to rank for the measure you care about.

Public names load on first use, so that ``import gradrank`` and the command line's help stay fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from gradrank.data.ranking_data import RankingData as RankingData
    from gradrank.errors import GradrankError as GradrankError
    from gradrank.measures import measure_values as measure_values
    from gradrank.measures import parse_measure as parse_measure

# Public name → the module it lives in.
_PUBLIC = {
    "GradrankError": "gradrank.errors",
    "RankingData": "gradrank.data.ranking_data",
    "measure_values": "gradrank.measures",
    "parse_measure": "gradrank.measures",
}

__all__ = ["__version__", *sorted(_PUBLIC)]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        value = getattr(import_module(_PUBLIC[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'gradrank' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])

"""Data: the RankingData type, readers and writers, splits, artificial data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradrank.data.ranking_data import RankingData
    from gradrank.data.strings import Strings

__all__ = ["RankingData", "Strings"]


def __getattr__(name: str) -> Any:
    # On first use: commands read the declarations of the formats in here, and shall not wait for NumPy.
    if name == "RankingData":
        from gradrank.data.ranking_data import RankingData

        return RankingData
    if name == "Strings":
        from gradrank.data.strings import Strings

        return Strings
    raise AttributeError(f"module 'gradrank.data' has no attribute {name!r}")

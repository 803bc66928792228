"""Data: the RankingData type, readers and writers, splits, artificial data."""

from gradrank.data.ranking_data import RankingData
from gradrank.data.strings import Strings

__all__ = ["RankingData", "Strings"]

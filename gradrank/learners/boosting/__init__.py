"""Boosting of weak rankers made of single features: RankBoost and AdaRank."""

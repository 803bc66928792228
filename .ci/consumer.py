"""A program of somebody else, which ``package.py`` checks with mypy against the types of the installed wheel."""

from __future__ import annotations

from gradrank import LambdaMART, RankingData, evaluate, read_data


def quality(path: str) -> float:
    """NDCG of a ranker on its own training data."""
    data: RankingData = read_data(path)
    learner = LambdaMART("NDCG@10", n_estimators=10).fit(data)
    return evaluate(data, {"own": learner}, "NDCG@10").means()["own"]["NDCG@10"]


# Strict checking calls an exception that excuses nothing an error: so would it be if the wheel brought no types.
wrong: str = read_data("train.txt").n_docs  # type: ignore[assignment]

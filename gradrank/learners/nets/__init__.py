"""Nets on PyTorch (extra ``nets``): LambdaRank, RankNet, ListNet, ListMLE, and regression."""

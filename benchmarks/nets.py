"""Time of an epoch of a two-layer net beside plain PyTorch with a vectorized RankNet loss, on made-up data.

Run: python benchmarks/nets.py [--queries 10000 --docs 50 --features 50 --hidden 10 --threads 2 --epochs 5]

The peer is the same net, optimizer and batches of queries in plain PyTorch: all lists have the same length, so that it
needs no padding, and the pairs of a batch are one tensor. Documents of real lists differ in number; then the peer would
pay for padding as well, and gradrank not.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from gradrank.data import RankingData
from gradrank.learners import LambdaRank, ListNet, RankNet, Step
from gradrank.learners.nets.learner import NetLearner
from gradrank.models.nets.scaling import Scaling


def made_up(queries: int, docs: int, features: int, random_state: int = 0) -> RankingData:
    """Five grades that depend on a few of the features; lists of equal length."""
    rng = np.random.default_rng(random_state)
    X = rng.standard_normal((queries * docs, features), dtype=np.float32)
    relevance = X[:, 0] + 0.5 * X[:, 1] * X[:, 2] + rng.standard_normal(len(X), dtype=np.float32)
    labels = np.searchsorted(np.quantile(relevance, [0.5, 0.75, 0.9, 0.97]), relevance)
    return RankingData.from_arrays(X, labels, group=np.full(queries, docs))


def ours(learner: NetLearner, data: RankingData) -> list[float]:
    """Seconds of each epoch but the first, which follows compilation."""
    ends: list[float] = []

    def note(_step: Step) -> None:
        ends.append(time.perf_counter())

    learner.set_params(callbacks=(note,)).fit(data)
    return np.diff(ends).tolist()


def theirs(data: RankingData, hidden: int, batch: int, n_jobs: int, epochs: int, rate: float) -> list[float]:
    """Seconds of each epoch of plain PyTorch but the first."""
    torch.set_num_threads(n_jobs)
    docs = int(data.sizes[0])
    features = torch.from_numpy(Scaling.learned(data.X).apply(data.X)).reshape(-1, docs, data.n_features)
    labels = torch.from_numpy(np.array(data.label())).reshape(-1, docs)
    net = torch.nn.Sequential(torch.nn.Linear(data.n_features, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 1))
    optimizer = torch.optim.AdamW(net.parameters(), lr=rate, weight_decay=0.1, fused=True)
    times = []
    for _ in range(epochs):
        began = time.perf_counter()
        order = torch.randperm(len(features))
        for first in range(0, len(order), batch):
            chosen = order[first : first + batch]
            scores = net(features[chosen])[:, :, 0]
            grades = labels[chosen]
            pairs = grades[:, :, None] > grades[:, None, :]
            losses = torch.nn.functional.softplus(scores[:, None, :] - scores[:, :, None])
            loss = (losses * pairs).sum() / len(chosen)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        times.append(time.perf_counter() - began)
    return times[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (
        ("queries", 10_000),
        ("docs", 50),
        ("features", 50),
        ("hidden", 10),
        ("threads", 2),
        ("epochs", 5),
    ):
        parser.add_argument(f"--{name}", dest={"threads": "n_jobs"}.get(name), type=int, default=default)
    options = parser.parse_args()
    data = made_up(options.queries, options.docs, options.features)
    print(f"{data}; net with {options.hidden} hidden nodes, {options.n_jobs} threads; shortest epoch of several")
    print(f"{'queries a batch':>15} {'':22} {'seconds':>8} {'of plain PyTorch':>17}")
    for batch in (32, 256):
        peer = min(theirs(data, options.hidden, batch, options.n_jobs, options.epochs, 0.01))
        print(f"{batch:>15} {'plain PyTorch RankNet':22} {peer:8.3f} {'':>17}")
        for kind, objective in ((RankNet, None), (ListNet, None), (LambdaRank, "NDCG@10"), (LambdaRank, "MAP(rel=1)")):
            learner = kind(
                objective,
                hidden_layer_sizes=options.hidden,
                batch_size=batch,
                epochs=options.epochs,
                n_jobs=options.n_jobs,
            )
            seconds = min(ours(learner, data))
            name = f"{kind.__name__} {objective or ''}".strip()
            print(f"{batch:>15} {name:22} {seconds:8.3f} {seconds / peer:>16.0%}")


if __name__ == "__main__":
    main()

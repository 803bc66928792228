"""Speed of the objectives' gradients, beside the same losses in vectorized PyTorch.

Run: python benchmarks/objectives.py [--queries 10000 --docs 50 --threads 2 --rounds 5]

Times are the processor's (all threads), as a busy machine says nothing about the clock. PyTorch gets what is easiest
for it: equally long lists, nothing padded, one tensor of queries × documents.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from gradrank.data import RankingData
from gradrank.data.topk import top_k_labels
from gradrank.objectives import CONSTRUCTIONS, parse_objective

NAMES = [
    "Lambda(NDCG)",
    "RankNet",
    "ListNet",
    "ListMLE",
    "ListMLE(k=10)",
    "Focused(k=10, label=topk)",
    *(f"Lambda(MAP(rel=2), construction={name})" for name in CONSTRUCTIONS),
]


def made_up(queries: int, docs: int) -> RankingData:
    """Five grades as the web has them, and a top ten made of them."""
    rng = np.random.default_rng(0)
    labels = rng.choice(5, queries * docs, p=[0.45, 0.3, 0.15, 0.07, 0.03]).astype(np.float32)
    indptr = np.arange(0, queries * docs + 1, docs)
    columns = {"label": labels, "topk": top_k_labels(labels, indptr, 10)}
    return RankingData.from_arrays(np.zeros((queries * docs, 1)), columns, group=np.full(queries, docs))


def milliseconds(work: Callable[[], object], rounds: int) -> float:
    """Least processor time of several rounds, after one that compiles."""
    work()
    times = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return 1000 * min(times)


def torch_losses(data: RankingData, scores: np.ndarray, docs: int, n_jobs: int) -> dict[str, Callable[[], object]]:
    """Forward and backward of losses over a tensor of queries × documents."""
    import torch

    torch.set_num_threads(n_jobs)
    labels = torch.tensor(data.label().reshape(-1, docs))
    better = (labels[:, :, None] > labels[:, None, :]).float()
    truth = torch.softmax(labels, dim=1)

    def ranknet() -> object:
        s = torch.tensor(scores.reshape(-1, docs), dtype=torch.float32, requires_grad=True)
        (better * torch.nn.functional.softplus(s[:, None, :] - s[:, :, None])).sum().backward()
        return s.grad

    def listnet() -> object:
        s = torch.tensor(scores.reshape(-1, docs), dtype=torch.float32, requires_grad=True)
        (-(truth * torch.log_softmax(s, dim=1)).sum()).backward()
        return s.grad

    return {"RankNet": ranknet, "ListNet": listnet}


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name, default in (("queries", 10_000), ("docs", 50), ("threads", 2), ("rounds", 5)):
        parser.add_argument(f"--{name}", dest={"threads": "n_jobs"}.get(name), type=int, default=default)
    options = parser.parse_args()
    data = made_up(options.queries, options.docs)
    scores = np.random.default_rng(1).normal(size=data.n_docs)
    peers = torch_losses(data, scores, options.docs, options.n_jobs)
    print(f"{options.queries:,} queries of {options.docs} documents, processor time")
    for name in NAMES:
        bound = parse_objective(name).bind(data, n_jobs=options.n_jobs)
        own = milliseconds(partial(bound.gradients, scores), options.rounds)
        line = f"{name:55s} {own:8.1f} ms"
        if name in peers:
            peer = milliseconds(peers[name], options.rounds)
            line += f"   PyTorch {peer:8.1f} ms   ratio {peer / own:.1f}"
        print(line)


if __name__ == "__main__":
    main()

"""Speed of evaluation beside pytrec_eval and ranx: NDCG@10, MAP and MRR on the same made-up data.

Run: python benchmarks/evaluate.py [--queries N --docs N]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from gradrank.data import RankingData
from gradrank.measures import MAP, MRR, NDCG, bind_measures, bound_values, measure_values

MEASURES = [NDCG(10), MAP(), MRR()]


def best_seconds(work: Callable[[], object], repeats: int) -> float:
    """Shortest of several runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def made_up(queries: int, docs: int, random_state: int = 0) -> tuple[RankingData, np.ndarray]:
    """Graded labels and distinct scores, ``docs`` documents per query."""
    rng = np.random.default_rng(random_state)
    n = queries * docs
    labels = np.searchsorted([0.5, 0.75, 0.9, 0.97], rng.random(n))
    data = RankingData.from_arrays(np.zeros((n, 1), np.float32), labels, group=np.full(queries, docs))
    return data, labels + rng.normal(size=n)


def nested(data: RankingData, values: np.ndarray, names: list[str]) -> dict[str, dict[str, float]]:
    """Query → document → value: the dictionaries that pytrec_eval and ranx take."""
    plain = values.tolist()
    spans = zip(data.qid, data.indptr[:-1].tolist(), data.indptr[1:].tolist(), strict=True)
    return {qid: dict(zip(names[a:b], plain[a:b], strict=True)) for qid, a, b in spans}


def peers(data: RankingData, scores: np.ndarray) -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    """The same evaluation by the peers: from arrays, and from the structures that each takes, already built."""
    import pytrec_eval
    import ranx

    names = [f"d{row}" for row in range(data.n_docs)]
    labels = data.label().astype(int)
    qrels, run = nested(data, labels, names), nested(data, scores, names)
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10", "map", "recip_rank"})
    ranx_qrels, ranx_run = ranx.Qrels(qrels), ranx.Run(run)
    metrics = ["ndcg_burges@10", "map", "mrr"]

    def by_pytrec_eval(run_of_dicts: object) -> object:
        return evaluator.evaluate(run_of_dicts)

    def by_ranx(run_of_lists: object) -> object:
        return ranx.evaluate(ranx_qrels, run_of_lists, metrics, make_comparable=False)

    return {
        "pytrec_eval": (lambda: by_pytrec_eval(nested(data, scores, names)), lambda: by_pytrec_eval(run)),
        "ranx": (lambda: by_ranx(ranx.Run(nested(data, scores, names))), lambda: by_ranx(ranx_run)),
    }


def main() -> None:
    """Print documents per second and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--docs", type=int, default=120)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    data, scores = made_up(options.queries, options.docs)
    bound = bind_measures(MEASURES, data)
    # The peers' judgments are prepared before the clock starts; so are ours. The last line counts everything.
    bound_values(bound, scores)  # compile
    ours = best_seconds(lambda: bound_values(bound, scores), 5 * options.repeats)
    print(f"{data.n_queries:,} queries × {options.docs} documents: NDCG@10 + MAP + MRR, judgments prepared")
    print(f"  {'gradrank':36} {data.n_docs / ours / 1e6:8.2f} million documents/s")
    for name, (from_arrays, from_own) in peers(data, scores).items():
        for what, work in (("from arrays", from_arrays), ("from its own structures", from_own)):
            work()
            seconds = best_seconds(work, options.repeats)
            rate = data.n_docs / seconds / 1e6
            label = f"{name}, {what}"
            print(f"  {label:36} {rate:8.2f} million documents/s   gradrank is {seconds / ours:.1f} × as fast")
    large, large_scores = made_up(31_000, 120)
    measure_values(MEASURES, large_scores, large)
    seconds = best_seconds(lambda: measure_values(MEASURES, large_scores, large), 3)
    print(
        f"{large.n_docs:,} documents (the size of MSLR-WEB30K), from arrays and with all preparation: {seconds:.2f} s"
    )


if __name__ == "__main__":
    main()

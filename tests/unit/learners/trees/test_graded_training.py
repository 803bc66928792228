"""Training on several label sources: what is said of them, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from gradrank.data import RankingData
from gradrank.data.artificial import make_data
from gradrank.errors import GradrankError
from gradrank.learners import LambdaMART

GRADED = "Tiered(NDCG, CNDCG, weight=0.2)"


def data_of(part: int = 0) -> RankingData:
    return make_data(30, n_docs=10, n_features=5, random_state=2, clicks=True, part=part)


def learner(objective: str = GRADED, **options: object) -> LambdaMART:
    return LambdaMART(objective, n_estimators=5, min_child_samples=5, n_jobs=1, **options)  # type: ignore[arg-type]


class Listener:
    """A callback that is told the pairs before the first step."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    def begin(self, pairs) -> None:
        self.heard.append([(fact.source, fact.pairs) for fact in pairs])

    def __call__(self, step) -> None:
        self.heard.append(step.number)


def test_pairs_are_told_first_and_kept_with_the_model() -> None:
    data = data_of()
    clicks = data.label("clicks").copy()
    clicks[: data.indptr[4]] = np.nan
    data = data.with_label("clicks", clicks)
    listener = Listener()
    trained = learner(callbacks=(listener,)).fit(data)
    pairs = trained.ranker_.training["pairs"]
    assert listener.heard == [[(fact["source"], fact["pairs"]) for fact in pairs], 1, 2, 3, 4, 5]
    assert [fact["weight"] for fact in pairs] == [0.8, 0.2]
    assert pairs[1]["unlabeled_documents"] == data.indptr[4]
    assert pairs[1]["unlabeled_queries"] == 4


@pytest.mark.parametrize(
    ("objective", "labels", "clicks"),
    [
        (GRADED, [1.0] * 10, [0.0] * 10),
        (GRADED, [1.0] * 10, [0.3] * 10),
        ("Tiered(NDCG, CNDCG, weight=0)", [1.0] * 10, np.linspace(0.1, 1.0, 10)),
        ("Scheduled(Lambda(MAP(rel=5)), Lambda(MAP(rel=5), cost=sigmoid))", [0.0, 1.0] * 5, [0.0] * 10),
    ],
)
def test_labels_that_order_nothing_are_refused(objective: str, labels, clicks) -> None:
    columns = {"label": labels, "clicks": clicks}
    data = RankingData.from_arrays(np.random.default_rng(0).random((10, 2)), columns, group=[5, 5])
    with pytest.raises(GradrankError, match="nothing to order"):
        learner(objective).fit(data)


def test_one_source_alone_trains_with_full_force() -> None:
    data = data_of()
    alone = data.with_label("label", np.full(data.n_docs, np.nan))
    trained = learner("Tiered(NDCG, CNDCG, weight=0.2, zeros=true)").fit(alone)
    assert trained.ranker_.training["pairs"][0]["pairs"] == 0
    only = learner("CNDCG").fit(alone)
    assert trained.ranker_.to_dict()["payload"] == only.ranker_.to_dict()["payload"]


def test_validation_data_without_any_label_is_refused() -> None:
    nothing = data_of(1)
    nothing = nothing.with_label("label", np.full(nothing.n_docs, np.nan))
    nothing = nothing.with_label("clicks", np.full(nothing.n_docs, np.nan))
    with pytest.raises(GradrankError, match="has no value on the validation data"):
        learner().fit(data_of(), valid=nothing)


def test_a_weight_of_zero_is_training_on_the_first_tier_alone() -> None:
    graded = learner("Tiered(NDCG, CNDCG, weight=0)", measure="NDCG@3").fit(data_of(), valid=data_of(1))
    plain = learner("NDCG", measure="NDCG@3").fit(data_of(), valid=data_of(1))
    assert graded.ranker_.to_dict()["payload"] == plain.ranker_.to_dict()["payload"]

"""Tiers and schedules without weight are the plain objective, and move away from it smoothly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradrank.data.artificial import make_splits
from gradrank.evaluation import compare
from gradrank.learners import LambdaMART, LambdaRank
from gradrank.learners.base.estimator import RankingEstimator

PARTS = make_splits(150, n_docs=12, n_features=6, random_state=3, clicks=True)
TREES: dict[str, Any] = {"n_estimators": 8, "measure": "NDCG@5", "n_jobs": 1}
LEARNERS = {
    "newton": (LambdaMART, TREES),
    "gradient": (LambdaMART, TREES | {"step": "gradient"}),
    "optimal": (LambdaMART, TREES | {"step": "optimal", "n_estimators": 5}),
    "net": (LambdaRank, {"epochs": 3, "hidden_layer_sizes": 4, "measure": "NDCG@5"}),
}


def fitted(kind: str, objective: str, **more: Any) -> RankingEstimator:
    learner, parameters = LEARNERS[kind]
    return learner(objective, **(parameters | more)).fit(PARTS["train"], valid=PARTS["vali"])


@pytest.mark.parametrize("kind", LEARNERS)
@pytest.mark.parametrize("measure", ["NDCG", "MAP", "NDCG@3"])
def test_without_weight_the_model_is_that_of_the_plain_measure(kind: str, measure: str) -> None:
    plain = fitted(kind, measure).predict(PARTS["test"])
    assert len(np.unique(plain)) > 100
    names = [
        f"Tiered({measure}, CNDCG(label=clicks), weight=0)",
        f"Scheduled({measure}, CNDCG(label=clicks), w0=0, eta=0)",
    ]
    if kind != "optimal":  # its steps follow the first objective's measure
        names.append(f"Scheduled(CNDCG(label=clicks), {measure}, w0=1, eta=0)")
    for composed in names:
        np.testing.assert_array_equal(fitted(kind, composed).predict(PARTS["test"]), plain, err_msg=composed)


def test_a_little_weight_changes_little() -> None:
    """With the papers' bare λ's inside, the trusted measure fell by a tenth as soon as there were tiers."""
    # Nothing is added to leaves, for which the bounds below were set.
    few: dict[str, Any] = {"n_estimators": 40, "learning_rate": 0.1, "reg_lambda": 0.0}
    systems = {"plain": fitted("newton", "NDCG", **few)}
    for weight in (0.01, 0.3):
        name = f"Tiered(NDCG, CNDCG(label=clicks), weight={weight})"
        systems[str(weight)] = fitted("newton", name, **few)
    means = compare(PARTS["test"], systems, ["NDCG@5", "CNDCG(label=clicks)@5"], baseline="plain").evaluation.means()
    assert means["0.01"]["NDCG@5"] == pytest.approx(means["plain"]["NDCG@5"], abs=0.02)
    assert means["0.3"]["NDCG@5"] == pytest.approx(means["plain"]["NDCG@5"], abs=0.03)
    assert means["0.3"]["CNDCG(label=clicks)@5"] > means["plain"]["CNDCG(label=clicks)@5"]
    # What the bare λ's reach with as many trees.
    bare = fitted("newton", "Tiered(Lambda(NDCG), Lambda(CNDCG(label=clicks)), weight=0.01)", **few)
    assert bare.score(PARTS["test"]) < systems["0.01"].score(PARTS["test"])

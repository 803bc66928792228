"""Full list, no normalization, ties in file order: our λ's are LightGBM's lambdarank gradients."""

from __future__ import annotations

import numpy as np
import pytest

from gradrank.data import RankingData
from gradrank.measures import NDCG
from gradrank.objectives import Lambda

lightgbm = pytest.importorskip("lightgbm")


def leaf_sums(
    data: RankingData, scores: np.ndarray, feature: np.ndarray, **parameters: object
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """LightGBM's gradients as far as a tree shows them: a leaf's output is −ΣG/ΣH over its documents, its weight ΣH."""
    features = feature[:, None]
    bins = {"max_bin": 2 * data.n_docs, "min_data_in_bin": 1}
    dataset = lightgbm.Dataset(features, data.label(), group=data.sizes, init_score=scores, params=bins)
    # Leaves of less weight make LightGBM fail a check of its own.
    booster = lightgbm.train(
        {"objective": "lambdarank", "lambdarank_truncation_level": 1000, "num_leaves": data.n_docs,
         "learning_rate": 1.0, "min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 1e-2, "verbose": -1,
         "num_threads": 1, **bins, **parameters},
        dataset, 1,
    )  # fmt: skip
    leaf = booster.predict(features, pred_leaf=True).ravel()
    weight = {
        int(name.split("L")[1]): weight
        for name, weight in booster.trees_to_dataframe()[["node_index", "weight"]].itertuples(index=False)
        if "L" in name
    }
    hessian = np.array([weight[number] for number in range(len(weight))])
    output = np.zeros(len(weight))
    output[leaf] = booster.predict(features, raw_score=True)
    return leaf, output * hessian, hessian


@pytest.mark.parametrize("random_state", range(4))
@pytest.mark.parametrize(
    ("parameters", "options"),
    [
        ({"lambdarank_norm": False}, {}),
        ({"lambdarank_norm": True}, {"gap": True, "normalize": "log"}),
    ],
    ids=["plain", "normalized"],
)
def test_lightgbm_gradients(random_state: int, parameters: dict[str, object], options: dict[str, object]) -> None:
    rng = np.random.default_rng(random_state)
    sizes = np.array([9, 14, 6])
    labels = rng.integers(0, 5, sizes.sum())
    data = RankingData.from_arrays(np.zeros((len(labels), 1)), labels, group=sizes)
    scores = rng.integers(-3, 4, len(labels)) / 2.0  # with ties
    leaf, theirs, their_hessians = leaf_sums(data, scores, rng.permutation(len(labels)).astype(float), **parameters)
    assert len(theirs) >= 12  # most leaves hold one or two documents
    ours = Lambda(NDCG(), ties="file", **options).bind(data).gradients(scores)  # type: ignore[arg-type]
    # LightGBM looks the sigmoid up in a table of 2^20 entries over (−50, 50), and prints weights with six digits.
    np.testing.assert_allclose(np.bincount(leaf, ours.lambdas), theirs, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(np.bincount(leaf, ours.rhos), their_hessians, rtol=1e-4, atol=1e-4)

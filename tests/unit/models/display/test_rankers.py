"""What rankers say of themselves, as a line and in a notebook."""

from __future__ import annotations

import pytest

from gradrank.models.feature import FeatureRanker
from gradrank.models.linear import LinearRanker
from gradrank.models.nets.net import NetRanker
from gradrank.models.ranker import Ranker
from gradrank.models.trees.ensemble import Tree, TreeEnsemble
from gradrank.models.trees.expected_grade import ExpectedGrade
from gradrank.models.weighted_sum import WeightedSum

STUMP = Tree.numerical(split_feature=[1], threshold=[0.5], left=[-1], right=[-2], leaf_value=[1.0, 2.0])
TRAINED = {
    "learner": "LambdaMART", "measure": "NDCG@10", "objective": "Lambda(NDCG@10)", "best": 1, "grown": 1200,
    "curves": {"valid": {"NDCG@10": [0.5, 0.4], "MAP": [0.2, 0.3]}},
}  # fmt: skip
TREES = TreeEnsemble([STUMP], ["a", "b"], training=TRAINED)
RANKERS = {
    "TreeEnsemble(1 trees, 2 features; LambdaMART for NDCG@10, step 1 of 1,200)": TREES,
    "LinearRanker(2 features)": LinearRanker([1.0, 0.0]),
    "FeatureRanker(−price)": FeatureRanker("price", -1),
    "WeightedSum(0.5·TreeEnsemble + 2·FeatureRanker)": WeightedSum([(0.5, TREES), (2.0, FeatureRanker("c"))]),
    "ExpectedGrade(2 grades, 2 trees, 2 features)": ExpectedGrade([TREES, TREES]),
    "NetRanker(1 features, no hidden nodes)": NetRanker([([[1.0]], [0.0])]),
}


@pytest.mark.parametrize("line", RANKERS)
def test_a_line(line: str) -> None:
    assert repr(RANKERS[line]) == line


@pytest.mark.parametrize("ranker", RANKERS.values(), ids=lambda ranker: ranker.kind)
def test_every_kind_shows_itself(ranker: Ranker) -> None:
    shown = ranker._repr_html_()
    assert f"<strong>{type(ranker).__name__}</strong>" in shown
    assert "features</td>" in shown


def test_trees_tell_their_size_their_features_and_their_training() -> None:
    shown = TREES._repr_html_()
    for fact in (">1</td>", "2, of which 1 are used", "b 100 %", "Lambda(NDCG@10)", "1 of 1,200"):
        assert fact in shown
    assert shown.count("<svg") == 2
    assert "NDCG@10 while training" in shown
    assert "<svg" not in LinearRanker([1.0])._repr_html_()

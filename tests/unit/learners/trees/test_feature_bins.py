"""Bins of our own: which values they separate, and that a bin tells what comparing with thresholds tells."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gradrank.data import RankingData
from gradrank.data.formats.binary import open_binary, write_binary
from gradrank.learners.trees.feature_bins import MISSING_BIN, FeatureBins, cut_points
from gradrank.runtime.memory import is_mapped

values = st.one_of(st.floats(-1e38, 1e38), st.sampled_from([0.0, -0.0, 1.0, 5e-324, np.nan]))


@given(arrays(np.float64, st.integers(1, 40), elements=values), st.sampled_from([2, 3, 5, 255]))
def test_a_bin_tells_what_thresholds_tell(column: np.ndarray, most: int) -> None:
    data = RankingData.from_arrays(column[:, None], qid=np.zeros(len(column), dtype=int))
    made = FeatureBins.of(data, most)
    (thresholds,), (bins,) = made.thresholds, made.bins
    assert len(thresholds) < most
    assert (np.diff(thresholds) > 0).all()
    for threshold in range(len(thresholds)):
        left = data.X[:, 0] <= thresholds[threshold]
        assert ((bins <= threshold + 1) == (left | np.isnan(data.X[:, 0]))).all()
        # Each separates something.
        assert 0 < left.sum() < (~np.isnan(data.X[:, 0])).sum()
    assert ((bins == MISSING_BIN) == np.isnan(data.X[:, 0])).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neighboring_numbers_are_told_apart(dtype: type) -> None:
    one = dtype(1.0)
    next_one = np.nextafter(one, dtype(2.0))
    (threshold,) = cut_points(np.array([one, next_one]), 255)
    assert float(one) <= threshold < float(next_one)


def test_few_values_have_a_bin_each_and_many_share_them_evenly() -> None:
    assert cut_points(np.repeat([1.0, 2.0, 4.0], 50), 3).tolist() == [1.5, 3.0]
    many = np.random.default_rng(0).exponential(size=20_000)
    counts = np.histogram(many, np.concatenate([[-1.0], cut_points(many, 50), [np.inf]]))[0]
    assert len(counts) == 50
    assert counts.min() >= 390
    assert counts.max() <= 410
    # A value that half of the documents have is one bin; the others share what is left of them.
    skewed = np.where(np.arange(1000) < 500, 0.0, np.arange(1000))
    thresholds = cut_points(skewed, 10)
    assert (np.histogram(skewed, np.concatenate([[-1.0], thresholds, [np.inf]]))[0][0], len(thresholds)) == (500, 5)


def test_nothing_to_tell_apart_has_no_threshold() -> None:
    assert not len(cut_points(np.full(9, 3.0), 255))
    assert not len(cut_points(np.full(9, np.nan), 255))


def test_features_in_a_file_have_the_bins_of_those_in_memory(tmp_path) -> None:
    rng = np.random.default_rng(1)
    X = np.where(rng.random((40_000, 3)) < 0.1, np.nan, rng.standard_normal((40_000, 3)))
    data = RankingData.from_arrays(X, np.zeros(40_000), qid=np.arange(40_000) // 20)
    write_binary(data, tmp_path / "kept")
    kept = open_binary(tmp_path / "kept")
    assert is_mapped(kept.X)
    here, there = FeatureBins.of(data, 100, n_jobs=1), FeatureBins.of(kept, 100, n_jobs=2)
    assert (here.bins == there.bins).all()
    assert [each.tolist() for each in here.thresholds] == [each.tolist() for each in there.thresholds]

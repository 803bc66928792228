"""Profiles and drift against sums written out, and against chance."""

from __future__ import annotations

import json
from itertools import pairwise
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank.data import RankingData
from gradrank.data.drift import Thresholds, find_drift
from gradrank.data.feature_profile import FeatureProfile, Spread, load_profile, profile_features
from gradrank.data.fingerprint import data_fingerprint
from gradrank.errors import DataError


def data_of(columns: Any, labels: Any = None) -> RankingData:
    X = np.asarray(columns, dtype=np.float64)
    return RankingData.from_arrays(X, labels, qid=np.arange(len(X)) // 4)


VALUES = st.lists(
    st.floats(-1e6, 1e6, width=32) | st.sampled_from([0.0, -0.0, 1.0, float("nan")]), min_size=1, max_size=120
)


@given(VALUES, st.integers(2, 12), VALUES)
def test_every_document_is_in_the_bin_that_its_edges_say(values: list[float], bins: int, others: list[float]) -> None:
    (spread,) = profile_features(data_of([[v] for v in values]), bins=bins).features
    there = [v for v in values if v == v]  # noqa: PLR0124
    assert spread.missing == len(values) - len(there)
    assert spread.present == len(there)
    if spread.values is not None:
        assert len(spread.values) == len(set(there)) <= 20
        assert list(spread.counts) == [there.count(v) for v in spread.values]
    else:
        assert len(spread.counts) <= bins
        assert min(spread.counts) > 0
    # The same data, and other data, by comparing with the edges one by one.
    for column in (values, others):
        counts, unknown, missing = spread.count(np.array(column, dtype=np.float32))
        present = [v for v in column if v == v]  # noqa: PLR0124
        if spread.values is not None:
            wanted = [present.count(v) for v in spread.values]
        else:
            ends = [-np.inf, *(spread.edges or ()), np.inf]
            wanted = [sum(low < v <= high for v in present) for low, high in pairwise(ends)]
        assert counts.tolist() == wanted
        assert (unknown, missing) == (len(present) - sum(wanted), len(column) - len(present))
    assert spread.count(np.array(values, dtype=np.float32))[0].tolist() == list(spread.counts)


def test_bins_hold_about_equally_many_documents() -> None:
    rng = np.random.default_rng(0)
    (spread,) = profile_features(data_of(rng.normal(size=(5000, 1)))).features
    assert len(spread.counts) == 10
    assert max(spread.counts) - min(spread.counts) <= 2


def test_psi_missing_and_new_values_by_hand() -> None:
    before = data_of([[0, 0]] * 60 + [[1, 0]] * 40)
    now = data_of([[0, 0]] * 30 + [[1, 0]] * 50 + [[2, np.nan]] * 20)
    drift = find_drift(now, profile_features(before))
    first, second = sorted(drift.features, key=lambda change: change.name)
    old = [60.5 / 101.5, 40.5 / 101.5, 0.5 / 101.5]
    new = [30.5 / 101.5, 50.5 / 101.5, 20.5 / 101.5]
    assert first.psi == pytest.approx(sum((n - o) * log(n / o) for o, n in zip(old, new, strict=True)))
    assert (first.new_values, first.outside, first.missing_now) == (0.2, 0.2, 0.0)
    assert first.faults == ("spread", "new values")
    assert (second.psi, second.missing_before, second.missing_now) == (0.0, 0.0, 0.2)
    assert second.faults == ("missing values",)
    unused = find_drift(now, profile_features(before), used=("f2",))
    assert [change.name for change in unused.faults] == ["f2"]
    lenient = find_drift(now, profile_features(before), thresholds=Thresholds(9, 0.3, 0.3, 9))
    assert lenient.faults == ()


def test_small_samples_of_the_same_data_are_no_drift_and_moved_ones_are() -> None:
    rng = np.random.default_rng(1)
    trained = profile_features(data_of(rng.normal(size=(20_000, 40))))
    plain = [find_drift(data_of(rng.normal(size=(60, 40))), trained) for _ in range(20)]
    above = np.mean([change.psi > 0.2 for drift in plain for change in drift.features])
    faults = np.mean([bool(change.faults) for drift in plain for change in drift.features])
    assert above > 0.05  # the threshold alone would cry wolf
    assert faults < 0.01
    moved = find_drift(data_of(rng.normal(size=(60, 40)) + 1.5), trained)
    assert len(moved.faults) == 40


def test_labels_that_shift_are_found_where_there_are_labels() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 1))
    trained = profile_features(data_of(X, rng.choice([0, 1, 2], 400, p=[0.7, 0.2, 0.1])))
    shifted = find_drift(data_of(X, rng.choice([0, 1, 2], 400, p=[0.2, 0.3, 0.5])), trained)
    assert [change.name for change in shifted.faults] == ["label"]
    assert find_drift(data_of(X), trained).labels == ()
    assert find_drift(data_of(X, np.full(400, np.nan)), trained).labels == ()


def test_features_without_any_value_on_one_side() -> None:
    empty, full = data_of([[np.nan]] * 40), data_of([[float(n % 3)] for n in range(40)])
    (lost,) = find_drift(empty, profile_features(full)).features
    assert np.isnan(lost.psi)
    assert lost.faults == ("missing values",)
    (found,) = find_drift(full, profile_features(empty)).features
    assert found.faults == ("missing values", "new values")


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    data = data_of(np.random.default_rng(3).normal(size=(3000, 2)))
    one = profile_features(data, most_documents=500, random_state=1)
    assert one.looked_at == 500
    assert one == profile_features(data, most_documents=500, random_state=1)
    assert one != profile_features(data, most_documents=500, random_state=2)


def spoilt(value: dict[str, Any], change: str) -> Any:
    spread = value["features"][0]
    if change == "counts":
        spread["counts"] = spread["counts"][:-1]
    elif change == "order":
        spread["edges"] = spread["edges"][::-1]
    elif change == "negative":
        spread["counts"][0] = -1
    elif change == "twice":
        value["features"].append(spread)
    elif change == "version":
        value["version"] = 2
    elif change == "lacks":
        del value["documents"]
    else:
        return []
    return value


@pytest.mark.parametrize("change", ["counts", "order", "negative", "twice", "version", "lacks", "list"])
def test_damaged_profiles_are_refused(tmp_path: Path, change: str) -> None:
    profile = profile_features(data_of(np.random.default_rng(4).normal(size=(100, 1))))
    path = tmp_path / "p.json"
    profile.save(path)
    assert load_profile(path) == profile
    path.write_text(json.dumps(spoilt(profile.to_dict(), change)))
    with pytest.raises(DataError, match=r"p\.json: (is|has)"):
        load_profile(path)


def test_other_features_than_the_profiles_are_refused() -> None:
    profile = FeatureProfile(1, 1, 1, (Spread("other", (0.0,), None, (1,), 0, 0.0, 0.0),), ())
    with pytest.raises(DataError, match="does not have the features"):
        find_drift(data_of([[1.0]]), profile)


def test_fingerprints_tell_any_change_and_nothing_else() -> None:
    X = np.array([[1.0, np.nan], [0.0, 2.0], [3.0, 4.0]], dtype=np.float32)

    def made(matrix: Any = X, labels: Any = (0, 1, 2), qid: Any = (1, 1, 2), names: Any = ("a", "b")) -> str:
        return data_fingerprint(RankingData.from_arrays(matrix, list(labels), qid=list(qid), feature_names=list(names)))

    other_nan = X.copy()
    other_nan.view(np.uint32)[0, 1] |= 1
    negative_zero = X.copy()
    negative_zero[1, 0] = -0.0
    assert made() == made(np.asfortranarray(X)) == made(other_nan) == made(negative_zero)
    changed = X.copy()
    changed[2, 1] = np.nextafter(np.float32(4), np.float32(5))
    others = [
        made(changed),
        made(labels=(0, 1, 1)),
        made(qid=(1, 2, 2)),
        made(names=("a", "c")),
        made(X[:2], (0, 1), (1, 1)),
    ]
    plain = RankingData.from_arrays(X, [0, 1, 2], qid=[1, 1, 2], feature_names=["a", "b"])
    others += [
        data_fingerprint(plain.with_weight([1.0, 2.0])),
        data_fingerprint(plain.with_document_weight([1.0, 2.0, 2.0])),
        data_fingerprint(plain.with_document_weight([1.0, 2.0, 1.0])),
    ]
    assert data_fingerprint(plain) == made()
    assert len({made(), *others}) == 9

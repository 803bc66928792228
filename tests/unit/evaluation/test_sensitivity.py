"""What a number of queries can tell, against scipy's t-test; and when it is said."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import stats

from gradrank.errors import FewQueriesWarning
from gradrank.evaluation.sensitivity import Sensitivity, sensitivity, warn_about_few_queries


def two_systems(queries: int, spread: float, seed: int = 0) -> dict[str, np.ndarray]:
    """Systems with the same mean, up to a tenth of the spread."""
    rng = np.random.default_rng(seed)
    base = rng.uniform(0.3, 0.6, queries)
    apart = rng.normal(0.0, spread, queries)
    return {"base": base, "new": base + apart - apart.mean() + 0.01 * spread}


@pytest.mark.parametrize("queries", [2, 8, 100])
@pytest.mark.parametrize("level", [0.05, 0.2])
def test_a_difference_as_large_as_what_is_visible_is_just_significant(queries: int, level: float) -> None:
    values = two_systems(queries, 0.1)
    found = sensitivity(values, "NDCG", level=level)
    apart = values["new"] - values["base"]
    shifted = apart - apart.mean()
    assert stats.ttest_1samp(shifted + 1.001 * found.visible, 0.0).pvalue < level
    assert stats.ttest_1samp(shifted + 0.999 * found.visible, 0.0).pvalue > level
    assert found.queries == queries
    assert found.mean == pytest.approx(values["base"].mean())


def test_queries_without_a_value_do_not_count_and_the_median_system_speaks() -> None:
    values = two_systems(50, 0.1)
    values["base"][:20] = np.nan
    widths = []
    for number, spread in enumerate((0.01, 0.05, 0.4)):
        values[f"s{number}"] = values["base"] + np.random.default_rng(number).normal(0, spread, 50)
        widths.append(sensitivity({"base": values["base"], "one": values[f"s{number}"]}, "M").visible)
    del values["new"]
    found = sensitivity(values, "M")
    assert found.queries == 30
    assert found.visible == pytest.approx(sorted(widths)[1])
    assert sensitivity(values, "M", baseline="s0").mean == pytest.approx(np.nanmean(values["s0"]))


@pytest.mark.parametrize(
    ("queries", "spread", "warned"),
    [(8, 0.001, True), (8, 0.2, True), (20, 0.2, True), (20, 0.01, False), (400, 0.1, False), (1, 0.1, True)],
)
def test_few_or_noisy_queries_are_warned_about(queries: int, spread: float, warned: bool) -> None:
    values = two_systems(queries, spread)
    assert sensitivity(values, "NDCG@3").enough is not warned
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_about_few_queries(values, "NDCG@3", "the choice of the weight", remedy="take more validation queries")
    assert [warning.category for warning in caught] == [FewQueriesWarning] * warned
    if warned:
        text = str(caught[0].message)
        assert text.startswith(f"the choice of the weight means little: on {queries} quer")
        assert text.endswith("cannot be told from chance; take more validation queries") or queries == 1


def test_a_difference_that_was_seen_needs_no_warning() -> None:
    values = two_systems(12, 0.1)
    values["far"] = values["base"] + 0.5 + np.random.default_rng(1).normal(0, 0.2, 12)
    warn_about_few_queries({"base": values["base"], "far": values["far"]}, "NDCG", "the choice")
    # Beside it another one was not seen; only that one counts.
    with pytest.warns(FewQueriesWarning):
        warn_about_few_queries(values, "NDCG", "the choice")
    assert sensitivity(values, "NDCG") == sensitivity({name: values[name] for name in ("base", "new")}, "NDCG")


def test_one_system_is_no_decision() -> None:
    warn_about_few_queries({"base": [0.5]}, "NDCG", "the choice")
    assert not sensitivity({"base": [0.5]}, "NDCG").enough


def test_words() -> None:
    assert Sensitivity("MAP", 1, float("nan"), 0.5).sentence() == (
        "on 1 query no difference of MAP can be told from chance"
    )
    assert Sensitivity("MAP", 12, 0.1, 0.0).sentence() == (
        "on 12 queries a difference of MAP below 0.100 cannot be told from chance"
    )

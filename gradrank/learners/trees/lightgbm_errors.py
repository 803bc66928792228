"""What LightGBM refuses, in our words."""

from __future__ import annotations

from typing import Any

from gradrank.errors import TrainingError

_NOTHING_TOLD_APART = (
    "no feature has two values that trees can tell apart: numbers closer to 0 than 1e-35 are 0 to LightGBM"
)


def check_binned(dataset: Any) -> None:
    """Refuse data of which LightGBM leaves no feature, before it does so itself with words of its own on the output."""
    if not any(dataset.feature_num_bin(column) > 1 for column in range(dataset.num_feature())):
        raise TrainingError(_NOTHING_TOLD_APART)


def refused(error: Exception) -> TrainingError:
    """The error for the user of one that LightGBM raised.

    >>> print(refused(Exception("Check failed: (train_data->num_features()) > (0) at feature_histogram.hpp")))
    no feature has two values that trees can tell apart: numbers closer to 0 than 1e-35 are 0 to LightGBM
    """
    text = " ".join(str(error).split())
    if "num_features()) > (0)" in text or "no meaningful features" in text:
        return TrainingError(_NOTHING_TOLD_APART)
    return TrainingError(f"LightGBM refuses: {text}")

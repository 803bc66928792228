"""What LightGBM refuses, in our words."""

from __future__ import annotations

from gradrank.errors import TrainingError


def refused(error: Exception) -> TrainingError:
    """The error for the user of one that LightGBM raised.

    >>> print(refused(Exception("Check failed: (train_data->num_features()) > (0) at feature_histogram.hpp")))
    no feature has two values that trees can tell apart: numbers closer to 0 than 1e-35 are 0 to LightGBM
    """
    text = " ".join(str(error).split())
    if "num_features()) > (0)" in text or "no meaningful features" in text:
        return TrainingError(
            "no feature has two values that trees can tell apart: numbers closer to 0 than 1e-35 are 0 to LightGBM"
        )
    return TrainingError(f"LightGBM refuses: {text}")

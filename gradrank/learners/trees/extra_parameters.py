"""Further parameters of LightGBM that the user gives: checked before they are handed on."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cache
from typing import Any

from gradrank.errors import TrainingError

# LightGBM's own parameters that make it look at part of the data, by all their names.
ROW_SAMPLING = {
    "bagging_fraction", "bagging", "sub_row", "subsample", "bagging_freq", "subsample_freq", "data_sample_strategy",
    "pos_bagging_fraction", "neg_bagging_fraction", "boosting", "boosting_type", "boost",
}  # fmt: skip
# The same of the features or the rows.
SAMPLING = {
    *ROW_SAMPLING, "feature_fraction", "sub_feature", "colsample_bytree", "feature_fraction_bynode",
    "sub_feature_bynode", "colsample_bynode",
}  # fmt: skip
# LightGBM's names, with aliases, of what gradrank's own parameters set.
_OURS = {
    **dict.fromkeys(("num_leaves", "num_leaf", "max_leaves", "max_leaf", "max_leaf_nodes"), "num_leaves"),
    **dict.fromkeys(("learning_rate", "shrinkage_rate", "eta"), "learning_rate"),
    **dict.fromkeys(
        ("num_iterations", "num_iteration", "n_iter", "num_tree", "num_trees", "num_round", "num_rounds", "nrounds",
         "num_boost_round", "n_estimators", "max_iter"), "n_estimators"),
    **dict.fromkeys(
        ("min_data_in_leaf", "min_data_per_leaf", "min_data", "min_child_samples", "min_samples_leaf"),
        "min_child_samples"),
    **dict.fromkeys(("objective", "objective_type", "app", "application", "loss"), "objective"),
    **dict.fromkeys(("max_bin", "max_bins"), "max_bin"),
    **dict.fromkeys(("seed", "random_seed", "random_state"), "random_state"),
}  # fmt: skip


def checked_extra(extra: Mapping[str, Any]) -> Mapping[str, Any]:
    """Further parameters of LightGBM, none of which is misspelt or ours."""
    known = lightgbm_parameters()
    for name in extra:
        if name in _OURS:
            raise TrainingError(f"lightgbm gives {name!r}, which is gradrank's {_OURS[name]}: set that")
        if known and name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise TrainingError(f"lightgbm gives {name!r}, which is no parameter of LightGBM{hint}")
    return extra


@cache
def lightgbm_parameters() -> frozenset[str]:
    """Names of LightGBM's parameters, with their aliases; none if this version of LightGBM does not tell."""
    import lightgbm

    # Not part of its public interface: without it misspelt names pass, as they do in LightGBM itself.
    table = getattr(lightgbm.basic, "_ConfigAliases", None)
    if not hasattr(table, "_get_all_param_aliases"):
        return frozenset()
    aliases = table._get_all_param_aliases()  # type: ignore[union-attr]
    return frozenset({*aliases, *(alias for names in aliases.values() for alias in names)})

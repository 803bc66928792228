"""Growing one regression tree at a time with LightGBM; everything that makes it a ranker is ours."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.monitor import TRAINING
from gradrank.learners.trees.binning import NO_STEP, BinnedLeaves, make_dataset
from gradrank.learners.trees.parameters import TreeParameters
from gradrank.learners.trees.rounding import rounded_at_random
from gradrank.models.trees.ensemble import Tree, assign_leaves, read_booster_tree
from gradrank.runtime.memory import is_mapped
from gradrank.runtime.threads import thread_count

# Gradients are rounded to so many levels: what LightGBM's single bytes hold. Its sums have 32 bits.
_LEVELS = 126
_LARGEST_SUM = 2**31 - 1
# LightGBM's own parameters that make it look at part of the data, by all their names.
ROW_SAMPLING = {
    "bagging_fraction", "bagging", "sub_row", "subsample", "bagging_freq", "subsample_freq", "data_sample_strategy",
    "pos_bagging_fraction", "neg_bagging_fraction", "boosting", "boosting_type", "boost",
}  # fmt: skip
_SAMPLING = {
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
# A thread with less to do costs more than it saves; trees are the same for any number of threads.
_VALUES_PER_THREAD = 250_000


class TreeGrower:
    """A LightGBM dataset and booster that grow a tree for given gradients.

    The tree's leaf values are LightGBM's own, or 0, and are meant to be replaced.

    Parameters
    ----------
    data
        Its features are binned once.
    parameters
        The shape of the trees.
    split
        Rule of the splits: ``mse`` or ``newton``.
    watched
        Further data sets by name, whose leaves are asked for.
    share_binning
        A grower of the same data, whose bins are used again.
    """

    def __init__(
        self,
        data: RankingData,
        parameters: TreeParameters,
        *,
        split: str,
        watched: Mapping[str, RankingData] | None = None,
        share_binning: TreeGrower | None = None,
    ) -> None:
        # Threads that wait for each other by spinning cost a busy machine many times what they save. This is read when
        # LightGBM is loaded.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        import lightgbm

        self._split = split
        self._parameters = parameters
        self._sets = separate_sets(data, watched or {})
        self._gradients: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None
        self._ones = np.ones(data.n_docs, dtype=np.float32)
        # Under monotone constraints LightGBM's own leaf values stay, and they shall be exact. On part of the features
        # or of the rows LightGBM's sums of rounded gradients are wrong (its pull request 7397).
        extra = checked_extra(parameters.lightgbm or {})
        partial = parameters.colsample_bytree < 1.0 or any(name in _SAMPLING for name in extra)
        self._quantized = parameters.quantized and parameters.monotone_constraints is None and not partial
        self._levels = min(_LEVELS, _LARGEST_SUM // data.n_docs)
        # Under monotone constraints LightGBM's own leaf values are needed, and other ways to boost change its scores.
        mapped = is_mapped(data.X)
        self._by_bins = (
            mapped and parameters.monotone_constraints is None and not any(name in _SAMPLING for name in extra)
        )
        settings = tree_settings(data, parameters, split, data.n_docs) | {
            "learning_rate": NO_STEP if self._by_bins else 1.0,
            "use_quantized_grad": self._quantized,
            "num_grad_quant_bins": self._levels,
            # Same trees for any number of threads: sums of whole numbers are the same in any order, and LightGBM may
            # go by rows or by columns as it finds quicker; sums of other numbers go by columns, one thread per column.
            # Going by rows needs a second copy of the bins, for which there may be no room where features are not held.
            "force_col_wise": mapped or not self._quantized,
            **extra,
        }
        try:
            if share_binning is None:
                categorical = categorical_columns(data, parameters.categorical_feature)
                self._dataset = make_dataset(data, settings, categorical=categorical)
                self._binned = self._binned_sets(settings, bool(categorical))
            else:
                self._dataset = share_binning._dataset
                self._binned = share_binning._binned
            self._settings = settings
            self._booster = self._new_booster(settings)
        except lightgbm.basic.LightGBMError as error:
            raise TrainingError(f"LightGBM refuses: {error}") from None
        self._error = lightgbm.basic.LightGBMError
        self._leaves: dict[str, NDArray[np.int32]] = {}

    def grow(self, lambdas: NDArray[np.float32], rhos: NDArray[np.float32], step: int) -> Tree:
        """Grow the tree of step ``step`` that fits the λ's: by least squares, or by Newton gain with ρ."""
        hessians = rhos if self._split == "newton" else self._ones
        # LightGBM descends: it takes the gradient of a loss.
        gradients = -lambdas
        if self._quantized:
            key = int(np.random.default_rng([self._parameters.random_state, step]).integers(2**62))
            gradients = rounded_at_random(gradients, self._levels // 2, key, self._parameters.n_jobs)
            if self._split == "newton":
                hessians = rounded_at_random(hessians, self._levels, key + 1, self._parameters.n_jobs)
        self._gradients = (gradients, hessians)
        if self._parameters.colsample_bytree < 1.0:
            self._reseed(step)
        try:
            finished = self._booster.update(fobj=self._stored_gradients)
        except self._error as error:
            raise TrainingError(f"LightGBM refuses: {error}") from None
        self._leaves = {}
        if finished:
            # No split improves anything, as when every λ is 0. A later step may find one: it may see other queries.
            self._grown = self._booster.num_trees()
            return Tree.of(leaf_value=[0.0])
        tree = read_booster_tree(self._booster, self._grown)
        if self._binned_leaves is None:
            self._grown += 1
        else:
            self._leaves = self._binned_leaves.take_back(tree)
        return tree

    def leaves(self, tree: Tree) -> dict[str, NDArray[np.int32]]:
        """The leaf of the tree grown last that each document reaches, for the training data and the watched sets."""
        found = dict(self._leaves)
        for name, data in self._sets.items():
            if name not in found:
                found[name] = assign_leaves(tree, data.X, n_jobs=self._parameters.n_jobs)
        return found

    def _binned_sets(self, settings: Mapping[str, Any], categorical: bool) -> dict[str, Any]:
        """LightGBM datasets of the watched sets that lie in files and whose leaves bins can tell."""
        if not self._by_bins or categorical:  # categories that the training data lacks have no bin of their own
            return {}
        return {
            name: make_dataset(data, settings, reference=self._dataset)
            for name, data in self._sets.items()
            if name != TRAINING and is_mapped(data.X)
        }

    def _new_booster(self, settings: Mapping[str, Any]) -> Any:
        import lightgbm

        booster = lightgbm.Booster(dict(settings), self._dataset)
        self._binned_leaves = BinnedLeaves(booster, self._binned) if self._by_bins else None
        self._grown = 0
        return booster

    def _reseed(self, step: int) -> None:
        """A new booster with a seed of its own for this step, so that an interrupted run goes on as if it had not been.

        LightGBM draws the features of a tree from a state that cannot be set later.
        """
        seed = int(np.random.default_rng([self._parameters.random_state, step]).integers(2**31 - 1))
        self._booster = self._new_booster({**self._settings, "seed": seed})

    def _stored_gradients(self, _scores: Any, _dataset: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        assert self._gradients is not None
        return self._gradients


def separate_sets(train: RankingData, watched: Mapping[str, RankingData]) -> dict[str, RankingData]:
    """The training data and the watched sets that are not it."""
    return {TRAINING: train, **{name: data for name, data in watched.items() if data is not train}}


def default_leaf_size(n_docs: int) -> int:
    """Fewest documents in a leaf unless given: 20, and fewer where a tree would else have hardly a split.

    >>> default_leaf_size(30), default_leaf_size(600), default_leaf_size(100_000)
    (1, 10, 20)
    """
    return max(1, min(20, n_docs // 60))


def tree_settings(data: RankingData, parameters: TreeParameters, split: str, n_docs: int) -> dict[str, Any]:
    """LightGBM's parameters for trees of ``n_docs`` documents, of which ``data`` may be a part."""
    leaf_size, depth = parameters.min_child_samples, parameters.max_depth
    settings: dict[str, Any] = {
        "objective": "none",
        "boosting": "gbdt",
        "learning_rate": 1.0,
        "num_leaves": int(parameters.num_leaves),
        "min_data_in_leaf": default_leaf_size(n_docs) if leaf_size is None else int(leaf_size),
        "max_depth": -1 if not depth else int(depth),
        "max_bin": int(parameters.max_bin),
        "min_sum_hessian_in_leaf": float(parameters.min_child_weight) if split == "newton" else 0.0,
        "lambda_l2": float(parameters.reg_lambda) if split == "newton" else 0.0,
        "feature_fraction": float(parameters.colsample_bytree),
        # We round ourselves: LightGBM's random rounding draws from a state that a resumed run cannot restore.
        "stochastic_rounding": False,
        "deterministic": True,
        "seed": parameters.random_state % (2**31 - 1),
        "num_threads": min(thread_count(parameters.n_jobs), max(1, data.X.size // _VALUES_PER_THREAD)),
        "verbosity": -1,
        "feature_pre_filter": False,
        # We keep scores ourselves.
        "boost_from_average": False,
    }
    if parameters.monotone_constraints is not None:
        settings["monotone_constraints"] = _signs(data, parameters.monotone_constraints)
    return settings


def _signs(data: RankingData, given: Sequence[int] | Mapping[str, int]) -> list[int]:
    """−1, 0 or 1 for each feature."""
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in data.feature_names]
        if unknown:
            raise TrainingError(f"monotone_constraints names {unknown[0]!r}, which is not among the data's features")
        given = [given.get(name, 0) for name in data.feature_names]
    if len(given) != data.n_features or any(sign not in (-1, 0, 1) for sign in given):
        raise TrainingError(f"monotone_constraints needs −1, 0 or 1 for each of {data.n_features} features")
    return [int(sign) for sign in given]


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


def categorical_columns(data: RankingData, wanted: Sequence[int | str]) -> list[int]:
    """Places of the features that hold categories."""
    columns = []
    for item in wanted:
        if isinstance(item, str):
            if item not in data.feature_names:
                raise TrainingError(f"categorical feature {item!r} is not among the data's features")
            columns.append(data.feature_names.index(item))
        elif 0 <= item < data.n_features:
            columns.append(int(item))
        else:
            raise TrainingError(f"categorical feature {item} is out of range: the data has {data.n_features} features")
    return columns

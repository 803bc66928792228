"""Growing one regression tree at a time with LightGBM; everything that makes it a ranker is ours."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.monitor import TRAINING
from gradrank.learners.trees.binning import NO_STEP, BinnedLeaves, make_dataset
from gradrank.learners.trees.extra_parameters import SAMPLING, checked_extra
from gradrank.learners.trees.lightgbm_errors import check_binned, refused
from gradrank.learners.trees.parameters import TreeParameters
from gradrank.learners.trees.rounding import rounded_at_random
from gradrank.learners.trees.size_rule import default_leaves
from gradrank.learners.trees.split_sample import draw_split_sample
from gradrank.models.trees.ensemble import Tree, assign_leaves, read_booster_tree
from gradrank.runtime.memory import is_mapped
from gradrank.runtime.threads import thread_count

# Gradients are rounded to so many levels: what LightGBM's single bytes hold. Its sums have 32 bits.
_LEVELS = 126
_LARGEST_SUM = 2**31 - 1
# Bins are made from LightGBM's 200,000 documents, which takes longer than many trees of a sample; of these each of 255
# bins has still some 200.
_SAMPLES_BINNING_ROWS = 50_000
# A thread with less to do costs more than it saves; trees are the same for any number of threads.
_VALUES_PER_THREAD = 250_000


class Grower(Protocol):
    """Grows one tree after the other for given gradients, over bins that were made once."""

    def grow(self, lambdas: NDArray[np.float32], rhos: NDArray[np.float32], step: int) -> Tree:
        """The tree of step ``step`` that fits the λ's; its leaf values are meant to be replaced."""

    def leaves(self, tree: Tree) -> Mapping[str, NDArray[np.int32]]:
        """The leaf of the tree grown last that each document reaches, for the training data and the watched sets."""


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
    num_leaves
        Most leaves of a tree; None = as the parameters say.
    reg_lambda
        Added to the denominator of split gains by Newton's rule.
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
        num_leaves: int | None = None,
        reg_lambda: float = 0.0,
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
        partial = parameters.colsample_bytree < 1.0 or any(name in SAMPLING for name in extra)
        self._quantized = parameters.quantized and parameters.monotone_constraints is None and not partial
        self._levels = min(_LEVELS, _LARGEST_SUM // data.n_docs)
        # Under monotone constraints LightGBM's own leaf values are needed, and other ways to boost change its scores.
        mapped = is_mapped(data.X)
        if mapped and parameters.split_docs is not None:
            raise TrainingError("split_docs needs the features in memory, and they lie in a file: leave it out")
        self._sampled = parameters.split_docs is not None and parameters.split_docs < data.n_docs
        self._by_bins = (
            mapped and parameters.monotone_constraints is None and not any(name in SAMPLING for name in extra)
        )
        settings = tree_settings(data, parameters, split, num_leaves, reg_lambda, data.n_docs) | {
            "learning_rate": NO_STEP if self._by_bins else 1.0,
            "use_quantized_grad": self._quantized,
            "num_grad_quant_bins": self._levels,
            # Same trees for any number of threads: sums of whole numbers are the same in any order, and LightGBM may
            # go by rows or by columns as it finds quicker; sums of other numbers go by columns, one thread per column.
            # Going by rows needs a second copy of the bins, for which there may be no room where features are not held.
            # A sample's bins serve for one tree.
            "force_col_wise": mapped or self._sampled or not self._quantized,
            **({"bin_construct_sample_cnt": _SAMPLES_BINNING_ROWS} if self._sampled else {}),
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
            if not self._sampled:
                self._booster = self._new_booster(settings)
        except lightgbm.basic.LightGBMError as error:
            raise refused(error) from None
        self._error = lightgbm.basic.LightGBMError
        self._leaves: dict[str, NDArray[np.int32]] = {}

    def grow(self, lambdas: NDArray[np.float32], rhos: NDArray[np.float32], step: int) -> Tree:
        """Grow the tree of step ``step`` that fits the λ's: by least squares, or by Newton gain with ρ."""
        hessians = rhos if self._split == "newton" else self._ones
        # LightGBM descends: it takes the gradient of a loss.
        gradients = -lambdas
        key = int(np.random.default_rng([self._parameters.random_state, step]).integers(2**62))
        rows = None
        if self._sampled:
            assert self._parameters.split_docs is not None
            rows, weights = draw_split_sample(gradients, hessians, self._parameters.split_docs, key + 2)
            if not len(rows):
                return Tree.of(leaf_value=[0.0])
            gradients, hessians = gradients[rows] * weights, hessians[rows] * weights
        if self._quantized:
            gradients = rounded_at_random(gradients, self._levels // 2, key, self._parameters.n_jobs)
            # A sample's counts differ, be they all 1 before.
            if self._split == "newton" or rows is not None:
                hessians = rounded_at_random(hessians, self._levels, key + 1, self._parameters.n_jobs)
        self._gradients = (gradients, hessians)
        if rows is not None or self._parameters.colsample_bytree < 1.0:
            self._reseed(step, rows)
        try:
            finished = self._booster.update(fobj=self._stored_gradients)
        except self._error as error:
            raise refused(error) from None
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

    def _new_booster(self, settings: Mapping[str, Any], rows: NDArray[np.int32] | None = None) -> Any:
        import lightgbm

        dataset = self._dataset
        if rows is not None:
            dataset = dataset.construct().subset(rows, params=dict(settings))
        else:
            check_binned(dataset.construct())
        booster = lightgbm.Booster(dict(settings), dataset)
        self._binned_leaves = BinnedLeaves(booster, self._binned) if self._by_bins else None
        self._grown = 0
        return booster

    def _reseed(self, step: int, rows: NDArray[np.int32] | None = None) -> None:
        """A new booster with a seed of its own for this step, so that an interrupted run goes on as if it had not been.

        LightGBM draws the features of a tree from a state that cannot be set later. With ``rows`` it sees a copy of
        their bins and nothing else.
        """
        seed = int(np.random.default_rng([self._parameters.random_state, step]).integers(2**31 - 1))
        self._booster = self._new_booster({**self._settings, "seed": seed}, rows)

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


def tree_settings(
    data: RankingData, parameters: TreeParameters, split: str, num_leaves: int | None, reg_lambda: float, n_docs: int
) -> dict[str, Any]:
    """LightGBM's parameters for trees of ``n_docs`` documents, of which ``data`` may be a part."""
    if num_leaves is None:
        num_leaves = parameters.num_leaves or default_leaves(data.n_queries, n_docs)
    leaf_size, depth = parameters.min_child_samples, parameters.max_depth
    settings: dict[str, Any] = {
        "objective": "none",
        "boosting": "gbdt",
        "learning_rate": 1.0,
        "num_leaves": int(num_leaves),
        "min_data_in_leaf": default_leaf_size(n_docs) if leaf_size is None else int(leaf_size),
        "max_depth": -1 if not depth else int(depth),
        "max_bin": int(parameters.max_bin),
        "min_sum_hessian_in_leaf": float(parameters.min_child_weight) if split == "newton" else 0.0,
        "lambda_l2": float(reg_lambda) if split == "newton" else 0.0,
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


# Enough rows to tell numbers from codes, even where they lie in a file; a category is a 32-bit integer in LightGBM.
_CATEGORY_ROWS = 100_000
_LARGEST_CATEGORY = 2**31 - 1


def categorical_columns(data: RankingData, wanted: Sequence[int | str]) -> list[int]:
    """Places of the features that hold categories; a text alone is one name."""
    columns = []
    for item in (wanted,) if isinstance(wanted, str) else wanted:
        if isinstance(item, str):
            if item not in data.feature_names:
                raise TrainingError(f"categorical feature {item!r} is not among the data's features")
            columns.append(data.feature_names.index(item))
        elif 0 <= item < data.n_features:
            columns.append(int(item))
        else:
            raise TrainingError(f"categorical feature {item} is out of range: the data has {data.n_features} features")
    for column in columns:
        _check_categories(data, column)
    return columns


def _check_categories(data: RankingData, column: int) -> None:
    """Refuse numbers that number nothing, whose fractions LightGBM would cut off; below 0 is missing."""
    values = np.asarray(data.X[:_CATEGORY_ROWS, column], dtype=np.float64)
    wrong = np.flatnonzero(~np.isnan(values) & ((values != np.floor(values)) | (values > _LARGEST_CATEGORY)))
    if len(wrong):
        raise TrainingError(
            f"categorical feature {data.feature_names[column]!r} holds {values[wrong[0]]:.17g}, expected whole numbers "
            f"from 0 to {_LARGEST_CATEGORY:,}, one for each category, or NaN"
        )

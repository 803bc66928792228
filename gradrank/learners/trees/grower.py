"""Growing one regression tree at a time with LightGBM; everything that makes it a ranker is ours."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.trees.rounding import rounded_at_random
from gradrank.models.trees.ensemble import Tree, read_booster_tree
from gradrank.runtime.threads import thread_count

# Gradients are rounded to so many levels: what LightGBM's single bytes hold. Its sums have 32 bits.
_LEVELS = 126
_LARGEST_SUM = 2**31 - 1
# LightGBM's own parameters that make it look at part of the data, by all their names.
_SAMPLING = {
    "bagging_fraction", "bagging", "sub_row", "subsample", "bagging_freq", "subsample_freq", "data_sample_strategy",
    "pos_bagging_fraction", "neg_bagging_fraction", "feature_fraction", "sub_feature", "colsample_bytree",
    "feature_fraction_bynode", "sub_feature_bynode", "colsample_bynode", "boosting", "boosting_type", "boost",
}  # fmt: skip
# A thread with less to do costs more than it saves; trees are the same for any number of threads.
_VALUES_PER_THREAD = 250_000


@dataclass(frozen=True)
class TreeSettings:
    """The shape of the trees.

    >>> TreeSettings(leaves=31).leaves
    31
    """

    leaves: int = 15
    min_docs: int = 20
    """Fewest documents in a leaf."""
    max_depth: int | None = None
    bins: int = 255
    """Most bins a feature is cut into."""
    min_hessian: float = 1e-3
    """Least sum of ρ in a leaf (split rule newton)."""
    l2: float = 0.0
    """Added to the denominator of leaf values and split gains."""
    features: float = 1.0
    """Share of the features that each tree may use."""
    quantized: bool = True
    """Search splits on gradients rounded at random to 126 levels, which is faster; leaf values are exact anyway. Not
    with ``features`` below 1 or ``monotone``, where LightGBM cannot."""
    monotone: tuple[int, ...] | None = None
    """For each feature −1, 0 or 1: scores may only fall, do anything, only rise with it."""
    categorical: tuple[int | str, ...] = ()
    """Features (numbers from 0, or names) that are categories."""
    extra: Mapping[str, Any] | None = None
    """Further LightGBM parameters, passed on as they are."""

    def __post_init__(self) -> None:
        for name, low, high in (("leaves", 2, 131_072), ("min_docs", 1, None), ("bins", 2, 65_535)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < low:
                raise TrainingError(f"{name} is {value!r}, expected a whole number of {low} or more")
            if high is not None and value > high:
                raise TrainingError(f"{name} is {value!r}, expected at most {high}")
        if self.max_depth is not None and self.max_depth < 1:
            raise TrainingError(f"max_depth is {self.max_depth!r}, expected a whole number of 1 or more")
        if not 0.0 < self.features <= 1.0:
            raise TrainingError(f"features is {self.features!r}, expected a share above 0, at most 1")
        for name in ("min_hessian", "l2"):
            if not getattr(self, name) >= 0.0:
                raise TrainingError(f"{name} is {getattr(self, name)!r}, expected a number of 0 or more")


class TreeGrower:
    """A LightGBM dataset and booster that grow a tree for given gradients.

    The tree's leaf values are LightGBM's own and are meant to be replaced.
    """

    def __init__(
        self,
        data: RankingData,
        settings: TreeSettings,
        *,
        split: Literal["mse", "newton"],
        random_state: int,
        n_jobs: int | None,
        share_binning: TreeGrower | None = None,
    ) -> None:
        # Threads that wait for each other by spinning cost a busy machine many times what they save. This is read when
        # LightGBM is loaded.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        import lightgbm

        self._split = split
        self._seed = random_state
        self._threads = n_jobs
        self._settings = settings
        self._gradients: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None
        self._ones = np.ones(data.n_docs, dtype=np.float32)
        # Under monotone constraints LightGBM's own leaf values stay, and they shall be exact. On part of the features
        # or of the rows LightGBM's sums of rounded gradients are wrong (its pull request 7397).
        partial = settings.features < 1.0 or any(name in _SAMPLING for name in settings.extra or {})
        self._quantized = settings.quantized and settings.monotone is None and not partial
        self._levels = min(_LEVELS, _LARGEST_SUM // data.n_docs)
        parameters = _parameters(data, settings, split, random_state, n_jobs)
        parameters |= {
            "use_quantized_grad": self._quantized,
            "num_grad_quant_bins": self._levels,
            # Same trees for any number of threads: sums of whole numbers are the same in any order, and LightGBM may
            # go by rows or by columns as it finds quicker; sums of other numbers go by columns, one thread a column.
            "force_col_wise": not self._quantized,
            **(settings.extra or {}),
        }
        try:
            if share_binning is None:
                self._dataset = lightgbm.Dataset(
                    np.ascontiguousarray(data.X),
                    label=np.zeros(data.n_docs, dtype=np.float32),
                    categorical_feature=_categorical(data, settings.categorical),
                    params=parameters,
                    free_raw_data=True,
                )
            else:
                self._dataset = share_binning._dataset
            self._booster = lightgbm.Booster(parameters, self._dataset)
            self._parameters = parameters
        except lightgbm.basic.LightGBMError as error:
            raise TrainingError(f"LightGBM refuses: {error}") from None
        self._error = lightgbm.basic.LightGBMError
        self._grown = 0

    def grow(self, lambdas: NDArray[np.float32], rhos: NDArray[np.float32], step: int) -> Tree:
        """Grow the tree of step ``step`` that fits the λ's: by least squares, or by Newton gain with ρ."""
        hessians = rhos if self._split == "newton" else self._ones
        # LightGBM descends: it takes the gradient of a loss.
        gradients = -lambdas
        if self._quantized:
            key = int(np.random.default_rng([self._seed, step]).integers(2**62))
            gradients = rounded_at_random(gradients, self._levels // 2, key, self._threads)
            if self._split == "newton":
                hessians = rounded_at_random(hessians, self._levels, key + 1, self._threads)
        self._gradients = (gradients, hessians)
        if self._settings.features < 1.0:
            self._reseed(step)
        try:
            finished = self._booster.update(fobj=self._stored_gradients)
        except self._error as error:
            raise TrainingError(f"LightGBM refuses: {error}") from None
        if finished:
            # No split improves anything, as when every λ is 0. A later step may find one: it may see other queries.
            self._grown = self._booster.num_trees()
            return Tree.of(leaf_value=[0.0])
        tree = read_booster_tree(self._booster, self._grown)
        self._grown += 1
        return tree

    def _reseed(self, step: int) -> None:
        """A new booster with a seed of its own for this step, so that an interrupted run goes on as if it had not been.

        LightGBM draws the features of a tree from a state that cannot be set later.
        """
        import lightgbm

        random_state = int(np.random.default_rng([self._seed, step]).integers(2**31 - 1))
        self._booster = lightgbm.Booster({**self._parameters, "seed": random_state}, self._dataset)
        self._grown = 0

    def _stored_gradients(self, _scores: Any, _dataset: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        assert self._gradients is not None
        return self._gradients


def _parameters(
    data: RankingData, settings: TreeSettings, split: str, random_state: int, n_jobs: int | None
) -> dict[str, Any]:
    parameters: dict[str, Any] = {
        "objective": "none",
        "boosting": "gbdt",
        "learning_rate": 1.0,
        "num_leaves": int(settings.leaves),
        "min_data_in_leaf": int(settings.min_docs),
        "max_depth": -1 if settings.max_depth is None else int(settings.max_depth),
        "max_bin": int(settings.bins),
        "min_sum_hessian_in_leaf": settings.min_hessian if split == "newton" else 0.0,
        "lambda_l2": settings.l2 if split == "newton" else 0.0,
        "feature_fraction": settings.features,
        # We round ourselves: LightGBM's random rounding draws from a state that a resumed run cannot restore.
        "stochastic_rounding": False,
        "deterministic": True,
        "seed": random_state % (2**31 - 1),
        "num_threads": min(thread_count(n_jobs), max(1, data.X.size // _VALUES_PER_THREAD)),
        "verbosity": -1,
        "feature_pre_filter": False,
        # We keep scores ourselves.
        "boost_from_average": False,
    }
    if settings.monotone is not None:
        if len(settings.monotone) != data.n_features or any(sign not in (-1, 0, 1) for sign in settings.monotone):
            raise TrainingError(f"monotone needs −1, 0 or 1 for each of {data.n_features} features")
        parameters["monotone_constraints"] = list(settings.monotone)
    return parameters


def _categorical(data: RankingData, wanted: Sequence[int | str]) -> list[int]:
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

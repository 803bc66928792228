"""LightGBM datasets: the features cut into bins, which is all that LightGBM keeps of them.

LightGBM reads the features through a pointer, twice: a sample of the rows (200,000 of them, drawn by
``data_random_seed``) for the boundaries of the bins, then every row once, for its bins. So a memory map is binned in
one pass over the file, whose pages the system takes back as it needs them; the matrix itself is never copied, and the
bins are those of the same matrix in memory. What is left is one byte per value (four bits up to 15 bins), and less for
features that are mostly 0.

Where the features lie in a file, the bins also tell which leaf of a tree each document reaches (:class:`BinnedLeaves`):
looking it up in the features would read the whole file once per tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.learners.base.monitor import TRAINING
from gradrank.models.trees.ensemble import Tree

NO_STEP = 1e-300
"""A learning rate with which LightGBM's own leaf values, and so its own scores, are exactly 0."""


def make_dataset(
    data: RankingData,
    settings: Mapping[str, Any],
    *,
    categorical: Sequence[int] = (),
    reference: Any = None,
) -> Any:
    """The LightGBM dataset of ranking data; features in a memory map are read in one pass and not held.

    Parameters
    ----------
    data
        The documents.
    settings
        LightGBM's parameters; those about bins are used here.
    categorical
        Columns that hold categories.
    reference
        A LightGBM dataset whose bins are used, instead of bins made from this data: the training data's for validation
        data, or one that several processes share.

    >>> data = RankingData.from_arrays(np.arange(100.0)[:, None], qid=np.zeros(100, dtype=int))
    >>> make_dataset(data, {"max_bin": 7, "verbosity": -1}).construct().feature_num_bin(0)
    7
    """
    import lightgbm

    return lightgbm.Dataset(
        # Rows are consecutive already; a matrix in a file is not copied by this.
        np.ascontiguousarray(data.X),
        label=np.zeros(data.n_docs, dtype=np.float32),
        categorical_feature=list(categorical),
        params=dict(settings),
        reference=reference,
        free_raw_data=True,
    )


class BinnedLeaves:
    """Which leaf of the tree grown last each document reaches, by the bins that LightGBM keeps.

    A booster adds every tree to scores of its own, and takes it off again when the tree is rolled back. Grown with the
    learning rate :data:`NO_STEP` a tree adds nothing; rolled back with minus its leaves' numbers as values it adds
    these numbers, whole ones, so that the difference of the scores is the leaf.

    Parameters
    ----------
    booster
        Grows the trees.
    watched
        Further data sets by name, with their LightGBM datasets, which have the training data's bins.
    """

    def __init__(self, booster: Any, watched: Mapping[str, Any]) -> None:
        self._booster = booster
        self._names = tuple(watched)
        for name, dataset in watched.items():
            booster.add_valid(dataset, name)
        self._before: dict[str, NDArray[np.float64]] = {}

    def take_back(self, tree: Tree) -> dict[str, NDArray[np.int32]]:
        """Roll back the tree grown last; its leaf for each document of the training data and of the watched sets."""
        number = self._booster.num_trees() - 1
        for leaf in range(tree.n_leaves):
            self._booster.set_leaf_output(number, leaf, -float(leaf))
        self._booster.rollback_one_iter()
        found: dict[str, NDArray[np.int32]] = {}

        def look(name: str, scores: NDArray[np.float64]) -> tuple[str, float, bool]:
            before = self._before.setdefault(name, np.zeros(len(scores)))
            found[name] = np.empty(len(scores), dtype=np.int32)
            np.subtract(scores, before, out=found[name], casting="unsafe")
            before[:] = scores
            return "", 0.0, True

        # A measure of the caller's is the one public way to LightGBM's scores.
        self._booster.eval_train(feval=lambda scores, _: look(TRAINING, scores))
        if self._names:
            names = iter(self._names)
            self._booster.eval_valid(feval=lambda scores, _: look(next(names), scores))
        return found

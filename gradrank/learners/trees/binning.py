"""LightGBM datasets: the features cut into bins, which is all that LightGBM keeps of them.

LightGBM looks at the features twice: at a sample of the rows (200,000 of them, drawn by ``data_random_seed``) for the
boundaries of the bins, then at every row once, for its bins. Features that lie in a file are read so in one pass over
blocks of rows, and the sample is sorted into a temporary file, so that neither is held in memory; the bins are those of
the same matrix in memory. What is left is one byte per value (four bits up to 15 bins), and less for features that are
mostly 0.

Where the features lie in a file, the bins also tell which leaf of a tree each document reaches (:class:`BinnedLeaves`):
looking it up in the features would read the whole file once per tree.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData, check_features
from gradrank.learners.base.monitor import TRAINING
from gradrank.models.trees.ensemble import Tree
from gradrank.runtime.memory import is_mapped

# As LightGBM has it: what is nearer to 0 is 0.
_ZERO = 1e-35
_BLOCK_BYTES = 1 << 24
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

    features: Any = np.ascontiguousarray(data.X)
    kind = lightgbm.Dataset
    if is_mapped(data.X):
        features, kind = _mapped_kinds()[0](data.X), _mapped_kinds()[1]
    return kind(
        features,
        label=np.zeros(data.n_docs, dtype=np.float32),
        categorical_feature=list(categorical),
        params=dict(settings),
        reference=reference,
        free_raw_data=True,
    )


@cache
def _mapped_kinds() -> tuple[Any, Any]:
    """Classes for features in a file: blocks of rows as LightGBM asks for them, and its dataset with our sampling."""
    import lightgbm

    class MappedRows(lightgbm.Sequence):  # type: ignore[misc]
        def __init__(self, X: NDArray[Any]) -> None:
            self.X = X
            self.batch_size = max(1, _BLOCK_BYTES // max(1, X.itemsize * X.shape[1]))

        def __len__(self) -> int:
            return len(self.X)

        def __getitem__(self, rows: Any) -> NDArray[Any]:
            # LightGBM takes blocks in either precision, single rows in double precision only.
            block = np.array(self.X[rows], dtype=None if isinstance(rows, slice) else np.float64)
            if isinstance(rows, slice):
                check_features(block, rows.start or 0)  # nobody has looked at them when the file was opened
            return block

    class MappedDataset(lightgbm.Dataset):  # type: ignore[misc]
        def get_params(self) -> dict[str, Any]:
            handle = self._handle
            being_made = handle is None or handle.value is None
            if being_made and self.reference is None:
                # All of them: the seed decides which rows are the sample, as it does for a matrix in memory.
                return dict(self.params or {})
            found: dict[str, Any] = super().get_params()
            return found

        # LightGBM's own method holds the sample three times. It is private: in a version that has it no more this one
        # is not called, which costs memory and nothing else.
        def _Dataset__sample(self, seqs: Any, total_nrow: int) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
            return sampled_columns(seqs[0].X, self._create_sample_indices(total_nrow=total_nrow))

    return MappedRows, MappedDataset


def sampled_columns(X: NDArray[Any], rows: NDArray[Any]) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
    """The values other than 0 of each column in some rows, and where among these rows they are, as LightGBM takes them.

    Both lie in temporary files, which vanish with the arrays.

    Parameters
    ----------
    X
        The features.
    rows
        The rows to take, rising.

    >>> values, places = sampled_columns(np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 0.0]]), np.array([0, 2]))
    >>> [column.tolist() for column in values], [column.tolist() for column in places]
    ([[4.0], [1.0]], [[1], [0]])
    """
    shape = (X.shape[1], len(rows))
    values, places = in_file(shape, np.float64), in_file(shape, np.int32)
    counts = np.zeros(X.shape[1], dtype=np.int64)
    step = max(1, _BLOCK_BYTES // (8 * max(1, X.shape[1])))
    for start in range(0, len(rows), step):
        block = np.ascontiguousarray(X[rows[start : start + step]].T, dtype=np.float64)
        for column, numbers in enumerate(block):
            there = np.flatnonzero((np.abs(numbers) > _ZERO) | np.isnan(numbers))
            span = slice(counts[column], counts[column] + len(there))
            values[column, span] = numbers[there]
            places[column, span] = start + there
            counts[column] += len(there)
    ends = counts.tolist()
    return (
        [column[:end] for column, end in zip(values, ends, strict=True)],
        [column[:end] for column, end in zip(places, ends, strict=True)],
    )


def in_file(shape: tuple[int, int], dtype: Any) -> NDArray[Any]:
    """A matrix to be filled, in a temporary file that vanishes with it.

    Parameters
    ----------
    shape, dtype
        Its shape and the type of its numbers.

    >>> in_file((2, 3), np.float32).shape
    (2, 3)
    """
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, dtype=dtype, mode="w+", shape=shape) if all(shape) else np.empty(shape, dtype=dtype)


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

"""Growing a tree in several processes, each with its own queries, so that it does not depend on how these are spread.

All processes have the same bins, made from a sample of documents that their queries' ids choose. λ and ρ come as
multiples of a power of two that all agree on, so that sums of histograms are exact in double precision, in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.data.strings import Strings
from gradrank.learners.base.shared_crew import SharedCrew
from gradrank.learners.trees.binning import in_file, make_dataset
from gradrank.learners.trees.extra_parameters import checked_extra
from gradrank.learners.trees.grower import categorical_columns, separate_sets, tree_settings
from gradrank.learners.trees.lightgbm_errors import refused
from gradrank.learners.trees.network import Network, Strands, dataset_with_bins, serialized_bins
from gradrank.learners.trees.parameters import TreeParameters
from gradrank.models.trees.ensemble import Tree, assign_leaves, read_booster_tree
from gradrank.ranking import random_numbers

# Bins are made from so many values at most, whatever the number of processes.
_SAMPLED_ROWS = 200_000
_SAMPLED_VALUES = 10_000_000
_SAMPLE_SEED = 0


class SharedGrower:
    """Grows trees as :class:`~gradrank.learners.trees.grower.TreeGrower` does, in all processes of a crew at once.

    LightGBM knows how many documents a leaf has where one process has them all; in several it estimates their number
    from the second derivatives. A process that is alone therefore works as two, so that its trees are those of many.

    Parameters
    ----------
    data
        The queries of this process.
    parameters, split, num_leaves, reg_lambda
        The shape of the trees, the rule of the splits, the most leaves, and what is added to denominators of gains.
    watched
        Further data sets of this process by name, whose leaves are asked for.
    crew
        The processes.
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
        crew: SharedCrew,
        share_binning: SharedGrower | None = None,
    ) -> None:
        self._parameters = parameters
        self._split = split
        self._ones = np.ones(data.n_docs, dtype=np.float32)
        self._sets = separate_sets(data, watched or {})
        self._grown = 0
        mesh = crew.member.mesh
        settings = tree_settings(data, parameters, split, num_leaves, reg_lambda, crew.count(data.n_docs)) | {
            "use_quantized_grad": False,
            "force_col_wise": True,
            "tree_learner": "data",
            "pre_partition": True,
            **checked_extra(parameters.lightgbm or {}),
        }
        if share_binning is None:
            content = _agreed_bins(data, parameters, settings, crew)
            if mesh.size > 1:
                self._strands = [_Strand(slice(0, data.n_docs), mesh.rank, mesh.size, mesh.exchange)]
            else:
                meeting, half = Strands(2), max(1, data.n_docs // 2)
                cuts = (slice(0, half), slice(half, data.n_docs))
                self._strands = [_Strand(rows, rank, 2, meeting.of(rank)) for rank, rows in enumerate(cuts)]
            abandon = crew.member.abandon
            _all(self._strands, lambda strand: strand.prepare(data, content, settings, abandon))
        else:
            self._strands = [strand.sibling() for strand in share_binning._strands]
        self._settings = {**settings, "num_machines": self._strands[0].size}
        _all(self._strands, lambda strand: strand.make_booster(self._settings))

    def grow(self, lambdas: NDArray[np.float32], rhos: NDArray[np.float32], step: int) -> Tree:
        """See TreeGrower.grow; λ and ρ are those of the crew's ``leveled``."""
        hessians = rhos if self._split == "newton" else self._ones
        gradients = -lambdas
        if self._parameters.colsample_bytree < 1.0:
            # As one process does: an interrupted run goes on as if it had not been.
            seed = int(np.random.default_rng([self._parameters.random_state, step]).integers(2**31 - 1))
            _all(self._strands, lambda strand: strand.make_booster({**self._settings, "seed": seed}))
            self._grown = 0
        finished = _all(self._strands, lambda strand: strand.update(gradients, hessians))
        if all(finished):
            self._grown = self._strands[0].booster.num_trees()
            return Tree.of(leaf_value=[0.0])
        tree = read_booster_tree(self._strands[0].booster, self._grown)
        self._grown += 1
        return tree

    def leaves(self, tree: Tree) -> dict[str, NDArray[np.int32]]:
        """See Grower.leaves."""
        return {name: assign_leaves(tree, data.X, n_jobs=self._parameters.n_jobs) for name, data in self._sets.items()}


class _Strand:
    """One rank of LightGBM's network: a thread of its own, since LightGBM keeps its network by thread."""

    def __init__(
        self, rows: slice, rank: int, size: int, exchange: Any, thread: ThreadPoolExecutor | None = None
    ) -> None:
        self.rows = rows
        self.rank = rank
        self.size = size
        self.exchange = exchange
        self.thread = thread or ThreadPoolExecutor(1)
        self.dataset: Any = None
        self.network: Network | None = None
        self.booster: Any = None

    def sibling(self) -> _Strand:
        made = _Strand(self.rows, self.rank, self.size, self.exchange, self.thread)
        made.dataset, made.network = self.dataset, self.network
        return made

    def prepare(self, data: RankingData, bins: bytes, settings: dict[str, Any], abandon: Any) -> None:
        import lightgbm

        self.network = Network(self.rank, self.size, self.exchange, abandon)
        reference = dataset_with_bins(bins, settings)
        rows = data.X[self.rows]
        self.dataset = lightgbm.Dataset(
            np.ascontiguousarray(rows), label=np.zeros(len(rows), dtype=np.float32), reference=reference,
            params=settings, free_raw_data=True,
        ).construct()  # fmt: skip

    def make_booster(self, settings: dict[str, Any]) -> None:
        import lightgbm

        try:
            self.booster = lightgbm.Booster(settings, self.dataset)
        except lightgbm.basic.LightGBMError as error:
            raise refused(error) from None

    def update(self, gradients: NDArray[np.float32], hessians: NDArray[np.float32]) -> bool:
        import lightgbm

        own = (gradients[self.rows], hessians[self.rows])
        try:
            return bool(self.booster.update(fobj=lambda _scores, _dataset: own))
        except lightgbm.basic.LightGBMError as error:
            raise refused(error) from None


def _all(strands: list[_Strand], do: Any) -> list[Any]:
    """Let all strands do something at the same time, each in its thread."""
    return [future.result() for future in [strand.thread.submit(do, strand) for strand in strands]]


def _agreed_bins(data: RankingData, parameters: TreeParameters, settings: dict[str, Any], crew: SharedCrew) -> bytes:
    """The bins of all features, made by the first process from documents of all of them."""
    import lightgbm

    assert data.keys is not None
    total = crew.count(data.n_docs)
    most = max(1, min(_SAMPLED_ROWS, _SAMPLED_VALUES // max(1, data.n_features)))
    chance = random_numbers(data.indptr, _SAMPLE_SEED, data.keys)
    rows = np.flatnonzero(chance < most / total)
    mesh = crew.member.mesh
    parcel = {"X": np.asarray(data.X[rows]), "chance": chance[rows]}
    came = mesh.exchange_values([parcel if rank == 0 else None for rank in range(mesh.size)])
    content = b""
    if crew.rank == 0:
        del parcel
        sample = _sample_in_file(came)
        try:
            made = make_dataset(
                RankingData(X=sample, indptr=np.array([0, len(sample)]), labels={}, qid=Strings.of([""])),
                {**settings, "tree_learner": "serial", "bin_construct_sample_cnt": max(1, len(sample))},
                categorical=categorical_columns(data, parameters.categorical_feature),
            ).construct()
        except lightgbm.basic.LightGBMError as error:
            raise refused(error) from None
        content = serialized_bins(made)
    return bytes(mesh.gather(content)[0])


def _sample_in_file(came: list[dict[str, Any]]) -> NDArray[Any]:
    """The documents of all processes in the order of their random numbers; the list is emptied.

    They lie in a temporary file: held in memory, with the copies that LightGBM makes of them, they would be what the
    first process needs most memory for.
    """
    chance = np.concatenate([item["chance"] for item in came])
    places = np.empty(len(chance), dtype=np.int64)
    places[np.argsort(chance, kind="stable")] = np.arange(len(chance))
    dtype = np.result_type(*(item["X"].dtype for item in came))
    sample = in_file((len(chance), came[0]["X"].shape[1]), dtype)
    end = len(chance)
    while came:
        rows = came.pop()["X"]
        sample[places[end - len(rows) : end]] = rows
        end -= len(rows)
    return sample

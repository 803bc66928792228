"""A crew of several processes: sums that are exact, so that the model does not depend on how the data is spread."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.cluster.child import Member
from gradrank.cluster.exact import FLOAT32_BITS, exact_sum, grid, on_grid, rounded
from gradrank.cluster.keys import query_keys
from gradrank.data.ranking_data import RankingData
from gradrank.learners.base.crew import Crew

_BLOCK = 4096


class SharedCrew(Crew):
    """The processes of a cluster, each with its own queries.

    Parameters
    ----------
    member
        This process.
    """

    shared = True

    def __init__(self, member: Member) -> None:
        self.member = member
        self.rank = member.rank
        self.size = member.mesh.size

    def sum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """See Crew.sum: exact for numbers that :meth:`leveled` gave, and for counts."""
        parts = self.member.mesh.gather(np.ascontiguousarray(values, dtype=np.float64).tobytes())
        summed = np.zeros(values.size)
        for part in parts:
            summed += np.frombuffer(part)
        return summed.reshape(values.shape)

    def sum_shares(self, shares: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        """See Crew.sum_shares: exact for what :meth:`sum` is exact for; a share goes to nobody else."""
        own = shares[self.rank]
        parts = self.member.mesh.exchange([np.ascontiguousarray(share).tobytes() for share in shares])
        summed = np.zeros(own.size)
        for rank, part in enumerate(parts):
            summed += own.ravel() if rank == self.rank else np.frombuffer(part)
        return summed.reshape(own.shape)

    def mean(self, values: NDArray[np.float64]) -> float:
        """See Crew.mean; rounded once, whatever the order."""
        there = values[~np.isnan(values)]
        parts = self.gather([str(part) for part in (*exact_sum(there), len(there))])
        count = sum(int(part[2]) for part in parts)
        if not count:
            return float("nan")
        return rounded([(int(part[0]), int(part[1])) for part in parts], count)

    def total(self, values: NDArray[Any]) -> float:
        """See Crew.total; rounded once, whatever the order."""
        parts = self.gather([str(part) for part in exact_sum(values.astype(np.float64))])
        return rounded([(int(part[0]), int(part[1])) for part in parts])

    def gather(self, value: Any) -> list[Any]:
        """See Crew.gather."""
        return self.member.mesh.gather_values(value)

    def leveled(self, values: NDArray[np.float32], count: int) -> NDArray[np.float32]:
        """See Crew.leveled: multiples of a power of two that all processes agree on."""
        largest = max(self.gather(float(np.abs(values).max(initial=0.0))))
        return on_grid(values, grid(largest, count, FLOAT32_BITS)).astype(np.float32)

    def fingerprint(self, data: RankingData) -> str:
        """See Crew.fingerprint: of all queries, whoever has them."""
        own = np.zeros(2, dtype=np.uint64)
        keys = query_keys(data.qid)
        columns: list[NDArray[Any]] = [np.asarray(column) for column in data.labels.values()]
        columns += [data.document_weight] if data.document_weight is not None else []
        for query in range(data.n_queries):
            rows = slice(int(data.indptr[query]), int(data.indptr[query + 1]))
            digest = hashlib.blake2b(keys[query].tobytes(), digest_size=8)
            if data.weight is not None:
                digest.update(data.weight[query].tobytes())
            for column in columns:
                digest.update(column[rows].tobytes())
            # A row tells data sets apart as well as all of them do.
            digest.update(np.asarray(data.X[rows.start], dtype=np.float64).tobytes())
            own += np.array([int.from_bytes(digest.digest(), "little"), 1], dtype=np.uint64)
        everywhere = [np.asarray(part) for part in self.gather(own)]
        summed = np.array(everywhere).sum(axis=0, dtype=np.uint64)
        return "-".join(f"{number:x}" for number in summed.tolist())

"""Swap deltas: how much a measure changes when two documents of a query swap ranks, and how kernels ask for it.

A family of measures brings two compiled functions, :class:`SwapKernels`. A kernel that needs swap deltas is a template
that calls :func:`swap_prepare` and :func:`swap_row`, which stand for the family's two; :func:`for_family` puts these in
their places. So kernels know nothing of the families and families nothing of the kernels: a measure with swaps of its
own is one file and one line of the registry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.runtime.kernels import Template


@dataclass(frozen=True)
class SwapKernels:
    """The fast swap deltas of a family of measures, for one query whose documents stand in any order.

    The same source is compiled for a ``state`` of double precision (exact) and, if ``single``, of single precision
    (fast). Rows count with unsigned numbers: an index that could be negative, which Python counts from the end, keeps
    loops from being vectorized.

    Parameters
    ----------
    prepare
        Compiled function with the arguments of :func:`swap_prepare`.
    row
        Compiled function with the arguments of :func:`swap_row`; ``inline="always"`` lets it be vectorized together
        with what the kernel does with the row.
    state_rows
        Number of scratch rows that the two need.
    single
        Whether single precision is enough for the scratch rows when λ's are computed.
    """

    prepare: Callable[..., None]
    row: Callable[..., None]
    state_rows: int
    single: bool = False

    def state(self, longest: int, *, exact: bool = True) -> NDArray[Any]:
        """Scratch rows for lists up to a length."""
        return np.zeros((self.state_rows, longest + 2), np.float64 if exact or not self.single else np.float32)


def swap_prepare(
    n: Any, order: Any, rank: Any, gain: Any, weight: Any, norm: Any, depth: Any, option: Any, state: Any
) -> None:
    """Stands for the function of a family that fills the scratch rows for one query.

    Parameters
    ----------
    n
        Number of documents.
    order, rank
        ``order[r]`` is the document at rank r (from 0), ``rank[i]`` the rank of document i.
    gain, weight, norm, depth, option
        What ``Measure.prepare`` has found for the query; gains are by document, weights by rank.
    state
        The scratch rows, each of the list's length + 2.
    """
    raise NotImplementedError("stands for the function of a family of measures; see for_family")


def swap_row(
    i: Any, low: Any, high: Any, n: Any, order: Any, rank: Any, gain: Any, norm: Any, option: Any, state: Any, out: Any
) -> None:
    """Stands for the function of a family that computes one document's swap deltas against a run of others.

    Fills ``out[j]`` for low ≤ j < high with the change of the measure when documents i and j swap ranks; other entries
    of ``out`` may be overwritten. The other arguments are those of :func:`swap_prepare`, which has filled ``state``.
    """
    raise NotImplementedError("stands for the function of a family of measures; see for_family")


def for_family(kernel: Template, family: SwapKernels, **others: Callable[..., Any]) -> Any:
    """A kernel compiled for the swap deltas of one family of measures; ``others`` fill the kernel's other slots."""
    return kernel.using(swap_prepare=family.prepare, swap_row=family.row, **others)

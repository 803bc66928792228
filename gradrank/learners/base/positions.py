"""The positions at which documents were shown, where a learner gives each of them a term of its own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError


def shown_positions(data: RankingData, source: str) -> NDArray[np.int64]:
    """The positions that a label source holds, checked.

    >>> data = RankingData.from_arrays([[0.0]] * 2, [0, 1], qid=[1, 1]).with_label("position", [2.0, 1.0])
    >>> shown_positions(data, "position").tolist()
    [2, 1]
    """
    values = data.label(source)
    whole = np.isfinite(values) & (values >= 1) & (values == np.floor(values))
    if not whole.all():
        row = int(np.flatnonzero(~whole)[0])
        raise TrainingError(
            f"positions: label {source!r} of document {row + 1} is {values[row]:g}, expected a whole number of 1 "
            "or more for every document"
        )
    return values.astype(np.int64)

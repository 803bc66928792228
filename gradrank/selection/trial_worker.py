"""A process that trains folds of trials: ``python -m gradrank.selection.trial_worker DATA``.

It reads one order per line from standard input and answers with the learning curve, or with what went wrong.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.selection.processes import work_through
from gradrank.selection.trials import FoldOrder, train_fold


def work(order: Mapping[str, Any], pool: RankingData, ends: Callable[[], bool]) -> dict[str, Any]:
    """Do what one line orders; the answer."""
    try:
        found = train_fold(FoldOrder.from_dict(order["order"]), pool, ends=ends, n_jobs=order["n_jobs"])
    except TrainingError as error:
        return {"error": str(error)}
    return {"error": None, "curve": asdict(found)}


if __name__ == "__main__":
    work_through(work, lambda order: time.time() > order["order"]["until"])

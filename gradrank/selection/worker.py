"""A process that trains models of a portfolio: ``python -m gradrank.selection.worker DATA``.

It reads one task per line from standard input, writes the model to the file that the task names, and answers with one
line. Data comes as a memory map, models go as files: processes share no memory and need no pickles. It ends when its
input ends, or when the process that started it is gone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradrank.data.ranking_data import RankingData
from gradrank.errors import GradrankError
from gradrank.selection.crossfit import Ends, Task, fit_fold
from gradrank.selection.kept import keep
from gradrank.selection.processes import work_through


def work(order: Mapping[str, Any], pool: RankingData, ends: Ends) -> dict[str, Any]:
    """Do what one line orders; the answer."""
    task = Task.from_dict(order["task"])
    try:
        fitted = fit_fold(task, pool, ends=ends, n_jobs=order["n_jobs"])
    except GradrankError as error:
        return {"error": str(error)}
    keep(fitted, order["run"], Path(order["path"]))
    return {"error": None}


if __name__ == "__main__":
    work_through(work, lambda order: time.time() > order["until"])

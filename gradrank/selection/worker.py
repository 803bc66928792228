"""A process that trains models of a portfolio: ``python -m gradrank.selection.worker DATA``.

It reads one task per line from standard input, writes the model to the file that the task names, and answers with one
line. Data comes as a memory map, models go as files: processes share no memory and need no pickles. It ends when its
input ends, or when the process that started it is gone.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradrank.data.formats.binary import open_binary
from gradrank.data.ranking_data import RankingData
from gradrank.errors import GradrankError
from gradrank.selection.crossfit import Task, fit_fold
from gradrank.selection.kept import keep


def work(order: Mapping[str, Any], pool: RankingData, parent: int) -> dict[str, Any]:
    """Do what one line orders; the answer."""
    stop = Path(order["stop"])

    def ends() -> bool:
        return time.time() > order["until"] or stop.exists() or os.getppid() != parent

    task = Task.from_dict(order["task"])
    try:
        fitted = fit_fold(task, pool, ends=ends, n_jobs=order["n_jobs"])
    except GradrankError as error:
        return {"error": str(error)}
    keep(fitted, order["run"], Path(order["path"]))
    return {"error": None}


def main() -> None:
    """Work until there is nothing left to read."""
    # Answers go where standard output was; whatever a library prints must not come between them.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    pool, parent = open_binary(Path(sys.argv[1])), os.getppid()
    for line in sys.stdin:
        answers.write(json.dumps(work(json.loads(line), pool, parent)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()

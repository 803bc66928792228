"""Data with the scores of several systems, as the commands that compare systems take them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gradrank.cli.common import Notes, Reading, first_fields, load_data
from gradrank.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gradrank.data.ranking_data import RankingData

# Words on a line of TREC's files: query iteration document grade; query Q0 document rank score tag.
_QRELS_FIELDS = 4
_RUN_FIELDS = 6


def is_trec(path: Path, score_files: Sequence[str]) -> bool:
    """Whether the data is TREC qrels and any of the score files a TREC run, by their first lines."""
    return any(_is_run(name) for name in score_files) and _is_qrels(path)


def data_and_scores(
    path: Path, reading: Reading, score_files: Sequence[str], labels: Sequence[str] | None, notes: Notes
) -> tuple[RankingData, dict[str, NDArray[np.float64]]]:
    """The data, and the scores of each file, in the order of the data file's rows."""
    if is_trec(path, score_files):
        if labels:
            raise DataError("--label needs one number a row of DATA, but DATA is TREC qrels")
        return _trec(path, score_files, notes)
    runs = [name for name in score_files if _is_run(name)]
    data = load_data(path, notes, reading, labels)
    return data, {name: _scores(name, name in runs, data) for name in score_files}


def _is_run(name: str) -> bool:
    return len(first_fields(name)) == _RUN_FIELDS


def _is_qrels(path: Path) -> bool:
    fields = first_fields(path)
    return len(fields) == _QRELS_FIELDS and not fields[1].startswith(b"qid:")


def _trec(path: Path, run_files: Sequence[str], notes: Notes) -> tuple[RankingData, dict[str, NDArray[np.float64]]]:
    from gradrank.data.formats.trec import query_coverage, read_qrels, read_run, run_scores, trec_data

    with notes.working(f"reading {path}"):
        qrels = read_qrels(path)
        runs = {name: read_run(name) for name in run_files}
        data = trec_data(qrels, runs)
    for name, run in runs.items():
        coverage = query_coverage(qrels, run)
        if coverage.missing:
            notes.say(f"{name}: lacks {coverage.missing:,} queries of the qrels; they count as nothing retrieved")
        if coverage.ignored:
            notes.say(f"{name}: has {coverage.ignored:,} queries that are not in the qrels; they are left out")
    return data, {name: run_scores(data, run) for name, run in runs.items()}


def _scores(name: str, is_run: bool, data: RankingData) -> NDArray[np.float64]:
    if is_run:
        from gradrank.data.formats.trec import read_run, run_scores

        return run_scores(data, read_run(name))
    from gradrank.data.formats.columns import read_column

    return read_column(name, expected=data.n_docs, allow_neg_inf=True)

"""Cells of an experiment: trainings that do not depend on each other, run side by side and kept when done."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.experiments.folders import Fold
from gradrank.learners.algorithms import algorithm
from gradrank.measures import measure_values
from gradrank.runtime.files import replacing
from gradrank.version import __version__

Values = dict[str, NDArray[np.float64]]
"""Values per query by measure."""


@dataclass(frozen=True, eq=False)
class Cell:
    """One training on one fold, and the measures of its model on the fold's test data."""

    name: str
    algorithm: str
    parameters: Mapping[str, Any]
    fold: int
    truth: str
    """Which labels: a key of the data given to :func:`run_cells`."""
    measures: tuple[str, ...]

    def file_name(self, data: str) -> str:
        """Name of the file that keeps the outcome; another data set or setting has another name."""
        facts = [self.algorithm, dict(self.parameters), self.measures, data, __version__]
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:12]
        plain = "".join(letter if letter.isalnum() else "-" for letter in self.name.lower())
        return f"{self.truth}-{plain}-fold{self.fold + 1}-{digest}.npz"


def run_cells(
    cells: Sequence[Cell],
    truths: Mapping[str, Sequence[Fold]],
    *,
    out: Path | None = None,
    jobs: int = 1,
    say: Callable[[str], None] | None = None,
) -> dict[Cell, Values]:
    """The outcome of each cell: read from ``out`` if it is there, else trained, in up to ``jobs`` processes.

    Finished cells are written to ``out`` at once, so a run that was stopped goes on where it was.
    """
    told = say or (lambda _: None)
    data = {(truth, number): _fingerprint(fold) for truth, folds in truths.items() for number, fold in enumerate(folds)}
    found: dict[int, Values] = {}
    files = [None if out is None else out / "cells" / cell.file_name(data[cell.truth, cell.fold]) for cell in cells]
    for number, file in enumerate(files):
        if file is not None and file.exists():
            with np.load(file) as kept:
                found[number] = {name: kept[name] for name in kept.files}
    waiting = [number for number in range(len(cells)) if number not in found]
    if found:
        told(f"{len(found)} of {len(cells)} trainings are kept from before")

    def done(number: int, values: Values) -> None:
        found[number] = values
        file, cell = files[number], cells[number]
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            with replacing(file) as temporary, open(temporary, "wb") as stream:
                np.savez(stream, **values)  # type: ignore[arg-type]
        first = cell.measures[-2] if len(cell.measures) > 1 else cell.measures[0]
        told(f"{len(found)} of {len(cells)}: {cell.truth}, {cell.name}, fold {cell.fold + 1}: "
             f"{first} {np.nanmean(values[first]):.4f}")  # fmt: skip

    if jobs <= 1 or len(waiting) < 2:
        for number in waiting:
            cell = cells[number]
            done(number, run_cell(cell, truths[cell.truth][cell.fold]))
    else:
        _side_by_side(cells, waiting, truths, jobs, done)
    return {cell: found[number] for number, cell in enumerate(cells)}


def run_cell(cell: Cell, fold: Fold) -> Values:
    """Train one cell and measure its model."""
    learner = algorithm(cell.algorithm)(**cell.parameters)
    ranker = learner.fit(fold.train, valid=fold.valid).ranker_
    if ranker.training.get("interrupted"):
        raise KeyboardInterrupt  # half a training is no result
    found = measure_values(cell.measures, ranker.predict(fold.test), fold.test)
    return dict(zip(cell.measures, found.values(), strict=True))


def _side_by_side(
    cells: Sequence[Cell],
    waiting: Sequence[int],
    truths: Mapping[str, Sequence[Fold]],
    jobs: int,
    done: Callable[[int, Values], None],
) -> None:
    # New processes, not copies of this one: threads of this one would be lost in a copy.
    with ProcessPoolExecutor(min(jobs, len(waiting)), mp_context=get_context("spawn"), initializer=_quiet) as pool:
        futures = {
            pool.submit(run_cell, cells[number], truths[cells[number].truth][cells[number].fold]): number
            for number in waiting
        }
        try:
            for future in as_completed(futures):
                done(futures[future], future.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _quiet() -> None:
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def _fingerprint(fold: Fold) -> str:
    digest = hashlib.sha256()
    for data in fold:
        digest.update(repr(data.X.shape).encode())
        digest.update(np.ascontiguousarray(data.X[:: max(1, len(data.X) // 500)]).tobytes())
        for labels in data.labels.values():
            digest.update(labels.tobytes())
    return digest.hexdigest()[:16]

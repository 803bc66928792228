"""Cells of an experiment: independent trainings that run side by side and are kept on disk when done."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.fingerprint import data_fingerprint
from gradrank.errors import DataError
from gradrank.experiments.folders import Fold
from gradrank.experiments.processes import side_by_side
from gradrank.experiments.training_code import code_version
from gradrank.learners.algorithms import algorithm
from gradrank.measures import measure_values
from gradrank.runtime.files import made_folder, replacing

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
        """Name of the file that keeps the outcome; another data set, setting or code has another name."""
        given = {name: value for name, value in self.parameters.items() if name not in ("n_jobs", "verbose")}
        facts = [self.algorithm, given, self.measures, data, code_version()]
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:12]
        plain = "".join(letter if letter.isalnum() else "-" for letter in self.name.lower())
        return f"{self.truth}-{plain}-fold{self.fold + 1}-{digest}.npz"


def run_cells(
    cells: Sequence[Cell],
    truths: Mapping[str, Sequence[Fold]],
    *,
    out: Path | None = None,
    jobs: int = 1,
    client: Any = None,
    say: Callable[[str], None] | None = None,
) -> dict[Cell, Values]:
    """Train all cells that are not done yet, and give the values per query of all.

    Parameters
    ----------
    cells
        what to train
    truths
        the folds under each kind of labels, by the name that cells have for it
    out
        folder in which finished cells are kept, each as soon as it is done, so that a stopped run goes on where it was
    jobs
        number of processes
    client
        a Dask client, whose workers train instead
    say
        called with a line after each cell
    """
    told = say or (lambda _: None)
    data = {(truth, number): _fingerprint(fold) for truth, folds in truths.items() for number, fold in enumerate(folds)}
    found: dict[int, Values] = {}
    files = [None if out is None else out / "cells" / cell.file_name(data[cell.truth, cell.fold]) for cell in cells]
    for number, file in enumerate(files):
        if file is not None and file.exists():
            try:
                found[number] = kept_values(file, cells[number].measures)
            except DataError as error:
                told(f"a kept training is not used: {error}")
    waiting = [number for number in range(len(cells)) if number not in found]
    if found:
        told(f"{len(found)} of {len(cells)} trainings are kept from before")

    def done(number: int, values: Values) -> None:
        found[number] = values
        file, cell = files[number], cells[number]
        if file is not None:
            made_folder(file.parent)
            with replacing(file) as temporary, open(temporary, "wb") as stream:
                np.savez(stream, **values)  # type: ignore[arg-type]
        first = cell.measures[-2] if len(cell.measures) > 1 else cell.measures[0]
        told(f"{len(found)} of {len(cells)}: {cell.truth}, {cell.name}, fold {cell.fold + 1}: "
             f"{first} {np.nanmean(values[first]):.4f}")  # fmt: skip

    calls = [(cells[number], truths[cells[number].truth][cells[number].fold]) for number in waiting]
    for place, values in side_by_side(run_cell, calls, jobs, client):
        done(waiting[place], values)
    return {cell: found[number] for number, cell in enumerate(cells)}


def kept_values(path: Path, measures: Sequence[str]) -> Values:
    """What is kept of a cell."""
    try:
        with open(path, "rb") as file, np.load(file) as kept:
            values = {name: kept[name] for name in kept.files}
    # A broken archive shows itself in many ways: of zip files, of zlib, of arrays' heads, of sizes that nobody has.
    except Exception as error:
        raise DataError(f"holds no values of measures: {error}", path=path) from None
    sizes = {value.shape for value in values.values()}
    numbers = all(value.dtype == np.float64 and value.ndim == 1 for value in values.values())
    if set(values) != set(measures) or len(sizes) != 1 or not numbers:
        raise DataError("holds no values of the measures of this training", path=path)
    return values


def run_cell(cell: Cell, fold: Fold) -> Values:
    """Train one cell and measure its model."""
    learner = algorithm(cell.algorithm)(**cell.parameters)
    ranker = learner.fit(fold.train, valid=fold.valid).ranker_
    if ranker.training.get("interrupted"):
        raise KeyboardInterrupt  # half a training is no result
    found = measure_values(cell.measures, ranker.predict(fold.test), fold.test)
    return dict(zip(cell.measures, found.values(), strict=True))


def _fingerprint(fold: Fold) -> str:
    return hashlib.sha256(" ".join(data_fingerprint(data) for data in fold).encode()).hexdigest()[:16]

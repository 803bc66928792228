"""``gradrank score``, ``evaluate`` and ``convert`` on several workers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradrank.cli.common import Notes
from gradrank.cli.reading import Reading
from gradrank.cli.score_files import check_names, load_models
from gradrank.cli.workers import launcher_of, readings
from gradrank.errors import DataError

if TYPE_CHECKING:
    from gradrank.evaluation import Evaluation
    from gradrank.measures import AnyMeasure


def shared_score(
    model: Path, data: str, output: str, reading: Reading, n_jobs: int | None, workers: int | None,
    scheduler: str | None, notes: Notes,
) -> None:  # fmt: skip
    """Score each file of the data; OUT is a folder."""
    from gradrank.models.file_tasks import SCORE
    from gradrank.models.registry import load_ranker

    if output == "-":
        raise DataError("with workers scores go to files: give --output with the name of a folder")
    ranker = load_ranker(model)
    arguments = {"model": json.dumps(ranker.to_dict())}
    _file_by_file(SCORE, data, Path(output), ".txt", arguments, reading, workers, scheduler, notes, n_jobs)


def shared_convert(
    source: str, target: Path, format_to: str | None, reading: Reading, wrong: Mapping[str, Any], workers: int | None,
    scheduler: str | None, notes: Notes,
) -> None:  # fmt: skip
    """Convert each file of the data; OUT is a folder."""
    from gradrank.data.formats.registry import FORMATS
    from gradrank.models.file_tasks import CONVERT

    _refuse(wrong)
    forms = {form.name: form for form in FORMATS}
    if format_to not in forms:
        raise DataError(f"with workers OUT is a folder: give --to with one of {', '.join(forms)}")
    suffix = forms[format_to].suffixes[0]
    _file_by_file(CONVERT, source, target, suffix, {"format": format_to}, reading, workers, scheduler, notes)


def shared_evaluation(
    data: str, models: Sequence[str] | None, measures: Sequence[AnyMeasure], weighted: bool, shuffle: bool,
    reading: Reading, n_jobs: int | None, wrong: Mapping[str, Any], workers: int | None, scheduler: str | None,
    notes: Notes,
) -> Evaluation:  # fmt: skip
    """Evaluate models on data that workers read."""
    from gradrank.evaluation.crew_evaluation import evaluate_on_workers

    _refuse(wrong)
    rankers = load_models(list(models or ()))
    check_names([], list(rankers))
    with launcher_of(workers, scheduler, notes) as launcher, notes.working("evaluating"):
        return evaluate_on_workers(
            launcher, data, rankers, measures, reading=readings({"data": data}, reading)["data"], weighted=weighted,
            shuffle=shuffle, n_jobs=n_jobs,
        )  # fmt: skip


def _file_by_file(
    task: str, data: str, target: Path, suffix: str, arguments: Mapping[str, Any], reading: Reading,
    workers: int | None, scheduler: str | None, notes: Notes, n_jobs: int | None = None,
) -> None:  # fmt: skip
    from gradrank.models.file_tasks import files_on_workers

    with launcher_of(workers, scheduler, notes) as launcher, notes.working(f"writing {target}"):
        more = {**arguments, "reading": readings({"data": data}, reading)["data"]}
        names = files_on_workers(launcher, task, data, target, suffix, more, n_jobs)
    notes.say(f"{target}: {len(names):,} files")


def _refuse(wrong: Mapping[str, Any]) -> None:
    for flag, value in wrong.items():
        if value:
            raise DataError(f"{flag} does not go with workers")

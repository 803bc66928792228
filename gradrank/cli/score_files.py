"""Data and the systems to rank it, as the commands take them: score files, TREC runs and models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradrank.cli.common import Notes, load_data, with_features
from gradrank.cli.reading import Reading
from gradrank.cli.streaming import is_large, joined, load_labels, scores_of_file
from gradrank.errors import DataError

if TYPE_CHECKING:
    from gradrank.models.ranker import Ranker
    from gradrank.models.systems import Documents


def load_models(given: Sequence[str] | None) -> dict[str, Ranker]:
    """The models of ``[NAME=]MODEL`` options by name; one without a name is called as its file."""
    from gradrank.models.registry import load_ranker

    models: dict[str, Ranker] = {}
    for option in given or ():
        name, equals, file = option.partition("=")
        if not equals or Path(option).exists():
            name = file = option
        if not (name and file):
            raise DataError(f"--model is {option!r}, expected MODEL or NAME=MODEL")
        if name in models:
            raise DataError(f"--model names {name!r} twice")
        models[name] = load_ranker(file)
    return models


def check_names(score_files: Sequence[str], models: Sequence[str]) -> None:
    """Refuse no system at all, and two of the same name."""
    if not (score_files or models):
        raise DataError("there is no system: give --scores FILE or --model MODEL")
    names = [*score_files, *models]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise DataError(f"system {name!r} is given twice")


def load_systems(
    path: Path,
    reading: Reading,
    score_files: Sequence[str],
    models: dict[str, Ranker],
    labels: Sequence[str] | None,
    notes: Notes,
    n_jobs: int | None = None,
    *,
    features_needed: bool = True,
) -> tuple[Documents, dict[str, Any]]:
    """The data, and each system by name: a score file's path, or a model's scores in the order of the data's rows.

    If features are not needed but for the models, they are not read, or not held where they are many.
    """
    from gradrank.models.systems import Documents, is_qrels

    if reading.format is None and is_qrels(path):
        if labels:
            raise DataError("--label needs one number for each row of DATA, but DATA is TREC qrels")
        if models:
            raise DataError(f"--model {next(iter(models))} needs features to score, but DATA is TREC qrels")
        if reading.words():
            raise DataError(f"{reading.words()[0]} does not go with TREC qrels", path=path)
        with notes.working(f"reading {path}"):
            return Documents.trec(path, {name: name for name in score_files}), {name: name for name in score_files}
    systems: dict[str, Any] = {name: name for name in score_files}
    if not features_needed and (not models or is_large(path, reading)):
        # Features are for the models alone, which take them by blocks of rows.
        data = load_labels(path, notes, reading, labels)
        for name, ranker in models.items():
            blocks = scores_of_file(ranker, f"the model {name}", path, notes, reading, n_jobs)
            systems[name] = joined(blocks, data.n_docs)
        return Documents(data), systems
    data = load_data(path, notes, reading, labels)
    for name, ranker in models.items():
        fitting = with_features(data, path, ranker.feature_names, f"the model {name}")
        with notes.working(f"scoring by {name}"):
            systems[name] = ranker.predict(fitting, n_jobs=n_jobs)
    return Documents(data), systems

"""``gradrank check``: whether live data is still as the model's training data was."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, check_writable, load_data, print_table, print_text, with_features
from gradrank.cli.reading import Reading, reads_data
from gradrank.errors import DataError

if TYPE_CHECKING:
    from gradrank.data.feature_profile import FeatureProfile
    from gradrank.models.ranker import Ranker

EXIT_DRIFT = 1


@reads_data
def check(
    model: options.ModelFile,
    data: options.DataFile,
    profile: Annotated[
        Path | None,
        typer.Option("--profile", metavar="FILE", help="Profile of the training data; the model's own unless given."),
    ] = None,
    psi: Annotated[float, typer.Option("--psi", help="Most PSI of a feature.")] = 0.2,
    missing_change: Annotated[
        float, typer.Option("--missing-change", help="Most difference of the shares of missing values.")
    ] = 0.05,
    new_values: Annotated[float, typer.Option("--new-values", help="Most share of values unknown to training.")] = 0.01,
    label_psi: Annotated[float, typer.Option("--label-psi", help="Most PSI of the labels.")] = 0.2,
    all_features: Annotated[
        bool, typer.Option("--all-features", help="Features that the model does not use count, too.")
    ] = False,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page as well.")] = None,
    show_as: options.ShowAs = options.OutputFormat.table,
    label: options.LabelFiles = None,
    random_state: options.Seed = 0,
    *,
    reading: Reading,
    quiet: options.Quiet = False,
) -> None:
    """Compare live DATA with the data that MODEL was trained on; the exit code is 1 if something changed too much."""
    notes = Notes(quiet)
    if html is not None:
        check_writable(html, model, data, profile)
    from gradrank.data.drift import Thresholds, find_drift
    from gradrank.models.registry import load_ranker
    from gradrank.report.drift import drift_table, summary, write_drift

    limits = Thresholds(psi, missing_change, new_values, label_psi)
    ranker = load_ranker(model)
    trained = _training_profile(model, ranker, profile)
    loaded = load_data(data, notes, reading, label)
    # The model must be able to score the data, whatever else the data has.
    with_features(loaded, data, ranker.feature_names, "the model")
    loaded = with_features(loaded, data, trained.feature_names, "the profile")
    with notes.working("comparing"):
        used = None if all_features else _used(ranker, trained)
        found = find_drift(loaded, trained, used=used, thresholds=limits, random_state=random_state)
    if show_as is options.OutputFormat.json:
        from gradrank.evaluation.tables import to_json

        print_text(to_json({"model": str(model), "data": str(data), **found.to_dict()}))
    else:
        print_table(drift_table(found.features), show_as)
        if found.labels:
            print_table(drift_table(found.labels, "labels"), show_as)
        if show_as is options.OutputFormat.table:
            print_text(summary(found) + "\n")
    if html is not None:
        write_drift(html, found, title=f"{data.name} beside the training data of {model.name}")
        notes.say(f"wrote {html}")
    if found.faults:
        raise typer.Exit(EXIT_DRIFT)


def _training_profile(model: Path, ranker: Ranker, path: Path | None) -> FeatureProfile:
    from gradrank.data.feature_profile import FeatureProfile, load_profile

    if path is not None:
        return load_profile(path)
    kept = ranker.training.get("profile")
    if kept is None:
        raise DataError(
            "holds no profile of its training data: make one with 'gradrank profile DATA -o FILE' and give it with "
            "--profile FILE",
            path=model,
        )
    try:
        return FeatureProfile.from_dict(kept)
    except DataError as error:
        raise DataError(f"its profile {error.message}", path=model) from None


def _used(ranker: Ranker, trained: FeatureProfile) -> tuple[str, ...]:
    """The features that the model uses, under the profile's names."""
    from gradrank.models.features import columns_by_name

    places = columns_by_name(trained.feature_names, ranker.feature_names)
    used = set(ranker.used_features())
    columns = range(len(ranker.feature_names)) if places is None else places
    return tuple(
        trained.feature_names[column]
        for name, column in zip(ranker.feature_names, columns, strict=True)
        if name in used
    )

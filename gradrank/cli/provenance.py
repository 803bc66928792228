"""What a trained model keeps of the data it came from, so that a reviewer can check it later."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradrank.data.ranking_data import RankingData
    from gradrank.measures import AnyMeasure
    from gradrank.models.ranker import Ranker


def remember_data(
    ranker: Ranker,
    sets: Mapping[str, RankingData],
    files: Mapping[str, Path],
    measures: list[AnyMeasure],
    *,
    n_jobs: int | None = None,
) -> dict[str, dict[str, float]]:
    """Keep files, fingerprints, labels and measures of all data sets, and the profile of the training data.

    Nothing of it depends on the day or the machine: the same data and seed give the same facts. Gives the means of the
    measures by data set.
    """
    from gradrank.data.feature_profile import profile_features
    from gradrank.data.fingerprint import data_fingerprint
    from gradrank.evaluation.significance import standard_error, t_interval
    from gradrank.measures import mean_value, measure_values

    kept: dict[str, Any] = {}
    means: dict[str, dict[str, float]] = {}
    for key, data in sets.items():
        found = measure_values(measures, ranker.predict(data, n_jobs=n_jobs), data, n_jobs=n_jobs)
        told: dict[str, Any] = {}
        means[key] = {str(measure): mean_value(values) for measure, values in found.items()}
        for measure, values in found.items():
            there = values[values == values]
            mean = means[key][str(measure)]
            low, high = t_interval(mean, standard_error(there), len(there))
            told[str(measure)] = {"mean": mean, "low": low, "high": high, "queries": len(there)}
        kept[key] = {
            "file": str(files[key]),
            "sha256": data_fingerprint(data),
            "queries": data.n_queries,
            "documents": data.n_docs,
            "labels": {name: int((label == label).sum()) for name, label in data.labels.items()},
            "measures": told,
        }
    ranker.remember(sets=kept, profile=profile_features(sets["train"]).to_dict())
    return means

"""Evaluation on workers: each reads its own files; only values per query come back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from gradrank.cluster.child import Member
from gradrank.cluster.launcher import Launcher, make_job
from gradrank.cluster.reading import read_share, together
from gradrank.cluster.sources import as_source
from gradrank.data.label_facts import LabelFacts, label_facts
from gradrank.data.strings import Strings
from gradrank.errors import DataError, GradrankError
from gradrank.evaluation.evaluate import Evaluation
from gradrank.measures import AnyMeasure, as_measures, bind_measures, bound_values
from gradrank.models.ranker import Ranker
from gradrank.models.registry import ranker_from_dict, under_names_of

_TASK = "gradrank.evaluation.crew_evaluation:evaluate_share"


def evaluate_on_workers(
    launcher: Launcher,
    data: Any,
    models: Mapping[str, Ranker],
    measures: Sequence[AnyMeasure | str],
    *,
    reading: Mapping[str, Any] | None = None,
    weighted: bool = False,
    shuffle: bool = False,
    n_jobs: int | None = None,
    ports: Sequence[int] | None = None,
) -> Evaluation:
    """Evaluate models on data that workers read themselves.

    Parameters
    ----------
    launcher
        The workers.
    data
        Files, a folder, a pattern, an address or a Dask dataframe.
    models
        Rankers by name.
    measures
        Measures, or their names.
    reading
        How files are read.
    weighted
        Whether the data's query weights enter all means.
    shuffle
        Whether a query that stands in several files is brought together.
    n_jobs
        Threads of each worker.
    ports
        First and last port that workers may listen on.
    """
    columns = as_measures(measures)
    source = as_source(data)
    arguments = {
        "models": {name: json.dumps(model.to_dict()) for name, model in models.items()},
        "measures": [str(measure) for measure in columns],
        "reading": dict(reading or {}),
        "weighted": weighted,
        "shuffle": shuffle,
    }
    try:
        job = make_job(_TASK, arguments, source.deal(launcher), threads=n_jobs, ports=ports)
        results = [item["result"] for item in launcher.run(job, lambda _message: None)]
    finally:
        source.forget(launcher)
    qids = [qid for result in results for qid in Strings(*result["qid"])]
    order = np.array(sorted(range(len(qids)), key=qids.__getitem__), dtype=np.int64)
    values = {
        name: {
            measure: np.concatenate([result["values"][name][number] for result in results])[order]
            for number, measure in enumerate(columns)
        }
        for name in models
    }
    facts = {
        source_name: LabelFacts(*(
            sum(result["facts"][source_name][field.name] for result in results) for field in fields(LabelFacts)
        ))
        for source_name in results[0]["facts"]
    }  # fmt: skip
    weights = np.concatenate([result["weight"] for result in results])[order] if weighted else None
    return Evaluation(Strings.of([qids[at] for at in order.tolist()]), columns, values, facts, weights)


def evaluate_share(member: Member) -> dict[str, Any]:
    """Values per query of this process's share of the data."""
    given = member.arguments
    data = read_share(member, given["share"], given["reading"], name="the data", shuffle=given["shuffle"])
    failed: GradrankError | None = None
    found: dict[str, Any] = {}
    try:
        if given["weighted"] and data.weight is None:
            raise DataError("weighted means were asked for, but this data has no query weights")
        measures = as_measures(given["measures"])
        bound = bind_measures(measures, data, n_jobs=member.threads)
        values = {}
        for name, text in given["models"].items():
            ranker = under_names_of(ranker_from_dict(json.loads(text)), data)
            scores = ranker.grouped_scores(data, n_jobs=member.threads)
            values[name] = list(bound_values(bound, scores).values())
        sources = dict.fromkeys(measure.source for measure in measures)
        facts = {source or data.label_names[0]: asdict(label_facts(data, source)) for source in sources}
        found = {
            "qid": [np.asarray(data.qid.buffer), np.asarray(data.qid.offsets)],
            "values": values,
            "facts": facts,
            "weight": data.weight if given["weighted"] else None,
        }
    except GradrankError as error:
        failed = error
    together(member, failed)
    return found

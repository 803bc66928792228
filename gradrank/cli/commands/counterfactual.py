"""``gradrank counterfactual``: what rankers would have got from the users of a click log."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, load_data, print_table, with_features
from gradrank.cli.reading import Reading, reads_data
from gradrank.errors import DataError


class Estimator(StrEnum):
    """Names of the estimates."""

    ips = "ips"
    snips = "snips"
    dr = "dr"


class Worth(StrEnum):
    """What a list is worth."""

    clicks = "clicks"
    dcg = "dcg"


@reads_data
def counterfactual(
    log: options.LogFile,
    data: Annotated[
        Path, typer.Option("--data", metavar="DATA", help="Documents that a ranker may show, with document ids.")
    ],
    model: Annotated[
        list[str], typer.Option("--model", metavar="[NAME=]MODEL", help="A ranker to evaluate. May be repeated.")
    ],
    propensities: Annotated[
        Path,
        typer.Option(
            "--propensities", metavar="FILE", help="How likely positions are examined, as propensity writes it."
        ),
    ],
    estimator: Annotated[
        Estimator, typer.Option("--estimator", help="Inverse propensity, self-normalized, or doubly robust.")
    ] = Estimator.snips,
    worth: Annotated[Worth, typer.Option("--worth", help="Clicks or DCG per session.")] = Worth.clicks,
    cutoff: Annotated[int, typer.Option("--cutoff", min=1, help="Ranks that count.")] = 10,
    clip: Annotated[
        float, typer.Option("--clip", min=0.0001, max=1, help="Propensities below this count as this in weights.")
    ] = 0.05,
    confidence: options.Confidence = 0.95,
    log_format: options.LogFormat = None,
    *,
    reading: Reading,
    show_as: options.ShowAs = options.OutputFormat.table,
    random_state: options.Seed = 0,
    n_jobs: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Estimate from a click log what rankers that did not make it would have got."""
    notes = Notes(quiet)
    from gradrank.data.clicks.propensity_files import read_propensities
    from gradrank.data.clicks.readers import read_click_log
    from gradrank.evaluation.counterfactual import counterfactual as estimate
    from gradrank.evaluation.tables import Column, Table
    from gradrank.models.registry import load_ranker

    known = read_propensities(propensities)
    rankers = {}
    for text in model:
        name, equals, path = text.partition("=")
        if (name if equals else text) in rankers:
            raise DataError(f"model {name if equals else text} is given twice")
        rankers[name if equals else text] = load_ranker(path if equals else text)
    with notes.working(f"reading {log}"):
        sessions = read_click_log(log, log_format)
    loaded = load_data(data, notes, reading)
    scores = {
        name: ranker.grouped_scores(with_features(loaded, data, ranker.feature_names, name), n_jobs=n_jobs)
        for name, ranker in rankers.items()
    }
    found = estimate(
        sessions, loaded, scores, known, estimator=estimator.value, worth=worth.value, cutoff=cutoff, clip=clip,
        confidence=confidence, random_state=random_state,
    )  # fmt: skip
    notes.say(
        f"{found.sessions:,} sessions of {found.queries:,} queries; their own lists are worth {found.logged:.4f} "
        f"{worth.value} per session by the same estimate, and got {found.clicks:.4f} clicks"
    )
    for item in found.estimates:
        if item.unseen > 0:
            notes.say(f"{item.system}: {item.unseen:.1%} of its lists' weight is on documents that no session showed")
    columns = (
        Column("system"), Column(worth.value, "number"), Column("low", "number"), Column("high", "number"),
        Column("gain", "signed"), Column("gain interval", "interval"), Column("unseen", "number"),
    )  # fmt: skip
    rows = tuple(
        (item.system, item.value, item.low, item.high, item.gain, (item.gain_low, item.gain_high), item.unseen)
        for item in found.estimates
    )
    print_table(Table(columns, rows), show_as)

"""Putting the report together: one HTML file without scripts it needs or files it loads."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradrank import __version__
from gradrank.data.texts import Texts
from gradrank.errors import DataError
from gradrank.evaluation import Comparison, Evaluation, compare, evaluate
from gradrank.measures import DEFAULT_MEASURES, AnyMeasure
from gradrank.models.systems import Data, Documents, System, as_ranker, is_path, is_ranker, named_systems
from gradrank.report.effects import Effects, all_effects
from gradrank.report.headline import headline, name_of_test
from gradrank.report.models import model_views
from gradrank.report.rendering import rendered
from gradrank.report.results import (
    MARKS,
    changed_queries,
    forests,
    mean_rows,
    pair_table,
    query_counts,
    segment_forests,
)
from gradrank.report.sets import data_sets
from gradrank.report.side_by_side import SHOWN_RANKS, Rankings, side_by_side
from gradrank.report.summary import embedded
from gradrank.runtime.files import replacing

if TYPE_CHECKING:
    from gradrank.report.serving import ServingView

_PACKAGES = ("numpy", "numba", "scipy", "lightgbm")
_LEVEL = 0.05
SIDE_BY_SIDE = 5
"""Of so many queries that gain most, and that lose most, the rankings are shown."""
_EFFECTS = 6
_LENGTH = "query length"
_MOST_WORDS = 5


def write_report(
    path: str | Path,
    evaluation: Evaluation | None = None,
    comparison: Comparison | None = None,
    *,
    data: Data | Mapping[str, Data] | None = None,
    systems: Mapping[str, System] | System | None = None,
    measures: AnyMeasure | str | Iterable[AnyMeasure | str] = DEFAULT_MEASURES,
    baseline: str | None = None,
    title: str = "Ranking report",
    models: Mapping[str, System] | None = None,
    commands: Sequence[str] = (),
    notes: Sequence[str] = (),
    facts: Mapping[str, object] | None = None,
    serving: ServingView | None = None,
    texts: Texts | None = None,
    segments: Mapping[str, Mapping[str, Any] | Sequence[Any]] | None = None,
    scores: Mapping[str, System] | None = None,
    effects: int | None = None,
    date: datetime | None = None,
    n_jobs: int | None = None,
) -> None:
    """Write one HTML file that shows which system ranks better, and needs nothing else to be read.

    What it shows is an evaluation, with a comparison if given; or ``systems`` that are evaluated on ``data`` first.

    Parameters
    ----------
    path
        The file to write.
    evaluation
        What :func:`~gradrank.evaluate` gave; that of the comparison unless given.
    comparison
        What :func:`~gradrank.compare` gave: differences and significance.
    data
        The data to evaluate ``systems`` on, as :func:`~gradrank.evaluate` takes it. Beside an evaluation: data sets by
        name, whose sizes are shown.
    systems, measures, n_jobs
        As :func:`~gradrank.evaluate` takes them; not beside an evaluation. Several systems are compared.
    baseline
        Name of the system to compare ``systems`` with; the first one unless given.
    title
        Title of the page.
    models
        Models by name, to show with their learning curves and feature importances; those among ``systems`` unless
        given. Rankers, learners, models of other packages, or paths of model files.
    commands
        Commands that repeat what is shown.
    notes
        Sentences to say beside those of the evaluation.
    facts
        Further names and values to list.
    serving
        Quality against cost of rankers that could be served, as ``gradrank auto --serve-budget`` finds them.
    texts
        Texts of queries and documents, shown with the queries that change most.
    segments
        Names, and what the queries are divided by: values by query id, or one for each query in the data's order.
        Systems are compared within each segment; see :func:`~gradrank.compare_segments`.
    scores
        Beside an evaluation on one data set: what gave the systems' scores, as :func:`~gradrank.evaluate` took them, so
        that the rankings of queries that change most are shown side by side. Of ``systems`` they are known.
    effects
        Of how many features of each model to show what the first measure loses without them, and how the mean score
        follows them, on the data, if it is one set: 6 of ``systems`` unless given, none beside an evaluation.
    date
        Date of the report; now unless given.

    >>> import tempfile
    >>> from gradrank import FeatureRanker, RankingData
    >>> data = RankingData.from_arrays([[1.0], [2.0]] * 3, [0, 1] * 3, qid=[1, 1, 2, 2, 3, 3])
    >>> path = Path(tempfile.mkdtemp()) / "report.html"
    >>> systems = {"old": [2, 1, 1, 2, 2, 1], "new": FeatureRanker("f1")}
    >>> write_report(path, data=data, systems=systems, measures="MRR")
    >>> "No system is significantly better than old by MRR: the best, new, is 0.3333 higher" in path.read_text("utf-8")
    True
    """
    page = render_report(
        evaluation,
        comparison,
        data=data,
        systems=systems,
        measures=measures,
        baseline=baseline,
        title=title,
        models=models,
        commands=commands,
        notes=notes,
        facts=facts,
        serving=serving,
        texts=texts,
        segments=segments,
        scores=scores,
        effects=effects,
        date=date,
        n_jobs=n_jobs,
    )
    with replacing(path) as temporary:
        temporary.write_bytes(page.encode("utf-8"))


def render_report(
    evaluation: Evaluation | None = None,
    comparison: Comparison | None = None,
    *,
    data: Data | Mapping[str, Data] | None = None,
    systems: Mapping[str, System] | System | None = None,
    measures: AnyMeasure | str | Iterable[AnyMeasure | str] = DEFAULT_MEASURES,
    baseline: str | None = None,
    title: str = "Ranking report",
    models: Mapping[str, System] | None = None,
    commands: Sequence[str] = (),
    notes: Sequence[str] = (),
    facts: Mapping[str, object] | None = None,
    serving: ServingView | None = None,
    texts: Texts | None = None,
    segments: Mapping[str, Mapping[str, Any] | Sequence[Any]] | None = None,
    scores: Mapping[str, System] | None = None,
    effects: int | None = None,
    date: datetime | None = None,
    n_jobs: int | None = None,
) -> str:
    """The text of the file that :func:`write_report` writes, which see for the parameters.

    >>> from gradrank import RankingData, evaluate
    >>> data = RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=[1, 1])
    >>> page = render_report(evaluate(data, {"<b>": [1, 2]}, "MRR"))
    >>> "<b>" in page, "&lt;b&gt;" in page
    (False, True)
    """
    sets = {} if data is None else dict(data) if isinstance(data, Mapping) else {_name_of(data): data}
    if systems is not None:
        if evaluation is not None or comparison is not None:
            raise DataError("an evaluation has its systems: give systems or an evaluation, one of the two")
        if len(sets) != 1:
            raise DataError(f"systems are evaluated on one data set, found {len(sets)}")
        named = named_systems(systems)
        ((name, held),) = sets.items()
        sets[name] = documents = Documents.of(held, named)
        evaluation = evaluate(documents, named, measures, n_jobs=n_jobs)
        comparison = compare(evaluation, baseline=baseline) if len(named) > 1 else None
        if models is None:
            models = {name: as_ranker(system, documents) for name, system in named.items() if is_ranker(system)}
        if comparison is not None:
            scores = named
        effects = _EFFECTS if effects is None else effects
    if evaluation is None and comparison is not None:
        evaluation = comparison.evaluation
    if evaluation is None:
        raise DataError("there is nothing to report on: give an evaluation, or data and systems")
    rankers = {name: as_ranker(model) for name, model in (models or {}).items()}
    level = _LEVEL if comparison is None else comparison.level
    if comparison is not None:
        _check_fit(evaluation, comparison)
    top = headline(evaluation, comparison)
    only = Documents.of(next(iter(sets.values()))) if len(sets) == 1 else None
    changed, views = None, []
    if comparison is not None and top.system is not None:
        changed = (top.system, *changed_queries(evaluation, comparison, top.system))
        if scores is not None:
            # The two that are shown, and no others: each is scored once more.
            two = {name: scores[name] for name in (comparison.baseline, top.system) if name in scores}
            rankings = Rankings.of(only, two, texts)
            shown = [query for queries in changed[1:] for query in queries[:SIDE_BY_SIDE]]
            views = side_by_side(rankings, shown, comparison.baseline, top.system)
    found_effects: dict[str, Effects] = {}
    effect_notes: list[str] = []
    if effects and only is not None:
        found_effects, effect_notes = all_effects(rankers, only, evaluation.measures[0], effects, n_jobs)
    trained = [str(m.training["command"]) for m in rankers.values() if isinstance(m.training.get("command"), str)]
    date = (date or datetime.now(UTC)).replace(microsecond=0)
    context: dict[str, Any] = {
        "title": title,
        "date": date,
        "headline": top,
        "evaluation": evaluation,
        "measures": evaluation.measures,
        "means": mean_rows(evaluation, comparison),
        "comparison": comparison,
        "test": None if comparison is None else name_of_test(comparison),
        "level": level,
        "interval": f"{100 * (1 - level):.6g} %",
        "forests": [] if comparison is None else forests(comparison),
        "queries": [] if comparison is None else query_counts(evaluation, comparison),
        "changed": changed,
        "views": views,
        "ranks": SHOWN_RANKS,
        "segments": [] if comparison is None else segment_forests(comparison, _divided(evaluation, segments, texts)),
        "pairs": None if comparison is None else pair_table(evaluation, level),
        "models": model_views(rankers),
        "effects": found_effects,
        "data_sets": data_sets({name: Documents.of(held).shown() for name, held in sets.items()}),
        "notes": list(
            dict.fromkeys(
                (*notes, *evaluation.notes(), *(() if comparison is None else comparison.notes()), *effect_notes)
            )
        ),
        "commands": list(dict.fromkeys((*trained, *commands))),
        "facts": dict(facts or {}),
        "serving": serving,
        "versions": _versions(),
        "summary": embedded(title, date, top.sentence, evaluation, comparison, list(sets)),
        "marks": list(MARKS.values()),
    }
    return rendered("report.html", context)


def _name_of(data: Data) -> str:
    return Path(data).name if is_path(data) else "data"


def _divided(
    evaluation: Evaluation, segments: Mapping[str, Mapping[str, Any] | Sequence[Any]] | None, texts: Texts | None
) -> dict[str, Mapping[str, Any] | Sequence[Any]]:
    """What the queries are divided by: what was given, and their length where their texts are known."""
    divided = dict(segments or {})
    if texts is not None and texts.queries and _LENGTH not in divided:
        lengths = {qid: _words(text) for qid in evaluation.qids if (text := texts.query(qid)) is not None}
        if len(set(lengths.values())) > 1:
            divided[_LENGTH] = lengths
    return divided


def _words(text: str) -> str:
    count = len(text.split())
    return f"{_MOST_WORDS} words or more" if count >= _MOST_WORDS else f"{count} word{'s' * (count != 1)}"


def _check_fit(evaluation: Evaluation, comparison: Comparison) -> None:
    named = {comparison.baseline, *(row.system for row in comparison.rows)}
    if not comparison.rows or not named <= set(evaluation.systems):
        raise DataError(
            f"the comparison is of {', '.join(sorted(named))}, but the evaluation of {', '.join(evaluation.systems)}"
        )


def _versions() -> dict[str, str]:
    found = {"gradrank": __version__, "Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found | {"system": f"{platform.system()} {platform.machine()}"}

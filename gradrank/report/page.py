"""Putting the report together: one HTML file without scripts it needs or files it loads."""

from __future__ import annotations

import platform
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradrank import __version__
from gradrank.errors import DataError, MissingExtraError
from gradrank.evaluation import Column, Comparison, Evaluation, compare, evaluate
from gradrank.measures import DEFAULT_MEASURES, AnyMeasure
from gradrank.models.systems import Data, Documents, System, as_ranker, is_path, is_ranker, named_systems
from gradrank.report.headline import headline, name_of_test
from gradrank.report.models import model_views
from gradrank.report.results import MARKS, changed_queries, forests, mean_rows, pair_table, query_counts
from gradrank.report.sets import data_sets
from gradrank.runtime.files import replacing

if TYPE_CHECKING:
    from gradrank.report.serving import ServingView

_PACKAGES = ("numpy", "numba", "scipy", "lightgbm")
_LEVEL = 0.05
# Characters that HTML does not allow as text; names from files may hold them.
_CONTROL = dict.fromkeys((*range(9), 11, 12, *range(14, 32), *range(127, 160)), "�")


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
    if evaluation is None and comparison is not None:
        evaluation = comparison.evaluation
    if evaluation is None:
        raise DataError("there is nothing to report on: give an evaluation, or data and systems")
    rankers = {name: as_ranker(model) for name, model in (models or {}).items()}
    level = _LEVEL if comparison is None else comparison.level
    if comparison is not None:
        _check_fit(evaluation, comparison)
    top = headline(evaluation, comparison)
    changed = None
    if comparison is not None and top.system is not None:
        changed = (top.system, *changed_queries(evaluation, comparison, top.system))
    trained = [str(m.training["command"]) for m in rankers.values() if isinstance(m.training.get("command"), str)]
    context: dict[str, Any] = {
        "title": title,
        "date": (date or datetime.now(UTC)).replace(microsecond=0),
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
        "pairs": None if comparison is None else pair_table(evaluation, level),
        "models": model_views(rankers),
        "data_sets": data_sets({name: Documents.of(held).shown() for name, held in sets.items()}),
        "notes": list(
            dict.fromkeys((*notes, *evaluation.notes(), *(() if comparison is None else comparison.notes())))
        ),
        "commands": list(dict.fromkeys((*trained, *commands))),
        "facts": dict(facts or {}),
        "serving": serving,
        "versions": _versions(),
        "marks": list(MARKS.values()),
    }
    return _rendered(context)


def _name_of(data: Data) -> str:
    return Path(data).name if is_path(data) else "data"


def _check_fit(evaluation: Evaluation, comparison: Comparison) -> None:
    named = {comparison.baseline, *(row.system for row in comparison.rows)}
    if not comparison.rows or not named <= set(evaluation.systems):
        raise DataError(
            f"the comparison is of {', '.join(sorted(named))}, but the evaluation of {', '.join(evaluation.systems)}"
        )


def _rendered(context: Mapping[str, Any]) -> str:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise MissingExtraError("jinja2", "report") from None
    templates = files("gradrank.report") / "templates"
    script = (templates / "sort.js").read_text(encoding="utf-8")
    environment = Environment(
        loader=PackageLoader("gradrank.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for kind in ("number", "signed", "percent", "p"):
        environment.filters[kind] = Column("", kind).show
    environment.filters["count_"] = "{:,}".format
    environment.filters["share"] = lambda value: "–" if isnan(value) else f"{value:.1%}"
    page = environment.get_template("report.html").render(
        context,
        style=(templates / "style.css").read_text(encoding="utf-8"),
        script=script,
        # The browser runs the one script whose hash this is, and nothing else whatever names contain.
        script_hash=b64encode(sha256(script.encode("utf-8")).digest()).decode("ascii"),
    )
    # File names may hold bytes that are not UTF-8, which Python keeps as lone surrogates.
    return page.translate(_CONTROL).encode("utf-8", "replace").decode("utf-8")


def _versions() -> dict[str, str]:
    found = {"gradrank": __version__, "Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found | {"system": f"{platform.system()} {platform.machine()}"}

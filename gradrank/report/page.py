"""Putting the report together: one HTML file without scripts it needs or files it loads."""

from __future__ import annotations

import platform
from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from math import isnan
from pathlib import Path
from typing import Any

from gradrank import __version__
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError, MissingExtraError
from gradrank.evaluation import Column, Comparison, Evaluation
from gradrank.models.ranker import Ranker
from gradrank.report.headline import headline, name_of_test
from gradrank.report.models import model_views
from gradrank.report.results import MARKS, changed_queries, forests, mean_rows, pair_table, query_counts
from gradrank.report.sets import data_sets
from gradrank.runtime.files import replacing

_PACKAGES = ("numpy", "numba", "scipy", "lightgbm")
_LEVEL = 0.05
# Characters that HTML does not allow as text; names from files may hold them.
_CONTROL = dict.fromkeys((*range(9), 11, 12, *range(14, 32), *range(127, 160)), "�")


def write_report(
    path: str | Path,
    *,
    evaluation: Evaluation,
    comparison: Comparison | None = None,
    title: str = "Ranking report",
    models: Mapping[str, Ranker] | None = None,
    data: Mapping[str, RankingData] | None = None,
    commands: Sequence[str] = (),
    notes: Sequence[str] = (),
    facts: Mapping[str, object] | None = None,
    date: datetime | None = None,
) -> None:
    """Write one HTML file that shows an evaluation and needs nothing else to be read.

    ``comparison`` adds differences and significance, ``models`` learning curves and feature importances,
    ``data`` the size of the data sets, ``commands`` how to repeat it, ``notes`` sentences to say beside those of
    the evaluation, ``facts`` further names and values. ``date`` is now unless given.

    >>> import tempfile
    >>> from gradrank.evaluation import compare, evaluate
    >>> from gradrank.measures import parse_measure
    >>> data = RankingData.from_arrays([[1.0], [2.0]] * 3, [0, 1] * 3, qid=[1, 1, 2, 2, 3, 3])
    >>> result = evaluate(data, {"old": [2, 1, 1, 2, 2, 1], "new": [1, 2] * 3}, [parse_measure("NDCG@10")])
    >>> path = Path(tempfile.mkdtemp()) / "report.html"
    >>> write_report(path, evaluation=result, comparison=compare(result))
    >>> path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    True
    """
    page = render_report(
        evaluation=evaluation,
        comparison=comparison,
        title=title,
        models=models,
        data=data,
        commands=commands,
        notes=notes,
        facts=facts,
        date=date,
    )
    with replacing(path) as temporary:
        temporary.write_bytes(page.encode("utf-8"))


def render_report(
    *,
    evaluation: Evaluation,
    comparison: Comparison | None = None,
    title: str = "Ranking report",
    models: Mapping[str, Ranker] | None = None,
    data: Mapping[str, RankingData] | None = None,
    commands: Sequence[str] = (),
    notes: Sequence[str] = (),
    facts: Mapping[str, object] | None = None,
    date: datetime | None = None,
) -> str:
    """The text of the file that :func:`write_report` writes.

    >>> from gradrank.evaluation import evaluate
    >>> from gradrank.measures import parse_measure
    >>> data = RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=[1, 1])
    >>> page = render_report(evaluation=evaluate(data, {"<b>": [1, 2]}, [parse_measure("MRR")]))
    >>> "<b>" in page, "&lt;b&gt;" in page
    (False, True)
    """
    level = _LEVEL if comparison is None else comparison.level
    if comparison is not None:
        _check_fit(evaluation, comparison)
    top = headline(evaluation, comparison)
    changed = None
    if comparison is not None and top.system is not None:
        changed = (top.system, *changed_queries(evaluation, comparison, top.system))
    models = models or {}
    trained = [str(m.training["command"]) for m in models.values() if isinstance(m.training.get("command"), str)]
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
        "models": model_views(models),
        "data_sets": data_sets(data or {}),
        "notes": list(
            dict.fromkeys((*notes, *evaluation.notes(), *(() if comparison is None else comparison.notes())))
        ),
        "commands": list(dict.fromkeys((*trained, *commands))),
        "facts": dict(facts or {}),
        "versions": _versions(),
        "marks": list(MARKS.values()),
    }
    return _rendered(context)


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

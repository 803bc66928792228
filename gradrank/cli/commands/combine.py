"""``gradrank combine``: the exact best mixture of models or score files."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, check_writable, print_table, print_text
from gradrank.cli.reading import Reading, reads_data
from gradrank.cli.score_files import load_systems
from gradrank.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gradrank.combine import Combination, Weighting
    from gradrank.data.ranking_data import RankingData
    from gradrank.measures import AnyMeasure
    from gradrank.models.ranker import Ranker


class MethodChoice(StrEnum):
    """How weights are found."""

    exact = "exact"
    powell = "powell"


@reads_data
def combine(
    parts: Annotated[
        list[str],
        typer.Argument(
            metavar="A B [C …]", help="Models, or score files with one number per line in DATA's row order."
        ),
    ],
    data: Annotated[Path, typer.Option("--data", metavar="FILE", help="Data to find the weights on.")],
    measure: Annotated[
        str, typer.Option("--measure", "-m", metavar="MEASURE", help="What the weights are best for.")
    ] = "NDCG@10",
    convention: options.ConventionName = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the combined model; if a part is a score file, the combined scores of DATA.",
        ),
    ] = None,
    convex: Annotated[
        bool, typer.Option("--convex", help="(1 − α)·A + α·B: weights add up to 1, instead of A + α·B.")
    ] = False,
    method: Annotated[
        MethodChoice, typer.Option("--method", help="Exact search, or Powell's method.")
    ] = MethodChoice.exact,
    weights: Annotated[
        str | None, typer.Option("--weights", metavar="W,W,…", help="Take these weights instead of searching.")
    ] = None,
    alpha_range: Annotated[
        tuple[float, float] | None,
        typer.Option("--range", metavar="LOW HIGH", help="Two parts: search α only here; any α ≥ 0 by default."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Two parts: draw the measure over α (.html, .svg, .png, .pdf)."),
    ] = None,
    label: options.LabelFiles = None,
    *,
    reading: Reading,
    show_as: Annotated[options.TableOrJson, typer.Option("--format", help="Form of the output.")] = (
        options.TableOrJson.table
    ),
    n_jobs: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Find the best weighted sum of rankers on data."""
    notes = Notes(quiet)
    given = _weights(weights, len(parts))
    _check(parts, given, alpha_range, plot, method, output)
    from gradrank.measures import parse_measure

    chosen = parse_measure(measure, convention=convention)
    loaded, columns, rankers = _load(parts, data, reading, label, notes, n_jobs)
    from gradrank.models.systems import is_qrels

    if output is not None and not _all_models(rankers) and reading.format is None and is_qrels(data):
        raise DataError("DATA is TREC qrels, whose documents have no row order to write scores in: leave -o out")
    with notes.working("combining") as status:
        found, pair = _search(columns, loaded, chosen, method, convex, given, alpha_range, n_jobs, _shown(status))
    if plot is not None and pair is not None:
        from gradrank.report.combination import write_combination

        write_combination(plot, pair, (Path(parts[0]).name, Path(parts[1]).name))
    if output is not None:
        _write(output, parts, columns, rankers, found, loaded, chosen, "given" if given else method.value, notes)
    _show(parts, found, pair, chosen, convex, show_as)


# ---------------------------------------------------------------------- options and files
def _check(
    parts: Sequence[str],
    given: Sequence[float] | None,
    alpha_range: tuple[float, float] | None,
    plot: Path | None,
    method: MethodChoice,
    output: Path | None,
) -> None:
    if len(parts) < 2:
        raise DataError("one ranker is given, expected two or more to combine")
    if method is MethodChoice.powell and given is not None:
        raise DataError("--weights are given: there is nothing left for --method to search")
    exact_pair = len(parts) == 2 and given is None and method is MethodChoice.exact
    for flag, value in (("--range", alpha_range), ("--plot", plot)):
        if value is not None and not exact_pair:
            raise DataError(f"{flag} goes with the exact search for two rankers only")
    for path in (output, plot):
        if path is not None:
            check_writable(path)
    if plot is not None:
        from gradrank.report.combination import check_curve_name

        check_curve_name(plot)


def _weights(text: str | None, count: int) -> list[float] | None:
    if text is None:
        return None
    try:
        weights = [float(item) for item in text.split(",")]
    except ValueError:
        raise DataError(f"--weights is {text!r}, expected numbers with commas between them") from None
    if len(weights) != count:
        raise DataError(f"--weights has {len(weights)} numbers, expected one for each of {count} rankers")
    return weights


def _load(
    parts: Sequence[str],
    path: Path,
    reading: Reading,
    labels: Sequence[str] | None,
    notes: Notes,
    n_jobs: int | None,
) -> tuple[RankingData, list[NDArray[np.float64]], list[Ranker | None]]:
    """The data, each part's scores in the order of its rows, and the parts that are models."""
    from gradrank.models.registry import load_ranker
    from gradrank.models.systems import is_model, scores_of

    names = list(dict.fromkeys(parts))
    models = {name: load_ranker(name) for name in names if is_model(name)}
    score_files = [name for name in names if name not in models]
    documents, systems = load_systems(path, reading, score_files, models, labels, notes, n_jobs)
    scores = {}
    for name, system in systems.items():
        try:
            grouped = scores_of(system, documents, finite=True)
        except DataError as error:
            raise error if error.path is not None else DataError(str(error), path=name) from None
        scores[name] = documents.data.in_input_order(grouped)
    for note in documents.notes:
        notes.say(note)
    return documents.data, [scores[name] for name in parts], [models.get(name) for name in parts]


# ---------------------------------------------------------------------- the search
def _search(
    columns: Sequence[NDArray[np.float64]],
    data: RankingData,
    measure: AnyMeasure,
    method: MethodChoice,
    convex: bool,
    given: Sequence[float] | None,
    alpha_range: tuple[float, float] | None,
    n_jobs: int | None,
    progress: _Shown,
) -> tuple[Weighting, Combination | None]:
    from gradrank.combine import Weighting, given_weights, optimal_combination, search_weights

    if given is not None:
        return given_weights(columns, given, data, measure), None
    if len(columns) > 2 or method is MethodChoice.powell:
        return search_weights(
            columns, data, measure, method=method.value, convex=convex, n_jobs=n_jobs, progress=progress.search
        ), None
    low, high = alpha_range or (0.0, None)
    pair = optimal_combination(
        columns[0],
        columns[1],
        data,
        measure,
        form="convex" if convex else "additive",
        low=low,
        high=high,
        n_jobs=n_jobs,
        progress=progress.share,
    )
    return Weighting(pair.weights, pair.values, pair.values_of_parts), pair


class _Shown:
    """How far the search is, on the line that shows that something is being done."""

    def __init__(self, status: Any) -> None:
        self._status = status

    def share(self, done: float) -> None:
        if self._status is not None:
            self._status.update(f"combining: {done:.0%}")

    def search(self, number: int, value: float) -> None:
        if self._status is not None:
            self._status.update(f"combining: search {number}, {value:.6f}")


def _shown(status: Any) -> _Shown:
    return _Shown(status if hasattr(status, "update") else None)


# ---------------------------------------------------------------------- results
def _all_models(rankers: Sequence[Ranker | None]) -> bool:
    return all(ranker is not None for ranker in rankers)


def _write(
    output: Path,
    parts: Sequence[str],
    columns: Sequence[NDArray[np.float64]],
    rankers: Sequence[Ranker | None],
    found: Weighting,
    data: RankingData,
    measure: AnyMeasure,
    method: str,
    notes: Notes,
) -> None:
    models = [ranker for ranker in rankers if ranker is not None]
    if len(models) == len(parts):
        from gradrank.combine.ensemble import weighted_sum

        facts = {"learner": "combine", "measure": str(measure), "method": method, "parts": list(parts)}
        weighted_sum(models, found, data, facts).save(output)
        return
    from gradrank.data.formats.columns import write_column

    total = sum(weight * column for weight, column in zip(found.weights, columns, strict=True) if weight)
    write_column(0.0 * columns[0] + total, output)
    notes.say(f"{output} holds the combined scores of the data: score files cannot score other data as a model does")


def _show(
    parts: Sequence[str],
    found: Weighting,
    pair: Combination | None,
    measure: AnyMeasure,
    convex: bool,
    show_as: options.TableOrJson,
) -> None:
    from gradrank.evaluation.tables import Column, Table, to_json

    alone = [next(iter(part.values())) for part in found.values_of_parts]
    if show_as is options.TableOrJson.json:
        result: dict[str, Any] = {
            "measure": str(measure),
            "parts": list(parts),
            "alpha": _alpha(found, pair, convex),
            "interval": None if pair is None else list(pair.interval),
            "weights": list(found.weights),
            "value": found.value,
            "values": found.values,
            "values_of_parts": alone,
        }
        print_text(to_json(result))
        return
    names = list(found.values)
    rows = [
        (name, f"{weight:.6g}", *(part[item] for item in names))
        for name, weight, part in zip(parts, found.weights, found.values_of_parts, strict=True)
    ]
    rows.append(("together", "", *found.values.values()))
    columns = (Column("system"), Column("weight"), *(Column(item, "number") for item in names))
    print_table(Table(columns, tuple(rows), _title(pair)), options.OutputFormat.table)


def _title(pair: Combination | None) -> str | None:
    if pair is None:
        return None
    low, high = pair.interval
    where = "only there" if low == high else f"best from {low:.6g} to {high:.6g}"
    return f"α = {pair.alpha:.6g} ({where})"


def _alpha(found: Weighting, pair: Combination | None, convex: bool) -> float | None:
    """The weight of the second of two rankers beside the first; null if there are more, or no first."""
    if pair is not None:
        return pair.alpha
    if len(found.weights) != 2 or found.weights[0] == 0.0:
        return None
    first, second = found.weights
    return second / (first + second) if convex else second / first

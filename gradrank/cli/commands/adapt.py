"""``gradrank adapt``: ways to use models of another domain, compared."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, check_writable, load_data, print_table, print_text
from gradrank.cli.parameters import parsed, takes_parameters
from gradrank.cli.reading import Reading, reads_data
from gradrank.errors import DataError, FeatureMismatch
from gradrank.learners.trees.parameters import TreeParameters

if TYPE_CHECKING:
    from gradrank.data.ranking_data import RankingData
    from gradrank.models.ranker import Ranker

DEFAULT_MEASURES = ("NDCG@10", "NDCG@3", "NDCG@1")


@takes_parameters(TreeParameters, without=("base", "diagnostics"))
@reads_data
def adapt(
    bases: Annotated[
        list[Path], typer.Argument(metavar="BASE …", help="Models of another domain; features are found by name.")
    ],
    data: Annotated[Path, typer.Option("--data", metavar="FILE", help="Data of the domain to adapt to.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="MODEL", help="Write the first base, adapted to all of DATA."),
    ] = None,
    objective: Annotated[
        str | None, typer.Option("--objective", metavar="OBJECTIVE", help="What training improves; NDCG@10 by default.")
    ] = None,
    measure: options.MeasureNames = None,
    folds: Annotated[int, typer.Option("--folds", min=3, help="Parts that the queries are dealt out into.")] = 5,
    label: options.LabelFiles = None,
    *,
    reading: Reading,
    show_as: Annotated[options.TableOrJson, typer.Option("--format", help="Form of the output.")] = (
        options.TableOrJson.table
    ),
    random_state: options.Seed = 0,
    n_jobs: options.Threads = None,
    quiet: options.Quiet = False,
    **parameters: Any,
) -> None:
    """Compare ways to use models of another domain: alone, adapted to new data, interpolated, or not at all."""
    notes = Notes(quiet)
    if output is not None:
        check_writable(output)
    from gradrank.measures import parse_measure
    from gradrank.selection.adapt import adapt as adapt_to_all
    from gradrank.selection.adapt import adapted, compare_adaptation

    measures = [parse_measure(name) for name in measure or DEFAULT_MEASURES]
    loaded = load_data(data, notes, reading, label)
    rankers = _bases(bases, loaded, data)
    common: dict[str, Any] = {"random_state": random_state, "n_jobs": n_jobs, "parameters": parsed(parameters)}
    result = compare_adaptation(rankers, loaded, objective, measures=measures, folds=folds, say=_Said(quiet), **common)
    if output is not None:
        first = next(iter(rankers))
        count = max(1, round(median(result.trees[adapted(first)])))
        adapt_to_all(rankers[first], loaded, objective, trees=count, **common).save(output)
        notes.say(f"{output}: {first} adapted to all of {data} with {count} trees, the median of the folds")
    if show_as is options.TableOrJson.json:
        from gradrank.evaluation.tables import to_json

        print_text(to_json(result.to_dict()))
        return
    print_table(result.table(), options.OutputFormat.table)
    print_table(result.comparison(), options.OutputFormat.table)


def _bases(paths: list[Path], data: RankingData, data_path: Path) -> dict[str, Ranker]:
    from gradrank.models.registry import load_ranker, under_names_of

    rankers = {}
    for path in paths:
        if str(path) in rankers:
            raise DataError(f"base {path} is given twice")
        ranker = load_ranker(path)
        try:
            rankers[str(path)] = under_names_of(ranker, data)
        except FeatureMismatch as error:
            raise DataError(f"does not fit {data_path}: {error.said_of('the model')}", path=path) from None
    return rankers


class _Said:
    """A line on standard error after each training."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet

    def __call__(self, text: str) -> None:
        if not self._quiet:
            typer.echo(f"gradrank: {text}", err=True)

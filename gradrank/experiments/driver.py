"""The one way to run an experiment: by its name, at a scale, on artificial data or on data that is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gradrank.data.formats.registry import read_data
from gradrank.errors import DataError
from gradrank.evaluation.tables import to_json
from gradrank.experiments.folders import Fold, Reader, read_folds, read_splits
from gradrank.experiments.processes import side_by_side
from gradrank.experiments.recipe import Recipe, Run, Say, say_nothing
from gradrank.experiments.registry import recipe
from gradrank.experiments.result import Result
from gradrank.experiments.seeds import over_seeds
from gradrank.experiments.settings import Scale, Splits
from gradrank.runtime.files import replacing
from gradrank.runtime.warned import warnings_told

Data = Splits | Sequence[Fold]

# Artificial data from this size on is announced: it may not fit.
_MUCH_MEMORY = 4.0


def run(
    name: str,
    *,
    scale: str | Scale = "small",
    data: str | Path | Data | None = None,
    seeds: int = 1,
    jobs: int = 1,
    out: str | Path | None = None,
    say: Say = say_nothing,
    read: Reader = read_data,
) -> Result:
    """Run an experiment.

    Parameters
    ----------
    name
        of the recipe, as ``gradrank experiment list`` shows it
    scale
        ``tiny``, ``small`` or ``paper``, or the recipe's scale object with settings of your own:
        ``replace(recipe("wu-1").small, queries=300)``
    data
        a folder of data, or the data itself: a mapping with ``train``, ``vali`` and ``test``, or a list of folds;
        artificial data is made if none is given
    seeds
        number of runs, with seeds ``random_state``, ``random_state + 1``, …; more than one gives means and deviations
    jobs
        processes: for the trainings of recipes that keep finished trainings, else for the runs with different seeds
    out
        folder for the result and, where a recipe can go on with them, for the trainings that are done
    say
        called with each thing that is worth saying meanwhile
    read
        reads a file of the folder ``data``; :func:`gradrank.read_data` unless its files need options

    Returns
    -------
    Result
        tables, notes, and all settings

    Examples
    --------
    >>> result = run("donmez-fig6", scale="tiny")
    >>> result.tables[0].records()[0]["directions"]
    22
    """
    name = name.lower()
    made = recipe(name)
    chosen = made.scale(scale) if isinstance(scale, str) else scale
    _check_scale(name, made, chosen)
    if seeds < 1:
        raise DataError(f"seeds is {seeds}, expected a whole number of 1 or more")
    folder = None if out is None else Path(out)
    given = _read(made, data, read) if isinstance(data, str | Path) else data
    if given is None and chosen.gigabytes() > _MUCH_MEMORY:
        say(f"the artificial data takes about {chosen.gigabytes():.0f} GB of memory")
    scales = [replace(chosen, random_state=chosen.random_state + number) for number in range(seeds)]
    if made.side_by_side or jobs <= 1 or seeds == 1:
        if jobs > 1 and not made.side_by_side:
            say(f"{name} with one seed has nothing to do side by side: jobs is not used")
        results = [_run_once(name, each, given, Run(_with_seed(say, each, seeds), folder, jobs)) for each in scales]
    else:
        done: dict[int, Result] = {}
        for number, result in side_by_side(_run_once, [(name, each, given, Run()) for each in scales], jobs):
            done[number] = result
            say(f"seed {scales[number].random_state} is done")
        results = [done[number] for number in range(seeds)]
    result = results[0] if seeds == 1 else over_seeds(results)
    if folder is not None:
        write(result, folder)
    return result


def write(result: Result, folder: Path) -> None:
    """Write a result as Markdown and as JSON, named after its experiment."""
    folder.mkdir(parents=True, exist_ok=True)
    for suffix, text in ((".md", result.to_markdown()), (".json", to_json(result.to_dict()))):
        with replacing(folder / f"{result.name}{suffix}") as temporary:
            temporary.write_text(text, encoding="utf-8")


def _run_once(name: str, scale: Scale, data: Data | None, how: Run) -> Result:
    made = recipe(name)
    used = scale.artificial_data() if data is None else data
    with warnings_told(how.say):
        tables, notes = made.function(scale, used, how)
    settings = {key: value for key, value in scale.values().items() if key != "n_jobs"}
    if data is not None:
        settings = {key: value for key, value in settings.items() if key not in scale.of_data()}
    return Result(name, made.title, tables, notes, {**settings, **_facts(used)}, scale.learners())


def _check_scale(name: str, made: Recipe, scale: Scale) -> None:
    if not isinstance(scale, type(made.small)):
        wanted = type(made.small)
        raise DataError(f"{name} takes a {wanted.__module__}.{wanted.__name__}, not a {type(scale).__name__}")


def _read(made: Recipe, folder: str | Path, read: Reader) -> Data:
    return read_folds(folder, read) if made.reads == "folds" else read_splits(folder, read)


def _facts(data: Any) -> dict[str, Any]:
    """What there is to know of the data for a result."""
    if isinstance(data, list | tuple):
        return {
            "folds": len(data),
            "test queries": sum(fold.test.n_queries for fold in data),
            "features": data[0].train.n_features,
        }
    train = data["train"]
    return {"queries": train.n_queries, "documents": train.n_docs, "features": train.n_features}


def _with_seed(say: Say, scale: Scale, seeds: int) -> Say:
    return say if seeds == 1 else lambda text: say(f"seed {scale.random_state}: {text}")

"""The one way to run an experiment: by its name, at a scale, on artificial data or on data that is given."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gradrank.data.formats.registry import read_data
from gradrank.errors import DataError
from gradrank.evaluation.tables import to_json
from gradrank.experiments.folders import Reader, read_folds, read_splits
from gradrank.experiments.paper_numbers import PAPER_NUMBERS
from gradrank.experiments.processes import side_by_side
from gradrank.experiments.recipe import SCALES, Recipe, Run, Say, say_nothing
from gradrank.experiments.registry import recipe
from gradrank.experiments.result import Result, shown
from gradrank.experiments.seeds import over_seeds
from gradrank.experiments.settings import Scale
from gradrank.learners.base.training_facts import package_versions
from gradrank.runtime.files import made_folder, replacing
from gradrank.runtime.warned import warnings_told
from gradrank.version import __version__

Data = Any
"""Splits, folds, or judgments of people, as the recipe reads them."""

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
    client: Any = None,
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
    client
        a ``distributed.Client``: its workers train what recipes keep, each one training at a time
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
    began = time.perf_counter()
    made = recipe(name)
    chosen = made.scale(scale) if isinstance(scale, str) else scale
    _check_scale(name, made, chosen)
    if seeds < 1:
        raise DataError(f"seeds is {seeds}, expected a whole number of 1 or more")
    folder = None if out is None else Path(out)
    if data is not None and made.reads == "nothing":
        say(f"{name} looks at no data: what is given is not used")
        data = None
    given = _read(made, data, read) if isinstance(data, str | Path) else data
    if given is not None:
        _check_labels(name, made, given)
    if given is None and chosen.gigabytes() > _MUCH_MEMORY:
        say(f"the artificial data takes about {chosen.gigabytes():.0f} GB of memory")
    scales = [replace(chosen, random_state=chosen.random_state + number) for number in range(seeds)]
    if client is not None and not made.side_by_side:
        say(f"{name} has no trainings for workers: it runs here")
    if made.side_by_side or jobs <= 1 or seeds == 1:
        if jobs > 1 and not made.side_by_side:
            say(f"{name} with one seed has nothing to do side by side: jobs is not used")
        results = [
            _run_once(name, each, given, Run(_with_seed(say, each, seeds), folder, jobs, client)) for each in scales
        ]
    else:
        done: dict[int, Result] = {}
        for number, result in side_by_side(_run_once, [(name, each, given, Run()) for each in scales], jobs):
            done[number] = result
            say(f"seed {scales[number].random_state} is done")
        results = [done[number] for number in range(seeds)]
    result = results[0] if seeds == 1 else over_seeds(results, same_queries=given is not None)
    if folder is not None:
        write(result, folder, command=_command(name, made, scale, data, seeds), seconds=time.perf_counter() - began)
    return result


def write(result: Result, folder: Path, *, command: str, seconds: float) -> None:
    """Write a result as Markdown and as JSON, named after its experiment; the JSON says how it was made.

    ``seconds`` are those of this run: trainings that were kept from before are not in them.
    """
    made_folder(folder)
    made = {"command": command, "seconds": round(seconds, 1), "versions": _versions()}
    # The single runs are in their summary: a kept file stays small.
    kept = {key: value for key, value in result.to_dict().items() if key != "runs"}
    for suffix, text in ((".md", result.to_markdown()), (".json", to_json({**kept, **made}))):
        with replacing(folder / f"{result.name}{suffix}") as temporary:
            temporary.write_text(text, encoding="utf-8")


def _run_once(name: str, scale: Scale, data: Data | None, how: Run) -> Result:
    made = recipe(name)
    used = scale.artificial_data() if data is None else data
    with warnings_told(how.say):
        tables, notes, claims = made.function(scale, used, how)
    stated = PAPER_NUMBERS.get(name, {})
    claims = tuple(replace(claim, paper=stated.get(claim.says, ())) for claim in claims)
    settings = {key: value for key, value in scale.values().items() if key != "n_jobs"}
    if data is not None:
        settings = {key: value for key, value in settings.items() if key not in scale.without_effect(data)}
    return Result(name, made.title, tables, notes, claims, {**settings, **_facts(made, used)}, scale.learners())


def _command(name: str, made: Recipe, scale: str | Scale, data: Any, seeds: int) -> str:
    """The command that repeats the run, as far as it can be given as one."""
    words = ["gradrank experiment run", name]
    if isinstance(scale, str):
        words.append(f"--scale {scale}")
    else:
        # A recipe may have no scale of the paper's.
        named = [each for each in SCALES if made_scale(made, each) is not None]
        base_name = next((each for each in named if made_scale(made, each) == _unseeded(made, each, scale)), "small")
        base = made_scale(made, base_name) or made.small
        words.append(f"--scale {base_name}")
        words += [
            f"--set {key}={shown(value)}"
            for key, value in scale.values().items()
            if key not in ("n_jobs", "random_state") and value != base.values()[key]
        ]
        if scale.random_state != base.random_state:
            words.append(f"--seed {scale.random_state}")
    if data is not None:
        words.append("--data …")
    return " ".join([*words, *([f"--seeds {seeds}"] if seeds > 1 else [])])


def made_scale(made: Recipe, name: str) -> Scale | None:
    """A scale of the recipe, if it has it."""
    return {"tiny": made.tiny, "small": made.small, "paper": made.full}[name]


def _unseeded(made: Recipe, name: str, scale: Scale) -> Scale | None:
    """The scale with the seed and the threads of the recipe's own."""
    own = made_scale(made, name)
    return None if own is None else replace(scale, random_state=own.random_state, n_jobs=own.n_jobs)


def _versions() -> dict[str, str]:
    return {"gradrank": __version__, **package_versions("numpy", "lightgbm", "torch")}


def _check_scale(name: str, made: Recipe, scale: Scale) -> None:
    if not isinstance(scale, type(made.small)):
        wanted = type(made.small)
        raise DataError(f"{name} takes a {wanted.__module__}.{wanted.__name__}, not a {type(scale).__name__}")


def _read(made: Recipe, folder: str | Path, read: Reader) -> Data:
    if made.reads == "judgments":
        from gradrank.experiments.niu_labeling import read_opinions

        return read_opinions(folder, read)
    return read_folds(folder, read) if made.reads == "folds" else read_splits(folder, read)


def _check_labels(name: str, made: Recipe, data: Data) -> None:
    """Whether given data has the label sources that the recipe needs, before anything is trained."""
    for part, found in data.items() if isinstance(data, Mapping) else ():
        missing = [label for label in made.labels if label not in found.label_names]
        if missing:
            raise DataError(
                f"{name} needs the label source {missing[0]!r}, which the {part} data lacks: give its files, "
                f"--label {missing[0]}='*.{missing[0]}.txt', or a column of that name"
            )


def _facts(made: Recipe, data: Any) -> dict[str, Any]:
    """What there is to know of the data for a result."""
    if isinstance(data, list | tuple):
        return {
            "folds": len(data),
            "test queries": sum(fold.test.n_queries for fold in data),
            "features": data[0].train.n_features,
        }
    if not isinstance(data, Mapping):
        return {}
    if made.reads == "judgments":
        # Simulated people judge the test documents.
        test = data["test"]
        return {"queries": test.n_queries, "documents": test.n_docs}
    train = data["train"]
    return {"queries": train.n_queries, "documents": train.n_docs, "features": train.n_features}


def _with_seed(say: Say, scale: Scale, seeds: int) -> Say:
    return say if seeds == 1 else lambda text: say(f"seed {scale.random_state}: {text}")

"""``gradrank tune``: a learner's parameters, searched by cross-validation."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gradrank.cli import options
from gradrank.cli.commands.auto import duration
from gradrank.cli.common import Notes, check_writable, load_data, print_table, print_text, with_features
from gradrank.cli.interruption import EXIT_INTERRUPTED, Interruption
from gradrank.cli.parameters import learner_parameters, parsed, takes_parameters
from gradrank.cli.provenance import remember_data
from gradrank.cli.reading import Reading, reads_data
from gradrank.cli.training import check_algorithm, check_output
from gradrank.errors import DataError
from gradrank.runtime.files import replacing

if TYPE_CHECKING:
    from gradrank.data.ranking_data import RankingData
    from gradrank.evaluation import Comparison
    from gradrank.selection.trials import Trial
    from gradrank.selection.tuned import Tuned


@takes_parameters(without=("train_measure", "diagnostics"))
@reads_data
def tune(
    train_file: Annotated[Path, typer.Option("--train", metavar="FILE", help="Data to learn from.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="MODEL", help="Model file to write.")] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="TOML file to write, for 'gradrank train --config FILE'."),
    ] = None,
    valid_file: Annotated[
        Path | None,
        typer.Option("--valid", metavar="FILE", help="More data to learn from, unless --valid-apart is given."),
    ] = None,
    apart: Annotated[
        bool, typer.Option("--valid-apart", help="Do not learn from --valid: it only judges the trials.")
    ] = False,
    algorithm: Annotated[
        str | None, typer.Option("--algorithm", metavar="NAME", help="Any learner of 'gradrank train'; lambdamart.")
    ] = None,
    measure: Annotated[str, typer.Option("--measure", "-m", metavar="MEASURE", help="What to be good at.")] = "NDCG@10",
    budget: Annotated[
        str | None,
        typer.Option("--budget", metavar="TIME", help="Time for everything: 300s, 20min, 2h; 300s without --trials."),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option("--trials", metavar="N", min=1, help="Settings to try; with one process such a run repeats."),
    ] = None,
    folds: Annotated[
        int, typer.Option("--folds", metavar="N", min=2, help="How often to train each, leaving out other queries.")
    ] = 4,
    search: Annotated[
        list[str] | None,
        typer.Option(
            "--search",
            metavar="NAME=RANGE",
            help="Where to look for a parameter: 'num_leaves=4..128:log', 'activation=relu|tanh'. May be repeated.",
        ),
    ] = None,
    fix: Annotated[
        list[str] | None,
        typer.Option(
            "--fix", metavar="NAME=VALUE", help="A parameter not to search, as its own option does. May be repeated."
        ),
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune/--no-prune", help="End trials early that fall behind half of the others.")
    ] = True,
    storage: Annotated[
        Path | None,
        typer.Option("--storage", metavar="FILE", help="SQLite file that keeps trials; the same command goes on."),
    ] = None,
    test_file: Annotated[
        Path | None,
        typer.Option("--test", metavar="FILE", help="Data to judge the model on, beside one with default parameters."),
    ] = None,
    report: Annotated[Path | None, typer.Option("--report", metavar="FILE", help="HTML report to write.")] = None,
    label: options.LabelFiles = None,
    valid_label: Annotated[
        list[str] | None, typer.Option("--valid-label", metavar="NAME=FILE", help="The same for --valid.")
    ] = None,
    test_label: Annotated[
        list[str] | None, typer.Option("--test-label", metavar="NAME=FILE", help="The same for --test.")
    ] = None,
    *,
    reading: Reading,
    random_state: Annotated[int, typer.Option("--random-state", "--seed", min=0, help="Seed of all randomness.")] = 0,
    processes: Annotated[
        int | None,
        typer.Option("--processes", metavar="N", min=1, help="Trials at the same time; by default one for each core."),
    ] = None,
    n_jobs: options.Threads = None,
    show_as: Annotated[
        options.TableOrJson, typer.Option("--format", help="Form of the summary.")
    ] = options.TableOrJson.table,
    quiet: options.Quiet = False,
    **parameters: Any,
) -> None:
    """Search a learner's parameters by cross-validation, and train a model with the best.

    A parameter that is given is not searched.
    """
    notes = Notes(quiet)
    seconds = None if budget is None else duration(budget, "--budget")
    if output is None and config is None and report is None:
        raise DataError("there is nothing to write: give --output, --config or --report")
    if apart and valid_file is None:
        raise DataError("--valid-apart is given, but no --valid")
    from gradrank.learners.base.search import parse_search
    from gradrank.measures import parse_measure
    from gradrank.selection.space import fixed_values, space_of
    from gradrank.selection.study import load_optuna
    from gradrank.selection.tune import refitted
    from gradrank.selection.tune import tune as run_tune

    given = parsed(parameters)
    name = check_algorithm(algorithm, {key: value for key, value in given.items() if key != "base"},
                           base=given.get("base"))  # fmt: skip
    fixed = {**given, **fixed_values(_pairs(fix, "--fix"), name)}
    ranges = {key: parse_search(text) for key, text in _pairs(search, "--search").items()}
    wanted = parse_measure(measure)
    load_optuna()
    # What the options say is checked before data is read, which may take long.
    space_of(name, wanted, search=ranges, fixed=fixed, random_state=random_state)
    given_files = {"train": train_file, "valid": valid_file, "test": test_file}
    files = {key: path for key, path in given_files.items() if path is not None}
    written = [path for path in (output, config, report) if path is not None]
    for path in written:
        check_output(path, list(files.values()))
    if storage is not None:
        check_writable(storage)
    labels = {"train": label, "valid": valid_label, "test": test_label}
    flags = {"train": "--label", "valid": "--valid-label", "test": "--test-label"}
    sets = {key: load_data(path, notes, reading, list(labels[key] or ()), flags[key]) for key, path in files.items()}
    for key, path in files.items():
        sets[key] = with_features(sets[key], path, sets["train"].feature_names, str(train_file), is_model=False)
    with Interruption("step") as interruption:
        found = run_tune(
            sets["train"], sets.get("valid"), wanted,
            algorithm=name, search=ranges, fixed=fixed, budget=seconds, trials=trials, folds=folds, apart=apart,
            prune=prune, random_state=random_state, processes=processes, n_jobs=n_jobs, storage=storage, refit=False,
            listener=_Teller(notes), asked=interruption.asked,
        )  # fmt: skip
        if config is not None:
            # First of all: it is what took the time.
            _write(config, config_text(found, files))
            notes.say(f"wrote {config}")
        if found.interrupted:
            notes.say("interrupted: going on with the best setting so far")
        comparison: Comparison | None = None
        told: tuple[str, ...] = ()
        if output is not None or "test" in sets:
            with notes.working("training on all queries"):
                ranker = refitted(found, found.best, n_jobs=n_jobs)
            ranker.remember(tuning=found.facts(), command=shlex.join(["gradrank", *sys.argv[1:]]))
            remember_data(ranker, sets, files, list(wanted.parts), n_jobs=n_jobs)
            if output is not None:
                ranker.save(output)
            if "test" in sets and not found.best.defaults:
                plain = refitted(found, found.defaults, n_jobs=n_jobs)
                comparison = _compared(sets["test"], {"defaults": plain, "tuned": ranker}, wanted, n_jobs)
                told = (_honest(comparison, files["test"]),)
    if report is not None:
        from gradrank.report.tuning import write_tuning

        write_tuning(report, found, notes=told)
        notes.say(f"wrote {report}")
    _summarize(found, output, comparison, files, show_as)
    if found.interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)


def _pairs(given: Sequence[str] | None, flag: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in given or ():
        name, equals, value = pair.partition("=")
        if not (name and equals and value):
            raise DataError(f"{flag} is {pair!r}, expected NAME={'RANGE' if flag == '--search' else 'VALUE'}")
        if name in found:
            raise DataError(f"{flag} names {name!r} twice")
        found[name] = value
    return found


class _Teller:
    """Says what became of each trial."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._best = float("-inf")
        self._count = 0

    def __call__(self, trial: Trial) -> None:
        self._count += 1
        what = {"complete": f"{trial.value:.4f}", "pruned": f"pruned, {trial.note}", "failed": f"failed: {trial.note}"}
        if trial.state == "complete":
            self._best = max(self._best, trial.value)
        who = "the defaults" if trial.defaults else ", ".join(f"{k}={v}" for k, v in _told(trial).items())
        self._notes.say(
            f"{self._count}: {what[trial.state]} (best {self._best:.4f}) in {trial.seconds:.1f} s of training; {who}"
        )


def _told(trial: Trial) -> dict[str, Any]:
    hidden = ("measure", "objective", "random_state", "early_stopping_rounds")
    return {name: value for name, value in trial.parameters.items() if name not in hidden}


# ---------------------------------------------------------------------- what is written
def config_text(found: Tuned, files: Mapping[str, Path]) -> str:
    """The best setting as options of ``gradrank train``."""
    learned = [
        str(path) for key, path in files.items() if key == "train" or (key == "valid" and found.cut.apart is None)
    ]
    offered = learner_parameters()
    head = [f"Found by gradrank tune: {found.sentence()}.", f"Learned from {', '.join(learned)}."]
    lines = [f"# {json.dumps(line, ensure_ascii=False)[1:-1]}" for line in head]
    lines += ["", f"algorithm = {_toml(found.space.algorithm)}"]
    for name, value in found.best_params.items():
        if name in offered and value is not None:
            lines.append(f"{name.replace('_', '-')} = {_toml(value)}")
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(str(key))} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, str):
        # JSON's strings are TOML's, but for the escape of characters beyond 16 bits.
        return json.dumps(value, ensure_ascii=False)
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _write(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


# ---------------------------------------------------------------------- what is said
def _compared(test: RankingData, rankers: Mapping[str, Any], measure: Any, n_jobs: int | None) -> Comparison:
    from gradrank.evaluation import compare, evaluate

    scores = {name: ranker.predict(test, n_jobs=n_jobs) for name, ranker in rankers.items()}
    found = compare(evaluate(test, scores, measure.parts, n_jobs=n_jobs))
    assert found is not None
    return found


def _honest(comparison: Comparison, path: Path) -> str:
    row = comparison.rows[0]
    return (
        f"On {path}, whose queries chose nothing, {row.measure} is {row.mean:.4f}, {row.test.difference:+.4f} against "
        f"default parameters (p {row.test.p:.2g})."
    )


def _summarize(
    found: Tuned,
    output: Path | None,
    comparison: Comparison | None,
    files: Mapping[str, Path],
    show_as: options.TableOrJson,
) -> None:
    from gradrank.evaluation.tables import Column, Table, to_json

    if show_as is options.TableOrJson.json:
        print_text(
            to_json({
                **found.to_dict(),
                "model": None if output is None else str(output),
                "comparison": None if comparison is None else comparison.to_dict(),
            })
        )  # fmt: skip
        return
    best, defaults = found.best_params, found.parameters_of(found.defaults)
    names = [name for name in dict.fromkeys([*best, *defaults]) if name not in ("early_stopping_rounds", "measure")]
    rows: list[tuple[Any, ...]] = [
        (str(part), f"{best_value:.4f}", f"{default_value:.4f}")
        for part, best_value, default_value in zip(
            found.measure.parts, found.best.values, found.defaults.values, strict=True
        )
    ]
    rows += [(name, str(best.get(name, "")), str(defaults.get(name, ""))) for name in names]
    print_table(
        Table((Column(""), Column("best"), Column("defaults")), tuple(rows), title=f"{found.sentence()}"),
        options.OutputFormat.table,
    )
    if comparison is not None:
        table = comparison.table()
        print_table(
            Table(table.columns, table.rows, title=f"on {files['test']}, {table.title}"), options.OutputFormat.table
        )

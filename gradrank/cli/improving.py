"""Part of ``gradrank sweep``: improve one measure, keep others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, print_table, print_text
from gradrank.cli.interruption import EXIT_INTERRUPTED, Interruption
from gradrank.cli.reading import Reading
from gradrank.cli.training import load_sets
from gradrank.learners.base.progress import Progress

if TYPE_CHECKING:
    from gradrank.data.ranking_data import RankingData
    from gradrank.learners.base.estimator import RankingEstimator


@dataclass(frozen=True)
class Asked:
    """What is to be improved and kept."""

    improve: str
    keep: Sequence[str]
    baseline: Path | None
    weights: Sequence[float] | None
    level: float


class MemberFit:
    """Trains one of several rankers, with progress on standard error.

    ``names`` are those of all of them; without, they are counted as they come.
    """

    def __init__(self, interruption: Interruption, notes: Notes, names: list[str], quiet: bool) -> None:
        self._interruption = interruption
        self._notes = notes
        self._names = names
        self._quiet = quiet

    def __call__(self, name: str, learner: RankingEstimator, train: RankingData, valid: RankingData) -> None:
        place = f", {self._names.index(name) + 1} of {len(self._names)}" if name in self._names else ""
        self._notes.say(f"training {name}{place}")
        with Progress(self._quiet, learner.unit) as progress:
            if "callbacks" in learner.get_params(deep=False):
                learner.set_params(callbacks=(progress, self._interruption))
            learner.fit(train, valid=valid)


def run_improvement(
    asked: Asked,
    learner: RankingEstimator,
    files: Mapping[str, Path],
    labels: Mapping[str, list[str]],
    output: Path,
    plot: Path | None,
    show_as: options.TableOrJson,
    notes: Notes,
    reading: Reading,
    command: str,
    quiet: bool,
) -> None:
    """Train, walk, write the ranker, and say what came of it."""
    from gradrank.evaluation.compare import compare
    from gradrank.models.registry import load_ranker
    from gradrank.selection.constrained import WEIGHTS, improve
    from gradrank.selection.keep import Keep

    keeps = [Keep.parse(text) for text in asked.keep]
    baseline = None if asked.baseline is None else load_ranker(asked.baseline)
    sets = load_sets(learner, files, notes, reading, labels)
    folder = output.with_name(output.name + ".sweep")
    try:
        with Interruption(learner.unit) as interruption:
            found = improve(
                learner,
                sets["train"],
                sets["valid"],
                asked.improve,
                keeps,
                held_out=sets.get("held-out"),
                baseline=baseline,
                weights=WEIGHTS if asked.weights is None else asked.weights,
                level=asked.level,
                folder=folder,
                fit=MemberFit(interruption, notes, [], quiet),
            )
    except KeyboardInterrupt:
        notes.say(f"interrupted: finished models are in {folder}; the same command goes on from there")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    found.ranker.remember(command=command)
    found.ranker.save(output)
    if plot is not None:
        from gradrank.report.walk import write_walk

        write_walk(plot, found)
        notes.say(f"wrote {plot}")
    notes.say(f"the other models are in {folder}")
    tested = None
    if "test" in sets:
        start = next(iter(found.rankers.values()))
        measures = [found.goal, *dict.fromkeys(keep.measure for keep in keeps if keep.measure != found.goal)]
        tested = compare(sets["test"], {"baseline": start, "chosen": found.ranker}, measures)
    if show_as is options.TableOrJson.json:
        from gradrank.evaluation.tables import to_json

        test = {} if tested is None else {"test": tested.to_dict()}
        print_text(to_json({"model": str(output), "folder": str(folder), **found.to_dict(), **test}))
        return
    print_table(found.table(), options.OutputFormat.table)
    if tested is not None:
        print_text("\n")
        print_table(tested.table(), options.OutputFormat.table)
    print_text(f"\n{found.sentence()}.\n{output}: the chosen model\n")

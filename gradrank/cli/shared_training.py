"""``gradrank train`` on several workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradrank.cli.common import Notes
from gradrank.cli.interruption import Interruption
from gradrank.cli.training import Run
from gradrank.errors import DataError
from gradrank.learners.base.progress import Progress

if TYPE_CHECKING:
    from gradrank.cluster.launcher import Launcher


class SharedRun:
    """A training run whose workers read the data themselves.

    Parameters
    ----------
    run
        The run.
    notes
        Says what happens.
    files
        The data sets by name, as workers see them.
    readings
        How each is read.
    shuffle, ports
        See :func:`gradrank.learners.trees.remote.fit_on_workers`.
    """

    def __init__(
        self,
        run: Run,
        notes: Notes,
        files: Mapping[str, str],
        readings: Mapping[str, Mapping[str, Any]],
        shuffle: bool,
        ports: Sequence[int] | None,
    ) -> None:
        self._run = run
        self._notes = notes
        self._files = files
        self._readings = readings
        self._shuffle = shuffle
        self._ports = ports

    def check(self, base: Any) -> None:
        """Refuse what workers cannot do, before they read anything."""
        from gradrank.learners.trees.lambdamart import LambdaMART
        from gradrank.learners.trees.remote import check_offered

        learner = self._run.learner
        if not isinstance(learner, LambdaMART):
            raise DataError(f"{self._run.name} is not trained on workers: lambdamart, lambdasmart, mart and mcrank are")
        if base is not None:
            learner.set_params(base=base)
        check_offered(learner)

    def fit(self, launcher: Launcher, quiet: bool) -> dict[str, dict[str, float]]:
        """Train, with progress on standard error; the measures on the watched and on the test data."""
        from gradrank.evaluation.crew_evaluation import evaluate_on_workers
        from gradrank.learners.trees.lambdamart import LambdaMART
        from gradrank.learners.trees.remote import fit_on_workers

        learner = self._run.learner
        assert isinstance(learner, LambdaMART)
        valid = {name: file for name, file in self._files.items() if name.startswith("valid")}
        with Interruption(learner.unit) as interruption, Progress(quiet, learner.unit) as progress:
            learner.set_params(callbacks=(progress, interruption))
            fit_on_workers(
                learner, launcher, self._files["train"], valid, reading=self._readings, shuffle=self._shuffle,
                ports=self._ports,
            )  # fmt: skip
        curves, best = learner.record_.curves, learner.record_.best
        values = {
            name: {measure: curve[best - 1] for measure, curve in found.items()} for name, found in curves.items()
        }
        for name, file in self._files.items():
            if name.startswith("test"):
                with self._notes.working("evaluating"):
                    found = evaluate_on_workers(
                        launcher, file, {"model": learner.ranker_}, list(learner._measure().parts),
                        reading=self._readings[name], shuffle=self._shuffle, n_jobs=learner.n_jobs, ports=self._ports,
                    )  # fmt: skip
                values[name] = found.means()["model"]
        return values

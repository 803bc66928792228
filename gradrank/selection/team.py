"""Who trains the models of a portfolio: this process, several that work side by side, or workers of a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from gradrank.data.ranking_data import RankingData
from gradrank.errors import GradrankError, TrainingError
from gradrank.learners.base.loop import Callback
from gradrank.runtime.files import made_folder
from gradrank.selection.crossfit import Ends, Fitted, Task, fit_fold
from gradrank.selection.kept import keep, kept, path_of, run_facts
from gradrank.selection.processes import Processes

if TYPE_CHECKING:
    from gradrank.selection.dask_team import DaskTeam

Asked = Callable[[], bool]


class Team:
    """Trains tasks, each at most once: what the folder of members holds is taken as it is.

    Parameters
    ----------
    pool
        The data that folds are cut from.
    processes
        How many train at the same time; with one, it is this process.
    folder
        Where models are kept; they are gone at the end unless it is given.
    n_jobs
        Threads of all processes together.
    callbacks
        Told of each step, with one process.
    asked
        Tells whether the user wants to stop.
    client
        A Dask client whose workers train, instead of processes of this machine.
    """

    def __init__(
        self,
        pool: RankingData,
        *,
        processes: int = 1,
        folder: Path | None = None,
        n_jobs: int | None = None,
        callbacks: Sequence[Callback] = (),
        asked: Asked | None = None,
        client: Any = None,
    ) -> None:
        self.pool = pool
        self.processes = processes
        self._client = client
        self.folder = folder
        self.stopped = False
        """Whether the user has stopped it: trainings end after the step at work."""
        self._asked = asked
        self._callbacks = callbacks
        self._n_jobs = n_jobs
        self._elsewhere: Processes | DaskTeam | None = None

    def __enter__(self) -> Self:
        if self.folder is not None:
            made_folder(self.folder)
        if self._client is not None:
            from gradrank.cluster.dask_turns import workers_of
            from gradrank.selection.dask_team import DaskTeam

            self.processes = len(workers_of(self._client))
            self._elsewhere = DaskTeam(self.pool, self._client)
            self._elsewhere.__enter__()
        elif self.processes > 1:
            self._elsewhere = Processes(self.pool, self.processes, "gradrank.selection.worker", n_jobs=self._n_jobs)
            self._elsewhere.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._elsewhere is not None:
            self._elsewhere.__exit__(kind, error, traceback)

    def stop(self) -> None:
        """Let all trainings end after the step at work."""
        self.stopped = True
        if self._elsewhere is not None:
            self._elsewhere.stop()

    def look(self) -> None:
        """Stop if the user has asked for it."""
        if not self.stopped and self._asked is not None and self._asked():
            self.stop()

    def train(self, task: Task, until: float) -> Future[Fitted]:
        """Train a model, or take the kept one; training ends at a time (of ``time.time``) with what it has by then."""
        run = run_facts(task, self.pool)
        if self.folder is not None:
            found = kept(run, path_of(task, self.folder))
            if found is not None:
                done: Future[Fitted] = Future()
                done.set_result(found)
                return done
        if self._elsewhere is not None:
            return self._elsewhere.waiting.submit(self._trained_elsewhere, task, run, until)
        return self._here(task, run, until)

    def _here(self, task: Task, run: dict[str, Any], until: float) -> Future[Fitted]:
        done: Future[Fitted] = Future()
        try:
            fitted = fit_fold(task, self.pool, ends=self._ends(until), n_jobs=self._n_jobs, callbacks=self._callbacks)
        except GradrankError as error:
            done.set_exception(error)
            return done
        if fitted.cut_short and time.time() < until:
            self.stopped = True
        if self.folder is not None and not fitted.cut_short:
            keep(fitted, run, path_of(task, self.folder))
        done.set_result(fitted)
        return done

    def _ends(self, until: float) -> Ends:
        def ends() -> bool:
            self.look()
            return self.stopped or time.time() > until

        return ends

    def _trained_elsewhere(self, task: Task, run: dict[str, Any], until: float) -> Fitted:
        """In the thread that waits for a process."""
        assert self._elsewhere is not None
        path = path_of(task, self.folder or self._elsewhere.folder)
        order = {"task": task.to_dict(), "run": run, "path": str(path), "until": until}
        message = self._elsewhere.ordered(order, task.member.name)["error"]
        if message is not None:
            raise TrainingError(message)
        fitted = kept(run, path, whole=False)
        assert fitted is not None
        if fitted.cut_short:
            path.unlink(missing_ok=True)
        return fitted

"""The trials of a search and the sampler that proposes new ones: Optuna's, in memory or in an SQLite file.

Optuna (Akiba, Sano, Yanase, Ohta, Koyama 2019) keeps the trials and samples settings by tree-structured Parzen
estimators (Bergstra, Bardenet, Bengio, Kégl 2011). A new sampler is made for each trial, seeded by the search's seed
and the number of trials so far: what is proposed depends on these and on the trials' values alone, so that a search
that was killed goes on exactly as it would have.
"""

from __future__ import annotations

import json
import sqlite3
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

import numpy as np

from gradrank.errors import DataError, MissingExtraError, TrainingError
from gradrank.learners.base.search import Options, Searched
from gradrank.measures import AnyMeasure, Graded
from gradrank.models.ranker import plain
from gradrank.selection.space import Space
from gradrank.selection.trials import Trial

try:
    import fcntl
except ImportError:  # not on Windows: two searches in one file are then not told apart
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    import optuna

_NAME = "gradrank"
_FACTS, _TRIAL = "gradrank.search", "gradrank.trial"
# How much of a later part of a graded measure the sampler sees, if equal means equal.
_TIE = 1e-6
_FEWEST_FOR_IMPORTANCE = 8
_UNWRITTEN = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_BUSY,
)
_MOST_CAUSES = 10


def load_optuna() -> Any:
    """Optuna, which says nothing unless it must."""
    try:
        import optuna
    except ImportError:
        raise MissingExtraError("optuna", "tune") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def _not_written(error: BaseException | None) -> str | None:
    """What SQLite says of a file that cannot be written, out of the errors of those who stand before it."""
    for _ in range(_MOST_CAUSES):
        if isinstance(error, sqlite3.Error):
            return str(error) if error.sqlite_errorcode & 0xFF in _UNWRITTEN else None
        error = None if error is None else getattr(error, "orig", None) or error.__cause__ or error.__context__
    return None


def scalar(values: Sequence[float], measure: AnyMeasure) -> float:
    """One number for the sampler: the first part, and as much of each later part as its tolerance lets it decide.

    The choice among the trials does not go by it, but by the measure itself.

    >>> from gradrank.measures import parse_measure
    >>> scalar((0.5, 0.2), parse_measure("Graded(NDCG@3, CNDCG@3, tolerance=0.01)"))
    0.502
    """
    weight = (measure.tolerance or _TIE) if isinstance(measure, Graded) else _TIE
    return float(sum(value * weight**place for place, value in enumerate(values)))


class Study:
    """All trials of a search, and what to try next.

    Parameters
    ----------
    space
        Where to look.
    measure
        What to be good at.
    facts
        What must be the same for a search in a file to go on.
    storage
        SQLite file; None keeps everything in memory.
    random_state
        Seed of the sampler.
    parallel
        Whether several trials run at a time: the sampler then takes those under way for bad, and looks elsewhere.
    """

    def __init__(
        self,
        space: Space,
        measure: AnyMeasure,
        facts: Mapping[str, Any],
        *,
        storage: str | Path | None = None,
        random_state: int = 0,
        parallel: bool = False,
    ) -> None:
        self._optuna = load_optuna()
        self._space, self._measure, self._facts = space, measure, json.loads(json.dumps(plain(facts)))
        self._path = None if storage is None else Path(storage)
        self._under_way: dict[int, optuna.Trial] = {}
        self._seed, self._parallel = random_state, parallel
        self._lock = Lock()
        self._file: IO[bytes] | None = None
        self._study: optuna.Study | None = None

    # ------------------------------------------------------------------ opening and closing
    def __enter__(self) -> Self:
        if self._path is not None:
            self._hold(self._path)
        begun = self._path is not None and self._path.stat().st_size > 0
        try:
            self._open()
        except BaseException:
            self._release()
            if self._path is not None and not begun:
                # Half a file would stand in the way of the next attempt.
                for ending in ("", "-journal"):
                    self._path.with_name(self._path.name + ending).unlink(missing_ok=True)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._release()

    def _hold(self, path: Path) -> None:
        """Make the file this process's own: a second search in it would take the first one's trials for dead."""
        if path.is_dir():
            raise DataError("is a folder, expected an SQLite file to write", path=path)
        try:
            self._file = path.open("ab")
        except OSError as error:
            raise DataError(f"cannot be written: {error.strerror}", path=path) from None
        if fcntl is not None:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self._file.close()
                raise DataError("is in use by another search that is still running", path=path) from None

    def _release(self) -> None:
        if self._study is not None and self._path is not None:
            storage = self._study._storage
            engine = getattr(getattr(storage, "_backend", storage), "engine", None)
            if engine is not None:
                engine.dispose()
        if self._file is not None:
            self._file.close()

    def _open(self) -> None:
        optuna = self._optuna
        if self._path is None:
            self._study = optuna.create_study(direction="maximize", study_name=_NAME)
        else:
            from sqlalchemy.exc import SQLAlchemyError

            url = f"sqlite:///{self._path.resolve()}"
            try:
                with self._stored():
                    self._study = optuna.create_study(
                        direction="maximize", study_name=_NAME, storage=url, load_if_exists=True
                    )
            except DataError:
                raise
            except (SQLAlchemyError, RuntimeError, ValueError):
                raise DataError(
                    "is no file of a search: expected a new file or Optuna's SQLite", path=self._path
                ) from None
        with self._stored():
            self._look_at_what_is_there()

    def _look_at_what_is_there(self) -> None:
        study, optuna = self._opened, self._optuna
        kept = study.user_attrs.get(_FACTS)
        if kept is None:
            if study.trials:
                raise DataError("holds a study that is not gradrank's; choose another file", path=self._path)
            study.set_user_attr(_FACTS, self._facts)
        else:
            differing = [key for key in sorted({*kept, *self._facts}) if kept.get(key) != self._facts.get(key)]
            if differing:
                raise TrainingError(
                    f"{self._path}: belongs to another search ({', '.join(differing)} differ); delete it or choose "
                    "another file"
                )
        for trial in study.get_trials(deepcopy=False):
            # Whoever ran it is gone; without a record its turn comes again.
            if trial.state == optuna.trial.TrialState.RUNNING:
                study.tell(trial.number, state=optuna.trial.TrialState.FAIL)

    @contextmanager
    def _stored(self) -> Iterator[None]:
        """Turn what is raised for a disk that is full, read-only or broken into our error."""
        try:
            yield
        except Exception as error:
            said = _not_written(error)
            if self._path is None or said is None:
                raise
            raise DataError(f"cannot be written: {said}", path=self._path) from None

    @property
    def _opened(self) -> optuna.Study:
        assert self._study is not None
        return self._study

    # ------------------------------------------------------------------ trials
    def trials(self) -> list[Trial]:
        """Every trial that came to an end, the learner's defaults first."""
        found = [
            Trial.from_dict({**trial.user_attrs[_TRIAL], "number": 0})
            for trial in self._opened.get_trials(deepcopy=False)
            if _TRIAL in trial.user_attrs
        ]
        found.sort(key=lambda trial: not trial.defaults)
        return [Trial.from_dict({**trial.to_dict(), "number": number}) for number, trial in enumerate(found)]

    def begun(self) -> int:
        """Trials that came to an end or are under way."""
        running = self._optuna.trial.TrialState.RUNNING
        trials = self._opened.get_trials(deepcopy=False)
        return sum(trial.state == running or _TRIAL in trial.user_attrs for trial in trials)

    def ask(self) -> tuple[int, dict[str, Any], bool]:
        """A new trial: its number here, its parameters, and whether it is the learner's defaults."""
        with self._lock, self._stored(), warnings.catch_warnings():
            # Of Optuna: some of what is used here counts as experimental in its older versions.
            warnings.simplefilter("ignore")
            study, optuna = self._opened, self._optuna
            number = self.begun()
            defaults = number == 0
            seed = int(np.random.SeedSequence([self._seed, number]).generate_state(1)[0])
            study.sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=self._parallel)
            states = (optuna.trial.TrialState.WAITING,)
            if defaults and not study.get_trials(deepcopy=False, states=states):
                study.enqueue_trial(self._space.nearest_to_defaults())
            trial = study.ask({name: self._distribution(where) for name, where in self._space.searched.items()})
            self._under_way[trial.number] = trial
            if defaults:
                return trial.number, self._space.defaults(), True
            return trial.number, self._space.parameters(trial.params), False

    def _distribution(self, where: Searched) -> Any:
        kinds = self._optuna.distributions
        if isinstance(where, Options):
            return kinds.CategoricalDistribution(where.values)
        kind = kinds.IntDistribution if where.whole else kinds.FloatDistribution
        return kind(where.low, where.high, log=where.log)

    def tell(self, number: int, trial: Trial) -> None:
        """Keep what came of a trial."""
        states = self._optuna.trial.TrialState
        state = {"complete": states.COMPLETE, "pruned": states.PRUNED, "failed": states.FAIL}[trial.state]
        with self._lock, self._stored():
            found = self._under_way.pop(number)
            found.set_user_attr(_TRIAL, trial.to_dict())
            for fold in range(len(trial.folds)):
                found.report(float(np.mean(trial.folds[: fold + 1])), fold)
            value = scalar(trial.values, self._measure) if trial.state == "complete" else None
            self._opened.tell(number, value, state=state)

    def abandon(self, number: int) -> None:
        """Forget a trial that was not brought to an end: its turn comes again."""
        with self._lock, self._stored():
            self._under_way.pop(number)
            self._opened.tell(number, state=self._optuna.trial.TrialState.FAIL)

    # ------------------------------------------------------------------ what matters
    def importances(self) -> dict[str, float]:
        """Share of each parameter in the variance of the value, the greatest first; empty if trials are too few.

        By functional analysis of variance of a random forest (Hutter, Hoos, Leyton-Brown 2014) over the trials that
        were completed and sampled.
        """
        optuna = self._optuna
        done = [
            trial
            for trial in self._opened.get_trials(deepcopy=False)
            if trial.state == optuna.trial.TrialState.COMPLETE and not trial.user_attrs[_TRIAL]["defaults"]
        ]
        if len(done) < _FEWEST_FOR_IMPORTANCE or not self._space.searched or len({trial.value for trial in done}) < 2:
            return {}
        alone = optuna.create_study(direction="maximize")
        alone.add_trials(done)
        evaluator = optuna.importance.FanovaImportanceEvaluator(seed=self._seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found: dict[str, float] = optuna.importance.get_param_importances(alone, evaluator=evaluator)
        return dict(sorted(found.items(), key=lambda item: -item[1]))

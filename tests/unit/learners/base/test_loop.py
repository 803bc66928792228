"""The one training loop, with a course whose steps and measure are known beforehand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from gradrank.data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.checkpoint import keeper, resume
from gradrank.learners.base.loop import Record, ResumableCourse, Step, run_course
from gradrank.learners.base.monitor import Monitor
from gradrank.measures import MRR, parse_measure

# One query of four documents, one of them relevant: its rank decides the reciprocal rank.
DATA = RankingData.from_arrays(np.zeros((4, 1)), [1, 0, 0, 0], qid=[1, 1, 1, 1])


class Ranks(ResumableCourse):
    """After each step the relevant document stands at the next rank of a list."""

    unit: ClassVar[str] = "move"

    def __init__(self, ranks: list[int], patience: int | None = None) -> None:
        self.total = len(ranks)
        self.patience = patience
        self._ranks = ranks
        self.made: list[int] = []
        self.kept: list[int] = []

    def advance(self, step: int) -> bool:
        if self._ranks[step] == 0:
            return False
        self.made.append(step)
        return True

    def scores(self) -> Mapping[str, NDArray[np.float64]]:
        rank = self._ranks[self.made[-1]]
        return {"valid": np.array([4.5 - rank, 3.0, 2.0, 1.0])}

    def keep(self, best: bool) -> None:
        if best:
            self.kept.append(self.made[-1])

    def own_values(self) -> dict[str, dict[str, float]]:
        return {"own": {"made": float(len(self.made))}}

    def pack(self, manifest: dict[str, Any]) -> bytes:
        return json.dumps({**manifest, "made": self.made}).encode()

    def unpack(self, content: bytes) -> tuple[dict[str, Any], list[int]]:
        manifest: dict[str, Any] = json.loads(content)
        return manifest, list(manifest["made"])

    def take_over(self, state: list[int]) -> None:
        self.made = state


def monitor(*, decides: bool = True) -> Monitor:
    return Monitor({"valid": DATA}, [MRR()], first="valid" if decides else None)


def test_every_step_is_measured_and_the_best_one_is_chosen() -> None:
    course, told = Ranks([4, 2, 3, 1, 2]), list[Step]()
    record = run_course(course, monitor(), callbacks=[told.append])
    assert record.curves == {"valid": {"MRR": [1 / 4, 1 / 2, 1 / 3, 1.0, 1 / 2]}}
    assert (record.steps, record.best, record.interrupted) == (5, 4, False)
    assert course.kept == [0, 1, 3]
    assert [(step.number, step.best, step.total, step.unit) for step in told] == [
        (1, 1, 5, "move"), (2, 2, 5, "move"), (3, 2, 5, "move"), (4, 4, 5, "move"), (5, 4, 5, "move"),
    ]  # fmt: skip
    assert told[2].values == {"valid": {"MRR": 1 / 3}, "own": {"made": 3.0}}


def test_without_validation_data_the_last_step_is_the_model() -> None:
    record = run_course(Ranks([1, 2, 4]), monitor(decides=False))
    assert (record.steps, record.best) == (3, 3)


def test_patience_counts_steps_without_a_new_best() -> None:
    record = run_course(Ranks([3, 2, 4, 4, 1], patience=2), monitor())
    assert (record.steps, record.best) == (4, 2)
    assert run_course(Ranks([3, 2, 4, 4, 1], patience=2), monitor(decides=False)).steps == 5


def test_a_course_may_have_nothing_left_to_learn() -> None:
    record = run_course(Ranks([2, 1, 0, 1]), monitor())
    assert (record.steps, record.best) == (2, 2)


@pytest.mark.parametrize("stop_at", [1, 3])
def test_an_interrupted_training_keeps_what_it_has(stop_at: int) -> None:
    def stop(step: Step) -> None:
        if step.number == stop_at:
            raise KeyboardInterrupt

    record = run_course(Ranks([2, 4, 1, 1]), monitor(), callbacks=[stop])
    assert record.interrupted
    assert record.steps == stop_at
    assert len(record.curves["valid"]["MRR"]) == stop_at
    assert record.best == (1 if stop_at == 1 else 3)


def test_an_interruption_before_the_first_step_is_passed_on() -> None:
    class Never(Ranks):
        def advance(self, step: int) -> bool:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_course(Never([1]), monitor())


class StoppedBeforeMeasuring(Ranks):
    """Ctrl-C comes in the third step, before its scores are measured."""

    def scores(self) -> Mapping[str, NDArray[np.float64]]:
        if len(self.made) == 3:
            raise KeyboardInterrupt
        return super().scores()


class StoppedAfterMeasuring(Ranks):
    """Ctrl-C comes in the third step, when its scores have been measured."""

    def keep(self, best: bool) -> None:
        if len(self.made) == 3:
            raise KeyboardInterrupt


@pytest.mark.parametrize("kind", [StoppedBeforeMeasuring, StoppedAfterMeasuring])
def test_an_interruption_in_a_step_leaves_no_trace_of_it(kind: type[Ranks]) -> None:
    record = run_course(kind([2, 1, 3, 4]), monitor())
    assert (record.steps, record.best, record.interrupted) == (2, 2, True)
    assert record.curves == {"valid": {"MRR": [0.5, 1.0]}}


def test_a_graded_measure_decides_part_by_part() -> None:
    graded = parse_measure("Graded(P@1, MRR)")
    watched = Monitor({"valid": DATA}, [graded], first="valid")
    record = run_course(Ranks([4, 3, 2, 3]), watched)
    assert record.best == 3  # P@1 is 0 throughout; the reciprocal rank decides
    assert set(record.curves["valid"]) == {"P@1", "MRR"}


# ---------------------------------------------------------------- checkpoints
def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    ranks, path = [4, 2, 3, 1, 2, 4], tmp_path / "state"
    whole = run_course(Ranks(ranks), monitor())

    class Killed(Exception):
        pass

    def kill(step: Step) -> None:
        if step.number == 5:
            raise Killed

    course = Ranks(ranks)
    with pytest.raises(Killed):
        run_course(course, monitor(), callbacks=[kill], keeper=keeper(course, path, {"a": 1}, 2))
    again = Ranks(ranks)
    record = resume(again, path, {"a": 1})
    assert record is not None
    assert (record.steps, again.made) == (4, [0, 1, 2, 3])
    done = run_course(again, monitor(), record=record)
    assert (done.steps, done.best, done.curves) == (whole.steps, whole.best, whole.curves)
    assert again.made == [0, 1, 2, 3, 4, 5]


def test_a_state_of_other_settings_or_none_at_all_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    assert resume(Ranks([1]), path, {}) is None
    course = Ranks([1, 2])
    run_course(course, monitor(), keeper=keeper(course, path, {"rate": 0.1, "data": "x"}, 1))
    other = Ranks([1, 2])
    with pytest.raises(TrainingError, match=r"state: belongs to another run \(rate differ\)"):
        resume(other, path, {"rate": 0.2, "data": "x"})
    assert other.made == []  # nothing of it was taken over
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(TrainingError, match="state: is not a checkpoint that can be read; delete it"):
        resume(Ranks([1, 2]), path, {"rate": 0.1, "data": "x"})


def test_a_record_can_be_cut_short() -> None:
    record = Record(steps=3, curves={"valid": {"MRR": [0.1, 0.2, 0.3]}})
    record.cut(2)
    assert (record.steps, record.curves) == (2, {"valid": {"MRR": [0.1, 0.2]}})

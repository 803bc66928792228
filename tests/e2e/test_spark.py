"""Training in a Spark barrier stage; skipped where there is no Java."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gradrank import LambdaMART, make_splits
from gradrank.errors import ClusterError, DataError
from gradrank.learners.trees.crew_training import model_digest
from tests.support.crew import crew_processes, wait_until, write_shards

pytest.importorskip("pyspark")
pytestmark = [
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java"),
    pytest.mark.filterwarnings("ignore"),
]

QUICK: dict[str, Any] = {"n_estimators": 6, "num_leaves": 6, "learning_rate": 0.3, "n_jobs": 1}


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        made = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.log.level", "OFF")
            .getOrCreate()
        )
        yield made
        made.stop()


def test_a_barrier_stage_gives_the_same_model_and_ends_when_a_member_is_killed(session: Any, tmp_path: Path) -> None:
    data = make_splits(40, n_docs=12, n_features=5, random_state=3)
    train = write_shards(data["train"], tmp_path / "train", [3, 19], ".parquet")
    valid = write_shards(data["vali"], tmp_path / "vali", [3], ".parquet")
    steps: list[int] = []
    learner = LambdaMART("NDCG@5", **QUICK, callbacks=(lambda step: steps.append(step.number),))
    learner.fit(client=session, train=train, valid=valid)
    local = LambdaMART("NDCG@5", **QUICK).fit(client=1, train=train, valid=valid)
    assert model_digest(learner.ranker_.to_dict()) == model_digest(local.ranker_.to_dict())
    assert steps == [1, 2, 3, 4, 5, 6]

    with pytest.raises(DataError, match=r"nothing.parquet: there is no such file"):
        learner.fit(client=session, train=tmp_path / "nothing.parquet")

    def kill(step: Any) -> None:
        if step.number == 3:
            crew_processes()[0].kill()

    learner.set_params(n_estimators=100_000, callbacks=(kill,))
    with pytest.raises(ClusterError, match=r"worker [12] of 2 \(\S+\) was killed \(signal 9\)"):
        learner.fit(client=session, train=train)
    wait_until(lambda: crew_processes() == [])

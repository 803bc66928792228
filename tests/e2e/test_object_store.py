"""Training from an object store; skipped where moto, which plays one on this machine, is not installed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gradrank import LambdaMART, make_data
from gradrank.data.formats.registry import write_data
from gradrank.learners.trees.crew_training import model_digest

moto_server = pytest.importorskip("moto.server")


def test_workers_read_their_files_from_s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyarrow import fs

    data = make_data(20, n_docs=8, n_features=4, random_state=0)
    for number, queries in enumerate((np.arange(7), np.arange(7, 20))):
        write_data(data.take_queries(queries), tmp_path / f"part-{number}.parquet")
    server = moto_server.ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        options = f"?endpoint_override={host}:{port}&scheme=http&region=us-east-1"
        system, _ = fs.FileSystem.from_uri(f"s3://bucket{options}&allow_bucket_creation=true")
        system.create_dir("bucket")
        fs.copy_files(str(tmp_path), "bucket/train", fs.LocalFileSystem(), system)
        parameters = {"n_estimators": 3, "num_leaves": 4, "n_jobs": 1}
        stored = LambdaMART(**parameters).fit(client=2, train=f"s3://bucket/train/part-*.parquet{options}")
    finally:
        server.stop()
    local = LambdaMART(**parameters).fit(client=1, train=tmp_path)
    assert model_digest(stored.ranker_.to_dict()) == model_digest(local.ranker_.to_dict())

"""Training on several processes of this machine: one model whatever their number, and an end to every fault."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from gradrank import MART, LambdaMART, LambdaSMART, McRank, RankingData, evaluate, load_ranker, make_splits
from gradrank.cluster import worker
from gradrank.cluster.child import failure
from gradrank.cluster.launcher import make_job
from gradrank.cluster.local import LocalProcesses
from gradrank.cluster.reading import with_keys
from gradrank.data.formats.registry import read_data
from gradrank.errors import ClusterError, DataError, GradrankError, TrainingError
from gradrank.learners.base.checkpoint import unsealed
from gradrank.learners.trees.crew_training import model_digest
from gradrank.learners.trees.size_rule import DEFAULT_LEVELS
from gradrank.models.trees.ensemble import assign_leaves
from gradrank.objectives import parse_objective
from tests.support.commands import PROGRAM, error_of, run
from tests.support.crew import crew_processes, memory_group, wait_until, write_shards

QUICK: dict[str, Any] = {"n_estimators": 8, "num_leaves": 6, "learning_rate": 0.3, "n_jobs": 1}
SYMMETRIC: dict[str, Any] = {**{name: value for name, value in QUICK.items() if name != "num_leaves"}, "max_depth": 3}
TASKS = "tests.support.crew"


@pytest.fixture(scope="module")
def data() -> dict[str, RankingData]:
    made = make_splits(60, n_docs=14, n_features=5, random_state=3)
    rng = np.random.default_rng(0)
    for name, part in made.items():
        clicks = np.where(rng.random(part.n_docs) < 0.3, np.nan, rng.random(part.n_docs).round(2))
        X = np.array(part.X)
        X[:, 2] = np.round(20 * X[:, 2])  # whole numbers, as categories are
        part = replace(part, X=X)
        made[name] = part.with_label("clicks", clicks).with_weight(rng.integers(1, 4, part.n_queries))
    return made


@pytest.fixture(scope="module")
def folder(data: dict[str, RankingData], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same data as one file, as uneven files, as our own form; and as text with an empty file."""
    root = tmp_path_factory.mktemp("shards")
    for name, part in data.items():
        last = part.n_queries
        write_shards(part, root / f"{name}-one", [], ".parquet")
        write_shards(part, root / f"{name}-uneven", [1, 2, last - 20, last - 1], ".parquet")
        write_shards(part, root / f"{name}-own", [last // 3, last // 2], ".gradrank")
    return root


@pytest.fixture(autouse=True)
def nothing_left() -> Any:
    yield
    assert crew_processes() == []


def trained(learner: Any, workers: int, folder: Path, kind: str, **more: Any) -> str:
    learner.fit(client=workers, train=folder / f"train-{kind}", valid=folder / f"vali-{kind}", **more)
    return model_digest(learner.ranker_.to_dict())


# ---------------------------------------------------------------------- one model
def test_the_model_is_the_same_for_any_number_of_workers_and_any_files(
    data: dict[str, RankingData], folder: Path
) -> None:
    parameters = {**QUICK, "train_measure": True, "diagnostics": 4}
    learners = [LambdaMART("NDCG@5", **parameters) for _ in range(3)]
    digests = [
        trained(learner, workers, folder, kind)
        for learner, workers, kind in zip(learners, (1, 2, 3), ("one", "uneven", "own"), strict=True)
    ]
    assert len(set(digests)) == 1
    first = learners[0]
    # It has learned, and its record is that of the whole data.
    assert first.score(data["test"]) > 0.85
    training = first.ranker_.training
    assert training["data"] == {"queries": 60, "documents": data["train"].n_docs, "features": 5, "dtype": "float32"}
    best = evaluate(data["vali"], first.ranker_, ["NDCG@5"])
    assert first.record_.curves["valid"]["NDCG@5"][first.record_.best - 1] == pytest.approx(
        next(iter(best.means().values()))["NDCG@5"], abs=1e-12
    )
    assert training["diagnostics"]["steps"] == [0, 4, 8]
    assert training["pairs"][0]["of_queries"] == 60


@pytest.mark.parametrize(
    "make",
    [
        lambda: MART(**QUICK, colsample_bytree=0.6, subsample=0.5, categorical_feature=(2,)),
        lambda: McRank(**{**QUICK, "n_estimators": 3}),
        lambda: LambdaSMART("MAP", base="f2", **QUICK, split="mse"),
        lambda: LambdaMART("Tiered(NDCG, CNDCG, weight=0.3)", **QUICK, monotone_constraints={"f1": 1}),
        lambda: LambdaMART(**SYMMETRIC),
        lambda: LambdaMART("ERR", **SYMMETRIC, grow_policy="symmetric", colsample_bytree=0.6, split="mse"),
    ],
    ids=["mart", "mcrank", "lambdasmart", "tiers", "symmetric", "symmetric-mse"],
)
def test_every_tree_learner_gives_one_model(make: Any, folder: Path) -> None:
    assert trained(make(), 1, folder, "one") == trained(make(), 2, folder, "uneven")


def test_held_out_queries_are_the_same_for_any_number_of_workers(folder: Path) -> None:
    learners = [LambdaMART(learning_rate=0.3, early_stopping_rounds=5, validation_fraction=0.4) for _ in range(2)]
    for learner, workers, kind in zip(learners, (1, 3), ("one", "uneven"), strict=True):
        learner.fit(client=workers, train=folder / f"train-{kind}")
    one, three = (model_digest(learner.ranker_.to_dict()) for learner in learners)
    assert one == three
    held = learners[1].record_.held_out
    assert held is not None
    assert 20 <= held.queries < 40
    assert learners[1].n_estimators_ == held.best == len(held.curves["NDCG@10"]) - 5
    assert (learners[1].num_leaves_, learners[1].get_params()["num_leaves"]) == (2**DEFAULT_LEVELS, None)


def test_leaves_hold_what_the_whole_data_says(data: dict[str, RankingData], folder: Path) -> None:
    learner = LambdaMART("NDCG@5", **{**QUICK, "n_estimators": 1}, subsample=1.0, reg_lambda=0.5)
    learner.fit(client=2, train=folder / "train-uneven")
    ((tree,),) = learner.trees_
    whole = with_keys(data["train"])
    leaf = assign_leaves(tree, whole.X)
    assert tree.leaf_cover.tolist() == np.bincount(leaf, minlength=tree.n_leaves).tolist()
    assert tree.n_leaves > 3
    objective = parse_objective(learner._chosen()["objective"])
    gradients = objective.bind(whole, random_state=0).gradients(np.zeros(whole.n_docs))
    sums = [np.bincount(leaf, weights=item.astype(np.float64)) for item in (gradients.lambdas, gradients.rhos)]
    np.testing.assert_allclose(tree.leaf_value, 0.3 * sums[0] / (sums[1] + 0.5), rtol=1e-4)


def test_weights_and_positions_of_documents_count_on_workers(data: dict[str, RankingData], tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    train = data["train"]
    shown = np.concatenate([rng.permutation(size) + 1 for size in train.sizes])
    plain = train.with_label("shown", shown.astype(np.float32))
    weighted = plain.with_document_weight(rng.integers(0, 4, train.n_docs).astype(np.float64))
    for name, part in (("plain", plain), ("weighted", weighted)):
        write_shards(part, tmp_path / name, [1, 40], ".parquet")
    # The last position is in one file only.
    digests = set()
    for workers in (1, 2):
        learner = LambdaMART("NDCG", positions="shown", **QUICK).fit(client=workers, train=tmp_path / "weighted")
        digests.add(model_digest(learner.ranker_.to_dict()))
    assert len(digests) == 1
    assert list(learner.position_terms_) == list(range(1, int(shown.max()) + 1))
    # A first step from equal scores needs no random draws of ties that one machine would make otherwise: the terms are
    # Newton's steps on the λ's of all queries, and 0 for the topmost position.
    first = LambdaMART("RankNet", positions="shown", subsample=1.0, **{**QUICK, "n_estimators": 1})
    first.fit(client=2, train=tmp_path / "weighted")
    gradients = parse_objective("RankNet").bind(weighted).gradients(np.zeros(train.n_docs))
    sums = [np.bincount(shown - 1, weights=item) for item in (gradients.lambdas, gradients.rhos)]
    terms = 0.3 * sums[0] / (sums[1] + 1e-3)
    np.testing.assert_allclose(list(first.position_terms_.values()), terms - terms[0], rtol=1e-4, atol=1e-5)
    unweighted = LambdaMART("NDCG", positions="shown", **QUICK).fit(client=1, train=tmp_path / "plain")
    assert model_digest(unweighted.ranker_.to_dict()) not in digests


def test_text_with_fewer_features_and_an_empty_file_is_one_data_set(tmp_path: Path) -> None:
    lines = [f"{query % 2} qid:{query} 1:{query % 2} {{}}\n0 qid:{query} 1:0.5 {{}}\n" for query in range(8)]
    (tmp_path / "a.txt").write_text("".join(lines[:4]).format(*(["2:1"] * 8)))
    (tmp_path / "b.txt").write_text("")
    (tmp_path / "c.txt").write_text("".join(lines[4:]).format(*([""] * 8)))  # its feature 2 is 0 throughout
    learner = LambdaMART(n_estimators=2, min_child_samples=1, n_jobs=1).fit(client=2, train=tmp_path)
    assert learner.ranker_.feature_names == ("f1", "f2")
    assert learner.ranker_.training["data"] == {"queries": 8, "documents": 16, "features": 2, "dtype": "float32"}


# ---------------------------------------------------------------------- queries in several files
def test_a_query_in_two_files_is_refused_or_brought_together(
    data: dict[str, RankingData], folder: Path, tmp_path: Path
) -> None:
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "train-one" / "part-0.parquet")
    cut = int(data["train"].indptr[20]) + 5
    pq.write_table(table[:cut], tmp_path / "first.parquet")
    pq.write_table(table[cut:], tmp_path / "second.parquet")
    learner = LambdaMART("NDCG@5", **QUICK)
    with pytest.raises(DataError, match=r"query \S+ of train stands in \S+first.parquet and in \S+second.parquet"):
        learner.fit(client=2, train=tmp_path)
    # Also if one worker reads both.
    with pytest.raises(DataError, match=r"first.parquet and in \S+second.parquet"):
        learner.fit(client=1, train=tmp_path)
    learner.fit(client=2, train=tmp_path, shuffle=True)
    whole = LambdaMART("NDCG@5", **QUICK).fit(client=2, train=folder / "train-one")
    assert model_digest(learner.ranker_.to_dict()) == model_digest(whole.ranker_.to_dict())


# ---------------------------------------------------------------------- faults
def test_a_killed_process_is_named_and_a_checkpoint_goes_on_with_other_workers(folder: Path, tmp_path: Path) -> None:
    whole = trained(LambdaMART("NDCG@5", **QUICK), 2, folder, "uneven")
    state = tmp_path / "model.checkpoint"

    def kill(step: Any) -> None:
        if step.number == 5:
            crew_processes()[1].kill()

    learner = LambdaMART("NDCG@5", **QUICK, checkpoint=state, checkpoint_every=2, callbacks=(kill,))
    with pytest.raises(ClusterError, match=r"worker [12] of 2 \(127.0.0.1\) was killed \(signal 9\)"):
        trained(learner, 2, folder, "uneven")
    assert json.loads(unsealed(state.read_bytes()))["steps"] in (4, 6)
    steps: list[int] = []
    learner.set_params(callbacks=(lambda step: steps.append(step.number),))
    assert trained(learner, 3, folder, "own") == whole
    assert steps[0] > 4
    # Other data or parameters are another run.
    with pytest.raises(TrainingError, match=f"{state}: belongs to another run .data"):
        learner.fit(client=1, train=folder / "test-one", valid=folder / "vali-one")


def test_a_wish_to_stop_keeps_what_was_learned(folder: Path) -> None:
    def stop(step: Any) -> None:
        if step.number == 2:
            raise KeyboardInterrupt

    learner = LambdaMART("NDCG@5", **{**QUICK, "n_estimators": 2000}, callbacks=(stop,))
    learner.fit(client=2, train=folder / "train-one")
    assert learner.record_.interrupted
    assert 2 <= learner.record_.steps < 2000
    assert learner.predict(np.zeros((1, 5))).shape == (1,)


def test_a_file_that_cannot_be_read_ends_all_workers(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes((folder / "train-one" / "part-0.parquet").read_bytes())
    (tmp_path / "b.parquet").write_bytes(b"PAR1 but not really")
    with pytest.raises(DataError, match=r"worker 2 of 2 \(127.0.0.1\): \S+b.parquet: "):
        LambdaMART(**QUICK).fit(client=2, train=tmp_path)


def test_files_of_different_features_are_named(data: dict[str, RankingData], tmp_path: Path) -> None:
    write_shards(data["train"], tmp_path / "in", [30], ".parquet")
    import pyarrow.parquet as pq

    second = tmp_path / "in" / "part-1.parquet"
    pq.write_table(pq.read_table(second).rename_columns({"f3": "price"}), second)
    with pytest.raises(DataError, match=r"part-1.parquet: has not the feature 'f3', unlike \S+part-0.parquet"):
        LambdaMART(**QUICK).fit(client=2, train=tmp_path / "in")


def test_lack_of_memory_is_said_of_the_worker() -> None:
    with pytest.raises(ClusterError, match=r"worker 2 of 2 \(127.0.0.1\) ran out of memory"):
        LocalProcesses(2).run(make_job(f"{TASKS}:run_out_of_memory", {}, [None, None]), lambda _: None)


def test_a_process_that_the_kernel_kills_for_its_memory_is_named() -> None:
    with memory_group(64 << 20) as group:
        if group is None:
            pytest.skip("no control group for memory can be made here")
        job = make_job(f"{TASKS}:outgrow_a_group", {"group": str(group), "bytes": 256 << 20}, [None, None])
        with pytest.raises(ClusterError, match=r"worker 2 of 2 \(127.0.0.1\) was killed \(signal 9\).*out of memory"):
            LocalProcesses(2).run(job, lambda _: None)


def test_lack_of_memory_inside_lightgbm_is_the_same() -> None:
    from lightgbm.basic import LightGBMError

    told = failure(LightGBMError("std::bad_alloc"), "worker 1 of 2 (here)")
    assert told["error"].startswith("worker 1 of 2 (here) ran out of memory")
    assert told["kind"] == "ClusterError"


def test_a_process_that_is_stopped_is_named_and_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "CHILD_SILENCE_SECONDS", 5.0)  # instead of most of a minute

    def freeze(step: Any) -> None:
        if step.number == 2:
            crew_processes()[1].suspend()

    learner = LambdaMART("NDCG@5", **{**QUICK, "n_estimators": 100_000}, callbacks=(freeze,))
    with pytest.raises(ClusterError, match=r"worker [12] of 2 \(127.0.0.1\) gave no sign of life for 5 s"):
        learner.fit(client=2, train=folder / "train-one")


def test_a_wish_to_stop_is_heard_though_messages_come_all_the_time(folder: Path) -> None:
    def stop(step: Any) -> None:
        if step.number == 3:
            raise KeyboardInterrupt

    # One worker, which tells of its steps faster than anybody looks for wishes.
    quick = {**QUICK, "n_estimators": 3000, "num_leaves": 2}
    learner = LambdaMART("NDCG@5", **quick, callbacks=(stop,)).fit(client=1, train=folder / "test-one")
    assert learner.record_.interrupted


def test_messages_and_results_come_back() -> None:
    heard: list[Any] = []
    results = LocalProcesses(3).run(make_job(f"{TASKS}:add_ranks", {"more": 10}, [0, 0, 0]), heard.append)
    assert [item["result"] for item in results] == [{"sum": 33}] * 3
    assert {"hello": 0} in heard
    assert all(item["sent"] > 0 for item in results)


def test_nothing_outlives_the_one_who_asked() -> None:
    code = (
        "from gradrank.cluster.launcher import make_job\nfrom gradrank.cluster.local import LocalProcesses\n"
        f"job = make_job('{TASKS}:wait_for_ever', {{}}, [0, 0])\n"
        "LocalProcesses(2).run(job, lambda message: message and print(message, flush=True))\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as asker:
        assert asker.stdout is not None
        while b"waiting" not in asker.stdout.readline():
            assert asker.poll() is None
        members = crew_processes()
        ports = [link.laddr.port for member in members for link in member.net_connections() if link.laddr]
        assert len(members) == 2
        assert ports
        asker.kill()
    wait_until(lambda: not any(member.is_running() for member in members if member.status() != psutil.STATUS_ZOMBIE))
    held = {link.laddr.port for link in psutil.net_connections("tcp") if link.status == psutil.CONN_LISTEN}
    assert not held & set(ports)


def test_ctrl_c_keeps_the_best_model_so_far(folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.json"
    call = ["train", "--train", folder / "train-one", "--valid", folder / "vali-one", "--workers", 2, "--trees",
            100_000, "--checkpoint", 5, "--threads", 1, "-o", model]  # fmt: skip
    with subprocess.Popen([*PROGRAM, *map(str, call)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as command:
        state = model.with_name("model.json.checkpoint")
        wait_until(state.exists)
        command.send_signal(signal.SIGINT)
        assert command.stderr is not None
        said = command.stderr.read().decode()
    assert command.returncode == 130
    assert f"{state} is kept" in said
    assert load_ranker(model).training["interrupted"]


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"step": "optimal"}, "step optimal"),
        ({"warm_start": True}, "warm_start"),
        ({"lightgbm": {"bagging_fraction": 0.5}}, "bagging_fraction"),
        ({"lightgbm": {"machines": "a:1"}}, "machines"),
    ],
)
def test_what_is_not_offered_is_said_before_data_is_read(parameters: dict[str, Any], named: str) -> None:
    with pytest.raises(TrainingError, match=named):
        LambdaMART(**parameters).fit(client=2, train="nothing-*.parquet")


def test_data_that_workers_cannot_read_is_refused(data: dict[str, RankingData]) -> None:
    with pytest.raises(TrainingError, match="RankingData, expected a path"):
        LambdaMART().fit(client=2, train=data["train"])
    with pytest.raises(TrainingError, match="X is given"):
        LambdaMART().fit(data["train"], client=2)
    with pytest.raises(GradrankError, match="give one of the two"):
        LambdaMART().fit(train="part-*.parquet")


# ---------------------------------------------------------------------- the command line
def test_commands_share_their_work(data: dict[str, RankingData], folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.json"
    options = ("--trees", 8, "--leaves", 6, "--rate", 0.3, "--objective", "NDCG@5", "--threads", 1)
    made = run("train", "--train", folder / "train-uneven", "--valid", f"{folder}/vali-own/*", "--test",
               folder / "test-one", "--workers", 2, *options, "-o", model, "--format", "json")  # fmt: skip
    told = json.loads(made.stdout)["measures"]
    ranker = load_ranker(model)
    assert "--workers 2" in ranker.training["command"]
    whole = evaluate(data["test"], {"model": ranker}, ["NDCG@5", "MAP"])
    assert told["test"]["NDCG@5"] == pytest.approx(whole.means()["model"]["NDCG@5"], abs=1e-12)

    shared = run("evaluate", folder / "test-uneven", "--model", f"model={model}", "-m", "NDCG@5", "-m", "MAP",
                 "--workers", 2, "--format", "json")  # fmt: skip
    found = json.loads(shared.stdout)
    assert found["queries"] == data["test"].n_queries
    assert found["model"] == pytest.approx(whole.means()["model"], abs=1e-12)

    run("score", model, folder / "test-own", "--workers", 2, "-o", tmp_path / "scores")
    lines = [line for part in sorted((tmp_path / "scores").iterdir()) for line in part.read_text().split()]
    assert np.array(lines, dtype=float).tolist() == ranker.predict(data["test"]).tolist()

    # A folder of results is there when all files are, or not at all.
    broken = tmp_path / "broken"
    write_shards(data["test"], broken, [20], ".csv")
    (broken / "part-1.csv").write_text("qid,label,f1\n1,0,x\n")
    before = sorted(tmp_path.iterdir())
    assert "part-1.csv" in error_of(run("score", model, broken, "--workers", 2, "-o", tmp_path / "none"))
    assert "part-1.csv" in error_of(run("convert", broken, tmp_path / "none", "--workers", 2, "--to", "csv"))
    assert sorted(tmp_path.iterdir()) == before
    told = error_of(run("score", model, broken, "--workers", 2, "-o", tmp_path / "scores"))
    assert told == f"{tmp_path / 'scores'}: is there already, expected a folder that is new or empty"

    run("convert", folder / "test-own", tmp_path / "text", "--workers", 2, "--to", "csv")
    parts = [read_data(path) for path in sorted((tmp_path / "text").iterdir())]
    assert np.concatenate([part.X for part in parts]).tolist() == data["test"].X.tolist()

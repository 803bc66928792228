"""The service by its answers: what is right, what is refused and how, what is counted and logged."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pyarrow
import pytest

from gradrank.data.clicks.readers import read_click_log
from gradrank.data.clicks.traffic import read_traffic
from gradrank.errors import GradrankError
from gradrank.models.linear import LinearRanker
from gradrank.models.registry import load_ranker
from gradrank.models.trees.ensemble import TreeEnsemble
from gradrank.serve.api_keys import ApiKeys, load_keys
from gradrank.serve.app import App
from gradrank.serve.choice import chosen_models
from gradrank.serve.server import reload_models
from gradrank.serve.settings import Limits, MissingFeatures, Settings, UnknownFeatures, parse_shares, parse_sources
from tests.support.rankers import NAMES, example_rankers, feature_rows
from tests.support.services import Answer, ask, call, make_app, metric, post

NPY, ARROW = "application/x-npy", "application/vnd.apache.arrow.stream"
DOCUMENTS = [[1.0, 2.0], [3.0, None], [0.5, 0.5]]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    LinearRanker([1.0, 0.5], feature_names=["a", "b"]).save(tmp_path / "old.json")
    LinearRanker([-1.0, 0.5], feature_names=["a", "b"]).save(tmp_path / "new.json")
    return tmp_path


@pytest.fixture
def app(files: Path) -> App:
    return make_app(f"old={files / 'old.json'}", f"new={files / 'new.json'}")


def npy(X: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, X)
    return file.getvalue()


def arrow(table: Any, **options: Any) -> bytes:
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema, options=pyarrow.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


# ---------------------------------------------------------------------- answers
def test_scores_order_and_top_k_of_lists_and_objects(app: App) -> None:
    listed = post(app, "/v1/rank", {"documents": DOCUMENTS, "ids": ["x", "y", "z"], "k": 2}).json
    assert listed["scores"] == [2.0, 3.0, 0.75]
    assert (listed["order"], listed["ids"], listed["models"]) == ([1, 0], ["y", "x"], ["old@1"])
    objects = [{"b": b, "a": a} for a, b in DOCUMENTS]
    assert post(app, "/v1/rank", {"documents": objects}).json["scores"] == [2.0, 3.0, 0.75]
    assert post(app, "/v1/rank", {"documents": objects}).json["order"] == [1, 0, 2]


@pytest.mark.parametrize("kind", example_rankers())
def test_every_kind_of_ranker_and_every_form_of_body_scores_as_predict_does(kind: str, tmp_path: Path) -> None:
    ranker = example_rankers()[kind]
    path = tmp_path / ("m.safetensors" if kind == "net" else "m.json")
    ranker.save(path)
    app = make_app(f"m={path}")
    X = feature_rows(90)[0]
    wanted = load_ranker(path).predict(X).tolist()
    rows = [[None if np.isnan(value) else value for value in row] for row in X.tolist()]
    table = pyarrow.table({name: X[:, place] for place, name in enumerate(NAMES)} | {"docid": list(range(90))})
    answers = [
        post(app, "/v1/rank", {"documents": rows}),
        post(app, "/v1/rank", {"documents": [dict(zip(NAMES, row, strict=True)) for row in rows]}),
        call(app, "POST", "/v1/rank", npy(X), content_type=NPY),
        call(app, "POST", "/v1/rank", npy(np.asfortranarray(X)), content_type=NPY),
        call(app, "POST", "/v1/rank", arrow(table), content_type=ARROW),
    ]
    for answer in answers:
        assert answer.status == 200, answer.body
        assert answer.json["scores"] == wanted
    assert answers[-1].json["ids"][0] == str(answers[-1].json["order"][0])
    assert answers[0].json["order"] == np.argsort(-np.array(wanted), kind="stable").tolist()


def test_arrow_columns_of_every_type_of_numbers(app: App) -> None:
    for kind, values in (("bool", [True, None]), ("int64", [1, None]), ("uint8", [1, 0]), ("float", [1.0, None])):
        column = pyarrow.array(
            values, getattr(pyarrow, kind if kind != "float" else "float32")() if kind != "bool" else None
        )
        table = pyarrow.table({"b": [2.0, 4.0], "a": column})
        answer = call(app, "POST", "/v1/rank", arrow(table), content_type=ARROW)
        assert answer.json["scores"] == [2.0, 2.0], kind


@pytest.mark.parametrize("kind", [pyarrow.string(), pyarrow.large_string(), pyarrow.int32()], ids=str)
def test_arrow_names_of_documents_of_every_type(app: App, kind: Any) -> None:
    table = pyarrow.table({"a": [1.0, 3.0], "b": [0.0, 0.0], "docid": pyarrow.array([7, 8]).cast(kind)})
    assert call(app, "POST", "/v1/rank", arrow(table), content_type=ARROW).json["ids"] == ["8", "7"]


def test_a_model_trained_in_float32_scores_json_as_its_own_data(tmp_path: Path) -> None:
    border = float(np.float32(0.1))
    stump = {"split_feature": [0], "threshold": [border], "decision": [10], "left": [-1], "right": [-2]}
    text = TreeEnsemble([], ["a"]).to_dict() | {"training": {"data": {"dtype": "float32"}}}
    text["payload"]["trees"] = [{**stump, "leaf_value": [1.0, 2.0]}]
    below, above = np.nextafter(border, 0.0), np.nextafter(border, 1.0)
    assert np.float32(above) == np.float32(below) == np.float32(border)
    for dtype, wanted in (("float32", [1.0, 1.0]), ("float64", [1.0, 2.0])):
        text["training"]["data"]["dtype"] = dtype
        (tmp_path / "m.json").write_text(json.dumps(text))
        answer = post(make_app(f"m={tmp_path / 'm.json'}"), "/v1/rank", {"documents": [[below], [above]]})
        assert answer.json["scores"] == wanted
    narrow = json.dumps(text).replace('"float64"', '"float32"')
    (tmp_path / "m.json").write_text(narrow)
    refused = post(make_app(f"m={tmp_path / 'm.json'}"), "/v1/rank", {"documents": [[1e39]]})
    assert refused.status == 400
    assert "beyond float32" in refused.json["error"]


def test_categories_are_known_by_their_values(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"n": rng.normal(size=300), "c": pd.Categorical(rng.choice(["Ulm", "Bonn", "Köln"], 300))})
    booster = lightgbm.train(
        {"verbose": -1, "num_threads": 1, "min_data_per_group": 5},
        lightgbm.Dataset(frame, (frame["c"] == "Ulm") * 2.0 + frame["n"]),
        5,
    )
    booster.save_model(tmp_path / "m.txt")
    ranker = load_ranker(tmp_path / "m.txt")
    app = make_app(f"m={tmp_path / 'm.txt'}")
    documents = [{"n": 0.5, "c": "Ulm"}, {"n": 0.5, "c": "Bonn"}, {"n": 0.5, "c": None}, {"n": 0.5, "c": "Rom"}]
    if ranker.categories.columns is None:  # type: ignore[attr-defined]
        assert post(app, "/v1/rank", {"documents": documents}).status == 400
        return
    answer = post(app, "/v1/rank", {"documents": documents}).json
    asked = pd.DataFrame({"n": [0.5] * 3, "c": pd.Categorical(["Ulm", "Bonn", None], frame["c"].cat.categories)})
    assert answer["scores"][:3] == booster.predict(asked, raw_score=True).tolist()
    assert answer["scores"][2] == answer["scores"][3]
    assert answer["new_categories"] == 1
    assert metric(app, 'gradrank_new_categories_total{model="m@1"}') == 1


# ---------------------------------------------------------------------- which model
def test_models_are_chosen_by_body_header_and_version(files: Path) -> None:
    app = make_app(f"m={files / 'old.json'}", f"m@2={files / 'new.json'}", f"other={files / 'old.json'}")

    def chosen(header: str | None = None, **fields: str) -> Any:
        headers = {} if header is None else {"x_gradrank_model": header}
        return post(app, "/v1/rank", {"documents": DOCUMENTS, **fields}, **headers).json.get("models")

    assert chosen() == ["m@2"]
    assert chosen(model="m@1") == ["m@1"]
    assert chosen(header="other") == ["other@1"]
    assert chosen(header="other", model="m@1") == ["m@1"]
    unknown = post(app, "/v1/rank", {"documents": DOCUMENTS, "model": "nobody"})
    assert unknown.status == 404
    assert "'nobody', expected one of m@1, m@2, other@1" in unknown.json["error"]


def test_shares_are_kept_and_users_keep_their_model() -> None:
    settings = Settings(parse_sources(["a=x", "b=y", "c=z"]), shares=parse_shares("a=0.2,b=0,c=0.8"))
    chosen = {f"user {n}": chosen_models(settings, "a", None, f"user {n}") for n in range(4000)}
    share = np.mean([models == ("a",) for models in chosen.values()])
    assert abs(share - 0.2) < 4 * np.sqrt(0.2 * 0.8 / 4000)
    assert {models[0] for models in chosen.values()} == {"a", "c"}
    assert all(chosen_models(settings, "a", None, user) == models for user, models in list(chosen.items())[:50])
    anew = Settings(settings.sources, shares=settings.shares, salt="other")
    moved = np.mean([chosen_models(anew, "a", None, user) != models for user, models in chosen.items()])
    assert 0.2 < moved < 0.45  # 2 · 0.2 · 0.8 = 0.32 change if the two deals have nothing to do with each other


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: parse_sources(["m=a.json", "m=b.json"]), "m@1 is given twice"),
        (lambda: parse_sources(["a b=x.json"]), "NAME=FILE"),
        (lambda: parse_shares("a=0.5,b=0.6"), "add up to 1.1"),
        (lambda: parse_shares("a=x"), "expected NAME=SHARE"),
        (lambda: parse_shares("a=inf"), "expected NAME=SHARE"),
        (lambda: Settings(parse_sources(["a=x"]), shares={"b": 1.0}), "no model 'b'"),
        (lambda: Settings(parse_sources(["a=x"]), interleave=("a", "a")), "with itself"),
        (lambda: Settings(()), "no model to serve"),
        (lambda: Limits(seconds=float("nan")), "limit of seconds"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: Any, said: str) -> None:
    with pytest.raises(GradrankError, match=said):
        wrong()


# ---------------------------------------------------------------------- interleaving and clicks
def test_shared_lists_and_clicks_are_logged_and_read_back(files: Path) -> None:
    log = files / "log.jsonl"
    app = make_app(f"old={files / 'old.json'}", f"new={files / 'new.json'}", log=log, interleave=("old", "new"))
    request = {"documents": DOCUMENTS, "ids": ["x", "y", "z"], "qid": 7, "k": 2, "key": "anna", "id": "i1"}
    answer = post(app, "/v1/rank", request).json
    assert answer["models"] == ["old@1", "new@1"]
    assert answer["logged"] is True
    assert "scores" not in answer
    # old ranks y x z, new ranks x z y: the top two are x and y, in the order of the coin.
    assert sorted(answer["ids"]) == ["x", "y"]
    assert post(app, "/v1/rank", request).json["ids"] == answer["ids"]
    assert post(app, "/v1/click", {"id": "i1", "docids": ["x", "y"]}).status == 202
    assert post(app, "/v1/click", {"id": "lost", "docid": "z"}).status == 202
    traffic = read_traffic(log)
    (impression,) = traffic.impressions
    assert (traffic.repeated, traffic.clicks_without_list) == (1, 1)
    assert impression.teams == [0 if docid == "y" else 1 for docid in impression.shown]
    assert impression.clicks == ["x", "y"]
    assert impression.unit not in (None, "anna")
    with pytest.warns(match="1 click is on lists"):
        sessions = read_click_log(log)
    assert (sessions.n_sessions, sessions.n_clicks, sessions.n_impressions) == (1, 2, 2)
    assert post(app, "/v1/rank", {"documents": DOCUMENTS}).json["error"].startswith("the list is shared by two models")
    assert metric(app, 'gradrank_log_events_total{event="click",result="written"}') == 3


def test_without_a_log_clicks_are_refused_and_with_a_full_disk_rankings_are_not(app: App, files: Path) -> None:
    assert post(app, "/v1/click", {"id": "i1", "docid": "x"}).status == 409
    logging = make_app(f"old={files / 'old.json'}", log=Path("/dev/full"))
    answer = post(logging, "/v1/rank", {"documents": DOCUMENTS, "qid": "7", "ids": ["x", "y", "z"]})
    assert (answer.status, answer.json["logged"]) == (200, False)
    assert post(logging, "/v1/click", {"id": "i1", "docid": "x"}).status == 503
    assert metric(logging, 'gradrank_log_events_total{event="shown",result="failed"}') == 1


# ---------------------------------------------------------------------- missing and unknown features
@pytest.mark.parametrize("form", ["objects", "arrow"])
def test_policies_for_features_and_their_counts(files: Path, form: str) -> None:
    def send(missing: str, unknown: str) -> tuple[Answer, App]:
        app = make_app(
            f"m={files / 'old.json'}",
            missing_features=MissingFeatures(missing),
            unknown_features=UnknownFeatures(unknown),
        )
        if form == "arrow":
            table = pyarrow.table({"a": [1.0, 2.0], "c": [1.0, 1.0]})
            return call(app, "POST", "/v1/rank", arrow(table), content_type=ARROW), app
        return post(app, "/v1/rank", {"documents": [{"a": 1, "c": 1}, {"a": 2, "c": 1}]}), app

    for missing, unknown, wrong in (("error", "ignore", "lack feature 'b'"), ("missing", "error", "have feature 'c'")):
        answer, app = send(missing, unknown)
        assert answer.status == 422
        assert wrong in answer.json["error"]
        assert metric(app, 'gradrank_missing_features_total{feature="b",model="m@1"}') == 2
        assert metric(app, 'gradrank_unknown_features_total{model="m@1"}') == 2
    answer, app = send("missing", "ignore")
    assert answer.json["scores"] == [1.0, 2.0]
    assert answer.json["missing_features"] == {"count": 1, "names": ["b"]}
    assert answer.json["unknown_features"] == {"count": 1, "names": ["c"]}
    assert metric(app, 'gradrank_missing_values_total{model="m@1"}') == 0
    post(app, "/v1/rank", {"documents": [{"a": None, "b": 1}]})
    assert metric(app, 'gradrank_missing_values_total{model="m@1"}') == 1


# ---------------------------------------------------------------------- refusals
def deep(brackets: int) -> bytes:
    return b'{"documents": ' + b"[" * brackets + b"]" * brackets + b"}"


HOSTILE: list[tuple[bytes, int, str]] = [
    (b"", 400, "not JSON"),
    (b"[]", 400, "empty list"),
    (b"{}", 400, "'documents' is null"),
    (b'{"documents": []}', 400, "empty list"),
    (b'{"documents": [[]]}', 400, "0 features"),
    (b'{"documents": [[1, 2], [1]]}', 400, "1 to 2 values"),
    (b'{"documents": [[1, 2, 3]]}', 400, "3 features, model old@1 expects 2"),
    (b'{"documents": [[1, "2"]]}', 400, "feature 'b' is '2'"),
    (b'{"documents": [[1, true]]}', 400, "feature 'b' is True"),
    (b'{"documents": [[1, [2]]]}', 400, "feature 'b' is [2]"),
    (b'{"documents": [{"a": 1, "b": {}}]}', 400, "feature 'b' is {}"),
    (b'{"documents": [[1, 2], {"a": 1}]}', 400, "lists or objects"),
    (b'{"documents": [1, 2]}', 400, "holds a number"),
    (b'{"documents": [[NaN, 1]]}', 400, "NaN"),
    (b'{"documents": [[-Infinity, 1]]}', 400, "-Infinity"),
    (b'{"documents": [[1e999, 1]]}', 400, "beyond what float64"),
    (b'{"documents": [[1' + b"0" * 400 + b", 1]]}", 400, "beyond what float64"),
    (b'{"documents": [[1' + b"0" * 5000 + b", 1]]}", 400, "too long"),
    (deep(100_000), 400, "nested too deep"),
    (deep(50), 400, "expected a number"),
    (b'{"documents": [[1, 2]], "k": 0}', 400, "'k' is 0"),
    (b'{"documents": [[1, 2]], "k": 1.5}', 400, "'k' is 1.5"),
    (b'{"documents": [[1, 2]], "k": true}', 400, "'k' is True"),
    (b'{"documents": [[1, 2]], "ids": ["a", "b"]}', 400, "a list of 2"),
    (b'{"documents": [[1, 2], [1, 2]], "ids": ["a", "a"]}', 400, "'a' twice"),
    (b'{"documents": [[1, 2]], "ids": ["\\ud800"]}', 400, "half a character"),
    (b'{"documents": [[1, 2]], "qid": ""}', 400, "'qid' holds ''"),
    (b'{"documents": [[1, 2]], "qid": {}}', 400, "'qid' holds {}"),
    (b'{"documents": [[1, 2]], "key": "' + b"x" * 300 + b'"}', 400, "1 to 200"),
    (b'{"documents": [[1, 2]], "query": 1}', 400, "field 'query'"),
    (b'{"documents": [[1e308, 1e308]], "model": "steep"}', 422, "not a finite number"),
    (b'\xff\xfe{"documents"', 400, "the body is"),
    (b'{"documents": [[1, 2]]} x', 400, "not JSON"),
    (b'{"documents": [{"a": 1, "a": 2, "b": 3}]}', 400, "names 'a' twice"),
    (b'{"documents": [' + b'{"a": 1, "b": 3, "a": 2}, ' * 500 + b'{"a": 1, "b": 3, "a": 2}]}', 400, "names 'a' twice"),
    (b'{"documents": [' + b'{"a": 1, "b": 3}, ' * 500 + b'{"a": 1, "b": 3, "b": 2}]}', 400, "names 'b' twice"),
    (b'{"documents": [[1, 2]], "documents": [[3, 4]]}', 400, "names 'documents' twice"),
]


@pytest.mark.parametrize(
    ("body", "status", "said"), HOSTILE, ids=[body[:40].decode("latin-1") for body, _, _ in HOSTILE]
)
def test_hostile_json_is_refused_in_one_sentence(files: Path, body: bytes, status: int, said: str) -> None:
    LinearRanker([1e308, 1e308], feature_names=["a", "b"]).save(files / "steep.json")
    app = make_app(f"old={files / 'old.json'}", f"steep={files / 'steep.json'}")
    answer = call(app, "POST", "/v1/rank", body, content_type="application/json")
    assert answer.status == status
    assert said in answer.json["error"]
    assert len(answer.json["error"]) < 400
    assert "\n" not in answer.json["error"]


def npy_header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


BATCHES: list[tuple[str, bytes, str]] = [
    (NPY, b"", "not a .npy file"),
    (NPY, b"\x93NUMPY\x03\x00", "not a .npy file"),
    (NPY, npy(np.ones(3)), "shape (3,)"),
    (NPY, npy(np.ones((2, 2)))[:-1], "do not fill the body"),
    (NPY, npy(np.ones((2, 2))) + b"x", "do not fill the body"),
    (NPY, npy(np.ones((0, 2))), "at least one of each"),
    (NPY, npy(np.ones((2, 3))), "3 features"),
    (NPY, npy(np.full((1, 2), np.inf)), "is infinite"),
    (NPY, npy(np.ones((2, 2), dtype=complex)), "type 'complex128'"),
    (NPY, npy(np.array([["a", "b"]])), "type '<U1'"),
    (NPY, npy_header("{'descr': '|O', 'fortran_order': False, 'shape': (1, 2)}\n") + b"cos\nsystem\n", "type 'object'"),
    (NPY, npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999, 99999)}\n"), "99,999,999,999"),
    (NPY, npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -2)}\n"), "at least one"),
    (NPY, npy_header("(" * 3000), "not a .npy file"),
    (ARROW, b"", "not an Arrow"),
    (ARROW, b"\xff\xff\xff\xff" * 20, "not an Arrow"),
    (ARROW, arrow(pyarrow.table({"a": [1.0], "b": [1.0]}), compression="zstd"), "compressed"),
    (ARROW, arrow(pyarrow.table({"a": pyarrow.array(["x"]).dictionary_encode(), "b": [1.0]})), "dictionaries"),
    (ARROW, arrow(pyarrow.table({"a": ["x"], "b": [1.0]})), "column 'a' is of type 'string'"),
    (ARROW, arrow(pyarrow.table({"a": [[1.0]], "b": [1.0]})), "column 'a' is of type"),
    (ARROW, arrow(pyarrow.table({"docid": ["x"]})), "no columns"),
    (ARROW, arrow(pyarrow.table({"été": [1.0]})).replace("été".encode(), b"\xc3\xff\xff\xff\xff"), "not an Arrow"),
    (ARROW, arrow(pyarrow.table({"a": [float("inf")], "b": [1.0]})), "is infinite"),
    (ARROW, arrow(pyarrow.table({"a": pyarrow.nulls(5), "b": pyarrow.nulls(5)})), "type 'null'"),
    (ARROW, arrow(pyarrow.table({"a": [1.0], "b": [1.0], "docid": [1.5]})), "'docid' is of type 'double'"),
    (ARROW, arrow(pyarrow.table({"a": [1.0], "b": [1.0]}).slice(0, 0)), "no documents"),
    (ARROW, arrow(pyarrow.table([[1.0], [2.0], [3.0]], names=["a", "b", "a"])), "two columns of one name"),
    (ARROW, arrow(pyarrow.table({"a": [1.0, 2.0], "b": [1.0, 2.0], "docid": ["x", None]})), "lacks 1 values"),
    ("text/plain", b"x", "content type"),
    ("", b"x", "content type"),
]


@pytest.mark.parametrize(("kind", "body", "said"), BATCHES)
def test_hostile_batches_are_refused_in_one_sentence(app: App, kind: str, body: bytes, said: str) -> None:
    answer = call(app, "POST", "/v1/rank", body, content_type=kind)
    assert answer.status in (400, 413, 415)
    assert said in answer.json["error"]


@pytest.mark.parametrize("query", ["k=0", "k=x", "k=99999999999999999999", "documents=1", "what=1", "qid=", "k=1&k=2"])
def test_addresses_of_batches_are_checked(app: App, query: str) -> None:
    assert call(app, "POST", "/v1/rank", npy(np.ones((1, 2))), query, content_type=NPY).status == 400


def test_limits_of_documents_bytes_and_compression(files: Path) -> None:
    app = make_app(f"m={files / 'old.json'}", limits=Limits(documents=2, bytes=2000))
    assert post(app, "/v1/rank", {"documents": [[1, 2]] * 3}).status == 413
    assert call(app, "POST", "/v1/rank", npy(np.ones((3, 2))), content_type=NPY).status == 413
    large = b"x" * 3000
    assert call(app, "POST", "/v1/rank", large, content_type="application/json", content_length="3000").status == 413
    assert call(app, "POST", "/v1/rank", large, content_type="application/json").status == 413
    packed = call(app, "POST", "/v1/rank", b"x", content_type="application/json", content_encoding="gzip")
    assert packed.status == 415
    assert metric(app, 'gradrank_refused_total{reason="documents"}') == 2
    assert metric(app, 'gradrank_refused_total{reason="bytes"}') == 2


def test_large_bodies_are_answered_and_refused_like_others(app: App) -> None:
    room = b" " * (1 << 20)
    for body, status in ((b'{"documents": [[1, 2]]' + room + b"}", 200), (b'{"documents": [[1]]' + room + b"}", 400)):
        answer = call(app, "POST", "/v1/rank", body, content_type="application/json")
        assert answer.status == status
    assert metric(app, "gradrank_requests_in_flight") == 0


def test_a_body_that_does_not_come_and_a_full_house_are_told(files: Path) -> None:
    app = make_app(f"m={files / 'old.json'}", limits=Limits(seconds=0.05, at_once=1, waiting=1))

    async def crowd() -> list[int]:
        statuses: list[int] = []

        async def never() -> Any:
            await asyncio.Event().wait()

        async def slow() -> None:
            async def send(message: Any) -> None:
                if message["type"] == "http.response.start":
                    statuses.append(message["status"])

            headers = [(b"content-type", b"application/json")]
            await app({"type": "http", "method": "POST", "path": "/v1/rank", "raw_path": b"", "query_string": b"",
                       "headers": headers, "client": None, "server": None, "scheme": "http", "http_version": "1.1",
                       "asgi": {}}, never, send)  # fmt: skip

        await asyncio.gather(*(slow() for _ in range(3)))
        after = await ask(app, "POST", "/v1/rank", b'{"documents": [[1, 2]]}', content_type="application/json")
        return [*statuses, after.status]

    statuses = asyncio.run(crowd())
    # One is turned away at once, two may wait for their bodies until their time is over.
    assert statuses == [503, 408, 408, 200]


def test_other_addresses_and_methods_are_told_in_json(app: App) -> None:
    assert call(app, "GET", "/nowhere").status == 404
    assert "/v1/rank" in call(app, "GET", "/nowhere").json["error"]
    assert call(app, "GET", "/metrics/").status == 404
    assert call(app, "GET", "/v1/rank").status == 405
    assert call(app, "GET", "/healthz").json == {"status": "ok"}
    assert call(app, "GET", "/readyz").json == {"status": "ready"}


# ---------------------------------------------------------------------- keys
def test_keys_are_asked_for_everywhere_but_for_health(files: Path) -> None:
    app = make_app(f"m={files / 'old.json'}", keys=ApiKeys(["a" * 16, "b" * 16]))
    body = b'{"documents": [[1, 2]]}'

    def status(**headers: str) -> int:
        return call(app, "POST", "/v1/rank", body, content_type="application/json", **headers).status

    assert status() == status(authorization="Bearer " + "c" * 16) == status(authorization="Basic " + "a" * 16) == 401
    assert status(authorization="Bearer " + "b" * 16) == status(x_api_key="a" * 16) == 200
    assert call(app, "GET", "/metrics").status == call(app, "GET", "/openapi.json").status == 401
    assert call(app, "GET", "/healthz").status == call(app, "GET", "/readyz").status == 200


def test_keys_come_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, said = tmp_path / "keys", []
    path.write_text("# ours\n" + "k" * 16 + "  # anna\n\n")
    path.chmod(0o644)
    assert load_keys(path, said.append).admit("k" * 16)
    assert "chmod 600" in said[0]
    monkeypatch.setenv("GRADRANK_API_KEYS", "x" * 16 + "," + "y" * 16)
    assert load_keys(None).admit("y" * 16)
    path.write_text("short-secret\n")
    with pytest.raises(GradrankError, match="key 1 is not at least 16") as error:
        load_keys(path)
    assert "short-secret" not in str(error.value)
    path.write_text("# none\n")
    with pytest.raises(GradrankError, match="holds no key"):
        load_keys(path)


# ---------------------------------------------------------------------- reloading
def test_a_changed_file_is_served_and_a_bad_one_is_told(app: App, files: Path) -> None:
    said: list[str] = []

    def scores() -> Any:
        return post(app, "/v1/rank", {"documents": DOCUMENTS, "model": "old"}).json["scores"]

    before = scores()
    reload_models(app.service, said.append)
    assert (said, scores()) == ([], before)
    LinearRanker([10.0, 0.0], feature_names=["a", "b"]).save(files / "old.json")
    held = app.service.table.get("old")
    reload_models(app.service, said.append)
    assert said == ["old@1 was loaded anew"]
    assert scores() == [10.0, 30.0, 5.0]
    assert held.ranker.predict([[1.0, 2.0]]).tolist() == [2.0]  # whoever holds the old one is not disturbed
    (files / "old.json").write_text('{"format": "gradrank-model", ')
    for _ in range(2):
        reload_models(app.service, said.append)
    assert len(said) == 2
    assert said[1].startswith("old@1 stays as it was: ")
    assert scores() == [10.0, 30.0, 5.0]
    assert metric(app, 'gradrank_model_stale{model="old@1"}') == 1
    assert metric(app, 'gradrank_reloads_total{model="old@1",result="failed"}') == 1
    (stale,) = [model for model in call(app, "GET", "/v1/models").json["models"] if model["name"] == "old"]
    assert "old.json" in stale["stale"]
    (files / "old.json").unlink()
    reload_models(app.service, said.append)
    assert scores() == [10.0, 30.0, 5.0]
    LinearRanker([1.0, 0.5], feature_names=["a", "b"]).save(files / "old.json")
    reload_models(app.service, said.append)
    assert scores() == before
    assert metric(app, 'gradrank_model_stale{model="old@1"}') == 0


def test_the_access_log_has_a_line_of_json_per_request(files: Path) -> None:
    app = make_app(f"m={files / 'old.json'}", access=files / "access.jsonl")
    post(app, "/v1/rank", {"documents": DOCUMENTS, "id": "i1"})
    call(app, "POST", "/v1/rank", b"no", content_type="application/json")
    call(app, "GET", '/x\n{"status": 200}')
    lines = [json.loads(line) for line in (files / "access.jsonl").read_text().splitlines()]
    assert [line["status"] for line in lines] == [200, 400, 404]
    assert lines[0] | {"documents": 3, "models": ["m@1"], "id": "i1", "method": "POST"} == lines[0]
    assert "not JSON" in lines[1]["error"]


def test_half_a_character_in_a_name_is_told_as_json_has_it(tmp_path: Path) -> None:
    example_rankers()["linear"].save(tmp_path / "m.json")
    app = make_app(f"m={tmp_path / 'm.json'}")
    document = dict.fromkeys(NAMES, 1.0) | {"x\ud800": 2.0}
    answer = post(app, "/v1/rank", {"documents": [document]})
    assert answer.status == 200
    assert answer.json["unknown_features"] == {"count": 1, "names": ["x\ud800"]}

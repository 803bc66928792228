"""Each named convention gives its tool's numbers: live where the tool installs, else from values it printed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from gradrank.data import RankingData
from gradrank.measures import Measure, parse_measure


def value(name: str, scores: np.ndarray, data: RankingData) -> np.ndarray:
    measure = parse_measure(name)
    assert isinstance(measure, Measure)
    return measure.values(scores, data)


def made_up(
    random_state: int, *, top: int = 4, queries: int = 60, distinct: bool = False
) -> tuple[RankingData, np.ndarray]:
    """Lists of 1…30 documents, some without a relevant one, with tied scores unless ``distinct``."""
    rng = np.random.default_rng(random_state)
    sizes = rng.integers(1, 31, queries)
    n = int(sizes.sum())
    labels = rng.integers(0, top + 1, n) * (rng.random(n) < 0.5)
    labels[np.repeat(np.arange(queries) % 7 == 3, sizes)] = 0
    scores = rng.permutation(n) / 8.0 if distinct else rng.integers(0, 12, n) / 4.0
    docid = [f"d{number:05d}" for number in rng.permutation(n)]
    data = RankingData.from_arrays(np.zeros((n, 1)), labels, group=sizes, docid=docid)
    return data, scores


# ---------------------------------------------------------------- Perl scripts
SCRIPTS = json.loads((Path(__file__).parent / "perl_scripts.json").read_text())["queries"]


@pytest.mark.parametrize("convention", ["mslr", "letor4"])
@pytest.mark.parametrize("number", range(len(SCRIPTS)))
def test_perl_scripts(convention: str, number: int) -> None:
    query = SCRIPTS[number]
    labels = np.minimum(query["labels"], 2 if convention == "letor4" else 4)
    data = RankingData.from_arrays(np.zeros((len(labels), 1)), labels, qid=[1] * len(labels))
    for column, printed in query[convention].items():
        head, _, k = column.partition("@")
        name = f"{head}(convention={convention})" + (f"@{k}" if k else "")
        # The scripts print four decimals.
        np.testing.assert_allclose(
            value(name, np.array(query["scores"]), data)[0], printed, rtol=0, atol=0.5e-4 + 1e-12, err_msg=name
        )


# ---------------------------------------------------------------- RankLib
RANKLIB = json.loads((Path(__file__).parent / "ranklib.json").read_text())


@pytest.mark.parametrize("column", RANKLIB["means"])
def test_ranklib(column: str) -> None:
    lists = RANKLIB["queries"]
    labels, scores = (np.concatenate([query[name] for query in lists]) for name in ("labels", "scores"))
    data = RankingData.from_arrays(np.zeros((len(labels), 1)), labels, group=[len(query["labels"]) for query in lists])
    printed = RANKLIB["means"][column]
    head, _, k = column.partition("@")
    name = f"{head}(convention=ranklib)" + (f"@{k}" if k else "")
    assert round(float(value(name, scores, data).mean()), 3 if printed > 1 else 4) == printed


# ---------------------------------------------------------------- trec_eval
@pytest.mark.parametrize("random_state", range(3))
def test_trec_eval(random_state: int) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    data, scores = made_up(random_state)
    labels = data.label().copy()
    rng = np.random.default_rng(random_state)
    labels[rng.random(len(labels)) < 0.2] = np.nan  # retrieved, unjudged
    hidden = rng.random(len(labels)) < 0.2  # judged, not retrieved
    hidden[data.indptr[:-1]] = False  # trec_eval leaves out queries that retrieved nothing
    labels[data.indptr[:-1]] = 1
    data = data.with_label("label", labels)
    scores = np.where(hidden & ~np.isnan(labels), -np.inf, scores)
    # Scores that only double precision tells apart: trec_eval keeps single precision.
    scores = scores + rng.choice([0.0, 1e-12], len(scores))
    query = data.query_of_row()
    assert data.docid is not None
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for row, name in enumerate(data.docid):
        topic = data.qid[int(query[row])]
        if not np.isnan(labels[row]):
            qrels.setdefault(topic, {})[name] = int(labels[row])
        if np.isfinite(scores[row]):
            run.setdefault(topic, {})[name] = float(scores[row])
    wanted = {
        "ndcg": "NDCG",
        "ndcg_cut_5": "NDCG@5",
        "map": "MAP",
        "map_cut_5": "MAP@5",
        "recip_rank": "MRR",
        "P_5": "P@5",
        "recall_5": "Recall@5",
        "bpref": "Bpref",
    }
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg", "ndcg_cut", "map", "map_cut", "recip_rank", "P", "recall",
                                                    "bpref"}).evaluate(run)  # fmt: skip
    for column, name in wanted.items():
        head, _, k = name.partition("@")
        ours = value(f"{head}(convention=trec_eval)" + (f"@{k}" if k else ""), scores, data)
        expected = [theirs[topic][column] for topic in data.qid]
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-12, err_msg=name)
        # The tool's own spelling means its convention; what is also a name of ours has the convention given.
        named = parse_measure(column, convention="trec_eval" if column in ("ndcg", "map", "bpref") else None)
        np.testing.assert_array_equal(value(str(named), scores, data), ours, err_msg=column)


# ---------------------------------------------------------------- gdeval
def test_gdeval(tmp_path: Path) -> None:
    ir_measures = pytest.importorskip("ir_measures")
    script = Path(ir_measures.__file__).parent / "bin" / "gdeval.pl"
    data, scores = made_up(11)
    assert data.docid is not None
    topics = [data.qid[int(q)] for q in data.query_of_row()]
    lines = list(zip(topics, data.docid, data.label(), scores, strict=True))
    (tmp_path / "qrels").write_text("".join(f"{t} 0 {d} {int(label)}\n" for t, d, label, _ in lines))
    (tmp_path / "run").write_text("".join(f"{t} Q0 {d} 1 {score} tag\n" for t, d, _, score in lines))
    # ir_measures' own front adds zeros for the queries that gdeval leaves out; ask gdeval itself.
    printed = subprocess.run(
        ["perl", str(script), str(tmp_path / "qrels"), str(tmp_path / "run"), "10"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert printed[0] == "runid,topic,ndcg@10,err@10"
    theirs = {row.split(",")[1]: [float(cell) for cell in row.split(",")[2:]] for row in printed[1:]}
    assert 0 < len(theirs) < data.n_queries
    for column, name in enumerate(("NDCG(convention=gdeval)@10", "ERR(convention=gdeval)@10")):
        for topic, got in zip(data.qid, value(name, scores, data), strict=True):
            if topic in theirs:
                # gdeval prints five decimals.
                np.testing.assert_allclose(got, theirs[topic][column], rtol=0, atol=0.5e-5 + 1e-12)
            else:
                assert np.isnan(got)


# ---------------------------------------------------------------- scikit-learn
@pytest.mark.parametrize("k", [None, 1, 3, 10])
def test_sklearn(k: int | None) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    data, scores = made_up(21)
    at = f"@{k}" if k else ""
    ndcg = value(f"NDCG(convention=sklearn){at}", scores, data)
    dcg = value(f"DCG(convention=sklearn){at}", scores, data)
    for q in range(data.n_queries):
        rows = slice(data.indptr[q], data.indptr[q + 1])
        if data.sizes[q] > 1:  # scikit-learn refuses lists of one document
            labels, given = data.label()[rows][None].astype(float), scores[rows][None]
            np.testing.assert_allclose(ndcg[q], metrics.ndcg_score(labels, given, k=k), atol=1e-12)
            np.testing.assert_allclose(dcg[q], metrics.dcg_score(labels, given, k=k), atol=1e-12)


# ---------------------------------------------------------------- LightGBM
@pytest.mark.parametrize("k", [1, 3, 10])
def test_lightgbm(k: int) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    data, scores = made_up(31)
    dataset = lightgbm.Dataset(
        np.random.default_rng(0).normal(size=(data.n_docs, 1)), data.label(), group=data.sizes, init_score=scores
    )
    # No leaf can hold so many documents, so no tree is grown and the metrics are those of the initial scores.
    recorded: dict[str, dict[str, list[float]]] = {}
    lightgbm.train(
        {"objective": "lambdarank", "metric": "ndcg,map", "eval_at": [k], "min_data_in_leaf": 10**6, "verbose": -1,
         "num_threads": 1},
        dataset, 1, valid_sets=[dataset], valid_names=["it"], callbacks=[lightgbm.record_evaluation(recorded)],
    )  # fmt: skip
    np.testing.assert_allclose(
        value(f"NDCG(convention=lightgbm)@{k}", scores, data).mean(), recorded["it"][f"ndcg@{k}"][0], atol=1e-12
    )
    np.testing.assert_allclose(
        value(f"MAP(convention=lightgbm)@{k}", scores, data).mean(), recorded["it"][f"map@{k}"][0], atol=1e-12
    )


# ---------------------------------------------------------------- XGBoost
@pytest.mark.parametrize("k", [1, 3, 10])
def test_xgboost(k: int) -> None:
    xgboost = pytest.importorskip("xgboost")
    data, scores = made_up(41)

    def theirs(metric: str, labels: np.ndarray) -> float:
        matrix = xgboost.DMatrix(np.zeros((data.n_docs, 1)), labels, base_margin=scores)
        matrix.set_group(data.sizes)
        objective = "rank:map" if metric == "map" else "rank:ndcg"
        booster = xgboost.train({"objective": objective, "eval_metric": f"{metric}@{k}", "nthread": 1}, matrix, 0)
        return float(booster.eval(matrix).split(":")[-1])

    binary = data.with_label("label", data.label() > 0)
    for name, metric, labeled in [("NDCG", "ndcg", data), ("MAP", "map", binary), ("P", "pre", binary)]:
        ours = value(f"{name}(convention=xgboost)@{k}", scores, labeled).mean()
        # XGBoost prints the mean from single-precision sums.
        np.testing.assert_allclose(ours, theirs(metric, labeled.label()), rtol=2e-6, err_msg=name)


# ---------------------------------------------------------------- SciPy
def test_kendall_tau_b_is_scipys() -> None:
    stats = pytest.importorskip("scipy.stats")
    data, scores = made_up(51)
    ours = value("KendallTau(variant=b)", scores, data)
    for q in range(data.n_queries):
        rows = slice(data.indptr[q], data.indptr[q + 1])
        labels, given = data.label()[rows], scores[rows]
        if len(set(labels)) > 1 and len(set(given)) > 1:
            np.testing.assert_allclose(ours[q], stats.kendalltau(labels, given).statistic, atol=1e-12)

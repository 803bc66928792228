"""TREC files: read as trec_eval reads them, joined by query and document, written in its order."""

from __future__ import annotations

import gzip
import io
import lzma
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradrank.data.formats.trec import (
    Coverage,
    query_coverage,
    read_qrels,
    read_run,
    run_scores,
    trec_data,
    write_qrels,
    write_run,
)
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError

QRELS = "q2 0 d1 2\nq2 0 d2 -1\nq1 0 d1 0\nq3 0 d9 1\n"
# q1 comes in two pieces, q4 is not judged, q3 is not retrieved; ranks are nonsense on purpose.
RUN = "q1 Q0 d1 1 0.5 bm25\nq2 Q0 d3 1 7.25 bm25\nq1 Q0 d5 9 1e-3 bm25\nq2 Q0 d1 1 -2 bm25\nq4 Q0 d1 1 3 bm25\n"


@pytest.fixture
def write(tmp_path):
    def write(content: str | bytes, name: str = "file.txt") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


# ---------------------------------------------------------------------- reading
def test_qrels_by_hand(write):
    qrels = read_qrels(write(QRELS))
    assert qrels.to_dict() == {"q2": {"d1": 2.0, "d2": -1.0}, "q1": {"d1": 0.0}, "q3": {"d9": 1.0}}
    assert qrels.label.dtype == np.float32
    assert repr(qrels) == "Qrels(3 queries, 4 judgments)"


def test_run_by_hand_keeps_first_appearance_and_joins_pieces(write):
    run = read_run(write(RUN))
    assert list(run.qid) == ["q1", "q2", "q4"]
    assert run.to_dict() == {"q1": {"d1": 0.5, "d5": 0.001}, "q2": {"d3": 7.25, "d1": -2.0}, "q4": {"d1": 3.0}}
    assert run.indptr.tolist() == [0, 2, 4, 5]
    assert run.tag == "bm25"


@pytest.mark.parametrize(
    "content",
    [
        RUN.replace("\n", "\r\n"),
        RUN.replace(" ", "\t"),
        RUN.replace(" ", " \t  "),
        "\n\n" + RUN.replace("\n", "  \n \n"),
        RUN.rstrip("\n"),
        "\ufeff" + RUN,
    ],
)
def test_other_blanks_and_line_ends(write, content):
    assert read_run(write(content)).to_dict() == read_run(write(RUN, "plain")).to_dict()


@pytest.mark.parametrize(("suffix", "compress"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_compressed(write, suffix, compress):
    assert read_qrels(write(compress(QRELS.encode()), "qrels" + suffix)).to_dict() == read_qrels(write(QRELS)).to_dict()


word = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), min_size=1, max_size=3)
pairs = st.lists(st.tuples(word, word), min_size=1, max_size=20, unique=True)


@settings(max_examples=60, deadline=None)
@given(pairs, st.data())
def test_reads_what_pytrec_eval_reads(tmp_path_factory, keys, draw):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    numbers = draw.draw(st.lists(st.integers(-3, 4), min_size=len(keys), max_size=len(keys)))
    scores = draw.draw(st.lists(st.floats(-1e9, 1e9), min_size=len(keys), max_size=len(keys)))
    folder = tmp_path_factory.mktemp("trec")
    qrels_text = "".join(f"{q} 0 {d} {n}\n" for (q, d), n in zip(keys, numbers, strict=True))
    run_text = "".join(f"{q} Q0 {d} 1 {s!r} tag\n" for (q, d), s in zip(keys, scores, strict=True))
    (folder / "qrels").write_text(qrels_text, encoding="utf-8")
    (folder / "run").write_text(run_text, encoding="utf-8")
    assert read_qrels(folder / "qrels").to_dict() == pytrec_eval.parse_qrel(io.StringIO(qrels_text))
    assert read_run(folder / "run").to_dict() == pytrec_eval.parse_run(io.StringIO(run_text))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"file\.txt: is empty, expected lines of 6 fields: query Q0 document rank score tag"),
        (" \n\n", r"file\.txt: is empty"),
        ("q Q0 d 1 2 t\n\nq Q0 e 1 2\n", r"file\.txt:3: has 5 fields, expected 6"),
        ("q Q0 d 1 2 t extra\n", r"file\.txt:1: has 7 fields, expected 6"),
        ("q Q0 d 1 2\nt q Q0 d 1 2 t\n", r"file\.txt:1: has 5 fields"),  # twelve fields, but not six a line
        ("q Q0 d 1 2 t\nq Q0 e 1 x t\n", r"file\.txt:2: score is 'x', expected a finite number"),
        ("q Q0 d 1 nan t\n", r"file\.txt:1: score is 'nan'"),
        ("q Q0 d 1 2 t\nq Q0 e 1 inf t\n", r"file\.txt:2: score is 'inf'"),
        ("q Q0 d 1 1_0 t\n", r"file\.txt:1: score is '1_0'"),
        (
            "q Q0 d 1 2 t\nr Q0 d 1 2 t\n\nq Q0 d 2 1 t\n",
            r"file\.txt:4: document d of query q comes twice, first in line 1",
        ),
    ],
)
def test_wrong_runs(write, content, message):
    with pytest.raises(DataError, match=message):
        read_run(write(content))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("q 0 d\n", r"file\.txt:1: has 3 fields, expected 4: query iteration document grade"),
        ("q 0 d 1\nq 0 e high\n", r"file\.txt:2: grade is 'high', expected a finite number"),
        ("q 0 d 1\nq 0 d 1\n", r"file\.txt:2: document d of query q comes twice, first in line 1"),
    ],
)
def test_wrong_qrels(write, content, message):
    with pytest.raises(DataError, match=message):
        read_qrels(write(content))


def test_no_such_file(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_run(tmp_path / "run")


def test_ids_that_are_not_utf8_stay_apart(write):
    run = read_run(write(b"q Q0 \xff 1 2 t\nq Q0 \xfe 1 3 t\n"))
    assert len(run.docid) == 2


# ---------------------------------------------------------------------- joining
def test_join_by_hand(write):
    qrels, bm25 = read_qrels(write(QRELS)), read_run(write(RUN))
    other = read_run(write("q2 Q0 d3 1 4 x\nq2 Q0 d7 2 3 x\n"))
    data = trec_data(qrels, {"bm25": bm25, "other": other})
    nan = np.nan
    expected = [
        # query, document, label, bm25, other: judged ones first, then as the runs bring them
        ("q2", "d1", 2, -2, nan),
        ("q2", "d2", -1, nan, nan),
        ("q2", "d3", nan, 7.25, 4),
        ("q2", "d7", nan, nan, 3),
        ("q1", "d1", 0, 0.5, nan),
        ("q1", "d5", nan, 0.001, nan),
        ("q3", "d9", 1, nan, nan),
    ]
    assert list(data.qid) == ["q2", "q1", "q3"]
    assert [data.qid[query] for query in data.query_of_row()] == [row[0] for row in expected]
    assert list(data.docid or []) == [row[1] for row in expected]
    assert np.array_equal(data.label(), np.float32([row[2] for row in expected]), equal_nan=True)
    assert np.array_equal(data.X, np.float32([row[3:] for row in expected]), equal_nan=True)
    assert data.feature_names == ("bm25", "other")
    inf = np.inf
    assert run_scores(data, bm25).tolist() == [-2, -inf, 7.25, -inf, 0.5, 0.001, -inf]
    assert run_scores(data, other).tolist() == [-inf, -inf, 4, 3, -inf, -inf, -inf]
    assert query_coverage(qrels, bm25) == Coverage(shared=2, missing=1, ignored=1)
    assert query_coverage(qrels, other) == Coverage(shared=1, missing=2, ignored=0)


def test_no_runs_gives_the_judged_documents(write):
    data = trec_data(read_qrels(write(QRELS)), {})
    assert data.X.shape == (4, 0)
    assert data.label().tolist() == [2, -1, 0, 1]


documents = st.sampled_from("uvwxyz")


@settings(max_examples=60, deadline=None)
@given(
    judged=st.dictionaries(st.tuples(st.sampled_from("abc"), documents), st.integers(-1, 3), min_size=1),
    found=st.lists(
        st.dictionaries(st.tuples(st.sampled_from("abcd"), documents), st.floats(-9, 9), min_size=1), max_size=3
    ),
)
def test_join_is_a_join_of_dictionaries(tmp_path_factory, judged, found):
    folder = tmp_path_factory.mktemp("trec")
    queries = {query for query, _ in judged}
    (folder / "qrels").write_text("".join(f"{q} 0 {d} {n}\n" for (q, d), n in judged.items()))
    runs = {}
    for number, scores in enumerate(found):
        path = folder / f"run{number}"
        path.write_text("".join(f"{q} Q0 {d} 1 {s!r} t\n" for (q, d), s in scores.items()))
        if queries & {query for query, _ in scores}:
            runs[f"run{number}"] = (read_run(path), scores)
    data = trec_data(read_qrels(folder / "qrels"), {name: run for name, (run, _) in runs.items()})
    assert data.docid is not None
    rows = [(data.qid[query], data.docid[row]) for row, query in enumerate(data.query_of_row())]
    wanted = set(judged).union(*(scores for _, scores in runs.values()))
    assert sorted(rows) == sorted(key for key in wanted if key[0] in queries)
    assert [None if np.isnan(grade) else grade for grade in data.label()] == [judged.get(key) for key in rows]
    for run, scores in runs.values():
        assert run_scores(data, run).tolist() == [scores.get(key, -np.inf) for key in rows]


def test_run_of_other_queries(write):
    with pytest.raises(DataError, match="run 'x' and the qrels share no query: the run has '7', the qrels have 'q2'"):
        trec_data(read_qrels(write(QRELS)), {"x": read_run(write("7 Q0 d 1 2 t\n"))})


def test_scores_need_all_retrieved_documents(write):
    qrels, run = read_qrels(write(QRELS)), read_run(write(RUN))
    with pytest.raises(
        DataError, match=r"run 'bm25' retrieves document d5 for query q1, which the data lacks \(2 such"
    ):
        run_scores(trec_data(qrels, {}), run)


def test_scores_need_document_ids(write):
    run = read_run(write(RUN))
    with pytest.raises(DataError, match="no document ids"):
        run_scores(RankingData.from_arrays([[1.0]], qid=["q1"]), run)
    twice = RankingData.from_arrays([[1.0], [2.0]], qid=["q1", "q1"], docid=["d1", "d1"])
    with pytest.raises(DataError, match="document d1 comes twice in query q1"):
        run_scores(twice, run)


def test_score_beyond_float32(write):
    run = read_run(write("q1 Q0 d1 1 1e300 t\n"))
    with pytest.raises(DataError, match="infinite"):
        trec_data(read_qrels(write(QRELS)), {"x": run})


# ---------------------------------------------------------------------- writing
def test_run_is_written_in_trec_order(tmp_path):
    data = RankingData.from_arrays(
        np.zeros((6, 1)), qid=["b", "b", "b", "b", "a", "a"], docid=["d1", "d10", "d2", "D3", "x", "y"]
    )
    # Equal scores by descending bytes: d2 > d10 > d1 > D3. y was not retrieved.
    write_run(data, [1.0, 1.0, 1.0, 1.0, 0.1, -np.inf], tmp_path / "run", tag="mine")
    assert (tmp_path / "run").read_text().splitlines() == [
        "b Q0 d2 1 1.0 mine",
        "b Q0 d10 2 1.0 mine",
        "b Q0 d1 3 1.0 mine",
        "b Q0 D3 4 1.0 mine",
        "a Q0 x 1 0.1 mine",
    ]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.data())
def test_run_round_trip_and_order(tmp_path_factory, sizes, draw):
    n_docs = sum(sizes)
    scores = np.array(draw.draw(st.lists(st.sampled_from([-np.inf, -1.0, 0.1, 2.0]), min_size=n_docs, max_size=n_docs)))
    scores[0] = 0.5  # a run needs a line
    qid = np.repeat([f"q{number}" for number in range(len(sizes))], sizes)
    docid = [f"d{number}" for number in draw.draw(st.permutations(range(n_docs)))]
    data = RankingData.from_arrays(np.zeros((n_docs, 1)), qid=qid, docid=docid)
    path = tmp_path_factory.mktemp("trec") / "run.gz"
    write_run(data, scores, path)
    assert run_scores(data, read_run(path)).tolist() == scores.tolist()
    lines = [line.split() for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
    for query in set(qid):
        own = [(float(line[4]), line[2]) for line in lines if line[0] == query]
        assert own == sorted(own, reverse=True)
        assert [int(line[3]) for line in lines if line[0] == query] == list(range(1, len(own) + 1))


def test_qrels_round_trip(tmp_path, write):
    content = QRELS + "q3 0 d10 0.1\n"
    data = trec_data(read_qrels(write(content)), {"bm25": read_run(write(RUN, "run"))})
    write_qrels(data, tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_text() == content


def test_qrels_of_another_label(tmp_path):
    data = RankingData.from_arrays([[0.0], [0.0]], {"a": [1, 2], "b": [np.nan, 5]}, qid=["q", "q"], docid=["x", "y"])
    write_qrels(data, tmp_path / "out.txt", label="b")
    assert (tmp_path / "out.txt").read_text() == "q 0 y 5\n"
    with pytest.raises(DataError, match="no label source 'c'"):
        write_qrels(data, tmp_path / "out.txt", label="c")


@pytest.mark.parametrize(
    ("changes", "scores", "tag", "message"),
    [
        ({"docid": None}, [1.0, 2.0], "t", "no document ids"),
        ({"docid": ["a b", "c"]}, [1.0, 2.0], "t", "document id 'a b' is not one word"),
        ({"docid": ["", "c"]}, [1.0, 2.0], "t", "document id '' is not one word"),
        ({"qid": ["my query"] * 2}, [1.0, 2.0], "t", "query id 'my query' is not one word"),
        ({}, [1.0], "t", r"scores have shape \(1,\), expected one for each of 2 documents"),
        ({}, [1.0, np.nan], "t", "score of document 2 is nan"),
        ({}, [np.inf, 1.0], "t", "score of document 1 is inf"),
        ({}, [1.0, 2.0], "two words", "tag is 'two words', expected one word"),
        ({}, [1.0, 2.0], "", "tag is '', expected one word"),
    ],
)
def test_what_cannot_be_written(tmp_path, changes, scores, tag, message):
    data = RankingData.from_arrays([[0.0], [0.0]], **({"qid": ["q", "q"], "docid": ["x", "y"]} | changes))
    with pytest.raises(DataError, match=message):
        write_run(data, scores, tmp_path / "run", tag=tag)
    assert list(tmp_path.iterdir()) == []

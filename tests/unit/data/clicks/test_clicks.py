from __future__ import annotations

import gzip
import json
import lzma
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from gradrank.data.clicks.click_log import ClickLog, click_log
from gradrank.data.clicks.interning import intern
from gradrank.data.clicks.joining import join_clicks
from gradrank.data.clicks.label_files import read_click_labels, write_click_labels
from gradrank.data.clicks.labels import ClickLabels, click_labels
from gradrank.data.clicks.readers import read_click_log
from gradrank.data.ranking_data import RankingData
from gradrank.data.strings import Strings
from gradrank.errors import DataError

Session = tuple[str, list[str], list[str]]

SESSIONS: list[Session] = [
    ("q1", ["a", "b", "c"], ["b", "a"]),
    ("q1", ["b", "a"], []),
    ("q1", ["a", "c"], ["c", "c"]),
    ("q2", ["a", "d"], ["d", "ad"]),
]


def label_of(labels: ClickLabels) -> dict[tuple[str, str], float]:
    return {
        (labels.queries[q], labels.documents[d]): value
        for q, d, value in zip(labels.query, labels.document, labels.label.tolist(), strict=True)
    }


def sessions_of(log: ClickLog) -> list[Session]:
    """The log as lists again; a repeated click survives once, a click on something not shown does not."""
    result = []
    for s in range(log.n_sessions):
        rows = range(log.indptr[s], log.indptr[s + 1])
        shown = [log.documents[log.document[i]] for i in rows]
        clicked = sorted((log.order[i], log.documents[log.document[i]]) for i in rows if log.order[i])
        result.append((log.queries[log.query[s]], shown, [document for _, document in clicked]))
    return result


# ---------------------------------------------------------------------- readers
def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


PYCLICK = "q1\ta,b,c : b , a; q1\tb,a :;\nq1\ta,c : c , c ; \n\n q2\ta,d : d , ad; \n"


def rows(separator: str) -> str:
    lines = [["session", "qid", "docid", "position", "click"]]
    for number, (query, shown, clicks) in enumerate(SESSIONS):
        for place, document in enumerate(shown, 1):
            order = max((k for k, c in enumerate(clicks, 1) if c == document), default=0)
            lines.append([f"s{number}", query, document, str(place), str(order)])
    return "\n".join(separator.join(line) for line in lines) + "\n"


def jsonl() -> str:
    return "".join(json.dumps({"qid": q, "shown": s, "clicks": c}) + "\n" for q, s, c in SESSIONS)


@pytest.mark.parametrize("name", ["log.jsonl", "log.csv", "log.tsv", "log.txt"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_every_format_gives_the_sessions_written_to_it(tmp_path: Path, name: str, newline: str) -> None:
    text = {"log.jsonl": jsonl(), "log.csv": rows(","), "log.tsv": rows("\t"), "log.txt": PYCLICK}[name]
    log = read_click_log(write(tmp_path / name, text.replace("\n", newline)))
    assert sessions_of(log) == [
        ("q1", ["a", "b", "c"], ["b", "a"]),
        ("q1", ["b", "a"], []),
        ("q1", ["a", "c"], ["c"]),
        ("q2", ["a", "d"], ["d"]),
    ]
    assert_array_equal(log.position, [1, 2, 3, 1, 2, 1, 2, 1, 2])
    # Rows cannot tell of the advertisement that ended the last session.
    ends_with_ad = name in ("log.jsonl", "log.txt")
    assert_array_equal(log.last, [1, 0, 0, 0, 0, 0, 1, 0, not ends_with_ad])
    assert (log.clicks_not_shown, log.last_clicks_not_shown) == ((1, 1) if ends_with_ad else (0, 0))


@pytest.mark.parametrize("text", [jsonl(), rows(","), rows("\t"), PYCLICK])
def test_the_format_is_found_from_the_content(tmp_path: Path, text: str) -> None:
    assert read_click_log(write(tmp_path / "log", text)).n_sessions == 4


@pytest.mark.parametrize(("suffix", "compress"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_compressed_files_are_read(tmp_path: Path, suffix: str, compress) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / f"log.csv{suffix}"
    path.write_bytes(compress(rows(",").encode()))
    assert read_click_log(path).n_sessions == 4


def test_a_byte_order_mark_is_no_part_of_the_first_query(tmp_path: Path) -> None:
    assert read_click_log(write(tmp_path / "log", "\ufeffq\ta : a")).queries[0] == "q"


def test_pyclick_lines_of_the_yandex_sample(tmp_path: Path) -> None:
    text = (
        "98435_1\t232429,688835,50189248 : 688835 , 232429 , 16704940; 98435_1\t232429,688835 :; "
        "98435_1\t232429,688835 : 232429 , 232429 , 232429  ;  98435_1\t688835,232429 : 232429; \n\n"
        " 9_0\t13,70 : 70; \n"
    )
    log = read_click_log(write(tmp_path / "sample", text))
    assert list(log.queries) == ["98435_1", "9_0"]
    assert_array_equal(np.diff(log.indptr), [3, 2, 2, 2, 2])
    assert_array_equal(log.order, [2, 1, 0, 0, 0, 3, 0, 0, 1, 0, 1])
    assert_array_equal(log.last, [0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 1])
    assert (log.clicks_not_shown, log.last_clicks_not_shown) == (1, 1)


def test_pyclick_ids_may_be_addresses(tmp_path: Path) -> None:
    log = read_click_log(write(tmp_path / "log", "q 1\thttp://a/x:1,http://b : http://b"), "pyclick")
    assert sessions_of(log) == [("q 1", ["http://a/x:1", "http://b"], ["http://b"])]


def test_rows_in_any_order_and_sessions_of_several_queries(tmp_path: Path) -> None:
    text = (
        "click,docid,position,qid,session,country\n"
        '0,b,2,q1,s1,x\n1,a,1,q2,s1,x\n0,"c,d",5,q1,s2,x\n1,a,1,q1,s1,x\n1,b,2,q2,s1,x\n'
    )
    log = read_click_log(write(tmp_path / "log.csv", text))
    assert sessions_of(log) == [("q1", ["a", "b"], ["a"]), ("q2", ["a", "b"], ["a", "b"]), ("q1", ["c,d"], [])]
    assert log.position.tolist() == [1, 2, 1, 2, 5]
    # Without numbers or times, users are taken to click from top to bottom.
    assert log.last.tolist() == [True, False, False, True, False]


@pytest.mark.parametrize(
    "times",
    [("20", "10.5"), ("2024-03-01T10:00:01", "2024-03-01T10:00:00"), ("2024-03-01T10:00Z", "2024-03-01T09:59Z")],
)
def test_click_times_order_the_clicks(tmp_path: Path, times: tuple[str, str]) -> None:
    header = "session\tqid\tdocid\tposition\tclick\tclick_time\n"
    text = f"{header}s\tq\ta\t1\t1\t{times[0]}\ns\tq\tb\t2\t1\t{times[1]}\ns\tq\tc\t3\t0\t\n"
    log = read_click_log(write(tmp_path / "log.tsv", text))
    assert log.order.tolist() == [2, 1, 0]
    assert log.last.tolist() == [True, False, False]


def test_a_document_shown_twice_counts_once_at_its_first_place() -> None:
    log = click_log([("q", ["a", "b", "a"], ["a"]), ("q", ["b", "b"], [])])
    assert sessions_of(log) == [("q", ["a", "b"], ["a"]), ("q", ["b"], [])]
    assert log.position.tolist() == [1, 2, 1]
    assert log.shown_again == 2


HEADER = "session,qid,docid,position,click\n"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", '{"qid": 1, "shown": ["a"], "clicks": []}\n{"qid"\n', "a.jsonl:2: is not JSON"),
        ("a.jsonl", "[1]\n", "a.jsonl:1: holds b'[1]', expected an object"),
        ("a.jsonl", '{"shown": ["a"], "clicks": []}', "a.jsonl:1: 'qid' holds None, expected an id"),
        ("a.jsonl", '\n{"qid": 1, "shown": "a", "clicks": []}', "a.jsonl:2: 'shown' is 'a', expected a list"),
        ("a.jsonl", '{"qid": 1, "shown": [1.5], "clicks": []}', "a.jsonl:1: 'shown' holds 1.5, expected an id"),
        ("a.jsonl", '{"qid": "\\ud800", "shown": ["a"], "clicks": []}', "a.jsonl:1: 'qid' holds '\\ud800', expected"),
        ("a.jsonl", "[" * 200_000, "a.jsonl:1: is not JSON"),
        ("a.jsonl", '{"qid": 1, "shown": [], "clicks": []}', "a.jsonl:1: 'shown' is empty"),
        ("a.jsonl", "", "a.jsonl: holds no session"),
        ("a.csv", HEADER, "a.csv: holds no session"),
        ("a.csv", "session,qid,docid\n", "a.csv:1: header names 'session', 'qid', 'docid', expected also 'position'"),
        ("a.csv", HEADER + "\ns,q,a,1\n", "a.csv:3: row has 4 fields, expected 5"),
        ("a.csv", HEADER + "s,q,a,1,0\ns,q,b,0,0\n", "a.csv:3: position is '0', expected a whole number of 1"),
        ("a.csv", HEADER + "s,q,a,x,0\n", "a.csv:2: position is 'x', expected a whole number"),
        ("a.csv", HEADER + "s,q,a,1,-1\n", "a.csv:2: click is '-1', expected a whole number"),
        ("a.csv", HEADER + "s,,a,1,0\n", "a.csv:2: qid is '', expected an id"),
        ("a.csv", HEADER + 's,q,"a""b",1,0\n', "a.csv:2: a quoted field"),
        # Rows that no line end parts: there would be more of them than lines, for which arrays are made.
        ("a.csv", HEADER + 's,q,a,1,"0"\r' * 5000, "a.csv:2: a quoted field is not followed by the next field or"),
        ("a.csv", HEADER + 's,q,a,1,"0"\r\r\ns,q,b,2,"0"\rs,q,c,3,"0"\n', "a.csv:3: a quoted field"),
        ("a.csv", HEADER + "s,q,a,99999999999,0\n", "a.csv:2: position is '99999999999', expected"),
        ("a.csv", "session,qid,docid,position,click,click_time\ns,q,a,1,1,noon\n", "a.csv:2: click_time is 'noon'"),
        ("a.txt", "q\ta : a\nq a,b : a\n", "a.txt:2: session 'q a,b : a' has no tab"),
        ("a.txt", "q\ta,b\n", "a.txt:1: session 'q\\ta,b' has no ' :'"),
        ("a.txt", "\nq\t : a\n", "a.txt:2: session 'q\\t : a' has an empty id among the documents shown"),
        ("a.txt", "q\ta,,b : a\n", "a.txt:1: session 'q\\ta,,b : a' has an empty id among the documents shown"),
        ("a.txt", "q\ta : a,\n", "a.txt:1: session 'q\\ta : a,' has an empty id among the clicks"),
    ],
)
def test_errors_name_file_line_and_what_was_found(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        read_click_log(write(tmp_path / name, text))
    assert str(caught.value).startswith(f"{tmp_path}/{message}")


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="format 'xml' does not exist"):
        read_click_log(write(tmp_path / "a", "x"), "xml")


@given(st.lists(st.text(max_size=3)))
def test_interning_numbers_strings_by_first_appearance(values: list[str]) -> None:
    column = Strings.of(values)
    codes, distinct = intern(column.buffer, column.offsets[:-1], column.offsets[1:])
    assert list(distinct) == list(dict.fromkeys(values))
    assert [distinct[code] for code in codes] == values


# ---------------------------------------------------------------------- labels
def test_rates_worked_by_hand() -> None:
    log = click_log(SESSIONS)
    # q1: a shown 3 times, clicked once, last once; b shown twice, clicked once, never last; c shown twice, once last.
    assert label_of(click_labels(log, "last")) == {
        ("q1", "a"): pytest.approx(1 / 3),
        ("q1", "b"): 0.0,
        ("q1", "c"): 0.5,
        ("q2", "a"): 0.0,
        ("q2", "d"): 0.0,
    }
    rates = click_labels(log, "ctr")
    assert label_of(rates)["q1", "b"] == 0.5
    assert label_of(rates)["q2", "d"] == 1.0
    assert rates.impressions.tolist() == [3, 2, 2, 1, 1]
    assert rates.clicks.tolist() == [1, 1, 1, 0, 1]
    assert rates.last_clicks.tolist() == [1, 0, 1, 0, 0]
    assert rates.examination is None


def test_prior_adds_sessions_and_too_few_sessions_give_no_label() -> None:
    labels = label_of(click_labels(click_log(SESSIONS), "last", min_impressions=2, prior=(1.0, 3.0)))
    assert labels["q1", "a"] == pytest.approx((1 + 1) / (3 + 4))
    assert np.isnan(labels["q2", "d"])


@st.composite
def random_sessions(draw: st.DrawFn) -> list[Session]:
    names = st.sampled_from("abcdef")
    session = st.tuples(
        st.sampled_from(["q", "r"]),
        st.lists(names, min_size=1, max_size=5, unique=True),
        st.lists(names, max_size=4),
    )
    return draw(st.lists(session, min_size=1, max_size=30))


@settings(deadline=None)
@given(random_sessions())
def test_rates_equal_a_count_in_plain_python(sessions: list[Session]) -> None:
    shown, clicked, last = Counter(), Counter(), Counter()  # type: ignore[var-annotated]
    for query, documents, clicks in sessions:
        for document in documents:
            shown[query, document] += 1
            clicked[query, document] += document in clicks
            last[query, document] += clicks[-1:] == [document]
    log = click_log(sessions)
    assert log.clicks_not_shown == sum(c not in documents for _, documents, clicks in sessions for c in clicks)
    assert label_of(click_labels(log, "ctr")) == {key: clicked[key] / shown[key] for key in shown}
    assert label_of(click_labels(log, "last")) == {key: last[key] / shown[key] for key in shown}


# Frequencies that are exactly examination × attractiveness, so the maximum likelihood is the truth.
EXAMINATION = np.array([1.0, 0.5, 0.25])
ATTRACTION = {"a": 0.5, "b": 0.25, "c": 0.75}


def exact_sessions() -> list[Session]:
    sessions: list[Session] = []
    for order in (["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]):
        for k in range(32):
            clicks = [d for p, d in enumerate(order) if k < 32 * EXAMINATION[p] * ATTRACTION[d]]
            sessions.append(("q", order, clicks))
    return sessions


def test_debiased_labels_recover_the_truth_from_exact_frequencies() -> None:
    labels = click_labels(click_log(exact_sessions()), "debiased")
    assert labels.examination is not None
    assert labels.examination.converged
    assert labels.examination.position.tolist() == [1, 2, 3]
    # The likelihood is flat to 1e-10 near its maximum, so probabilities are sure to about its square root.
    assert_allclose(labels.examination.probability, EXAMINATION, atol=1e-3)
    assert label_of(labels) == {("q", d): pytest.approx(value, abs=1e-3) for d, value in ATTRACTION.items()}


def test_debiased_recovers_examination_from_simulated_users_where_rates_do_not() -> None:
    rng = np.random.default_rng(1)
    truth = 1 / np.arange(1, 7) ** 0.8
    attraction = rng.beta(1, 2, (20, 8))
    sessions: list[Session] = []
    for query in range(20):
        # The ranker likes low document numbers, so position and document are confounded in plain rates.
        for _ in range(1000):
            order = np.argsort(np.arange(8) + 2.0 * rng.standard_normal(8))[:6]
            clicked = order[rng.random(6) < truth * attraction[query, order]]
            sessions.append((f"q{query}", [f"d{d}" for d in order], [f"d{d}" for d in clicked]))
    log = click_log(sessions)
    labels = click_labels(log, "debiased")
    assert labels.examination is not None
    assert_allclose(labels.examination.probability, truth, atol=0.03)

    def error(labels: ClickLabels) -> float:
        wanted = [attraction[int(q[1:]), int(d[1:])] for q, d in label_of(labels)]
        return float(np.abs(labels.label - wanted).mean())

    assert error(labels) < 0.05
    assert error(click_labels(log, "ctr")) > 0.1


@settings(deadline=None, max_examples=50)
@given(random_sessions(), st.sampled_from([(0.0, 0.0), (1.0, 2.0)]))
def test_the_likelihood_never_falls_and_labels_are_probabilities(
    sessions: list[Session], prior: tuple[float, float]
) -> None:
    labels = click_labels(click_log(sessions), "debiased", prior=prior)
    assert labels.examination is not None
    # Sums of a thousand logarithms carry rounding of this size.
    assert np.diff(labels.examination.log_likelihood).min(initial=0) >= -1e-12
    assert labels.label.min() >= 0
    assert labels.label.max() <= 1
    assert labels.examination.probability.max() in (0.0, 1.0)


def test_no_general_optimizer_finds_a_higher_likelihood() -> None:
    rng = np.random.default_rng(3)
    names = list("abcdef")
    sessions: list[Session] = [
        ("q", order, [d for p, d in enumerate(order) if rng.random() < 0.8**p * (ord(d) - 96) / 7])
        for order in (list(rng.permutation(names)[:4]) for _ in range(200))
    ]
    log = click_log(sessions)
    shown, clicked = np.zeros((6, 4)), np.zeros((6, 4))
    for _, order, clicks in sessions:
        for p, d in enumerate(order):
            shown[names.index(d), p] += 1
            clicked[names.index(d), p] += d in clicks

    def cost(theta: np.ndarray) -> float:
        click = np.outer(theta[:6], theta[6:])
        return -float((clicked * np.log(click) + (shown - clicked) * np.log(1 - click)).sum()) / shown.sum()

    other = minimize(cost, np.full(10, 0.5), bounds=[(1e-6, 1 - 1e-6)] * 10, tol=1e-14)
    examination = click_labels(log, "debiased").examination
    assert examination is not None
    assert examination.log_likelihood[-1] == pytest.approx(-other.fun, abs=1e-6)


@pytest.mark.parametrize("method", ["last", "ctr", "debiased"])
def test_a_log_without_clicks_gives_labels_of_zero(method: str) -> None:
    assert click_labels(click_log([("q", ["a", "b"], [])]), method).label.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("prior", [(-1.0, 0.0), (0.0, float("nan")), (0.0, float("inf"))])
def test_an_impossible_prior_is_refused(prior: tuple[float, float]) -> None:
    with pytest.raises(DataError, match="prior"):
        click_labels(click_log(SESSIONS), "ctr", prior=prior)


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(DataError, match="'magic' does not exist, expected one of last, ctr, debiased"):
        click_labels(click_log(SESSIONS), "magic")


# ---------------------------------------------------------------------- joining
def test_join_worked_by_hand() -> None:
    labels = click_labels(click_log(SESSIONS), "ctr", min_impressions=2)
    data = RankingData.from_arrays(
        np.zeros((6, 1)),
        [0, 1, 0, 1, 0, 0],
        qid=["q2", "q2", "q1", "q1", "q1", "q3"],
        docid=["d", "b", "c", "zzz", "a", "a"],
    )
    joined, counts = join_clicks(data, labels, name="rate")
    # (q2, d) has a row but too few sessions; (q2, b) is a known document of a known query, but not together.
    assert_array_equal(joined.label("rate"), np.float32([np.nan, np.nan, 0.5, np.nan, 1 / 3, np.nan]))
    assert joined.label_names == ("label", "rate")
    assert (counts.documents_matched, counts.documents_unmatched, counts.documents_labeled) == (3, 3, 2)
    assert (counts.queries_matched, counts.queries_unmatched) == (2, 1)
    assert (counts.rows_used, counts.rows_unused) == (3, 2)


def test_join_equals_a_dictionary_lookup() -> None:
    rng = np.random.default_rng(0)
    sessions: list[Session] = [
        (f"{q}", [f"d{d}" for d in rng.permutation(30)[:5]], []) for q in rng.integers(0, 20, 300).tolist()
    ]
    sessions = [(q, shown, shown[: rng.integers(0, 3)]) for q, shown, _ in sessions]
    labels = click_labels(click_log(sessions), "ctr")
    table = label_of(labels)
    qid = np.repeat(np.arange(5, 25), 30)
    docid = [f"d{d}" for d in np.tile(np.arange(10, 40), 20)]
    joined, counts = join_clicks(RankingData.from_arrays(np.zeros((600, 1)), qid=qid, docid=docid), labels)
    wanted = [table.get((str(q), d), np.nan) for q, d in zip(qid, docid, strict=True)]
    assert_array_equal(joined.label("clicks"), np.float32(wanted))
    assert counts.documents_matched == np.isfinite(wanted).sum() > 0
    assert counts.rows_unused == len(table) - counts.documents_matched


def test_join_needs_document_ids() -> None:
    data = RankingData.from_arrays([[1.0]], qid=["q1"])
    with pytest.raises(DataError, match="no document ids"):
        join_clicks(data, click_labels(click_log(SESSIONS)))


# ---------------------------------------------------------------------- files
def test_labels_survive_writing_and_reading(tmp_path: Path) -> None:
    labels = click_labels(click_log([*SESSIONS, ("ü", ["a b", "c"], ["c"])]), "last", min_impressions=2)
    path = tmp_path / "clicks.tsv"
    write_click_labels(labels, path)
    assert path.read_text().splitlines()[:2] == [
        "qid\tdocid\tlabel\timpressions\tclicks\tlast_clicks",
        "q1\ta\t0.3333333333333333\t3\t1\t1",
    ]
    again = read_click_labels(path)
    assert [*label_of(again)] == [*label_of(labels)]
    assert_array_equal(again.label, labels.label)
    assert_array_equal(again.impressions, labels.impressions)
    assert_array_equal(again.clicks, labels.clicks)
    assert_array_equal(again.last_clicks, labels.last_clicks)


TSV = "qid\tdocid\tlabel\timpressions\tclicks\tlast_clicks\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TSV + "q\ta\t1.5\t1\t1\t1\n", "c.tsv:2: label is '1.5', expected a number from 0 to 1"),
        (TSV + "q\ta\tx\t1\t1\t1\n", "c.tsv:2: label is 'x'"),
        (TSV + "q\ta\t0\t-1\t1\t1\n", "c.tsv:2: impressions is '-1'"),
        (
            TSV + "q\ta\t0\t1\t1\t1\nq\ta\t0\t1\t1\t1\n",
            "c.tsv:3: docid is 'a', expected each document once for query 'q'",
        ),
        ("qid\tdocid\n", "c.tsv:1: header names 'qid', 'docid', expected also 'label'"),
    ],
)
def test_faults_in_a_file_of_labels_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        read_click_labels(write(tmp_path / "c.tsv", text))
    assert str(caught.value).startswith(f"{tmp_path}/{message}")


def test_ids_that_would_break_the_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="tab or line end"):
        write_click_labels(click_labels(click_log([("q", ["a\tb"], [])])), tmp_path / "c.tsv")
    assert not list(tmp_path.iterdir())

"""Logs read block by block by kernels give what Python's reader of JSON and counting in memory give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank.data.artificial import make_data
from gradrank.data.clicks import readers, streaming
from gradrank.data.clicks.click_log import write_click_log
from gradrank.data.clicks.interning import Interner, PairSums
from gradrank.data.clicks.json_lines import cut_json_lines
from gradrank.data.clicks.labels import click_labels
from gradrank.data.clicks.list_counts import ListCounts
from gradrank.data.clicks.propensity import given_propensities
from gradrank.data.clicks.readers import read_click_log
from gradrank.data.clicks.simulate import simulate_log
from gradrank.data.clicks.streaming import stream_click_labels
from gradrank.data.strings import Strings
from gradrank.errors import DataError

IDS = st.one_of(st.text(max_size=4), st.integers(-3, 10**6), st.sampled_from(["a", "b", "ü", 'q"', "x\\"]))


def _read(text: bytes, reader: Any) -> Any:
    try:
        log = reader(np.frombuffer(text, dtype=np.uint8), "log")
    except DataError as error:
        return str(error)
    names = None if log.rankers is None else [log.rankers[r] if r >= 0 else None for r in log.ranker]
    return (
        [log.queries[q] for q in log.query],
        [log.documents[d] for d in log.document],
        log.indptr.tolist(),
        log.order.tolist(),
        log.last.tolist(),
        (log.clicks_not_shown, log.shown_again),
        names,
        None if log.randomized is None else log.randomized.tolist(),
    )


@st.composite
def lines(draw: Any) -> bytes:
    session: dict[str, Any] = {
        "qid": draw(IDS),
        "shown": draw(st.lists(IDS, max_size=4)),
        "clicks": draw(st.lists(IDS, max_size=3)),
    }
    session |= draw(
        st.fixed_dictionaries(
            {},
            optional={
                "ranker": st.one_of(st.none(), st.sampled_from(["old", "new"]), st.integers(0, 3)),
                "randomized": st.sampled_from([True, False, None, 1]),
                "time": st.one_of(st.floats(allow_nan=False), st.integers(), st.none(), st.just({"a": [1]}), st.text()),
            },
        )
    )
    for key in draw(st.sets(st.sampled_from(["qid", "shown", "clicks"]), max_size=1)):
        if draw(st.integers(0, 9)) == 0:
            del session[key]
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " : ")]))
    return json.dumps(session, separators=separators, ensure_ascii=draw(st.booleans())).encode(errors="replace")


@given(st.lists(lines(), min_size=1, max_size=4), st.sampled_from([b"\n", b"\r\n", b"\n\n", b" \n"]))
def test_kernel_and_python_read_the_same_json(made: list[bytes], end: bytes) -> None:
    text = end.join(made)
    assert _read(text, readers._read_jsonl) == _read(text, readers._parse_jsonl)


@given(lines(), st.data())
def test_broken_lines_are_read_as_python_reads_them(line: bytes, data: st.DataObject) -> None:
    """A byte is taken away, doubled or replaced."""
    at = data.draw(st.integers(0, len(line) - 1))
    put = data.draw(st.sampled_from([b"", line[at : at + 1] * 2, b'"', b",", b"]", b"}", b"\\", b"0", b"\xff", b"."]))
    text = line[:at] + put + line[at + 1 :]
    assert _read(text, readers._read_jsonl) == _read(text, readers._parse_jsonl)


def test_usual_lines_are_read_by_the_kernel(tmp_path: Path) -> None:
    data = make_data(20, n_docs=6, n_features=4, n_jobs=1)
    write_click_log(simulate_log(data, {"a": data.X[:, 0]}, 200, randomized=0.5), tmp_path / "log.jsonl")
    cut = cut_json_lines(np.frombuffer((tmp_path / "log.jsonl").read_bytes(), dtype=np.uint8))
    assert cut is not None
    assert len(cut.randomized) == 200


def _named(labels: Any) -> dict[tuple[str, str], tuple[float, int, int, int]]:
    return {
        (labels.queries[q], labels.documents[d]): (round(label, 12), n, c, last)
        for q, d, label, n, c, last in zip(
            labels.query, labels.document, labels.label.tolist(), labels.impressions.tolist(), labels.clicks.tolist(),
            labels.last_clicks.tolist(), strict=True,
        )
    }  # fmt: skip


# Lists are counted together to the end, now and then added up, or given up for sessions one by one.
@pytest.mark.parametrize("places", [1 << 21, 200, 20])
@pytest.mark.parametrize("method", ["last", "ctr", "examined", "debiased"])
@pytest.mark.parametrize("kind", ["jsonl", "pyclick", "csv"])
def test_blocks_give_the_labels_of_the_whole(
    method: str, kind: str, places: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "_PLACES", places)
    data = make_data(30, n_docs=(2, 7), n_features=4, n_jobs=1)
    log = simulate_log(data, {"a": data.X[:, 0], "b": data.X[:, 1]}, 400, shown=5, random_state=3)
    path = tmp_path / {"jsonl": "log.jsonl", "pyclick": "log.txt", "csv": "log.csv"}[kind]
    write_click_log(log, path)
    sessions = [json.loads(line) for line in path.read_text().splitlines()]
    sessions[3]["clicks"].append("elsewhere")
    sessions[5]["shown"].append(sessions[5]["shown"][0])
    sessions[7]["clicks"] = [sessions[7]["shown"][1], sessions[7]["shown"][0], sessions[7]["shown"][1]]
    sessions[9]["shown"] = sessions[8]["shown"]  # the list of another query
    if kind == "jsonl":
        path.write_text("\n".join(map(json.dumps, sessions)))
    elif kind == "pyclick":
        path.write_text("\n".join(f"{s['qid']}\t{','.join(s['shown'])} : {' , '.join(s['clicks'])}" for s in sessions))
    else:
        rows = [
            f"{n},{s['qid']},{document},{place},{int(document in s['clicks'])}"
            for n, s in enumerate(sessions)
            for place, document in enumerate(s["shown"], 1)
        ]
        path.write_text("session,qid,docid,position,click\n" + "\n".join(rows))
    known = given_propensities([1.0, 0.5, 0.4, np.nan, 0.2]) if method == "examined" else None
    found = stream_click_labels(path, method, propensities=known, min_impressions=2, block=1000)
    whole = read_click_log(path)
    expected = click_labels(whole, method, propensities=known, min_impressions=2)
    assert repr(_named(found.labels)) == repr({key: _named(expected)[key] for key in _named(found.labels)})
    assert len(found.labels) == len(expected)
    assert (found.sessions, found.impressions, found.clicks) == (400, whole.n_impressions, whole.n_clicks)
    assert found.clicks_not_shown == whole.clicks_not_shown
    assert found.whole == (kind == "csv" or method == "debiased")


def test_lists_are_counted_together() -> None:
    lines = [
        {"qid": 1, "shown": ["a", "b", "a"], "clicks": ["a", "b", "a", "x"]},
        {"qid": 2, "shown": ["a", "b", "a"], "clicks": ["b"]},
        {"qid": 1, "shown": ["a", "b", "a"], "clicks": ["b", "a"]},
        {"qid": 1, "shown": ["b"], "clicks": []},
    ]
    queries, documents, counts = Interner(), Interner(), ListCounts()
    missed = 0
    for part in (lines[:2], lines[2:]):
        buffer = np.frombuffer("\n".join(map(json.dumps, part)).encode(), dtype=np.uint8)
        cut = cut_json_lines(buffer)
        assert cut is not None
        missed += counts.add(buffer, queries.add(buffer, *cut.query), cut, documents)
    assert missed == 1
    assert counts.repeated
    assert counts.places == 3 + 3 + 1
    found = counts.impressions()
    columns = (found.place, found.impressions, found.clicks, found.last_clicks)
    rows = [
        (queries.strings()[int(q)], documents.strings()[int(d)], *map(int, numbers))
        for q, d, *numbers in zip(found.query, found.document, *columns, strict=True)
    ]
    # Query, document, place, impressions, clicks, last clicks; the first session's last click was on something else.
    assert sorted(rows) == [
        ("1", "a", 1, 2, 2, 1),
        ("1", "b", 1, 1, 0, 0),
        ("1", "b", 2, 2, 2, 0),
        ("2", "a", 1, 1, 0, 0),
        ("2", "b", 2, 1, 1, 1),
    ]


def test_errors_of_later_blocks_name_their_line(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("q\ta,b : a\n" * 50 + "no tab here\n")
    with pytest.raises(DataError, match=r"log\.txt:51: session 'no tab here' has no tab"):
        stream_click_labels(path, "ctr", block=64)
    path = tmp_path / "log.jsonl"
    path.write_text('{"qid": 1, "shown": ["a"], "clicks": []}\n' * 50 + '{"qid": 1, "shown": 3}\n')
    with pytest.raises(DataError, match=r"log\.jsonl:51: 'shown' is 3"):
        stream_click_labels(path, "ctr", block=64)
    path.write_text("\n")
    with pytest.raises(DataError, match="holds no session"):
        stream_click_labels(path, "ctr")


@given(st.lists(st.lists(st.text("abc", max_size=3), max_size=30), max_size=4))
def test_numbers_of_strings(blocks: list[list[str]]) -> None:
    names, known = Interner(), {}
    for block in blocks:
        column = Strings.of(block)
        codes = names.add(column.buffer, column.offsets[:-1], column.offsets[1:])
        assert codes.tolist() == [known.setdefault(text, len(known)) for text in block]
    assert list(names.strings()) == list(known)


def test_long_strings_are_told_apart_by_any_byte() -> None:
    texts = ["x" * n for n in range(10, 45)]
    texts += [text[:k] + "y" + text[k + 1 :] for text in texts for k in range(len(text))]
    names = Interner()
    for _ in range(2):
        column = Strings.of(texts)
        assert names.add(column.buffer, column.offsets[:-1], column.offsets[1:]).tolist() == list(range(len(texts)))


def test_tables_grow() -> None:
    rng = np.random.default_rng(0)
    names, sums, total = Interner(), PairSums(2), {}
    for _ in range(3):
        values = rng.integers(0, 50_000, 40_000)
        column = Strings.of(values.tolist())
        codes = names.add(column.buffer, column.offsets[:-1], column.offsets[1:])
        strings = names.strings()
        assert [strings[int(code)] for code in codes[:200]] == [str(value) for value in values[:200]]
        sums.add(values % 7, values, np.stack((np.ones(len(values)), values), axis=1).astype(float))
        for value in values.tolist():
            total[value] = total.get(value, 0) + 1
    assert len(names) == len(total)
    first, second = sums.pairs()
    assert (first == second % 7).all()
    assert dict(zip(second.tolist(), sums.values()[:, 0].tolist(), strict=True)) == total
    np.testing.assert_allclose(sums.values()[:, 1], sums.values()[:, 0] * second)

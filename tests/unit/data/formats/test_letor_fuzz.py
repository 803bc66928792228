"""Anything at all given as a LETOR file: data or a DataError, as a slow plain parser has it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gradrank.data.formats.letor import read_letor
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError

NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
NAN = re.compile(rb"[+-]?nan", re.IGNORECASE)
DOCID = re.compile(rb"(?:^|(?<=[ \t\r]))docid[ \t]*[=:][ \t]*([^ \t\r]*)")
MAX_FEATURES = 50


@dataclass
class Refused:
    """The line that the plain parser stops at; None if it is not a line's fault."""

    line: int | None


@dataclass
class Reference:
    """The format once more, a line and a token at a time."""

    missing: bool
    zero_based: bool
    rows: list[tuple[float, str, dict[int, float], str]] = field(default_factory=list)

    def number(self, token: bytes) -> float:
        if NAN.fullmatch(token) and self.missing:
            return np.nan
        if not NUMBER.fullmatch(token):
            raise ValueError(token)
        with np.errstate(over="ignore"):
            if np.isinf(np.float32(float(token))):
                raise ValueError(token)
        return float(token)

    def feature(self, token: bytes, row: dict[int, float]) -> None:
        index, colon, value = token.partition(b":")
        if not colon or not re.fullmatch(rb"[0-9]+", index):
            raise ValueError(token)
        column = int(index) - (0 if self.zero_based else 1)
        if not 0 <= column < MAX_FEATURES or column in row:
            raise ValueError(token)
        row[column] = self.number(value)

    def line(self, line: bytes) -> None:
        body, _, comment = line.partition(b"#")
        tokens = [token for token in re.split(rb"[ \t\r]+", body) if token]
        if not tokens:
            return
        label = self.number(tokens[0])
        if len(tokens) < 2 or not tokens[1].startswith(b"qid:") or re.search(rb"[\x00-\x1f]", tokens[1]):
            raise ValueError(tokens)
        qid = tokens[1][4:].decode()
        if not qid:
            raise ValueError(tokens)
        row: dict[int, float] = {}
        for token in tokens[2:]:
            self.feature(token, row)
        words = [word for word in re.split(rb"[ \t\r]+", comment) if word]
        match = DOCID.search(comment)
        docid = match[1] if match else words[0] if len(words) == 1 else b""
        self.rows.append((label, qid, row, docid.decode()))

    def read(self, content: bytes) -> RankingData | Refused:
        for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
            try:
                self.line(line)
            except ValueError:
                return Refused(number)
        if not self.rows:
            return Refused(None)
        width = max((column + 1 for _, _, row, _ in self.rows for column in row), default=0)
        features = np.zeros((len(self.rows), width))
        for number, (_, _, row, _) in enumerate(self.rows):
            for column, value in row.items():
                features[number, column] = value
        docids = [docid for _, _, _, docid in self.rows]
        return RankingData.from_arrays(
            features,
            [label for label, _, _, _ in self.rows],
            qid=np.array([qid for _, qid, _, _ in self.rows], dtype=object),
            docid=docids if any(docids) else None,
        )


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz") / "data.txt"


def agree(path, content: bytes, missing: bool = False, zero_based: bool = False, chunk: int = 1 << 20) -> None:
    path.write_bytes(content)

    def read() -> RankingData:
        return read_letor(
            path, missing=missing, zero_based=zero_based, max_features=MAX_FEATURES, n_jobs=2, _chunk_bytes=chunk
        )

    expected = Reference(missing, zero_based).read(content)
    if isinstance(expected, Refused):
        with pytest.raises(DataError) as caught:
            read()
        assert caught.value.line == expected.line
        return
    data = read()
    assert (data.X.shape, data.X.dtype) == (expected.X.shape, expected.X.dtype)
    np.testing.assert_array_equal(data.X, expected.X)
    np.testing.assert_array_equal(np.signbit(data.X), np.signbit(expected.X))
    np.testing.assert_array_equal(data.label(), expected.label())
    np.testing.assert_array_equal(data.indptr, expected.indptr)
    assert data.qid == expected.qid
    assert data.docid == expected.docid
    np.testing.assert_array_equal(
        np.arange(data.n_docs) if data.rows is None else data.rows,
        np.arange(data.n_docs) if expected.rows is None else expected.rows,
    )


NUMBERS = st.one_of(
    st.integers(-3, 30).map(str),
    st.floats(width=32).map(str),
    st.floats().map(repr),
    st.sampled_from(
        ["nan", "inf", "1e39", "1e-50", ".5", "5.", "+1", "1_0", "0x1", "-0", "1e", "", "1e400", "a", "--1"]
    ),
    st.from_regex(r"[0-9]{1,30}(\.[0-9]{0,30})?", fullmatch=True),
)
INDICES = st.one_of(st.integers(-1, 60).map(str), st.sampled_from(["01", "", "x", "99999999999999999999", "1.0"]))
QIDS = st.sampled_from(
    ["qid:1", "qid:2", "qid:3", "qid:é", "qid:", "qid", "QID:1", "qid:1:2", "", "qid:a\x01", "qid:\x0b"]
)
COMMENTS = st.sampled_from(
    [
        "",
        "#",
        "# docid = a",
        "#docid=b",
        "# docid: c d",
        "#word",
        "# two words",
        "#docid =",
        "# x docid=é",
        "#docid\r=5",
    ]
)
BLANKS = st.sampled_from([" ", " ", " ", "\t", "  ", "\r", ""])
ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\n\n", "", " \n"])


def mostly(usual: st.SearchStrategy[str], any_other: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.integers(0, 11).flatmap(lambda number: any_other if number == 0 else usual)


SMALL = st.floats(-10, 10).map(lambda value: f"{value:.6f}")


@st.composite
def line(draw: st.DrawFn) -> str:
    parts = [draw(mostly(st.integers(0, 4).map(str), NUMBERS)), draw(mostly(st.sampled_from(["qid:1", "qid:2"]), QIDS))]
    if draw(st.integers(0, 3)):
        indices = sorted(draw(st.sets(st.integers(1, 12), max_size=6)))
    else:
        indices = draw(st.lists(st.integers(1, 40), max_size=4))
    parts += [f"{draw(mostly(st.just(str(index)), INDICES))}:{draw(mostly(SMALL, NUMBERS))}" for index in indices]
    parts.append(draw(COMMENTS))
    blanks = [draw(mostly(st.just(" "), BLANKS)) for _ in parts]
    return "".join(part + blank for part, blank in zip(parts, blanks, strict=True)) + draw(ENDS)


FILES = st.lists(line(), max_size=6).map("".join)
MANY = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.checked
@MANY
@given(FILES, st.booleans(), st.booleans(), st.sampled_from([1, 30, 1 << 20]))
@example("1 qid:1 1:2", False, False, 1)
@example("\ufeff1 qid:1 1:2\n", False, False, 1)
@example("nan qid:1 1:nan\n", True, False, 1)
@example("1 qid:1 40:2 3:1\n2 qid:1 3:1 3:2 1:x\n", False, True, 1)
@example("1 qid:1 1:1.000000059604644775390625000001 2:x\n", False, False, 1)
@example("1 qid:1 1:3.40282356779733661637539395458142568448e38 2:x\n", False, False, 1)
def test_nearly_valid_lines(path, text, missing, zero_based, chunk):
    agree(path, text.encode(), missing, zero_based, chunk)


VALID = (
    "2 qid:10 1:0.031310 2:0.666667 3:-1e-3 5:12 # docid = GX0 inc = 1\r\n"
    "0 qid:10 1:0.5 4:1 2:3 #docid=GX1\n\n# remark\n"
    "1.5 qid:é 1:123456789012345678901234 2:.5\n"
    "0 qid:10 5:1"
).encode()


@pytest.mark.checked
@MANY
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["delete", "insert", "flip", "replace", "cut"]),
            st.integers(0, len(VALID) - 1),
            st.integers(0, 255) | st.sampled_from(list(b" \t\r\n#:.-+eE0159qidna\x00")),
        ),
        max_size=5,
    ),
    st.booleans(),
    st.sampled_from([1, 1 << 20]),
)
def test_mutations_of_a_valid_file(path, changes, missing, chunk):
    content = bytearray(VALID)
    for kind, place, byte in changes:
        place = min(place, len(content))
        if kind == "insert":
            content.insert(place, byte)
        elif kind == "cut":
            del content[place + len(content) // 2 :]
        elif place < len(content):
            if kind == "delete":
                del content[place]
            elif kind == "flip":
                content[place] ^= 1 << (byte & 7)
            else:
                content[place] = byte
    agree(path, bytes(content), missing, False, chunk)


PIECES = [b"1", b" ", b"qid:", b":", b"\n", b"#", b"docid", b"=", b"\r", b"-", b".", b"e", b"\xff"]


@pytest.mark.checked
@MANY
@given(
    st.one_of(
        st.binary(max_size=200),
        st.lists(st.sampled_from(PIECES)).map(b"".join),
    )
)
@example(b"\x00" * 100)
@example(b"\xff\xfe1\x00 \x00q\x00")
@example(b"PK\x03\x04")
def test_random_bytes(path, content):
    if content[:2] == b"\x1f\x8b":
        return  # this would be read as a compressed file
    agree(path, content)

"""Files with one number per line."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from gradrank.data.formats.columns import read_column, write_column
from gradrank.errors import DataError


@pytest.fixture
def write(tmp_path):
    def write(content: str | bytes):
        path = tmp_path / "column.txt"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.mark.parametrize(
    "text",
    [
        "1\n-2.5\n3e-7\n",
        "1\r\n-2.5\r\n3e-7",
        " 1\t\n-2.5 \n+3.0E-07\n",
        "1\n-2.5\n3e-7\n\n \n",
        "\ufeff1\n-2.5\n3e-7\n",
    ],
)
def test_numbers(write, text):
    values = read_column(write(text), expected=3)
    assert values.dtype == np.float64
    assert values.tolist() == [1, -2.5, 3e-7]


def test_missing(write):
    path = write("1\n\nnan\n NaN\n2\n\n")
    np.testing.assert_array_equal(read_column(path, missing=True), [1, np.nan, np.nan, np.nan, 2, np.nan])
    np.testing.assert_array_equal(read_column(write("\n"), missing=True), [np.nan])


def test_negative_infinity(write):
    path = write("1\n-inf\n-Infinity\n")
    assert read_column(path, allow_neg_inf=True).tolist() == [1, -np.inf, -np.inf]
    with pytest.raises(DataError, match=r"column.txt:2: found '-inf' in the scores, expected a finite number"):
        read_column(path)
    with pytest.raises(DataError, match=r"column.txt:1: found 'inf'"):
        read_column(write("inf\n"), allow_neg_inf=True)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x", "found 'x' in the weights, expected one number per line"),
        ("1 2", "found '1 2' in the weights, expected one number per line"),
        ("1_0", "found '1_0'"),
        ("0x10", "found '0x10'"),
        ("1,5", "found '1,5'"),
        ("1e999", "'1e999' in the weights is too large"),
        ("nan", "found 'nan' in the weights, expected a number"),
        ("", "found an empty line in the weights, expected a number"),
        ("\x00\x01", "found '\\x00\\x01'"),
        ("1\x0b", "found '1\\x0b'"),
        ("\x0c1", "found '\\x0c1'"),
        ("١", "found '١'"),
        ("9" * 50 + "x", "found '9999999999999999999999999999999999999999…'"),
    ],
)
def test_wrong_line(write, line, message):
    path = write(f"1\n2\n{line}\n4\n")
    with pytest.raises(DataError) as caught:
        read_column(path, what="weights")
    assert str(caught.value).startswith(f"{path}:3: ")
    assert message in str(caught.value)


def test_wrong_count(write):
    path = write("1\n2\n")
    with pytest.raises(DataError, match="holds 2 scores, expected 3"):
        read_column(path, expected=3)
    with pytest.raises(DataError, match="holds 0 weights, expected 3"):
        read_column(write(""), expected=3, what="weights")
    with pytest.raises(DataError, match="holds no scores"):
        read_column(write("\n\n"))


def test_no_such_file(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_column(tmp_path / "none")


@settings(max_examples=200, deadline=None)
@given(
    values=arrays.arrays(np.float64, st.integers(1, 20), elements=st.floats()),
    suffix=st.sampled_from(["", ".gz", ".zst"]),
)
def test_reads_back_the_same(tmp_path_factory, values, suffix):
    path = tmp_path_factory.getbasetemp() / f"round-trip.txt{suffix}"
    write_column(values, path)
    if np.isposinf(values).any():
        with pytest.raises(DataError, match="finite"):
            read_column(path, missing=True, allow_neg_inf=True)
        return
    back = read_column(path, missing=True, allow_neg_inf=True, expected=len(values))
    np.testing.assert_array_equal(back, values)
    np.testing.assert_array_equal(np.signbit(back[~np.isnan(back)]), np.signbit(values[~np.isnan(values)]))


@settings(max_examples=200, deadline=None)
@given(content=st.binary(max_size=60) | st.text("0123456789.-+eE \n\r\tnaif_", max_size=40).map(str.encode))
def test_anything_else_is_a_data_error(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.txt"
    path.write_bytes(content)
    body = content.removeprefix(b"\xef\xbb\xbf").rstrip(b" \t\r\n")
    tokens = [token.strip(b" \t\r") for token in body.split(b"\n")]
    number = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
    good = all(number.fullmatch(token) and np.isfinite(float(token)) for token in tokens)
    if good:
        assert read_column(path).tolist() == [float(token) for token in tokens]
    else:
        with pytest.raises(DataError, match=r"any\.txt"):
            read_column(path)


def test_written_as_short_as_possible(tmp_path):
    write_column(np.array([0.1, 1 / 3, 2]), tmp_path / "a")
    assert (tmp_path / "a").read_text() == "0.1\n0.3333333333333333\n2.0\n"


def test_not_a_column(tmp_path):
    with pytest.raises(DataError, match="one dimension, not 2"):
        write_column(np.zeros((2, 2)), tmp_path / "a")
    assert not (tmp_path / "a").exists()

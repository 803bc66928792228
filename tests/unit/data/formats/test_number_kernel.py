"""Numbers in text: exactly what Python reads, and the shortest that reads back."""

from __future__ import annotations

import re
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gradrank.data.formats import number_kernel as kernel

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def parse(token: str, exact: bool = False) -> tuple[float, int, int]:
    text = np.frombuffer(token.encode() + b"\n", dtype=np.uint8)
    value, end, kind, _ = kernel.parse_number(text, 0, exact)
    return value, end, kind


def python(token: str) -> np.float32:
    with np.errstate(over="ignore"):
        return np.float32(float(token))


def check(token: str) -> None:
    value, end, kind = parse(token)
    expected = python(token)
    if kind == kernel.UNCERTAIN:
        assert end == len(token)
        return
    if np.isinf(expected):
        assert kind == kernel.TOO_LARGE
        return
    assert (kind, end) == (kernel.NUMBER, len(token))
    assert np.float32(value).tobytes() == expected.tobytes()
    value, end, kind = parse(token, exact=True)
    assert end == len(token)
    if kind != kernel.UNCERTAIN:
        assert (kind, value.hex()) == (kernel.NUMBER, float(token).hex())


@pytest.mark.checked
@settings(max_examples=400, deadline=None)
@given(st.from_regex(NUMBER, fullmatch=True))
@example("0" * 400 + "1")
@example("0." + "0" * 400 + "1e400")
@example("1" + "0" * 400 + "e-400")
@example("1e99999999999999999999")
@example("1e-99999999999999999999")
@example("-0e99999999999999999999")
@example("3.4028235677973366e38")
@example("3.4028235677973362e38")
@example("9007199254740993")
@example("18446744073709551616")
@example("7.006492321624085e-46")
def test_token_of_the_grammar(token):
    check(token)


@pytest.mark.checked
@settings(max_examples=400, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["r", ".9g", ".17g", ".25e", ".6f", ".0f"]))
def test_formatted_float(value, form):
    check(repr(value) if form == "r" else format(value, form))


@pytest.mark.checked
@settings(max_examples=400, deadline=None)
@given(
    st.floats(width=32, min_value=0, max_value=np.float32(1e38)),
    st.integers(9, 60),
    st.sampled_from([0, 1, -1]),
)
def test_next_to_where_rounding_turns(value, digits, nudge):
    low = np.float32(value)
    with localcontext() as context:
        context.prec = digits
        middle = (Decimal(float(low)) + Decimal(float(np.nextafter(low, np.float32(np.inf))))) / 2
        check(str(context.next_plus(middle) if nudge > 0 else context.next_minus(middle) if nudge < 0 else middle))


def test_hardly_any_number_is_left_to_python():
    tokens = [repr(value) for value in np.random.default_rng(1).random(20_000).tolist()]
    assert sum(parse(token)[2] == kernel.UNCERTAIN for token in tokens) == 0
    assert sum(parse(token, exact=True)[2] == kernel.UNCERTAIN for token in tokens) == 0


@settings(max_examples=400, deadline=None)
@given(st.floats(min_value=1e-80, max_value=1e38), st.integers(17, 60), st.sampled_from([0, 1, -1]))
def test_next_to_where_rounding_of_doubles_turns(value, digits, nudge):
    with localcontext() as context:
        context.prec = digits
        middle = (Decimal(value) + Decimal(float(np.nextafter(value, np.inf)))) / 2
        token = str(context.next_plus(middle) if nudge > 0 else context.next_minus(middle) if nudge < 0 else middle)
    found, end, kind = parse(token, exact=True)
    assert end == len(token)
    assert kind == kernel.UNCERTAIN or found == float(token)


def test_doubles_of_all_sizes():
    rng = np.random.default_rng(4)
    values = rng.random(20_000) * 10.0 ** rng.integers(-60, 38, 20_000)
    left = 0
    for token in map(repr, values.tolist()):
        value, _, kind = parse(token, exact=True)
        left += kind == kernel.UNCERTAIN
        assert kind == kernel.UNCERTAIN or value == float(token)
    assert left == 0


@settings(max_examples=300, deadline=None)
@given(st.text("0123456789+-.eEnaif_xX \t#", max_size=12))
def test_accepts_numbers_only(token):
    word = re.split(r"[ \t#]", token)[0]
    kind = parse(token)[2]
    if NUMBER.fullmatch(word):
        assert kind in (kernel.NUMBER, kernel.UNCERTAIN, kernel.TOO_LARGE)
    elif re.fullmatch(r"[+-]?nan", word, re.IGNORECASE):
        assert kind == kernel.NAN
    else:
        assert kind == kernel.NO_NUMBER


@pytest.mark.checked
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-0.0, "-0"),
        (1, "1"),
        (-2.5, "-2.5"),
        (100, "100"),
        (0.1, "0.1"),
        (0.001348, "0.001348"),
        (123456.789, "123456.79"),
        (1e7, "10000000"),
        (1e14, "100000000376832"),
        (1.7e9, "1700000000"),
        (1e15, "999999986991104"),
        (1e16, "1e16"),
        (1e-5, "0.00001"),
        (1.5e-6, "15e-7"),
        (16777216, "16777216"),
        (3.4028235e38, "34028235e31"),
        (1e-45, "1e-45"),
        (np.nan, "nan"),
    ],
)
def test_written(value, text):
    assert written(np.float32(value)) == text


def written(value: np.float32) -> str:
    out = np.full(kernel.LONGEST_NUMBER, 255, dtype=np.uint8)
    length = kernel.write_float32(out, 0, value)
    return out[:length].tobytes().decode()


def test_written_reads_back_and_is_shortest():
    bits = np.random.default_rng(2).integers(0, 2**32, 20_000, dtype=np.uint32)
    edges = np.array([0x00000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x3F800000, 0x4B800000], dtype=np.uint32)
    powers = np.float32(10.0 ** np.arange(-45, 39)).view(np.uint32)
    for value in np.concatenate((bits, edges, powers)).view(np.float32):
        if not np.isfinite(value):
            continue
        text = written(value)
        assert python(text).tobytes() == value.tobytes()
        if 2.0**24 <= abs(value) <= 2.0**53:
            assert int(text) == int(value)
            continue
        digits = re.sub(r"e.*", "", text).replace(".", "").lstrip("-0").rstrip("0")
        shortest = np.format_float_scientific(value, unique=True, trim="-")
        assert len(digits) <= len(re.sub(r"e.*", "", shortest).replace(".", "").lstrip("-"))

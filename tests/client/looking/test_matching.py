"""Which records a condition takes: by their bytes, whatever is shown of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.client.looking.matching import MAX_CONDITIONS, BadCondition, read_condition, read_where
from tests.parts import few

HEADERS = (("trace", "é\u202e".encode()), ("none", None), ("two", b"1"), ("two", b"2"), ("a b=c", b"z"))
VALUE = '{"id": 73314510714175488, "f": 1e400, "n": NaN, "tags": ["x", "y"], "o": {"p": null}, "b": true, "s": "7"}'


def record(key: bytes | None = b"k1", value: bytes | None = VALUE.encode(), headers: Any = HEADERS) -> Any:
    return SimpleNamespace(key=key, value=value, headers=headers)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("key = k1", True),
        ("key=k1", True),
        ("key == k2", False),
        ("key != k1", False),
        ("key != k2", True),
        ('key = "\\u006b1"', True),
        ("key = x'6b31'", True),
        ("key contains 1", True),
        ("key ~ ^k[0-9]$", True),
        ("key ~ ^k$", False),
        ("key is null", False),
        ("value is null", False),
        ("header.trace contains \u202e", True),
        ("header.trace contains ⟨U+202E⟩", False),
        ("header.trace = x'c3a9e280ae'", True),
        ("header.trace ~ ^.\u202e$", True),
        ("header.none is null", True),
        ("header.none", True),
        ("header.missing", False),
        ("header.missing != 1", True),
        ("header.two = 2", True),
        ("header.two != 2", False),
        ('header["a b=c"] = z', True),
        ("value $.id = 73314510714175488", True),
        ("$.id = 73314510714175490", False),
        ("$.id != 73314510714175490", True),
        ("$.id = 7.3314510714175488e16", True),
        ("$.id > 73314510714175487", True),
        ("$.id >= 73314510714175489", False),
        ("$.id < 73314510714175489", True),
        ("$.f = 10e399", True),
        ("$.f > 1e308", True),
        ("$.n = NaN", True),
        ("$.n < 5", False),
        ("$.tags[*] = y", True),
        ('$.tags[*] = "y"', True),
        ("$.tags[-1] ~ ^y$", True),
        ("$.o.p is null", True),
        ("$.o.p", True),
        ("$.o.q", False),
        ("$.b = true", True),
        ("$.b = 1", False),
        ("$.s = 7", False),
        ('$.s = "7"', True),
        ("$.id contains 488", True),
        ("key $.a = 1", False),
        ("value contains 73314510714175488", True),
        ('value contains {"id": 7', True),
        ('value contains {\n  "id": 7', False),
    ],
)
def test_conditions(text: str, want: bool) -> None:
    assert read_condition(text).fits(record()) is want


@pytest.mark.parametrize("text", ["key = k1", "key contains k", "key ~ k", "$.id = 1"])
def test_null_fits_nothing_but_is_null(text: str) -> None:
    nothing = record(key=None, value=None, headers=())
    assert not read_condition(text).fits(nothing)
    assert read_condition("key is null").fits(nothing) and read_condition("value IS NULL").fits(nothing)


def test_all_conditions_have_to_fit() -> None:
    assert read_where(["key = k1", "", "$.id > 1"]).fits(record())
    assert not read_where(["key = k1", "$.id < 1"]).fits(record())
    assert read_where([]).fits(record())
    with pytest.raises(BadCondition, match="at most"):
        read_where(["key = 1"] * (MAX_CONDITIONS + 1))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "begins with key"),
        ("keys = 1", "begins with key"),
        ("key", "comes ="),
        ("key < 3", r"\$\.price"),
        ("$..a = 1", "known: .name"),
        ("key ~ (", "no RE2 expression"),
        ("key ~ (a+)\\1", "no RE2 expression"),
        ("$.a < [1]", "numbers and texts"),
        ('key = "\\q"', "escape"),
        ("value " + "x" * 5_000, "at most"),
    ],
)
def test_what_is_no_condition_says_what_would_be_one(text: str, said: str) -> None:
    with pytest.raises(BadCondition, match=said):
        read_condition(text)


@settings(max_examples=few(300), deadline=None)
@given(
    st.builds(
        lambda subject, how, operand: subject + how + operand,
        st.sampled_from(["key", "value ", "header.a", 'header["', "$.a", "value $[0]", "", "$"]),
        st.sampled_from([" = ", "~", " contains ", " is null", "<=", "", "]", " exists"]),
        st.text(max_size=12),
    )
)
def test_any_text_is_a_condition_or_says_why_not(text: str) -> None:
    try:
        condition = read_condition(text)
    except BadCondition as error:
        assert str(error)
    else:
        assert condition.fits(record()) in (True, False)


@settings(max_examples=few(200), deadline=None)
@given(st.binary(max_size=12), st.binary(max_size=4))
def test_bytes_are_found_as_they_are(data: bytes, part: bytes) -> None:
    one = record(key=data, value=data)
    assert read_condition(f"key contains x'{part.hex()}'").fits(one) == (part in data)
    assert read_condition(f"value = x'{data.hex()}'").fits(one)

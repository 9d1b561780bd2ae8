"""JSON whose numbers stay as they were written: laid out, compared, and found by a path."""

from __future__ import annotations

import json
import time
import tracemalloc
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.client.looking.forms import show
from quorumlog.client.looking.json_path import BadPath, read_path
from quorumlog.client.looking.json_text import MAX_NESTING, Members, NotJson, Number, pretty, read_json, tokens
from tests.parts import few

LONG = [
    "73314510714175488",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551616",
    "1e400",
    "-1E-400",
    "NaN",
    "-Infinity",
    "0.100000000000000000000000000001",
    "1.50",
    "-0",
    "1" * 5_000,
]
numbers = st.one_of(
    st.sampled_from([one for one in LONG if one not in ("NaN", "-Infinity")]),
    st.integers(-(10**30), 10**30).map(str),
    st.builds(
        lambda whole, part, power: f"{whole}.{part}e{power}",
        st.integers(-(10**20), 10**20),
        st.integers(0, 10**12),
        st.integers(-50, 50),
    ),
)
texts = st.text(max_size=20).map(json.dumps)
values = st.recursive(
    st.one_of(numbers, texts, st.sampled_from(["true", "false", "null", "NaN"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: f"[{' ,'.join(items)}]"),
        st.lists(st.tuples(texts, inner), max_size=4).map(
            lambda members: "{" + ",\t".join(f"{name} :{value}" for name, value in members) + "}"
        ),
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("number", LONG)
def test_a_number_is_shown_to_its_last_digit(number: str) -> None:
    assert pretty(f'{{"id":{number}}}') == '{\n  "id": ' + number + "\n}"
    assert read_json(f"[{number}]") == [Number(number)]
    assert read_json(f"[{number}]")[0].text == number


@settings(max_examples=few(150), deadline=None)
@given(values)
def test_only_white_space_differs(text: str) -> None:
    assert list(tokens(pretty(text))) == list(tokens(text))
    assert "".join(tokens(text)) == "".join(tokens(pretty(text)))
    assert read_json(pretty(text)) == read_json(text)


@settings(max_examples=few(500), deadline=None)
@given(numbers, numbers)
def test_numbers_compare_as_exact_ones_do(first: str, second: str) -> None:
    one, other = Number(first), Number(second)
    assert (one == other) == (Decimal(first) == Decimal(second))
    assert one.is_less(other) == (Decimal(first) < Decimal(second))
    assert hash(one) == hash(other) if one == other else True


def test_numbers_that_no_arithmetic_holds() -> None:
    assert Number("1e999999999999999999999") == Number("1e999999999999999999999")
    assert Number("1e999999999999999999999") != Number("2e999999999999999999999")
    assert Number("1e999999999999999999999").is_less(Number("Infinity"))
    assert Number("NaN") == Number("NaN") and not Number("NaN").is_less(Number("1"))
    assert not Number("1").is_less(Number("NaN"))


@pytest.mark.parametrize(
    "text", ["", "{", "{'a': 1}", '{"a": 1,}', "01", "1 2", '"\t"', b"\xff", "[" * (MAX_NESTING + 1) + "]" * 9]
)
def test_what_is_no_json(text: str | bytes) -> None:
    with pytest.raises(NotJson):
        read_json(text)


@pytest.mark.parametrize("text", ['"\\"' * 200_000, "[" * 500_000, '{"a":' * 100_000, "1" * 1_000_000])
def test_hostile_text_takes_no_more_time_than_its_length(text: str) -> None:
    began = time.process_time()
    try:
        pretty(text) if read_json(text) else None
    except NotJson:
        pass
    assert time.process_time() - began < 2


VALUE = '{"a": {"b": [1, {"c": 73314510714175488}, "x"]}, "a b": null, "*": 4, "a": 5}'


@pytest.mark.parametrize(
    ("path", "want"),
    [
        ("$.a.b[1].c", ["73314510714175488"]),
        ("$.a.b[-1]", ['"x"']),
        ("$.a.b[*].c", ["73314510714175488"]),
        ('$["a b"]', ["null"]),
        ('$["\\u0061"].b[0]', ["1"]),
        ("$.a.b[7]", []),
        ("$.a.c", []),
        ("$.a.b.c", []),
        ('$["*"]', ["4"]),
    ],
)
def test_paths(path: str, want: list[str]) -> None:
    found, rest = read_path(path + " = 1")
    assert rest == " = 1" and list(found.find(read_json(VALUE))) == [read_json(one) for one in want]


def test_a_name_that_comes_twice_is_found_twice() -> None:
    assert read_json(VALUE) == Members(read_json(VALUE))
    assert [type(one) for one in read_path("$.a")[0].find(read_json(VALUE))] == [Members, Number]
    assert len(list(read_path("$.*")[0].find(read_json(VALUE)))) == 4


@pytest.mark.parametrize("path", ["a", "$..a", "$[1", "$['a']", "$." + ".a" * 60, "$" + ".a" * 60])
def test_what_is_no_path(path: str) -> None:
    with pytest.raises(BadPath):
        read_path(path)


BOMBS = [b"[" * 199 + b"1," * 400_000 + b"1" + b"]" * 199, b"[" * 1_000_000, b'{"a":' * 150_000]


@pytest.mark.parametrize("bomb", BOMBS, ids=["wide and deep", "deep", "deep objects"])
def test_a_value_that_is_made_to_take_room_and_time_takes_little(bomb: bytes) -> None:
    """The first one takes 160 MB laid out, and each of its numbers a tuple if it is compared."""
    tracemalloc.start()
    began_s = time.process_time()
    shown = show(bomb, max_bytes=4_096)
    took_s = time.process_time() - began_s
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert shown.cut and sum(len(piece.text) for piece in shown.pieces) <= 4_096
    assert most < 60_000_000 and took_s < 5


@given(values, st.integers(0, 60))
def test_the_beginning_of_what_is_laid_out_is_the_same(text: str, most: int) -> None:
    assert pretty(text, most=most)[:most] == pretty(text)[:most]

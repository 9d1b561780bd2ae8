"""Records as text, in both directions, and positions where reading starts."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.client.consumer import ConsumedRecord
from quorumlog_cli.commands.records.produce import Shape, record_of
from quorumlog_cli.terminal.errors import CliError
from quorumlog_cli.terminal.places import Range, parse_places
from quorumlog_cli.terminal.records_text import (
    BadFormat,
    BadLine,
    compile_format,
    from_json_line,
    parse_delimiter,
    to_json_line,
)
from tests.parts import few

RECORD = ConsumedRecord("orders", 2, 41, 1_700_000_000_000, b"k", b"v\xff", (("a", b"1"), ("b", None)))
EMPTY = ConsumedRecord("orders", 0, 0, -1, None, None, ())

FORMATS = [
    ("the value", "%s\n", b"v\xff\n", b"\n"),
    ("its place", "%t-%p@%o", b"orders-2@41", b"orders-0@0"),
    ("key and lengths", "%k:%K:%S", b"k:1:2", b":-1:-1"),
    ("headers and time", "%h %T", b"a=1,b=NULL 1700000000000", b" -1"),
    ("escapes", r"\t\n\\%%\x41", b"\t\n\\%A", b"\t\n\\%A"),
    ("lengths are of bytes", "%V %R", b"2 \0\0\0\2", b"-1 \xff\xff\xff\xff"),
    ("kcat's short escape", r"\x9|%v", b"\t|v\xff", b"\t|"),
    ("nothing special", "é", "é".encode(), "é".encode()),
]


@pytest.mark.parametrize(("text", "want", "want_empty"), [c[1:] for c in FORMATS], ids=[c[0] for c in FORMATS])
def test_format(text: str, want: bytes, want_empty: bytes) -> None:
    render = compile_format(text)
    assert (render(RECORD), render(EMPTY)) == (want, want_empty)


def test_lengths_are_counted_in_bytes() -> None:
    record = replace(RECORD, key="clé".encode(), value="日本".encode())
    assert compile_format("%K %S")(record) == b"4 6"


@pytest.mark.parametrize("text", ["%q", "a%", "b\\", r"\q"])
def test_an_unknown_format_is_refused(text: str) -> None:
    with pytest.raises(BadFormat):
        compile_format(text)


data = st.one_of(st.none(), st.binary(max_size=8), st.text(max_size=4).map(str.encode))


@settings(max_examples=few(50))
@given(key=data, value=data, headers=st.lists(st.tuples(st.text(max_size=3), data), max_size=3))
def test_a_json_line_carries_every_record_back(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    line = to_json_line(ConsumedRecord("t", 0, 7, 5, key, value, tuple(headers)))
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert from_json_line(line) == {"key": key, "value": value, "headers": headers, "timestamp_ms": 5}


def test_a_json_value_that_is_not_a_string_is_stored_as_json() -> None:
    assert from_json_line(b'{"value": {"a": [1]}}')["value"] == json.dumps({"a": [1]}).encode()


@pytest.mark.parametrize("line", [b"", b"hi", b"[1]", b'{"value_base64": "%%"}', b'{"headers": [{}]}'])
def test_a_line_that_is_not_a_record_is_refused(line: bytes) -> None:
    with pytest.raises(BadLine):
        from_json_line(line)


NOW = 1_000_000_000
PLACES = [
    ("by default all", [], False, Range("earliest")),
    ("to the end", [], True, Range("earliest", stop="latest")),
    ("an offset", ["47"], False, Range(47)),
    ("the last three", ["-3"], False, Range("latest", last=3)),
    ("the end", ["end"], False, Range("latest")),
    ("since", ["@1000"], False, Range("@1000")),
    ("kcat's span", ["s@1000", "e@2000"], True, Range("@1000", stop="@2000")),
    ("ago", ["@-2h"], False, Range(f"@{NOW - 7_200_000}")),
    ("a date", ["@1970-01-02"], False, Range("@86400000")),
    ("a moment with its zone", ["@1970-01-01T01:00:00+01:00"], False, Range("@0")),
    ("the later one wins", ["beginning", "end"], False, Range("latest")),
]


@pytest.mark.parametrize(("texts", "to_end", "want"), [c[1:] for c in PLACES], ids=[c[0] for c in PLACES])
def test_places(texts: list[str], to_end: bool, want: Range) -> None:
    assert parse_places(texts, to_end=to_end, now_ms=NOW) == want


@pytest.mark.parametrize("text", ["sideways", "@noon", "e@", "@", "1.5"])
def test_an_invalid_position_is_refused(text: str) -> None:
    with pytest.raises(CliError):
        parse_places([text], to_end=False, now_ms=NOW)


REFUSED = {
    b'{"key":"u1","name":"Alice B."}': 'unknown field "name"',
    b'{"id":7,"name":"Bob"}': 'unknown field "id"',
    b'{"value":"v","partition":1,"when":2}': 'unknown field "when"',
    b'{"key":"u1"}': '"value": null',
    b"{}": '"value": null',
    b'{"key":"u1","payload":"v"}': 'it is called "value" here',
    b'{"value":"v","ts":5}': 'it is called "timestamp" here',
    b'{"value":"a","value":"b"}': '"value" comes twice',
    b'{"value":"a","value_base64":"YQ=="}': "both there",
    b'{"value_base64":7}': "not a string",
    b'{"value":NaN}': "NaN is not JSON",
    b'{"value":1e999}': "not JSON compliant",
    b'{"value":"\\ud800"}': "surrogates not allowed",
    b'{"value":"v","timestamp":"noon"}': '"timestamp" is not a number',
    b'{"value":"v","timestamp":true}': '"timestamp" is not a number',
    b'{"value":"v","timestamp":-2}': '"timestamp" is not a number',
    b'{"value":"v","headers":{"a":"1"}}': '"headers" is not a list',
    b'{"value":"v","headers":[{"name":7,"value":"1"}]}': "a header is not",
    b'{"value":"v","headers":[{"name":"a","text":"1"}]}': 'unknown field "text"',
    b'{"value":' + b"[" * 100_000 + b"]" * 100_000 + b"}": "recursion",
}


@pytest.mark.parametrize(("line", "want"), list(REFUSED.items()), ids=list(map(str, range(len(REFUSED)))))
def test_a_line_without_a_record_says_what_is_wrong(line: bytes, want: str) -> None:
    with pytest.raises(BadLine) as refused:
        from_json_line(line)
    assert want in str(refused.value)


def test_null_is_a_value_when_it_is_written_out() -> None:
    assert from_json_line(b'{"key":"u1","value":null}') == {
        "key": b"u1",
        "value": None,
        "headers": [],
        "timestamp_ms": None,
    }


DELIMITERS = [(":", b":"), (r"\t", b"\t"), (r"\n\r", b"\n\r"), (r"\x1f", b"\x1f"), (r"\x9", b"\t"), (r"\|", b"\\|")]
DELIMITERS += [("=>", b"=>"), ("é", "é".encode()), ("\t", b"\t"), ("\\", b"\\")]


@pytest.mark.parametrize(("text", "want"), DELIMITERS)
def test_a_delimiter_has_kcats_escapes(text: str, want: bytes) -> None:
    assert parse_delimiter(text) == want


@pytest.mark.parametrize("text", ["", r"\x", r"\xg"])
def test_an_illegal_delimiter_is_refused(text: str) -> None:
    with pytest.raises(BadFormat):
        parse_delimiter(text)


TAB = Shape(delimiter=b"\t", key=None, null=False, headers=[], as_json=False)
LINES = [
    ("key and value", TAB, b"k1\tv1", b"k1", b"v1"),
    ("an empty key", TAB, b"\tv1", b"", b"v1"),
    ("a value with the delimiter", TAB, b"k1\tv\t1", b"k1", b"v\t1"),
    ("without the delimiter, with a key for all", replace(TAB, key=b"all"), b"v2", b"all", b"v2"),
    ("no delimiter was asked for", replace(TAB, delimiter=None), b"k1\tv1", None, b"k1\tv1"),
    ("nulls", replace(TAB, null=True), b"\t", None, None),
]


@pytest.mark.parametrize(("shape", "line", "key", "value"), [c[1:] for c in LINES], ids=[c[0] for c in LINES])
def test_a_line_of_text_as_a_record(shape: Shape, line: bytes, key: bytes | None, value: bytes | None) -> None:
    assert record_of(line, shape) == {"key": key, "value": value, "headers": []}


def test_a_line_without_the_delimiter_is_no_record() -> None:
    with pytest.raises(BadLine, match="delimiter"):
        record_of(b"v2", TAB)

"""Records as text, in both directions, and positions where reading starts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.client.consumer import ConsumedRecord
from quorumlog_cli.errors import CliError
from quorumlog_cli.places import Range, parse_places
from quorumlog_cli.records_text import BadFormat, BadLine, compile_format, from_json_line, to_json_line
from tests.parts import few

RECORD = ConsumedRecord("orders", 2, 41, 1_700_000_000_000, b"k", b"v\xff", (("a", b"1"), ("b", None)))
EMPTY = ConsumedRecord("orders", 0, 0, -1, None, None, ())

FORMATS = [
    ("the value", "%s\n", b"v\xff\n", b"\n"),
    ("its place", "%t-%p@%o", b"orders-2@41", b"orders-0@0"),
    ("key and lengths", "%k:%K:%S", b"k:1:2", b":-1:-1"),
    ("headers and time", "%h %T", b"a=1,b=NULL 1700000000000", b" -1"),
    ("escapes", r"\t\n\\%%\x41", b"\t\n\\%A", b"\t\n\\%A"),
    ("nothing special", "é", "é".encode(), "é".encode()),
]


@pytest.mark.parametrize(("text", "want", "want_empty"), [c[1:] for c in FORMATS], ids=[c[0] for c in FORMATS])
def test_format(text: str, want: bytes, want_empty: bytes) -> None:
    render = compile_format(text)
    assert (render(RECORD), render(EMPTY)) == (want, want_empty)


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

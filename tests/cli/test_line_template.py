"""`produce --format`: a line is taken apart as `consume -f` prints it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.client.consumer import ConsumedRecord
from quorumlog_cli.commands.records.produce import Shape, record_of
from quorumlog_cli.terminal.line_template import compile_template
from quorumlog_cli.terminal.records_text import BadFormat, BadLine, compile_format
from tests.parts import few

LINES = [
    ("key and value", "%k:%s", b"a:b:c", {"key": b"a", "value": b"b:c"}),
    ("an empty key", "%k:%s", b":b", {"key": b"", "value": b"b"}),
    ("rpk's letter", r"%k\t%v", b"a\tb", {"key": b"a", "value": b"b"}),
    ("value first", r"%s\x1f%k", b"v\x1fk", {"key": b"k", "value": b"v"}),
    ("headers", "%h %s", b"a=1,b=NULL,c v", {"headers": [("a", b"1"), ("b", None), ("c", None)], "value": b"v"}),
    ("no headers", "%h %s", b" v", {"headers": [], "value": b"v"}),
    ("place and time", "%p@%T%%%s", b"3@1700%x", {"partition": 3, "timestamp_ms": 1700, "value": b"x"}),
    ("numbers need nothing between", "%p%s", b"12x", {"partition": 12, "value": b"x"}),
    ("text around", "[%s]", b"[v]", {"value": b"v"}),
]


@pytest.mark.parametrize(("template", "line", "want"), [one[1:] for one in LINES], ids=[one[0] for one in LINES])
def test_a_line_is_taken_apart(template: str, line: bytes, want: dict[str, Any]) -> None:
    assert compile_template(template)(line) == want


@pytest.mark.parametrize(
    ("template", "line"), [("%k:%s", b"none"), ("%p %s", b"x y"), ("[%s]", b"[v"), ("%h %s", b"=1 v")]
)
def test_a_line_that_does_not_fit(template: str, line: bytes) -> None:
    with pytest.raises(BadLine):
        compile_template(template)(line)


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ("%k", "no %s"),
        ("%k%s", "nothing is between"),
        ("%s %s", "comes twice"),
        ("%q %s", "unknown %q"),
        ("%s%", "single %"),
        (r"%k\q%s", "unknown escape"),
    ],
)
def test_what_is_no_template(template: str, says: str) -> None:
    with pytest.raises(BadFormat, match=says):
        compile_template(template)


def test_the_rest_of_the_options_joins_the_template() -> None:
    shape = Shape(
        delimiter=None, key=None, null=True, headers=[("all", b"1")], as_json=False,
        template=compile_template("%k:%h:%s"), timestamp_ms=9,
    )  # fmt: skip
    assert record_of(b"k:a=2:", shape) == {
        "key": b"k", "value": None, "headers": [("a", b"2"), ("all", b"1")], "timestamp_ms": 9,
    }  # fmt: skip


word = st.binary(max_size=6).map(lambda data: data.replace(b"\t", b"").replace(b"\n", b""))


@settings(max_examples=few(60))
@given(key=word, value=word, partition=st.integers(0, 9), when_ms=st.integers(0, 2**50))
def test_it_reads_what_consume_prints(key: bytes, value: bytes, partition: int, when_ms: int) -> None:
    text = r"%p\t%T\t%k\t%s"
    line = compile_format(text)(ConsumedRecord("t", partition, 0, when_ms, key, value, ()))
    found = compile_template(text)(line)
    assert found == {"key": key, "value": value, "partition": partition, "timestamp_ms": when_ms}

"""Names and properties: round trips, the grammar's edges, and any bytes at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog_storage.directory.meta_properties import MetaProperties
from quorumlog_storage.files.names import (
    BadDirectoryName,
    PartitionName,
    index_name,
    log_name,
    marked_directory,
    parse_directory,
    parse_segment_name,
    time_index_name,
    transaction_index_name,
)
from quorumlog_storage.files.properties import BadProperties, parse_properties, render_properties
from tests.rules import rule

HEX = "0123456789abcdef" * 2


@rule("storage 1.1")
def test_segment_names() -> None:
    assert log_name(41) == "00000000000000000041.log"
    assert parse_segment_name(log_name(41)) == (41, ".log")
    assert parse_segment_name(index_name(2**63 - 1)) == (2**63 - 1, ".index")
    assert parse_segment_name(time_index_name(41)) == (41, ".timeindex")
    assert parse_segment_name(transaction_index_name(41)) == (41, ".txnindex")
    for other in ("41.log", "00000000000000000041.other", "99999999999999999999.log", "0000000000000000004x.log"):
        assert parse_segment_name(other) is None
    assert parse_segment_name("00000000000000000041.log\n") is None


DIRECTORIES = [
    ("t-0", PartitionName("t", 0)),
    ("a-b-12", PartitionName("a-b", 12)),
    (f"t-0.{HEX}-delete", PartitionName("t", 0, "delete")),
    (f"a.b-7.{HEX}-stray", PartitionName("a.b", 7, "stray")),
    (f"t-0.{HEX}-future", PartitionName("t", 0, "future")),
]


@rule("storage 10.11")
@pytest.mark.parametrize(("name", "want"), DIRECTORIES)
def test_directory_names(name: str, want: PartitionName) -> None:
    assert parse_directory(name) == want


@rule("storage 10.11")
@pytest.mark.parametrize(
    "name", ["t", "-0", "t-", "t-x", "t-0-delete", "t-0.12-delete", "t-٣", "t-0\n", "a b-0", "t-99999999999", "", "t--"]
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(BadDirectoryName):
        parse_directory(name)


@rule("storage 7.12", "log 8.7")
@given(st.integers(1, 249), st.integers(0, 2**31 - 1))
def test_a_marked_name_fits_and_keeps_the_partition(length: int, partition: int) -> None:
    name = marked_directory("t" * length, partition, bytes(16), "delete")
    assert len(name) <= 255
    assert parse_directory(name).partition == partition


@given(st.text(max_size=20))
def test_any_name_is_a_partition_or_a_typed_error(name: str) -> None:
    try:
        found = parse_directory(name)
    except BadDirectoryName:
        return
    assert name.startswith(found.topic + "-")


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=12), max_size=5))
def test_properties_read_back_equal(properties: dict[str, str]) -> None:
    assert parse_properties("f", render_properties(properties, "a\nb")) == properties


PROPERTIES = [
    ("spaces and separators", "  a = 1\nb:2\nc 3\nd\n", {"a": "1", "b": "2", "c": "3", "d": ""}),
    ("comments", "# x=1\n ! y=2\n\nz=3", {"z": "3"}),
    ("escapes", "a\\=b=c\\:d\\u0041\\t\\q", {"a=b": "c:dA\tq"}),
    ("a line goes on", "a=1\\\n   2\\\\\nb=3\\", {"a": "12\\", "b": "3"}),
    ("the last one counts", "a=1\ra=2\r\n", {"a": "2"}),
    ("a comment sign inside a line that goes on", "a=1\\\n#2", {"a": "1#2"}),
]


@rule("storage 10.10")
@pytest.mark.parametrize(("text", "want"), [c[1:] for c in PROPERTIES], ids=[c[0] for c in PROPERTIES])
def test_properties_as_java_reads_them(text: str, want: dict[str, str]) -> None:
    assert parse_properties("f", text.encode()) == want


@given(st.one_of(st.binary(max_size=60), st.text("\\u0=: \n#aé", max_size=40).map(str.encode)))
def test_any_bytes_are_properties_or_a_typed_error(content: bytes) -> None:
    for parse in (parse_properties, MetaProperties.parse):
        try:
            parse("f", content)
        except BadProperties as error:
            assert error.line >= 1

"""The bytes before a value: against Confluent's own code, and damaged."""

from __future__ import annotations

from uuid import UUID

import pytest
from confluent_kafka.schema_registry.serde import SchemaId
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.schemas.errors import BadFrame
from quorumlog.schemas.framing import MAX_ID, MAX_INDEX, MAX_LEVELS, prefix, read_frame, read_indexes, write_indexes

INDEXES = st.lists(st.integers(0, 2**20), min_size=1, max_size=MAX_LEVELS)


@given(st.integers(0, MAX_ID), INDEXES, st.binary())
def test_confluents_client_writes_the_same(schema_id: int, indexes: list[int], rest: bytes) -> None:
    ours = prefix(schema_id) + write_indexes(tuple(indexes))
    assert SchemaId("PROTOBUF", schema_id, None, indexes).id_to_bytes() == ours
    frame = read_frame(ours + rest)
    assert frame.schema == schema_id and read_indexes(frame.rest) == (tuple(indexes), rest)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_frame_or_an_error(data: bytes) -> None:
    try:
        frame = read_frame(data)
        indexes, _ = read_indexes(frame.rest)
    except BadFrame:
        return
    assert data[0] == 0 and isinstance(frame.schema, int) and all(0 <= one <= MAX_INDEX for one in indexes)


def test_a_header_comes_before_the_prefix() -> None:
    guid = UUID(int=7)
    value = SchemaId("PROTOBUF", None, str(guid), [1, 0]).guid_to_bytes()
    frame = read_frame(b"message", [("__key_schema_id", b"\0\0\0\0\1"), ("__value_schema_id", value)])
    assert frame.schema == guid.bytes and read_indexes(frame.rest) == ((1, 0), b"message")
    assert read_frame(b"k", [("__key_schema_id", b"\0\0\0\0\1")], "key").schema == 1


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "no bytes"),
        (b"\0\0\0\0", "4 bytes"),
        (b'{"a": 1}', "first byte is 123"),
        (b"\0\xff\xff\xff\xff", "no id"),
        (b"\1" + bytes(16), "only a header"),
    ],
)
def test_what_is_no_frame_says_why(data: bytes, word: str) -> None:
    with pytest.raises(BadFrame, match=word):
        read_frame(data)

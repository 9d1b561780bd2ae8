"""Reading only offset, key and value of records: the same as the plain codec finds, and refuses."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.records import BatchHeader, CorruptRecords, Record, encode_batch, headers, iter_batch
from quorumlog.records.rowwise.keyed import Keyed, keyed_records
from tests.parts import few
from tests.records.record_strategies import batches, damaged, with_payload

RECORD = bytes.fromhex("10000000066b6579027600")  # key "key", value "v"


def plain(data: bytes, header: BatchHeader) -> list[Keyed] | str:
    try:
        return [(record.offset, record.key, record.value) for record in iter_batch(data, header)]
    except CorruptRecords as error:
        return error.reason


def keyed(data: bytes, header: BatchHeader) -> list[Keyed] | str:
    try:
        return list(keyed_records(data, header))
    except CorruptRecords as error:
        return error.reason


@given(batches())
def test_it_finds_what_the_plain_codec_finds(drawn: tuple[list[Record], bytes]) -> None:
    written, data = drawn
    (header,) = headers(data)
    assert keyed(data, header) == [(record.offset, record.key, record.value) for record in written]


@settings(max_examples=few(500))
@given(st.data())
def test_it_refuses_what_the_plain_codec_refuses(data: st.DataObject) -> None:
    _, batch = data.draw(batches())
    broken = data.draw(damaged(batch, first=17))
    try:
        found = headers(broken, partial_tail=True)
    except CorruptRecords:
        return
    for header in found:
        assert keyed(broken, header) == plain(broken, header)


@settings(max_examples=few(1_000))
@given(st.lists(st.binary(max_size=12) | st.just(RECORD), max_size=4).map(b"".join), st.integers(0, 5))
def test_it_reads_any_bytes_as_the_plain_codec(payload: bytes, count: int) -> None:
    data = with_payload(payload, count)
    (header,) = headers(data)
    assert keyed(data, header) == plain(data, header)


@pytest.mark.parametrize("base", [-(2**63), 2**63 - 1], ids=["lowest", "highest"])
def test_a_timestamp_beyond_64_bits_is_refused(base: int) -> None:
    payload = bytes.fromhex("0c00" + ("01" if base < 0 else "02") + "00010100")
    data = with_payload(payload, 1, base_timestamp=base)
    (header,) = headers(data)
    assert keyed(data, header) == plain(data, header) == "a timestamp beyond 64 bits"


@pytest.mark.parametrize("size", [0, 62, 63, 64, 127, 128, 8_190, 8_192, 70_000])
def test_keys_and_values_of_any_length(size: int) -> None:
    """Around each length at which a varint takes one byte more."""
    written = [Record(at, 5, bytes(size), bytes(size + more)) for at, more in ((0, 0), (70, 1), (9_000, 2))]
    data = encode_batch(written)
    assert keyed(data, headers(data)[0]) == [(record.offset, record.key, record.value) for record in written]

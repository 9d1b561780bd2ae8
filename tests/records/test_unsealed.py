"""Sealing late gives the same bytes as sealing at once, and a batch that was handed out never changes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from record_strategies import records as drawn_records

from quorumlog.records import Codec, Record, UnsealedBatch, encode_batch, headers, lay_out_rows, verify_crc
from quorumlog.records.columnar import lay_out

NOW_MS = 1_700_000_000_000
numbers = st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1), st.integers(0, 2**31 - 1))


def laid_out(values: list[bytes | None], codec: Codec = Codec.NONE, max_batch_bytes: int = 200) -> list[UnsealedBatch]:
    column = pa.array(values, pa.binary())
    return list(lay_out(None, column, NOW_MS, codec=codec, max_batch_bytes=max_batch_bytes))


@pytest.mark.parametrize("codec", Codec)
@given(values=st.lists(st.one_of(st.none(), st.binary(max_size=60)), min_size=1, max_size=20), number=numbers)
def test_a_batch_sealed_late_is_the_batch_encoded_at_once(
    codec: Codec, values: list[bytes | None], number: tuple[int, int, int]
) -> None:
    producer_id, epoch, sequence = number
    first = 0
    for batch in laid_out(values, codec):
        rows = [Record(index, NOW_MS, None, value) for index, value in enumerate(values[first : first + batch.count])]
        want = encode_batch(
            rows, codec=codec, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, base_offset=0
        )
        assert batch.seal(producer_id, epoch, sequence) == want
        first += batch.count
        sequence = (sequence + batch.count) % 2**31
    assert first == len(values)


@given(drawn_records(gaps=False), st.sampled_from(Codec), numbers)
def test_rows_sealed_are_the_batch_of_their_records(
    records: list[Record], codec: Codec, number: tuple[int, int, int]
) -> None:
    rows = [(record.timestamp_ms, record.key, record.value, record.headers) for record in records]
    producer_id, epoch, sequence = number
    want = encode_batch(
        records, codec=codec, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, base_offset=0
    )
    assert lay_out_rows(rows, codec).seal(*number) == want


@given(st.lists(numbers, min_size=2, max_size=4))
def test_a_batch_that_was_handed_out_does_not_change(given_numbers: list[tuple[int, int, int]]) -> None:
    (batch,) = laid_out([b"a", b"b"])
    sealed = [batch.seal(*number) for number in given_numbers]
    for number, data in zip(given_numbers, sealed, strict=True):
        (header,) = headers(data)
        verify_crc(data, header)
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == number


def test_the_first_seal_copies_nothing() -> None:
    (batch,) = laid_out([b"a"])
    assert batch.seal(1, 0, 0) is batch.buffer
    assert batch.seal(1, 1, 0) is not batch.buffer

"""The columnar codec against the plain one: equal bytes when encoding, equal records or refusals when decoding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from record_strategies import BAD_PAYLOADS, NOW_MS, batches, damaged, records, small_bytes, with_payload

from quorumlog.errors import ApiError
from quorumlog.records import (
    NO_PRODUCER,
    NO_SEQUENCE,
    Buffer,
    Codec,
    CorruptRecords,
    Record,
    decode_batch,
    encode_batch,
    headers,
    partition_for_key,
    validate_produced,
)
from quorumlog.records.columnar import (
    NO_KEY,
    SCHEMA,
    SCHEMA_WITH_HEADERS,
    SIZE,
    decode_columns,
    lay_out,
    partition_keys,
)
from quorumlog.records.columnar.form import decoder, encoder, partitioner
from quorumlog.records.control import KRaftVersion, control_batch
from quorumlog.records.format.batch import BATCH_OVERHEAD
from tests.parts import few


@pytest.fixture(autouse=True, scope="module", params=["vectors", "kernels"])
def form_in_use(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test runs with both forms of the codec."""
    for form in (decoder, encoder, partitioner):
        form.compiled = request.param == "kernels"
    yield
    for form in (decoder, encoder, partitioner):
        form.compiled = None


EVERYTHING: dict[str, Any] = {"from_offset": 0, "to_offset": 2**63 - 1}
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
BYTES_TYPES = [pa.binary(), pa.large_binary()]


def header_rows(rows: list[Record]) -> list[list[dict[str, Any]]]:
    return [[{"key": name, "value": value} for name, value in row.headers] for row in rows]


@dataclass(frozen=True, slots=True)
class Sealed:
    """A batch at base offset 0."""

    data: bytes
    count: int  # of records


def sealed(
    *columns: Any, producer_id: int = NO_PRODUCER, producer_epoch: int = -1, base_sequence: int = NO_SEQUENCE,
    **options: Any,
) -> list[Sealed]:  # fmt: skip
    """Batches as a producer sends them: sequences continue and wrap. columns, options: those of lay_out."""
    found: list[Sealed] = []
    for batch in lay_out(*columns, **options):
        data = batch.seal(producer_id, producer_epoch, base_sequence)
        found.append(Sealed(bytes(data), batch.count))
        if base_sequence != NO_SEQUENCE:
            base_sequence = (base_sequence + batch.count) & 0x7FFFFFFF
    return found


def encoded(rows: list[Record], kind: Any = BYTES_TYPES[0], **options: Any) -> list[Sealed]:
    return sealed(
        pa.array([row.key for row in rows], kind),
        pa.array([row.value for row in rows], kind),
        np.array([row.timestamp_ms for row in rows], np.int64),
        pa.array(header_rows(rows), HEADERS),
        **options,
    )


def as_records(batch: pa.RecordBatch) -> list[Record]:
    batch.validate(full=True)
    return [
        Record(
            row["offset"],
            row["timestamp"],
            row["key"],
            row["value"],
            tuple((header["key"], header["value"]) for header in row["headers"]),
        )
        for row in batch.to_pylist()
    ]


def plain(buf: Buffer, from_offset: int = 0, to_offset: int = 2**63 - 1) -> list[Record]:
    """The oracle of decode_columns."""
    return [
        record
        for header in headers(buf)
        if not header.is_control
        for record in decode_batch(buf, header)
        if from_offset <= record.offset < to_offset
    ]


@given(records(gaps=False), st.sampled_from(BYTES_TYPES), st.sampled_from(Codec))
def test_one_batch_has_the_bytes_of_the_plain_builder(rows: list[Record], kind: Any, codec: Codec) -> None:
    fields: dict[str, Any] = {"producer_id": 9, "producer_epoch": 2, "base_sequence": 5, "transactional": True}
    (batch,) = encoded(rows, kind, codec=codec, **fields)
    assert batch == Sealed(encode_batch(rows, codec=codec, **fields), len(rows))


@given(records(gaps=False, max_size=20), st.integers(61, 900), st.integers(0, 2**31 - 1))
def test_splitting_keeps_every_record_and_the_limit(rows: list[Record], limit: int, sequence: int) -> None:
    first = 0
    for batch in encoded(rows, max_batch_bytes=limit, producer_id=1, producer_epoch=0, base_sequence=sequence):
        part = [
            Record(index, row.timestamp_ms, row.key, row.value, row.headers)
            for index, row in enumerate(rows[first : first + batch.count])
        ]
        want = encode_batch(part, producer_id=1, producer_epoch=0, base_sequence=(sequence + first) & 0x7FFFFFFF)
        assert batch.data == want
        assert len(batch.data) <= limit or batch.count == 1
        first += batch.count
        if first < len(rows):  # full: the next record would not have fitted
            next_row = Record(len(part), *_fields(rows[first]))
            assert len(encode_batch([*part, next_row])) > limit
    assert first == len(rows)


def _fields(row: Record) -> tuple[Any, ...]:
    return row.timestamp_ms, row.key, row.value, row.headers


def test_many_batches_share_the_scratch_memory() -> None:
    rows = [Record(i, NOW_MS + i, b"%d" % i, bytes([i % 256]) * (i % 900)) for i in range(12_000)]
    found = encoded(rows, max_batch_bytes=20_000)
    assert sum(len(batch.data) for batch in found) > 4 << 20
    values = [record.value for batch in found for record in plain(batch.data)]
    assert values == [row.value for row in rows]


@given(st.lists(small_bytes, min_size=1, max_size=30), st.data())
def test_slices_chunks_and_other_types_of_columns(values: list[bytes | None], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(values)))
    end = data.draw(st.integers(start, len(values)))
    rows = [[{"key": str(i), "value": value}] * (i % 3) if i % 4 else None for i, value in enumerate(values)]
    want = [
        (value, tuple((h["key"], h["value"]) for h in row or []))
        for value, row in zip(values[start:end], rows[start:end], strict=True)
    ]
    base = pa.array(values, pa.binary())
    for column in (base, pa.chunked_array([base[:2], base[2:]]), base.cast(pa.binary_view()), base.dictionary_encode()):
        found = sealed(None, column[start:end], NOW_MS, pa.array(rows, HEADERS)[start:end])
        read = [record for batch in found for record in plain(batch.data)]
        assert [(record.value, record.headers) for record in read] == want
        assert all(record.key is None for record in read)


@given(st.lists(st.tuples(st.booleans(), st.lists(small_bytes, max_size=3)), min_size=1, max_size=12))
def test_entries_that_a_null_list_of_headers_has_are_left_out(rows: list[tuple[bool, list[bytes | None]]]) -> None:
    """Arrow allows a null list to have entries."""
    entries = [(f"{row}-{i}", value) for row, (_, values) in enumerate(rows) for i, value in enumerate(values)]
    names, values = (
        pa.array([entry[i] for entry in entries], kind) for i, kind in ((0, pa.string()), (1, pa.binary()))
    )
    structs = pa.StructArray.from_arrays([names, values], fields=list(HEADERS.value_type))
    offsets = pa.array(np.cumsum([0, *(len(values) for _, values in rows)]), pa.int32())
    mask = pa.array([is_null for is_null, _ in rows])
    lists = pa.ListArray.from_arrays(offsets, structs, type=HEADERS, mask=mask)
    found = sealed(None, pa.array([b"v"] * len(rows)), NOW_MS, lists)
    assert [record.headers for batch in found for record in plain(batch.data)] == [
        () if is_null else tuple((f"{row}-{i}", value) for i, value in enumerate(values))
        for row, (is_null, values) in enumerate(rows)
    ]


def test_text_and_time_columns() -> None:
    times = pa.array([NOW_MS * 1000 + 1, NOW_MS * 1000], pa.timestamp("us", "UTC"))
    (batch,) = sealed(pa.array(["ä", None]), pa.array(["x", "y"], pa.large_string()), times)
    assert plain(batch.data) == [
        Record(0, NOW_MS, "ä".encode(), b"x"),
        Record(1, NOW_MS, None, b"y"),
    ]


def test_no_rows() -> None:
    assert sealed(None, pa.array([], pa.binary()), NOW_MS) == []
    for include in (False, True):
        empty = decode_columns(b"", **EVERYTHING, columns=(SCHEMA_WITH_HEADERS if include else SCHEMA).names)
        assert empty.num_rows == 0 and empty.schema == (SCHEMA_WITH_HEADERS if include else SCHEMA)


@pytest.mark.parametrize(
    ("times", "rows", "code"),
    [
        (pa.array([-2]), None, "INVALID_TIMESTAMP"),
        (np.array([2**63 - 1]), None, "INVALID_TIMESTAMP"),
        (pa.array([None], pa.int64()), None, "INVALID_TIMESTAMP"),
        (NOW_MS, [[{"key": None, "value": b""}]], "INVALID_RECORD"),
        (NOW_MS, [[None]], "INVALID_RECORD"),
    ],
)
def test_refused_columns(times: Any, rows: Any, code: str) -> None:
    with pytest.raises(ApiError, match=code):
        sealed(None, pa.array([b"v"]), times, None if rows is None else pa.array(rows, HEADERS))


@given(st.lists(batches(), max_size=4), st.integers(0, 2**41), st.integers(0, 2**41))
def test_decoding_gives_the_records_of_the_plain_reader(
    drawn: list[tuple[list[Record], bytes]], one: int, other: int
) -> None:
    drawn = sorted(drawn, key=lambda pair: pair[0][0].offset)
    marker = control_batch([KRaftVersion(1)], base_offset=7, timestamp_ms=NOW_MS)
    buf = bytearray(marker.join(data for _, data in drawn) + marker)
    for bounds in ((0, 2**63 - 1), (min(one, other), max(one, other))):
        read = decode_columns(buf, from_offset=bounds[0], to_offset=bounds[1], columns=SCHEMA_WITH_HEADERS.names)
        assert as_records(read) == plain(buf, *bounds)
        short = decode_columns(memoryview(buf), from_offset=bounds[0], to_offset=bounds[1])
        assert short.schema == SCHEMA and short.equals(read.select(SCHEMA.names))


@given(records(min_size=2), st.data())
def test_only_the_wanted_columns_and_the_sizes_of_records(rows: list[Record], data: st.DataObject) -> None:
    codec = data.draw(st.sampled_from([Codec.NONE, Codec.GZIP]))
    buf = encode_batch(rows, base_offset=rows[0].offset, codec=codec)
    bounds = {"from_offset": rows[0].offset, "to_offset": rows[-1].offset + 1}
    whole = decode_columns(buf, **bounds, columns=[*SCHEMA_WITH_HEADERS.names, SIZE])
    flat = encode_batch(rows, base_offset=rows[0].offset)
    assert sum(whole.column(SIZE).to_pylist()) == len(flat) - BATCH_OVERHEAD
    kept = data.draw(st.lists(st.sampled_from(whole.schema.names), min_size=1, unique=True))
    read = decode_columns(buf, **{**bounds, "from_offset": rows[1].offset}, columns=kept)
    assert read.equals(whole.slice(1).select([name for name in whole.schema.names if name in kept]))


@given(records(min_size=2), st.data())
def test_bounds_cut_inside_a_batch(rows: list[Record], data: st.DataObject) -> None:
    buf = encode_batch(rows, base_offset=rows[0].offset)
    low = data.draw(st.integers(rows[0].offset - 1, rows[-1].offset + 1))
    high = data.draw(st.integers(low, rows[-1].offset + 2))
    read = decode_columns(buf, from_offset=low, to_offset=high, columns=SCHEMA_WITH_HEADERS.names)
    assert as_records(read) == [row for row in rows if low <= row.offset < high]


def same_answer(buf: bytes) -> None:
    """Both readers give the same records, or both refuse. Checksums are off, because they would hide other damage."""
    chosen = [header for header in headers(buf, partial_tail=True) if not header.is_control]
    try:
        want: list[Record] | None = [
            record for header in chosen for record in decode_batch(buf, header, max_decompressed_bytes=1 << 20)
        ]
    except CorruptRecords:
        want = None
    lowest = -(2**63)
    try:
        read = decode_columns(
            buf, from_offset=lowest, to_offset=2**63 - 1, columns=SCHEMA_WITH_HEADERS.names, batches=chosen,
            check_crc=False, max_decompressed_bytes=1 << 20,
        )  # fmt: skip
    except CorruptRecords as error:
        assert want is None, error
        return
    assert as_records(read) == want


@settings(max_examples=few(400))
@given(st.data())
def test_damaged_batches_get_the_same_answer(data: st.DataObject) -> None:
    _, batch = data.draw(batches())
    try:
        same_answer(data.draw(damaged(batch, first=17)))
    except CorruptRecords:
        return  # the header is damaged: neither reader is called


@settings(max_examples=few(300))
@given(st.data())
def test_damaged_records_get_the_same_answer(data: st.DataObject) -> None:
    _, batch = data.draw(batches())
    payload = data.draw(damaged(batch[61:]))
    out = bytearray(batch[:61]) + payload
    out[8:12] = (49 + len(payload)).to_bytes(4, "big")
    same_answer(bytes(out))


@pytest.mark.parametrize(("payload", "count"), [c[1:] for c in BAD_PAYLOADS], ids=[c[0] for c in BAD_PAYLOADS])
def test_bad_records_are_refused(payload: str, count: int) -> None:
    data = with_payload(bytes.fromhex(payload), count)
    if count == 0:  # the records are not read
        assert decode_columns(data, **EVERYTHING).num_rows == 0
        return
    with pytest.raises(CorruptRecords):
        decode_columns(data, **EVERYTHING)
    same_answer(data)


def test_a_flipped_bit_is_found_by_the_checksum() -> None:
    buf = bytearray(encode_batch([Record(0, NOW_MS, b"k", b"value")]))
    buf[-3] ^= 1
    with pytest.raises(CorruptRecords, match="checksum"):
        decode_columns(buf, **EVERYTHING)
    assert decode_columns(buf, **EVERYTHING, check_crc=False).num_rows == 1


def test_batches_left_out_are_not_read() -> None:
    first = encode_batch([Record(0, NOW_MS, b"k", b"aborted")])
    second = encode_batch([Record(1, NOW_MS, b"k", b"kept")], base_offset=1)
    buf = first + second
    read = decode_columns(buf, **EVERYTHING, batches=headers(buf)[1:])
    assert read["value"].to_pylist() == [b"kept"]


def test_a_header_name_that_is_not_utf8_is_repaired_as_by_the_plain_reader() -> None:
    good = encode_batch([Record(0, NOW_MS, None, None, (("a", None), ("b", b"x")))])
    at = good.index(b"\x02a") + 1
    same_answer(good[:at] + b"\xff" + good[at + 1 :])


@pytest.mark.parametrize("codec", list(Codec))
def test_what_is_encoded_is_accepted_by_a_broker(codec: Codec) -> None:
    for batch in encoded([Record(i, NOW_MS, b"k", b"v" * 50) for i in range(100)], codec=codec, max_batch_bytes=999):
        assert validate_produced(batch.data, 10_000)[0].count == batch.count


@given(st.lists(st.one_of(st.none(), st.binary(max_size=20)), max_size=20), st.integers(1, 50), st.integers(0, 20))
def test_partitions_of_keys(keys: list[bytes | None], partitions: int, start: int) -> None:
    want = [NO_KEY if key is None else partition_for_key(key, partitions) for key in keys]
    for kind in BYTES_TYPES:
        assert partition_keys(pa.array(keys, kind)[start:], partitions).tolist() == want[start:]


def test_partitions_of_no_keys() -> None:
    assert partition_keys(pa.nulls(3), 4).tolist() == [NO_KEY] * 3
    assert partition_keys(pa.array(["foobar"]), 10).tolist() == [partition_for_key(b"foobar", 10)]

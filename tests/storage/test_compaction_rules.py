"""Which records and batches stay: a table for records, tombstones over time, transactions, producers, grouping."""

from __future__ import annotations

import pytest
from cleaning_samples import (
    DELETE_RETENTION_MS,
    FIRST_MS,
    add,
    add_marker,
    batches,
    entries,
    reopened,
    run_round,
)
from hypothesis import given
from hypothesis import strategies as st
from storage_samples import disk_with_data

from quorumlog.ids import Offset
from quorumlog.records import Codec, CorruptRecords, Record, decode_batch, encode_batch
from quorumlog.records.format.batch import NO_TIMESTAMP, BatchHeader, parse_header, verify_crc
from quorumlog_storage.cleaning.batch_filter import BatchFilter
from quorumlog_storage.cleaning.batches import SourceFile
from quorumlog_storage.cleaning.group import grouped
from quorumlog_storage.cleaning.keys import KeysSpec, PlainKeys
from quorumlog_storage.cleaning.marks import Marks
from quorumlog_storage.cleaning.offset_map import OffsetMap
from quorumlog_storage.cleaning.outcomes import Outcomes
from quorumlog_storage.cleaning.record_table import NO_KEY, RecordTable
from quorumlog_storage.cleaning.retention import LastWrite, has_passed, is_last_write, kept_records
from quorumlog_storage.log.log import Log
from tests.rules import rule

PRODUCER, OTHER = 1000, 2000
LATER_MS = FIRST_MS + DELETE_RETENTION_MS


# --- one record ---


@rule("storage 9.6")
@pytest.mark.parametrize("has_value", [True, False])
@pytest.mark.parametrize("dropping", [False, True], ids=["before the horizon", "after it"])
@pytest.mark.parametrize(
    ("noted", "latest", "key", "stays"),
    [
        (None, 4, b"k", True),  # behind the end of the map
        (None, 4, None, True),  # also without a key
        (5, 9, b"k", True),  # the newest
        (9, 9, b"k", False),  # an older one
        (None, 9, b"k", True),  # of a key that the dirty part does not name
        (None, 9, None, False),  # no key
    ],
)
def test_a_record(
    noted: Offset | None, latest: Offset, key: bytes | None, stays: bool, dropping: bool, has_value: bool
) -> None:
    offsets = OffsetMap(1_000, 0.9, b"k")
    if noted is not None:
        offsets.put(b"k", noted)
    data = encode_batch([Record(5, 0, key, b"v" if has_value else None, ())], base_offset=5)
    table = RecordTable()
    table.read(data, parse_header(data))
    kept = kept_records(table, 5, offsets, latest, drop_tombstones=dropping)
    is_covered = latest >= 5
    expected = stays and not (dropping and is_covered and not has_value)
    assert kept.records == expected
    assert kept.has_tombstone == (expected and is_covered and not has_value)
    assert kept.keyless == (is_covered and key is None)
    assert kept.ranges == ([0, len(data) - 61] if expected else [])


RECORDS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.binary(max_size=200)),
        st.one_of(st.none(), st.binary(max_size=200)),
        st.integers(1, 20_000),
        st.integers(0, 2**40),
    ),
    max_size=12,
)


@rule("storage 9.6")
@given(RECORDS, st.sampled_from(Codec))
def test_the_table_agrees_with_the_plain_decoder(
    made: list[tuple[bytes | None, bytes | None, int, int]], codec: Codec
) -> None:
    offset, records = 0, []
    for key, value, step, timestamp in made:
        offset += step
        records.append(Record(offset, timestamp, key, value, (("name", b"x" * (step % 200)),)))
    data = encode_batch(records, codec=codec, last_offset_delta=offset + 3)
    header, table = parse_header(data), RecordTable()
    table.read(data, header)
    assert table.count == len(records)
    for row, record in enumerate(decode_batch(data, header)):
        key_at = table.keys[row]
        key = None if key_at == NO_KEY else bytes(table.data[key_at : table.key_ends[row]])
        assert (table.deltas[row], key, bool(table.has_value[row])) == (
            record.offset,
            record.key,
            record.value is not None,
        )


@given(st.binary(max_size=80), st.integers(0, 6), st.integers(0, 10))
def test_bytes_that_are_no_records_get_a_typed_error(junk: bytes, count: int, last_delta: int) -> None:
    header = BatchHeader(0, 49 + len(junk), 0, 2, 0, 0, last_delta, 0, 0, -1, -1, -1, count, 0, 61 + len(junk))
    try:
        RecordTable().read(bytes(61) + junk, header)
    except CorruptRecords:
        pass


# --- one batch ---


def header_of(**changes: int) -> BatchHeader:
    fields = {
        "base_offset": 10, "batch_length": 49, "leader_epoch": 1, "magic": 2, "crc": 0, "attributes": 0,
        "last_offset_delta": 4, "base_timestamp": 100, "max_timestamp": 100, "producer_id": PRODUCER,
        "producer_epoch": 3, "base_sequence": 0, "count": 5, "position": 0, "size": 61,
    }  # fmt: skip
    return BatchHeader(**{**fields, **changes})


@rule("storage 4.9", "storage 9.7", "log 7.18")
@pytest.mark.parametrize(
    ("last", "changes", "stays"),
    [
        (LastWrite(3, 14), {}, True),
        (LastWrite(3, 20), {}, False),
        (LastWrite(3, -1), {"attributes": 0x30}, True),  # a marker of a producer whose data is not known
        (LastWrite(4, -1), {"attributes": 0x30}, False),  # of an older epoch
        (LastWrite(3, -1), {}, False),  # data, and not the last
        (LastWrite(3, 14), {"producer_id": -1}, False),
        (LastWrite(3, 14), {"producer_id": OTHER}, False),
    ],
)
def test_the_last_batch_of_a_producer_stays(last: LastWrite, changes: dict[str, int], stays: bool) -> None:
    assert is_last_write(header_of(**changes), {PRODUCER: last}) is stays


@rule("storage 9.8")
@pytest.mark.parametrize(
    ("attributes", "base_timestamp", "passed"),
    [(0x40, 999, True), (0x40, 1_000, True), (0x40, 1_001, False), (0, 0, False), (0x40, NO_TIMESTAMP, False)],
)
def test_a_horizon_passes_at_its_own_time(attributes: int, base_timestamp: int, passed: bool) -> None:
    assert has_passed(header_of(attributes=attributes, base_timestamp=base_timestamp), 1_000) is passed


# --- tombstones over time ---


def log_of(*batches_: list[tuple[bytes | None, bytes | None]]) -> Log:
    log = reopened(disk_with_data())
    for records in batches_:
        add(log, records)
    log.roll()
    return log


@rule("storage 9.1", "log 7.2")
def test_a_tombstone_stays_until_its_horizon_has_passed() -> None:
    log = log_of([(b"k", b"1"), (b"m", b"1")], [(b"k", None), (b"n", b"1")])
    run_round(log)
    assert [(e.offset, e.value) for e in entries(log)] == [(1, b"1"), (2, None), (3, b"1")]
    stamped = [header for _, header in batches(log) if header.has_delete_horizon]
    assert [header.base_timestamp for header in stamped] == [FIRST_MS + DELETE_RETENTION_MS]
    assert [e.timestamp_ms for e in entries(log)] == [FIRST_MS + 1, FIRST_MS + 2, FIRST_MS + 3], "times do not change"
    for data, header in batches(log):
        verify_crc(data, header)
    for now_ms in (FIRST_MS + 1, LATER_MS - 1):
        run_round(log, now_ms=now_ms)
        assert [header.base_timestamp for _, header in batches(log) if header.has_delete_horizon] == [LATER_MS]
        assert (2, None) in [(e.offset, e.value) for e in entries(log)]
    run_round(log, now_ms=LATER_MS)
    assert [e.offset for e in entries(log)] == [1, 3] and log.end_offset == 4


def test_a_compressed_tombstone_keeps_its_codec_and_its_time() -> None:
    log = reopened(disk_with_data())
    add(log, [(b"k", b"1"), (b"k", None), (b"m", b"2" * 50)], codec=Codec.LZ4)
    log.roll()
    run_round(log)
    (found,) = [header for _, header in batches(log)]
    assert found.codec == Codec.LZ4 and found.has_delete_horizon and found.count == 2
    assert [(e.offset, e.timestamp_ms) for e in entries(log)] == [(1, FIRST_MS + 1), (2, FIRST_MS + 2)]


def test_the_largest_timestamp_is_that_of_what_stays() -> None:
    log = log_of([(b"k", b"1"), (b"m", b"1")], [(b"m", b"2")])
    run_round(log)
    assert [header.max_timestamp for _, header in batches(log)] == [FIRST_MS, FIRST_MS + 2]


# --- transactions ---


def transaction(log: Log, key: bytes, value: bytes | None, *, producer: int = PRODUCER, sequence: int = 0) -> None:
    add(log, [(key, value)], producer_id=producer, producer_epoch=0, base_sequence=sequence, transactional=True)


def markers(log: Log) -> list[Offset]:
    return [header.base_offset for _, header in batches(log) if header.is_control and header.count]


@rule("storage 9.7", "log 7.3")
def test_aborted_data_goes_first_and_its_marker_after_the_horizon() -> None:
    log = reopened(disk_with_data())
    transaction(log, b"k", b"aborted")
    add(log, [(b"m", b"1")])
    marker = add_marker(log, PRODUCER, committed=False)
    transaction(log, b"q", b"2", sequence=1)
    add_marker(log, PRODUCER, committed=True)
    log.roll()
    run_round(log)
    assert [e.value for e in entries(log)] == [b"1", b"2"] and marker in markers(log)
    assert not any(header.has_delete_horizon for _, header in batches(log)), "its data was still there"
    run_round(log, now_ms=FIRST_MS + 5)
    stamped = {header.base_offset: header.base_timestamp for _, header in batches(log) if header.has_delete_horizon}
    assert stamped == {marker: FIRST_MS + 5 + DELETE_RETENTION_MS}
    run_round(log, now_ms=FIRST_MS + 4 + DELETE_RETENTION_MS)
    assert marker in markers(log)
    run_round(log, now_ms=FIRST_MS + 5 + DELETE_RETENTION_MS)
    assert marker not in markers(log) and [e.value for e in entries(log)] == [b"1", b"2"]


@rule("storage 9.9", "log 7.3")
def test_the_transaction_index_keeps_an_aborted_transaction_while_its_data_may_be_there() -> None:
    log = reopened(disk_with_data())
    add(log, [(b"x", b"1")] * 3)
    first = log.end_offset
    transaction(log, b"k", b"aborted")
    add(log, [(b"m", b"1")])
    marker = add_marker(log, PRODUCER, committed=False)
    log.roll()
    transaction(log, b"n", b"2", sequence=1)  # so that the aborted batch is not the producer's last one
    add_marker(log, PRODUCER, committed=True)
    before = [segment.transactions.entries() for segment in log.view.segments]
    assert [entry[1:3] for entries_ in before for entry in entries_] == [(first, marker)]
    run_round(log)
    after = [segment.transactions.entries() for segment in log.view.segments]
    assert after == before, "the data went in this round, so its marker and its entry go with the next one"
    assert not log.read_part(0, 10_000, upper_bound=log.segment_bases[-1], committed=True).aborted
    run_round(log)
    assert not any(segment.transactions.entries() for segment in log.view.segments)
    log.close()
    opened = reopened(log.disk, clean=True)  # type: ignore[arg-type]
    assert not opened.read_part(0, 10_000, upper_bound=opened.end_offset, committed=True).aborted


@rule("log 7.7")
def test_aborted_data_does_not_hide_the_committed_value_of_its_key() -> None:
    log = reopened(disk_with_data())
    add(log, [(b"k", b"committed")])
    transaction(log, b"k", b"aborted")
    add_marker(log, PRODUCER, committed=False)
    log.roll()
    run_round(log)
    assert [e.value for e in entries(log)] == [b"committed"]


def test_a_marker_above_the_boundary_decides_about_data_below_it() -> None:
    log = reopened(disk_with_data())
    transaction(log, b"k", b"aborted")
    add(log, [(b"m", b"1")])
    log.roll()
    add_marker(log, PRODUCER, committed=False)
    run_round(log)
    assert [e.value for e in entries(log)] == [b"1"]


@rule("log 7.4")
def test_a_commit_marker_stays_while_its_data_does() -> None:
    log = reopened(disk_with_data())
    transaction(log, b"k", b"1")
    marker = add_marker(log, PRODUCER, committed=True)
    add(log, [(b"m", b"1")])
    log.roll()
    for rounds in range(3):
        run_round(log, now_ms=FIRST_MS + rounds * 10 * DELETE_RETENTION_MS)
        assert markers(log) == [marker] and not any(h.has_delete_horizon for _, h in batches(log))
    add(log, [(b"k", b"2")])
    log.roll()
    for rounds in range(3):
        run_round(log, now_ms=FIRST_MS + rounds * 10 * DELETE_RETENTION_MS)
    kept = [(h.base_offset, h.count) for _, h in batches(log) if h.producer_id == PRODUCER]
    assert kept == [(0, 0), (marker, 1)], "the producer's last batch stays empty, and so its marker stays"


@rule("log 7.6")
def test_the_key_of_a_marker_is_no_key_of_a_record() -> None:
    log = reopened(disk_with_data())
    key = b"\x00\x00\x00\x01"  # version 0, COMMIT
    add(log, [(key, b"a record")])
    transaction(log, b"k", b"1")
    add_marker(log, PRODUCER, committed=True)
    log.roll()
    run_round(log)
    assert [e.key for e in entries(log)] == [key, b"k"]


def test_two_producers_do_not_share_their_ends() -> None:
    log = reopened(disk_with_data())
    transaction(log, b"a", b"of the first")
    transaction(log, b"b", b"of the second", producer=OTHER)
    add_marker(log, OTHER, committed=True)
    add_marker(log, PRODUCER, committed=False)
    transaction(log, b"c", b"next", sequence=1)
    add_marker(log, PRODUCER, committed=True)
    log.roll()
    run_round(log)
    assert [e.key for e in entries(log)] == [b"b", b"c"]


# --- what an empty batch keeps ---


@rule("storage 4.9", "log 7.5")
def test_a_repeated_batch_is_still_recognized_after_a_rebuild_from_the_log() -> None:
    log = reopened(disk_with_data())
    add(log, [(b"k", b"1")], producer_id=PRODUCER, producer_epoch=0, base_sequence=7)
    add(log, [(b"k", b"2")])
    log.roll()
    run_round(log)
    assert [(h.base_offset, h.count, h.base_sequence) for _, h in batches(log)] == [(0, 0, 7), (1, 1, -1)]
    log.close()
    for name in log.disk.list(log.path):
        if name.endswith(".snapshot"):
            log.disk.unlink(f"{log.path}/{name}")
    entry = reopened(log.disk).producers.entry(PRODUCER)  # type: ignore[arg-type, union-attr]
    assert entry is not None and entry.last_sequence == 7 and entry.last_offset == 0


def test_an_empty_batch_is_kafkas_byte_for_byte() -> None:
    """The golden one: base offset 10, delta 4, producer 1000, epoch 3, sequence 0."""
    keys = PlainKeys(KeysSpec(1_000, 0.9, b"k", 0), Marks(0, 0, 0))
    keys.offsets.put(b"k", 15)
    records = [Record(10 + n, FIRST_MS - 4 + n, b"k", b"v", ()) for n in range(5)]
    data = encode_batch(
        records, base_offset=10, producer_id=PRODUCER, producer_epoch=3, base_sequence=0, leader_epoch=0
    )
    rules = BatchFilter(keys, 15, Outcomes(), {}, now_ms=0, delete_retention_ms=0)
    golden = (
        "000000000000000a000000310000000002dedb41a5000000000004ffffffffffffffff0000018bcfe56800"
        "00000000000003e80003000000000000 0000"
    )
    assert rules.filtered(data, parse_header(data), must_stay=True) == bytes.fromhex(golden)
    assert rules.filtered(data, parse_header(data), must_stay=False) is None


@rule("storage 9.7", "log 7.17")
def test_the_end_of_the_log_stays_where_it_is_though_all_records_go() -> None:
    log = log_of([(b"k", None)], [(b"k", None)])
    run_round(log)
    run_round(log, now_ms=LATER_MS)
    assert entries(log) == [] and log.end_offset == 2
    log.close()
    assert reopened(log.disk, clean=False, recovery_point=2).end_offset == 2  # type: ignore[arg-type]


# --- groups ---


def source(base: Offset, size: int, end: Offset) -> SourceFile:
    return SourceFile("/d", base, size, end)


@rule("storage 9.10", "log 2.8", "log 7.13")
@pytest.mark.parametrize(
    ("sources", "limits", "groups"),
    [
        ([(0, 100, 10), (10, 100, 20), (20, 100, 30)], {}, [[0, 10, 20]]),
        ([(0, 600, 10), (10, 400, 20), (20, 1, 30)], {}, [[0, 10], [20]]),
        ([(0, 2_000, 10), (10, 10, 20)], {}, [[0], [10]]),
        ([(0, 100, 10), (10, 100, 2**31), (2**31, 100, 2**31 + 1)], {}, [[0, 10], [2**31]]),
        ([(0, 100, 10), (10, 100, 2**31 + 1)], {}, [[0], [10]]),
        ([(0, 100, 10), (10, 100, 20), (20, 100, 30)], {"index_bytes": 24}, [[0, 10], [20]]),
        ([(0, 100, 10), (10, 100, 20), (20, 100, 30), (30, 100, 40)], {"old": {10}}, [[0], [20, 30]]),
    ],
    ids=[
        "all fit",
        "bytes",
        "one is too large already",
        "the range just fits",
        "the range",
        "the index",
        "an older format",
    ],
)
def test_groups(sources: list[tuple[int, int, int]], limits: dict[str, int], groups: list[list[int]]) -> None:
    asked = {"segment_bytes": 1_000, "index_bytes": 10_000, "index_interval_bytes": 4_096, **limits}
    found = grouped([source(*one) for one in sources], **asked)
    assert [[one.base_offset for one in group] for group in found] == groups

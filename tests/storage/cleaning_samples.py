"""Logs with keys, and a cleaner for them: what the broker's manager does, without a broker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from storage_samples import PATH

from jepsen.sim.machine.disk import SimDisk
from quorumlog.ids import Offset
from quorumlog.records import Codec, Record, decode_batch, encode_batch, headers
from quorumlog.records.control import EndTxnMarker, encode_control
from quorumlog.records.format.batch import BatchHeader
from quorumlog_storage.cleaning.keys import MakeKeys, PlainKeys
from quorumlog_storage.cleaning.offset_map import SLOT_BYTES
from quorumlog_storage.cleaning.round import clean
from quorumlog_storage.cleaning.spec import GroupCleaned, RoundDone, RoundSpec
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.batch import stamped_batches
from quorumlog_storage.segment.log_config import LogConfig

CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=100, remembers_producers=True)
FIRST_MS = 1_700_000_000_000
DELETE_RETENTION_MS = 1_000
KeyValue = tuple[bytes | None, bytes | None]


class Entry(NamedTuple):
    offset: Offset
    key: bytes | None
    value: bytes | None
    timestamp_ms: int


def add(log: Log, records: Sequence[KeyValue], *, codec: Codec = Codec.NONE, epoch: int = 1, **fields: Any) -> Offset:
    """One batch. fields: of the producer. Returns its base offset."""
    base = log.end_offset
    made = [Record(n, FIRST_MS + base + n, key, value, ()) for n, (key, value) in enumerate(records)]
    data = encode_batch(made, codec=codec, **fields)
    log.append(stamped_batches(data, headers(data), base, epoch))
    return base


def add_marker(log: Log, producer: int, *, committed: bool, epoch: int = 0) -> Offset:
    key, value = encode_control(EndTxnMarker(committed, 7))
    return add(log, [(key, value)], producer_id=producer, producer_epoch=epoch, transactional=True, control=True)


def spec_of(log: Log, first_dirty: Offset = 0, **changes: object) -> RoundSpec:
    """Everything but the last segment may be cleaned."""
    view = log.view
    closed = tuple((segment.base_offset, segment.size) for segment in view.segments[:-1])
    entries = {} if log.producers is None else log.producers.states.entries
    spec = RoundSpec(
        path=log.path,
        segments=closed,
        end_offset=view.bases[-1],
        beyond=((view.bases[-1], view.last_size),),
        first_dirty=first_dirty,
        producers=tuple((producer, entry.epoch, entry.last_offset) for producer, entry in entries.items()),
        hash_key=b"k" * 16,
        now_ms=FIRST_MS,
        delete_retention_ms=DELETE_RETENTION_MS,
        segment_bytes=log.config.segment_bytes,
        index_interval_bytes=log.config.index_interval_bytes,
        segment_index_bytes=1 << 20,
        io_buffer_bytes=150,
    )
    return spec._replace(**changes)  # type: ignore[arg-type]


def run_round(log: Log, first_dirty: Offset = 0, *, make_keys: MakeKeys = PlainKeys, **changes: object) -> RoundDone:
    """A whole round, each group swapped in as soon as it is done."""
    spec, cuts = spec_of(log, first_dirty, **changes), log.cuts
    by_base = {segment.base_offset: segment for segment in log.view.segments}
    for step in clean(log.disk, spec, make_keys):
        if isinstance(step, GroupCleaned) and step.outputs:
            log.replace_segments([by_base[base] for base in step.sources], step.outputs, cuts)
        elif isinstance(step, RoundDone):
            return step
    raise AssertionError("a round without an end")


def run_rounds(log: Log, first_dirty: Offset = 0, **changes: object) -> int:
    """Rounds until nothing is dirty. Returns how many."""
    for count in range(1, 1_000):
        done = run_round(log, first_dirty, **changes)
        assert done.first_dirty > first_dirty or done.first_dirty == log.segment_bases[-1], "a round without progress"
        first_dirty = done.first_dirty
        if first_dirty == log.segment_bases[-1]:
            return count
    raise AssertionError("the rounds do not end")


def batches(log: Log) -> Iterator[tuple[bytes, BatchHeader]]:
    offset = log.start_offset
    while offset < log.end_offset:
        data = log.read(offset, 300, upper_bound=log.end_offset)
        assert data, f"nothing is read at {offset}, and the log ends at {log.end_offset}"
        for header in headers(data):
            yield data, header
            offset = header.next_offset


def entries(log: Log) -> list[Entry]:
    """All records but control records."""
    return [
        Entry(record.offset, record.key, record.value, record.timestamp_ms)
        for data, header in batches(log)
        if not header.is_control
        for record in decode_batch(data, header)
    ]


def last_values(found: Sequence[Entry]) -> dict[bytes | None, bytes | None]:
    return {entry.key: entry.value for entry in found}


def reopened(disk: SimDisk, config: LogConfig = CONFIG, *, clean: bool = False, recovery_point: Offset = 0) -> Log:
    return Log.open(disk, PATH, config, clean=clean, recovery_point=recovery_point)


def slots(count: int) -> int:
    """Bytes of a map that takes so many keys, and one slot more."""
    return SLOT_BYTES * (count + 1)

"""Offsets by time and by name: earliest, latest, the first record at or after a time, the record of the largest time.

A time is searched through batch headers, away from the loop. No offset past the end that the reader's isolation allows
is answered, and none but the earliest before the high watermark has reached the start of this leadership (KIP-207).
"""

from __future__ import annotations

from collections.abc import Iterator

from broker.replicas.replica import Replica
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NO_EPOCH, Epoch, Offset
from quorumlog.messages.fetch import ListOffsetsPartitionResponse
from quorumlog.records import CorruptRecords, decode_batch
from quorumlog.records.batch import BatchHeader, headers
from storage.disk import DiskError
from storage.isolation import Isolation, upper_bound
from storage.log import Log
from storage.log_errors import LogUnreadable
from storage.log_file import CorruptBatch
from storage.log_view import OffsetOutOfRange

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
SCAN_BYTES = 1 << 20  # of one read

Found = tuple[int, Offset]  # timestamp in ms, offset


async def list_offset(
    replica: Replica, index: int, timestamp_ms: int, current_leader_epoch: Epoch, isolation: Isolation
) -> ListOffsetsPartitionResponse:
    """timestamp_ms: a time, LATEST, EARLIEST, or MAX_TIMESTAMP. Offset -1 if there is no such record.

    current_leader_epoch: NO_EPOCH asks for no check. Raises ApiError.
    """
    epoch = None if current_leader_epoch == NO_EPOCH else current_leader_epoch
    log = replica.leading(epoch)
    if timestamp_ms == EARLIEST:
        return _answer(replica, index, log, (-1, log.start_offset))
    if not replica.core.offset_available:
        text = f"{replica.name}: the high watermark has not reached the start of epoch {replica.core.leader_epoch} yet"
        raise ApiError(ErrorCode.OFFSET_NOT_AVAILABLE, text)
    end = upper_bound(isolation, replica.core)
    if timestamp_ms == LATEST:
        return _answer(replica, index, log, (-1, end))
    if timestamp_ms < MAX_TIMESTAMP:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"timestamp {timestamp_ms}: must be 0 or later, or -1, -2 or -3")
    found = await _search(replica, log, timestamp_ms, end)
    replica.leading(epoch)
    return _answer(replica, index, log, found)


async def _search(replica: Replica, log: Log, timestamp_ms: int, end: Offset) -> Found | None:
    assert replica.queue is not None
    try:
        if timestamp_ms == MAX_TIMESTAMP:
            return await replica.queue.read(lambda: _latest_time(log, end))
        return await replica.queue.read(lambda: _first_since(log, timestamp_ms, end))
    except (LogUnreadable, DiskError, CorruptBatch, CorruptRecords, OffsetOutOfRange) as error:
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error


def _answer(replica: Replica, index: int, log: Log, found: Found | None) -> ListOffsetsPartitionResponse:
    if found is None:
        return ListOffsetsPartitionResponse(index=index)
    timestamp_ms, offset = found
    epoch = log.epochs.epoch_for(offset)
    if offset >= log.end_offset or epoch is None:
        epoch = replica.core.leader_epoch
    return ListOffsetsPartitionResponse(index=index, timestamp_ms=timestamp_ms, offset=offset, leader_epoch=epoch)


def _first_since(log: Log, timestamp_ms: int, end: Offset) -> Found | None:
    start = log.start_offset
    for data, header in _batches(log, end):
        if header.max_timestamp >= timestamp_ms:
            for record in decode_batch(data, header):
                if record.timestamp_ms >= timestamp_ms and record.offset >= start:
                    return record.timestamp_ms, record.offset
    return None


def _latest_time(log: Log, end: Offset) -> Found | None:
    """The first record with the largest timestamp."""
    best: tuple[bytes, BatchHeader] | None = None
    for data, header in _batches(log, end):
        if best is None or header.max_timestamp > best[1].max_timestamp:
            best = (data, header)
    if best is None:
        return None
    for record in decode_batch(*best):
        if record.timestamp_ms == best[1].max_timestamp:
            return record.timestamp_ms, record.offset
    return None


def _batches(log: Log, end: Offset) -> Iterator[tuple[bytes, BatchHeader]]:
    """Data batches below `end` (exclusive), each with the buffer that holds it."""
    offset = log.start_offset
    while offset < end:
        data = log.read(offset, SCAN_BYTES, upper_bound=end)
        found = headers(data)
        if not found:
            return
        yield from ((data, header) for header in found if not header.is_control)
        offset = found[-1].next_offset

"""Offsets by time and by name: earliest, latest, the first record at or after a time, the record of the largest time.

A time is searched through batch headers, away from the loop (`time_search.py`). No offset past the end that the
reader's isolation allows is answered, and none but the earliest before the high watermark has reached the start of this
leadership (KIP-207).
"""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NO_EPOCH, Epoch, Offset
from quorumlog.messages.fetch import ListOffsetsPartitionResponse
from quorumlog_broker.fetch.search_steps import readable_end, take_steps
from quorumlog_broker.fetch.time_search import FirstSince, Found, LatestTime
from quorumlog_broker.replicas.replica import Replica
from quorumlog_storage.log.log import Log
from quorumlog_storage.rules.isolation import Isolation

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -4, -5, -6
"""Of tiered storage (KIP-405, KIP-1005, KIP-1023): here every record is local, and none waits to be moved elsewhere."""


def check_time(timestamp_ms: int) -> None:
    """Raises ApiError."""
    if timestamp_ms < EARLIEST_PENDING_UPLOAD:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp_ms}: must be 0 or later, or -1 to -6")


async def list_offset(
    replica: Replica, index: int, timestamp_ms: int, current_leader_epoch: Epoch, isolation: Isolation
) -> ListOffsetsPartitionResponse:
    """timestamp_ms: a time, or one of the names above (`check_time`). Offset -1 if there is no such record.

    current_leader_epoch: NO_EPOCH asks for no check. Raises ApiError.
    """
    epoch = None if current_leader_epoch == NO_EPOCH else current_leader_epoch
    log = replica.leading(epoch)
    if timestamp_ms in (EARLIEST, EARLIEST_LOCAL):
        return _answer(replica, index, log, (-1, log.start_offset))
    end = readable_end(replica, isolation)
    if timestamp_ms == LATEST:
        return _answer(replica, index, log, (-1, end))
    if timestamp_ms in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return _answer(replica, index, log, None)
    found = await _search(replica, log, timestamp_ms, end)
    replica.leading(epoch)
    return _answer(replica, index, log, found)


async def _search(replica: Replica, log: Log, timestamp_ms: int, end: Offset) -> Found | None:
    search = LatestTime(log, end) if timestamp_ms == MAX_TIMESTAMP else FirstSince(log, end, timestamp_ms)
    await take_steps(replica, search.step)
    return search.found


def _answer(replica: Replica, index: int, log: Log, found: Found | None) -> ListOffsetsPartitionResponse:
    if found is None:
        return ListOffsetsPartitionResponse(index=index)
    timestamp_ms, offset = found
    epoch = log.epochs.epoch_for(offset)
    if offset >= log.end_offset or epoch is None:
        epoch = replica.core.leader_epoch
    return ListOffsetsPartitionResponse(index=index, timestamp_ms=timestamp_ms, offset=offset, leader_epoch=epoch)

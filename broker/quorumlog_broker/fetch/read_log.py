"""Reading this broker's copy of a partition from the disk, beside the loop."""

from __future__ import annotations

from collections.abc import Callable

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Offset
from quorumlog_broker.replicas.replica import Replica
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_errors import LogUnreadable
from quorumlog_storage.log.log_view import LogPart, OffsetOutOfRange
from quorumlog_storage.segment.log_file import CorruptBatch


async def read_from_disk(replica: Replica, log: Log, offset: Offset, max_bytes: int, end: Offset) -> LogPart:
    """Whole batches below `end` (exclusive).

    Raises Busy; ApiError: KAFKA_STORAGE_ERROR, OFFSET_OUT_OF_RANGE, NOT_LEADER_OR_FOLLOWER if the log has left.
    """
    return await _read(replica, log, lambda: log.read_part(offset, max_bytes, upper_bound=end))


async def read_committed_from_disk(replica: Replica, log: Log, offset: Offset, max_bytes: int, end: Offset) -> LogPart:
    """`read_from_disk`, with the aborted transactions of the batches."""
    return await _read(replica, log, lambda: log.read_part(offset, max_bytes, upper_bound=end, committed=True))


async def _read(replica: Replica, log: Log, work: Callable[[], LogPart]) -> LogPart:
    assert replica.queue is not None
    try:
        return await replica.queue.read(work)
    except OffsetOutOfRange as error:
        raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, str(error)) from error
    except (LogUnreadable, DiskError, CorruptBatch) as error:
        if log.is_abandoned:
            text = f"{replica.name} was deleted or is copied anew on this broker"
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, text) from error
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

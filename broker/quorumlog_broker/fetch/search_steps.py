"""What searches in the log of a leader have in common: up to where they may look, and how they take turns."""

from __future__ import annotations

from collections.abc import Callable

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Offset
from quorumlog.records import CorruptRecords
from quorumlog_broker.logdirs.failures import Busy
from quorumlog_broker.replicas.replica import Replica
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.log.log_errors import LogUnreadable
from quorumlog_storage.log.log_view import OffsetOutOfRange
from quorumlog_storage.rules.isolation import Isolation, upper_bound
from quorumlog_storage.segment.log_file import CorruptBatch


def readable_end(replica: Replica, isolation: Isolation) -> Offset:
    """Exclusive. Raises ApiError before the high watermark has reached the start of this leadership (KIP-207)."""
    if not replica.core.offset_available:
        text = f"{replica.name}: the high watermark has not reached the start of epoch {replica.core.leader_epoch} yet"
        raise ApiError(ErrorCode.OFFSET_NOT_AVAILABLE, text)
    return upper_bound(isolation, replica.core)


async def take_steps(replica: Replica, step: Callable[[], bool]) -> None:
    """One slice after the other, so that searches in one directory take turns, and fetches go on beside them.

    step: True once it is over. Raises ApiError.
    """
    assert replica.queue is not None
    try:
        while not await replica.queue.search(step):
            replica.leading()  # else the log may be cut, or leave, under the search
    except (Busy, OffsetOutOfRange) as error:
        replica.leading()
        raise ApiError(ErrorCode.OFFSET_NOT_AVAILABLE, str(error)) from error
    except (LogUnreadable, DiskError, CorruptBatch, CorruptRecords) as error:
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

"""Why an append cannot be taken, or was not."""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog_broker.logdirs.failures import Busy
from quorumlog_broker.replicas.replica import Replica
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_errors import UnexpectedAppend

ACKS_NONE, ACKS_LEADER, ACKS_ALL = ACKS = 0, 1, -1


def append_error(error: Exception) -> ApiError:
    """Busy: this append, or one that it was numbered behind, found no room; nothing was appended."""
    if isinstance(error, Busy):
        return error
    if isinstance(error, UnexpectedAppend):
        return Busy(f"an append before this one was held back: {error}")
    return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))


def leading_log(replica: Replica, acks: int) -> Log:
    """The log to append to. Raises ApiError: NOT_LEADER_OR_FOLLOWER, INVALID_REQUIRED_ACKS, NOT_ENOUGH_REPLICAS;
    KAFKA_STORAGE_ERROR also where the directory is short of free space."""
    log = replica.leading()
    queue = replica.queue
    if queue is not None and queue.space.is_short:
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, queue.space.describe(queue.directory.path))
    if acks not in ACKS:
        raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={acks}, only -1, 0 and 1 mean something")
    if acks == ACKS_ALL and (fault := min_isr_fault(replica, ErrorCode.NOT_ENOUGH_REPLICAS)):
        raise fault
    return log


def min_isr_fault(replica: Replica, code: ErrorCode) -> ApiError | None:
    core = replica.core
    if not core.under_min_isr:
        return None
    text = f"{replica.name}: {len(core.isr_state.isr)} in sync, min.insync.replicas is {core.effective_min_isr}"
    return ApiError(code, text)

"""How a log directory refuses work: "later, but not now", which is no error of its disk; and what the errors of its
writer mean to those who asked for the work.
"""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog_storage.log.log_errors import LogClosed
from quorumlog_storage.writer.directory_life import DirectoryOffline
from quorumlog_storage.writer.worker import WorkerClosed, WorkerFull


class Busy(ApiError):
    """There was no room in time, or the process is short of descriptors or memory. Nothing was done.

    REQUEST_TIMED_OUT: Kafka's producers and admin clients send the same request again (decision 0020). Who answers a
    fetch or an offset query says it in another way, because consumers do not expect that code there.
    """

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, message)


def offline_error(path: str) -> ApiError:
    return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"log directory {path} is offline")


def refusal(error: ApiError | WorkerFull | WorkerClosed) -> ApiError:
    if isinstance(error, ApiError):
        return error
    if isinstance(error, WorkerFull):
        return Busy(str(error))
    return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))


def fails_the_directory(error: Exception) -> bool:
    """A log that is closed without a cause was closed by us: it was deleted, or the broker stops."""
    return isinstance(error, DirectoryOffline) or (isinstance(error, LogClosed) and error.cause is not None)

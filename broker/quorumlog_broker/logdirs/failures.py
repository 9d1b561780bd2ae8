"""What the errors of a log directory's writer mean to those who asked for the work."""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog_broker.logdirs.directory_busy import Busy
from quorumlog_storage.log.log_errors import LogClosed
from quorumlog_storage.writer.directory_life import DirectoryOffline
from quorumlog_storage.writer.worker import WorkerClosed, WorkerFull


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

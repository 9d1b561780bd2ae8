"""Tells an append that never ended from damage, at the end of a log's last segment."""

from __future__ import annotations

from quorumlog.records.format.batch import LENGTH, LENGTH_AT, LOG_OVERHEAD
from quorumlog_storage.files.disk import File

READ_BYTES = 1 << 20


def is_unfinished(file: File, position: int, size: int) -> bool:
    """Whether the rest of a segment's file, in which no batch can be read, is zeroes or a batch that is not whole.

    position: where the last whole batch ends. size: of the file. A damaged length looks like a batch that is not whole.
    """
    head = file.pread(position, LOG_OVERHEAD)
    if len(head) < LOG_OVERHEAD:
        return True
    (length,) = LENGTH.unpack_from(head, LENGTH_AT)
    return length > size - position - LOG_OVERHEAD or _is_zero(file, position, size)


def _is_zero(file: File, position: int, size: int) -> bool:
    return not any(file.pread(at, READ_BYTES).lstrip(b"\0") for at in range(position, size, READ_BYTES))

"""Starts to write a file's dirty pages without waiting for them: Linux's `sync_file_range`, which Python lacks.

It makes nothing durable: it writes no metadata and does not flush the drive's cache. The `fdatasync` that follows finds
the pages under way. If their writing fails, the kernel reports it to that `fdatasync`. A failure before they are under
way is reported here, and perhaps only here: asking again would be a retry of a sync. On other systems, and where the C
library lacks the call, nothing is started.
"""

from __future__ import annotations

import ctypes
import errno
import sys
from collections.abc import Callable

_SYNC_FILE_RANGE_WRITE = 2
_TO_THE_END = 0  # as a length
_LOST = frozenset({errno.EIO, errno.ENOSPC, errno.EDQUOT})  # any other error: nothing was started and nothing is lost


def _find() -> Callable[[int], int]:
    """ctypes releases the interpreter's lock during the call, which may wait for the disk's full queue."""
    if sys.platform != "linux":
        return _nothing
    try:
        call = ctypes.CDLL(None, use_errno=True).sync_file_range
    except (OSError, AttributeError):
        return _nothing
    call.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    call.restype = ctypes.c_int

    def begin(fd: int) -> int:
        if call(fd, 0, _TO_THE_END, _SYNC_FILE_RANGE_WRITE) == 0:
            return 0
        error = ctypes.get_errno()
        return error if error in _LOST else 0

    return begin


def _nothing(_fd: int) -> int:
    return 0


begin_writeback = _find()  # returns an errno if pages were lost, else 0

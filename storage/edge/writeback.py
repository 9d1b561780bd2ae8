"""Starting to write a file's dirty pages without waiting for them: Linux's `sync_file_range`, which Python lacks.

It makes nothing durable (no metadata, no flush of the drive's cache): `fdatasync` follows, and finds the pages on their
way. An error of it is kept with the file by the kernel and comes back from that `fdatasync`: it is not looked at here.
Elsewhere, and where a C library lacks the call, nothing is started.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

_SYNC_FILE_RANGE_WRITE = 2
_TO_THE_END = 0  # as a length


def _find() -> Callable[[int], object]:
    """ctypes lets go of the interpreter's lock meanwhile: the call may wait for a full queue of the disk."""
    if sys.platform != "linux":
        return _nothing
    try:
        call = ctypes.CDLL(None).sync_file_range
    except (OSError, AttributeError):
        return _nothing
    call.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    call.restype = ctypes.c_int
    return lambda fd: call(fd, 0, _TO_THE_END, _SYNC_FILE_RANGE_WRITE)


def _nothing(_fd: int) -> object:
    return None


begin_writeback = _find()

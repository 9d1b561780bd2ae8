"""Room on the disk for bytes that will be appended to a file: Linux's `fallocate`, which Python lacks in this form.

The blocks lie behind the file's end and its size does not change, so no reader and no recovery meets zeroes that were
never written. It is a hint: on other systems, on file systems without the call, and on a full disk nothing is reserved,
and the append itself says what is wrong.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Callable

_FALLOC_FL_KEEP_SIZE = 1


def _find() -> Callable[[int, int], None]:
    if sys.platform != "linux":
        return _nothing
    try:
        call = ctypes.CDLL(None, use_errno=True).fallocate
    except (OSError, AttributeError):
        return _nothing
    call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    call.restype = ctypes.c_int

    def allocate(fd: int, size: int) -> None:
        call(fd, _FALLOC_FL_KEEP_SIZE, 0, size)

    return allocate


def _nothing(_fd: int, _size: int) -> None:
    return None


_allocate = _find()


def reserve_room(fd: int, size: int) -> None:
    """Reserve blocks for a file of `size` bytes; 0: give back those behind its end."""
    if size:
        _allocate(fd, size)
        return
    with contextlib.suppress(OSError):
        os.ftruncate(fd, os.fstat(fd).st_size)  # to the same size: frees what lies behind it

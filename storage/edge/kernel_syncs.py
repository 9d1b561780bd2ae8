"""Syncs that the kernel performs in its own threads: Linux's asynchronous I/O (`io_submit`), which Python lacks.

A turn of a writer begins the sync of each of its files, and then waits for them. The kernel performs them at the same
time, so they share flushes of the drive; no thread of ours is needed for that, and the waiting thread gives up the
interpreter's lock once, not once for each file. Figures: bench/README.md, "What was tried".

Rules:

1. A sync that was begun covers what was written before it was begun, and nothing else.
2. Its result is the result of that sync: the kernel reports a lost page to it, and may report it to no later one. So it
   is never thrown away (`RealFile.sync`).
3. Each thread that begins syncs has a queue of the kernel of its own. Any thread may wait for their results.

Where the system, the machine or its limits (`fs.aio-max-nr`) refuse it, nothing is begun, and the caller syncs by
itself.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
import threading
from collections.abc import Callable
from typing import NamedTuple

MAX_UNDER_WAY = 256  # syncs of one thread; a turn with more files shares them among threads (syncs.py)
ALL_AT_ONCE_S = 0.1  # the longest wait for all that are under way; then for one, so that a file that hangs has a name

_NUMBERS = {  # of the system calls: setup, destroy, getevents, submit
    "x86_64": (206, 207, 208, 209),
    "aarch64": (0, 1, 4, 2),
    "riscv64": (0, 1, 4, 2),
}
_FDSYNC = 3
_REQUEST = struct.Struct("=QIIHhiQQQQII")  # our number, key, flags, opcode, priority, descriptor; the rest is zero
_EVENT = struct.Struct("=QQqq")  # our number, address of the request, result, unused
_TIMEOUT = struct.Struct("=qq")  # seconds, nanoseconds


class Begun(NamedTuple):
    """A sync under way. number: of this sync in its queue."""

    queue: KernelSyncs
    number: int


class KernelSyncs:
    """The syncs that one thread has begun. Raises OSError where the system has no such queue.

    A submission neither waits nor touches the disk: it keeps the interpreter's lock, which would cost more than the
    call. Waiting gives it up.
    """

    def __init__(self, numbers: tuple[int, int, int, int]) -> None:
        setup, self._destroy_number, self._getevents_number, self._submit_number = numbers
        waits, at_once = ctypes.CDLL(None, use_errno=True), ctypes.PyDLL(None, use_errno=True)
        self._destroy = _call(at_once, ctypes.c_ulong)
        self._submit = _call(at_once, ctypes.c_ulong, ctypes.c_long, ctypes.c_void_p)
        self._getevents = _call(waits, ctypes.c_ulong, ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
        context = ctypes.c_ulong(0)
        if _call(at_once, ctypes.c_long, ctypes.c_void_p)(setup, MAX_UNDER_WAY, ctypes.addressof(context)):
            raise OSError(ctypes.get_errno(), "io_setup")
        self._context: int = context.value
        self._request = ctypes.create_string_buffer(_REQUEST.size)
        self._requests = (ctypes.c_void_p * 1)(ctypes.addressof(self._request))
        self._events = ctypes.create_string_buffer(_EVENT.size * MAX_UNDER_WAY)
        self._timeout = ctypes.create_string_buffer(_TIMEOUT.pack(0, int(ALL_AT_ONCE_S * 1e9)), _TIMEOUT.size)
        self._lock = threading.Lock()  # around what follows
        self._last_number = 0
        self._under_way = 0
        self._ended: dict[int, int] = {}  # results of syncs that nobody has asked for yet, by number

    def begin(self, fd: int) -> Begun | None:
        """Begin to sync the data of a file. None: it was not begun."""
        with self._lock:
            if self._under_way >= MAX_UNDER_WAY:
                return None
            number = self._last_number + 1
            _REQUEST.pack_into(self._request, 0, number, 0, 0, _FDSYNC, 0, fd, 0, 0, 0, 0, 0, 0)
            if self._submit(self._submit_number, self._context, 1, self._requests) != 1:
                return None
            self._last_number = number
            self._under_way += 1
            return Begun(self, number)

    def wait(self, number: int) -> int:
        """Wait for the end of a sync. Returns its errno, 0 if it succeeded. Asked once for each number."""
        with self._lock:
            if number not in self._ended:
                self._take(self._under_way, self._timeout)
            while number not in self._ended:
                self._take(1, None)
            return self._ended.pop(number)

    def _take(self, count: int, timeout: ctypes.Array[ctypes.c_char] | None) -> None:
        """Wait for `count` results, or until the timeout."""
        taken = self._getevents(self._getevents_number, self._context, count, MAX_UNDER_WAY, self._events, timeout)
        if taken < 0:
            error = ctypes.get_errno()
            assert error == errno.EINTR, f"io_getevents: {os.strerror(error)}"
            return
        self._under_way -= taken
        for at in range(0, taken * _EVENT.size, _EVENT.size):
            number, _, result, _ = _EVENT.unpack_from(self._events, at)
            self._ended[number] = -result if result < 0 else 0

    def __del__(self) -> None:
        """The thread has ended. A queue whose syncs are under way is left to the end of the process."""
        if getattr(self, "_under_way", 1) == 0:
            self._destroy(self._destroy_number, self._context)


def _call(library: ctypes.CDLL, *types: type) -> Callable[..., int]:
    """The C library's `syscall` for arguments of these types, after the number."""
    call = library["syscall"]  # another object each time
    call.argtypes = (ctypes.c_long, *types)
    call.restype = ctypes.c_long
    return call


_of_thread = threading.local()
_numbers = _NUMBERS.get(platform.machine()) if sys.platform == "linux" and sys.maxsize > 2**32 else None


def of_this_thread() -> KernelSyncs | None:
    """Made at the first call of a thread. None where the system refuses."""
    try:
        found: KernelSyncs | None = _of_thread.syncs
    except AttributeError:
        found = _of_thread.syncs = _make()
    return found


def _make() -> KernelSyncs | None:
    if _numbers is None:
        return None
    try:
        return KernelSyncs(_numbers)
    except (OSError, AttributeError):
        return None

"""Reads and writes that spare Linux's page cache, and the start of a writeback from it.

`DirectReads`: reads that go past Linux's page cache (`O_DIRECT`), for one pass over a file that is not read again soon.

After a crash a node reads gigabytes once. Through the page cache each page is allocated, filled, copied and later
evicted; in a virtual machine most pages are new to it as well, which costs a second per gigabyte. Past it, the disk
writes into one buffer that is used again and again. The kernel writes dirty pages of the range to the disk first, so
these reads show what the disk holds. Figures: bench/README.md, "All nodes killed at once".

The kernel asks for aligned positions, lengths and memory. Where file system or kernel refuse that, reads go through
the page cache as before; nothing depends on it.

`UncachedWrites`: writes that leave nothing in Linux's page cache, for records that are not read soon.

A follower's records are read after a change of leader only, but would push the leaders' records out of the cache. Large
writes therefore ask for `RWF_DONTCACHE` (Linux 6.14: the kernel frees the pages as soon as they are on disk). Where
kernel, file system or Python refuses that, the pages are freed after the sync that made them clean (`posix_fadvise`).
Small writes do neither: the next write would have to read its first block back from the disk. All of this is a hint;
where it is refused, nothing is lost. Figures: bench/README.md, "What was tried".

`begin_writeback` starts to write a file's dirty pages without waiting for them: Linux's `sync_file_range`, which Python
lacks.

It makes nothing durable: it writes no metadata and does not flush the drive's cache. The `fdatasync` that follows finds
the pages under way. If their writing fails, the kernel reports it to that `fdatasync`. A failure before they are under
way is reported here, and perhaps only here: asking again would be a retry of a sync. On other systems, and where the C
library lacks the call, nothing is started.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import sys
from collections.abc import Callable, Sequence

from quorumlog_storage.files.disk import Buffer

ALIGNMENT = 4096  # a multiple of every disk's block; what the memory map gives as well
DIRECT_FROM_BYTES = 1 << 20  # smaller files are not worth a descriptor and a buffer
_FLAG: int = getattr(os, "O_DIRECT", 0)  # only Linux and some others have it


def open_direct(fd: int) -> int | None:
    """A second descriptor of the same file, whatever name it has now; None where that is not possible."""
    if not _FLAG:
        return None
    try:
        return os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC | _FLAG)
    except OSError:  # a file system that knows no such reads, no descriptor left, no /proc
        return None


class DirectReads:
    """The reads of one thread. fd: of `open_direct`; it belongs to the caller."""

    __slots__ = ("_buffer", "_fd", "_is_refused")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._buffer: mmap.mmap | None = None  # as large as the largest read so far
        self._is_refused = False

    def read(self, position: int, length: int) -> bytes | None:
        """`length` bytes from `position`; fewer only where the file ends. None: refused, now and for good.

        Raises OSError.
        """
        if self._is_refused:
            return None
        if not length:
            return b""
        start = position - position % ALIGNMENT
        end = -(-(position + length) // ALIGNMENT) * ALIGNMENT
        buffer = self._buffer
        if buffer is None or len(buffer) < end - start:
            buffer = self._buffer = mmap.mmap(-1, end - start)
        view, done = memoryview(buffer), 0
        try:
            while done < end - start:
                count = os.preadv(self._fd, [view[done : end - start]], start + done)
                done += count
                if count % ALIGNMENT or not count:
                    break  # the file's end
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            self._is_refused = True
            return None
        skipped = position - start
        return bytes(view[skipped : min(done, skipped + length)])


UNCACHED_FROM_BYTES = 64 * 1024  # smaller writes stay in the page cache (measured: a gain above 64 KiB only)
_RWF_DONTCACHE: int = getattr(os, "RWF_DONTCACHE", 0x80)  # not every Python has the name
_REFUSALS = (errno.EOPNOTSUPP, errno.EINVAL)


class UncachedWrites:
    """The writes to one file descriptor. One thread at a time writes or syncs."""

    __slots__ = ("_end", "_is_refused", "_start")

    def __init__(self) -> None:
        self._is_refused = sys.platform != "linux"
        self._start = self._end = 0  # bytes [start, end) to give back after the next sync

    def write(self, fd: int, buffers: Sequence[Buffer], position: int) -> int:
        """`os.pwritev` that leaves nothing in the page cache, if possible. At most IOV_MAX buffers."""
        if not self._is_refused:
            try:
                return os.pwritev(fd, buffers, position, _RWF_DONTCACHE)
            except NotImplementedError:  # a Python that was built for a C library without the call
                self._is_refused = True
            except OSError as error:
                if error.errno not in _REFUSALS:
                    raise
                self._is_refused = True
        written = os.pwritev(fd, buffers, position)
        self._start = min(self._start, position) if self._end else position
        self._end = max(self._end, position + written)
        return written

    def synced(self, fd: int) -> None:
        """All that was written is on disk, so the kernel may free its pages."""
        if self._end and hasattr(os, "posix_fadvise"):
            with contextlib.suppress(OSError):
                os.posix_fadvise(fd, self._start, self._end - self._start, os.POSIX_FADV_DONTNEED)
        self._start = self._end = 0


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

"""Reads that go past Linux's page cache (`O_DIRECT`), for one pass over a file that is not read again soon.

After a crash a node reads gigabytes once. Through the page cache each page is allocated, filled, copied and later
evicted; in a virtual machine most pages are new to it as well, which costs a second per gigabyte. Past it, the disk
writes into one buffer that is used again and again. The kernel writes dirty pages of the range to the disk first, so
these reads show what the disk holds. Figures: bench/README.md, "All nodes killed at once".

The kernel asks for aligned positions, lengths and memory. Where file system or kernel refuse that, reads go through
the page cache as before; nothing depends on it.
"""

from __future__ import annotations

import errno
import mmap
import os

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

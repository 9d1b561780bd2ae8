"""Writing what nobody reads soon without filling the machine's memory with it: Linux's page cache, let go of.

A follower's records are read after a change of leader only, and yet would push the leaders' out of the cache, each page
taken from the kernel anew. Large writes say `RWF_DONTCACHE` (Linux 6.14: pages go back as soon as they are on disk);
where kernel, file system or Python refuses that, pages are given back after the sync that made them clean
(`posix_fadvise`). Small writes do neither: the next one would have to read its first block back from the disk.
Hints, all of them: what is refused is not done, and nothing is lost. Figures: bench/README.md, "What was tried".
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Sequence

from storage.disk import Buffer

UNCACHED_FROM_BYTES = 64 * 1024  # smaller writes stay in the page cache: measured even at 64 KiB, a gain above
_RWF_DONTCACHE: int = getattr(os, "RWF_DONTCACHE", 0x80)  # not every Python has the name
_REFUSALS = (errno.EOPNOTSUPP, errno.EINVAL)


class UncachedWrites:
    """Of one file descriptor. One thread writes and, at another time, syncs."""

    __slots__ = ("_end", "_is_refused", "_start")

    def __init__(self) -> None:
        self._is_refused = sys.platform != "linux"
        self._start = self._end = 0  # bytes [start, end) to give back after the next sync

    def write(self, fd: int, buffers: Sequence[Buffer], position: int) -> int:
        """`os.pwritev` that leaves nothing in the page cache, if it can. At most IOV_MAX buffers."""
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
        """Everything written has reached the disk: the kernel may forget it."""
        if self._end and hasattr(os, "posix_fadvise"):
            with contextlib.suppress(OSError):
                os.posix_fadvise(fd, self._start, self._end - self._start, os.POSIX_FADV_DONTNEED)
        self._start = self._end = 0

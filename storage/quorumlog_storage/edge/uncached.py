"""Writes that leave nothing in Linux's page cache, for records that are not read soon.

A follower's records are read after a change of leader only, but would push the leaders' records out of the cache. Large
writes therefore ask for `RWF_DONTCACHE` (Linux 6.14: the kernel frees the pages as soon as they are on disk). Where
kernel, file system or Python refuses that, the pages are freed after the sync that made them clean (`posix_fadvise`).
Small writes do neither: the next write would have to read its first block back from the disk. All of this is a hint;
where it is refused, nothing is lost. Figures: bench/README.md, "What was tried".
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Sequence

from quorumlog_storage.files.disk import Buffer

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

"""Tell glibc to keep what was freed for what comes next.

A node allocates and frees buffers of up to some megabytes for every request. By default glibc hands such memory back to
the system each time and takes it anew page by page: half of the processor time of a consumer's read, and twice its
duration (bench/README.md). The limit of what is kept is small beside the tail that a node holds anyway, and measured
memory does not grow.
"""

from __future__ import annotations

import ctypes
import os

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3  # of mallopt(3)
KEPT_BYTES = 64 << 20  # freed at the end of the heap and not handed back
GROWTH_BYTES = 4 << 20
MAPPED_BYTES = 32 << 20  # larger blocks are still mapped on their own: the most that glibc accepts


def keep_freed_memory() -> bool:
    """False where it is not glibc that allocates, or where the environment has its own settings."""
    if any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = ((M_TRIM_THRESHOLD, KEPT_BYTES), (M_TOP_PAD, GROWTH_BYTES), (M_MMAP_THRESHOLD, MAPPED_BYTES))
    results = [mallopt(name, value) for name, value in settings]
    return all(result == 1 for result in results)

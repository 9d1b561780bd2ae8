"""Tell glibc to keep what was freed for what comes next.

A node allocates and frees buffers of up to some megabytes for every request. By default glibc hands such memory back to
the system each time and takes it anew page by page, which more than doubles the processor time of a consumer's read.
What is kept is kept once: a single arena for all threads, few of which allocate at the same moment under Python's lock,
so that a node's memory is what it was before (bench/README.md has the figures).
"""

from __future__ import annotations

import ctypes
import os

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -2, -3, -8  # of mallopt(3)
KEPT_BYTES = 64 << 20  # freed at the end of the heap and not handed back
GROWTH_BYTES = 4 << 20
MAPPED_BYTES = 32 << 20  # larger blocks are still mapped on their own: the most that glibc accepts
SETTINGS = (
    (M_TRIM_THRESHOLD, KEPT_BYTES),
    (M_TOP_PAD, GROWTH_BYTES),
    (M_MMAP_THRESHOLD, MAPPED_BYTES),
    (M_ARENA_MAX, 1),
)


def keep_freed_memory() -> bool:
    """Before the first thread. False where glibc does not allocate, or where the environment has its own settings."""
    if any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    results = [mallopt(name, value) for name, value in SETTINGS]
    return all(result == 1 for result in results)

"""Makes glibc keep freed memory for later use.

A node allocates and frees buffers of up to some megabytes for every request. By default glibc returns such memory to
the system each time and gets it back page by page, which more than doubles the processor time of a consumer's read. One
arena serves all threads, because under Python's lock few threads allocate at the same time; so a node's memory stays as
it was before (figures in bench/README.md).
"""

from __future__ import annotations

import ctypes
import os

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -2, -3, -8  # of mallopt(3)
KEPT_BYTES = 64 << 20  # free memory at the end of the heap that is kept
GROWTH_BYTES = 4 << 20
MAPPED_BYTES = 32 << 20  # larger blocks are still mapped separately; glibc accepts no higher limit
SETTINGS = (
    (M_TRIM_THRESHOLD, KEPT_BYTES),
    (M_TOP_PAD, GROWTH_BYTES),
    (M_MMAP_THRESHOLD, MAPPED_BYTES),
    (M_ARENA_MAX, 1),
)


def keep_freed_memory() -> bool:
    """Call before the first thread starts. False if glibc is not used, or if the environment sets its options."""
    if any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    results = [mallopt(name, value) for name, value in SETTINGS]
    return all(result == 1 for result in results)

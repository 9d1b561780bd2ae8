"""This process's memory now, and its peak since the last reset."""

from __future__ import annotations

import resource
from pathlib import Path

STATUS, CLEAR_REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")
FORGET_PEAK = "5"  # proc(5)


def forget_peak() -> int:
    """Resets the peak and returns the current memory in bytes. No reset outside Linux, where less is detected."""
    if CLEAR_REFS.exists():
        CLEAR_REFS.write_text(FORGET_PEAK)
    return peak_bytes()


def peak_bytes() -> int:
    if STATUS.exists():
        (line,) = [line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # macOS: bytes

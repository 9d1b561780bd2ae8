"""Whether processes of a verb have ended."""

from __future__ import annotations

import psutil


def has_ended(process: psutil.Process) -> bool:
    """A zombie has: only its parent has not asked for it yet."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True

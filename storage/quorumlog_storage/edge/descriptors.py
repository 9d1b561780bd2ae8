"""Opening a file where the process, or the machine, has no descriptor left.

First the segment files that are idle are closed. Where that is not enough, because sockets hold the rest, the open is
tried again for a while: on the threads of a directory that is back-pressure, everything behind it waits. Then the error
goes on, and its callers decide (quorumlog_storage/rules/failure_rule.py).
"""

from __future__ import annotations

import errno
import resource
import time
from collections.abc import Callable
from typing import TypeVar

from quorumlog_storage.files.eviction import OPEN_FILES_DEFAULT, LogResources

T = TypeVar("T")

RETRY_S = 0.02
TRIES = 50  # one second together: below the time after which a disk counts as hung
RESERVED = 64  # descriptors for everything but log files and connections: locks, checkpoints, threads, the loop
_LACKS_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)


def descriptor_limit() -> int:
    """How many this process may have. Raises its soft limit to the hard one first, as servers do."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
        except (OSError, ValueError):  # macOS has no number for "unlimited" that it accepts
            pass
    return soft if soft != resource.RLIM_INFINITY else 1 << 20


def open_files_of(limit: int) -> int:
    """The default of log.open.files.max in a process that may have `limit` descriptors: at most half of the rest."""
    return max(8, min(OPEN_FILES_DEFAULT, (limit - RESERVED) // 2))


def connections_of(limit: int, open_files: int) -> int:
    """How many connections the process can have beside its log files."""
    return max(8, limit - RESERVED - open_files)


def with_a_descriptor(open_it: Callable[[], T], resources: LogResources) -> T:
    """Raises the OSError of the last try."""
    for tries_left in reversed(range(TRIES)):
        try:
            return open_it()
        except OSError as error:
            if error.errno not in _LACKS_DESCRIPTORS or not tries_left:
                raise
            if not resources.open_files.empty():
                time.sleep(RETRY_S)
    raise AssertionError("the last try returns or raises")

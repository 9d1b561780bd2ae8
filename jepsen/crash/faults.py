"""The faults of one call, and which of them a call can meet."""

from __future__ import annotations

import errno
from enum import Enum

from jepsen.crash.sites import WRITE_FULLY, Site


class Fault(Enum):
    """Of a crash, a part of the call may have been done before (`Strike.done`)."""

    KILL = "kill"  # the process ends; what it wrote stays
    POWER_CUT = "power-cut"  # bytes and names that were not synced are lost, whole, torn, or a subset of them
    EIO = "eio"
    ENOSPC = "enospc"
    EMFILE = "emfile"
    SHORT_WRITE = "short-write"
    HANG = "hang"  # the call never returns; readers go on; then the process is killed


CRASHES = (Fault.KILL, Fault.POWER_CUT, Fault.HANG)
ERRNO = {Fault.EIO: errno.EIO, Fault.ENOSPC: errno.ENOSPC, Fault.EMFILE: errno.EMFILE}

_SILENT = ("begin_sync", "close")  # raise nothing: a hint; and the real close has nothing to report after a sync
_NEED_ROOM = (WRITE_FULLY, "make_directory", "rename", "sync", "sync_directory", "lock")
_NEED_A_DESCRIPTOR = ("open", "list", "read_bytes", "sync_directory", "lock", "remove_tree")


def applicable(site: Site) -> tuple[Fault, ...]:
    """The faults that a machine can give at this site."""
    faults = list(CRASHES)
    if site.method not in _SILENT:
        faults.append(Fault.EIO)
    if site.method in _NEED_ROOM or site.creates:
        faults.append(Fault.ENOSPC)
    if site.method in _NEED_A_DESCRIPTOR:
        faults.append(Fault.EMFILE)
    if site.method == WRITE_FULLY:
        faults.append(Fault.SHORT_WRITE)
    return tuple(faults)

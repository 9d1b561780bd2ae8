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

_SILENT = (
    "begin_sync",
    "reserve",
    "close",
)  # raise nothing: hints; and the real close has nothing to report after a sync
_NEED_ROOM = (WRITE_FULLY, "make_directory", "rename", "sync", "sync_directory", "lock")
_NEED_A_DESCRIPTOR = ("open", "list", "read_bytes", "sync_directory", "lock", "remove_tree")


class Variant(Enum):
    """How much of the struck call is done, and what the disk keeps of what was not synced."""

    BEFORE = "before"  # nothing is done
    TORN_EARLY = "torn-early"  # three parts of a write
    TORN_MIDDLE = "torn-middle"
    TORN_LATE = "torn-late"
    AFTER = "after"  # all is done, and the process never knew
    UNSYNCED_LOST = "unsynced-lost"  # all is done; the disk keeps nothing that was not synced
    SUBSET_LOST = "subset-lost"  # all is done; of what was not synced, some sectors and names are lost
    ERROR = "error"  # the call failed; the process goes on, and ends later


DONE = {Variant.BEFORE: 0.0, Variant.TORN_EARLY: 0.3, Variant.TORN_MIDDLE: 0.5, Variant.TORN_LATE: 0.9}  # others: 1
SURVIVES = {Variant.UNSYNCED_LOST: "none", Variant.SUBSET_LOST: "subset"}
_TORN = (Variant.TORN_EARLY, Variant.TORN_MIDDLE, Variant.TORN_LATE)
_PARTS = {
    Fault.KILL: (Variant.BEFORE, Variant.AFTER),
    Fault.POWER_CUT: (Variant.BEFORE, Variant.UNSYNCED_LOST, Variant.SUBSET_LOST),
    Fault.HANG: (Variant.BEFORE, Variant.AFTER),
}


def variants(site: Site, fault: Fault) -> tuple[Variant, ...]:
    """The variants of a fault at a site. Only a write can be torn."""
    if fault not in _PARTS:
        return (Variant.ERROR,)
    is_torn = site.method == WRITE_FULLY and fault is not Fault.HANG
    return _PARTS[fault] + (_TORN if is_torn else ())


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

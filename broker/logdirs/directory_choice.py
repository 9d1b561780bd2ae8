"""In which log directory a replica lies, or is made. Pure (KRAFT 2.7)."""

from __future__ import annotations

from collections.abc import Mapping

from quorum.metadata.registration import LOST, is_reserved_directory
from quorumlog.ids import Uuid


def choose_directory(assigned: Uuid, found: Uuid | None, online: Mapping[Uuid, int], any_offline: bool) -> Uuid | None:
    """The directory's id. None: the replica is offline until the metadata changes or the process restarts.

    assigned: the directory that the metadata names. found: where the log was at start. online: the number of replicas
    in each directory that is online. any_offline: at least one directory of this broker is offline.

    A new log must never be a second, empty copy of one that lies in a directory that is offline. So a log is made only
    in the assigned directory or, unless that may be one of ours that is offline, in the one with the fewest replicas. A
    LOST replica may lie in any that is offline.
    """
    if found is not None:
        return found if found in online else None
    if assigned in online:
        return assigned
    may_be_offline = any_offline and (assigned == LOST or not is_reserved_directory(assigned))
    if not online or may_be_offline:
        return None
    return min(online, key=lambda directory: (online[directory], directory))

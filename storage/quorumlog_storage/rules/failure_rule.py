"""What an error of the disk takes offline: one replica, the whole log directory, or nothing. Pure.

| the call            | EMFILE, ENFILE, ENOMEM         | EROFS, ENOSPC, EDQUOT | any other error, such as EIO |
|---------------------|--------------------------------|-----------------------|------------------------------|
| changes nothing     | back-pressure                  | the directory         | the replica                  |
| begins a change     | back-pressure                  | the directory         | the directory                |
| goes on with one    | the directory                  | the directory         | the directory                |

- A process or a machine that is short of descriptors or memory says nothing about the disk. The caller tries again
  later. But where a part of a change is on disk already, the rest must not be left out
  (`quorumlog_storage/log/log_errors.py`).
- A write or a sync always goes on with a change: it is not known what is on disk after it failed.
- Of a file that belongs to no replica (a checkpoint, the directory's own list) there is no replica to take offline; the
  caller then takes the directory.
- Two replicas of one directory that fail within `SECOND_FAILURE_MS` take the directory offline (`FailedReplicas`).

Why: decision 0018. Kafka takes the directory offline in every case.
"""

from __future__ import annotations

import errno
from collections.abc import Hashable
from enum import Enum

from quorumlog_storage.files.disk import NO_ROOM, READ_OPS, DiskError

SECOND_FAILURE_MS = 600_000

_SHORT_OF_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
_TAKES_NO_WRITES = frozenset({errno.EROFS, *NO_ROOM})
_GO_ON_WITH_A_CHANGE = frozenset({"write", "sync"})


class Consequence(Enum):
    REPLICA_OFFLINE = "replica offline"
    DIRECTORY_OFFLINE = "directory offline"
    BACK_PRESSURE = "back-pressure"


def consequence_of(error: DiskError, *, has_begun: bool = False) -> Consequence:
    """has_begun: an earlier call of the same change has succeeded, so a part of it may be on disk."""
    if error.errno in _SHORT_OF_RESOURCES:
        if has_begun or error.op in _GO_ON_WITH_A_CHANGE:
            return Consequence.DIRECTORY_OFFLINE
        return Consequence.BACK_PRESSURE
    if error.op in READ_OPS and error.errno not in _TAKES_NO_WRITES and not has_begun:
        return Consequence.REPLICA_OFFLINE
    return Consequence.DIRECTORY_OFFLINE


class FailedReplicas:
    """The replicas of one log directory that a read error took offline. Used on the node's loop."""

    def __init__(self) -> None:
        self._failed_ms: dict[Hashable, int] = {}  # by replica, in the order of time

    def add(self, replica: Hashable, now_ms: int) -> bool:
        """True if the directory is to go offline: another replica failed less than SECOND_FAILURE_MS ago.

        now_ms: monotonic. A replica that is told again counts once, from the first time.
        """
        self._failed_ms = {one: at for one, at in self._failed_ms.items() if now_ms - at < SECOND_FAILURE_MS}
        self._failed_ms.setdefault(replica, now_ms)
        return len(self._failed_ms) > 1

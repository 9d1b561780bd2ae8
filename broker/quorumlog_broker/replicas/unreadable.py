"""Logs that their disk does not give back: such a replica goes offline alone, and a second one takes the directory.

The replica's core gives up its leadership at once. The controller learns of it by an assignment to the reserved
directory LOST (decision 18), which takes the replica out of its ISR and elects another leader.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from quorumlog.clock import Clock
from quorumlog_broker.logdirs.log_directory import DirectoryQueue
from quorumlog_broker.partition.events import LogFailed
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.replica import Replica, Step
from quorumlog_storage.log.log_errors import LogUnreadable
from quorumlog_storage.rules.failure_rule import SECOND_FAILURE_MS, FailedReplicas

_log = logging.getLogger("quorumlog.broker")


class ManyUnreadable(Exception):
    """Several logs of one directory could not be read, so the fault is its disk's."""

    def __init__(self, cause: LogUnreadable) -> None:
        super().__init__(f"two logs in it could not be read within {SECOND_FAILURE_MS // 60_000} minutes; now {cause}")


class UnreadableLogs:
    """Used on the loop. by_name: why each replica is offline that failed alone, by topic and partition."""

    def __init__(self, clock: Clock, registry: Registry, step: Step, on_changed: Callable[[], None]) -> None:
        """on_changed: another replica is offline alone."""
        self._clock = clock
        self._registry = registry
        self._step = step
        self._on_changed = on_changed
        self._failed: dict[DirectoryQueue, FailedReplicas] = {}
        self.by_name: dict[str, str] = {}

    def found(self, queue: DirectoryQueue, error: LogUnreadable) -> None:
        """A job or a read could not read a log."""
        replica = self._replica_of(queue, error)
        if replica is None:
            return
        if self._failed.setdefault(queue, FailedReplicas()).add(replica.key, self._clock.now_ms()):
            queue.fail(ManyUnreadable(error))
            return
        self.by_name[replica.name] = str(error)
        _log.error(
            "%s: the replica on this broker is offline: %s; other replicas of its directory go on, and its leader is "
            "moved where another replica is in sync; look at the kernel's log, repair or replace the disk, then "
            "restart the node",
            replica.name,
            error,
        )
        self._step(replica, LogFailed())
        self._on_changed()

    def _replica_of(self, queue: DirectoryQueue, error: LogUnreadable) -> Replica | None:
        """None if the log was replaced or is not needed any more, or if the replica is known to be offline."""
        for replica in self._registry.replicas.values():
            partition = (replica.topic, replica.key[1])
            if replica.queue is queue and queue.directory.partitions.path_of(partition) == error.path:
                is_current = error.log is None or error.log is replica.log
                return replica if is_current and not replica.core.failed else None
        return None

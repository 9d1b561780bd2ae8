"""What a log directory must know of a replica that lies in it. `quorumlog_broker/replicas/replica.py` is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from quorumlog.configs.topic import TopicConfig
from quorumlog_broker.logdirs.log_directory import DirectoryQueue
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.partition.partition import Partition
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.log.log import Log


@dataclass(slots=True, eq=False)
class Exchange:
    """A replica's log is being exchanged for its copy in another directory: it is read, and no change may be queued.

    waiting: called once the replica says where its log lies now.
    """

    source: DirectoryQueue
    target: DirectoryQueue
    waiting: list[Callable[[], None]] = field(default_factory=list)


class HostedReplica(Protocol):
    """It keeps an arrow from running up: `quorumlog_broker.replicas`, which has the replica, stands on this room.

    queue: of the directory it lies in; None while that is not online.

    partition_log: set by the directory's worker when it has opened the log. log: its log, once the loop knows of it.
    """

    @property
    def topic(self) -> str: ...

    @property
    def key(self) -> PartitionKey: ...

    @property
    def core(self) -> Partition: ...

    @property
    def config(self) -> TopicConfig: ...

    @property
    def queue(self) -> DirectoryQueue | None: ...

    @property
    def exchange(self) -> Exchange | None: ...

    @property
    def partition_log(self) -> PartitionLog | None: ...

    @property
    def log(self) -> Log | None: ...

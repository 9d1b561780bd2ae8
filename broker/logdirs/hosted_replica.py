"""What a log directory must know of a replica that lies in it. `broker/replicas/replica.py` is one."""

from __future__ import annotations

from typing import Protocol

from broker.logdirs.log_directory import DirectoryQueue
from broker.partition.key import PartitionKey
from broker.partition.partition import Partition
from quorumlog.topic_config import TopicConfig
from storage.log import Log
from storage.partition_log import PartitionLog


class HostedReplica(Protocol):
    """queue: of the directory it lies in; None while that is not online.

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
    def partition_log(self) -> PartitionLog | None: ...

    @property
    def log(self) -> Log | None: ...

"""What a log directory must know of a replica that lies in it. `broker/replicas/replica.py` is one."""

from __future__ import annotations

from typing import Protocol

from broker.logdirs.log_directory import DirectoryQueue
from broker.partition.key import PartitionKey
from broker.partition.partition import Partition
from quorumlog.topic_config import TopicConfig
from storage.log import Log


class HostedReplica(Protocol):
    """queue: of the directory it lies in; None while that is not online. opened: its log, once the worker opened it."""

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
    def opened(self) -> Log | None: ...

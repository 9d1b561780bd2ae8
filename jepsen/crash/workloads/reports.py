"""The workload that asks a broker what lies in its log directories."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

from jepsen.crash.instant_worker import InstantWorker
from jepsen.crash.process import DATA
from jepsen.crash.world import META, World
from quorumlog.errors import ErrorCode
from quorumlog_broker.logdirs.log_directory import DirectoryQueue, LogDirectory
from quorumlog_broker.logdirs.partition_store import PartitionStore
from quorumlog_broker.replicas.directory_report import DirectoryReport
from quorumlog_broker.replicas.registry import Registry
from quorumlog_storage.writer.directory_life import DirectoryLife, LifeEvent
from quorumlog_storage.writer.writer import DirectoryWriter


class ToldAsError(Exception):
    """The report says that the directory cannot be read."""


def describe_directories(world: World) -> None:
    """DescribeLogDirs of a broker without replicas. Raises ToldAsError."""
    life = DirectoryLife(DATA)
    life.step(LifeEvent.OPENED, life.generation)
    directory = LogDirectory(
        directory_id=META.directory_id,
        life=life,
        generation=life.generation,
        partitions=world.process.partitions,
        worker=InstantWorker(DirectoryWriter(DATA)),
    )
    queue = DirectoryQueue(directory, _ignore, _ignore)
    store = SimpleNamespace(queues={META.directory_id: queue}, cordoned=frozenset())
    registry = SimpleNamespace(replicas={})
    report = DirectoryReport([directory], cast(PartitionStore, store), cast(Registry, registry))
    (described,) = asyncio.run(report.describe())
    if described.error_code != ErrorCode.NONE:
        raise ToldAsError(str(described.error_code))
    assert described.total_bytes > described.usable_bytes


def _ignore(_queue: DirectoryQueue, _error: Exception) -> None:
    """The report itself is looked at."""

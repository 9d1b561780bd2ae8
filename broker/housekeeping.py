"""What replicas need from time to time: a look for followers that fell behind, and checkpoints."""

from __future__ import annotations

import asyncio

from broker.partition_events import Tick
from broker.partition_store import PartitionStore
from broker.registry import Registry
from broker.replica import Step
from broker.replication_config import ReplicationConfig
from quorumlog.clock import Clock


async def tick_for_ever(registry: Registry, step: Step, config: ReplicationConfig) -> None:
    """Twice in `replica.lag.time.max.ms`, as Kafka does."""
    while True:
        await asyncio.sleep(config.replica_lag_time_max_ms / 2000)
        for replica in list(registry.replicas.values()):
            if replica.core.is_leader:
                step(replica, Tick())


async def checkpoint_for_ever(
    registry: Registry, store: PartitionStore, config: ReplicationConfig, clock: Clock
) -> None:
    """High watermarks often, recovery points seldom: the former is what a new leader starts from."""
    points_due_ms = clock.now_ms() + config.recovery_checkpoint_interval_ms
    while True:
        await asyncio.sleep(config.high_watermark_checkpoint_interval_ms / 1000)
        replicas = list(registry.replicas.values())
        if clock.now_ms() >= points_due_ms:
            points_due_ms += config.recovery_checkpoint_interval_ms
            await store.checkpoint_all(replicas)
        else:
            await store.checkpoint_high_watermarks(replicas)

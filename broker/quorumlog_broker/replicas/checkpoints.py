"""Checkpoints from time to time: high watermarks often, because a new leader starts from its own; recovery points
seldom, because they only shorten a recovery."""

from __future__ import annotations

import asyncio

from quorumlog.clock import Clock
from quorumlog.settings.replicas import ReplicationConfig
from quorumlog_broker.logdirs.partition_store import PartitionStore
from quorumlog_broker.replicas.registry import Registry


async def checkpoint_for_ever(
    registry: Registry, store: PartitionStore, config: ReplicationConfig, clock: Clock
) -> None:
    points_due_ms = clock.now_ms() + config.recovery_checkpoint_interval_ms
    while True:
        await asyncio.sleep(config.high_watermark_checkpoint_interval_ms / 1000)
        replicas = list(registry.replicas.values())
        if clock.now_ms() >= points_due_ms:
            points_due_ms += config.recovery_checkpoint_interval_ms
            await store.checkpoint_all(replicas)
        else:
            await store.checkpoint_high_watermarks(replicas)

"""Idempotent producers that have been silent for `producer.id.expiration.ms` are forgotten, log by log.

Each replica does this by itself, in its directory's worker; leader and followers need not agree on the moment. The
setting can be changed while the broker runs, and counts from the next look on. While `retention.paused` is on for all
brokers, as after a restore, nobody is forgotten.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from functools import partial

from quorumlog.clock import Clock
from quorumlog.configs.live import PRODUCER_EXPIRATION
from quorumlog.ids import NodeId, Uuid
from quorumlog.settings.replicas import ReplicationConfig
from quorumlog_broker.logdirs.log_directory import DirectoryQueue, Lane
from quorumlog_broker.replicas.own_settings import is_all_kept, own_setting
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.replica import Replica


async def expire_producers_for_ever(
    node_id: NodeId, registry: Registry, config: ReplicationConfig, clock: Clock
) -> None:
    """One log at a time in each directory.

    If a thousand logs were in the worker's queue at once, appends and logs to be opened would wait behind them.
    """
    rounds: dict[Uuid, deque[Replica]] = {}  # the logs that are still to be done, by directory

    def expiration_ms() -> int:
        return own_setting(registry.image, node_id, PRODUCER_EXPIRATION, config.producer_id_expiration_ms)

    async def look_at(directory_id: Uuid) -> None:
        waiting = rounds[directory_id]
        while waiting:
            replica = waiting.popleft()
            if replica.log is not None and replica.queue is not None and not replica.is_frozen:
                work = partial(replica.log.expire_producers, clock.now_ms(), expiration_ms())
                with suppress(Exception):  # told by the queue
                    await replica.queue.run(work, Lane.BACKGROUND)
        del rounds[directory_id]

    try:
        while True:
            await asyncio.sleep(config.producer_id_expiration_check_interval_ms / 1000)
            if is_all_kept(registry.image, node_id):
                continue
            limit_ms = expiration_ms()
            for replica in registry.replicas.values():
                replica.sequences.expire_verifications(clock.now_ms(), limit_ms)
            for queue, replicas in _by_directory(registry).items():
                if queue.directory_id not in rounds:
                    rounds[queue.directory_id] = replicas
                    queue.start(look_at(queue.directory_id), "producer expiry")
    finally:
        for waiting in rounds.values():
            waiting.clear()


def _by_directory(registry: Registry) -> dict[DirectoryQueue, deque[Replica]]:
    found: dict[DirectoryQueue, deque[Replica]] = {}
    for replica in registry.replicas.values():
        if replica.queue is not None:
            found.setdefault(replica.queue, deque()).append(replica)
    return found

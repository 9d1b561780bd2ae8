"""What replicas need from time to time: a look for followers that fell behind, checkpoints, an end to old producers."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial

from broker.fetch.sessions import FetchSessions
from broker.logdirs.partition_store import PartitionStore
from broker.partition.events import FollowerHeard, Tick
from broker.replicas.config import ReplicationConfig
from broker.replicas.registry import Registry
from broker.replicas.replica import Replica, Step
from quorumlog.clock import Clock
from quorumlog.ids import Uuid


async def tick_for_ever(registry: Registry, sessions: FetchSessions, step: Step, config: ReplicationConfig) -> None:
    """Twice in `replica.lag.time.max.ms`, as Kafka does."""
    while True:
        await asyncio.sleep(config.replica_lag_time_max_ms / 2000)
        _step_unnamed_fetches(registry, sessions, step)
        for replica in list(registry.replicas.values()):
            if replica.core.is_leader:
                step(replica, Tick())


def _step_unnamed_fetches(registry: Registry, sessions: FetchSessions, step: Step) -> None:
    """A partition in which nothing has changed was fetched too, although the follower's fetch did not name it."""
    for key, wanted, follower, at_ms in list(sessions.unnamed_fetches()):
        replica = registry.replicas.get(key)
        if replica is None or not replica.core.is_leader or replica.core.leader_epoch != wanted.current_leader_epoch:
            continue
        step(replica, FollowerHeard(follower.replica_id, follower.broker_epoch, at_ms))


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


async def expire_producers_for_ever(registry: Registry, config: ReplicationConfig, clock: Clock) -> None:
    """Each log forgets for itself, in its directory's worker; leader and followers need not agree on the moment.

    One log at a time in each directory: thousands at once held up every append, or else every log to be opened, that
    came behind them.
    """
    rounds: dict[Uuid, deque[Replica]] = {}  # whose turn has not come, by directory

    def go_on(directory_id: Uuid, _told: object = None) -> None:
        waiting = rounds[directory_id]
        while waiting:
            replica = waiting.popleft()
            if replica.log is not None and replica.queue is not None:
                work = partial(replica.log.expire_producers, clock.now_ms(), config.producer_id_expiration_ms)
                next_one = partial(go_on, directory_id)
                replica.queue.run_in_background(work, done=next_one, failed=next_one)
                return
        del rounds[directory_id]

    try:
        while True:
            await asyncio.sleep(config.producer_id_expiration_check_interval_ms / 1000)
            for directory_id, replicas in _by_directory(registry).items():
                if directory_id not in rounds:
                    rounds[directory_id] = replicas
                    go_on(directory_id)
    finally:
        for waiting in rounds.values():
            waiting.clear()


def _by_directory(registry: Registry) -> dict[Uuid, deque[Replica]]:
    found: dict[Uuid, deque[Replica]] = {}
    for replica in registry.replicas.values():
        if replica.queue is not None:
            found.setdefault(replica.queue.directory_id, deque()).append(replica)
    return found

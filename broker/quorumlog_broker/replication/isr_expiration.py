"""Followers that fell behind leave the ISR (Kafka's `isr-expiration` task)."""

from __future__ import annotations

import asyncio

from quorumlog.settings.replicas import ReplicationConfig
from quorumlog_broker.fetch.sessions import FetchSessions
from quorumlog_broker.partition.events import Tick, UnnamedFetch
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.replica import Step


async def check_isr_for_ever(
    registry: Registry, sessions: FetchSessions, step: Step, config: ReplicationConfig
) -> None:
    """Twice in `replica.lag.time.max.ms`, as in Kafka."""
    while True:
        await asyncio.sleep(config.replica_lag_time_max_ms / 2000)
        _count_unnamed_fetches(registry, sessions, step)
        for replica in list(registry.replicas.values()):
            if replica.core.is_leader:
                step(replica, Tick())


def _count_unnamed_fetches(registry: Registry, sessions: FetchSessions, step: Step) -> None:
    """A request of a session also fetches the partitions that it does not name because they have not changed."""
    for key, wanted, follower, at_ms in list(sessions.unnamed_fetches()):
        replica = registry.replicas.get(key)
        if replica is None or not replica.core.is_leader or replica.core.leader_epoch != wanted.current_leader_epoch:
            continue
        step(replica, UnnamedFetch(follower.replica_id, follower.broker_epoch, at_ms))

"""All fetch loops of a broker: one for each leader and own log directory, started when first needed."""

from __future__ import annotations

from collections.abc import Callable

from quorumlog.clock import Clock
from quorumlog.ids import NO_NODE, BrokerEpoch, NodeId, Uuid
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Transport
from quorumlog.settings.replicas import ReplicationConfig
from quorumlog.turn import Turn
from quorumlog_broker.partition.follower_progress import NEVER_MS
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.replica import Replica
from quorumlog_broker.replicas.throttle import ReplicationThrottle
from quorumlog_broker.replication.fetch_position import FetchPosition
from quorumlog_broker.replication.fetcher import Fetcher, Take
from quorumlog_broker.replication.leader_end_point import RemoteLeaderEndPoint


class FetcherPool:
    def __init__(
        self,
        *,
        node_id: NodeId,
        registry: Registry,
        transport: Transport,
        take: Take,
        clock: Clock,
        nursery: Nursery,
        config: ReplicationConfig,
        broker_epoch: Callable[[], BrokerEpoch],
        on_leader_lost: Callable[[NodeId], None],
        turn: Turn,
        throttle: ReplicationThrottle | None = None,
    ) -> None:
        """on_leader_lost: see `RemoteLeaderEndPoint`. throttle: see `Fetcher`."""
        self._node_id = node_id
        self._on_leader_lost = on_leader_lost
        self._throttle = throttle
        self._registry = registry
        self._transport = transport
        self._take = take
        self._clock = clock
        self._nursery, self._turn = nursery, turn
        self._config = config
        self._broker_epoch = broker_epoch
        self._fetchers: dict[tuple[NodeId, Uuid], Fetcher] = {}
        self._following: dict[PartitionKey, Fetcher] = {}
        self._end_points: list[RemoteLeaderEndPoint] = []

    def follow(self, replica: Replica) -> None:
        """Fetch from the end of the replica's log, in its leader epoch; stop fetching for an older epoch."""
        self.unfollow(replica.key)
        if replica.core.leader in (NO_NODE, self._node_id):
            return
        assert replica.log is not None and replica.queue is not None and replica.core.is_follower
        fetcher = self._fetcher(replica.core.leader, replica.queue.directory_id)
        log = replica.log
        position = FetchPosition(
            key=replica.key,
            leader_epoch=replica.core.leader_epoch,
            offset=log.end_offset,
            last_epoch=log.last_epoch,
            log_start=log.start_offset,
        )
        self._following[replica.key] = fetcher
        fetcher.add(position)

    def unfollow(self, key: PartitionKey) -> None:
        fetcher = self._following.pop(key, None)
        if fetcher is not None:
            fetcher.remove(key)

    def heard_ms(self, key: PartitionKey) -> int:
        """When the leader of a partition has last answered a fetch; NEVER_MS: it has not, or none is fetched from."""
        fetcher = self._following.get(key)
        return NEVER_MS if fetcher is None else fetcher.heard_ms

    def max_lag(self) -> int:
        """Of all partitions that are fetched, in offsets. Any thread may ask."""
        return max([fetcher.max_lag() for fetcher in list(self._fetchers.values())], default=0)

    async def close(self) -> None:
        for fetcher in self._fetchers.values():
            fetcher.stop()
        for end_point in self._end_points:
            await end_point.close()

    def _fetcher(self, leader: NodeId, directory_id: Uuid) -> Fetcher:
        fetcher = self._fetchers.get((leader, directory_id))
        if fetcher is None:
            fetcher = self._make(leader)
            self._fetchers[leader, directory_id] = fetcher
        return fetcher

    def _make(self, leader: NodeId) -> Fetcher:
        end_point = RemoteLeaderEndPoint(
            leader, self._registry, self._transport, self._config, self._on_leader_lost, self._nursery
        )
        fetcher = Fetcher(
            node_id=self._node_id,
            leader=end_point,
            take=self._take,
            clock=self._clock,
            turn=self._turn,
            config=self._config,
            broker_epoch=self._broker_epoch,
            throttle=self._throttle,
        )
        self._end_points.append(end_point)
        return fetcher

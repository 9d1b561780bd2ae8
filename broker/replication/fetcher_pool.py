"""All pull loops of a broker: one per leader and own log directory, started when first needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from broker.replicas.config import ReplicationConfig
from broker.replicas.reconciler import PartitionKey
from broker.replicas.registry import Registry
from broker.replicas.replica import Replica
from broker.replication.fetch_position import FetchPosition
from broker.replication.fetcher import Fetcher, Sink
from quorumlog.clock import Clock
from quorumlog.ids import NO_NODE, BrokerEpoch, NodeId, Uuid
from quorumlog.messages.fetch import FetchRequest, FetchResponse
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Address, Connection, NotDelivered, RpcError, Transport


class LeaderEndPoint:
    """Another broker's internal listener, wherever the metadata says that it is now."""

    def __init__(
        self,
        broker_id: NodeId,
        registry: Registry,
        transport: Transport,
        config: ReplicationConfig,
        on_lost: Callable[[NodeId], None],
    ) -> None:
        """on_lost: told of the broker once for each connection on which it had answered and which then failed."""
        self._broker_id = broker_id
        self._on_lost = on_lost
        self._registry = registry
        self._transport = transport
        self._listener_names = (config.replication_listener_name, config.internal_listener_name)
        self._connection: Connection | None = None
        self._answered = False  # on this connection

    async def fetch(self, request: FetchRequest, timeout_ms: int) -> FetchResponse:
        """See `fetcher.Source`. A connection that failed is not used again."""
        address = self._address()
        if self._connection is not None and self._connection.address != address:
            await self.close()
        if self._connection is None:
            self._connection = self._transport.connect(address, internal=True, client_id="replica-fetcher")
        try:
            response: FetchResponse = await self._connection.call(request, timeout_ms)
        except RpcError:
            if self._answered:
                self._on_lost(self._broker_id)
            await self.close()
            raise
        self._answered = True
        return response

    async def close(self) -> None:
        connection, self._connection, self._answered = self._connection, None, False
        if connection is not None:
            await connection.close()

    def _address(self) -> Address:
        broker = self._registry.image.brokers.get(self._broker_id)
        found = [] if broker is None else [broker.endpoint(name) for name in self._listener_names]
        endpoint = next((endpoint for endpoint in found if endpoint is not None), None)
        if endpoint is None:
            raise NotDelivered(f"broker {self._broker_id} has no listener {self._listener_names[-1]} in the metadata")
        return Address(endpoint.host, endpoint.port)


class FetcherPool:
    def __init__(
        self,
        *,
        node_id: NodeId,
        registry: Registry,
        transport: Transport,
        sink: Sink,
        clock: Clock,
        nursery: Nursery,
        config: ReplicationConfig,
        broker_epoch: Callable[[], BrokerEpoch],
        on_source_lost: Callable[[NodeId], None],
    ) -> None:
        """on_source_lost: see `LeaderEndPoint`."""
        self._node_id = node_id
        self._on_source_lost = on_source_lost
        self._registry = registry
        self._transport = transport
        self._sink = sink
        self._clock = clock
        self._nursery = nursery
        self._config = config
        self._broker_epoch = broker_epoch
        self._fetchers: dict[tuple[NodeId, Uuid], Fetcher] = {}
        self._following: dict[PartitionKey, Fetcher] = {}
        self._sources: list[LeaderEndPoint] = []
        self._tasks: list[asyncio.Task[None]] = []

    def follow(self, replica: Replica) -> None:
        """Fetch into the replica's log from where it ends, in its leader epoch, and for no older one any more."""
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

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            try:
                await task
            except asyncio.CancelledError:
                current = asyncio.current_task()
                if current is not None and current.cancelling():
                    raise
        for source in self._sources:
            await source.close()

    def _fetcher(self, leader: NodeId, directory_id: Uuid) -> Fetcher:
        fetcher = self._fetchers.get((leader, directory_id))
        if fetcher is None:
            fetcher = self._start(leader, f"fetcher:{leader}:{directory_id.hex()[:8]}")
            self._fetchers[leader, directory_id] = fetcher
        return fetcher

    def _start(self, leader: NodeId, name: str) -> Fetcher:
        source = LeaderEndPoint(leader, self._registry, self._transport, self._config, self._on_source_lost)
        fetcher = Fetcher(
            node_id=self._node_id,
            source=source,
            sink=self._sink,
            clock=self._clock,
            nursery=self._nursery,
            config=self._config,
            broker_epoch=self._broker_epoch,
            name=name,
        )
        self._sources.append(source)
        self._tasks.append(self._nursery.start(fetcher.run(), name))
        return fetcher

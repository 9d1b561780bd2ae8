"""The measured cluster: three real processes, and asynchronous clients of it on the caller's loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any

from quorumlog.client import real_edges as edge
from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.consumer import AsyncConsumer
from quorumlog.client.errors import QuorumlogError, RequestFailed
from quorumlog.client.offsets import LATEST
from quorumlog.client.producer import AsyncProducer
from quorumlog.ids import NodeId
from quorumlog.rpc.transport import RpcError
from quorumlog.testing.nodes import LocalNodes

READY_S = 30.0
POLL_S = 0.02
READ_MS = 1_000  # one wait for records
_numbers = count(1)


class Subject:
    """One running cluster. The caller closes the clients that it gets.

    transport: the option `transport` of producers and consumers.
    """

    def __init__(self, nodes: LocalNodes, transport: str = "auto") -> None:
        self.nodes, self._transport = nodes, transport

    def by(self, transport: str) -> Subject:
        """The same cluster, over another transport."""
        return Subject(self.nodes, transport)

    def producer(self, **options: Any) -> AsyncProducer:
        return edge.producer(self._config, acks="all", **options)

    def consumer(self, **options: Any) -> AsyncConsumer:
        return edge.consumer(self._config, **options)

    @property
    def _config(self) -> dict[str, Any]:
        return {"bootstrap.servers": self.nodes.layout.bootstrap_servers, "transport": self._transport}

    def admin(self, without: NodeId | None = None) -> AsyncAdmin:
        """without: a node that is not asked, because it will be killed."""
        addresses = [node.client_address for node in self.nodes.layout.nodes if node.node_id != without]
        return edge.admin({"bootstrap.servers": ",".join(addresses)}, request_timeout_ms=10_000)

    @asynccontextmanager
    async def topic(self, partitions: int, configs: Mapping[str, str] | None = None) -> AsyncIterator[str]:
        """A new topic with three replicas, all in sync; deleted after the block."""
        name = f"bench-{next(_numbers)}"
        await self.create(name, partitions, configs=configs)
        yield name
        await self.delete(name)

    async def delete(self, name: str) -> None:
        admin = self.admin()
        try:
            with suppress(RequestFailed):  # a retry may find that the first try deleted it
                await admin.delete_topic(name)
        finally:
            await admin.close()

    async def ends(self, name: str) -> int:
        """The sum of the end offsets of the topic's partitions."""
        admin = self.admin()
        try:
            found = await admin.describe_topic(name)
            return sum(
                one.offset
                for one in (
                    await admin.list_offsets({(name, part.index): LATEST for part in found.partitions})
                ).values()
            )
        finally:
            await admin.close()

    async def committed(self, name: str) -> int:
        """How many records of the topic a reader of committed records finds."""
        count = 0
        async with self.consumer(isolation_level="read_committed") as consumer:
            await consumer.assign_topic(name, "earliest", stop="latest")
            while not consumer.finished:
                found = await consumer.next_arrow(READ_MS)
                count += 0 if found is None else int(found[1].num_rows)
        return count

    async def create(
        self, name: str, partitions: int, replicas: int = 3, configs: Mapping[str, str] | None = None
    ) -> None:
        """A topic with so many replicas, all in sync."""
        admin = self.admin()
        try:
            await admin.create_topic(name, partitions, replicas, configs=configs)
            await self._in_sync(admin, name, replicas)
        finally:
            await admin.close()

    async def _in_sync(self, admin: AsyncAdmin, name: str, replicas: int) -> None:
        async def ready() -> bool:
            found = (await admin.describe_topic(name)).partitions
            return bool(found) and all(len(part.isr) == replicas and part.leader_id >= 0 for part in found)

        await until(ready, f"{name} to be in sync")


async def until(true: Callable[[], Any], what: str, timeout_s: float = READY_S) -> float:
    """Seconds until the coroutine function returns a true value. An error of the cluster counts as false."""
    start = time.perf_counter()
    while time.perf_counter() - start < timeout_s:
        try:
            if await true():
                return time.perf_counter() - start
        except (QuorumlogError, RpcError):
            pass
        await asyncio.sleep(POLL_S)
    raise TimeoutError(f"waited {timeout_s} s for {what}")

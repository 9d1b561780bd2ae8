"""What a client sees of thousands of partitions: their leaders and ISRs at chosen brokers, and writes to each of them.

Raw sockets, the same for every cluster (raw_client.py). A look asks one broker for one topic, so that it is short; a
topic that was as wanted is not asked for again. Leaders get one request at a time about all their partitions: for their
ends, or with a record for each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from bench.raw.client import RETRY_S, Connection, until
from quorumlog.client.offsets import LATEST
from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.cluster import CreatableTopic, CreateTopicsRequest, MetadataRequest, PartitionMetadata
from quorumlog.messages.cluster import TopicQuery as Query
from quorumlog.messages.fetch import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopic
from quorumlog.messages.produce import ProducePartition, ProduceRequest, ProduceResponse, ProduceTopic
from quorumlog.records.format.record import Record
from quorumlog.records.rowwise.plain import encode_batch

METADATA_VERSION, CREATE_VERSION, PRODUCE_VERSION, LIST_OFFSETS_VERSION = 12, 7, 9, 7
CREATE_TIMEOUT_MS, WRITE_TIMEOUT_MS = 120_000, 30_000
ALL_REPLICAS = -1  # acks
Partition = tuple[str, int]
Good = Callable[[PartitionMetadata], bool]
Call = Callable[[NodeId, Sequence[Partition]], Coroutine[Any, Any, list[Partition]]]


class Watcher:
    """One client of a cluster. Nodes are 1, 2, ... in the order of `servers`, "host:port,...".

    Only inside one running loop; the caller closes it.
    """

    def __init__(self, servers: str) -> None:
        self._addresses = dict(enumerate(servers.split(","), 1))
        self._connections: dict[NodeId, Connection] = {}

    @property
    def nodes(self) -> list[NodeId]:
        return list(self._addresses)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    async def ask(self, node: NodeId, request: Any, version: int) -> Any:
        """Raises OSError, asyncio.IncompleteReadError; the next call connects again."""
        connection = self._connections.get(node)
        try:
            if connection is None:
                host, port = self._addresses[node].rsplit(":", 1)
                connection = self._connections[node] = await Connection.open(host, int(port))
            return await connection.ask(request, version)
        except (OSError, asyncio.IncompleteReadError):
            if (broken := self._connections.pop(node, None)) is not None:
                broken.close()
            raise

    async def create(self, topics: Iterable[CreatableTopic]) -> None:
        """All in one request. Raises AssertionError if one is refused."""
        request = CreateTopicsRequest(topics=tuple(topics), timeout_ms=CREATE_TIMEOUT_MS)
        response = await self.ask(self.nodes[0], request, CREATE_VERSION)
        refused = [(one.name, ErrorCode(one.error_code).name) for one in response.topics if one.error_code]
        assert not refused, f"not created: {refused}"

    async def partitions(self, node: NodeId, topic: str) -> Sequence[PartitionMetadata]:
        """As this broker knows them; none if it does not know the topic, or cannot be asked."""
        request = MetadataRequest(all_topics=False, topics=(Query(name=topic),), allow_auto_topic_creation=False)
        try:
            response = await self.ask(node, request, METADATA_VERSION)
        except (OSError, asyncio.IncompleteReadError):
            return ()
        return tuple(response.topics[0].partitions)

    async def until_seen(self, nodes: Collection[NodeId], topics: Mapping[str, int], good: Good) -> None:
        """Until each partition has been as wanted at each of these brokers. topics: their numbers of partitions."""
        for topic, count in topics.items():
            for node in nodes:
                await until(partial(self._sees, node, topic, count, good))

    async def _sees(self, node: NodeId, topic: str, count: int, good: Good) -> bool:
        return is_seen(await self.partitions(node, topic), count, good)

    async def until_led(self, nodes: Sequence[NodeId], topics: Mapping[str, int]) -> None:
        """Until the leader of each partition has told its end: it serves. nodes: to ask for leaders."""
        await self._of_all(nodes, topics, self._asked)

    async def write_to_all(self, nodes: Sequence[NodeId], topics: Mapping[str, int]) -> None:
        """One record to each partition, acknowledged by its whole ISR; tried until it is. nodes: to ask for leaders."""
        await self._of_all(nodes, topics, self._written)

    async def _of_all(self, nodes: Sequence[NodeId], topics: Mapping[str, int], call: Call) -> None:
        """Call the leaders, all at once, about those partitions that are left, until none is."""
        left = dict.fromkeys((topic, index) for topic, count in topics.items() for index in range(count))
        while left:
            leaders = await self._leaders(nodes[0], left)
            async with asyncio.TaskGroup() as tasks:
                calls = [tasks.create_task(call(node, partitions)) for node, partitions in leaders.items()]
            for done in calls:
                for partition in done.result():
                    del left[partition]
            if left:
                await asyncio.sleep(RETRY_S)

    async def _leaders(self, node: NodeId, wanted: Collection[Partition]) -> dict[NodeId, list[Partition]]:
        """Those of `wanted` that have a leader, by leader."""
        found: dict[NodeId, list[Partition]] = {}
        for topic in dict.fromkeys(topic for topic, _ in wanted):
            for partition in await self.partitions(node, topic):
                if (topic, partition.index) in wanted and partition.leader_id in self._addresses:
                    found.setdefault(partition.leader_id, []).append((topic, partition.index))
        return found

    async def _written(self, leader: NodeId, partitions: Sequence[Partition]) -> list[Partition]:
        """The partitions that have taken the record."""
        return await self._without_error(leader, one_record_each(partitions), PRODUCE_VERSION)

    async def _asked(self, leader: NodeId, partitions: Sequence[Partition]) -> list[Partition]:
        """The partitions whose ends it told."""
        return await self._without_error(leader, ends_of(partitions), LIST_OFFSETS_VERSION)

    async def _without_error(self, node: NodeId, request: Any, version: int) -> list[Partition]:
        try:
            return carried_out(await self.ask(node, request, version))
        except (OSError, asyncio.IncompleteReadError):
            return []


def is_seen(partitions: Sequence[PartitionMetadata], count: int, good: Good) -> bool:
    """All `count` partitions are there and as wanted."""
    return len(partitions) == count and all(map(good, partitions))


def one_record_each(partitions: Iterable[Partition]) -> ProduceRequest:
    records = encode_batch([Record(0, 0, None, b"probe")])
    topics: dict[str, list[ProducePartition]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(ProducePartition(index=index, records=records))
    rows = tuple(ProduceTopic(name=name, partitions=tuple(of_topic)) for name, of_topic in topics.items())
    return ProduceRequest(acks=ALL_REPLICAS, timeout_ms=WRITE_TIMEOUT_MS, topics=rows)


def ends_of(partitions: Iterable[Partition]) -> ListOffsetsRequest:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(ListOffsetsPartition(index=index, timestamp_ms=LATEST))
    rows = tuple(ListOffsetsTopic(name=name, partitions=tuple(of_topic)) for name, of_topic in topics.items())
    return ListOffsetsRequest(isolation_level=0, topics=rows)


def carried_out(response: ProduceResponse | ListOffsetsResponse) -> list[Partition]:
    """The partitions without an error."""
    return [
        (topic.name, partition.index)
        for topic in response.topics
        for partition in topic.partitions
        if partition.error_code == ErrorCode.NONE
    ]

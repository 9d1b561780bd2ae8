"""An in-memory cluster behind the Transport interface: enough of a broker to test clients, with scripted faults."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.cluster import (
    BrokerMetadata,
    CreateTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)
from quorumlog.messages.common import CurrentLeader, NodeEndpoint
from quorumlog.messages.fetch import (
    AbortedTransaction,
    FetchChunkRequest,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopicResponse,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from quorumlog.messages.produce import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicResponse,
)
from quorumlog.records import NO_PRODUCER, decode_batch, headers, iter_batch, stamp
from quorumlog.rpc.transport import Address, NotDelivered, NotServed, OutcomeUnknown
from quorumlog_storage.producers.producer_state import ProducerStates, check

TOPIC_ID = b"t" * 16


@dataclass
class FakeLog:
    leader: int
    epoch: int = 1
    start: int = 0
    end: int = 0
    batches: list[tuple[int, int, bytes]] = field(default_factory=list)  # (base, next, bytes)
    producers: ProducerStates = field(default_factory=ProducerStates)
    first_open: int | None = None  # of the oldest open transaction
    aborted: list[tuple[int, int, int]] = field(default_factory=list)  # (producer, first offset, marker's offset)

    @property
    def stable(self) -> int:
        return self.end if self.first_open is None else self.first_open

    def append(self, records: bytes) -> int:
        """Returns the base offset, also of a repeated batch. Raises ApiError if its sequence is out of order."""
        base = self.end
        for header in headers(records):
            if header.producer_id != NO_PRODUCER:
                repeated = check(self.producers.entries.get(header.producer_id), header)
                if repeated is not None:
                    return repeated.base_offset
                self.producers.note(replace(header, base_offset=self.end))
            first, rest = stamp(records, header, self.end, self.epoch)
            next_offset = self.end + header.last_offset_delta + 1
            self.batches.append((self.end, next_offset, first + bytes(rest)))
            self.end = next_offset
        return base

    def first_at(self, timestamp_ms: int, upper: int) -> int:
        """The first offset below `upper` whose record is not older; -1: there is none."""
        for _, _, data in self.batches:
            for header in headers(data):
                for record in iter_batch(data, header):
                    if self.start <= record.offset < upper and record.timestamp_ms >= timestamp_ms:
                        return record.offset
        return -1

    def read(self, offset: int, max_bytes: int, upper: int) -> bytes:
        found = b""
        for base, next_offset, data in self.batches:
            if next_offset <= offset or base >= upper:
                continue
            if found and len(found) + len(data) > max_bytes:
                break
            found += data
        return found


class TestClock:
    __test__ = False

    def now_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000)

    def wall_ms(self) -> int:
        return 1_700_000_000_000


Fault = Callable[[Any], Exception | Any | None]


class FakeCluster:
    """Brokers 1..n at host b<n>.

    `faults`: each request takes the oldest one. An Exception is raised, an answer is returned, None lets it through.
    `after`: the same after the request was carried out, in place of its answer.
    `hung`: brokers that take requests and answer nothing, like a stopped process.
    `ids`: of topics. `metadata_offset`: as metadata say it; -1: they do not, as Kafka's.
    `behind`: brokers that are cut off, and what the cluster was when they last heard of it.
    `near`: by rack, the follower that leaders send readers to, which serves them unless it is in `refusals`.
    """

    def __init__(self, *, brokers: int = 3, partitions: int = 3, topic: str = "t") -> None:
        self.brokers = {node: Address(f"b{node}", 9092) for node in range(1, brokers + 1)}
        self.topics = {topic: [FakeLog(leader=1 + i % brokers) for i in range(partitions)]}
        self.ids = {topic: TOPIC_ID}
        self.metadata_offset = -1
        self.behind: dict[int, FakeCluster] = {}
        self.faults: dict[type, deque[Fault]] = {}
        self.after: dict[type, deque[Fault]] = {}
        self.requests: list[tuple[int, Any]] = []
        self.hung: set[int] = set()
        self.gate: asyncio.Event | None = None  # if set, produce requests wait for it
        self.delay_s: Callable[[], float] | None = None  # delay before each produce; requests may overtake
        self.created: list[str] = []
        self.racks: dict[int, str] = {}  # of brokers
        self.near: dict[str, int] = {}
        self.refusals: dict[int, ErrorCode] = {}
        self.cluster_ids: dict[int, str] = {}  # by broker; "" for one that is not in it
        self.next_producer_id = 1_000

    def connect(self, address: Address, *, internal: bool, client_id: str = "") -> FakeConnection:
        assert not internal
        node = next((n for n, a in self.brokers.items() if a == address), 0)
        return FakeConnection(self, node, address)

    def fault(self, kind: type, *faults: Fault) -> None:
        self.faults.setdefault(kind, deque()).extend(faults)

    def fault_after(self, kind: type, *faults: Fault) -> None:
        self.after.setdefault(kind, deque()).extend(faults)

    def move(self, topic: str, partition: int, leader: int) -> None:
        log = self.topics[topic][partition]
        log.leader, log.epoch = leader, log.epoch + 1

    def values(self, topic: str, partition: int) -> list[bytes | None]:
        return [
            record.value
            for _, _, data in self.topics[topic][partition].batches
            for header in headers(data)
            for record in decode_batch(data, header)
        ]

    def make_anew(self, topic: str, topic_id: bytes, partitions: int) -> None:
        """The topic was deleted, and made again."""
        brokers = len(self.brokers)
        self.topics[topic] = [FakeLog(leader=1 + i % brokers, epoch=0) for i in range(partitions)]
        self.ids[topic] = topic_id
        self.metadata_offset += 10 if self.metadata_offset >= 0 else 0

    def _is_other(self, topic: Any) -> bool:
        """A request names an id that nothing has, as far as is known."""
        return bool(topic.topic_id) and topic.topic_id != self.ids.get(topic.name, TOPIC_ID)

    async def answer(self, node: int, request: Any) -> Any:
        if node in self.behind:
            return await self.behind[node].answer(node, request)
        self.requests.append((node, request))
        scripted = self.faults.get(type(request))
        if scripted:
            result = scripted.popleft()(request)
            if isinstance(result, Exception):
                raise result
            if result is not None:
                return result
        if node == 0:
            raise NotDelivered("nothing listens there")
        answer = await getattr(self, f"_{type(request).__name__}")(node, request)
        late = self.after.get(type(request))
        if late:
            result = late.popleft()(request)
            if isinstance(result, Exception):
                raise result
            return answer if result is None else result
        return answer

    async def _FetchChunkRequest(self, node: int, request: FetchChunkRequest) -> None:
        raise NotServed(f"b{node} speaks no gRPC")

    async def _MetadataRequest(self, node: int, request: MetadataRequest) -> MetadataResponse:
        names = list(self.topics) if request.all_topics or not request.topics else [t.name for t in request.topics]
        return MetadataResponse(
            brokers=tuple(
                BrokerMetadata(node_id=n, host=a.host, port=a.port, rack=self.racks.get(n))
                for n, a in self.brokers.items()
            ),
            cluster_id=self.cluster_ids.get(node, ""),
            controller_id=1,
            topics=tuple(self._topic(name) for name in names),
            metadata_offset=self.metadata_offset,
        )

    def _topic(self, name: str) -> TopicMetadata:
        logs = self.topics.get(name)
        if logs is None:
            return TopicMetadata(name=name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return TopicMetadata(
            name=name,
            topic_id=self.ids.get(name, TOPIC_ID),
            partitions=tuple(
                PartitionMetadata(index=i, leader_id=log.leader, leader_epoch=log.epoch, replicas=(log.leader,))
                for i, log in enumerate(logs)
            ),
        )

    async def _ProduceRequest(self, node: int, request: ProduceRequest) -> ProduceResponse | None:
        if self.gate is not None:
            await self.gate.wait()
        if self.delay_s is not None:
            await asyncio.sleep(self.delay_s())
        topics = []
        nodes: list[NodeEndpoint] = []
        for topic in request.topics:
            parts = []
            for part in topic.partitions:
                if self._is_other(topic):
                    parts.append(ProducePartitionResponse(index=part.index, error_code=ErrorCode.UNKNOWN_TOPIC_ID))
                    continue
                log = self.topics[topic.name][part.index]
                if log.leader != node:
                    address = self.brokers[log.leader]
                    nodes.append(NodeEndpoint(node_id=log.leader, host=address.host, port=address.port))
                    parts.append(
                        ProducePartitionResponse(
                            index=part.index,
                            error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
                            current_leader=CurrentLeader(leader_id=log.leader, leader_epoch=log.epoch),
                        )
                    )
                else:
                    try:
                        base = log.append(bytes(part.records))
                        parts.append(ProducePartitionResponse(index=part.index, base_offset=base, log_start_offset=0))
                    except ApiError as error:
                        parts.append(ProducePartitionResponse(index=part.index, error_code=error.code))
            topics.append(ProduceTopicResponse(name=topic.name, partitions=tuple(parts)))
        return ProduceResponse(topics=tuple(topics), node_endpoints=tuple(nodes)) if request.acks else None

    async def _InitProducerIdRequest(self, node: int, request: InitProducerIdRequest) -> InitProducerIdResponse:
        self.next_producer_id += 1
        return InitProducerIdResponse(producer_id=self.next_producer_id, producer_epoch=0)

    async def _FetchRequest(self, node: int, request: FetchRequest) -> FetchResponse:
        topics = []
        empty = True
        for topic in request.topics:
            parts = []
            for part in topic.partitions:
                if self._is_other(topic):
                    parts.append(FetchPartitionResponse(index=part.index, error_code=ErrorCode.UNKNOWN_TOPIC_ID))
                    continue
                log = self.topics[topic.name][part.index]
                near = self.near.get(request.rack, log.leader)
                if node not in (log.leader, near):
                    answer = FetchPartitionResponse(index=part.index, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
                elif near != node:
                    answer, empty = FetchPartitionResponse(index=part.index, preferred_read_replica=near), False
                elif node != log.leader and node in self.refusals:
                    answer = FetchPartitionResponse(index=part.index, error_code=self.refusals[node])
                elif not log.start <= part.fetch_offset <= log.end:
                    answer = FetchPartitionResponse(index=part.index, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
                else:
                    upper = log.stable if request.isolation_level else log.end
                    data = log.read(part.fetch_offset, part.max_bytes, upper)
                    empty = empty and not data
                    named = [(one, first) for one, first, last in log.aborted if last >= part.fetch_offset]
                    answer = FetchPartitionResponse(
                        index=part.index,
                        high_watermark=log.end,
                        last_stable_offset=log.stable,
                        aborted_transactions=tuple(AbortedTransaction(producer_id=p, first_offset=o) for p, o in named),
                        records=data,
                    )
                parts.append(answer)
            topics.append(FetchTopicResponse(topic_id=topic.topic_id, name=topic.name, partitions=tuple(parts)))
        if empty:
            await asyncio.sleep(min(request.max_wait_ms, 20) / 1000)
        return FetchResponse(topics=tuple(topics))

    async def _ListOffsetsRequest(self, node: int, request: ListOffsetsRequest) -> ListOffsetsResponse:
        topics = []
        for topic in request.topics:
            parts = []
            for part in topic.partitions:
                if self._is_other(topic):
                    parts.append(ListOffsetsPartitionResponse(index=part.index, error_code=ErrorCode.UNKNOWN_TOPIC_ID))
                    continue
                log = self.topics[topic.name][part.index]
                last = log.stable if request.isolation_level else log.end
                offset = {-1: last, -2: log.start}.get(part.timestamp_ms, -1)
                if part.timestamp_ms >= 0:
                    offset = log.first_at(part.timestamp_ms, last)
                code = ErrorCode.NONE if log.leader == node else ErrorCode.NOT_LEADER_OR_FOLLOWER
                parts.append(ListOffsetsPartitionResponse(index=part.index, offset=offset, error_code=code))
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=tuple(parts)))
        return ListOffsetsResponse(topics=tuple(topics))

    async def _CreateTopicsRequest(self, node: int, request: CreateTopicsRequest) -> CreateTopicsResponse:
        results = []
        for topic in request.topics:
            exists = topic.name in self.topics
            if not exists:
                self.topics[topic.name] = [FakeLog(leader=1) for _ in range(max(topic.num_partitions, 1))]
                self.created.append(topic.name)
            code = ErrorCode.TOPIC_ALREADY_EXISTS if exists else ErrorCode.NONE
            results.append(CreateTopicResult(name=topic.name, error_code=code))
        return CreateTopicsResponse(topics=tuple(results))

    async def _DeleteTopicsRequest(self, node: int, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
        results = []
        for topic in request.topics:
            found = self.topics.pop(topic.name, None) is not None
            code = ErrorCode.NONE if found else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            results.append(DeleteTopicResult(name=topic.name, error_code=code))
        return DeleteTopicsResponse(topics=tuple(results))


class FakeConnection:
    def __init__(self, cluster: FakeCluster, node: int, address: Address) -> None:
        self.address = address
        self._cluster, self._node = cluster, node

    def call(self, request: Any, timeout_ms: int) -> Awaitable[Any]:
        if self._node in self._cluster.hung:
            return self._no_answer(request, timeout_ms)
        return self._cluster.answer(self._node, request)

    async def _no_answer(self, request: Any, timeout_ms: int) -> None:
        self._cluster.requests.append((self._node, request))
        await asyncio.sleep(timeout_ms / 1000)
        raise OutcomeUnknown(f"no answer within {timeout_ms} ms")

    def on_closed(self, callback: Callable[[], None]) -> None: ...

    async def close(self) -> None: ...

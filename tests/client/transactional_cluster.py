"""An in-memory cluster whose broker 2 coordinates transactions with the real core, and whose leaders write markers.

Markers are written when a decision is committed, or later with `marks = False`. transaction_version: the level of that
feature; 0 is not announced.
"""

from __future__ import annotations

from typing import Any

from fake_cluster import FakeCluster

from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import (
    Coordinator,
    DescribedFeature,
    DescribeFeaturesRequest,
    DescribeFeaturesResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from quorumlog.messages.groups import OffsetCommitPartitionResult, OffsetCommitTopicResult
from quorumlog.messages.produce import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicResponse,
)
from quorumlog.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from quorumlog.records import BatchHeader, decode_batch, headers
from quorumlog.records.control import EndTxnMarker, control_batch
from tests.broker.coordinator.transaction_world import TransactionWorld

ANSWERS: dict[type, Any] = {
    InitProducerIdRequest: InitProducerIdResponse,
    AddOffsetsToTxnRequest: AddOffsetsToTxnResponse,
    EndTxnRequest: EndTxnResponse,
}
OFFSETS = ("__consumer_offsets", 7)


class TransactionalCluster(FakeCluster):
    """committed_offsets: by group and partition, of committed transactions. members: those of each group that may
    commit; a group without an entry takes all."""

    def __init__(self, *, level: int = 2, **options: Any) -> None:
        super().__init__(**options)
        self.world = TransactionWorld(version=level, automark=False)
        self.marks = True
        self.coordinator = 2
        self.committed_offsets: dict[tuple[str, str, int], int] = {}
        self.members: dict[str, str] = {}
        self._pending_offsets: dict[int, dict[tuple[str, str, int], int]] = {}

    def fence(self, transactional_id: str) -> None:
        """Another producer takes over."""
        self.world.init(transactional_id)
        self.mark()
        self.world.init(transactional_id)

    def mark(self) -> None:
        """Write the markers of every decided transaction."""
        while self.world.decided:
            one = self.world.decided.pop(0)
            for topic, index in sorted(one.partitions):
                if (topic, index) == OFFSETS:
                    found = self._pending_offsets.pop(one.ending.producer_id, {})
                    self.committed_offsets.update(found if one.ending.committed else {})
                else:
                    log = self.topics[topic][index]
                    batch = control_batch(
                        [EndTxnMarker(one.ending.committed, one.ending.coordinator_epoch)],
                        base_offset=log.end,
                        timestamp_ms=5,
                        producer_id=one.ending.producer_id,
                        producer_epoch=one.ending.producer_epoch,
                    )
                    (header,) = headers(batch)
                    log.producers.note(header, one.ending.marker)
                    log.batches.append((log.end, log.end + 1, batch))
                    log.end += 1
                step = (one.transactional_id, one.ending.producer_epoch, (topic, index))
                self.world.step(self.world.shard.marker_written, *step)

    def visible(self, topic: str, partition: int) -> list[bytes | None]:
        """What a reader of committed records sees, by a plain scan."""
        found: list[tuple[int, bytes | None]] = []
        open_ones: dict[int, list[tuple[int, bytes | None]]] = {}
        for header, data in self.stored(topic, partition):
            if header.is_control:
                ended = open_ones.pop(header.producer_id, [])
                (record,) = decode_batch(data, header)
                found += ended if record.key == b"\x00\x00\x00\x01" else []
            else:
                assert header.is_transactional
                values = [(record.offset, record.value) for record in decode_batch(data, header)]
                open_ones.setdefault(header.producer_id, []).extend(values)
        return [value for _, value in sorted(found)]

    def stored(self, topic: str, partition: int) -> list[tuple[BatchHeader, bytes]]:
        return [(header, data) for _, _, data in self.topics[topic][partition].batches for header in headers(data)]

    def asked(self, kind: type) -> list[Any]:
        return [request for _, request in self.requests if type(request) is kind]

    # --- calls ---

    async def _at_the_coordinator(self, node: int, method: str, request: Any, *more: Any) -> Any:
        if node != self.coordinator:
            return ANSWERS[type(request)](error_code=ErrorCode.NOT_COORDINATOR)
        if self.marks:
            self.mark()
        number = self.world.call(method, request, *more)
        if self.marks:
            self.mark()
        return self.world.answers[number]

    async def _DescribeFeaturesRequest(self, _node: int, _request: DescribeFeaturesRequest) -> DescribeFeaturesResponse:
        one = DescribedFeature(name="transaction.version", min_level=0, max_level=2, finalized_level=self.world.version)
        return DescribeFeaturesResponse(features=(one,) if self.world.version else ())

    async def _FindCoordinatorRequest(self, _node: int, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        node = self.coordinator if request.key_type == 1 else 3
        found = Coordinator(key=request.keys[0], node_id=node, host=f"b{node}", port=9092)
        return FindCoordinatorResponse(coordinators=(found,))

    async def _InitProducerIdRequest(self, node: int, request: InitProducerIdRequest) -> Any:
        return await self._at_the_coordinator(node, "init_producer_id", request)

    async def _AddPartitionsToTxnRequest(self, node: int, request: AddPartitionsToTxnRequest) -> Any:
        (one,) = request.transactions
        if node != self.coordinator:
            return AddPartitionsToTxnResponse(error_code=ErrorCode.NOT_COORDINATOR)
        return AddPartitionsToTxnResponse(results=(await self._at_the_coordinator(node, "add_partitions", one),))

    async def _AddOffsetsToTxnRequest(self, node: int, request: AddOffsetsToTxnRequest) -> Any:
        return await self._at_the_coordinator(node, "add_offsets", request, OFFSETS[1])

    async def _EndTxnRequest(self, node: int, request: EndTxnRequest) -> Any:
        return await self._at_the_coordinator(node, "end_transaction", request)

    async def _TxnOffsetCommitRequest(self, node: int, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
        code = ErrorCode.NONE if node == 3 else ErrorCode.NOT_COORDINATOR
        if self.members.get(request.group_id, request.member_id) != request.member_id:
            code = ErrorCode.UNKNOWN_MEMBER_ID
        producer = request.producer_id, request.producer_epoch
        code = code or self._joined(producer, OFFSETS, request.transactional_id, request.transaction_version)
        if code == ErrorCode.NONE:
            self._pending_offsets.setdefault(request.producer_id, {}).update(
                {
                    (request.group_id, topic.name, part.index): part.committed_offset
                    for topic in request.topics
                    for part in topic.partitions
                }
            )
        return TxnOffsetCommitResponse(
            topics=tuple(
                OffsetCommitTopicResult(
                    name=topic.name,
                    partitions=tuple(
                        OffsetCommitPartitionResult(index=part.index, error_code=code) for part in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )

    async def _ProduceRequest(self, node: int, request: ProduceRequest) -> ProduceResponse | None:
        """A leader asks the coordinator before the first batch of a transaction."""
        assert request.transactional_id is not None
        refused = []
        for topic in request.topics:
            for part in topic.partitions:
                (header,) = headers(bytes(part.records))
                assert header.is_transactional
                entry = self.topics[topic.name][part.index].producers.entries.get(header.producer_id)
                if entry is not None and entry.is_open and entry.epoch == header.producer_epoch:
                    continue
                producer = header.producer_id, header.producer_epoch
                where = topic.name, part.index
                code = self._joined(producer, where, request.transactional_id, request.transaction_version)
                if code != ErrorCode.NONE:
                    answer = ProducePartitionResponse(index=part.index, error_code=code)
                    refused.append(ProduceTopicResponse(name=topic.name, partitions=(answer,)))
        if refused:  # the fake refuses the whole request; the others are as good as not sent
            named = {(topic.name, part.index) for topic in refused for part in topic.partitions}
            for topic in request.topics:
                for part in topic.partitions:
                    if (topic.name, part.index) not in named:
                        answer = ProducePartitionResponse(index=part.index, error_code=ErrorCode.NOT_ENOUGH_REPLICAS)
                        refused.append(ProduceTopicResponse(name=topic.name, partitions=(answer,)))
            return ProduceResponse(topics=tuple(refused))
        return await super()._ProduceRequest(node, request)

    def _joined(self, producer: tuple[int, int], where: tuple[str, int], name: str, version: int) -> ErrorCode:
        if self.marks:
            self.mark()
        number = self.world.add(
            producer, where, transactional_id=name, verify_only=version < 2, transaction_version=version
        )
        code = ErrorCode(self.world.code(number))
        return ErrorCode.INVALID_PRODUCER_EPOCH if code is ErrorCode.PRODUCER_FENCED else code

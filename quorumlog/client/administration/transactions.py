"""What an admin client asks of transactions: which there are, which hang, how each ended, and to end them.

How a transaction ended is read from the log of a partition that it has written to, because its coordinator forgets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from quorumlog.client.administration.hanging import HangingTransaction, OpenTransaction, hanging, open_for_long
from quorumlog.client.cluster.link import NODE_TIMEOUT_MS, Link, check
from quorumlog.client.errors import RequestFailed, Unavailable
from quorumlog.client.group.coordinator import GroupCoordinator
from quorumlog.client.offsets import by_leader
from quorumlog.client.options import ISOLATION_LEVELS
from quorumlog.client.transactions.coordinators import TRANSACTION, Coordinators
from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId, Offset, TopicPartition
from quorumlog.messages.admin import FindCoordinatorRequest, FindCoordinatorResponse
from quorumlog.messages.buffer import whole
from quorumlog.messages.fetch import FetchPartition, FetchPartitionResponse, FetchRequest, FetchResponse, FetchTopic
from quorumlog.messages.produce import InitProducerIdRequest, InitProducerIdResponse
from quorumlog.messages.transactions import (
    ActiveProducer,
    DescribedTransaction,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    EndTxnResponse,
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionMarker,
    TransactionTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from quorumlog.nursery import Nursery
from quorumlog.records import headers, iter_batch
from quorumlog.records.control import EndTxnMarker, decode_control
from quorumlog.rpc.transport import RpcError

OF_UNKNOWN_COORDINATOR = 0  # coordinator epoch of a marker for a transaction that no coordinator has ended before
FENCING_TIMEOUT_MS = 60_000  # transaction.timeout.ms of a producer that is made only to fence another
IDS_PER_REQUEST = 1_000
CALLS_AT_ONCE = 64
MARKER_TIMEOUT_MS = 15_000  # of each look into a log
SCAN_BYTES = 1 << 20  # of each fetch behind the last offset
MAX_SCAN_BYTES = 256 << 20  # of a look; what has not come by then may come later


class TransactionListing(NamedTuple):
    """coordinator: the broker that answered."""

    coordinator: NodeId
    transaction: ListedTransaction


class TransactionDescription(NamedTuple):
    coordinator: NodeId
    transaction: DescribedTransaction


class OpenProducer(NamedTuple):
    """Whose transaction is to be ended."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


class TransactionPlace(NamedTuple):
    """What a producer's only transaction has written to a partition. first, last: offsets, both inclusive."""

    topic: str
    partition: int
    first: Offset
    last: Offset


class Outcome(Enum):
    """UNKNOWN: the log has no trace of it any more, and never will have."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"
    UNKNOWN = "unknown"


class TransactionCoordinator(GroupCoordinator):
    """Of one transactional id, for one client."""

    KEY_TYPE, NAMED = TRANSACTION, "transactional id"


class TransactionAdmin:
    """A part of `AsyncAdmin`, which makes the link."""

    _link: Link

    async def list_transactions(
        self,
        *,
        states: Sequence[str] = (),
        producer_ids: Sequence[int] = (),
        duration_ms: int = -1,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """The transactional ids of all brokers, by name. states: as Kafka names them (Ongoing, PrepareCommit...).

        duration_ms: only of transactions that are open for longer. pattern: RE2, for the whole id.
        Raises RequestFailed: INVALID_REQUEST for a state that does not exist; RpcError if a broker has not answered in
        time, since a list without its ids would be wrong.
        """
        await self._link.refresh([])
        request = ListTransactionsRequest(
            state_filters=tuple(states),
            producer_id_filters=tuple(producer_ids),
            duration_filter_ms=duration_ms,
            transactional_id_pattern=pattern or None,
        )

        async def of_broker(node_id: NodeId) -> tuple[ListedTransaction, ...]:
            async def ask() -> ListTransactionsResponse:
                response: ListTransactionsResponse = await self._link.call_node(node_id, request)
                check(response)
                return response

            response: ListTransactionsResponse = await self._link.until(ask, self._link.options.default_api_timeout_ms)
            if response.unknown_state_filters:
                unknown = ", ".join(response.unknown_state_filters)
                raise RequestFailed(ErrorCode.INVALID_REQUEST, f"no transaction is ever in the state {unknown}")
            return response.transactions

        found: dict[str, TransactionListing] = {}
        for node_id in sorted(self._link.cache.brokers):
            found.update((one.transactional_id, TransactionListing(node_id, one)) for one in await of_broker(node_id))
        return [found[name] for name in sorted(found)]

    async def describe_transaction(self, transactional_id: str) -> TransactionDescription:
        """Raises RequestFailed: TRANSACTIONAL_ID_NOT_FOUND."""
        coordinator = TransactionCoordinator(self._link, transactional_id)
        response: DescribeTransactionsResponse = await coordinator.call(
            DescribeTransactionsRequest(transactional_ids=(transactional_id,))
        )
        check(response)
        (found,) = response.transactions
        if found.error_code != ErrorCode.NONE:
            raise RequestFailed(ErrorCode(found.error_code), f"transactional id {transactional_id!r}")
        return TransactionDescription(await coordinator.find(), found)

    async def describe_producers(
        self, partitions: Iterable[TopicPartition], *, broker_id: NodeId | None = None
    ) -> dict[TopicPartition, tuple[ActiveProducer, ...]]:
        """What each partition's leader, or the replica of this broker, knows of producers.

        Raises RequestFailed: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER (no replica there).
        """
        wanted = list(partitions)
        found: dict[TopicPartition, tuple[ActiveProducer, ...]] = {}

        async def ask() -> None:
            missing = [key for key in wanted if key not in found]
            leaders = await by_leader(self._link, missing)
            for node_id, keys in leaders.items() if broker_id is None else ((broker_id, missing),):
                request = DescribeProducersRequest(topics=_topics(keys))
                response: DescribeProducersResponse = await self._link.call_node(node_id, request)
                check(response)
                for topic in response.topics:
                    for part in topic.partitions:
                        name = f"{topic.name}-{part.index}"
                        if part.error_code != ErrorCode.NONE:
                            text = part.error_message or "the broker gave no reason"
                            raise RequestFailed(ErrorCode(part.error_code), f"producers of {name}: {text}")
                        found[topic.name, part.index] = part.active_producers

        if broker_id is not None:
            await ask()  # a replica does not come there by waiting
        else:
            await self._link.until(ask, self._link.options.default_api_timeout_ms)
        return found

    async def abort_transaction(
        self, partition: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int = -1
    ) -> None:
        """Write an abort marker to a partition whose transaction no coordinator ends any more. Nothing else is touched.

        coordinator_epoch: as DescribeProducers says; -1: it knows none. Raises RequestFailed: TRANSACTION_COORDINATOR_
        FENCED, INVALID_PRODUCER_EPOCH, UNKNOWN_TOPIC_OR_PARTITION.
        """
        marker = TransactionMarker(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            committed=False,
            topics=_topics([partition]),
            coordinator_epoch=coordinator_epoch if coordinator_epoch >= 0 else OF_UNKNOWN_COORDINATOR,
        )

        async def ask() -> None:
            (node_id,) = await by_leader(self._link, [partition])
            response: WriteTxnMarkersResponse = await self._link.call_node(
                node_id, WriteTxnMarkersRequest(markers=(marker,))
            )
            check(response)
            for written in response.markers:
                for topic in written.topics:
                    for part in topic.partitions:
                        if part.error_code != ErrorCode.NONE:
                            raise RequestFailed(ErrorCode(part.error_code), f"marker for {topic.name}-{part.index}")

        await self._link.until(ask, self._link.options.default_api_timeout_ms)

    async def fence_producer(self, transactional_id: str) -> tuple[int, int]:
        """Take the id from its producer, which aborts its transaction. Returns the new producer id and epoch.

        The id is made if it does not exist. Raises RequestFailed.
        """
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=FENCING_TIMEOUT_MS)

        async def ask() -> InitProducerIdResponse:
            response: InitProducerIdResponse = await coordinator.call(request)
            check(response)
            return response

        coordinator = TransactionCoordinator(self._link, transactional_id)
        done: InitProducerIdResponse = await self._link.until(ask, self._link.options.default_api_timeout_ms)
        return done.producer_id, done.producer_epoch

    async def find_hanging_transactions(
        self, partitions: Iterable[TopicPartition], max_timeout_ms: int, *, now_ms: int, broker_id: NodeId | None = None
    ) -> list[HangingTransaction]:
        """Transactions that no coordinator will end: open for longer than any may be, and not known to one.

        max_timeout_ms: transaction.max.timeout.ms of the brokers. now_ms: ms since 1970.
        """
        producers = await self.describe_producers(partitions, broker_id=broker_id)
        candidates = open_for_long(producers, now_ms - max_timeout_ms)
        ids = await self._ids_of(candidates)
        described: dict[str, DescribedTransaction] = {}
        for name in sorted(set(ids.values())):
            try:
                described[name] = (await self.describe_transaction(name)).transaction
            except RequestFailed as error:
                if error.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                    raise
        return hanging(candidates, ids, described)

    async def _ids_of(self, candidates: Sequence[OpenTransaction]) -> dict[int, str]:
        """Transactional ids by producer id."""
        producer_ids = sorted({one.producer.producer_id for one in candidates})
        if not producer_ids:
            return {}
        listed = await self.list_transactions(producer_ids=producer_ids)
        return {one.transaction.producer_id: one.transaction.transactional_id for one in listed}

    async def describe_transactions(self, transactional_ids: Iterable[str]) -> dict[str, DescribedTransaction]:
        """By id; those that no coordinator knows are absent. Raises RequestFailed, RpcError, Unavailable."""
        missing = dict.fromkeys(transactional_ids)
        found: dict[str, DescribedTransaction] = {}

        async def ask() -> None:
            for node_id, ids in (await self._by_coordinator(list(missing))).items():
                for chunk in _chunks(ids):
                    request = DescribeTransactionsRequest(transactional_ids=chunk)
                    response: DescribeTransactionsResponse = await self._link.call_node(node_id, request)
                    check(response)
                    for one in response.transactions:
                        code = ErrorCode(one.error_code)
                        if code not in (ErrorCode.NONE, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND):
                            raise RequestFailed(code, f"transactional id {one.transactional_id!r}")
                        missing.pop(one.transactional_id, None)
                        if code is ErrorCode.NONE:
                            found[one.transactional_id] = one

        await self._link.until(ask, self._link.options.default_api_timeout_ms)
        return found

    async def end_transactions(self, producers: Sequence[OpenProducer], *, commit: bool) -> dict[str, ErrorCode]:
        """By id, what its coordinator said. Each is asked once; a retriable code also stands for no answer: it may have
        been carried out. Raises RequestFailed, RpcError, Unavailable if nobody was asked."""
        limit_ms = self._link.options.default_api_timeout_ms
        level = await self._link.until(lambda: self._level(limit_ms), limit_ms)
        nodes = await self._coordinators([one.transactional_id for one in producers])
        room = asyncio.Semaphore(CALLS_AT_ONCE)

        async def end(one: OpenProducer) -> ErrorCode:
            request = EndTxnRequest(
                transactional_id=one.transactional_id,
                producer_id=one.producer_id,
                producer_epoch=one.producer_epoch,
                committed=commit,
                transaction_version=level,
            )
            async with room:
                try:
                    answer: EndTxnResponse = await self._link.call_node(nodes[one.transactional_id], request)
                except RpcError:
                    return ErrorCode.REQUEST_TIMED_OUT
            return ErrorCode(answer.error_code)

        nursery = Nursery(lambda _name, _error: None)  # an error is raised where its answer is awaited
        try:
            calls = [(one, nursery.start(end(one), f"end of {one.transactional_id}")) for one in producers]
            return {one.transactional_id: await call for one, call in calls}
        finally:
            await nursery.close()

    async def transaction_outcome(self, producer_id: int, place: TransactionPlace) -> Outcome:
        """How the only transaction that this producer ever had has ended, as this partition's log tells.

        Once nothing is open up to its last offset, the leader's list of aborted transactions tells. Before that, or
        where its records are gone, the producer's marker behind them does. Raises RequestFailed, RpcError, Unavailable.
        """
        try:
            answer = await self._look(place, place.last, "read_committed", 1)
            if answer.error_code == ErrorCode.NONE and answer.last_stable_offset > place.last:
                first = next(iter(headers(whole(answer.records), partial_tail=True)), None)
                if first is not None and first.producer_id == producer_id and first.base_offset <= place.last:
                    return Outcome.ABORTED if _is_listed(answer, producer_id, place) else Outcome.COMMITTED
            return await self._behind(producer_id, place)
        except RequestFailed as error:
            if error.code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID):
                return Outcome.UNKNOWN
            raise

    async def _behind(self, producer_id: int, place: TransactionPlace) -> Outcome:
        offset, budget = place.last + 1, MAX_SCAN_BYTES
        while budget > 0:
            answer = await self._look(place, offset, "read_uncommitted", SCAN_BYTES)
            if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                return Outcome.UNKNOWN
            data = whole(answer.records)
            for header in headers(data, partial_tail=True):
                if header.is_control and header.producer_id == producer_id and header.base_offset > place.last:
                    for record in iter_batch(data, header):
                        marker = decode_control(record.key, record.value)
                        if isinstance(marker, EndTxnMarker):
                            return Outcome.COMMITTED if marker.committed else Outcome.ABORTED
                offset = max(offset, header.next_offset)
            budget -= len(data)
            if not data or offset >= answer.high_watermark:
                return Outcome.OPEN if answer.last_stable_offset <= place.last else Outcome.UNKNOWN
        return Outcome.OPEN

    async def _look(
        self, place: TransactionPlace, offset: Offset, level: str, max_bytes: int
    ) -> FetchPartitionResponse:
        """The answer of the leader, also OFFSET_OUT_OF_RANGE."""

        async def ask() -> FetchPartitionResponse:
            (node_id,) = await by_leader(self._link, [(place.topic, place.partition)])
            part = FetchPartition(index=place.partition, fetch_offset=offset, max_bytes=max_bytes)
            topic_id = self._link.cache.topics[place.topic].topic_id
            request = FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=max_bytes,
                isolation_level=ISOLATION_LEVELS[level],
                topics=(FetchTopic(topic_id=topic_id, name=place.topic, partitions=(part,)),),
            )
            response: FetchResponse = await self._link.call_node(node_id, request)
            check(response)
            ((answer,),) = (topic.partitions for topic in response.topics)
            if answer.error_code not in (ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE):
                raise RequestFailed(ErrorCode(answer.error_code), f"{place.topic}-{place.partition}")
            return answer

        found: FetchPartitionResponse = await self._link.until(ask, MARKER_TIMEOUT_MS)
        return found

    async def _level(self, left_ms: int) -> int:
        return await Coordinators(self._link, "").transaction_version(left_ms)

    async def _by_coordinator(self, ids: Sequence[str]) -> dict[NodeId, list[str]]:
        nodes: dict[NodeId, list[str]] = {}
        for name, node_id in (await self._coordinators(ids)).items():
            nodes.setdefault(node_id, []).append(name)
        return nodes

    async def _coordinators(self, ids: Sequence[str]) -> Mapping[str, NodeId]:
        """Of each id. Raises RequestFailed, Unavailable."""
        found: dict[str, NodeId] = {}

        async def ask() -> None:
            for chunk in _chunks([one for one in ids if one not in found]):
                request = FindCoordinatorRequest(key_type=TRANSACTION, keys=chunk)
                response: FindCoordinatorResponse = await self._link.call_any(request, node_timeout_ms=NODE_TIMEOUT_MS)
                check(response)
                for one in response.coordinators:
                    if one.error_code != ErrorCode.NONE:
                        raise RequestFailed(ErrorCode(one.error_code), one.error_message or f"coordinator of {one.key}")
                    found[one.key] = one.node_id

        await self._link.until(ask, self._link.options.default_api_timeout_ms)
        if not set(found.values()) <= set(self._link.cache.brokers):
            await self._link.refresh([])
        if len(found) < len(set(ids)):
            raise Unavailable("a broker named no coordinator for some transactional ids; ask again")
        return found


def _topics(partitions: Iterable[TopicPartition]) -> tuple[TransactionTopic, ...]:
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return tuple([TransactionTopic(name=name, partitions=tuple(indexes)) for name, indexes in topics.items()])


def _is_listed(answer: FetchPartitionResponse, producer_id: int, place: TransactionPlace) -> bool:
    return any(one.producer_id == producer_id and one.first_offset <= place.last for one in answer.aborted_transactions)


def _chunks(ids: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(ids[at : at + IDS_PER_REQUEST]) for at in range(0, len(ids), IDS_PER_REQUEST)]

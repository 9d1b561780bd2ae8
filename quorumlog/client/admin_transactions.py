"""What an admin client asks of transactions (KIP-664): which there are, who has them open, and how one is ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from quorumlog.client.errors import RequestFailed
from quorumlog.client.fetch_position import TopicPartition
from quorumlog.client.group_coordinator import GroupCoordinator
from quorumlog.client.hanging import HangingTransaction, OpenTransaction, hanging, open_for_long
from quorumlog.client.link import Link, check
from quorumlog.client.offsets import by_leader
from quorumlog.client.transactions.coordinators import TRANSACTION
from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.produce import InitProducerIdRequest, InitProducerIdResponse
from quorumlog.messages.transactions import (
    ActiveProducer,
    DescribedTransaction,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionMarker,
    TransactionTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

OF_UNKNOWN_COORDINATOR = 0  # coordinator epoch of a marker for a transaction that no coordinator has ended before
FENCING_TIMEOUT_MS = 60_000  # transaction.timeout.ms of a producer that is made only to fence another


class TransactionListing(NamedTuple):
    """coordinator: the broker that answered."""

    coordinator: NodeId
    transaction: ListedTransaction


class TransactionDescription(NamedTuple):
    coordinator: NodeId
    transaction: DescribedTransaction


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


def _topics(partitions: Iterable[TopicPartition]) -> tuple[TransactionTopic, ...]:
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return tuple([TransactionTopic(name=name, partitions=tuple(indexes)) for name, indexes in topics.items()])

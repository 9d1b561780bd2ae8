"""Transactions as an admin client sees them: many are described or ended at once, and how one ended is found out.

How a transaction ended is read from the log of a partition that it has written to, because its coordinator forgets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from quorumlog.client.cluster.link import NODE_TIMEOUT_MS, Link, check
from quorumlog.client.errors import RequestFailed, Unavailable
from quorumlog.client.offsets import by_leader
from quorumlog.client.options import ISOLATION_LEVELS
from quorumlog.client.transactions.coordinators import TRANSACTION, Coordinators
from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId, Offset, TopicPartition
from quorumlog.messages.admin import FindCoordinatorRequest, FindCoordinatorResponse
from quorumlog.messages.buffer import whole
from quorumlog.messages.fetch import FetchPartition, FetchPartitionResponse, FetchRequest, FetchResponse, FetchTopic
from quorumlog.messages.transactions import (
    DescribedTransaction,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    EndTxnResponse,
    ListedTransaction,
    TransactionTopic,
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


async def describe_transactions(link: Link, transactional_ids: Iterable[str]) -> dict[str, DescribedTransaction]:
    """See `AsyncAdmin.describe_transactions`."""
    missing = dict.fromkeys(transactional_ids)
    found: dict[str, DescribedTransaction] = {}

    async def ask() -> None:
        for node_id, ids in (await _by_coordinator(link, list(missing))).items():
            for chunk in _chunks(ids):
                request = DescribeTransactionsRequest(transactional_ids=chunk)
                response: DescribeTransactionsResponse = await link.call_node(node_id, request)
                check(response)
                for one in response.transactions:
                    code = ErrorCode(one.error_code)
                    if code not in (ErrorCode.NONE, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND):
                        raise RequestFailed(code, f"transactional id {one.transactional_id!r}")
                    missing.pop(one.transactional_id, None)
                    if code is ErrorCode.NONE:
                        found[one.transactional_id] = one

    await link.until(ask, link.options.default_api_timeout_ms)
    return found


async def end_transactions(link: Link, producers: Sequence[OpenProducer], *, commit: bool) -> dict[str, ErrorCode]:
    """See `AsyncAdmin.end_transactions`."""
    limit_ms = link.options.default_api_timeout_ms
    level = await link.until(lambda: Coordinators(link, "").transaction_version(limit_ms), limit_ms)
    nodes = await _coordinators(link, [one.transactional_id for one in producers])
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
                answer: EndTxnResponse = await link.call_node(nodes[one.transactional_id], request)
            except RpcError:
                return ErrorCode.REQUEST_TIMED_OUT
        return ErrorCode(answer.error_code)

    nursery = Nursery(lambda _name, _error: None)  # an error is raised where its answer is awaited
    try:
        calls = [(one, nursery.start(end(one), f"end of {one.transactional_id}")) for one in producers]
        return {one.transactional_id: await call for one, call in calls}
    finally:
        await nursery.close()


async def transaction_outcome(link: Link, producer_id: int, place: TransactionPlace) -> Outcome:
    """See `AsyncAdmin.transaction_outcome`."""
    try:
        answer = await _look(link, place, place.last, "read_committed", 1)
        if answer.error_code == ErrorCode.NONE and answer.last_stable_offset > place.last:
            first = next(iter(headers(whole(answer.records), partial_tail=True)), None)
            if first is not None and first.producer_id == producer_id and first.base_offset <= place.last:
                return Outcome.ABORTED if _is_listed(answer, producer_id, place) else Outcome.COMMITTED
        return await _behind(link, producer_id, place)
    except RequestFailed as error:
        if error.code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID):
            return Outcome.UNKNOWN
        raise


async def _behind(link: Link, producer_id: int, place: TransactionPlace) -> Outcome:
    offset, budget = place.last + 1, MAX_SCAN_BYTES
    while budget > 0:
        answer = await _look(link, place, offset, "read_uncommitted", SCAN_BYTES)
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
    link: Link, place: TransactionPlace, offset: Offset, level: str, max_bytes: int
) -> FetchPartitionResponse:
    """The answer of the leader, also OFFSET_OUT_OF_RANGE."""

    async def ask() -> FetchPartitionResponse:
        (node_id,) = await by_leader(link, [(place.topic, place.partition)])
        part = FetchPartition(index=place.partition, fetch_offset=offset, max_bytes=max_bytes)
        topic_id = link.cache.topics[place.topic].topic_id
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=max_bytes,
            isolation_level=ISOLATION_LEVELS[level],
            topics=(FetchTopic(topic_id=topic_id, name=place.topic, partitions=(part,)),),
        )
        response: FetchResponse = await link.call_node(node_id, request)
        check(response)
        ((answer,),) = (topic.partitions for topic in response.topics)
        if answer.error_code not in (ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE):
            raise RequestFailed(ErrorCode(answer.error_code), f"{place.topic}-{place.partition}")
        return answer

    found: FetchPartitionResponse = await link.until(ask, MARKER_TIMEOUT_MS)
    return found


async def _by_coordinator(link: Link, ids: Sequence[str]) -> dict[NodeId, list[str]]:
    nodes: dict[NodeId, list[str]] = {}
    for name, node_id in (await _coordinators(link, ids)).items():
        nodes.setdefault(node_id, []).append(name)
    return nodes


async def _coordinators(link: Link, ids: Sequence[str]) -> Mapping[str, NodeId]:
    """Of each id. Raises RequestFailed, Unavailable."""
    found: dict[str, NodeId] = {}

    async def ask() -> None:
        for chunk in _chunks([one for one in ids if one not in found]):
            request = FindCoordinatorRequest(key_type=TRANSACTION, keys=chunk)
            response: FindCoordinatorResponse = await link.call_any(request, node_timeout_ms=NODE_TIMEOUT_MS)
            check(response)
            for one in response.coordinators:
                if one.error_code != ErrorCode.NONE:
                    raise RequestFailed(ErrorCode(one.error_code), one.error_message or f"coordinator of {one.key}")
                found[one.key] = one.node_id

    await link.until(ask, link.options.default_api_timeout_ms)
    if not set(found.values()) <= set(link.cache.brokers):
        await link.refresh([])
    if len(found) < len(set(ids)):
        raise Unavailable("a broker named no coordinator for some transactional ids; ask again")
    return found


def transaction_topics(partitions: Iterable[TopicPartition]) -> tuple[TransactionTopic, ...]:
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return tuple([TransactionTopic(name=name, partitions=tuple(indexes)) for name, indexes in topics.items()])


def _is_listed(answer: FetchPartitionResponse, producer_id: int, place: TransactionPlace) -> bool:
    return any(one.producer_id == producer_id and one.first_offset <= place.last for one in answer.aborted_transactions)


def _chunks(ids: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(ids[at : at + IDS_PER_REQUEST]) for at in range(0, len(ids), IDS_PER_REQUEST)]

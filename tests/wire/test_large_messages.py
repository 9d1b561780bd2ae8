"""Requests and answers of 100,000 elements: read and written in slices, between which the loop has turns for others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from lane import request_bytes, serving

from quorumlog.messages.admin import ListedGroup, ListGroupsRequest, ListGroupsResponse
from quorumlog.messages.groups import (
    DescribedGroup,
    DescribedMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    OffsetCommitPartition,
    OffsetCommitPartitionResult,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopic,
    OffsetCommitTopicResult,
    OffsetFetchGroup,
    OffsetFetchGroupResult,
    OffsetFetchPartition,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopicResult,
)
from quorumlog.messages.transactions import (
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
    TxnOffsetCommitRequest,
)
from quorumlog.slices import UNITS_A_SLICE, at_once
from quorumlog.wire.format.cursor import Cursor
from quorumlog.wire.format.header import RequestHeader, read_fixed
from quorumlog.wire.protocol.apis import BY_REQUEST
from quorumlog.wire.protocol.codec import WireRequest, decode_request_sliced, encode_request, encode_response_sliced
from quorumlog.wire.serving.served import SLICED_BYTES

MANY = 8 * UNITS_A_SLICE
COMMITTED = tuple(OffsetCommitPartition(index=index, committed_offset=index) for index in range(MANY))
TOPICS = (OffsetCommitTopic(name="t", partitions=COMMITTED), OffsetCommitTopic(name="u", partitions=COMMITTED[:1]))
COMMIT = OffsetCommitRequest(group_id="g", topics=TOPICS)
TXN_COMMIT = TxnOffsetCommitRequest(
    transactional_id="x", group_id="g", producer_id=1, producer_epoch=0, topics=TOPICS, transaction_version=2
)


def header(request: Any, version: int) -> RequestHeader:
    return RequestHeader(BY_REQUEST[type(request)].key, version, 7, "c")


def slices_of(work: Any) -> tuple[int, Any]:
    slices = 1
    while True:
        try:
            next(work)
        except StopIteration as end:
            return slices, end.value
        slices += 1


@pytest.mark.parametrize(("request_", "versions"), [(COMMIT, (2, 9)), (TXN_COMMIT, (5,))])
def test_a_large_request_is_read_in_slices(request_: Any, versions: tuple[int, ...]) -> None:
    api = BY_REQUEST[type(request_)]
    for version in versions:
        frame = b"".join(encode_request(api, header(request_, version), request_))
        cursor = Cursor(memoryview(frame)[4:])
        slices, found = slices_of(decode_request_sliced(api, cursor, read_fixed(cursor)))
        is_old = request_ is COMMIT and version < 9
        assert found.request == (replace(COMMIT, takes_member_epoch=False) if is_old else request_)
        assert slices > 2 * MANY / UNITS_A_SLICE  # to read the fields, and to make our message of them


def fetched(count: int) -> OffsetFetchResponse:
    partitions = tuple(OffsetFetchPartition(index=index, committed_offset=index) for index in range(count))
    topics = (OffsetFetchTopicResult(name="t", partitions=partitions),)
    return OffsetFetchResponse(groups=(OffsetFetchGroupResult(group_id="g", topics=topics),))


def committed(count: int) -> OffsetCommitResponse:
    partitions = tuple(OffsetCommitPartitionResult(index=index) for index in range(count))
    return OffsetCommitResponse(topics=(OffsetCommitTopicResult(name="t", partitions=partitions),))


def listed(count: int) -> ListGroupsResponse:
    groups = tuple(
        ListedGroup(group_id=f"g{number}", protocol_type="consumer", state="Stable", group_type="classic")
        for number in range(count)
    )
    return ListGroupsResponse(groups=groups)


def listed_transactions(count: int) -> ListTransactionsResponse:
    found = (ListedTransaction(transactional_id=f"x{one}", producer_id=one, state="Ongoing") for one in range(count))
    return ListTransactionsResponse(transactions=tuple(found))


def described(count: int) -> DescribeGroupsResponse:
    members = tuple(
        DescribedMember(
            member_id=f"m{one}", client_id="c", client_host="/h", member_metadata=b"", member_assignment=b"a"
        )
        for one in range(count)
    )
    return DescribeGroupsResponse(groups=(DescribedGroup(group_id="g", members=members),))


ANSWERS: list[tuple[Any, int, Callable[[int], Any]]] = [
    (OffsetFetchRequest(groups=(OffsetFetchGroup(group_id="g"),)), 8, fetched),
    (OffsetFetchRequest(groups=(OffsetFetchGroup(group_id="g"),)), 5, fetched),
    (OffsetCommitRequest(group_id="g", topics=()), 8, committed),
    (ListGroupsRequest(), 5, listed),
    (ListTransactionsRequest(), 2, listed_transactions),
    (DescribeGroupsRequest(groups=("g",)), 5, described),
    (DescribeGroupsRequest(groups=("g",)), 6, described),
]
NAMES = [f"{type(request).__name__}-{version}" for request, version, _ in ANSWERS]


@pytest.mark.parametrize(("request_", "version", "answer"), ANSWERS, ids=NAMES)
def test_a_large_answer_is_written_in_slices(request_: Any, version: int, answer: Callable[[int], Any]) -> None:
    wire_request = WireRequest(BY_REQUEST[type(request_)], header(request_, version), request_)
    slices, frame = slices_of(encode_response_sliced(wire_request, answer(MANY)))
    assert slices >= MANY / UNITS_A_SLICE
    small = b"".join(at_once(encode_response_sliced(wire_request, answer(1))))
    assert sum(map(len, frame)) > len(small) + 4 * (MANY - 1)


def test_a_listener_leaves_turns_to_others_while_it_reads_and_answers() -> None:
    async def scenario() -> None:
        turns = 0

        async def count_turns() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        at_handler: list[int] = []

        async def handler(_context: Any, request: Any) -> Any:
            assert request == COMMIT
            at_handler.append(turns)
            return committed(MANY)

        data = request_bytes(COMMIT, 1, 9)
        assert len(data) > SLICED_BYTES
        async with serving(handler) as served:
            wire = await served.socket()
            counting = asyncio.create_task(count_turns())
            wire.send(data)
            answer = await wire.frame()
            counting.cancel()
            assert answer[:4] == (1).to_bytes(4, "big") and served.crashes == []
            assert at_handler[0] >= 2 * MANY / UNITS_A_SLICE
            assert turns - at_handler[0] >= MANY / UNITS_A_SLICE
            wire.close()

    asyncio.run(scenario())


def test_requests_behind_a_large_one_are_answered_after_it() -> None:
    async def handler(_context: Any, request: Any) -> Any:
        return committed(len(request.topics))

    async def scenario() -> None:
        async with serving(handler) as served:
            wire = await served.socket()
            small = OffsetCommitRequest(group_id="g", topics=())
            wire.send(request_bytes(COMMIT, 1, 9) + request_bytes(small, 2, 9) + request_bytes(COMMIT, 3, 9))
            assert [int.from_bytes((await wire.frame())[:4], "big") for _ in range(3)] == [1, 2, 3]
            wire.close()

    asyncio.run(scenario())


def test_a_large_request_that_cannot_be_read_ends_its_connection_only() -> None:
    async def handler(_context: Any, _request: Any) -> Any:
        return committed(1)

    async def scenario() -> None:
        async with serving(handler) as served:
            bad, other = await served.socket(), await served.socket()
            whole = request_bytes(COMMIT, 1, 9)
            cut = whole[4 : len(whole) // 2]
            bad.send(len(cut).to_bytes(4, "big") + cut)
            assert await bad.ended() == b""
            other.send(request_bytes(COMMIT, 5, 9))
            assert (await other.frame())[:4] == (5).to_bytes(4, "big")
            assert served.crashes == []
            bad.close()
            other.close()

    asyncio.run(scenario())

"""Large messages of groups and transactions by gRPC: in slices they have the same bytes, and come back the same."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import ListedGroup, ListGroupsResponse
from quorumlog.messages.decode_error import DecodeError
from quorumlog.messages.groups import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
    OffsetFetchGroupResult,
    OffsetFetchPartition,
    OffsetFetchResponse,
    OffsetFetchTopicResult,
)
from quorumlog.messages.services import METHODS
from quorumlog.messages.transactions import (
    TransactionPartitionResult,
    TransactionTopicResult,
    WriteTxnMarkersResponse,
    WrittenMarker,
)
from quorumlog.rpc.convert.services import CODECS
from quorumlog.rpc.convert.sliced import decode_sliced, encode_sliced, is_long
from quorumlog.rpc.serving.dispatch import SLICED
from quorumlog.rpc.transport import ORDERED
from quorumlog.slices import UNITS_A_SLICE, Sliced, at_once
from quorumlog.turn import in_turns

MANY = 3 * UNITS_A_SLICE
COMMIT = OffsetCommitRequest(
    group_id="g",
    generation_id=7,
    group_instance_id="i",
    topics=tuple(
        OffsetCommitTopic(
            name=f"t{topic}",
            partitions=tuple(OffsetCommitPartition(index=one, committed_offset=one) for one in range(MANY)),
        )
        for topic in range(2)
    ),
)
FETCHED = OffsetFetchResponse(
    throttle_time_ms=3,
    groups=(
        OffsetFetchGroupResult(group_id="none", error_code=ErrorCode.STALE_MEMBER_EPOCH),
        OffsetFetchGroupResult(
            group_id="g",
            topics=(
                OffsetFetchTopicResult(
                    name="t",
                    partitions=tuple(OffsetFetchPartition(index=one, committed_offset=one) for one in range(MANY)),
                ),
            ),
        ),
    ),
)
LISTED = ListGroupsResponse(
    groups=tuple(
        ListedGroup(group_id=f"g{one}", protocol_type="consumer", state="Stable", group_type="classic")
        for one in range(MANY)
    )
)
MARKED = WriteTxnMarkersResponse(
    markers=tuple(
        WrittenMarker(
            producer_id=one,
            topics=(TransactionTopicResult(name="t", partitions=(TransactionPartitionResult(index=0),)),),
        )
        for one in range(MANY)
    )
)


def slices_of(work: Sliced[Any]) -> tuple[int, Any]:
    slices = 1
    while True:
        try:
            next(work)
        except StopIteration as end:
            return slices, end.value
        slices += 1


@pytest.mark.parametrize("message", [FETCHED, LISTED, MARKED], ids=lambda one: type(one).__name__)
def test_a_large_answer_is_written_in_slices(message: Any) -> None:
    (codec,) = [CODECS[method.request] for method in METHODS if method.response is type(message)]
    assert is_long(message)
    slices, data = slices_of(encode_sliced(message))
    assert data == codec.encode_response(message) and slices >= MANY / UNITS_A_SLICE


def test_a_large_request_is_read_in_slices() -> None:
    data = CODECS[OffsetCommitRequest].encode_request(COMMIT)
    slices, found = slices_of(decode_sliced(OffsetCommitRequest, data))
    assert found == COMMIT and slices >= 2 * MANY / UNITS_A_SLICE


@pytest.mark.parametrize("request_", sorted(SLICED, key=lambda one: one.__name__), ids=lambda one: one.__name__)
def test_any_message_of_them_is_the_same_in_slices(request_: type) -> None:
    codec, response = CODECS[request_], next(one.response for one in METHODS if one.request is request_)
    answer = response(error_code=7, error_message="no")
    assert at_once(encode_sliced(answer)) == codec.encode_response(answer) and not is_long(answer)
    try:
        expected = codec.decode_request(b"")
    except DecodeError:
        with pytest.raises(DecodeError):
            at_once(decode_sliced(request_, b""))
    else:
        assert at_once(decode_sliced(request_, b"")) == expected


def test_what_is_no_message_is_refused() -> None:
    with pytest.raises(DecodeError):
        at_once(decode_sliced(OffsetCommitRequest, b"\xff" * 40))


def test_no_request_whose_order_counts_waits_for_its_reading() -> None:
    assert not SLICED & ORDERED


def test_others_have_turns_meanwhile() -> None:
    async def scenario() -> int:
        turns = 0

        async def count_turns() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count_turns())
        await in_turns(encode_sliced(FETCHED))
        counting.cancel()
        return turns

    assert asyncio.run(scenario()) >= MANY / UNITS_A_SLICE - 1

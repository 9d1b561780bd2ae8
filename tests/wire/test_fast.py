"""The fast paths of Produce, Fetch and calls of groups against the schema: the same bytes, messages and refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.messages import common, fetch, groups, produce
from quorumlog.messages.buffer import Pieces
from quorumlog.slices import UNITS_A_SLICE
from quorumlog.wire.fast import classic_groups
from quorumlog.wire.fast.form import NEEDS_SCHEMA, UVARINT_MAX_BITS, uvarint
from quorumlog.wire.format.cursor import MAX_ELEMENTS, Cursor, Malformed
from quorumlog.wire.format.frame_writer import LENGTH_BYTES, FrameWriter
from quorumlog.wire.format.header import RequestHeader, read_fixed
from quorumlog.wire.protocol.apis import BY_REQUEST, Api
from quorumlog.wire.protocol.codec import (
    Frame,
    WireRequest,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from tests.parts import few

APIS = (
    BY_REQUEST[produce.ProduceRequest],
    BY_REQUEST[fetch.FetchRequest],
    BY_REQUEST[groups.OffsetCommitRequest],
    BY_REQUEST[groups.JoinGroupRequest],
    BY_REQUEST[groups.SyncGroupRequest],
    BY_REQUEST[groups.GroupHeartbeatRequest],
    BY_REQUEST[groups.ConsumerGroupHeartbeatRequest],
)
SHORT_CUTS = [
    (api, version) for api in APIS if api.fast is not None for version in range(api.fast.oldest, api.newest + 1)
]
NAMES = [f"{api.schema}-{version}" for api, version in SHORT_CUTS]

INT16, INT32, INT64 = (st.integers(-(2**bits), 2**bits - 1) for bits in (15, 31, 63))
IDS = st.sampled_from([b"a" * 16, b"b" * 16, b""])
TEXTS = st.text(max_size=4) | st.just("long" * 60)
RECORDS = st.binary(max_size=9) | st.sampled_from([bytes(200), bytes(5_000), bytes(20_000)])
READ = RECORDS | st.lists(RECORDS, max_size=3).map(Pieces)
CODES = st.sampled_from([0, 0, 0, 3, 6, -1])
LEADERS = st.none() | st.none() | st.builds(common.CurrentLeader, leader_id=INT32, leader_epoch=INT32)
ENDPOINTS = st.just(()) | st.just((common.NodeEndpoint(node_id=1, host="h", port=2),))


def many(of: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(of, max_size=3).map(tuple)


def topics(kind: Any, partitions: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return many(st.builds(kind, name=TEXTS, topic_id=IDS, partitions=many(partitions)))


PRODUCE_REQUESTS = st.builds(
    produce.ProduceRequest,
    acks=INT16,
    timeout_ms=INT32,
    topics=topics(produce.ProduceTopic, st.builds(produce.ProducePartition, index=INT32, records=RECORDS)),
    transactional_id=st.none() | st.none() | TEXTS,
)
PRODUCE_RESPONSES = st.builds(
    produce.ProduceResponse,
    error_code=st.just(0),
    topics=topics(
        produce.ProduceTopicResponse,
        st.builds(
            produce.ProducePartitionResponse,
            index=INT32,
            error_code=CODES,
            error_message=TEXTS,
            base_offset=INT64,
            log_append_time_ms=INT64,
            log_start_offset=INT64,
            current_leader=LEADERS,
        ),
    ),
    throttle_time_ms=INT32,
    node_endpoints=ENDPOINTS,
)
FETCH_REQUESTS = st.builds(
    fetch.FetchRequest,
    max_wait_ms=INT32,
    min_bytes=INT32,
    max_bytes=INT32,
    topics=topics(
        fetch.FetchTopic,
        st.builds(
            fetch.FetchPartition,
            index=INT32,
            fetch_offset=INT64,
            max_bytes=INT32,
            current_leader_epoch=INT32,
            last_fetched_epoch=INT32,
            log_start_offset=INT64,
        ),
    ),
    replica=st.none() | st.builds(fetch.ReplicaState, replica_id=INT32, broker_epoch=INT64),
    isolation_level=st.integers(0, 1),
    session_id=INT32,
    session_epoch=INT32,
    forgotten=st.just(()) | st.just((fetch.ForgottenTopic(topic_id=b"a" * 16, name="a", partitions=(3, 4)),)),
    rack=TEXTS,
)
FETCH_RESPONSES = st.builds(
    fetch.FetchResponse,
    error_code=CODES,
    topics=topics(
        fetch.FetchTopicResponse,
        st.builds(
            fetch.FetchPartitionResponse,
            index=INT32,
            error_code=CODES,
            high_watermark=INT64,
            last_stable_offset=INT64,
            log_start_offset=INT64,
            diverging_epoch=st.none() | st.builds(common.EpochEndOffset, epoch=INT32, end_offset=INT64),
            current_leader=LEADERS,
            records=READ,
            aborted_transactions=st.just(()) | st.just((fetch.AbortedTransaction(producer_id=4, first_offset=5),)),
            preferred_read_replica=INT32,
        ),
    ),
    session_id=INT32,
    throttle_time_ms=INT32,
    node_endpoints=ENDPOINTS,
)
COMMIT_REQUESTS = st.builds(
    groups.OffsetCommitRequest,
    group_id=TEXTS,
    generation_id=INT32,
    member_id=TEXTS,
    group_instance_id=st.none() | TEXTS,
    topics=topics(
        groups.OffsetCommitTopic,
        st.builds(
            groups.OffsetCommitPartition,
            index=INT32,
            committed_offset=INT64,
            committed_leader_epoch=INT32,
            committed_metadata=st.just("") | st.none() | TEXTS,
        ),
    ),
)
COMMIT_RESPONSES = st.builds(
    groups.OffsetCommitResponse,
    error_code=CODES,
    topics=topics(
        groups.OffsetCommitTopicResult,
        st.builds(groups.OffsetCommitPartitionResult, index=INT32, error_code=CODES | st.just(69)),
    ),
    throttle_time_ms=INT32,
)
JOIN_REQUESTS = st.builds(
    groups.JoinGroupRequest,
    group_id=TEXTS,
    session_timeout_ms=INT32,
    rebalance_timeout_ms=INT32,
    member_id=TEXTS,
    group_instance_id=st.none() | TEXTS,
    protocol_type=TEXTS,
    protocols=many(st.builds(groups.GroupProtocol, name=TEXTS, metadata=RECORDS)),
)
JOIN_RESPONSES = st.builds(
    groups.JoinGroupResponse,
    error_code=CODES,
    generation_id=INT32,
    protocol_type=st.none() | TEXTS,
    protocol_name=st.none() | TEXTS,
    leader=TEXTS,
    skip_assignment=st.booleans(),
    member_id=TEXTS,
    members=many(
        st.builds(groups.JoinedMember, member_id=TEXTS, group_instance_id=st.none() | TEXTS, metadata=RECORDS)
    ),
    throttle_time_ms=INT32,
    error_message=TEXTS,
)
SYNC_REQUESTS = st.builds(
    groups.SyncGroupRequest,
    group_id=TEXTS,
    generation_id=INT32,
    member_id=TEXTS,
    group_instance_id=st.none() | TEXTS,
    protocol_type=st.none() | TEXTS,
    protocol_name=st.none() | TEXTS,
    assignments=many(st.builds(groups.MemberAssignment, member_id=TEXTS, assignment=RECORDS)),
)
SYNC_RESPONSES = st.builds(
    groups.SyncGroupResponse,
    error_code=CODES,
    protocol_type=st.none() | TEXTS,
    protocol_name=st.none() | TEXTS,
    assignment=RECORDS,
    throttle_time_ms=INT32,
    error_message=TEXTS,
)
BEAT_REQUESTS = st.builds(
    groups.GroupHeartbeatRequest,
    group_id=TEXTS,
    generation_id=INT32,
    member_id=TEXTS,
    group_instance_id=st.none() | TEXTS,
)
BEAT_RESPONSES = st.builds(groups.GroupHeartbeatResponse, error_code=CODES, throttle_time_ms=INT32, error_message=TEXTS)
OWNED = st.none() | st.builds(
    groups.MemberTopicPartitions,
    topic_partitions=many(st.builds(groups.TopicIdPartitions, topic_id=IDS, partitions=many(INT32))),
)
CONSUMER_REQUESTS = st.builds(
    groups.ConsumerGroupHeartbeatRequest,
    group_id=TEXTS,
    member_id=TEXTS,
    member_epoch=INT32,
    group_instance_id=st.none() | TEXTS,
    rack_id=st.none() | TEXTS,
    rebalance_timeout_ms=INT32,
    subscribed_topic_names=st.none() | st.builds(groups.SubscribedTopicNames, names=many(TEXTS)),
    subscribed_topic_regex=st.none() | TEXTS,
    server_assignor=st.none() | TEXTS,
    topic_partitions=OWNED,
)
CONSUMER_RESPONSES = st.builds(
    groups.ConsumerGroupHeartbeatResponse,
    error_code=CODES,
    error_message=TEXTS,
    member_id=st.none() | TEXTS,
    member_epoch=INT32,
    heartbeat_interval_ms=INT32,
    assignment=OWNED,
    throttle_time_ms=INT32,
)
MESSAGES = {
    "produce": st.tuples(PRODUCE_REQUESTS, PRODUCE_RESPONSES),
    "fetch": st.tuples(FETCH_REQUESTS, FETCH_RESPONSES),
    "offset_commit": st.tuples(COMMIT_REQUESTS, COMMIT_RESPONSES),
    "join_group": st.tuples(JOIN_REQUESTS, JOIN_RESPONSES),
    "sync_group": st.tuples(SYNC_REQUESTS, SYNC_RESPONSES),
    "heartbeat": st.tuples(BEAT_REQUESTS, BEAT_RESPONSES),
    "consumer_group_heartbeat": st.tuples(CONSUMER_REQUESTS, CONSUMER_RESPONSES),
}


def walk_of(api: Api) -> Api:
    return replace(api, fast=None)


def header_of(api: Api, version: int) -> RequestHeader:
    return RequestHeader(api.key, version, 7, "client")


def body(frame: Frame) -> bytes:
    return b"".join(frame)[LENGTH_BYTES:]


def request_from(api: Api, data: bytes) -> Any:
    """The request; None if the bytes are malformed."""
    cursor = Cursor(memoryview(data))
    try:
        return decode_request(api, cursor, read_fixed(cursor)).request
    except Malformed:
        return None


def response_from(api: Api, request: Any, version: int, data: bytes) -> Any:
    try:
        return decode_response(WireRequest(api, header_of(api, version), request), memoryview(data))
    except Malformed:
        return None


@pytest.mark.parametrize(("api", "version"), SHORT_CUTS, ids=NAMES)
@settings(max_examples=few(40), deadline=None)
@given(data=st.data())
def test_bytes_and_messages_are_those_of_the_schema(api: Api, version: int, data: st.DataObject) -> None:
    request, response = data.draw(MESSAGES[api.schema])
    walk, header = walk_of(api), header_of(api, version)
    asked = body(encode_request(api, header, request))
    assert asked == body(encode_request(walk, header, request))
    assert request_from(api, asked) == request_from(walk, asked)
    answer = body(encode_response(WireRequest(api, header, request), response))
    assert answer == body(encode_response(WireRequest(walk, header, request), response))
    assert response_from(api, request, version, answer) == response_from(walk, request, version, answer)


@pytest.mark.parametrize(("api", "version"), SHORT_CUTS, ids=NAMES)
@settings(max_examples=few(40), deadline=None)
@given(data=st.data())
def test_damage_is_judged_as_the_schema_judges_it(api: Api, version: int, data: st.DataObject) -> None:
    """One byte is changed, or the end is missing, or there are more bytes."""
    request, response = data.draw(MESSAGES[api.schema])
    header = header_of(api, version)
    asked = bytearray(body(encode_request(api, header, request)))
    answer = bytearray(body(encode_response(WireRequest(api, header, request), response)))
    for whole in (asked, answer):
        place = data.draw(st.integers(8, max(8, min(len(whole) - 1, 300))))
        change = data.draw(st.sampled_from(["flip", "cut", "more"]))
        if change == "flip" and place < len(whole):
            whole[place] = data.draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF]) | st.integers(0, 255))
        elif change == "cut":
            del whole[place:]
        else:
            whole += b"\0"
    assert request_from(api, bytes(asked)) == request_from(walk_of(api), bytes(asked))
    read = response_from(api, request, version, bytes(answer))
    assert read == response_from(walk_of(api), request, version, bytes(answer))


ORDINARY_PRODUCE = produce.ProduceRequest(
    acks=-1,
    timeout_ms=5,
    topics=(
        produce.ProduceTopic(
            name="a",
            topic_id=b"a" * 16,
            partitions=tuple(produce.ProducePartition(index=index, records=bytes(16_384)) for index in range(200)),
        ),
    ),
)
ORDINARY_FETCH = fetch.FetchRequest(
    max_wait_ms=5,
    min_bytes=1,
    max_bytes=9,
    topics=(
        fetch.FetchTopic(
            topic_id=b"a" * 16,
            name="a",
            partitions=(fetch.FetchPartition(index=1, fetch_offset=7, max_bytes=5),) * 200,
        ),
    ),
    replica=fetch.ReplicaState(replica_id=2, broker_epoch=8),
    session_id=4,
    session_epoch=5,
)
PRODUCED = produce.ProduceResponse(
    topics=(
        produce.ProduceTopicResponse(
            name="a",
            topic_id=b"a" * 16,
            partitions=(produce.ProducePartitionResponse(index=1, base_offset=7, log_start_offset=0),) * 200,
        ),
    )
)
FETCHED = fetch.FetchResponse(
    topics=(
        fetch.FetchTopicResponse(
            topic_id=b"a" * 16,
            name="a",
            partitions=(
                fetch.FetchPartitionResponse(index=1, high_watermark=9, records=bytes(16_384)),
                fetch.FetchPartitionResponse(index=2, high_watermark=9, error_code=6),
            ),
        ),
    )
)
ORDINARY_COMMIT = groups.OffsetCommitRequest(
    group_id="g",
    generation_id=3,
    member_id="m",
    topics=(
        groups.OffsetCommitTopic(
            name="a",
            topic_id=b"a" * 16,
            partitions=tuple(
                groups.OffsetCommitPartition(index=index, committed_offset=7, committed_metadata="x" * (index % 2))
                for index in range(200)
            ),
        ),
    ),
)
COMMITTED = groups.OffsetCommitResponse(
    topics=(
        groups.OffsetCommitTopicResult(
            name="a", topic_id=b"a" * 16, partitions=(groups.OffsetCommitPartitionResult(index=1),) * 200
        ),
    )
)
MEMBERS = tuple(groups.JoinedMember(member_id=f"m{number}", metadata=bytes(60)) for number in range(200))
ORDINARY_JOIN = groups.JoinGroupRequest(
    group_id="g",
    session_timeout_ms=5,
    rebalance_timeout_ms=6,
    member_id="m",
    protocol_type="consumer",
    protocols=(groups.GroupProtocol(name="range", metadata=bytes(60)),),
)
JOINED = groups.JoinGroupResponse(
    generation_id=3, protocol_type="consumer", protocol_name="range", leader="m", member_id="m", members=MEMBERS
)
ORDINARY_SYNC = groups.SyncGroupRequest(
    group_id="g",
    generation_id=3,
    member_id="m",
    protocol_type="consumer",
    protocol_name="range",
    assignments=tuple(groups.MemberAssignment(member_id=one.member_id, assignment=bytes(60)) for one in MEMBERS),
)
SYNCED = groups.SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=bytes(60))
ORDINARY_BEAT = groups.GroupHeartbeatRequest(group_id="g", generation_id=3, member_id="m", group_instance_id="i")
OWNS = groups.MemberTopicPartitions(
    topic_partitions=(groups.TopicIdPartitions(topic_id=b"a" * 16, partitions=tuple(range(200))),)
)
CONSUMES = groups.ConsumerGroupHeartbeatRequest(
    group_id="g",
    member_id="m",
    member_epoch=0,
    rebalance_timeout_ms=5,
    subscribed_topic_names=groups.SubscribedTopicNames(names=("a", "b")),
    subscribed_topic_regex="",
    topic_partitions=OWNS,
)
CONSUMED = groups.ConsumerGroupHeartbeatResponse(error_message="why", member_id="m", member_epoch=4, assignment=OWNS)
ORDINARY = {
    "produce": (ORDINARY_PRODUCE, PRODUCED),
    "fetch": (ORDINARY_FETCH, FETCHED),
    "offset_commit": (ORDINARY_COMMIT, COMMITTED),
    "join_group": (ORDINARY_JOIN, JOINED),
    "sync_group": (ORDINARY_SYNC, SYNCED),
    "heartbeat": (ORDINARY_BEAT, groups.GroupHeartbeatResponse()),
    "consumer_group_heartbeat": (CONSUMES, CONSUMED),
}


def without_walk(api: Api) -> Api:
    """The API, but it fails if the schema is used."""

    def taken(*_arguments: Any) -> Any:
        pytest.fail("the walk was taken")

    return replace(api, read_sliced=taken, write_request=taken, read_response=taken, write_response=taken)


@pytest.mark.parametrize(("api", "version"), SHORT_CUTS, ids=NAMES)
def test_ordinary_messages_take_the_fast_path(api: Api, version: int) -> None:
    request, response = ORDINARY[api.schema]
    slow, header = without_walk(api), header_of(api, version)
    cursor = Cursor(memoryview(body(encode_request(slow, header, request))))
    asked = decode_request(slow, cursor, read_fixed(cursor))
    answer = body(encode_response(asked, response))
    decode_response(WireRequest(slow, header, request), memoryview(answer))


@pytest.mark.parametrize("version", [12, APIS[1].newest])
def test_records_are_sent_without_a_copy(version: int) -> None:
    stamps, views = [bytes([7]) * 17, bytes([8]) * 17], [memoryview(bytes(16_384)), memoryview(bytes(8_192))]
    records = Pieces([stamps[0], views[0], stamps[1], views[1]])
    partition = fetch.FetchPartitionResponse(index=1, records=records)
    response = fetch.FetchResponse(topics=(fetch.FetchTopicResponse(topic_id=b"a" * 16, partitions=(partition,)),))
    frame = encode_response(WireRequest(APIS[1], header_of(APIS[1], version), ORDINARY_FETCH), response)
    assert [buffer for buffer in frame if any(buffer is view for view in views)] == views
    assert b"".join(records.buffers) in b"".join(frame)


@pytest.mark.parametrize(("api", "version"), SHORT_CUTS, ids=NAMES)
def test_fast_paths_are_for_flexible_versions(api: Api, version: int) -> None:
    assert api.request_shape(version).flexible and api.response_shape(version).flexible


def test_no_message_has_more_elements_than_the_schema_allows() -> None:
    """Each topic has fewer elements than all may have together; an element of a response takes 33 bytes."""
    api = APIS[0]
    in_topic = MAX_ELEMENTS // 2
    topic = bytes(16) + b"\xa1\x8d\x06" + (bytes(30) + b"\1\0\0") * in_topic + b"\0"
    for count, fits in ((1, True), (2, False)):
        data = bytes([0, 0, 0, 7, 0, count + 1]) + topic * count + bytes(5)
        assert (response_from(api, ORDINARY_PRODUCE, 13, data) is not None) is fits


def test_long_arrays_are_left_to_the_schema() -> None:
    """It reads and writes them in slices."""
    many_names = groups.SubscribedTopicNames(names=("a",) * (UNITS_A_SLICE + 1))
    long = (
        replace(ORDINARY_JOIN, protocols=ORDINARY_JOIN.protocols * (UNITS_A_SLICE + 1)),
        replace(ORDINARY_SYNC, assignments=ORDINARY_SYNC.assignments * UNITS_A_SLICE),
        replace(CONSUMES, subscribed_topic_names=many_names),
    )
    for request in long:
        api = BY_REQUEST[type(request)]
        assert api.fast is not None
        with pytest.raises(NEEDS_SCHEMA):
            api.fast.write_request(FrameWriter(), request, api.newest)
        frame = body(encode_request(api, header_of(api, api.newest), request))
        assert request_from(api, frame) == request
    with pytest.raises(NEEDS_SCHEMA):
        classic_groups.write_join_response(FrameWriter(), replace(JOINED, members=MEMBERS * UNITS_A_SLICE), 9)


def test_varints_end() -> None:
    assert uvarint(memoryview(b"\xff\xff\xff\x7f"), 0) == (2**UVARINT_MAX_BITS - 1, 4)
    for data in (b"\xff\xff\xff\xff\x01", b"\xff\xff", b""):
        with pytest.raises(NEEDS_SCHEMA):
            uvarint(memoryview(data), 0)

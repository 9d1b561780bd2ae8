"""Converts between dataclasses and protobuf.

Written by `./dev proto` from proto/quorumlog/v1/fetch.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.buffer import Buffer
from quorumlog.messages.fetch import (
    AbortedTransaction,
    CountedRecords,
    CountRecordsPartition,
    CountRecordsRequest,
    CountRecordsResponse,
    CountRecordsTopic,
    CountRecordsTopicResponse,
    DescribedRanges,
    DescribeRangesPartition,
    DescribeRangesRequest,
    DescribeRangesResponse,
    DescribeRangesTopic,
    DescribeRangesTopicResponse,
    EpochPartition,
    EpochPartitionResult,
    EpochTopic,
    EpochTopicResult,
    FetchChunkRequest,
    FetchChunkResponse,
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    FetchTopicResponse,
    ForgottenTopic,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetRange,
    ReplicaState,
)
from quorumlog.rpc.convert.common import (
    fill_CurrentLeader,
    fill_EpochEndOffset,
    fill_NodeEndpoint,
    read_CurrentLeader,
    read_EpochEndOffset,
    read_NodeEndpoint,
)
from quorumlog.rpc.convert.parsing import parse
from quorumlog.rpc.pb import fetch_pb2 as pb


def fill_FetchRequest(m: FetchRequest, p: pb.FetchRequest) -> None:
    p.max_wait_ms = m.max_wait_ms
    p.min_bytes = m.min_bytes
    p.max_bytes = m.max_bytes
    for x_topics in m.topics:
        fill_FetchTopic(x_topics, p.topics.add())
    if m.replica is not None:
        p.replica.SetInParent()
        fill_ReplicaState(m.replica, p.replica)
    p.isolation_level = m.isolation_level
    p.session_id = m.session_id
    p.session_epoch = m.session_epoch
    for x_forgotten in m.forgotten:
        fill_ForgottenTopic(x_forgotten, p.forgotten.add())
    p.rack = m.rack


def read_FetchRequest(p: pb.FetchRequest) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=p.max_wait_ms,
        min_bytes=p.min_bytes,
        max_bytes=p.max_bytes,
        topics=tuple([read_FetchTopic(x) for x in p.topics]),
        replica=read_ReplicaState(p.replica) if p.HasField("replica") else None,
        isolation_level=p.isolation_level,
        session_id=p.session_id,
        session_epoch=p.session_epoch,
        forgotten=tuple([read_ForgottenTopic(x) for x in p.forgotten]),
        rack=p.rack,
    )


def encode_FetchRequest(m: FetchRequest) -> bytes:
    p = pb.FetchRequest()
    fill_FetchRequest(m, p)
    return p.SerializeToString()


def decode_FetchRequest(data: Buffer) -> FetchRequest:
    return read_FetchRequest(parse(pb.FetchRequest, data))


def fill_ReplicaState(m: ReplicaState, p: pb.ReplicaState) -> None:
    p.replica_id = m.replica_id
    p.broker_epoch = m.broker_epoch


def read_ReplicaState(p: pb.ReplicaState) -> ReplicaState:
    return ReplicaState(
        replica_id=p.replica_id,
        broker_epoch=p.broker_epoch,
    )


def encode_ReplicaState(m: ReplicaState) -> bytes:
    p = pb.ReplicaState()
    fill_ReplicaState(m, p)
    return p.SerializeToString()


def decode_ReplicaState(data: Buffer) -> ReplicaState:
    return read_ReplicaState(parse(pb.ReplicaState, data))


def fill_FetchTopic(m: FetchTopic, p: pb.FetchTopic) -> None:
    p.topic_id = m.topic_id
    p.name = m.name
    for x_partitions in m.partitions:
        fill_FetchPartition(x_partitions, p.partitions.add())


def read_FetchTopic(p: pb.FetchTopic) -> FetchTopic:
    return FetchTopic(
        topic_id=p.topic_id,
        name=p.name,
        partitions=tuple([read_FetchPartition(x) for x in p.partitions]),
    )


def encode_FetchTopic(m: FetchTopic) -> bytes:
    p = pb.FetchTopic()
    fill_FetchTopic(m, p)
    return p.SerializeToString()


def decode_FetchTopic(data: Buffer) -> FetchTopic:
    return read_FetchTopic(parse(pb.FetchTopic, data))


def fill_FetchPartition(m: FetchPartition, p: pb.FetchPartition) -> None:
    p.index = m.index
    p.fetch_offset = m.fetch_offset
    p.max_bytes = m.max_bytes
    p.current_leader_epoch = m.current_leader_epoch
    p.last_fetched_epoch = m.last_fetched_epoch
    p.log_start_offset = m.log_start_offset


def read_FetchPartition(p: pb.FetchPartition) -> FetchPartition:
    return FetchPartition(
        index=p.index,
        fetch_offset=p.fetch_offset,
        max_bytes=p.max_bytes,
        current_leader_epoch=p.current_leader_epoch,
        last_fetched_epoch=p.last_fetched_epoch,
        log_start_offset=p.log_start_offset,
    )


def encode_FetchPartition(m: FetchPartition) -> bytes:
    p = pb.FetchPartition()
    fill_FetchPartition(m, p)
    return p.SerializeToString()


def decode_FetchPartition(data: Buffer) -> FetchPartition:
    return read_FetchPartition(parse(pb.FetchPartition, data))


def fill_ForgottenTopic(m: ForgottenTopic, p: pb.ForgottenTopic) -> None:
    p.topic_id = m.topic_id
    p.partitions.extend(m.partitions)
    p.name = m.name


def read_ForgottenTopic(p: pb.ForgottenTopic) -> ForgottenTopic:
    return ForgottenTopic(
        topic_id=p.topic_id,
        partitions=tuple(p.partitions[:]),
        name=p.name,
    )


def encode_ForgottenTopic(m: ForgottenTopic) -> bytes:
    p = pb.ForgottenTopic()
    fill_ForgottenTopic(m, p)
    return p.SerializeToString()


def decode_ForgottenTopic(data: Buffer) -> ForgottenTopic:
    return read_ForgottenTopic(parse(pb.ForgottenTopic, data))


def fill_FetchResponse(m: FetchResponse, p: pb.FetchResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_topics in m.topics:
        fill_FetchTopicResponse(x_topics, p.topics.add())
    p.session_id = m.session_id
    p.throttle_time_ms = m.throttle_time_ms
    for x_node_endpoints in m.node_endpoints:
        fill_NodeEndpoint(x_node_endpoints, p.node_endpoints.add())


def read_FetchResponse(p: pb.FetchResponse) -> FetchResponse:
    return FetchResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        topics=tuple([read_FetchTopicResponse(x) for x in p.topics]),
        session_id=p.session_id,
        throttle_time_ms=p.throttle_time_ms,
        node_endpoints=tuple([read_NodeEndpoint(x) for x in p.node_endpoints]),
    )


def encode_FetchResponse(m: FetchResponse) -> bytes:
    p = pb.FetchResponse()
    fill_FetchResponse(m, p)
    return p.SerializeToString()


def decode_FetchResponse(data: Buffer) -> FetchResponse:
    return read_FetchResponse(parse(pb.FetchResponse, data))


def fill_FetchTopicResponse(m: FetchTopicResponse, p: pb.FetchTopicResponse) -> None:
    p.topic_id = m.topic_id
    p.name = m.name
    for x_partitions in m.partitions:
        fill_FetchPartitionResponse(x_partitions, p.partitions.add())


def read_FetchTopicResponse(p: pb.FetchTopicResponse) -> FetchTopicResponse:
    return FetchTopicResponse(
        topic_id=p.topic_id,
        name=p.name,
        partitions=tuple([read_FetchPartitionResponse(x) for x in p.partitions]),
    )


def encode_FetchTopicResponse(m: FetchTopicResponse) -> bytes:
    p = pb.FetchTopicResponse()
    fill_FetchTopicResponse(m, p)
    return p.SerializeToString()


def decode_FetchTopicResponse(data: Buffer) -> FetchTopicResponse:
    return read_FetchTopicResponse(parse(pb.FetchTopicResponse, data))


def fill_FetchPartitionResponse(m: FetchPartitionResponse, p: pb.FetchPartitionResponse) -> None:
    p.index = m.index
    p.error_code = m.error_code
    p.high_watermark = m.high_watermark
    p.last_stable_offset = m.last_stable_offset
    p.log_start_offset = m.log_start_offset
    if m.diverging_epoch is not None:
        p.diverging_epoch.SetInParent()
        fill_EpochEndOffset(m.diverging_epoch, p.diverging_epoch)
    if m.current_leader is not None:
        p.current_leader.SetInParent()
        fill_CurrentLeader(m.current_leader, p.current_leader)
    p.records = m.records if type(m.records) is bytes else bytes(m.records)
    for x_aborted_transactions in m.aborted_transactions:
        fill_AbortedTransaction(x_aborted_transactions, p.aborted_transactions.add())
    p.preferred_read_replica = m.preferred_read_replica


def read_FetchPartitionResponse(p: pb.FetchPartitionResponse) -> FetchPartitionResponse:
    return FetchPartitionResponse(
        index=p.index,
        error_code=p.error_code,
        high_watermark=p.high_watermark,
        last_stable_offset=p.last_stable_offset,
        log_start_offset=p.log_start_offset,
        diverging_epoch=read_EpochEndOffset(p.diverging_epoch) if p.HasField("diverging_epoch") else None,
        current_leader=read_CurrentLeader(p.current_leader) if p.HasField("current_leader") else None,
        records=p.records,
        aborted_transactions=tuple([read_AbortedTransaction(x) for x in p.aborted_transactions]),
        preferred_read_replica=p.preferred_read_replica,
    )


def encode_FetchPartitionResponse(m: FetchPartitionResponse) -> bytes:
    p = pb.FetchPartitionResponse()
    fill_FetchPartitionResponse(m, p)
    return p.SerializeToString()


def decode_FetchPartitionResponse(data: Buffer) -> FetchPartitionResponse:
    return read_FetchPartitionResponse(parse(pb.FetchPartitionResponse, data))


def fill_AbortedTransaction(m: AbortedTransaction, p: pb.AbortedTransaction) -> None:
    p.producer_id = m.producer_id
    p.first_offset = m.first_offset


def read_AbortedTransaction(p: pb.AbortedTransaction) -> AbortedTransaction:
    return AbortedTransaction(
        producer_id=p.producer_id,
        first_offset=p.first_offset,
    )


def encode_AbortedTransaction(m: AbortedTransaction) -> bytes:
    p = pb.AbortedTransaction()
    fill_AbortedTransaction(m, p)
    return p.SerializeToString()


def decode_AbortedTransaction(data: Buffer) -> AbortedTransaction:
    return read_AbortedTransaction(parse(pb.AbortedTransaction, data))


def fill_FetchChunkRequest(m: FetchChunkRequest, p: pb.FetchChunkRequest) -> None:
    if m.fetch is not None:
        p.fetch.SetInParent()
        fill_FetchRequest(m.fetch, p.fetch)
    p.end_offset = m.end_offset


def read_FetchChunkRequest(p: pb.FetchChunkRequest) -> FetchChunkRequest:
    return FetchChunkRequest(
        fetch=read_FetchRequest(p.fetch) if p.HasField("fetch") else None,
        end_offset=p.end_offset,
    )


def encode_FetchChunkRequest(m: FetchChunkRequest) -> bytes:
    p = pb.FetchChunkRequest()
    fill_FetchChunkRequest(m, p)
    return p.SerializeToString()


def decode_FetchChunkRequest(data: Buffer) -> FetchChunkRequest:
    return read_FetchChunkRequest(parse(pb.FetchChunkRequest, data))


def fill_FetchChunkResponse(m: FetchChunkResponse, p: pb.FetchChunkResponse) -> None:
    p.records = m.records if type(m.records) is bytes else bytes(m.records)
    p.error_code = m.error_code
    p.error_message = m.error_message
    if m.fetch is not None:
        p.fetch.SetInParent()
        fill_FetchResponse(m.fetch, p.fetch)


def read_FetchChunkResponse(p: pb.FetchChunkResponse) -> FetchChunkResponse:
    return FetchChunkResponse(
        records=p.records,
        error_code=p.error_code,
        error_message=p.error_message,
        fetch=read_FetchResponse(p.fetch) if p.HasField("fetch") else None,
    )


def encode_FetchChunkResponse(m: FetchChunkResponse) -> bytes:
    p = pb.FetchChunkResponse()
    fill_FetchChunkResponse(m, p)
    return p.SerializeToString()


def decode_FetchChunkResponse(data: Buffer) -> FetchChunkResponse:
    return read_FetchChunkResponse(parse(pb.FetchChunkResponse, data))


def fill_ListOffsetsRequest(m: ListOffsetsRequest, p: pb.ListOffsetsRequest) -> None:
    for x_topics in m.topics:
        fill_ListOffsetsTopic(x_topics, p.topics.add())
    p.replica_id = m.replica_id
    p.isolation_level = m.isolation_level
    p.timeout_ms = m.timeout_ms


def read_ListOffsetsRequest(p: pb.ListOffsetsRequest) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        topics=tuple([read_ListOffsetsTopic(x) for x in p.topics]),
        replica_id=p.replica_id,
        isolation_level=p.isolation_level,
        timeout_ms=p.timeout_ms,
    )


def encode_ListOffsetsRequest(m: ListOffsetsRequest) -> bytes:
    p = pb.ListOffsetsRequest()
    fill_ListOffsetsRequest(m, p)
    return p.SerializeToString()


def decode_ListOffsetsRequest(data: Buffer) -> ListOffsetsRequest:
    return read_ListOffsetsRequest(parse(pb.ListOffsetsRequest, data))


def fill_ListOffsetsTopic(m: ListOffsetsTopic, p: pb.ListOffsetsTopic) -> None:
    p.name = m.name
    for x_partitions in m.partitions:
        fill_ListOffsetsPartition(x_partitions, p.partitions.add())
    p.topic_id = m.topic_id


def read_ListOffsetsTopic(p: pb.ListOffsetsTopic) -> ListOffsetsTopic:
    return ListOffsetsTopic(
        name=p.name,
        partitions=tuple([read_ListOffsetsPartition(x) for x in p.partitions]),
        topic_id=p.topic_id,
    )


def encode_ListOffsetsTopic(m: ListOffsetsTopic) -> bytes:
    p = pb.ListOffsetsTopic()
    fill_ListOffsetsTopic(m, p)
    return p.SerializeToString()


def decode_ListOffsetsTopic(data: Buffer) -> ListOffsetsTopic:
    return read_ListOffsetsTopic(parse(pb.ListOffsetsTopic, data))


def fill_ListOffsetsPartition(m: ListOffsetsPartition, p: pb.ListOffsetsPartition) -> None:
    p.index = m.index
    p.timestamp_ms = m.timestamp_ms
    p.current_leader_epoch = m.current_leader_epoch


def read_ListOffsetsPartition(p: pb.ListOffsetsPartition) -> ListOffsetsPartition:
    return ListOffsetsPartition(
        index=p.index,
        timestamp_ms=p.timestamp_ms,
        current_leader_epoch=p.current_leader_epoch,
    )


def encode_ListOffsetsPartition(m: ListOffsetsPartition) -> bytes:
    p = pb.ListOffsetsPartition()
    fill_ListOffsetsPartition(m, p)
    return p.SerializeToString()


def decode_ListOffsetsPartition(data: Buffer) -> ListOffsetsPartition:
    return read_ListOffsetsPartition(parse(pb.ListOffsetsPartition, data))


def fill_ListOffsetsResponse(m: ListOffsetsResponse, p: pb.ListOffsetsResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_topics in m.topics:
        fill_ListOffsetsTopicResponse(x_topics, p.topics.add())
    p.throttle_time_ms = m.throttle_time_ms


def read_ListOffsetsResponse(p: pb.ListOffsetsResponse) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        topics=tuple([read_ListOffsetsTopicResponse(x) for x in p.topics]),
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_ListOffsetsResponse(m: ListOffsetsResponse) -> bytes:
    p = pb.ListOffsetsResponse()
    fill_ListOffsetsResponse(m, p)
    return p.SerializeToString()


def decode_ListOffsetsResponse(data: Buffer) -> ListOffsetsResponse:
    return read_ListOffsetsResponse(parse(pb.ListOffsetsResponse, data))


def fill_ListOffsetsTopicResponse(m: ListOffsetsTopicResponse, p: pb.ListOffsetsTopicResponse) -> None:
    p.name = m.name
    for x_partitions in m.partitions:
        fill_ListOffsetsPartitionResponse(x_partitions, p.partitions.add())


def read_ListOffsetsTopicResponse(p: pb.ListOffsetsTopicResponse) -> ListOffsetsTopicResponse:
    return ListOffsetsTopicResponse(
        name=p.name,
        partitions=tuple([read_ListOffsetsPartitionResponse(x) for x in p.partitions]),
    )


def encode_ListOffsetsTopicResponse(m: ListOffsetsTopicResponse) -> bytes:
    p = pb.ListOffsetsTopicResponse()
    fill_ListOffsetsTopicResponse(m, p)
    return p.SerializeToString()


def decode_ListOffsetsTopicResponse(data: Buffer) -> ListOffsetsTopicResponse:
    return read_ListOffsetsTopicResponse(parse(pb.ListOffsetsTopicResponse, data))


def fill_ListOffsetsPartitionResponse(m: ListOffsetsPartitionResponse, p: pb.ListOffsetsPartitionResponse) -> None:
    p.index = m.index
    p.error_code = m.error_code
    p.timestamp_ms = m.timestamp_ms
    p.offset = m.offset
    p.leader_epoch = m.leader_epoch


def read_ListOffsetsPartitionResponse(p: pb.ListOffsetsPartitionResponse) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        index=p.index,
        error_code=p.error_code,
        timestamp_ms=p.timestamp_ms,
        offset=p.offset,
        leader_epoch=p.leader_epoch,
    )


def encode_ListOffsetsPartitionResponse(m: ListOffsetsPartitionResponse) -> bytes:
    p = pb.ListOffsetsPartitionResponse()
    fill_ListOffsetsPartitionResponse(m, p)
    return p.SerializeToString()


def decode_ListOffsetsPartitionResponse(data: Buffer) -> ListOffsetsPartitionResponse:
    return read_ListOffsetsPartitionResponse(parse(pb.ListOffsetsPartitionResponse, data))


def fill_DescribeRangesRequest(m: DescribeRangesRequest, p: pb.DescribeRangesRequest) -> None:
    for x_topics in m.topics:
        fill_DescribeRangesTopic(x_topics, p.topics.add())
    p.isolation_level = m.isolation_level


def read_DescribeRangesRequest(p: pb.DescribeRangesRequest) -> DescribeRangesRequest:
    return DescribeRangesRequest(
        topics=tuple([read_DescribeRangesTopic(x) for x in p.topics]),
        isolation_level=p.isolation_level,
    )


def encode_DescribeRangesRequest(m: DescribeRangesRequest) -> bytes:
    p = pb.DescribeRangesRequest()
    fill_DescribeRangesRequest(m, p)
    return p.SerializeToString()


def decode_DescribeRangesRequest(data: Buffer) -> DescribeRangesRequest:
    return read_DescribeRangesRequest(parse(pb.DescribeRangesRequest, data))


def fill_DescribeRangesTopic(m: DescribeRangesTopic, p: pb.DescribeRangesTopic) -> None:
    p.name = m.name
    p.topic_id = m.topic_id
    for x_partitions in m.partitions:
        fill_DescribeRangesPartition(x_partitions, p.partitions.add())


def read_DescribeRangesTopic(p: pb.DescribeRangesTopic) -> DescribeRangesTopic:
    return DescribeRangesTopic(
        name=p.name,
        topic_id=p.topic_id,
        partitions=tuple([read_DescribeRangesPartition(x) for x in p.partitions]),
    )


def encode_DescribeRangesTopic(m: DescribeRangesTopic) -> bytes:
    p = pb.DescribeRangesTopic()
    fill_DescribeRangesTopic(m, p)
    return p.SerializeToString()


def decode_DescribeRangesTopic(data: Buffer) -> DescribeRangesTopic:
    return read_DescribeRangesTopic(parse(pb.DescribeRangesTopic, data))


def fill_DescribeRangesPartition(m: DescribeRangesPartition, p: pb.DescribeRangesPartition) -> None:
    p.index = m.index
    p.start_offset = m.start_offset
    p.end_offset = m.end_offset
    p.max_range_bytes = m.max_range_bytes
    p.enough_bytes = m.enough_bytes


def read_DescribeRangesPartition(p: pb.DescribeRangesPartition) -> DescribeRangesPartition:
    return DescribeRangesPartition(
        index=p.index,
        start_offset=p.start_offset,
        end_offset=p.end_offset,
        max_range_bytes=p.max_range_bytes,
        enough_bytes=p.enough_bytes,
    )


def encode_DescribeRangesPartition(m: DescribeRangesPartition) -> bytes:
    p = pb.DescribeRangesPartition()
    fill_DescribeRangesPartition(m, p)
    return p.SerializeToString()


def decode_DescribeRangesPartition(data: Buffer) -> DescribeRangesPartition:
    return read_DescribeRangesPartition(parse(pb.DescribeRangesPartition, data))


def fill_DescribeRangesResponse(m: DescribeRangesResponse, p: pb.DescribeRangesResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_topics in m.topics:
        fill_DescribeRangesTopicResponse(x_topics, p.topics.add())


def read_DescribeRangesResponse(p: pb.DescribeRangesResponse) -> DescribeRangesResponse:
    return DescribeRangesResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        topics=tuple([read_DescribeRangesTopicResponse(x) for x in p.topics]),
    )


def encode_DescribeRangesResponse(m: DescribeRangesResponse) -> bytes:
    p = pb.DescribeRangesResponse()
    fill_DescribeRangesResponse(m, p)
    return p.SerializeToString()


def decode_DescribeRangesResponse(data: Buffer) -> DescribeRangesResponse:
    return read_DescribeRangesResponse(parse(pb.DescribeRangesResponse, data))


def fill_DescribeRangesTopicResponse(m: DescribeRangesTopicResponse, p: pb.DescribeRangesTopicResponse) -> None:
    p.name = m.name
    for x_partitions in m.partitions:
        fill_DescribedRanges(x_partitions, p.partitions.add())


def read_DescribeRangesTopicResponse(p: pb.DescribeRangesTopicResponse) -> DescribeRangesTopicResponse:
    return DescribeRangesTopicResponse(
        name=p.name,
        partitions=tuple([read_DescribedRanges(x) for x in p.partitions]),
    )


def encode_DescribeRangesTopicResponse(m: DescribeRangesTopicResponse) -> bytes:
    p = pb.DescribeRangesTopicResponse()
    fill_DescribeRangesTopicResponse(m, p)
    return p.SerializeToString()


def decode_DescribeRangesTopicResponse(data: Buffer) -> DescribeRangesTopicResponse:
    return read_DescribeRangesTopicResponse(parse(pb.DescribeRangesTopicResponse, data))


def fill_DescribedRanges(m: DescribedRanges, p: pb.DescribedRanges) -> None:
    p.index = m.index
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_ranges in m.ranges:
        fill_OffsetRange(x_ranges, p.ranges.add())
    p.next_offset = m.next_offset


def read_DescribedRanges(p: pb.DescribedRanges) -> DescribedRanges:
    return DescribedRanges(
        index=p.index,
        error_code=p.error_code,
        error_message=p.error_message,
        ranges=tuple([read_OffsetRange(x) for x in p.ranges]),
        next_offset=p.next_offset,
    )


def encode_DescribedRanges(m: DescribedRanges) -> bytes:
    p = pb.DescribedRanges()
    fill_DescribedRanges(m, p)
    return p.SerializeToString()


def decode_DescribedRanges(data: Buffer) -> DescribedRanges:
    return read_DescribedRanges(parse(pb.DescribedRanges, data))


def fill_OffsetRange(m: OffsetRange, p: pb.OffsetRange) -> None:
    p.start_offset = m.start_offset
    p.end_offset = m.end_offset
    p.size_bytes = m.size_bytes
    p.max_timestamp_ms = m.max_timestamp_ms


def read_OffsetRange(p: pb.OffsetRange) -> OffsetRange:
    return OffsetRange(
        start_offset=p.start_offset,
        end_offset=p.end_offset,
        size_bytes=p.size_bytes,
        max_timestamp_ms=p.max_timestamp_ms,
    )


def encode_OffsetRange(m: OffsetRange) -> bytes:
    p = pb.OffsetRange()
    fill_OffsetRange(m, p)
    return p.SerializeToString()


def decode_OffsetRange(data: Buffer) -> OffsetRange:
    return read_OffsetRange(parse(pb.OffsetRange, data))


def fill_CountRecordsRequest(m: CountRecordsRequest, p: pb.CountRecordsRequest) -> None:
    for x_topics in m.topics:
        fill_CountRecordsTopic(x_topics, p.topics.add())
    p.isolation_level = m.isolation_level


def read_CountRecordsRequest(p: pb.CountRecordsRequest) -> CountRecordsRequest:
    return CountRecordsRequest(
        topics=tuple([read_CountRecordsTopic(x) for x in p.topics]),
        isolation_level=p.isolation_level,
    )


def encode_CountRecordsRequest(m: CountRecordsRequest) -> bytes:
    p = pb.CountRecordsRequest()
    fill_CountRecordsRequest(m, p)
    return p.SerializeToString()


def decode_CountRecordsRequest(data: Buffer) -> CountRecordsRequest:
    return read_CountRecordsRequest(parse(pb.CountRecordsRequest, data))


def fill_CountRecordsTopic(m: CountRecordsTopic, p: pb.CountRecordsTopic) -> None:
    p.name = m.name
    p.topic_id = m.topic_id
    for x_partitions in m.partitions:
        fill_CountRecordsPartition(x_partitions, p.partitions.add())


def read_CountRecordsTopic(p: pb.CountRecordsTopic) -> CountRecordsTopic:
    return CountRecordsTopic(
        name=p.name,
        topic_id=p.topic_id,
        partitions=tuple([read_CountRecordsPartition(x) for x in p.partitions]),
    )


def encode_CountRecordsTopic(m: CountRecordsTopic) -> bytes:
    p = pb.CountRecordsTopic()
    fill_CountRecordsTopic(m, p)
    return p.SerializeToString()


def decode_CountRecordsTopic(data: Buffer) -> CountRecordsTopic:
    return read_CountRecordsTopic(parse(pb.CountRecordsTopic, data))


def fill_CountRecordsPartition(m: CountRecordsPartition, p: pb.CountRecordsPartition) -> None:
    p.index = m.index
    p.start_offset = m.start_offset


def read_CountRecordsPartition(p: pb.CountRecordsPartition) -> CountRecordsPartition:
    return CountRecordsPartition(
        index=p.index,
        start_offset=p.start_offset,
    )


def encode_CountRecordsPartition(m: CountRecordsPartition) -> bytes:
    p = pb.CountRecordsPartition()
    fill_CountRecordsPartition(m, p)
    return p.SerializeToString()


def decode_CountRecordsPartition(data: Buffer) -> CountRecordsPartition:
    return read_CountRecordsPartition(parse(pb.CountRecordsPartition, data))


def fill_CountRecordsResponse(m: CountRecordsResponse, p: pb.CountRecordsResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_topics in m.topics:
        fill_CountRecordsTopicResponse(x_topics, p.topics.add())


def read_CountRecordsResponse(p: pb.CountRecordsResponse) -> CountRecordsResponse:
    return CountRecordsResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        topics=tuple([read_CountRecordsTopicResponse(x) for x in p.topics]),
    )


def encode_CountRecordsResponse(m: CountRecordsResponse) -> bytes:
    p = pb.CountRecordsResponse()
    fill_CountRecordsResponse(m, p)
    return p.SerializeToString()


def decode_CountRecordsResponse(data: Buffer) -> CountRecordsResponse:
    return read_CountRecordsResponse(parse(pb.CountRecordsResponse, data))


def fill_CountRecordsTopicResponse(m: CountRecordsTopicResponse, p: pb.CountRecordsTopicResponse) -> None:
    p.name = m.name
    for x_partitions in m.partitions:
        fill_CountedRecords(x_partitions, p.partitions.add())


def read_CountRecordsTopicResponse(p: pb.CountRecordsTopicResponse) -> CountRecordsTopicResponse:
    return CountRecordsTopicResponse(
        name=p.name,
        partitions=tuple([read_CountedRecords(x) for x in p.partitions]),
    )


def encode_CountRecordsTopicResponse(m: CountRecordsTopicResponse) -> bytes:
    p = pb.CountRecordsTopicResponse()
    fill_CountRecordsTopicResponse(m, p)
    return p.SerializeToString()


def decode_CountRecordsTopicResponse(data: Buffer) -> CountRecordsTopicResponse:
    return read_CountRecordsTopicResponse(parse(pb.CountRecordsTopicResponse, data))


def fill_CountedRecords(m: CountedRecords, p: pb.CountedRecords) -> None:
    p.index = m.index
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.records = m.records
    p.is_estimate = m.is_estimate
    p.first_timestamp_ms = m.first_timestamp_ms
    p.age_ms = m.age_ms
    p.log_start_offset = m.log_start_offset
    p.end_offset = m.end_offset


def read_CountedRecords(p: pb.CountedRecords) -> CountedRecords:
    return CountedRecords(
        index=p.index,
        error_code=p.error_code,
        error_message=p.error_message,
        records=p.records,
        is_estimate=p.is_estimate,
        first_timestamp_ms=p.first_timestamp_ms,
        age_ms=p.age_ms,
        log_start_offset=p.log_start_offset,
        end_offset=p.end_offset,
    )


def encode_CountedRecords(m: CountedRecords) -> bytes:
    p = pb.CountedRecords()
    fill_CountedRecords(m, p)
    return p.SerializeToString()


def decode_CountedRecords(data: Buffer) -> CountedRecords:
    return read_CountedRecords(parse(pb.CountedRecords, data))


def fill_OffsetForLeaderEpochRequest(m: OffsetForLeaderEpochRequest, p: pb.OffsetForLeaderEpochRequest) -> None:
    p.replica_id = m.replica_id
    for x_topics in m.topics:
        fill_EpochTopic(x_topics, p.topics.add())


def read_OffsetForLeaderEpochRequest(p: pb.OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochRequest:
    return OffsetForLeaderEpochRequest(
        replica_id=p.replica_id,
        topics=tuple([read_EpochTopic(x) for x in p.topics]),
    )


def encode_OffsetForLeaderEpochRequest(m: OffsetForLeaderEpochRequest) -> bytes:
    p = pb.OffsetForLeaderEpochRequest()
    fill_OffsetForLeaderEpochRequest(m, p)
    return p.SerializeToString()


def decode_OffsetForLeaderEpochRequest(data: Buffer) -> OffsetForLeaderEpochRequest:
    return read_OffsetForLeaderEpochRequest(parse(pb.OffsetForLeaderEpochRequest, data))


def fill_EpochTopic(m: EpochTopic, p: pb.EpochTopic) -> None:
    p.name = m.name
    for x_partitions in m.partitions:
        fill_EpochPartition(x_partitions, p.partitions.add())


def read_EpochTopic(p: pb.EpochTopic) -> EpochTopic:
    return EpochTopic(
        name=p.name,
        partitions=tuple([read_EpochPartition(x) for x in p.partitions]),
    )


def encode_EpochTopic(m: EpochTopic) -> bytes:
    p = pb.EpochTopic()
    fill_EpochTopic(m, p)
    return p.SerializeToString()


def decode_EpochTopic(data: Buffer) -> EpochTopic:
    return read_EpochTopic(parse(pb.EpochTopic, data))


def fill_EpochPartition(m: EpochPartition, p: pb.EpochPartition) -> None:
    p.index = m.index
    p.current_leader_epoch = m.current_leader_epoch
    p.leader_epoch = m.leader_epoch


def read_EpochPartition(p: pb.EpochPartition) -> EpochPartition:
    return EpochPartition(
        index=p.index,
        current_leader_epoch=p.current_leader_epoch,
        leader_epoch=p.leader_epoch,
    )


def encode_EpochPartition(m: EpochPartition) -> bytes:
    p = pb.EpochPartition()
    fill_EpochPartition(m, p)
    return p.SerializeToString()


def decode_EpochPartition(data: Buffer) -> EpochPartition:
    return read_EpochPartition(parse(pb.EpochPartition, data))


def fill_OffsetForLeaderEpochResponse(m: OffsetForLeaderEpochResponse, p: pb.OffsetForLeaderEpochResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_topics in m.topics:
        fill_EpochTopicResult(x_topics, p.topics.add())
    p.throttle_time_ms = m.throttle_time_ms


def read_OffsetForLeaderEpochResponse(p: pb.OffsetForLeaderEpochResponse) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        topics=tuple([read_EpochTopicResult(x) for x in p.topics]),
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_OffsetForLeaderEpochResponse(m: OffsetForLeaderEpochResponse) -> bytes:
    p = pb.OffsetForLeaderEpochResponse()
    fill_OffsetForLeaderEpochResponse(m, p)
    return p.SerializeToString()


def decode_OffsetForLeaderEpochResponse(data: Buffer) -> OffsetForLeaderEpochResponse:
    return read_OffsetForLeaderEpochResponse(parse(pb.OffsetForLeaderEpochResponse, data))


def fill_EpochTopicResult(m: EpochTopicResult, p: pb.EpochTopicResult) -> None:
    p.name = m.name
    for x_partitions in m.partitions:
        fill_EpochPartitionResult(x_partitions, p.partitions.add())


def read_EpochTopicResult(p: pb.EpochTopicResult) -> EpochTopicResult:
    return EpochTopicResult(
        name=p.name,
        partitions=tuple([read_EpochPartitionResult(x) for x in p.partitions]),
    )


def encode_EpochTopicResult(m: EpochTopicResult) -> bytes:
    p = pb.EpochTopicResult()
    fill_EpochTopicResult(m, p)
    return p.SerializeToString()


def decode_EpochTopicResult(data: Buffer) -> EpochTopicResult:
    return read_EpochTopicResult(parse(pb.EpochTopicResult, data))


def fill_EpochPartitionResult(m: EpochPartitionResult, p: pb.EpochPartitionResult) -> None:
    p.index = m.index
    p.error_code = m.error_code
    p.leader_epoch = m.leader_epoch
    p.end_offset = m.end_offset


def read_EpochPartitionResult(p: pb.EpochPartitionResult) -> EpochPartitionResult:
    return EpochPartitionResult(
        index=p.index,
        error_code=p.error_code,
        leader_epoch=p.leader_epoch,
        end_offset=p.end_offset,
    )


def encode_EpochPartitionResult(m: EpochPartitionResult) -> bytes:
    p = pb.EpochPartitionResult()
    fill_EpochPartitionResult(m, p)
    return p.SerializeToString()


def decode_EpochPartitionResult(data: Buffer) -> EpochPartitionResult:
    return read_EpochPartitionResult(parse(pb.EpochPartitionResult, data))

"""Converts between dataclasses and protobuf.

Written by `./dev proto` from proto/quorumlog/v1/reassignments.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.buffer import Buffer
from quorumlog.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectionPartitionResult,
    ElectionTopic,
    ElectionTopicResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    ReassignablePartition,
    ReassignablePartitionResult,
    ReassignableTopic,
    ReassignableTopicResult,
    ReassignmentsOfTopic,
)
from quorumlog.rpc.convert.parsing import parse
from quorumlog.rpc.pb import reassignments_pb2 as pb


def fill_AlterPartitionReassignmentsRequest(
    m: AlterPartitionReassignmentsRequest, p: pb.AlterPartitionReassignmentsRequest
) -> None:
    for x_topics in m.topics:
        fill_ReassignableTopic(x_topics, p.topics.add())
    p.timeout_ms = m.timeout_ms
    p.allow_replication_factor_change = m.allow_replication_factor_change


def read_AlterPartitionReassignmentsRequest(
    p: pb.AlterPartitionReassignmentsRequest,
) -> AlterPartitionReassignmentsRequest:
    return AlterPartitionReassignmentsRequest(
        topics=tuple([read_ReassignableTopic(x) for x in p.topics]),
        timeout_ms=p.timeout_ms,
        allow_replication_factor_change=p.allow_replication_factor_change,
    )


def encode_AlterPartitionReassignmentsRequest(m: AlterPartitionReassignmentsRequest) -> bytes:
    p = pb.AlterPartitionReassignmentsRequest()
    fill_AlterPartitionReassignmentsRequest(m, p)
    return p.SerializeToString()


def decode_AlterPartitionReassignmentsRequest(data: Buffer) -> AlterPartitionReassignmentsRequest:
    return read_AlterPartitionReassignmentsRequest(parse(pb.AlterPartitionReassignmentsRequest, data))


def fill_ReassignableTopic(m: ReassignableTopic, p: pb.ReassignableTopic) -> None:
    p.name = m.name
    for x_partitions in m.partitions:
        fill_ReassignablePartition(x_partitions, p.partitions.add())


def read_ReassignableTopic(p: pb.ReassignableTopic) -> ReassignableTopic:
    return ReassignableTopic(
        name=p.name,
        partitions=tuple([read_ReassignablePartition(x) for x in p.partitions]),
    )


def encode_ReassignableTopic(m: ReassignableTopic) -> bytes:
    p = pb.ReassignableTopic()
    fill_ReassignableTopic(m, p)
    return p.SerializeToString()


def decode_ReassignableTopic(data: Buffer) -> ReassignableTopic:
    return read_ReassignableTopic(parse(pb.ReassignableTopic, data))


def fill_ReassignablePartition(m: ReassignablePartition, p: pb.ReassignablePartition) -> None:
    p.index = m.index
    p.replicas.extend(m.replicas)
    p.cancel = m.cancel


def read_ReassignablePartition(p: pb.ReassignablePartition) -> ReassignablePartition:
    return ReassignablePartition(
        index=p.index,
        replicas=tuple(p.replicas[:]),
        cancel=p.cancel,
    )


def encode_ReassignablePartition(m: ReassignablePartition) -> bytes:
    p = pb.ReassignablePartition()
    fill_ReassignablePartition(m, p)
    return p.SerializeToString()


def decode_ReassignablePartition(data: Buffer) -> ReassignablePartition:
    return read_ReassignablePartition(parse(pb.ReassignablePartition, data))


def fill_AlterPartitionReassignmentsResponse(
    m: AlterPartitionReassignmentsResponse, p: pb.AlterPartitionReassignmentsResponse
) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.allow_replication_factor_change = m.allow_replication_factor_change
    for x_topics in m.topics:
        fill_ReassignableTopicResult(x_topics, p.topics.add())
    p.throttle_time_ms = m.throttle_time_ms


def read_AlterPartitionReassignmentsResponse(
    p: pb.AlterPartitionReassignmentsResponse,
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        allow_replication_factor_change=p.allow_replication_factor_change,
        topics=tuple([read_ReassignableTopicResult(x) for x in p.topics]),
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_AlterPartitionReassignmentsResponse(m: AlterPartitionReassignmentsResponse) -> bytes:
    p = pb.AlterPartitionReassignmentsResponse()
    fill_AlterPartitionReassignmentsResponse(m, p)
    return p.SerializeToString()


def decode_AlterPartitionReassignmentsResponse(data: Buffer) -> AlterPartitionReassignmentsResponse:
    return read_AlterPartitionReassignmentsResponse(parse(pb.AlterPartitionReassignmentsResponse, data))


def fill_ReassignableTopicResult(m: ReassignableTopicResult, p: pb.ReassignableTopicResult) -> None:
    p.name = m.name
    for x_partitions in m.partitions:
        fill_ReassignablePartitionResult(x_partitions, p.partitions.add())


def read_ReassignableTopicResult(p: pb.ReassignableTopicResult) -> ReassignableTopicResult:
    return ReassignableTopicResult(
        name=p.name,
        partitions=tuple([read_ReassignablePartitionResult(x) for x in p.partitions]),
    )


def encode_ReassignableTopicResult(m: ReassignableTopicResult) -> bytes:
    p = pb.ReassignableTopicResult()
    fill_ReassignableTopicResult(m, p)
    return p.SerializeToString()


def decode_ReassignableTopicResult(data: Buffer) -> ReassignableTopicResult:
    return read_ReassignableTopicResult(parse(pb.ReassignableTopicResult, data))


def fill_ReassignablePartitionResult(m: ReassignablePartitionResult, p: pb.ReassignablePartitionResult) -> None:
    p.index = m.index
    p.error_code = m.error_code
    p.error_message = m.error_message


def read_ReassignablePartitionResult(p: pb.ReassignablePartitionResult) -> ReassignablePartitionResult:
    return ReassignablePartitionResult(
        index=p.index,
        error_code=p.error_code,
        error_message=p.error_message,
    )


def encode_ReassignablePartitionResult(m: ReassignablePartitionResult) -> bytes:
    p = pb.ReassignablePartitionResult()
    fill_ReassignablePartitionResult(m, p)
    return p.SerializeToString()


def decode_ReassignablePartitionResult(data: Buffer) -> ReassignablePartitionResult:
    return read_ReassignablePartitionResult(parse(pb.ReassignablePartitionResult, data))


def fill_ListPartitionReassignmentsRequest(
    m: ListPartitionReassignmentsRequest, p: pb.ListPartitionReassignmentsRequest
) -> None:
    p.all_topics = m.all_topics
    for x_topics in m.topics:
        fill_ReassignmentsOfTopic(x_topics, p.topics.add())
    p.timeout_ms = m.timeout_ms


def read_ListPartitionReassignmentsRequest(
    p: pb.ListPartitionReassignmentsRequest,
) -> ListPartitionReassignmentsRequest:
    return ListPartitionReassignmentsRequest(
        all_topics=p.all_topics,
        topics=tuple([read_ReassignmentsOfTopic(x) for x in p.topics]),
        timeout_ms=p.timeout_ms,
    )


def encode_ListPartitionReassignmentsRequest(m: ListPartitionReassignmentsRequest) -> bytes:
    p = pb.ListPartitionReassignmentsRequest()
    fill_ListPartitionReassignmentsRequest(m, p)
    return p.SerializeToString()


def decode_ListPartitionReassignmentsRequest(data: Buffer) -> ListPartitionReassignmentsRequest:
    return read_ListPartitionReassignmentsRequest(parse(pb.ListPartitionReassignmentsRequest, data))


def fill_ReassignmentsOfTopic(m: ReassignmentsOfTopic, p: pb.ReassignmentsOfTopic) -> None:
    p.name = m.name
    p.partitions.extend(m.partitions)


def read_ReassignmentsOfTopic(p: pb.ReassignmentsOfTopic) -> ReassignmentsOfTopic:
    return ReassignmentsOfTopic(
        name=p.name,
        partitions=tuple(p.partitions[:]),
    )


def encode_ReassignmentsOfTopic(m: ReassignmentsOfTopic) -> bytes:
    p = pb.ReassignmentsOfTopic()
    fill_ReassignmentsOfTopic(m, p)
    return p.SerializeToString()


def decode_ReassignmentsOfTopic(data: Buffer) -> ReassignmentsOfTopic:
    return read_ReassignmentsOfTopic(parse(pb.ReassignmentsOfTopic, data))


def fill_ListPartitionReassignmentsResponse(
    m: ListPartitionReassignmentsResponse, p: pb.ListPartitionReassignmentsResponse
) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_topics in m.topics:
        fill_OngoingTopicReassignment(x_topics, p.topics.add())
    p.throttle_time_ms = m.throttle_time_ms


def read_ListPartitionReassignmentsResponse(
    p: pb.ListPartitionReassignmentsResponse,
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        topics=tuple([read_OngoingTopicReassignment(x) for x in p.topics]),
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_ListPartitionReassignmentsResponse(m: ListPartitionReassignmentsResponse) -> bytes:
    p = pb.ListPartitionReassignmentsResponse()
    fill_ListPartitionReassignmentsResponse(m, p)
    return p.SerializeToString()


def decode_ListPartitionReassignmentsResponse(data: Buffer) -> ListPartitionReassignmentsResponse:
    return read_ListPartitionReassignmentsResponse(parse(pb.ListPartitionReassignmentsResponse, data))


def fill_OngoingTopicReassignment(m: OngoingTopicReassignment, p: pb.OngoingTopicReassignment) -> None:
    p.name = m.name
    for x_partitions in m.partitions:
        fill_OngoingPartitionReassignment(x_partitions, p.partitions.add())


def read_OngoingTopicReassignment(p: pb.OngoingTopicReassignment) -> OngoingTopicReassignment:
    return OngoingTopicReassignment(
        name=p.name,
        partitions=tuple([read_OngoingPartitionReassignment(x) for x in p.partitions]),
    )


def encode_OngoingTopicReassignment(m: OngoingTopicReassignment) -> bytes:
    p = pb.OngoingTopicReassignment()
    fill_OngoingTopicReassignment(m, p)
    return p.SerializeToString()


def decode_OngoingTopicReassignment(data: Buffer) -> OngoingTopicReassignment:
    return read_OngoingTopicReassignment(parse(pb.OngoingTopicReassignment, data))


def fill_OngoingPartitionReassignment(m: OngoingPartitionReassignment, p: pb.OngoingPartitionReassignment) -> None:
    p.index = m.index
    p.replicas.extend(m.replicas)
    p.adding_replicas.extend(m.adding_replicas)
    p.removing_replicas.extend(m.removing_replicas)


def read_OngoingPartitionReassignment(p: pb.OngoingPartitionReassignment) -> OngoingPartitionReassignment:
    return OngoingPartitionReassignment(
        index=p.index,
        replicas=tuple(p.replicas[:]),
        adding_replicas=tuple(p.adding_replicas[:]),
        removing_replicas=tuple(p.removing_replicas[:]),
    )


def encode_OngoingPartitionReassignment(m: OngoingPartitionReassignment) -> bytes:
    p = pb.OngoingPartitionReassignment()
    fill_OngoingPartitionReassignment(m, p)
    return p.SerializeToString()


def decode_OngoingPartitionReassignment(data: Buffer) -> OngoingPartitionReassignment:
    return read_OngoingPartitionReassignment(parse(pb.OngoingPartitionReassignment, data))


def fill_ElectLeadersRequest(m: ElectLeadersRequest, p: pb.ElectLeadersRequest) -> None:
    p.election_type = m.election_type
    p.all_partitions = m.all_partitions
    for x_topics in m.topics:
        fill_ElectionTopic(x_topics, p.topics.add())
    p.timeout_ms = m.timeout_ms


def read_ElectLeadersRequest(p: pb.ElectLeadersRequest) -> ElectLeadersRequest:
    return ElectLeadersRequest(
        election_type=p.election_type,
        all_partitions=p.all_partitions,
        topics=tuple([read_ElectionTopic(x) for x in p.topics]),
        timeout_ms=p.timeout_ms,
    )


def encode_ElectLeadersRequest(m: ElectLeadersRequest) -> bytes:
    p = pb.ElectLeadersRequest()
    fill_ElectLeadersRequest(m, p)
    return p.SerializeToString()


def decode_ElectLeadersRequest(data: Buffer) -> ElectLeadersRequest:
    return read_ElectLeadersRequest(parse(pb.ElectLeadersRequest, data))


def fill_ElectionTopic(m: ElectionTopic, p: pb.ElectionTopic) -> None:
    p.name = m.name
    p.partitions.extend(m.partitions)


def read_ElectionTopic(p: pb.ElectionTopic) -> ElectionTopic:
    return ElectionTopic(
        name=p.name,
        partitions=tuple(p.partitions[:]),
    )


def encode_ElectionTopic(m: ElectionTopic) -> bytes:
    p = pb.ElectionTopic()
    fill_ElectionTopic(m, p)
    return p.SerializeToString()


def decode_ElectionTopic(data: Buffer) -> ElectionTopic:
    return read_ElectionTopic(parse(pb.ElectionTopic, data))


def fill_ElectLeadersResponse(m: ElectLeadersResponse, p: pb.ElectLeadersResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_topics in m.topics:
        fill_ElectionTopicResult(x_topics, p.topics.add())
    p.throttle_time_ms = m.throttle_time_ms


def read_ElectLeadersResponse(p: pb.ElectLeadersResponse) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        topics=tuple([read_ElectionTopicResult(x) for x in p.topics]),
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_ElectLeadersResponse(m: ElectLeadersResponse) -> bytes:
    p = pb.ElectLeadersResponse()
    fill_ElectLeadersResponse(m, p)
    return p.SerializeToString()


def decode_ElectLeadersResponse(data: Buffer) -> ElectLeadersResponse:
    return read_ElectLeadersResponse(parse(pb.ElectLeadersResponse, data))


def fill_ElectionTopicResult(m: ElectionTopicResult, p: pb.ElectionTopicResult) -> None:
    p.name = m.name
    for x_partitions in m.partitions:
        fill_ElectionPartitionResult(x_partitions, p.partitions.add())


def read_ElectionTopicResult(p: pb.ElectionTopicResult) -> ElectionTopicResult:
    return ElectionTopicResult(
        name=p.name,
        partitions=tuple([read_ElectionPartitionResult(x) for x in p.partitions]),
    )


def encode_ElectionTopicResult(m: ElectionTopicResult) -> bytes:
    p = pb.ElectionTopicResult()
    fill_ElectionTopicResult(m, p)
    return p.SerializeToString()


def decode_ElectionTopicResult(data: Buffer) -> ElectionTopicResult:
    return read_ElectionTopicResult(parse(pb.ElectionTopicResult, data))


def fill_ElectionPartitionResult(m: ElectionPartitionResult, p: pb.ElectionPartitionResult) -> None:
    p.index = m.index
    p.error_code = m.error_code
    p.error_message = m.error_message


def read_ElectionPartitionResult(p: pb.ElectionPartitionResult) -> ElectionPartitionResult:
    return ElectionPartitionResult(
        index=p.index,
        error_code=p.error_code,
        error_message=p.error_message,
    )


def encode_ElectionPartitionResult(m: ElectionPartitionResult) -> bytes:
    p = pb.ElectionPartitionResult()
    fill_ElectionPartitionResult(m, p)
    return p.SerializeToString()


def decode_ElectionPartitionResult(data: Buffer) -> ElectionPartitionResult:
    return read_ElectionPartitionResult(parse(pb.ElectionPartitionResult, data))

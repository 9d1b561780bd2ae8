"""Converts between dataclasses and protobuf.

Written by `./dev proto` from proto/quorumlog/v1/produce.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.buffer import Buffer
from quorumlog.messages.produce import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
    ProduceTopicResponse,
    RecordError,
)
from quorumlog.rpc.convert.common import fill_CurrentLeader, fill_NodeEndpoint, read_CurrentLeader, read_NodeEndpoint
from quorumlog.rpc.convert.parsing import parse
from quorumlog.rpc.pb import produce_pb2 as pb


def fill_ProduceRequest(m: ProduceRequest, p: pb.ProduceRequest) -> None:
    p.acks = m.acks
    p.timeout_ms = m.timeout_ms
    for x_topics in m.topics:
        fill_ProduceTopic(x_topics, p.topics.add())
    if m.transactional_id is not None:
        p.transactional_id = m.transactional_id
    p.transaction_version = m.transaction_version
    p.takes_abortable = m.takes_abortable


def read_ProduceRequest(p: pb.ProduceRequest) -> ProduceRequest:
    return ProduceRequest(
        acks=p.acks,
        timeout_ms=p.timeout_ms,
        topics=tuple([read_ProduceTopic(x) for x in p.topics]),
        transactional_id=p.transactional_id if p.HasField("transactional_id") else None,
        transaction_version=p.transaction_version,
        takes_abortable=p.takes_abortable,
    )


def encode_ProduceRequest(m: ProduceRequest) -> bytes:
    p = pb.ProduceRequest()
    fill_ProduceRequest(m, p)
    return p.SerializeToString()


def decode_ProduceRequest(data: Buffer) -> ProduceRequest:
    return read_ProduceRequest(parse(pb.ProduceRequest, data))


def fill_ProduceTopic(m: ProduceTopic, p: pb.ProduceTopic) -> None:
    p.name = m.name
    for x_partitions in m.partitions:
        fill_ProducePartition(x_partitions, p.partitions.add())
    p.topic_id = m.topic_id


def read_ProduceTopic(p: pb.ProduceTopic) -> ProduceTopic:
    return ProduceTopic(
        name=p.name,
        partitions=tuple([read_ProducePartition(x) for x in p.partitions]),
        topic_id=p.topic_id,
    )


def encode_ProduceTopic(m: ProduceTopic) -> bytes:
    p = pb.ProduceTopic()
    fill_ProduceTopic(m, p)
    return p.SerializeToString()


def decode_ProduceTopic(data: Buffer) -> ProduceTopic:
    return read_ProduceTopic(parse(pb.ProduceTopic, data))


def fill_ProducePartition(m: ProducePartition, p: pb.ProducePartition) -> None:
    p.index = m.index
    p.records = m.records if type(m.records) is bytes else bytes(m.records)


def read_ProducePartition(p: pb.ProducePartition) -> ProducePartition:
    return ProducePartition(
        index=p.index,
        records=p.records,
    )


def encode_ProducePartition(m: ProducePartition) -> bytes:
    p = pb.ProducePartition()
    fill_ProducePartition(m, p)
    return p.SerializeToString()


def decode_ProducePartition(data: Buffer) -> ProducePartition:
    return read_ProducePartition(parse(pb.ProducePartition, data))


def fill_ProduceResponse(m: ProduceResponse, p: pb.ProduceResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_topics in m.topics:
        fill_ProduceTopicResponse(x_topics, p.topics.add())
    p.throttle_time_ms = m.throttle_time_ms
    for x_node_endpoints in m.node_endpoints:
        fill_NodeEndpoint(x_node_endpoints, p.node_endpoints.add())


def read_ProduceResponse(p: pb.ProduceResponse) -> ProduceResponse:
    return ProduceResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        topics=tuple([read_ProduceTopicResponse(x) for x in p.topics]),
        throttle_time_ms=p.throttle_time_ms,
        node_endpoints=tuple([read_NodeEndpoint(x) for x in p.node_endpoints]),
    )


def encode_ProduceResponse(m: ProduceResponse) -> bytes:
    p = pb.ProduceResponse()
    fill_ProduceResponse(m, p)
    return p.SerializeToString()


def decode_ProduceResponse(data: Buffer) -> ProduceResponse:
    return read_ProduceResponse(parse(pb.ProduceResponse, data))


def fill_ProduceTopicResponse(m: ProduceTopicResponse, p: pb.ProduceTopicResponse) -> None:
    p.name = m.name
    for x_partitions in m.partitions:
        fill_ProducePartitionResponse(x_partitions, p.partitions.add())
    p.topic_id = m.topic_id


def read_ProduceTopicResponse(p: pb.ProduceTopicResponse) -> ProduceTopicResponse:
    return ProduceTopicResponse(
        name=p.name,
        partitions=tuple([read_ProducePartitionResponse(x) for x in p.partitions]),
        topic_id=p.topic_id,
    )


def encode_ProduceTopicResponse(m: ProduceTopicResponse) -> bytes:
    p = pb.ProduceTopicResponse()
    fill_ProduceTopicResponse(m, p)
    return p.SerializeToString()


def decode_ProduceTopicResponse(data: Buffer) -> ProduceTopicResponse:
    return read_ProduceTopicResponse(parse(pb.ProduceTopicResponse, data))


def fill_ProducePartitionResponse(m: ProducePartitionResponse, p: pb.ProducePartitionResponse) -> None:
    p.index = m.index
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.base_offset = m.base_offset
    p.log_append_time_ms = m.log_append_time_ms
    p.log_start_offset = m.log_start_offset
    if m.current_leader is not None:
        p.current_leader.SetInParent()
        fill_CurrentLeader(m.current_leader, p.current_leader)
    for x_record_errors in m.record_errors:
        fill_RecordError(x_record_errors, p.record_errors.add())


def read_ProducePartitionResponse(p: pb.ProducePartitionResponse) -> ProducePartitionResponse:
    return ProducePartitionResponse(
        index=p.index,
        error_code=p.error_code,
        error_message=p.error_message,
        base_offset=p.base_offset,
        log_append_time_ms=p.log_append_time_ms,
        log_start_offset=p.log_start_offset,
        current_leader=read_CurrentLeader(p.current_leader) if p.HasField("current_leader") else None,
        record_errors=tuple([read_RecordError(x) for x in p.record_errors]),
    )


def encode_ProducePartitionResponse(m: ProducePartitionResponse) -> bytes:
    p = pb.ProducePartitionResponse()
    fill_ProducePartitionResponse(m, p)
    return p.SerializeToString()


def decode_ProducePartitionResponse(data: Buffer) -> ProducePartitionResponse:
    return read_ProducePartitionResponse(parse(pb.ProducePartitionResponse, data))


def fill_RecordError(m: RecordError, p: pb.RecordError) -> None:
    p.batch_index = m.batch_index
    p.message = m.message


def read_RecordError(p: pb.RecordError) -> RecordError:
    return RecordError(
        batch_index=p.batch_index,
        message=p.message,
    )


def encode_RecordError(m: RecordError) -> bytes:
    p = pb.RecordError()
    fill_RecordError(m, p)
    return p.SerializeToString()


def decode_RecordError(data: Buffer) -> RecordError:
    return read_RecordError(parse(pb.RecordError, data))


def fill_InitProducerIdRequest(m: InitProducerIdRequest, p: pb.InitProducerIdRequest) -> None:
    if m.transactional_id is not None:
        p.transactional_id = m.transactional_id
    p.transaction_timeout_ms = m.transaction_timeout_ms
    p.producer_id = m.producer_id
    p.producer_epoch = m.producer_epoch
    p.takes_producer_fenced = m.takes_producer_fenced


def read_InitProducerIdRequest(p: pb.InitProducerIdRequest) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=p.transactional_id if p.HasField("transactional_id") else None,
        transaction_timeout_ms=p.transaction_timeout_ms,
        producer_id=p.producer_id,
        producer_epoch=p.producer_epoch,
        takes_producer_fenced=p.takes_producer_fenced,
    )


def encode_InitProducerIdRequest(m: InitProducerIdRequest) -> bytes:
    p = pb.InitProducerIdRequest()
    fill_InitProducerIdRequest(m, p)
    return p.SerializeToString()


def decode_InitProducerIdRequest(data: Buffer) -> InitProducerIdRequest:
    return read_InitProducerIdRequest(parse(pb.InitProducerIdRequest, data))


def fill_InitProducerIdResponse(m: InitProducerIdResponse, p: pb.InitProducerIdResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.producer_id = m.producer_id
    p.producer_epoch = m.producer_epoch
    p.throttle_time_ms = m.throttle_time_ms


def read_InitProducerIdResponse(p: pb.InitProducerIdResponse) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        producer_id=p.producer_id,
        producer_epoch=p.producer_epoch,
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_InitProducerIdResponse(m: InitProducerIdResponse) -> bytes:
    p = pb.InitProducerIdResponse()
    fill_InitProducerIdResponse(m, p)
    return p.SerializeToString()


def decode_InitProducerIdResponse(data: Buffer) -> InitProducerIdResponse:
    return read_InitProducerIdResponse(parse(pb.InitProducerIdResponse, data))

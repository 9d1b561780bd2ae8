"""Produce, written out because every batch passes here. From version 13 on topics have ids instead of names."""

from __future__ import annotations

from dataclasses import replace

from quorumlog.ids import ZERO_UUID
from quorumlog.messages.common import CurrentLeader, NodeEndpoint
from quorumlog.messages.produce import (
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
    ProduceTopicResponse,
    RecordError,
)
from quorumlog.wire.convert.mirror import from_values, to_values
from quorumlog.wire.format.schema import Values

FIRST_WITH_TOPIC_IDS = 13
FIRST_WITH_EPOCH_PER_TRANSACTION = 12  # the leader adds a partition to the transaction (KIP-890, part 2)
FIRST_WITH_ABORTABLE = 11
EPOCH_PER_TRANSACTION = 2  # transaction.version from which this is so


def read_request(values: Values, version: int) -> ProduceRequest:
    topics = [
        ProduceTopic(
            name=topic.get("name", ""),
            topic_id=topic.get("topic_id", b""),
            partitions=tuple(
                [
                    ProducePartition(index=partition["index"], records=partition["records"] or b"")
                    for partition in topic["partition_data"]
                ]
            ),
        )
        for topic in values["topic_data"]
    ]
    request = ProduceRequest(acks=values["acks"], timeout_ms=values["timeout"], topics=tuple(topics))
    transactional_id = values["transactional_id"]
    if transactional_id is None:
        return request
    return replace(
        request,
        transactional_id=transactional_id,
        transaction_version=EPOCH_PER_TRANSACTION if version >= FIRST_WITH_EPOCH_PER_TRANSACTION else 0,
        takes_abortable=version >= FIRST_WITH_ABORTABLE,
    )


def write_request(request: ProduceRequest, _version: int) -> Values:
    return to_values(request)


def version_for(request: ProduceRequest, newest: int) -> int:
    """Topic ids are used only if every topic has one. Of a transaction, the version says how it is verified."""
    by_id = all(topic.topic_id for topic in request.topics)
    newest = newest if by_id else min(newest, FIRST_WITH_TOPIC_IDS - 1)
    if request.transactional_id is not None and request.transaction_version < EPOCH_PER_TRANSACTION:
        newest = min(newest, FIRST_WITH_EPOCH_PER_TRANSACTION - 1)
        newest = newest if request.takes_abortable else min(newest, FIRST_WITH_ABORTABLE - 1)
    return newest


def write_response(response: ProduceResponse, _request: ProduceRequest, _version: int) -> Values:
    values: Values = {
        "responses": [
            {
                "name": topic.name,
                "topic_id": topic.topic_id or ZERO_UUID,
                "partition_responses": [_partition(partition) for partition in topic.partitions],
            }
            for topic in response.topics
        ],
        "throttle_time": response.throttle_time_ms,
    }
    if response.node_endpoints:
        values["node_endpoints"] = [to_values(endpoint) for endpoint in response.node_endpoints]
    return values


def _partition(partition: ProducePartitionResponse) -> Values:
    values: Values = {
        "index": partition.index,
        "error_code": partition.error_code,
        "base_offset": partition.base_offset,
        "log_append_time": partition.log_append_time_ms,
        "log_start_offset": partition.log_start_offset,
    }
    if partition.error_code:
        values["error_message"] = partition.error_message or None
        if partition.record_errors:
            values["record_errors"] = [
                {"batch_index": error.batch_index, "batch_index_error_message": error.message or None}
                for error in partition.record_errors
            ]
        if partition.current_leader is not None:
            values["current_leader"] = to_values(partition.current_leader)
    return values


def read_response(values: Values, request: ProduceRequest, _version: int) -> ProduceResponse:
    """From version 13 on a response has no topic names: they are taken from the request."""
    names = {topic.topic_id: topic.name for topic in request.topics if topic.topic_id}
    topics = [
        ProduceTopicResponse(
            name=topic.get("name") or names.get(topic.get("topic_id", b""), ""),
            topic_id=topic.get("topic_id", b""),
            partitions=tuple([_read_partition(partition) for partition in topic["partition_responses"]]),
        )
        for topic in values["responses"]
    ]
    return ProduceResponse(
        topics=tuple(topics),
        throttle_time_ms=values["throttle_time"],
        node_endpoints=tuple([from_values(NodeEndpoint, node) for node in values.get("node_endpoints", ())]),
    )


def _read_partition(values: Values) -> ProducePartitionResponse:
    leader = values.get("current_leader")
    return ProducePartitionResponse(
        index=values["index"],
        error_code=values["error_code"],
        error_message=values.get("error_message") or "",
        base_offset=values["base_offset"],
        log_append_time_ms=values["log_append_time"],
        log_start_offset=values.get("log_start_offset", -1),
        current_leader=None if leader is None else from_values(CurrentLeader, leader),
        record_errors=tuple(
            [
                RecordError(batch_index=error["batch_index"], message=error.get("batch_index_error_message") or "")
                for error in values.get("record_errors", ())
            ]
        ),
    )


def refuse(request: ProduceRequest, code: int, message: str) -> ProduceResponse:
    topics = [
        ProduceTopicResponse(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=tuple(
                ProducePartitionResponse(index=partition.index, error_code=code, error_message=message)
                for partition in topic.partitions
            ),
        )
        for topic in request.topics
    ]
    return ProduceResponse(topics=tuple(topics))

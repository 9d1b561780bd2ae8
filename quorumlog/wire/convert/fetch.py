"""Fetch, written out because every batch passes here.

From version 13 on topics have ids instead of names. A follower names itself in `replica_id` before version 15, and in
the tagged `replica_state` from then on; whether it may is checked where both wires check it (rpc/serving/access).
"""

from __future__ import annotations

from quorumlog.ids import ZERO_UUID
from quorumlog.messages.common import CurrentLeader, EpochEndOffset, NodeEndpoint
from quorumlog.messages.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    FetchTopicResponse,
    ForgottenTopic,
    ReplicaState,
)
from quorumlog.wire.convert.mirror import from_values, to_values
from quorumlog.wire.format.schema import Values

FIRST_WITH_TOPIC_IDS = 13
FIRST_WITH_REPLICA_STATE = 15
NO_REPLICA = -1


def read_request(values: Values, _version: int) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=values["max_wait"],
        min_bytes=values["min_bytes"],
        max_bytes=values["max_bytes"],
        topics=tuple([_read_topic(topic) for topic in values["topics"]]),
        replica=_replica(values),
        isolation_level=values["isolation_level"],
        session_id=values.get("session_id", 0),
        session_epoch=values.get("session_epoch", -1),
        forgotten=tuple([from_values(ForgottenTopic, topic) for topic in values.get("forgotten_topics_data", ())]),
        rack=values.get("rack_id", ""),
    )


def _read_topic(topic: Values) -> FetchTopic:
    partitions = [
        FetchPartition(
            index=partition["partition"],
            fetch_offset=partition["fetch_offset"],
            max_bytes=partition["partition_max_bytes"],
            current_leader_epoch=partition.get("current_leader_epoch", -1),
            last_fetched_epoch=partition.get("last_fetched_epoch", -1),
            log_start_offset=partition.get("log_start_offset", -1),
        )
        for partition in topic["partitions"]
    ]
    return FetchTopic(topic_id=topic.get("topic_id", b""), name=topic.get("topic", ""), partitions=tuple(partitions))


def _replica(values: Values) -> ReplicaState | None:
    state = values.get("replica_state", {})
    replica_id = state.get("replica_id", values.get("replica_id", NO_REPLICA))
    if replica_id < 0:
        return None
    return ReplicaState(replica_id=replica_id, broker_epoch=state.get("replica_epoch", -1))


def write_request(request: FetchRequest, version: int) -> Values:
    values = to_values(request)
    if request.replica is None:
        values["replica_id"] = NO_REPLICA
    elif version < FIRST_WITH_REPLICA_STATE:
        values["replica_id"] = request.replica.replica_id
    return values


def version_for(request: FetchRequest, newest: int) -> int:
    """Topic ids are used only if every topic has one. A follower always has them, and version 15 for its epoch."""
    by_id = all(topic.topic_id for topic in request.topics)
    return newest if by_id else min(newest, FIRST_WITH_TOPIC_IDS - 1)


def write_response(response: FetchResponse, _request: FetchRequest, _version: int) -> Values:
    values: Values = {
        "throttle_time": response.throttle_time_ms,
        "error_code": response.error_code,
        "session_id": response.session_id,
        "responses": [
            {
                "topic": topic.name,
                "topic_id": topic.topic_id or ZERO_UUID,
                "partitions": [_partition(partition) for partition in topic.partitions],
            }
            for topic in response.topics
        ],
    }
    if response.node_endpoints:
        values["node_endpoints"] = [to_values(endpoint) for endpoint in response.node_endpoints]
    return values


def _partition(partition: FetchPartitionResponse) -> Values:
    values: Values = {
        "partition_index": partition.index,
        "error_code": partition.error_code,
        "high_watermark": partition.high_watermark,
        "last_stable_offset": partition.last_stable_offset,
        "log_start_offset": partition.log_start_offset,
        "records": partition.records,
        "preferred_read_replica": partition.preferred_read_replica,
    }
    if partition.aborted_transactions:
        values["aborted_transactions"] = [to_values(aborted) for aborted in partition.aborted_transactions]
    if partition.diverging_epoch is not None:
        values["diverging_epoch"] = to_values(partition.diverging_epoch)
    if partition.current_leader is not None:
        values["current_leader"] = to_values(partition.current_leader)
    return values


def read_response(values: Values, request: FetchRequest, _version: int) -> FetchResponse:
    """From version 13 on a response has no topic names: they are taken from the request."""
    names = {topic.topic_id: topic.name for topic in request.topics if topic.topic_id}
    topics = [
        FetchTopicResponse(
            topic_id=topic.get("topic_id", b""),
            name=topic.get("topic") or names.get(topic.get("topic_id", b""), ""),
            partitions=tuple([_read_partition(partition) for partition in topic["partitions"]]),
        )
        for topic in values["responses"]
    ]
    return FetchResponse(
        error_code=values.get("error_code", 0),
        topics=tuple(topics),
        session_id=values.get("session_id", 0),
        throttle_time_ms=values["throttle_time"],
        node_endpoints=tuple([from_values(NodeEndpoint, node) for node in values.get("node_endpoints", ())]),
    )


def _read_partition(values: Values) -> FetchPartitionResponse:
    diverging, leader = values.get("diverging_epoch"), values.get("current_leader")
    return FetchPartitionResponse(
        index=values["partition_index"],
        error_code=values["error_code"],
        high_watermark=values["high_watermark"],
        last_stable_offset=values["last_stable_offset"],
        log_start_offset=values.get("log_start_offset", -1),
        diverging_epoch=None if diverging is None else from_values(EpochEndOffset, diverging),
        current_leader=None if leader is None else from_values(CurrentLeader, leader),
        records=values["records"] or b"",
        aborted_transactions=tuple(
            [from_values(AbortedTransaction, aborted) for aborted in values["aborted_transactions"] or ()]
        ),
        preferred_read_replica=values.get("preferred_read_replica", -1),
    )


def refuse(request: FetchRequest, code: int, _message: str) -> FetchResponse:
    """Versions before 7 have no error code of the whole response: every partition gets it."""
    topics = [
        FetchTopicResponse(
            topic_id=topic.topic_id,
            name=topic.name,
            partitions=tuple(
                FetchPartitionResponse(index=partition.index, error_code=code) for partition in topic.partitions
            ),
        )
        for topic in request.topics
    ]
    return FetchResponse(error_code=code, topics=tuple(topics))

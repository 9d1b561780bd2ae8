"""Produce: appends batches to partitions that this broker leads.

Everything is validated and enqueued before the first await, in the order of the request; only the response waits. (A
batch whose records take long to look at is enqueued later; the appends behind it on its partition wait for it. The
first batch of a transaction in a partition waits for its coordinator, and those of its producer behind it. A partition
that this broker is about to lead is waited for, see `replicas/upcoming.py`.) An
error concerns its partition alone. With acks=0 there is no response, so an error closes the connection, as in Kafka: a
client has no other way to notice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from itertools import chain

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.common import CurrentLeader
from quorumlog.messages.produce import (
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
    ProduceTopicResponse,
    RecordError,
)
from quorumlog.records.validation.record_check import InvalidRecord
from quorumlog.rpc.transport import Context
from quorumlog.topic_name import is_internal
from quorumlog_broker.api.endpoints import leader_endpoints
from quorumlog_broker.api.handlers.limits import check_topic_count
from quorumlog_broker.api.services import Services
from quorumlog_broker.coordinator.runtime.verified_appends import Sender
from quorumlog_broker.coordinator.runtime.verifier import EPOCH_PER_TRANSACTION
from quorumlog_broker.produce.append_faults import ACKS
from quorumlog_broker.produce.pending_append import AppendResult
from quorumlog_broker.replicas.upcoming import give_up

_Append = Awaitable[AppendResult] | ApiError


async def handle_produce(services: Services, context: Context, request: ProduceRequest) -> ProduceResponse | None:
    if request.acks not in ACKS:
        raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={request.acks}: must be 0, 1 or -1 (all)")
    if request.transactional_id == "":
        raise ApiError(ErrorCode.INVALID_REQUEST, "the transactional id is empty; set transactional.id")
    check_topic_count(request.topics, services.limits)
    timeout_ms = max(0, min(request.timeout_ms, services.limits.max_wait_ms))
    appends = [
        [_append(services, request, topic, partition, timeout_ms) for partition in topic.partitions]
        for topic in request.topics
    ]
    try:
        topics = [
            ProduceTopicResponse(
                name=topic.name, topic_id=topic.topic_id, partitions=await _answers(services, topic, of_topic)
            )
            for topic, of_topic in zip(request.topics, appends, strict=True)
        ]
    finally:
        give_up(chain.from_iterable(appends))  # only a cancellation leaves any
    throttle_ms = 0
    if services.quotas.limits(context):
        size_bytes = sum(len(partition.records) for topic in request.topics for partition in topic.partitions)
        throttle_ms = services.quotas.produced(context, size_bytes)
    if request.acks == 0:
        _fail_if_any_failed(topics)
        return ProduceResponse(throttle_time_ms=throttle_ms) if throttle_ms else None  # it is not sent
    hints = [one.current_leader for topic in topics for one in topic.partitions if one.current_leader is not None]
    return ProduceResponse(
        topics=tuple(topics),
        node_endpoints=leader_endpoints(services, context, hints),
        throttle_time_ms=throttle_ms,
    )


def _append(
    services: Services, request: ProduceRequest, topic: ProduceTopic, partition: ProducePartition, timeout_ms: int
) -> _Append:
    key, name, index = topic.topic_id or topic.name, _name(services, topic), partition.index
    acks, records = request.acks, partition.records
    if is_internal(name):
        text = "only its coordinators write to a topic of the cluster's own"
        return ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, text)

    def begin(left_ms: int) -> Awaitable[AppendResult]:
        if request.transactional_id is None:
            return services.produce_path.append(key, index, records, acks=acks, timeout_ms=left_ms)
        return services.transactions.appends.append(
            key, name, index, records, sender=_sender(request), acks=acks, timeout_ms=left_ms
        )

    try:
        return begin(timeout_ms)
    except ApiError as error:
        return services.upcoming.later(error, (key, index), len(records), timeout_ms, begin) or error


def _sender(request: ProduceRequest) -> Sender:
    adds = request.transaction_version >= EPOCH_PER_TRANSACTION
    return Sender(request.transactional_id or "", adds, request.takes_abortable)


def _name(services: Services, topic: ProduceTopic) -> str:
    """Empty for an id that is not known here."""
    if topic.name or not topic.topic_id:
        return topic.name
    found = services.subscription.image.topics.get(topic.topic_id)
    return "" if found is None else found.name


async def _answers(
    services: Services, topic: ProduceTopic, appends: Sequence[_Append]
) -> tuple[ProducePartitionResponse, ...]:
    """One for each partition of the request, in its order."""
    answers = []
    for partition, append in zip(topic.partitions, appends, strict=True):
        try:
            if isinstance(append, ApiError):
                raise append
            answers.append(_appended(partition.index, await append))
        except ApiError as error:
            services.traffic.refused(error, len(partition.records))
            answers.append(_refused(services, topic, partition.index, error))
    return tuple(answers)


def _appended(index: int, result: AppendResult) -> ProducePartitionResponse:
    return ProducePartitionResponse(
        index=index,
        base_offset=result.base_offset,
        log_append_time_ms=result.log_append_time_ms,
        log_start_offset=result.log_start_offset,
    )


def _refused(services: Services, topic: ProduceTopic, index: int, error: ApiError) -> ProducePartitionResponse:
    return ProducePartitionResponse(
        index=index,
        error_code=error.code,
        error_message=error.message,
        current_leader=_current_leader(services, topic, index, error.code),
        record_errors=_record_errors(error),
    )


def _record_errors(error: ApiError) -> tuple[RecordError, ...]:
    """The records that are invalid (KIP-467). Kafka's clients fail these with the message, the others without."""
    if not isinstance(error, InvalidRecord):
        return ()
    return tuple(RecordError(batch_index=fault.number, message=fault.message) for fault in error.faults)


def _fail_if_any_failed(topics: list[ProduceTopicResponse]) -> None:
    for topic in topics:
        for partition in topic.partitions:
            if partition.error_code != ErrorCode.NONE:
                raise ApiError(ErrorCode(partition.error_code), partition.error_message)


def _current_leader(services: Services, topic: ProduceTopic, index: int, code: ErrorCode) -> CurrentLeader | None:
    """The leader to go to instead (KIP-951), according to the newest metadata."""
    if code is not ErrorCode.NOT_LEADER_OR_FOLLOWER:
        return None
    image = services.subscription.image
    registration = image.partition(topic.topic_id or image.topic_ids.get(topic.name, b""), index)
    if registration is None:
        return None
    return CurrentLeader(leader_id=registration.leader, leader_epoch=registration.leader_epoch)

"""Produce: Write on each topic, and on the transactional id as soon as one batch is part of a transaction.

Every batch is looked at, not the first one only (CVE-2018-17196). With acks=0 there is no answer that could tell a
denial, so the connection ends, as in Kafka.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.buffer import Buffer
from quorumlog.messages.produce import (
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
    ProduceTopicResponse,
)
from quorumlog.security.required.asker import Asker, refusal
from quorumlog.security.required.judged import Judged, keep_topics
from quorumlog.security.required.need import ID_WRITE, TOPIC_WRITE

_HEAD = Struct(">8xi4xbxxxxxB")  # size behind itself, format, low byte of the attributes
_SIZE_END = 12  # a batch ends so many bytes, and its size, behind its begin
_FORMAT = 2  # the first one that has transactions
_TRANSACTIONAL = 0x10


def produce(ask: Asker, request: ProduceRequest) -> Judged:
    transactional_id = request.transactional_id
    if _any_transactional(request):
        if transactional_id is None:
            ask.deny(ID_WRITE, "")
            raise refusal(ID_WRITE)
        ask.demand(ID_WRITE, transactional_id)
    if ask.may_all(TOPIC_WRITE, request.topics):
        return Judged(request)
    faults = [ask.topic_fault(TOPIC_WRITE, topic) for topic in request.topics]
    judged = keep_topics(request, faults, ProduceResponse, _denied)
    if request.acks or not any(faults):
        return judged
    if judged.request is None:
        raise _closing(faults)

    def finish(_none: None) -> Any:
        raise _closing(faults)

    return Judged(judged.request, finish)


def _closing(faults: list[ErrorCode]) -> ApiError:
    code = next(fault for fault in faults if fault)
    return ApiError(code, "not authorized for a topic of a request without an answer")


def _any_transactional(request: ProduceRequest) -> bool:
    for topic in request.topics:
        for partition in topic.partitions:
            if is_transactional(partition.records):
                return True
    return False


def is_transactional(records: Buffer) -> bool:
    """Whether any of these batches is part of a transaction. What cannot be read ends the search: nobody appends it."""
    position, end = 0, len(records) - _HEAD.size
    while position <= end:
        size, version, attributes = _HEAD.unpack_from(records, position)
        if version >= _FORMAT and attributes & _TRANSACTIONAL:
            return True
        if size <= 0:
            return False
        position += _SIZE_END + size
    return False


def _denied(topic: ProduceTopic, fault: ErrorCode) -> ProduceTopicResponse:
    partitions = tuple(ProducePartitionResponse(index=one.index, error_code=fault) for one in topic.partitions)
    return ProduceTopicResponse(name=topic.name, topic_id=topic.topic_id, partitions=partitions)

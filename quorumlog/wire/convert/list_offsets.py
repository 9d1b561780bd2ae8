"""ListOffsets: special times and errors that came with later versions.

A special time exists from the version on that brought it (KIP-79, KIP-734, KIP-405, KIP-1005, KIP-1023). In an older
one it is as good as any other that does not exist, and is refused by UNSUPPORTED_VERSION, as Kafka's brokers do.
"""

from __future__ import annotations

from dataclasses import replace

from quorumlog.errors import ErrorCode
from quorumlog.messages.fetch import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from quorumlog.slices import Pace, Sliced
from quorumlog.wire.convert.mirror import from_values_sliced, to_values
from quorumlog.wire.format.schema import Values

FIRST_WITH_TIME = {-1: 1, -2: 1, -3: 7, -4: 8, -5: 9, -6: 11}
NO_SUCH_TIME = -(2**63)  # in ms; what a special time becomes that the version does not have
FIRST_WITH_UNAVAILABLE_OFFSETS = 5  # before it, the leader is called unavailable


def read_request(values: Values, version: int, pace: Pace) -> Sliced[ListOffsetsRequest]:
    request: ListOffsetsRequest = yield from from_values_sliced(ListOffsetsRequest, values, pace)
    topics = []
    for topic in request.topics:
        topics.append(replace(topic, partitions=tuple([_known(one, version) for one in topic.partitions])))
        if pace.is_over():
            yield
    return replace(request, topics=tuple(topics))


def _known(partition: ListOffsetsPartition, version: int) -> ListOffsetsPartition:
    time_ms = partition.timestamp_ms
    if time_ms >= 0 or FIRST_WITH_TIME.get(time_ms, version + 1) <= version:
        return partition
    return replace(partition, timestamp_ms=NO_SUCH_TIME)


def write_response(response: ListOffsetsResponse, _request: ListOffsetsRequest, version: int) -> Values:
    if version >= FIRST_WITH_UNAVAILABLE_OFFSETS:
        return to_values(response)
    topics = [
        replace(topic, partitions=tuple([_in_old_words(one) for one in topic.partitions])) for topic in response.topics
    ]
    return to_values(replace(response, topics=tuple(topics)))


def _in_old_words(partition: ListOffsetsPartitionResponse) -> ListOffsetsPartitionResponse:
    if partition.error_code != ErrorCode.OFFSET_NOT_AVAILABLE:
        return partition
    return replace(partition, error_code=ErrorCode.LEADER_NOT_AVAILABLE)

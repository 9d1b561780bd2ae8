"""ListOffsets over the versions of Kafka's protocol: which special times each knows, and which errors."""

from __future__ import annotations

import pytest

from quorumlog.errors import ErrorCode
from quorumlog.messages.fetch import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from quorumlog.wire.convert.list_offsets import NO_SUCH_TIME
from quorumlog.wire.format.schema import Values
from quorumlog.wire.protocol.apis import BY_REQUEST

API = BY_REQUEST[ListOffsetsRequest]
VERSIONS = range(API.oldest, API.newest + 1)
SINCE = {-1: 1, -2: 1, -3: 7, -4: 8, -5: 9, -6: 11}  # `ReplicaManager.timestampMinSupportedVersion` of Kafka 4.3


def read(timestamp_ms: int, version: int) -> int:
    values: Values = {
        "replica_id": -1,
        "topics": [{"name": "a", "partitions": [{"partition_index": 3, "timestamp": timestamp_ms}]}],
    }
    found = API.read_request(values, version)
    assert found.topics[0].partitions[0].index == 3
    return int(found.topics[0].partitions[0].timestamp_ms)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_special_time_exists_from_the_version_on_that_brought_it(version: int) -> None:
    known = {time for time, since in SINCE.items() if version >= since}
    for time in range(-9, 0):
        assert read(time, version) == (time if time in known else NO_SUCH_TIME), time
    assert [read(time, version) for time in (0, 1_700_000_000_000)] == [0, 1_700_000_000_000]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_offset_that_is_not_available_has_the_error_that_the_version_knows(version: int) -> None:
    answers = tuple(
        ListOffsetsPartitionResponse(index=index, error_code=error)
        for index, error in enumerate((ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.NONE))
    )
    response = ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name="a", partitions=answers),))
    values = API.write_response(response, ListOffsetsRequest(), version)
    errors = [one["error_code"] for topic in values["topics"] for one in topic["partitions"]]
    first = ErrorCode.OFFSET_NOT_AVAILABLE if version >= 5 else ErrorCode.LEADER_NOT_AVAILABLE
    assert errors == [first, ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.NONE]

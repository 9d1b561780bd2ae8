"""Any bytes at a whole node's lane: `python -m tests.scenarios.node_fuzz [COUNT] [SEED]`, and 20,000 in the suite.

The inputs of tests/wire/fuzz.py, made of requests that name a topic which is there, so that they come as far as the
handlers, the log, and the controller behind it. What has to hold besides: no handler fails unexpectedly (that would
end the process), nothing that is stored or set changes, and the node is well afterwards.
"""

from __future__ import annotations

import dataclasses
import sys
import tempfile
from pathlib import Path
from typing import Any

from quorumlog.messages.admin import (
    AlterableConfig,
    AlterConfigsResource,
    CreatePartitionsRequest,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DescribeLogDirsRequest,
    DescribeTopicPartitionsRequest,
    IncrementalAlterConfigsRequest,
    LogDirsTopic,
    PartitionCursor,
    PartitionsOfTopic,
)
from quorumlog.messages.cluster import (
    ConfigResource,
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    MetadataRequest,
    TopicQuery,
)
from quorumlog.messages.fetch import (
    EpochPartition,
    EpochTopic,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
)
from quorumlog.messages.produce import ProducePartition, ProduceRequest, ProduceTopic
from quorumlog.rpc.transport import Connection
from quorumlog.wire.apis import BY_REQUEST
from quorumlog.wire.parts import LENGTH_BYTES, Parts
from tests.scenarios.one_node import BATCH, CALL_MS, LANE, NO_TOPICS_BY_ACCIDENT, RealNode, append, make_topic
from tests.wire.fuzz import SEEDS, Bodies, Fuzz, fuzz

TOPIC, NOT_THERE = "fuzz", "nope"
TOPIC_RESOURCE = 2
PATIENCE_S = 0.02
DAMAGED = BATCH[:17] + bytes([BATCH[17] ^ 1]) + BATCH[18:]  # by its checksum, which no chance will mend


class NodeFuzz:
    """One node with one topic of one partition, and what was there before the first input."""

    def __init__(self, folder: Path) -> None:
        self.at = RealNode(folder, NO_TOPICS_BY_ACCIDENT)
        self._connection = self.at.connect(LANE)
        self.topic_id = self.at.do(make_topic(self._connection, TOPIC))
        self._before = self.at.do(_state(self._connection))

    def run(self, count: int, first_seed: int) -> int:
        """How many inputs were answered. Raises AssertionError."""

        async def handle(context: Any, request: Any) -> Any:
            return await self.at.node._handle_client(context, request)

        async def scenario() -> int:
            return await fuzz(Fuzz(handle, bodies_of(self.topic_id), PATIENCE_S), count, first_seed)

        answered = self.at.do(scenario())
        assert self.at.crashes == [], self.at.crashes[0]
        assert self.at.node.ready and self.at.node.fatal is None
        after = self.at.do(_state(self._connection))
        assert after == self._before, f"it was {self._before}, it is {after}"
        assert self.at.do(append(self._connection, TOPIC)) == 0
        return answered

    def close(self) -> None:
        self.at.do(self._connection.close())
        self.at.close()


async def _state(connection: Connection) -> list[Any]:
    """What no bad input may change: topics, settings, and where the log begins and ends."""
    topics = await connection.call(MetadataRequest(all_topics=True, allow_auto_topic_creation=False), CALL_MS)
    configs = await connection.call(_configs_of(TOPIC), CALL_MS)
    ends = [await connection.call(_offsets_of(timestamp_ms), CALL_MS) for timestamp_ms in (-1, -2)]
    return [topics.topics, configs.results, [end.topics for end in ends]]


def _configs_of(name: str) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(resources=(ConfigResource(resource_type=TOPIC_RESOURCE, resource_name=name),))


def _offsets_of(timestamp_ms: int) -> ListOffsetsRequest:
    asked = ListOffsetsPartition(index=0, timestamp_ms=timestamp_ms)
    return ListOffsetsRequest(topics=(ListOffsetsTopic(name=TOPIC, partitions=(asked,)),))


def bodies_of(topic_id: bytes) -> Bodies:
    """Bodies to be damaged, of every API and version: almost empty ones, and ones that mean something."""
    found = {key: list(bodies) for key, bodies in SEEDS.items()}
    for request in _requests(topic_id):
        api = BY_REQUEST[type(request)]
        for version in range(api.oldest, api.version_for(request, api.newest) + 1):
            parts = Parts()
            api.request_shape(version).write(parts, api.write_request(request, version))
            found[api.key, version].append(b"".join(parts.frame())[LENGTH_BYTES:])
    return found


def _requests(topic_id: bytes) -> list[Any]:
    """Reads of what is there, and changes that are refused however they are damaged: of what is not there, or again."""
    wanted = FetchPartition(index=0, fetch_offset=0, max_bytes=1 << 20)
    fetch = FetchRequest(
        max_wait_ms=5,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=(FetchTopic(topic_id=topic_id, name=TOPIC, partitions=(wanted,)),),
    )
    produce = ProduceRequest(
        acks=-1,
        timeout_ms=5,
        topics=(ProduceTopic(name=TOPIC, partitions=(ProducePartition(index=0, records=DAMAGED),)),),
    )
    config = AlterableConfig(name="retention.ms", value="1")
    alter = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=NOT_THERE, configs=(config,))
    records = DeleteRecordsTopic(name=NOT_THERE, partitions=(DeleteRecordsPartition(index=0, offset=-1),))
    epochs = EpochTopic(name=TOPIC, partitions=(EpochPartition(index=0, leader_epoch=0),))
    return [
        fetch,
        dataclasses.replace(fetch, session_id=0, session_epoch=0),
        produce,
        dataclasses.replace(produce, topics=(dataclasses.replace(produce.topics[0], topic_id=topic_id),)),
        _offsets_of(-1),
        _offsets_of(1_700_000_000_000),
        _configs_of(TOPIC),
        OffsetForLeaderEpochRequest(topics=(epochs,)),
        MetadataRequest(all_topics=False, topics=(TopicQuery(name=TOPIC),)),
        DescribeTopicPartitionsRequest(topics=(TOPIC,), cursor=PartitionCursor(topic_name=TOPIC, partition_index=0)),
        DescribeLogDirsRequest(all_topics=False, topics=(LogDirsTopic(name=TOPIC, partitions=(0,)),)),
        CreateTopicsRequest(topics=(CreatableTopic(name=TOPIC),), timeout_ms=5, validate_only=True),
        DeleteTopicsRequest(topics=(TopicQuery(name=NOT_THERE),), timeout_ms=5),
        CreatePartitionsRequest(topics=(PartitionsOfTopic(name=NOT_THERE, count=2),), timeout_ms=5),
        IncrementalAlterConfigsRequest(resources=(alter,), validate_only=True),
        DeleteRecordsRequest(topics=(records,), timeout_ms=5),
    ]


def main() -> None:
    given = [int(text) for text in sys.argv[1:]]
    count, seed = (*given, *(1_000_000, 1)[len(given) :])
    with tempfile.TemporaryDirectory() as folder:
        fuzzing = NodeFuzz(Path(folder))
        try:
            print(f"{fuzzing.run(count, seed)} of {count} inputs were answered; none did harm")
        finally:
            fuzzing.close()


if __name__ == "__main__":
    main()

"""Asks leaders how many records a reader would get from an offset on: a call of quorumlog's own, Kafka has none."""

from __future__ import annotations

from collections.abc import Mapping

from quorumlog.client.cluster.link import Link, check
from quorumlog.client.errors import NoProtocol, RequestFailed
from quorumlog.client.offsets import by_leader
from quorumlog.client.options import ISOLATION_LEVELS
from quorumlog.errors import ErrorCode
from quorumlog.ids import Offset, TopicPartition
from quorumlog.messages.fetch import (
    CountedRecords,
    CountRecordsPartition,
    CountRecordsRequest,
    CountRecordsResponse,
    CountRecordsTopic,
)
from quorumlog.rpc.transport import NotServed


async def count_records(
    link: Link,
    wanted: Mapping[TopicPartition, Offset],
    *,
    isolation_level: str = "read_uncommitted",
    timeout_ms: int | None = None,
) -> dict[TopicPartition, CountedRecords]:
    """The readable records of each partition from an offset on, and the time of the first of them.

    Retries while leaders move. Raises RequestFailed; NoProtocol for a cluster that has no such call, as Kafka's.
    """
    found: dict[TopicPartition, CountedRecords] = {}

    async def ask() -> None:
        left = {key: offset for key, offset in wanted.items() if key not in found}
        for node_id, keys in (await by_leader(link, left)).items():
            topics = _topics(link, {key: left[key] for key in keys})
            request = CountRecordsRequest(topics=topics, isolation_level=ISOLATION_LEVELS[isolation_level])
            response: CountRecordsResponse = await link.call_node(node_id, request)
            check(response)
            for topic in response.topics:
                for one in topic.partitions:
                    if one.error_code != ErrorCode.NONE:
                        text = f"records of {topic.name}-{one.index}: {one.error_message}"
                        raise RequestFailed(ErrorCode(one.error_code), text)
                    found[topic.name, one.index] = one

    try:
        await link.until(ask, timeout_ms or link.options.default_api_timeout_ms)
    except NotServed as error:
        raise NoProtocol(f"this cluster cannot say how many records are to be read (CountRecords): {error}") from error
    return found


def _topics(link: Link, wanted: Mapping[TopicPartition, Offset]) -> tuple[CountRecordsTopic, ...]:
    """Of the lives of the topics that the client knows, as in ListOffsets."""
    topics: dict[str, list[CountRecordsPartition]] = {}
    for (topic, index), start in wanted.items():
        topics.setdefault(topic, []).append(CountRecordsPartition(index=index, start_offset=start))
    return tuple(
        CountRecordsTopic(name=name, topic_id=link.cache.life_of(name).topic_id, partitions=tuple(parts))
        for name, parts in topics.items()
    )

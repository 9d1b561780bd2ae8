"""Asks leaders for offsets: the first, the last, or the first at or after a timestamp."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from quorumlog.client.cluster.link import Link, check
from quorumlog.client.cluster.metadata_cache import NO_ID
from quorumlog.client.errors import RequestFailed
from quorumlog.client.options import ISOLATION_LEVELS
from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_NODE, Epoch, NodeId, Offset, TopicPartition, Uuid
from quorumlog.messages.fetch import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopic
from quorumlog.nursery import Nursery

LATEST = -1  # the end of what consumers can read
EARLIEST = -2
MAX_TIMESTAMP = -3  # the record with the largest timestamp


class Place(NamedTuple):
    """An offset in a partition of one life of a topic. topic_id: empty if unknown."""

    offset: Offset
    topic_id: Uuid = NO_ID


@dataclass(frozen=True, slots=True)
class FoundOffset:
    """offset, timestamp_ms: -1 if no record is at or after the requested timestamp.

    topic_id: of the topic in whose log the offset lies; empty if the cluster has no ids.
    """

    offset: Offset
    timestamp_ms: int
    leader_epoch: Epoch
    topic_id: Uuid = NO_ID

    @property
    def place(self) -> Place:
        return Place(self.offset, self.topic_id)


async def resolve_offsets(
    link: Link,
    wanted: Mapping[TopicPartition, int],
    timeout_ms: int | None = None,
    *,
    isolation_level: str = "read_uncommitted",
) -> dict[TopicPartition, FoundOffset]:
    """Offsets for timestamps in ms, or for LATEST, EARLIEST or MAX_TIMESTAMP. Retries while leaders move.

    isolation_level: with read_committed, LATEST is the last stable offset, and no later one is found.
    Raises RequestFailed (with the last error at the deadline), Unavailable.
    """
    found: dict[TopicPartition, FoundOffset] = {}

    async def ask() -> None:
        missing = [key for key in wanted if key not in found]
        for node_id, keys in (await by_leader(link, missing)).items():
            request = _request(link, keys, wanted, isolation_level)
            response: ListOffsetsResponse = await link.call_node(node_id, request)
            check(response)
            _collect(response, request, found)

    await link.until(ask, timeout_ms or link.options.default_api_timeout_ms)
    return found


async def resolve_ranges(
    link: Link,
    wanted: Iterable[TopicPartition],
    timeout_ms: int | None = None,
    *,
    isolation_level: str = "read_uncommitted",
) -> dict[TopicPartition, tuple[FoundOffset, FoundOffset]]:
    """EARLIEST and LATEST of each partition; all leaders are asked at the same time. Retries while leaders move.

    Metadata that the link has are used first. As both are asked at once, the first offset may be the later answer, and
    then above the end. isolation_level: as for `resolve_offsets`, which names what this raises, too.
    """
    keys = list(wanted)
    first, end = dict[TopicPartition, FoundOffset](), dict[TopicPartition, FoundOffset]()
    known = all(link.cache.leader_of(*key) is not None for key in keys)

    async def ask() -> None:
        nonlocal known
        use_known, known = known, False
        nursery = Nursery(lambda _name, _error: None)  # an error is raised where its answer is awaited
        try:
            calls = []
            for timestamp, found in ((EARLIEST, first), (LATEST, end)):
                missing = [key for key in keys if key not in found]
                for node_id, of_node in (await by_leader(link, missing, refresh=not use_known)).items():
                    use_known = True  # refreshed for the first of the two
                    request = _request(link, of_node, dict.fromkeys(of_node, timestamp), isolation_level)
                    call = nursery.start(_call(link, node_id, request), f"offsets of node {node_id}")
                    calls.append((found, request, call))
            for found, request, call in calls:
                response = await call
                check(response)
                _collect(response, request, found)
        finally:
            await nursery.close()

    await link.until(ask, timeout_ms or link.options.default_api_timeout_ms)
    return {key: (first[key], end[key]) for key in keys}


async def _call(link: Link, node_id: NodeId, request: ListOffsetsRequest) -> ListOffsetsResponse:
    response: ListOffsetsResponse = await link.call_node(node_id, request)
    return response


async def by_leader(
    link: Link, keys: Iterable[TopicPartition], *, refresh: bool = True
) -> dict[NodeId, list[TopicPartition]]:
    """Groups partitions by their current leader. Raises RequestFailed for one without a leader.

    refresh: from fresh metadata, not from those that the link has. A topic that does not exist stays so: a question
    about a name that was mistyped must not make it.
    """
    asked = list(keys)
    if refresh and asked:
        await link.refresh(list(dict.fromkeys(topic for topic, _ in asked)), create=False)
    by_node: dict[NodeId, list[TopicPartition]] = {}
    for key in asked:
        by_node.setdefault(_leader(link, key), []).append(key)
    return by_node


def _leader(link: Link, key: TopicPartition) -> NodeId:
    topic = link.cache.topics.get(key[0])
    if topic is None or key[1] not in topic.partitions:
        raise RequestFailed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{key[0]}-{key[1]} does not exist")
    leader = topic.partitions[key[1]]
    if leader.leader_id == NO_NODE:
        raise RequestFailed(ErrorCode.LEADER_NOT_AVAILABLE, f"{key[0]}-{key[1]} has no leader")
    return leader.leader_id


def _request(
    link: Link, keys: list[TopicPartition], wanted: Mapping[TopicPartition, int], isolation_level: str
) -> ListOffsetsRequest:
    """Of the lives of the topics that the client knows, so that a leader that is behind names no offset of another."""
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for topic, partition in keys:
        part = ListOffsetsPartition(index=partition, timestamp_ms=wanted[topic, partition])
        topics.setdefault(topic, []).append(part)
    return ListOffsetsRequest(
        isolation_level=ISOLATION_LEVELS[isolation_level],
        topics=tuple(
            ListOffsetsTopic(name=name, topic_id=link.cache.life_of(name).topic_id, partitions=tuple(parts))
            for name, parts in topics.items()
        ),
    )


def _collect(
    response: ListOffsetsResponse, request: ListOffsetsRequest, found: dict[TopicPartition, FoundOffset]
) -> None:
    ids = {topic.name: topic.topic_id for topic in request.topics}
    for topic in response.topics:
        for part in topic.partitions:
            if part.error_code != ErrorCode.NONE:
                raise RequestFailed(ErrorCode(part.error_code), f"offsets of {topic.name}-{part.index}")
            where = FoundOffset(part.offset, part.timestamp_ms, part.leader_epoch, ids[topic.name])
            found[topic.name, part.index] = where

"""Committed offsets in the messages of OffsetCommit and OffsetFetch, for members and for admin clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from quorumlog.client.errors import ConfigError, RequestFailed
from quorumlog.client.fetch_position import TopicPartition
from quorumlog.client.group_coordinator import GroupCoordinator
from quorumlog.client.link import Link, check
from quorumlog.errors import ErrorCode
from quorumlog.ids import Offset
from quorumlog.messages.groups import (
    OffsetCommitPartition,
    OffsetCommitTopic,
    OffsetFetchGroup,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopic,
    OffsetFetchTopicResult,
    OffsetFetchTopics,
)

NO_OFFSET = -1  # nothing was committed


class CommittedOffset(NamedTuple):
    """offset: of the next record to read. leader_epoch: of the record before it; -1 if unknown."""

    offset: Offset
    leader_epoch: int = -1
    metadata: str = ""


def check_offset(key: TopicPartition, offset: object) -> None:
    """Raises ConfigError for what can be no offset to commit."""
    topic, index = key
    if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0 or index < 0:
        raise ConfigError(f"not an offset of {topic}-{index}: {offset!r}; give the next offset to read")


def topics_to_commit(offsets: Mapping[TopicPartition, CommittedOffset]) -> tuple[OffsetCommitTopic, ...]:
    topics: dict[str, list[OffsetCommitPartition]] = {}
    for (topic, index), committed in offsets.items():
        part = OffsetCommitPartition(
            index=index,
            committed_offset=committed.offset,
            committed_leader_epoch=committed.leader_epoch,
            committed_metadata=committed.metadata,
        )
        topics.setdefault(topic, []).append(part)
    return tuple(OffsetCommitTopic(name=name, partitions=tuple(parts)) for name, parts in topics.items())


def topics_to_fetch(partitions: Iterable[TopicPartition]) -> tuple[OffsetFetchTopic, ...]:
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return tuple(OffsetFetchTopic(name=name, partitions=tuple(indexes)) for name, indexes in topics.items())


async def fetch_offsets(
    link: Link,
    coordinator: GroupCoordinator,
    group_id: str,
    partitions: Iterable[TopicPartition] | None,
    timeout_ms: int,
    *,
    require_stable: bool,
) -> dict[TopicPartition, CommittedOffset]:
    """Of all partitions if None. A partition without an offset is not in it. Asked again until the timeout.

    require_stable: wait for open transactions that may still change an offset (KIP-447). Raises RequestFailed,
    RpcError.
    """
    topics = None if partitions is None else OffsetFetchTopics(topics=topics_to_fetch(partitions))
    group = OffsetFetchGroup(group_id=group_id, topics=topics)
    request = OffsetFetchRequest(groups=(group,), require_stable=require_stable)

    async def ask() -> dict[TopicPartition, CommittedOffset]:
        response: OffsetFetchResponse = await coordinator.once(request)
        check(response)
        (found,) = response.groups
        if found.error_code != ErrorCode.NONE:
            raise RequestFailed(ErrorCode(found.error_code), f"offsets of group {group_id!r}")
        return _found(found.topics, group_id)

    fetched: dict[TopicPartition, CommittedOffset] = await link.until(ask, timeout_ms)
    return fetched


def _found(topics: Iterable[OffsetFetchTopicResult], group_id: str) -> dict[TopicPartition, CommittedOffset]:
    found = {}
    for topic in topics:
        for one in topic.partitions:
            if one.error_code != ErrorCode.NONE:
                where = f"committed offset of {topic.name}-{one.index}, group {group_id!r}"
                raise RequestFailed(ErrorCode(one.error_code), where)
            if one.committed_offset > NO_OFFSET:  # other clients may commit any number; a negative one is none
                found[topic.name, one.index] = CommittedOffset(
                    one.committed_offset, one.committed_leader_epoch, one.metadata
                )
    return found

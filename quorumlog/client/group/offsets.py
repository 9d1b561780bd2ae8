"""Committed offsets in the messages of OffsetCommit and OffsetFetch, for members and for admin clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from quorumlog.client.cluster.link import Link, check
from quorumlog.client.cluster.metadata_cache import NO_ID
from quorumlog.client.errors import ConfigError, RequestFailed
from quorumlog.client.group.coordinator import GroupCoordinator
from quorumlog.errors import ErrorCode
from quorumlog.ids import Offset, TopicPartition, Uuid
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
    """offset: of the next record to read. leader_epoch: of the record before it; -1 if unknown.

    topic_id: of the topic that the offset belongs to, whatever has its name now; empty: the one that has the name.
    """

    offset: Offset
    leader_epoch: int = -1
    metadata: str = ""
    topic_id: Uuid = NO_ID

    def may_be_of(self, topic_id: bytes) -> bool:
        """False: it belongs to another topic of this name, and says nothing of the one with this id. Empty: unknown."""
        return not (self.topic_id and topic_id) or bytes(self.topic_id) == bytes(topic_id)


def check_offset(key: TopicPartition, offset: object) -> None:
    """Raises ConfigError for what can be no offset to commit."""
    topic, index = key
    if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0 or index < 0:
        raise ConfigError(f"not an offset of {topic}-{index}: {offset!r}; give the next offset to read")


def topics_to_commit(offsets: Mapping[TopicPartition, CommittedOffset]) -> tuple[OffsetCommitTopic, ...]:
    topics: dict[tuple[str, Uuid], list[OffsetCommitPartition]] = {}
    for (topic, index), committed in offsets.items():
        part = OffsetCommitPartition(
            index=index,
            committed_offset=committed.offset,
            committed_leader_epoch=committed.leader_epoch,
            committed_metadata=committed.metadata,
        )
        topics.setdefault((topic, committed.topic_id), []).append(part)
    return tuple(
        OffsetCommitTopic(name=name, topic_id=topic_id, partitions=tuple(parts))
        for (name, topic_id), parts in topics.items()
    )


def topics_to_fetch(
    partitions: Iterable[TopicPartition], ids: Mapping[str, Uuid] | None = None
) -> tuple[OffsetFetchTopic, ...]:
    """ids: by topic; of the others, the one that has the name is asked for."""
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    known = ids or {}
    return tuple(
        OffsetFetchTopic(name=name, topic_id=known.get(name, NO_ID), partitions=tuple(indexes))
        for name, indexes in topics.items()
    )


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
    topics = None if partitions is None else topics_to_fetch(partitions)

    async def ask() -> dict[TopicPartition, CommittedOffset]:
        return await _ask(coordinator, group_id, topics, require_stable=require_stable)

    fetched: dict[TopicPartition, CommittedOffset] = await link.until(ask, timeout_ms)
    return fetched


async def fetch_offsets_of_lives(
    link: Link, coordinator: GroupCoordinator, group_id: str, partitions: Iterable[TopicPartition], timeout_ms: int
) -> tuple[dict[TopicPartition, CommittedOffset], dict[str, Uuid]]:
    """The stable offsets in the topics as newest metadata have them, and these topics' ids.

    A coordinator that is behind, and knows a former topic of the name, names no offset of it. Asked again until the
    timeout. Raises RequestFailed, RpcError, Unavailable.
    """
    keys = list(partitions)
    names = list(dict.fromkeys(topic for topic, _ in keys))

    async def ask() -> tuple[dict[TopicPartition, CommittedOffset], dict[str, Uuid]]:
        await link.refresh(names, create=False)
        ids = {name: link.cache.life_of(name).topic_id for name in names}
        return await _ask(coordinator, group_id, topics_to_fetch(keys, ids), require_stable=True), ids

    fetched: tuple[dict[TopicPartition, CommittedOffset], dict[str, Uuid]] = await link.until(ask, timeout_ms)
    return fetched


async def _ask(
    coordinator: GroupCoordinator,
    group_id: str,
    topics: tuple[OffsetFetchTopic, ...] | None,
    *,
    require_stable: bool,
) -> dict[TopicPartition, CommittedOffset]:
    group = OffsetFetchGroup(group_id=group_id, topics=None if topics is None else OffsetFetchTopics(topics=topics))
    response: OffsetFetchResponse = await coordinator.once(
        OffsetFetchRequest(groups=(group,), require_stable=require_stable)
    )
    check(response)
    (found,) = response.groups
    if found.error_code != ErrorCode.NONE:
        raise RequestFailed(ErrorCode(found.error_code), f"offsets of group {group_id!r}")
    return _found(found.topics, group_id, {topic.topic_id: topic.name for topic in topics or ()})


def _found(
    topics: Iterable[OffsetFetchTopicResult], group_id: str, names: Mapping[Uuid, str]
) -> dict[TopicPartition, CommittedOffset]:
    """names: by id, of the topics that were asked for: Kafka's version 10 tells ids only."""
    found = {}
    for topic in topics:
        name = topic.name or names.get(topic.topic_id, "")
        for one in topic.partitions:
            if one.error_code != ErrorCode.NONE:
                where = f"committed offset of {name}-{one.index}, group {group_id!r}"
                raise RequestFailed(ErrorCode(one.error_code), where)
            if one.committed_offset > NO_OFFSET:  # other clients may commit any number; a negative one is none
                found[name, one.index] = CommittedOffset(one.committed_offset, one.committed_leader_epoch, one.metadata)
    return found

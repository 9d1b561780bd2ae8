"""Commits of clients that are no members, over raw sockets."""

from __future__ import annotations

from bench.raw_client import Connection, prepared, to_coordinator, until
from quorumlog.messages.groups import OffsetCommitPartition, OffsetCommitRequest, OffsetCommitTopic

TOPIC, TOPIC_PARTITIONS = "committed", 1_000
COMMIT_VERSION = 8


def commit(group_id: str, partitions: int) -> OffsetCommitRequest:
    """Of a client that is no member."""
    rows = tuple(
        OffsetCommitPartition(index=index, committed_offset=7, committed_metadata="") for index in range(partitions)
    )
    topics = (OffsetCommitTopic(name=TOPIC, partitions=rows),)
    return OffsetCommitRequest(group_id=group_id, generation_id=-1, member_id="", topics=topics)


async def committer(servers: str, group_id: str, partitions: int) -> tuple[Connection, bytes, bytes]:
    """A connection that has committed once, the frame, and the answer to it."""
    connection, (_, frame) = (
        await to_coordinator(servers, group_id),
        prepared(commit(group_id, partitions), COMMIT_VERSION),
    )
    await until(lambda: accepted(connection, group_id, partitions))
    return connection, frame, await connection.exchange(frame)


async def accepted(connection: Connection, group_id: str, partitions: int = 1) -> bool:
    response = await connection.ask(commit(group_id, partitions), COMMIT_VERSION)
    return all(one.error_code == 0 for topic in response.topics for one in topic.partitions)

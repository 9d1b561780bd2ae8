"""Offsets of a topic some of whose leaders do not answer: waited for, or left out where the quorum is lost."""

from __future__ import annotations

from typing import Any

import pytest

from quorumlog.client.errors import RequestFailed, Unavailable
from quorumlog.client.offsets import FoundOffset
from quorumlog.errors import ErrorCode
from quorumlog.messages.cluster import PartitionMetadata, TopicMetadata
from quorumlog.messages.quorum import DescribeQuorumResponse
from quorumlog.rpc.transport import NotDelivered
from quorumlog_cli.commands.topics.topic_ranges import FIRST_MS, ranges_of

LEADERS = (1, 2, -1, 1)
TOPIC = TopicMetadata(
    name="t", partitions=tuple(PartitionMetadata(index=n, leader_id=leader) for n, leader in enumerate(LEADERS))
)
ALL = {0: (0, 9), 1: (1, 9), 3: (3, 9)}


class FakeAdmin:
    """silent: brokers that do not answer. With a quorum another leader does, for who has the client's own patience."""

    def __init__(self, silent: set[int], *, has_quorum: bool, error: Exception | None = None) -> None:
        self.silent, self.has_quorum = silent, has_quorum
        self.error = error or NotDelivered("connection refused")
        self.asked: list[tuple[list[int], int | None]] = []

    def list_offset_ranges(self, keys: list[tuple[str, int]], timeout_ms: int | None) -> dict[Any, Any]:
        self.asked.append(([index for _, index in keys], timeout_ms))
        moved = self.has_quorum and timeout_ms is None
        if not moved and any(LEADERS[index] in self.silent for _, index in keys):
            raise self.error
        return {key: (FoundOffset(key[1], 0, 0), FoundOffset(9, 0, 0)) for key in keys}

    def describe_quorum(self, _timeout_ms: int) -> DescribeQuorumResponse:
        if not self.has_quorum:
            raise Unavailable("no broker answered")
        return DescribeQuorumResponse(leader_id=1)


def test_all_answer() -> None:
    admin: Any = FakeAdmin(set(), has_quorum=True)
    assert ranges_of(admin, TOPIC) == (ALL, [])
    assert len(admin.asked) == 1


def test_a_silent_leader_is_waited_for_while_there_is_a_quorum() -> None:
    admin: Any = FakeAdmin({2}, has_quorum=True)
    assert ranges_of(admin, TOPIC) == (ALL, [])
    assert [timeout_ms for _, timeout_ms in admin.asked] == [FIRST_MS, None]


def test_without_a_quorum_the_others_are_shown() -> None:
    admin: Any = FakeAdmin({2}, has_quorum=False)
    found, problems = ranges_of(admin, TOPIC)
    assert found == {0: (0, 9), 3: (3, 9)}
    assert problems[0] == "broker 2, which leads t-1, does not answer" and "no leader of the quorum" in problems[1]


def test_a_refusal_is_no_silence() -> None:
    admin: Any = FakeAdmin({2}, has_quorum=False, error=RequestFailed(ErrorCode.INVALID_TOPIC_EXCEPTION, "t"))
    with pytest.raises(RequestFailed):
        ranges_of(admin, TOPIC)


def test_no_partition_has_a_leader() -> None:
    admin: Any = FakeAdmin(set(), has_quorum=False)
    alone = TopicMetadata(name="t", partitions=(PartitionMetadata(index=0, leader_id=-1),))
    assert ranges_of(admin, alone) == ({}, []) and admin.asked == []

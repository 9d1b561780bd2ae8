"""The lags of groups as their coordinator tells them: what is gone is not told, whatever was counted."""

from __future__ import annotations

from typing import Any

import pytest
from coordinator_cluster import CoordinatorCluster
from replica_cluster import batch

from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId, Uuid
from quorumlog.messages.groups import OffsetCommitPartition, OffsetCommitRequest, OffsetCommitTopic
from quorumlog_broker.coordinator.groups.shard import GroupShard
from quorumlog_broker.coordinator.runtime.group_lags import LOOKED_AT_MS, REFRESH_MS, GroupLags, Lag
from quorumlog_broker.coordinator.runtime.peers import Peers
from quorumlog_quorum.metadata.delta import Delta

FIRST, SECOND = bytes([17]) * 16, bytes([18]) * 16  # ids of the topic, and of the one that is made again
TIME_MS = 1_700_000_000_000
A_SLOW_SCRAPE_MS = 121_000  # between two looks; the usual one is 60 s


class LagCluster(CoordinatorCluster):
    """Broker 1 coordinates the groups, and broker 2 leads the topic that they read."""

    def __init__(self) -> None:
        self.lags: dict[NodeId, GroupLags] = {}
        self.forgets = True  # False: tombstones of a deleted topic's offsets are not written yet
        super().__init__()
        self.create()
        self.make(FIRST)

    def boot(self, node_id: NodeId, clean: bool = False) -> Any:
        node = super().boot(node_id, clean)
        peers = Peers(
            node_id,
            {},
            image=lambda: self.image,
            internal_listener="INTERNAL",
            transport=node.transport,
            nursery=node.nursery,
        )
        self.lags[node_id] = GroupLags(
            node_id,
            self.of_node[node_id],
            peers,
            node.count,
            image=lambda: self.image,
            clock=node.clock,
            nursery=node.nursery,
        )
        return node

    def tell(self, node: Any, delta: Delta) -> None:
        super().tell(node, delta)
        if hasattr(node, "loop") and node.loop.alive and node.node_id in self.of_node:
            groups, image = self.of_node[node.node_id], self.image
            if self.forgets:
                node.loop.deliver(lambda: groups.on_metadata(delta, image))
            else:
                groups._cluster.apply(delta, image)

    def make(self, topic_id: Uuid, records: int = 10) -> None:
        self.create_topic((2, 3, 1), name="t", topic_id=topic_id, partitions=1)
        self.run_until(lambda: self.leads(topic_id))
        for _ in range(records):
            self.produce_batch(2, batch("x", timestamp_ms=TIME_MS), topic_id=topic_id)

    def leads(self, topic_id: Uuid) -> bool:
        replica = self.nodes[2].replicas.get((topic_id, 0))
        return replica is not None and replica.core.is_leader and replica.core.offset_available

    def commits(
        self, offset: int, *, group: str = "g", topic_id: Uuid = FIRST, node_id: NodeId = 1, **member: Any
    ) -> int:
        partitions = (OffsetCommitPartition(index=0, committed_offset=offset),)
        topics = (OffsetCommitTopic(name="t", topic_id=topic_id, partitions=partitions),)
        request = OffsetCommitRequest(group_id=group, topics=topics, **member)
        response = self.ask(GroupShard.commit_offsets, request, node_id)
        return int(response.topics[0].partitions[0].error_code)

    def counted(self, node_id: NodeId = 1) -> dict[tuple[str, str], Lag]:
        self.nodes[node_id].run(self.lags[node_id].refresh())
        return self.lags[node_id].now()

    def seen(self, node_id: NodeId = 1) -> dict[tuple[str, str], int]:
        """What a scrape gets now, without a count."""
        return {key: lag.records for key, lag in self.lags[node_id].now().items()}


@pytest.fixture
def cluster() -> LagCluster:
    return LagCluster()


def test_leaders_count_for_the_coordinator(cluster: LagCluster) -> None:
    cluster.commits(4)
    cluster.commits(10, group="even")
    assert cluster.counted() == {("g", "t"): Lag(6, False, TIME_MS), ("even", "t"): Lag(0, False, None)}
    assert cluster.counted(2) == {}, "it coordinates none"


@pytest.mark.parametrize("forgets", [True, False], ids=["offsets taken", "not taken yet"])
def test_the_offset_of_a_deleted_topic_does_not_count_against_its_successor(cluster: LagCluster, forgets: bool) -> None:
    cluster.forgets = forgets
    cluster.commits(4)
    assert cluster.counted() == {("g", "t"): Lag(6, False, TIME_MS)}
    cluster.delete_topic(FIRST)
    assert cluster.seen() == {}, "with the next scrape"
    cluster.make(SECOND, records=90)
    assert cluster.seen() == {} == cluster.counted(), "90 records that the group never began to read"
    cluster.commits(80, topic_id=SECOND)
    assert cluster.counted() == {("g", "t"): Lag(10, False, TIME_MS)}


def test_a_deleted_group_has_no_lag(cluster: LagCluster) -> None:
    """It has no members: it was read by assignment."""
    cluster.commits(4)
    cluster.commits(5, group="other")
    cluster.counted()
    assert cluster.ask(GroupShard.delete_group, "g") == ErrorCode.NONE
    assert cluster.seen() == {("other", "t"): 5}


def test_a_topic_that_no_member_reads_is_no_lag(cluster: LagCluster) -> None:
    cluster.commits(4)
    assert cluster.counted() == {("g", "t"): Lag(6, False, TIME_MS)}, "it may be read by assignment"
    subscribed: list[frozenset[str] | None] = [frozenset({"another"}), frozenset({"t", "another"}), None]
    whole = cluster.coordinator()._shard._whole
    found = []
    for topics in subscribed:
        whole.topics_read = lambda _, topics=topics: topics  # type: ignore[method-assign, assignment]
        found.append(len(cluster.counted()))
    assert found == [0, 1, 1]


def test_after_a_failover_the_new_coordinator_tells_and_the_old_one_does_not(cluster: LagCluster) -> None:
    cluster.commits(4)
    cluster.counted()
    cluster.elect(2, (2, 3))
    cluster.run_until(lambda: cluster.state(2) is not None and cluster.state(2).name == "ACTIVE")  # type: ignore[union-attr]
    cluster.run_until(lambda: cluster.state(1) is None)
    assert cluster.seen(1) == {} and cluster.counted(2) == {("g", "t"): Lag(6, False, TIME_MS)}
    assert cluster.ask(GroupShard.delete_group, "g", 2) == ErrorCode.NONE
    assert cluster.seen(2) == {} == cluster.counted(1)


def test_who_looks_has_it_counted_for_a_while(cluster: LagCluster) -> None:
    cluster.commits(4)
    lags = cluster.lags[1]

    async def look() -> dict[tuple[str, str], Lag]:
        return lags.look()

    assert cluster.nodes[1].run(look()) == {}
    cluster.run_for(REFRESH_MS)
    assert cluster.nodes[1].run(look()) == {("g", "t"): Lag(6, False, TIME_MS)}
    cluster.commits(9)
    cluster.run_for(REFRESH_MS + 100)
    assert cluster.seen() == {("g", "t"): 1}
    cluster.run_for(A_SLOW_SCRAPE_MS)
    assert cluster.nodes[1].run(look()) == {("g", "t"): Lag(1, False, TIME_MS)}, "also to who looks seldom"
    cluster.run_for(LOOKED_AT_MS + 2 * REFRESH_MS)
    assert cluster.seen() == {} and lags._task is not None and lags._task.done(), "nobody has looked"


def test_what_no_leader_tells_is_left_out(cluster: LagCluster) -> None:
    cluster.commits(4)
    cluster.nodes[2].kill()
    assert cluster.counted() == {}

"""Brokers' coordinators over real replicas, on simulated machines. One partition of `__consumer_offsets`, leader 1."""

from __future__ import annotations

from random import Random
from typing import Any

from replica_cluster import TOPIC_ID, Node, ReplicaCluster

from quorumlog.ids import NodeId
from quorumlog.messages.admin import ListedGroup
from quorumlog.messages.groups import (
    GroupHeartbeatRequest,
    GroupProtocol,
    JoinGroupRequest,
    MemberAssignment,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
    OffsetFetchGroup,
    SyncGroupRequest,
)
from quorumlog.settings.groups import GroupConfig
from quorumlog.topic_name import CONSUMER_OFFSETS
from quorumlog.turn import Turn
from quorumlog_broker.coordinator.groups.shard import GroupShard
from quorumlog_broker.coordinator.runtime.group_coordinator import Caller, GroupCoordinator, ShardCall, State
from quorumlog_broker.coordinator.runtime.group_coordinators import GroupCoordinators
from quorumlog_broker.coordinator.runtime.pending_answer import PendingAnswer
from quorumlog_broker.partition.events import HighWatermarkMoved
from quorumlog_broker.produce.own_appends import OwnAppends

CALLER = Caller("c", "127.0.0.1")


class CoordinatorCluster(ReplicaCluster):
    def __init__(self, *, config: GroupConfig | None = None, **more: Any) -> None:
        self.config = config or GroupConfig(initial_rebalance_delay_ms=0)
        self.of_node: dict[NodeId, GroupCoordinators] = {}
        self.out_of_service: set[NodeId] = set()  # as far as they know
        super().__init__(**more)

    def boot(self, node_id: NodeId, clean: bool = False) -> Node:
        node = super().boot(node_id, clean)
        data_plane = node.data_plane
        found = self.of_node[node_id] = GroupCoordinators(
            node_id=node_id,
            config=self.config,
            image=lambda: self.image,
            appends=OwnAppends(data_plane.produce_path.advance),
            clock=node.clock,
            turn=Turn(),
            nursery=node.nursery,
            rng=Random(node_id),
            in_service=lambda: node_id not in self.out_of_service,
        )
        data_plane.leadership_listeners.add(found)
        data_plane.stepper.on(HighWatermarkMoved, found.high_watermark_moved)
        return node

    def create(self, **config: str) -> None:
        self.create_topic(name=CONSUMER_OFFSETS, **config)
        self.wait_active(1)

    def coordinator(self, node_id: NodeId = 1) -> GroupCoordinator:
        return self.of_node[node_id].of("g")

    def wait_active(self, node_id: NodeId) -> None:
        self.run_until(lambda: self.state(node_id) is State.ACTIVE)

    def state(self, node_id: NodeId = 1) -> State | None:
        led = self.of_node[node_id].all
        return led[0].state if led else None

    # --- calls ---

    def begin(self, method: ShardCall, request: Any, node_id: NodeId = 1) -> PendingAnswer:
        """In a turn of the node's loop. Raises ApiError if it is refused at once."""

        async def call() -> PendingAnswer:
            return self.coordinator(node_id).call(method, CALLER, request)

        return self.nodes[node_id].run(call())

    def ask(self, method: ShardCall, request: Any, node_id: NodeId = 1) -> Any:
        """The answer; raises the ApiError of the coordinator."""
        return self.ended(self.begin(method, request, node_id), node_id)

    def ended(self, pending: PendingAnswer, node_id: NodeId = 1) -> Any:
        async def wait() -> Any:
            return await pending

        return self.nodes[node_id].run(wait())

    def commit_offset(self, offset: int, node_id: NodeId = 1, *, group: str = "g") -> int:
        """The error code."""
        response = self.ask(GroupShard.commit_offsets, commit(offset, group=group), node_id)
        return int(response.topics[0].partitions[0].error_code)

    def fetched(self, node_id: NodeId = 1, *, group: str = "g") -> int:
        response = self.ask(GroupShard.fetch_offsets, OffsetFetchGroup(group_id=group), node_id)
        return int(response.topics[0].partitions[0].committed_offset) if response.topics else -1

    def member(self, node_id: NodeId = 1) -> tuple[str, int]:
        """A group of one member, stable: its id and generation."""
        asked = self.ask(GroupShard.join, join(), node_id)
        joined = self.ask(GroupShard.join, join(asked.member_id), node_id)
        assert joined.error_code == 0 and joined.leader == joined.member_id
        given = (MemberAssignment(member_id=joined.member_id, assignment=b"all"),)
        request = SyncGroupRequest(
            group_id="g", generation_id=joined.generation_id, member_id=joined.member_id, assignments=given
        )
        synced = self.ask(GroupShard.sync_group, request, node_id)
        assert (synced.error_code, synced.assignment) == (0, b"all")
        return joined.member_id, joined.generation_id

    def listed(self, node_id: NodeId = 1) -> tuple[ListedGroup, ...]:
        return self.nodes[node_id].run(self.coordinator(node_id).list())

    def heartbeat(self, member_id: str, generation: int, node_id: NodeId = 1) -> int:
        request = GroupHeartbeatRequest(group_id="g", generation_id=generation, member_id=member_id)
        return int(self.ask(GroupShard.heartbeat, request, node_id).error_code)

    def fail_over(self, node_id: NodeId) -> None:
        self.elect(node_id, (node_id,))
        self.wait_led(node_id)
        self.wait_active(node_id)


def join(member_id: str = "") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=(GroupProtocol(name="range", metadata=b"m"),),
    )


def commit(offset: int, *, group: str = "g", index: int = 0) -> OffsetCommitRequest:
    partitions = (OffsetCommitPartition(index=index, committed_offset=offset),)
    return OffsetCommitRequest(group_id=group, topics=(OffsetCommitTopic(name="t", partitions=partitions),))


__all__ = ["CALLER", "TOPIC_ID", "CoordinatorCluster", "commit", "join"]

"""Production drivers whose voters are in the metadata log: formatted, changed, killed and started again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from driver_world import Process, World, log_path, outcome_of

from jepsen.sim.machine.disk import SimDisk
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NodeId, Uuid
from quorumlog.messages.common import Endpoint
from quorumlog.messages.quorum import (
    AddRaftVoterRequest,
    DescribeQuorumRequest,
    RemoveRaftVoterRequest,
)
from quorumlog_quorum.disk.metadata_directory import JOINED_NAME
from quorumlog_quorum.node.driver import Driver
from quorumlog_quorum.raft import MAX_LEVEL, Membership, RaftRole, Voter, VoterSet
from quorumlog_quorum.raft.voters import record_of
from quorumlog_quorum.snapshots import SnapshotHeading, SnapshotId, write_snapshot
from tests.rules import rule

CLIENT: Any = SimpleNamespace(peer=None)


def endpoint(node_id: NodeId) -> Endpoint:
    return Endpoint(name="INTERNAL", host=f"n{node_id}", port=9000)


class VoterWorld(World):
    """`voters` nodes are formatted with each other; `observers` know bootstrap servers only."""

    def __init__(self, seed: int = 1, voters: int = 3, observers: int = 0, auto_join: bool = False) -> None:
        self.directories: dict[NodeId, int] = {}
        self.auto_join = auto_join
        super().__init__(seed, voters, observers)

    def format(self) -> None:
        for node_id in range(len(self.voters)):
            write_bootstrap(self.disks[node_id], log_path(node_id), self.as_voters(range(len(self.voters))))
        self.bootstrap = tuple(endpoint(node_id) for node_id in range(len(self.voters)))
        self.voters = VoterSet(())

    def as_voters(self, node_ids: Any) -> VoterSet:
        return VoterSet(
            Voter(
                node_id=node_id,
                directory_id=self.directory_of(node_id),
                endpoint=endpoint(node_id),
                max_version=MAX_LEVEL,
            )
            for node_id in node_ids
        )

    def directory_of(self, node_id: NodeId) -> Uuid:
        return bytes([node_id + 1] * 15 + [self.directories.get(node_id, 0)])

    def membership_of(self, node_id: NodeId) -> Membership:
        return Membership(
            endpoints=(endpoint(node_id),),
            can_become_voter=True,
            auto_join=self.auto_join,
            bootstrap=self.bootstrap,
        )

    def replace_disk(self, node_id: NodeId) -> None:
        """The node's disk is gone; it starts on an empty one, which was formatted to join later."""
        self.kill(node_id)
        self.directories[node_id] = self.directories.get(node_id, 0) + 1
        disk = self.disks[node_id] = SimDisk(latency=lambda _: 1_000_000)
        disk.make_directory(f"/n{node_id}")
        disk.sync_directory("/")
        self.start(node_id)

    def ask(self, request: Any) -> Any:
        leader = self.leader
        assert leader is not None
        return outcome_of(self, leader, leader.driver.handle(CLIENT, request))

    def add(self, node_id: NodeId) -> int:
        request = AddRaftVoterRequest(
            timeout_ms=5_000,
            voter_id=node_id,
            voter_directory_id=self.directory_of(node_id),
            listeners=(endpoint(node_id),),
        )
        return int(self.ask(request).error_code)

    def remove(self, node_id: NodeId, directory_id: Uuid) -> int:
        answer = self.ask(RemoveRaftVoterRequest(voter_id=node_id, voter_directory_id=directory_id))
        return int(answer.error_code)

    def all_know(self, voters: VoterSet) -> bool:
        return all(voters_of(process.driver) == voters for process in self.running.values())


def voters_of(driver: Driver) -> VoterSet | None:
    return None if driver.core is None else driver.core.voters


def role_of(driver: Driver) -> RaftRole | None:
    return None if driver.core is None else driver.core.role.role


def write_bootstrap(disk: Any, path: str, voters: VoterSet) -> None:
    disk.make_directory(path)
    heading = SnapshotHeading(
        id=SnapshotId(0, 0), last_contained_timestamp_ms=0, kraft_version=1, voters=record_of(voters)
    )
    write_snapshot(disk, path, heading, ())


@rule("kraft 6.23")
def test_a_quorum_that_was_formatted_with_its_voters_elects_and_writes_them_to_the_log() -> None:
    world = VoterWorld(voters=3, observers=1)
    assert world.run(5_000, until=world.has_leader)
    assert world.run(5_000, until=lambda: world.all_know(world.as_voters(range(3))))
    observer = world.running[3].driver
    assert role_of(observer) is RaftRole.FOLLOWER and observer.kraft_version == 1


def test_a_dead_voter_is_replaced_by_the_same_node_on_a_new_disk() -> None:
    world = VoterWorld(voters=3)
    assert world.run(5_000, until=lambda: world.has_leader() and world.all_know(world.as_voters(range(3))))
    world.leader.append(b"one") if world.leader else None
    dead = next(node_id for node_id, process in world.running.items() if process is not world.leader)
    former = world.directory_of(dead)
    world.replace_disk(dead)
    assert world.run(5_000, until=world.all_have(b"one"))
    assert world.add(dead) == ErrorCode.DUPLICATE_VOTER
    assert world.remove(dead, former) == ErrorCode.NONE
    assert world.add(dead) == ErrorCode.NONE
    assert world.run(5_000, until=lambda: world.all_know(world.as_voters(range(3))))
    leader = world.leader
    assert leader is not None
    (other,) = {0, 1, 2} - {dead, leader.driver.node_id}
    world.kill(other)
    leader.append(b"two")
    assert world.run(5_000, until=lambda: leader.recorder.values == [b"one", b"two"]), "the new voter counts"


def test_the_voters_are_found_again_after_all_processes_were_killed() -> None:
    world = VoterWorld(voters=2, observers=1)
    assert world.run(5_000, until=world.has_leader)
    assert world.run(5_000, until=lambda: role_of(world.running[2].driver) is RaftRole.FOLLOWER)
    assert world.add(2) == ErrorCode.NONE
    for node_id in range(3):
        world.kill(node_id, power_cut=True)
    for node_id in range(3):
        world.start(node_id)
    assert world.run(5_000, until=world.has_leader)
    assert world.run(5_000, until=lambda: world.all_know(world.as_voters(range(3))))


@rule("kraft 6.21")
def test_a_node_on_a_new_disk_joins_by_itself_and_not_again_when_it_was_removed() -> None:
    world = VoterWorld(voters=3, auto_join=True)
    assert world.run(5_000, until=world.has_leader)
    joining = next(node_id for node_id, process in world.running.items() if process is not world.leader)
    world.replace_disk(joining)
    assert world.run(20_000, until=lambda: world.all_know(world.as_voters(range(3))))
    assert world.run(5_000, until=lambda: world.disks[joining].exists(f"{log_path(joining)}/{JOINED_NAME}"))
    assert world.remove(joining, world.directory_of(joining)) == ErrorCode.NONE
    world.kill(joining)
    world.start(joining)
    rest = world.as_voters({0, 1, 2} - {joining})
    assert world.run(5_000, until=lambda: world.all_know(rest))
    world.run(20_000)
    assert world.all_know(rest), "what was removed stays removed"


@rule("kraft 6.22")
def test_a_static_quorum_is_upgraded_when_all_voters_have_told_about_themselves() -> None:
    class StaticWorld(VoterWorld):
        def format(self) -> None:
            self.bootstrap = ()

    world = StaticWorld(voters=3)
    assert world.run(5_000, until=world.has_leader)
    leader = world.leader
    assert leader is not None

    world.run(1_000)
    assert outcome_of(world, leader, leader.driver.upgrade_kraft_version()) is None
    assert world.run(5_000, until=lambda: world.all_know(world.as_voters(range(3))))
    assert world.ask(DescribeQuorumRequest()).kraft_version == 1
    follower = next(process for process in world.running.values() if process is not leader)
    refused = outcome_of(world, follower, follower.driver.upgrade_kraft_version())
    assert isinstance(refused, ApiError) and refused.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_request_for_another_cluster_is_refused() -> None:
    world = VoterWorld(voters=1)
    assert world.run(5_000, until=world.has_leader)
    leader: Process | None = world.leader
    assert leader is not None
    request = RemoveRaftVoterRequest(cluster_id="other", voter_id=0, voter_directory_id=world.directory_of(0))
    refused = outcome_of(world, leader, leader.driver.handle(CLIENT, request))
    assert isinstance(refused, ApiError) and refused.code is ErrorCode.INCONSISTENT_CLUSTER_ID

"""A second log of one partition: taken from a broker and given back while the directory of the first one is offline.

The log that the metadata names is the replica. The older one is set aside, when its directory is back or at the next
start, and no move is hindered by it.
"""

from __future__ import annotations

import logging

import pytest
from moves_world import KEY, MovingCluster
from replica_cluster import TOPIC_ID, Node, fail_writes_of, next_generation

from jepsen.sim.machine.disk_faults import Fail
from quorumlog.ids import NodeId
from quorumlog.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    DirectoryList,
    NodeList,
    PartitionChangeRecord,
)
from quorumlog_quorum.metadata.registration import LOST, UNASSIGNED
from quorumlog_storage.directory.mark import PromotionMark, write_mark
from quorumlog_storage.files.names import STRAY


class World:
    """Broker 3 lost the disk `bad`; its replica was made anew on `good`."""

    def __init__(self) -> None:
        self.cluster = cluster = MovingCluster()
        cluster.create_topic()
        cluster.wait_led(1)
        cluster.run_for(500)
        self.values = [self.produce(f"v{number}") for number in range(5)]
        self.bad, self.good = cluster.path_of(3), cluster.other(3)
        fail_writes_of(self.node, self.bad)
        self.values += [self.produce(f"w{number}") for number in range(2)]
        cluster.run_for(1_500)
        self.tell_directories(self.good)
        self.reassign(1, 2)
        self.reassign(1, 2, 3)
        cluster.run_for(1_000)
        self.values.append(self.produce("x"))
        cluster.run_until(lambda: cluster.image.partition(*KEY).isr == (1, 2, 3))
        assert cluster.path_of(3) == self.good and self.copies() == {self.bad: ["t-0"], self.good: ["t-0"]}

    @property
    def node(self) -> Node:
        return self.cluster.nodes[3]

    def produce(self, value: str) -> str:
        self.cluster.produce(1, value, timeout_ms=9_000)
        return value

    def tell_directories(self, *paths: str) -> None:
        """As the controller does when a broker says that one is offline, or back."""
        ids = tuple(self.node.directory_id(path) for path in paths)
        epoch = self.cluster.image.brokers[3].broker_epoch
        self.cluster.commit(
            BrokerRegistrationChangeRecord(
                broker_id=3, broker_epoch=epoch, log_directories=DirectoryList(directories=ids)
            )
        )

    def reassign(self, *replicas: NodeId) -> None:
        now = self.cluster.image.partition(*KEY)
        default = self.node.directory_id(self.good)
        self.cluster.commit(
            PartitionChangeRecord(
                partition=0,
                topic_id=TOPIC_ID,
                replicas=NodeList(nodes=replicas),
                isr=NodeList(nodes=tuple(one for one in now.isr if one in replicas)),
                directories=DirectoryList(
                    directories=tuple(now.directory(one) if one in now.replicas else default for one in replicas)
                ),
                leader=1,
            )
        )
        self.cluster.run_for(1_500)

    def copies(self) -> dict[str, list[str]]:
        return {path: [name for name in self.node.disk.list(path) if name[:2] == "t-"] for path in self.node.paths}

    def repair(self) -> None:
        self.node.disk.faults = lambda _: None

    def take_back(self) -> None:
        """`quorumlog log-dirs online`."""
        self.repair()
        moves = self.node.data_plane.moves
        (before,) = [one for one in moves._directories if one.path == self.bad]
        after = next_generation(self.node, before)
        moves._directories = [after if one is before else one for one in moves._directories]
        self.node.run(self.node.data_plane.returns.take_back(after))
        self.cluster.run_for(1_000)
        self.tell_directories(*self.node.paths)

    def restart(self) -> None:
        self.cluster.kill(3)
        self.cluster.start(3)
        self.cluster.run_for(5_000)

    def serves_from(self, path: str) -> None:
        cluster = self.cluster
        self.values.append(self.produce("more"))
        cluster.run_until(lambda: cluster.image.partition(*KEY).isr == (1, 2, 3))
        assert cluster.path_of(3) == path and not cluster.replica(3).core.failed
        cluster.run_until(lambda: self.node.log_values() == self.values)


def is_aside(names: list[str]) -> bool:
    return len(names) == 1 and names[0].startswith("t-0.") and names[0].endswith(STRAY)


def test_the_older_copy_is_set_aside_when_its_directory_is_back(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    with caplog.at_level(logging.WARNING):
        world.take_back()
    assert f"{world.bad}/t-0 is an older copy: the replica lies in {world.good}" in caplog.text
    assert is_aside(world.copies()[world.bad])
    world.serves_from(world.good)
    world.restart()
    world.serves_from(world.good)


def test_the_older_copy_is_set_aside_at_the_next_start() -> None:
    world = World()
    world.repair()
    world.restart()
    assert not world.node.data_plane.store.refused
    assert is_aside(world.copies()[world.bad])
    world.serves_from(world.good)


def test_without_a_directory_in_the_metadata_both_stay_and_the_replica_is_offline() -> None:
    world = World()
    world.repair()
    world.cluster.kill(3)
    world.cluster.tells_controller = False
    world.cluster.run_for(1_000)
    world.cluster._assign(3, KEY, UNASSIGNED)
    world.cluster.start(3)
    world.cluster.run_for(5_000)
    assert world.cluster.replica(3).core.failed
    assert world.copies() == {world.bad: ["t-0"], world.good: ["t-0"]}
    pending = world.node.data_plane.placements.pending_assignments()
    assert [one.directory_id for one in pending] == [LOST]


def test_an_older_copy_does_not_serve_while_the_directory_of_the_replica_is_offline() -> None:
    world = World()
    world.cluster.kill(3)
    world.node.disk.faults = lambda one: Fail() if one.kind == "list" and one.path == world.good else None
    world.cluster.start(3)
    world.cluster.run_for(5_000)
    world.repair()
    assert world.node.failed[1:] == [world.node.directory_id(world.good)]
    assert world.cluster.replica(3).log is None
    assert world.copies()[world.bad] == ["t-0"]
    world.restart()
    world.serves_from(world.good)


def test_a_replica_moves_back_onto_the_disk_where_its_older_copy_lies() -> None:
    world = World()
    world.take_back()
    world.cluster.move(3, world.bad)
    world.cluster.run_until(lambda: world.cluster.path_of(3) == world.bad)
    world.serves_from(world.bad)
    world.restart()
    world.serves_from(world.bad)


def test_a_move_sets_aside_what_has_the_name_of_the_replica() -> None:
    """An operator may have put it there."""
    world = World()
    world.take_back()
    (aside,) = world.copies()[world.bad]
    world.node.disk.rename(f"{world.bad}/{aside}", f"{world.bad}/t-0")
    world.cluster.move(3, world.bad)
    world.cluster.run_for(3_000)
    assert world.cluster.path_of(3) == world.bad
    world.serves_from(world.bad)
    assert not world.node.failed[1:], "only the directory that failed first"
    names = world.copies()[world.bad]
    assert "t-0" in names and is_aside([name for name in names if name != "t-0"])


@pytest.mark.parametrize("is_marked", [False, True])
def test_a_copy_that_waited_for_its_source_does_not_count_once_that_is_back(is_marked: bool) -> None:
    """The mark was written, and then the copy's disk failed: the source went on without it."""
    cluster = MovingCluster()
    cluster.create_topic()
    cluster.wait_led(1)
    for number in range(30):
        cluster.produce(1, f"v{number}", "x" * 200)
    node, source, target = cluster.nodes[2], cluster.path_of(2), cluster.other(2)
    node.data_plane.moves.set_rate(2_000)
    cluster.move(2, target)
    cluster.run_for(100)
    node.kill()
    (copy,) = [name for name in node.disk.list(target) if name.endswith("-future")]
    if is_marked:
        write_mark(node.disk, f"{target}/{copy}", PromotionMark("t", 0, node.directory_id(source), 3))
    node.disk.faults = lambda one: Fail() if one.kind == "list" and one.path == source else None
    cluster.start(2)
    cluster.run_for(2_000)
    assert KEY in node.data_plane.store.refused and cluster.replica(2).log is None
    node.disk.faults = lambda _: None
    (before,) = [one for one in node.data_plane.moves._directories if one.path == source]
    node.run(node.data_plane.returns.take_back(next_generation(node, before)))
    assert KEY not in node.data_plane.store.refused
    cluster.run_until(lambda: cluster.replica(2).log is not None)
    cluster.run_until(lambda: node.log_values() == cluster.nodes[1].log_values())
    assert "t-0" in node.disk.list(cluster.path_of(2))
    assert node.data_plane.store.queues[node.directory_id(source)].is_usable

"""What a follower's fetch acknowledges must be on its disk when it leaves, if it is of the leadership of now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from calm_cluster import calm_cluster

from jepsen.checkers.findings import Findings
from jepsen.sim.cluster import SimCluster
from jepsen.sim.invariants.replica_watch import data_plane_of
from jepsen.sim.invariants.replicas.promises import Promises
from jepsen.sim.machine.machine import Machine
from jepsen.sim.network.message import Message, Phase
from quorumlog.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from quorumlog.rpc.calls import BY_REQUEST
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.replica import Replica

_FETCH = BY_REQUEST[FetchRequest]


@dataclass
class Scene:
    """A follower that has synced all records of its log, and fresh findings."""

    cluster: SimCluster
    follow: Machine
    replica: Replica
    registry: Registry

    def fetches(self, *, beyond: int) -> list[str]:
        """It acknowledges so many records that it does not have, in its present leader epoch. Returns what is found."""
        core, log = self.replica.core, self.replica.log
        assert log is not None
        partition = FetchPartition(
            index=self.replica.key[1],
            fetch_offset=log.end_offset + beyond,
            max_bytes=1,
            current_leader_epoch=core.leader_epoch,
            last_fetched_epoch=core.leader_epoch,
            log_start_offset=0,
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1,
            replica=ReplicaState(replica_id=core.node_id, broker_epoch=1),
            topics=(FetchTopic(topic_id=self.replica.key[0], partitions=(partition,)),),
        )
        message = Message(
            source=self.follow.host,
            destination="elsewhere",
            path=_FETCH.method.path,
            phase=Phase.REQUEST,
            ordered=True,
            number=1,
            data=_FETCH.codec.encode_request(request),
        )
        findings, invariants = Findings(lambda: 0), self.cluster.invariants
        promises = Promises(
            self.cluster.machines, invariants.mirrors, invariants.durability, findings, lambda _machine: None
        )
        promises.on_message(message)
        return [finding.name for finding in findings.found]

    def forget_replica(self, monkeypatch: pytest.MonkeyPatch, *, epochs_later: int) -> None:
        """The follower is no replica any more, as it knows from metadata with a leader epoch so much later."""
        topic_id, index = self.replica.key
        known = self.registry.image.partition(topic_id, index)
        assert known is not None
        monkeypatch.delitem(self.registry.replicas, self.replica.key)
        image, topic = self.registry.image, self.registry.image.topics[topic_id]
        later = replace(known, leader_epoch=known.leader_epoch + epochs_later)
        topics = image.topics.set(topic_id, replace(topic, partitions=topic.partitions.set(index, later)))
        monkeypatch.setattr(self.registry, "image", replace(image, topics=topics))


@pytest.fixture(scope="module")
def cluster() -> Iterator[SimCluster]:
    with calm_cluster(5, seed=1) as cluster:
        yield cluster


@pytest.fixture
def scene(cluster: SimCluster) -> Scene:
    for machine in cluster.brokers:
        plane = data_plane_of(machine)
        assert plane is not None
        for replica in plane.registry.replicas.values():
            if not replica.core.is_leader and replica.log is not None and replica.log.end_offset > 0:
                return Scene(cluster, machine, replica, plane.registry)
    raise AssertionError("nobody follows")


def test_a_follower_may_acknowledge_what_it_has_synced(scene: Scene) -> None:
    assert scene.fetches(beyond=0) == []


def test_a_follower_that_acknowledges_more_is_found(scene: Scene) -> None:
    assert scene.fetches(beyond=1) == ["sync-before-replica-fetch"]


def test_a_fetch_may_wait_on_its_host_until_the_replica_is_removed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No leader of the later epoch takes it."""
    scene.forget_replica(monkeypatch, epochs_later=1)
    assert scene.fetches(beyond=1) == []


def test_a_removal_in_the_same_leader_epoch_excuses_no_fetch(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.forget_replica(monkeypatch, epochs_later=0)
    assert scene.fetches(beyond=1) == ["sync-before-replica-fetch"]

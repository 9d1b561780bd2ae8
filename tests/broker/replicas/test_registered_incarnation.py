"""A process of a broker acts on placements only once it is registered, and leads only where it was given the lead."""

from __future__ import annotations

import pytest
from replica_cluster import TOPIC_ID, Node, ReplicaCluster, batch, fail_writes_of

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NO_NODE, NodeId, Uuid
from quorumlog.messages.common import Endpoint
from quorumlog.messages.metadata_records import RegisterBrokerRecord, UnregisterBrokerRecord
from quorumlog_broker.replicas.broker_incarnation import BrokerIncarnation
from quorumlog_broker.replicas.reconciler import Placed
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.image import EMPTY, Image
from quorumlog_quorum.metadata.registration import UNASSIGNED, PartitionRegistration
from tests.rules import rule

ME, OTHER = 1, 2
THIS, EARLIER = b"t" * 16, b"e" * 16


def image_of(incarnation: Uuid | None) -> Image:
    """An image in which this broker is registered with that incarnation; None: it is not registered."""
    delta = Delta(EMPTY)
    if incarnation is not None:
        delta.replay(
            RegisterBrokerRecord(
                broker_id=ME,
                incarnation_id=incarnation,
                broker_epoch=1,
                endpoints=(Endpoint(name="INTERNAL", host="h", port=1),),
                log_directories=(bytes([9]) * 16,),
            )
        )
    return delta.apply(2, 1)


def placed(index: int, leader: NodeId, epoch: int = 0) -> Placed:
    registration = PartitionRegistration(
        replicas=(ME, OTHER), directories=(UNASSIGNED,) * 2, isr=(ME, OTHER), leader=leader, leader_epoch=epoch
    )
    return Placed(topic="t", key=(TOPIC_ID, index), registration=registration)


@rule("kraft 8.15")
@pytest.mark.parametrize("incarnation", [None, EARLIER], ids=["of nobody", "of an earlier life"])
def test_nothing_is_admitted_by_an_image_with_the_registration(incarnation: Uuid | None) -> None:
    life = BrokerIncarnation(ME, THIS)
    assert life.admit([placed(0, ME), placed(1, OTHER)], image_of(incarnation)) == []
    assert life.is_held((TOPIC_ID, 0)) and life.is_held((TOPIC_ID, 1))


def test_the_registration_admits_what_was_held_as_it_is_now_leaders_first() -> None:
    life = BrokerIncarnation(ME, THIS)
    life.admit([placed(0, ME), placed(1, OTHER), placed(2, OTHER)], image_of(EARLIER))
    life.forget((TOPIC_ID, 2))
    now = [placed(0, NO_NODE, epoch=1), placed(3, ME)]
    assert life.admit(now, image_of(THIS)) == [placed(3, ME), placed(0, NO_NODE, epoch=1), placed(1, OTHER)]
    assert not life.is_held((TOPIC_ID, 0))
    assert life.admit([placed(4, OTHER)], image_of(THIS)) == [placed(4, OTHER)], "what was held is told once"


@pytest.mark.parametrize("incarnation", [None, EARLIER], ids=["removed", "replaced"])
def test_without_its_registration_it_leads_nothing_more(incarnation: Uuid | None) -> None:
    life = BrokerIncarnation(ME, THIS)
    life.admit([], image_of(THIS))
    admitted = life.admit([placed(0, ME, epoch=7), placed(1, OTHER)], image_of(incarnation))
    assert admitted == [placed(0, NO_NODE, epoch=7), placed(1, OTHER)]


# --- in a broker ---


def booted_leader() -> tuple[ReplicaCluster, Node]:
    """The leader's machine lost its power and started again. Its new process is not registered."""
    cluster = ReplicaCluster()
    cluster.create_topic()
    cluster.wait_led(1)
    cluster.produce(1, "a", "b")
    cluster.nodes[1].cut_power()
    return cluster, booted(cluster, 1)


def booted(cluster: ReplicaCluster, node_id: NodeId) -> Node:
    """A new process that is not registered and has opened its logs."""
    node = cluster.boot(node_id)
    cluster.run_until(lambda: node.data_plane.logs_to_open.done)
    return node


@rule("kraft 8.15")
def test_an_unregistered_broker_opens_its_logs_and_neither_leads_nor_appends() -> None:
    cluster, node = booted_leader()
    cluster.run_for(2_000)
    assert node.log_values() == ["a", "b"]
    assert not cluster.core(1).is_leader and not cluster.core(1).is_follower
    for acks in (-1, 1, 0):
        with pytest.raises(ApiError) as refused:
            cluster.produce(1, "c", acks=acks)
        assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert cluster.fetch(1, 0).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert node.log_values() == ["a", "b"]


def test_an_unregistered_broker_leads_from_its_registration_on() -> None:
    cluster, _ = booted_leader()
    cluster.elect(NO_NODE, (2, 3))  # the controller takes the earlier life out, then registers this one
    cluster.register(1)
    cluster.run_for(500)
    assert not cluster.core(1).is_leader
    cluster.elect(1, (1, 2, 3))
    cluster.wait_led(1)
    assert cluster.produce(1, "c") == 2


def test_an_unregistered_broker_follows_from_its_registration_on() -> None:
    cluster = ReplicaCluster()
    cluster.create_topic()
    cluster.wait_led(1)
    cluster.kill(2)
    node = booted(cluster, 2)
    with pytest.raises(ApiError):
        cluster.produce(1, "a", timeout_ms=500)  # it is in the ISR still, and does not fetch
    assert node.log_values() == []
    cluster.register(2)
    cluster.run_until(lambda: node.log_values() == ["a"])


def test_an_older_leader_does_not_truncate_the_log_of_an_unregistered_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """The image that it starts from may name the leader of an older epoch than the last in its log."""
    cluster = ReplicaCluster()
    cluster.create_topic()
    cluster.wait_led(1)
    before = cluster.image
    monkeypatch.setattr(cluster.nodes[1], "tell", lambda _delta, _image: None)  # it still leads in the older epoch
    cluster.elect(2, (2, 3))
    cluster.wait_led(2)
    cluster.produce(2, "a")
    for node_id in (2, 3):
        cluster.kill(node_id)
    cluster.image = before
    node = cluster.boot(3)
    cluster.run_for(1_000)
    assert node.log_values() == ["a"]


def test_a_partition_is_followed_as_soon_as_its_log_is_open() -> None:
    """The first of many logs, not behind the last one."""
    many = 40
    cluster = ReplicaCluster()
    cluster.create_topic(partitions=many)
    for index in range(many):
        cluster.wait_led(1, index)
    cluster.nodes[2].cut_power()
    node = cluster.start(2)
    cluster.run_until(lambda: any(replica.core.is_follower for replica in node.replicas.values()))
    assert any(replica.log is None for replica in node.replicas.values())
    cluster.run_until(lambda: all(replica.core.is_follower for replica in node.replicas.values()))


def test_a_topic_that_an_older_image_does_not_know_is_not_set_aside() -> None:
    cluster = ReplicaCluster(nodes=(1,))
    before = cluster.image
    cluster.create_topic((1,), min_insync_replicas="1")
    cluster.wait_led(1)
    cluster.produce(1, "a")
    cluster.kill(1)
    cluster.image = before
    node = cluster.boot(1)
    cluster.run_until(lambda: node.data_plane.logs_to_open.done)
    cluster.create_topic((1,), min_insync_replicas="1")  # the same records of the metadata reach the new process
    cluster.register(1)
    cluster.wait_led(1)
    assert node.log_values() == ["a"]


def test_a_replica_that_is_on_no_disk_is_made_after_the_registration() -> None:
    cluster = ReplicaCluster()
    cluster.kill(3)
    cluster.create_topic()
    node = booted(cluster, 3)
    cluster.run_for(500)
    assert node.replicas[TOPIC_ID, 0].log is None
    cluster.register(3)
    cluster.run_until(lambda: cluster.core(3).is_follower)


def test_a_broker_that_is_replaced_by_another_process_leads_nothing_more() -> None:
    cluster = ReplicaCluster()
    cluster.create_topic()
    cluster.wait_led(1)
    cluster.commit(UnregisterBrokerRecord(broker_id=1, broker_epoch=cluster.nodes[1].broker_epoch))
    cluster.elect(1, (1, 2, 3))  # given to another process with this broker's id
    cluster.run_for(500)
    assert not cluster.core(1).is_leader


def test_a_log_taken_away_before_the_registration_is_not_waited_for() -> None:
    cluster = ReplicaCluster()
    cluster.create_topic(partitions=40)
    for index in range(40):
        cluster.wait_led(1, index)
    cluster.nodes[2].cut_power()
    node = cluster.boot(2)
    cluster.run_until(lambda: bool(node.replicas))
    assert not node.data_plane.logs_to_open.done
    cluster.delete_topic()
    cluster.run_until(lambda: node.data_plane.logs_to_open.done)
    cluster.register(2)
    cluster.run_for(500)
    assert not node.replicas


def test_a_directory_that_fails_before_the_registration_stays_offline() -> None:
    cluster = ReplicaCluster()
    cluster.create_topic()
    cluster.wait_led(1)
    cluster.nodes[2].cut_power()
    fail_writes_of(cluster.nodes[2], "/d0")
    booted(cluster, 2)
    cluster.register(2)
    cluster.run_for(500)
    assert cluster.core(2).failed and not cluster.core(2).is_follower


def test_the_checkpointed_high_watermark_waits_for_the_registration() -> None:
    cluster = ReplicaCluster()
    cluster.create_topic()
    cluster.wait_led(1)
    cluster.produce_batch(1, batch("a", "b"))
    cluster.run_for(2_000)  # until it is checkpointed
    for _ in range(2):
        cluster.nodes[2].cut_power()
        booted(cluster, 2)
        cluster.run_for(2_000)
        assert cluster.core(2).high_watermark == 2

"""min.insync.replicas is raised: a leader commits by it from the first image that has it, whatever its disk does."""

from __future__ import annotations

import asyncio

from replica_cluster import TOPIC_ID, Node, ReplicaCluster, batch

from jepsen.sim.time.scheduler import NS_PER_MS
from quorumlog.messages.metadata_records import ConfigRecord, NodeList, PartitionChangeRecord
from quorumlog_quorum.metadata.image import TOPIC_RESOURCE
from tests.rules import rule


def minimum(value: str) -> ConfigRecord:
    return ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="t", name="min.insync.replicas", value=value)


def busy(node: Node) -> None:
    """Another partition's append is being synced, and takes long."""
    node.disk.latency = lambda _: 400 * NS_PER_MS

    async def append() -> asyncio.Future[object]:
        return asyncio.ensure_future(node.produce_path.append(TOPIC_ID, 1, batch("x"), acks=1, timeout_ms=5_000))

    node.run(append())


def led() -> tuple[ReplicaCluster, Node]:
    """Replicas 1 and 2 of two partitions, led by 1; 2 is dead, and a record waits for it."""
    cluster = ReplicaCluster(nodes=(1, 2))
    cluster.create_topic((1, 2), partitions=2, min_insync_replicas="1")
    cluster.wait_led(1)
    cluster.run_for(600)
    cluster.kill(2)
    leader = cluster.nodes[1]
    cluster.produce(1, "b", acks=1)
    return cluster, leader


@rule("kraft 9.29")
def test_no_disk_is_waited_for_before_a_leader_commits_by_a_higher_minimum() -> None:
    cluster, leader = led()
    busy(leader)
    cluster.commit(minimum("2"))
    cluster.commit(PartitionChangeRecord(partition=0, topic_id=TOPIC_ID, isr=NodeList(nodes=(1,))))
    cluster.run_for(60)
    core = leader.replicas[TOPIC_ID, 0].core
    assert (core.isr_state.isr, core.min_isr, core.high_watermark) == ((1,), 2, 0)
    cluster.run_for(3_000)
    assert core.high_watermark == 0, "the record is on this replica alone, and another one is eligible"


@rule("kraft 9.29")
def test_an_image_with_both_tells_the_higher_minimum_before_the_smaller_isr() -> None:
    cluster, leader = led()
    cluster.commit(minimum("2"), PartitionChangeRecord(partition=0, topic_id=TOPIC_ID, isr=NodeList(nodes=(1,))))
    cluster.run_for(3_000)
    core = leader.replicas[TOPIC_ID, 0].core
    assert (core.isr_state.isr, core.min_isr, core.high_watermark) == ((1,), 2, 0)


@rule("kraft 9.29")
def test_an_image_with_both_tells_the_lower_minimum_after_the_larger_isr() -> None:
    cluster, leader = led()
    cluster.commit(minimum("2"), PartitionChangeRecord(partition=0, topic_id=TOPIC_ID, isr=NodeList(nodes=(1,))))
    cluster.run_for(100)
    cluster.commit(minimum("1"), PartitionChangeRecord(partition=0, topic_id=TOPIC_ID, isr=NodeList(nodes=(1, 2))))
    cluster.run_for(100)
    core = leader.replicas[TOPIC_ID, 0].core
    assert (core.isr_state.isr, core.min_isr, core.high_watermark) == ((1, 2), 1, 0)


@rule("kraft 9.29")
def test_a_raise_is_not_undone_by_a_change_that_waited_for_the_disk() -> None:
    cluster, leader = led()
    core = leader.replicas[TOPIC_ID, 0].core
    cluster.commit(minimum("2"))
    cluster.run_for(60)
    busy(leader)
    cluster.commit(minimum("1"), ConfigRecord(
        resource_type=TOPIC_RESOURCE, resource_name="t", name="segment.ms", value="100000"
    ))  # fmt: skip
    cluster.run_for(20)
    cluster.commit(minimum("2"))
    cluster.run_for(5_000)
    assert core.min_isr == 2

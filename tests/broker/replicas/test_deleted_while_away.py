"""A broker sleeps through the deletion of a topic, and learns of it by a snapshot alone.

What the snapshot remembers as deleted is deleted from the disk. A directory of a topic that it does not know is set
aside, never deleted.
"""

from __future__ import annotations

from replica_cluster import TOPIC_ID, Node, ReplicaCluster

from jepsen.sim.machine.disk_faults import Fail
from jepsen.sim.time.scheduler import NS_PER_MS
from quorumlog.messages.metadata_records import FeatureLevelRecord, ForgetDeletedTopicsRecord, NoOpRecord
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.image_diff import delta_between
from quorumlog_quorum.metadata.snapshot_records import ImageBuilder, slices_of
from tests.rules import rule

OTHER_ID = bytes([8]) * 16
AWAY = 3
WAIT_MS = 120_000  # longer than file.delete.delay.ms


def level_3() -> ReplicaCluster:
    cluster = ReplicaCluster()
    cluster.commit(FeatureLevelRecord(name="metadata.version", level=3))
    return cluster


def by_snapshot(image: Image) -> Image:
    """The image as a snapshot brings it."""
    builder = ImageBuilder()
    for values in slices_of(image):
        for _ in builder.add(values):
            pass
    loaded = builder.finish().apply(image.offset, image.epoch)
    assert loaded == image and loaded.state_hash == image.state_hash
    return loaded


def difference(base: Image, image: Image) -> Delta:
    steps = delta_between(base, image)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            delta: Delta = end.value
            return delta


def names(node: Node) -> list[str]:
    return [name for name in node.disk.list("/d0") if node.disk.is_directory(f"/d0/{name}")]


def marked(node: Node, mark: str) -> list[str]:
    return [name.split(".")[0] for name in names(node) if name.endswith(mark)]


def come_back(cluster: ReplicaCluster) -> Node:
    """Start from the snapshot, and register."""
    cluster.image = by_snapshot(cluster.image)
    return cluster.start(AWAY)


def with_two_topics() -> ReplicaCluster:
    cluster = level_3()
    cluster.create_topic(partitions=2)
    cluster.create_topic(name="other", topic_id=OTHER_ID)
    cluster.run_for(1_000)
    assert sorted(names(cluster.nodes[AWAY])) == ["other-0", "t-0", "t-1"]
    return cluster


@rule("kraft 11.15")
def test_what_the_snapshot_remembers_is_deleted() -> None:
    cluster = with_two_topics()
    cluster.kill(AWAY)
    cluster.delete_topic()
    cluster.run_for(1_000)
    node = come_back(cluster)
    cluster.run_for(1_000)
    assert marked(node, "-delete") == ["t-0", "t-1"] and marked(node, "-stray") == []
    assert (OTHER_ID, 0) in node.replicas and (TOPIC_ID, 0) not in node.replicas
    cluster.run_for(WAIT_MS)
    assert names(node) == ["other-0"]


@rule("kraft 11.15", "storage 3.16", "log 8.8")
def test_a_topic_of_which_nothing_is_known_is_set_aside() -> None:
    cluster = with_two_topics()
    cluster.kill(AWAY)
    cluster.delete_topic()
    cluster.commit(ForgetDeletedTopicsRecord(topic_ids=(TOPIC_ID,)))
    node = come_back(cluster)
    cluster.run_for(WAIT_MS)
    assert marked(node, "-stray") == ["t-0", "t-1"] and marked(node, "-delete") == []
    assert len(names(node)) == 3


def test_a_topic_with_the_same_name_is_kept() -> None:
    cluster = with_two_topics()
    cluster.kill(AWAY)
    cluster.delete_topic()
    cluster.create_topic(topic_id=bytes([9]) * 16)
    node = come_back(cluster)
    cluster.run_for(1_000)
    assert (bytes([9]) * 16, 0) in node.replicas and "t-0" in names(node)
    assert marked(node, "-delete") == ["t-0", "t-1"]
    cluster.run_for(WAIT_MS)
    assert sorted(names(node)) == ["other-0", "t-0"]


@rule("kraft 11.14")
def test_a_running_broker_that_was_left_behind_deletes_and_sets_aside() -> None:
    """It does not restart: it is told the difference between its image and the snapshot."""
    cluster = with_two_topics()
    node, before = cluster.nodes[AWAY], cluster.image
    node.tell = lambda delta, image: None  # type: ignore[method-assign]
    cluster.delete_topic()
    cluster.delete_topic(OTHER_ID)
    cluster.commit(ForgetDeletedTopicsRecord(topic_ids=(OTHER_ID,)))
    cluster.create_topic(name="new", topic_id=bytes([9]) * 16)
    del node.tell
    image = by_snapshot(cluster.image)
    node.tell(difference(before, image), image)
    cluster.run_for(1_000)
    assert marked(node, "-delete") == ["t-0", "t-1"] and marked(node, "-stray") == ["other-0"]
    assert "new-0" in names(node) and list(node.replicas) == [(bytes([9]) * 16, 0)]


def done(node: Node) -> int:
    return node.data_plane.placements.deletions_done_before


@rule("kraft 11.13")
def test_a_broker_reports_only_what_it_has_carried_out() -> None:
    cluster = with_two_topics()
    node = cluster.nodes[AWAY]
    assert done(node) == cluster.image.offset
    before = cluster.image.offset
    node.disk.latency = lambda operation: (500 if operation.kind == "rename" else 0) * NS_PER_MS
    cluster.delete_topic()
    cluster.run_for(200)
    assert node.data_plane.registry.image.offset == before + 1 and not node.replicas.keys() & {(TOPIC_ID, 0)}
    assert done(node) == before, "the directories are not renamed yet"
    cluster.run_for(5_000)
    assert done(node) == cluster.image.offset == before + 1 and marked(node, "-delete") == ["t-0", "t-1"]


@rule("kraft 11.13")
def test_before_it_is_registered_a_broker_reports_nothing() -> None:
    cluster = with_two_topics()
    cluster.kill(AWAY)
    cluster.delete_topic()
    node = cluster.boot(AWAY)
    cluster.run_for(1_000)
    assert done(node) == 0
    cluster.register(AWAY)
    cluster.run_for(1_000)
    assert done(node) == cluster.image.offset and marked(node, "-delete") == ["t-0", "t-1"]


@rule("kraft 11.13")
def test_a_broker_with_a_failed_directory_reports_nothing_more() -> None:
    cluster = ReplicaCluster(directories=2)
    cluster.commit(FeatureLevelRecord(name="metadata.version", level=3))
    cluster.create_topic(partitions=2)
    cluster.run_for(1_000)
    node = cluster.nodes[AWAY]
    before = done(node)
    assert before == cluster.image.offset
    node.disk.faults = lambda operation: Fail() if operation.kind == "rename" else None
    cluster.delete_topic()
    cluster.run_for(1_000)
    assert node.failed and done(node) == before
    cluster.commit(NoOpRecord())
    cluster.run_for(1_000)
    assert done(node) == before

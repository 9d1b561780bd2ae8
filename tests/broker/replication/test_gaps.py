"""A leader whose log has gaps, as compaction leaves them, is copied byte for byte, and goes on at the next offset."""

from __future__ import annotations

from replica_cluster import TOPIC_ID, Node, ReplicaCluster, batch, values_of

from quorumlog.records import headers
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.batch import stamped_batches
from quorumlog_storage.segment.log_config import LogConfig

PATH = "/d0/t-0"


def leave_gaps(node: Node, *bases: int) -> None:
    """In the log of a node that is down."""
    log = Log.open(node.disk, PATH, LogConfig(remembers_producers=True))
    for base in bases:
        data = batch(f"at {base}")
        log.append(stamped_batches(data, headers(data), base, log.last_epoch), gaps=True)
    log.close()


def content(node: Node) -> bytes:
    return node.disk.read_bytes(f"{PATH}/{0:020}.log")


def test_a_follower_copies_gaps() -> None:
    cluster = ReplicaCluster(nodes=(1, 2))
    cluster.create_topic((1, 2))
    cluster.wait_led(1)
    cluster.produce(1, "a", "b")
    for node_id in (2, 1):
        cluster.kill(node_id)
    leave_gaps(cluster.nodes[1], 7, 20)
    cluster.start(1)
    cluster.start(2)
    cluster.wait_led(1)
    follower = cluster.nodes[2]
    cluster.run_until(lambda: (TOPIC_ID, 0) in follower.replicas and cluster.core(2).end_offset == 21)
    assert follower.log_values() == ["a", "b", "at 7", "at 20"]
    assert cluster.produce(1, "next") == 21
    cluster.run_until(lambda: follower.log().synced_end == 22)
    assert content(follower) == content(cluster.nodes[1])
    assert values_of(cluster.fetch(1, 9).records) == ["at 20", "next"]

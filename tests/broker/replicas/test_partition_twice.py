"""The same partition in two log directories: the replica is refused, both are named, and neither is touched."""

from __future__ import annotations

import logging

import pytest
from replica_cluster import TOPIC_ID, ReplicaCluster

from quorumlog_quorum.metadata.registration import LOST
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.segment.log_config import LogConfig
from tests.rules import rule


@rule("storage 3.14")
def test_it_is_offline_alone_and_the_controller_moves_its_leader(caplog: pytest.LogCaptureFixture) -> None:
    cluster = ReplicaCluster(directories=2)
    cluster.create_topic(partitions=4)
    for index in range(4):
        cluster.wait_led(1, index)
        cluster.produce(1, "a", index=index)
    node = cluster.nodes[1]
    twice = next(index for index in range(4) if node.disk.is_directory(f"/d0/t-{index}"))
    node.kill()
    PartitionLog.create(PartitionDirectories(node.disk, "/d1"), ("t", twice), TOPIC_ID, LogConfig())
    with caplog.at_level(logging.ERROR):
        cluster.start(1)
        cluster.run_until(lambda: node.data_plane.logs_to_open.done)
    assert f"/d0/t-{twice} and in /d1/t-{twice}" in caplog.text
    assert node.replicas[TOPIC_ID, twice].core.failed and not node.failed
    pending = node.data_plane.placements.pending_assignments()
    assert [one.index for one in pending if one.directory_id == LOST] == [twice]
    assert [node.log_values(index=index) for index in range(4) if index != twice] == [["a"]] * 3
    assert node.disk.is_directory(f"/d0/t-{twice}") and node.disk.is_directory(f"/d1/t-{twice}")
    assert node.data_plane.placements.deletions_done_before == 0, "nobody knows what is in them"

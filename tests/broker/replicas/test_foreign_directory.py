"""A directory under a partition's name that belongs to another topic: the replica is offline, and its disk is not."""

from __future__ import annotations

import logging

import pytest
from replica_cluster import TOPIC_ID, ReplicaCluster

from quorumlog.errors import ApiError, ErrorCode
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.segment.log_config import LogConfig
from tests.rules import rule

STRANGER = bytes([9]) * 16


@rule("storage 3.17")
def test_records_of_another_topic_are_neither_served_nor_touched(caplog: pytest.LogCaptureFixture) -> None:
    cluster = ReplicaCluster(nodes=(1,))
    cluster.create_topic((1,), name="other", topic_id=bytes([5]) * 16)
    cluster.run_for(500)
    disk = cluster.nodes[1].disk
    PartitionLog.create(PartitionDirectories(disk, "/d0"), ("t", 0), STRANGER, LogConfig())  # somebody copied it here
    with caplog.at_level(logging.ERROR):
        cluster.create_topic((1,))
        cluster.run_for(500)
    assert "t-0 cannot be opened: /d0/t-0 belongs to topic" in caplog.text
    with pytest.raises(ApiError) as refused:
        cluster.produce(1, "a")
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert cluster.nodes[1].replicas[TOPIC_ID, 0].core.failed and not cluster.nodes[1].failed
    assert PartitionLog.open(PartitionDirectories(disk, "/d0"), ("t", 0), STRANGER, LogConfig()).log.end_offset == 0

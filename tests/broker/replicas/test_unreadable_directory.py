"""A directory with records whose partition.metadata cannot be read: it stays, and its replica does not go on empty."""

from __future__ import annotations

import logging

import pytest
from replica_cluster import ReplicaCluster

from quorumlog.errors import ApiError, ErrorCode
from quorumlog_storage.directory.partition_metadata import PARTITION_METADATA

DAMAGED = b"version: 0\ntopic_id: ?"


def restarted_with_damage(caplog: pytest.LogCaptureFixture) -> ReplicaCluster:
    """An only replica holds a record. Its process ends, and the file with its topic's id is damaged."""
    cluster = ReplicaCluster(nodes=(1,))
    cluster.create_topic((1,))
    cluster.wait_led(1)
    assert cluster.produce(1, "a") == 0
    node = cluster.nodes[1]
    cluster.run_for(1_000)
    cluster.kill(1)
    path = f"/d0/t-0/{PARTITION_METADATA}"
    file = node.disk.open(path)
    file.truncate(0)
    file.pwritev([DAMAGED], 0)
    with caplog.at_level(logging.ERROR):
        cluster.boot(1)
        cluster.register(1)
        cluster.run_for(1_000)
    return cluster


def test_the_replica_is_offline_and_its_records_are_not_touched(caplog: pytest.LogCaptureFixture) -> None:
    cluster = restarted_with_damage(caplog)
    node = cluster.nodes[1]
    names = node.disk.list("/d0")
    assert "t-0" in names and not any(name.endswith("-stray") for name in names)
    assert "write the topic's id back into the file, or move the directory out of log.dirs" in caplog.text
    with pytest.raises(ApiError) as refused:
        cluster.produce(1, "b")
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert node.disk.read_bytes(f"/d0/t-0/{PARTITION_METADATA}") == DAMAGED
    assert node.disk.open("/d0/t-0/00000000000000000000.log").size() > 0


def test_a_deletion_of_the_topic_keeps_what_may_not_be_its_own(caplog: pytest.LogCaptureFixture) -> None:
    cluster = restarted_with_damage(caplog)
    cluster.delete_topic()
    cluster.run_for(70_000)
    (kept,) = [name for name in cluster.nodes[1].disk.list("/d0") if name.startswith("t-0")]
    assert kept.endswith("-stray")

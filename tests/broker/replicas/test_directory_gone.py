"""A log directory whose path names nothing: what DescribeLogDirs tells of it is what the broker does."""

from __future__ import annotations

from replica_cluster import Node, ReplicaCluster

from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import LogDirDescription
from quorumlog_storage.files.disk import FileMissing
from quorumlog_storage.writer.directory_life import DirectoryState


def test_a_missing_directory_is_failed_by_the_report_that_finds_it() -> None:
    cluster = ReplicaCluster(directories=2)
    cluster.create_topic(partitions=4)
    cluster.wait_led(1)
    node = cluster.nodes[1]
    directory = node.data_plane.store.queues[node.directory_id("/d0")].directory
    disk = directory.partitions.disk
    total_bytes = disk.total_bytes
    disk.total_bytes = missing  # the probes have not noticed yet
    found = told(node)
    assert found.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert found.error_message.startswith("/d0: it is not there any more")
    assert directory.life.state is DirectoryState.FAILED
    disk.total_bytes = total_bytes
    assert told(node).error_code == ErrorCode.KAFKA_STORAGE_ERROR, "it came back without a verification"


def missing(path: str) -> int:
    raise FileMissing(path, "size")


def told(node: Node) -> LogDirDescription:
    return next(one for one in node.run(node.data_plane.directory_report.describe()) if one.path == "/d0")

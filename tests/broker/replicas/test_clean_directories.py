"""Which log directories a data plane leaves in order when it closes: each is judged by itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from replica_cluster import Node, ReplicaCluster

from jepsen.sim.machine.disk_faults import Fail, Fault, Operation
from quorumlog_storage.directory.partition_metadata import PARTITION_METADATA

PARTITIONS = 4


def cluster_with_data() -> ReplicaCluster:
    """Two partitions in each of two directories of node 1."""
    cluster = ReplicaCluster(directories=2)
    cluster.create_topic(partitions=PARTITIONS)
    for index in range(PARTITIONS):
        cluster.wait_led(1, index)
        cluster.produce(1, "a", "b", index=index)
    return cluster


def held(node: Node, path: str) -> list[str]:
    return [f"{path}/{name}" for name in node.disk.list(path) if name.startswith("t-")]


def in_order(node: Node) -> frozenset[str]:
    return node.run(node.data_plane.close())


def restarted(cluster: ReplicaCluster, *, clean: bool = False, opened: bool = True) -> Node:
    node = cluster.start(1, clean=clean)
    if opened:
        cluster.run_until(lambda: node.data_plane.logs_to_open.done)
    return node


def test_all_are_after_an_unclean_start_that_has_opened_every_log() -> None:
    cluster = cluster_with_data()
    cluster.nodes[1].kill()
    node = restarted(cluster)
    assert in_order(node) == {"/d0", "/d1"}


def test_one_that_failed_costs_the_other_nothing() -> None:
    cluster = cluster_with_data()
    node = cluster.nodes[1]
    node.disk.faults = lambda operation: Fail() if operation.path.startswith("/d1/") else None
    assert in_order(node) == {"/d0"}


def test_one_with_an_unreadable_log_costs_the_other_nothing() -> None:
    cluster = cluster_with_data()
    node = cluster.nodes[1]
    node.kill()
    (torn, *_) = held(node, "/d1")

    def fault(operation: Operation) -> Fault | None:
        return Fail() if operation.kind in ("pread", "read_bytes") and operation.path.startswith(torn) else None

    node.disk.faults = fault
    node = restarted(cluster)
    assert in_order(node) == {"/d0"}


@pytest.mark.parametrize(("clean", "expected"), [(True, {"/d0", "/d1"}), (False, set())])
def test_logs_that_were_not_opened_are_as_they_were_before(clean: bool, expected: set[str]) -> None:
    cluster = cluster_with_data()
    in_order(cluster.nodes[1])
    cluster.nodes[1].kill()
    node = restarted(cluster, clean=clean, opened=False)
    assert not node.data_plane.logs_to_open.done
    assert in_order(node) == expected


def test_a_directory_that_was_never_listed_is_not_known_to_be_in_order() -> None:
    cluster = cluster_with_data()
    cluster.nodes[1].kill()
    node = cluster.boot(1)
    assert in_order(node) == set()


@pytest.fixture
def with_unreadable_topic_id() -> Iterator[tuple[ReplicaCluster, Node]]:
    cluster = cluster_with_data()
    node = cluster.nodes[1]
    in_order(node)
    node.kill()
    (first, *_) = held(node, "/d1")
    node.disk.open(f"{first}/{PARTITION_METADATA}").truncate(3)
    yield cluster, node


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_without_a_readable_topic_id_has_not_been_verified(
    with_unreadable_topic_id: tuple[ReplicaCluster, Node], clean: bool
) -> None:
    cluster, _ = with_unreadable_topic_id
    node = restarted(cluster, clean=clean)
    assert in_order(node) == {"/d0"}

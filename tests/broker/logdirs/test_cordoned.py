"""`cordoned.log.dirs`: such a directory gets no new logs, and keeps those that it has (KIP-1066)."""

from __future__ import annotations

import pytest
from replica_cluster import ReplicaCluster

from quorumlog.configs.directory import CORDONED
from quorumlog.errors import ApiError
from quorumlog.messages.admin import AlterableConfig, AlterConfigsResource
from quorumlog.messages.metadata_records import ConfigRecord
from quorumlog_quorum.metadata.image import BROKER_RESOURCE
from tests.rules import rule

PARTITIONS = 6
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


@rule("storage 7.6", "log 8.5")
def test_new_logs_go_elsewhere_and_old_ones_go_on() -> None:
    cluster = ReplicaCluster(directories=2)
    cluster.create_topic(partitions=PARTITIONS)
    cluster.wait_led(1)
    for node in cluster.nodes.values():
        node.data_plane.store.cordoned = frozenset({"/d0"})
    cluster.create_topic(topic_id=bytes([9]) * 16, name="later", partitions=PARTITIONS)
    cluster.run_for(1_000)
    node = cluster.nodes[1]
    before = [name for name in node.disk.list("/d0") if name.startswith("t-")]
    assert before and not [name for name in node.disk.list("/d0") if name.startswith("later-")]
    assert len([name for name in node.disk.list("/d1") if name.startswith("later-")]) == PARTITIONS
    for name in before:
        assert cluster.produce(1, "a", index=int(name[2:])) == 0
    described = told(cluster)
    assert described == [("/d0", True), ("/d1", False)]


def cordon(cluster: ReplicaCluster, value: str | None, broker: str = "1") -> None:
    cluster.commit(ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=broker, name=CORDONED, value=value))
    cluster.run_for(100)


def places(cluster: ReplicaCluster, topic: str, node: int = 1) -> dict[str, int]:
    """Partitions of `topic` in each directory of a node."""
    disk, paths = cluster.nodes[node].disk, cluster.nodes[node].paths
    return {path: sum(name.startswith(f"{topic}-") for name in disk.list(path)) for path in paths}


@rule("storage 7.6")
def test_a_running_broker_obeys_a_change_with_the_next_partition() -> None:
    cluster = ReplicaCluster(directories=2)
    for number, (value, wanted) in enumerate(
        [
            ("/d0", {"/d0": 0, "/d1": PARTITIONS}),
            ("/d1", {"/d0": PARTITIONS, "/d1": 0}),
            (None, {"/d0": PARTITIONS // 2, "/d1": PARTITIONS // 2}),
            ("*", {"/d0": PARTITIONS // 2, "/d1": PARTITIONS // 2}),
        ]
    ):
        cordon(cluster, value)
        cluster.create_topic(topic_id=bytes([20 + number]) * 16, name=f"t{number}", partitions=PARTITIONS)
        cluster.run_for(1_000)
        assert places(cluster, f"t{number}") == wanted, f"cordoned: {value}"
    assert told(cluster) == [("/d0", True), ("/d1", True)]


def test_it_is_of_one_broker_and_the_file_is_what_is_left() -> None:
    cluster = ReplicaCluster(directories=2)
    cordon(cluster, "/d0")
    assert told(cluster) == [("/d0", True), ("/d1", False)]
    assert told(cluster, 2) == [("/d0", False), ("/d1", False)]
    cordon(cluster, None)
    assert told(cluster) == [("/d0", False), ("/d1", False)]


def test_the_controller_is_told_at_once_and_by_ids() -> None:
    cluster = ReplicaCluster(directories=2)
    node = cluster.nodes[1]
    told_at: list[frozenset[bytes]] = []
    live = node.data_plane.cordoned
    live._on_changed = lambda: told_at.append(live.ids())
    for value in ("/d0", "/d0", "*", "/d7", None):
        cordon(cluster, value)
    first, second = (node.directory_id(path) for path in node.paths)
    assert told_at == [{first}, {first, second}, set()], "what is not understood, or changes nothing, is not told"


def test_a_directory_that_is_not_there_changes_nothing() -> None:
    cluster = ReplicaCluster(directories=2)
    cordon(cluster, "/d1")
    cordon(cluster, "/d1,/d7")
    assert told(cluster) == [("/d0", False), ("/d1", True)]


@pytest.mark.parametrize(
    ("before", "operation", "value", "is_allowed"),
    [
        (None, SET, "/d0", True),
        (None, SET, "/d0, /d1", True),
        (None, SET, "*", True),
        (None, SET, "", True),
        (None, SET, "/d7", False),
        (None, SET, "/d0,*", False),
        ("/d0", APPEND, "/d1", True),
        ("/d0", APPEND, "/d7", False),
        ("/d0", APPEND, "*", False),
        ("/d0", SUBTRACT, "/d7", True),
        ("/d0", DELETE, None, True),
    ],
)
def test_the_broker_that_is_asked_knows_its_directories(
    before: str | None, operation: int, value: str | None, is_allowed: bool
) -> None:
    cluster = ReplicaCluster(directories=2)
    if before is not None:
        cordon(cluster, before)
    change = AlterableConfig(name=CORDONED, operation=operation, value=value)
    asked = AlterConfigsResource(resource_type=BROKER_RESOURCE, resource_name="1", configs=(change,))
    report = cluster.nodes[1].data_plane.directory_report
    if is_allowed:
        report.check_settings(asked)
    else:
        with pytest.raises(ApiError, match=r"not in log\.dirs"):
            report.check_settings(asked)
    cluster.nodes[2].data_plane.directory_report.check_settings(asked)  # it is not about that one


def told(cluster: ReplicaCluster, number: int = 1) -> list[tuple[str, bool]]:
    node = cluster.nodes[number]
    return [(one.path, one.is_cordoned) for one in node.run(node.data_plane.directory_report.describe())]

"""Formatting a node's directories and opening them again, on the simulated disk."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from jepsen.sim.machine.disk import SimDisk
from quorumlog.cluster_incarnation import ClusterIncarnation
from quorumlog.ids import format_uuid
from quorumlog_server.config.config import NodeConfig, from_values
from quorumlog_server.directories.directories import DirectoryProblem, open_directories
from quorumlog_server.directories.format import Formatted, format_node
from quorumlog_server.directories.secret import NoSecret, new_secret, read_secret
from quorumlog_server.edge.real_edges import random_uuid
from quorumlog_storage.directory.directory import AlreadyFormatted, read_meta
from quorumlog_storage.directory.meta_properties import WrongDirectory
from tests.rules import rule

SECRET = new_secret(bytes(range(32)))


def make_config(node_id: int = 1, log_dirs: str = "/data/a,/data/b", metadata: str | None = None) -> NodeConfig:
    values = {"node.id": str(node_id), "controller.quorum.voters": f"{node_id}@127.0.0.1:1", "log.dirs": log_dirs}
    return from_values({**values, **({"metadata.log.dir": metadata} if metadata else {})})


def make_disk() -> SimDisk:
    return SimDisk()


def format_(disk: SimDisk, config: NodeConfig, cluster: str = "c1", **changes: Any) -> list[Formatted]:
    numbers = itertools.count(1_000)
    fields: dict[str, Any] = {"secret": SECRET, "protect": lambda _path: None, **changes}
    return format_node(
        config, cluster_id=cluster, disk=disk, new_uuid=lambda: next(numbers).to_bytes(16, "big"), **fields
    )


def test_a_formatted_node_opens_with_its_identity() -> None:
    disk, config = make_disk(), make_config()
    assert [entry.path for entry in format_(disk, config)] == ["/data/a", "/data/b"]
    opened = open_directories(disk, config)
    assert (opened.cluster_id, opened.secret) == ("c1", SECRET.encode())
    assert len({entry.meta.directory_id for entry in opened.opened}) == 2
    assert opened.previous_broker_epoch == -1


def test_a_metadata_directory_of_its_own_is_formatted_too() -> None:
    disk, config = make_disk(), make_config(metadata="/meta")
    assert [entry.path for entry in format_(disk, config)] == ["/data/a", "/data/b", "/meta"]
    assert open_directories(disk, config).metadata.path == "/meta"


def test_formatted_directories_are_refused_or_left_as_they_are() -> None:
    disk = make_disk()
    before = format_(disk, make_config(log_dirs="/data/a"))
    both = make_config()
    with pytest.raises(AlreadyFormatted):
        format_(disk, both)
    assert not disk.exists("/data/b")
    after = format_(disk, both, ignore_formatted=True)
    assert [entry.fresh for entry in after] == [False, True]
    assert after[0].directory_id == before[0].directory_id


def test_a_node_joins_the_incarnation_that_it_is_formatted_for() -> None:
    disk, incarnation = make_disk(), ClusterIncarnation(1, b"\1" * 16)
    format_(disk, make_config(log_dirs="/data/a"), incarnation=incarnation)
    assert open_directories(disk, make_config(log_dirs="/data/a")).incarnation == incarnation
    with pytest.raises(WrongDirectory, match=f"/data/a is of cluster incarnation {incarnation}, not 0"):
        format_(disk, make_config(), ignore_formatted=True)
    assert not disk.exists("/data/b")
    format_(disk, make_config(), incarnation=incarnation, ignore_formatted=True)
    assert read_meta(disk, "/data/b").incarnation == incarnation


def test_another_clusters_or_nodes_directory_is_never_taken_over() -> None:
    disk = make_disk()
    format_(disk, make_config())
    with pytest.raises(WrongDirectory, match="belongs to cluster c1, not c2"):
        format_(disk, make_config(), cluster="c2", ignore_formatted=True)
    with pytest.raises(WrongDirectory, match="belongs to node 1"):
        format_(disk, make_config(node_id=2), ignore_formatted=True)
    with pytest.raises(DirectoryProblem, match="belongs to node 1"):
        open_directories(disk, make_config(node_id=2))


def test_a_directory_is_opened_once_at_a_time_and_a_failed_open_locks_nothing() -> None:
    disk, config = make_disk(), make_config()
    format_(disk, config)
    held = open_directories(disk, config)
    with pytest.raises(DirectoryProblem):
        open_directories(disk, config)
    held.close()
    with pytest.raises(DirectoryProblem, match="belongs to node 1"):
        open_directories(disk, make_config(node_id=2))
    open_directories(disk, config)


REFUSED = [
    ("another node's", {"node_id": 2}, "belongs to node 1"),
    ("beside one that is not formatted", {"log_dirs": "/data/a,/data/b,/data/c"}, "format it"),
]


@pytest.mark.parametrize(("config", "why"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_a_refused_start_leaves_the_markers_of_the_last_clean_stop(config: dict[str, Any], why: str) -> None:
    """Else a start by mistake costs the directories' owner its place among those that hold every record."""
    disk = make_disk()
    format_(disk, make_config())
    for entry in open_directories(disk, make_config()).opened:
        entry.close(7)
    with pytest.raises(DirectoryProblem, match=why):
        open_directories(disk, make_config(**config))
    disk.crash(random.Random(1))
    assert open_directories(disk, make_config()).previous_broker_epoch == 7


def test_an_unformatted_directory_error_names_the_remedy() -> None:
    with pytest.raises(DirectoryProblem, match=r"no meta\.properties; format it"):
        open_directories(make_disk(), make_config())


EPOCHS = [("clean", [7, 7], 7), ("one is not", [7, None], -1), ("they differ", [7, 8], -1), ("none is", [None] * 2, -1)]


@rule("storage 3.2")
@pytest.mark.parametrize(("markers", "want"), [case[1:] for case in EPOCHS], ids=[case[0] for case in EPOCHS])
def test_the_last_stop_was_clean_only_if_every_directory_agrees(markers: list[int | None], want: int) -> None:
    disk, config = make_disk(), make_config()
    format_(disk, config)
    for entry, epoch in zip(open_directories(disk, config).opened, markers, strict=True):
        entry.close(epoch)
    opened = open_directories(disk, config)
    assert opened.previous_broker_epoch == want
    opened.close()
    assert open_directories(disk, config).previous_broker_epoch == -1


def test_a_node_without_the_secret_does_not_start() -> None:
    disk, config = make_disk(), make_config()
    format_(disk, config)
    disk.unlink("/data/a/cluster.secret")
    with pytest.raises(NoSecret, match="is missing; copy"):
        read_secret(disk, "/data/a")
    with pytest.raises(DirectoryProblem, match=r"cluster\.secret"):
        open_directories(disk, config)


def test_random_ids_are_not_reserved_and_have_no_leading_dash() -> None:
    ids = [random_uuid() for _ in range(2_000)]
    assert len(set(ids)) == len(ids)
    assert not any(format_uuid(value).startswith("-") for value in ids)

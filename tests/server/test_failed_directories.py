"""Log directories that fail while a node opens them: what is known of them, and what the controller is told."""

from __future__ import annotations

from typing import cast

from broker.logdirs.log_directory import LogDirectory, offline_ids
from cli.server.config import from_values
from cli.server.directories import NodeDirectories, open_directories
from cli.server.edges import Edges
from cli.server.format import format_node
from cli.server.replica_directories import DirectoryWorkers
from cli.server.secret import new_secret
from jepsen.sim.disk import SimDisk
from jepsen.sim.disk_faults import Fail, Fault, Operation
from storage.directory_life import LifeEvent
from storage.writer import DirectoryWriter

PATHS = ("/data/a", "/data/b", "/data/c", "/data/d")
CONFIG = from_values(
    {
        "node.id": "1",
        "controller.quorum.voters": "1@127.0.0.1:1",
        "log.dirs": ",".join(PATHS),
        "process.roles": "broker,controller",
    }
)


def id_of(path: str) -> bytes:
    return bytes([PATHS.index(path) + 1]) * 16


def fault(operation: Operation) -> Fault | None:
    """b cannot be synced; nothing of c and d can be read."""
    if operation.path.startswith(("/data/c/", "/data/d/")):
        return Fail()
    return Fail() if (operation.kind, operation.path) == ("sync_directory", "/data/b") else None


def opened_with_faults() -> tuple[NodeDirectories, list[LogDirectory]]:
    disk = SimDisk()
    ids = iter([id_of(path) for path in PATHS])
    format_node(
        CONFIG,
        cluster_id="c",
        secret=new_secret(bytes(range(32))),
        disk=disk,
        new_uuid=lambda: next(ids),
        protect=lambda _: None,
    )
    disk.faults = fault
    directories = open_directories(disk, CONFIG)
    disk.faults = lambda _: None
    return directories, DirectoryWorkers(CONFIG, cast(Edges, _Edges(disk)), directories).for_replicas()


class _Edges:
    def __init__(self, disk: SimDisk) -> None:
        self.disk = disk

    def worker(self, _writer: DirectoryWriter) -> None:
        """Nothing is written in these tests."""


def test_a_directory_that_failed_is_known_by_its_id_where_that_can_be_read() -> None:
    directories, entries = opened_with_faults()
    assert directories.ids == {path: id_of(path) for path in PATHS[:2]}
    assert [entry.life.is_offline for entry in entries] == [False, True, True, True]


def test_the_controller_is_told_only_of_known_directories() -> None:
    """Two unknown ones once counted as one directory with the id zero."""
    _, entries = opened_with_faults()
    assert offline_ids(entries) == [id_of("/data/b")]


def test_a_directory_is_reported_from_its_failure_until_it_is_verified() -> None:
    _, entries = opened_with_faults()
    life = entries[0].life
    life.fail(OSError("EIO"), life.generation)
    assert offline_ids(entries) == [id_of("/data/a"), id_of("/data/b")]
    life.step(LifeEvent.VERIFICATION_BEGAN, life.generation)
    assert offline_ids(entries) == [id_of("/data/a"), id_of("/data/b")]
    life.step(LifeEvent.VERIFIED, life.generation)
    assert offline_ids(entries) == [id_of("/data/b")]

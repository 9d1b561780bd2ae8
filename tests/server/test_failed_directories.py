"""Log directories that fail while a node opens them: what is known of them, and what the controller is told."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from jepsen.sim.machine.disk import SimDisk
from jepsen.sim.machine.disk_faults import Fail, Fault, Operation
from quorumlog_broker.logdirs.log_directory import LogDirectory, offline_ids
from quorumlog_server.config.config import from_values
from quorumlog_server.directories.directories import NodeDirectories, open_directories
from quorumlog_server.directories.format import format_node
from quorumlog_server.directories.replica_directories import DirectoryWorkers
from quorumlog_server.directories.secret import new_secret
from quorumlog_server.edge.edges import Edges
from quorumlog_storage.directory.directory import LockedDirectory
from quorumlog_storage.directory.meta_properties import META_PROPERTIES, WrongDirectory
from quorumlog_storage.files.atomic import write_atomically
from quorumlog_storage.files.disk import DirectoryLocked
from quorumlog_storage.writer.directory_life import LifeEvent
from quorumlog_storage.writer.writer import DirectoryWriter
from tests.rules import rule

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


def formatted() -> SimDisk:
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
    return disk


def opened_with_faults() -> tuple[NodeDirectories, list[LogDirectory]]:
    disk = formatted()
    disk.faults = fault
    directories = open_directories(disk, CONFIG)
    disk.faults = lambda _: None
    return directories, DirectoryWorkers(CONFIG, cast(Edges, _Edges(disk)), directories).for_replicas()


class _Edges:
    def __init__(self, disk: SimDisk) -> None:
        self.disk = disk

    def worker(self, _writer: DirectoryWriter) -> None:
        """Nothing is written in these tests."""


@rule("storage 3.20", "log 8.11")
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


def test_a_directory_that_is_there_again_is_locked_again() -> None:
    directories, disk = opened_whole()
    before = directories.opened[1]
    again = directories.lock_again(disk, before.path)
    directories.opened_again(again)
    assert again.meta == before.meta and again in directories.opened and before not in directories.opened
    with pytest.raises(DirectoryLocked):
        LockedDirectory.open(disk, before.path)


def test_another_directory_does_not_come_back_in_its_place() -> None:
    """Of the same node and cluster, such as a fresh one that was mounted there by mistake."""
    directories, disk = opened_whole()
    path = PATHS[1]
    meta = replace(directories.opened[1].meta, directory_id=bytes([99]) * 16)
    write_atomically(disk, f"{path}/{META_PROPERTIES}", meta.render())
    with pytest.raises(WrongDirectory, match="another log directory"):
        directories.lock_again(disk, path)
    LockedDirectory.open(disk, path).close(None)  # it does not stay locked


def opened_whole() -> tuple[NodeDirectories, SimDisk]:
    disk = formatted()
    return open_directories(disk, CONFIG), disk

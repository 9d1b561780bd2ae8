"""Which log directories a node marks as clean, from what its parts have closed."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from jepsen.sim.machine.disk import SimDisk
from jepsen.sim.machine.disk_faults import Fail
from quorumlog_server.config.config import NodeConfig, from_values
from quorumlog_server.directories.clean_shutdown import left_clean
from quorumlog_server.directories.directories import NodeDirectories, open_directories
from quorumlog_server.directories.format import format_node
from quorumlog_server.directories.secret import new_secret
from quorumlog_storage.directory.directory import CLEAN_SHUTDOWN
from tests.rules import rule

A, B = "/data/a", "/data/b"


def config(roles: str = "broker,controller") -> NodeConfig:
    return from_values(
        {
            "node.id": "1",
            "controller.quorum.voters": "1@127.0.0.1:1",
            "log.dirs": f"{A},{B}",
            "metadata.log.dir": A,
            "process.roles": roles,
            "listeners": "INTERNAL://127.0.0.1:9093" + (",CLIENT://127.0.0.1:9092" if "broker" in roles else ""),
        }
    )


def directories(config: NodeConfig, clean: Collection[str] = ()) -> tuple[SimDisk, NodeDirectories]:
    """clean: those that have a marker."""
    disk = SimDisk()
    ids = iter([bytes([number]) * 16 for number in (1, 2)])
    format_node(
        config,
        cluster_id="c",
        secret=new_secret(bytes(range(32))),
        disk=disk,
        new_uuid=lambda: next(ids),
        protect=lambda _: None,
    )
    open_directories(disk, config).close(clean, 4)
    return disk, open_directories(disk, config)


CASES: list[tuple[str, set[str], set[str] | None, bool | None, set[str]]] = [
    # had a marker, closed by the broker (None: no broker), metadata log closed (None: not opened), gets a marker
    ("all is closed", set(), {A, B}, True, {A, B}),
    ("one directory is not closed in order", {A, B}, {A}, True, {A}),
    ("the metadata log is not", {A, B}, {A, B}, False, {B}),
    ("nothing was opened", {B}, None, None, {B}),
    ("only the metadata log was opened, after an unclean stop", set(), None, True, set()),
    ("only the metadata log was opened, after a clean stop", {A, B}, None, True, {A, B}),
]


@rule("storage 3.1", "log 8.2")
@pytest.mark.parametrize(("had", "closed", "quorum", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_each_directory_is_judged_by_itself(
    had: set[str], closed: set[str] | None, quorum: bool | None, expected: set[str]
) -> None:
    _, opened = directories(config(), had)
    assert left_clean(config(), opened, closed, quorum) == expected


def test_one_that_has_failed_is_not_in_order() -> None:
    _, opened = directories(config())
    life = opened.lives[B]
    life.fail(OSError("EIO"), life.generation)
    assert left_clean(config(), opened, {A, B}, True) == {A}


def test_a_controller_marks_its_metadata_log() -> None:
    node = config("controller")
    _, opened = directories(node)
    assert A in left_clean(node, opened, None, True)
    assert A not in left_clean(node, opened, None, False)


def test_a_marker_that_cannot_be_written_costs_its_own_directory_a_recovery() -> None:
    """And its lock is released all the same."""
    disk, opened = directories(config())
    disk.faults = lambda operation: Fail() if operation.path == f"{A}/{CLEAN_SHUTDOWN}" else None
    opened.close({A, B}, 7)
    disk.faults = lambda _: None
    again = {entry.path: entry.clean_shutdown for entry in open_directories(disk, config()).opened}
    assert again[B] is not None and again[B].broker_epoch == 7


@rule("storage 3.2")
def test_the_epoch_counts_only_if_every_directory_tells_it() -> None:
    """One that was not left in order may lack what the broker has acknowledged."""
    disk, opened = directories(config())
    opened.close({A}, 7)
    again = open_directories(disk, config())
    assert again.previous_broker_epoch == -1
    again.close({A, B}, 8)
    assert open_directories(disk, config()).previous_broker_epoch == 8

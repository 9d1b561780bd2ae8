"""A probe notices that a log directory is not the one that was opened, or takes no changes."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from jepsen.sim.machine.disk import SimDisk
from jepsen.sim.machine.disk_faults import Fail, Fault, Operation
from quorumlog_storage.directory.directory import LOCK_NAME, DirectoryGone, DirectoryProbe
from quorumlog_storage.directory.meta_properties import META_PROPERTIES
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.files.disk import Disk, DiskError
from tests.rules import rule


@pytest.fixture(params=["real", "simulated"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Disk, str]:
    """A formatted, locked log directory."""
    disk: Disk = RealDisk() if request.param == "real" else SimDisk()
    root = str(tmp_path) if request.param == "real" else ""
    disk.make_directory(f"{root}/d")
    disk.open(f"{root}/d/{META_PROPERTIES}", create=True).close()
    disk.open(f"{root}/d/{LOCK_NAME}", create=True).close()
    return disk, f"{root}/d"


def remove_all(disk: Disk, path: str) -> None:
    disk.remove_tree(path)


def remove_and_make_anew(disk: Disk, path: str) -> None:
    disk.rename(path, f"{path}-before")  # so that its inode is not used again
    disk.make_directory(path)
    for name in (META_PROPERTIES, LOCK_NAME):
        disk.open(f"{path}/{name}", create=True).close()


def remove_the_files(disk: Disk, path: str) -> None:
    disk.unlink(f"{path}/{META_PROPERTIES}")


def replace_the_lock(disk: Disk, path: str) -> None:
    disk.rename(f"{path}/{LOCK_NAME}", f"{path}/before")
    disk.open(f"{path}/{LOCK_NAME}", create=True).close()


def test_a_directory_that_is_as_it_was_passes_and_nothing_stays_in_it(place: tuple[Disk, str]) -> None:
    disk, path = place
    before = disk.list(path)
    probe = DirectoryProbe(disk, path)
    probe()
    probe()
    assert disk.list(path) == before


@rule("storage 7.8")
@pytest.mark.parametrize("change", [remove_all, remove_and_make_anew, remove_the_files, replace_the_lock])
def test_a_directory_that_was_removed_or_replaced_is_noticed(
    place: tuple[Disk, str], change: Callable[[Disk, str], None]
) -> None:
    disk, path = place
    probe = DirectoryProbe(disk, path)
    change(disk, path)
    with pytest.raises(DirectoryGone, match="removed, replaced or unmounted"):
        probe()


def test_the_owners_file_may_be_replaced(place: tuple[Disk, str]) -> None:
    """A new version of meta.properties is another file."""
    disk, path = place
    probe = DirectoryProbe(disk, path)
    disk.open(f"{path}/new", create=True).close()
    disk.rename(f"{path}/new", f"{path}/{META_PROPERTIES}")
    probe()


@pytest.mark.parametrize("kind", ["open", "sync_directory", "unlink", "identity"])
@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS])
def test_a_directory_that_takes_no_changes_fails_the_probe(kind: str, number: int) -> None:
    disk = SimDisk()
    disk.make_directory("/d")
    for name in (META_PROPERTIES, LOCK_NAME):
        disk.open(f"/d/{name}", create=True).close()
    probe = DirectoryProbe(disk, "/d")

    def fault(operation: Operation) -> Fault | None:
        return Fail(number) if operation.kind == kind else None

    disk.faults = fault
    with pytest.raises(DiskError):
        probe()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_left_to_the_write_that_meets_it(number: int) -> None:
    disk = SimDisk()
    disk.make_directory("/d")
    for name in (META_PROPERTIES, LOCK_NAME):
        disk.open(f"/d/{name}", create=True).close()
    probe = DirectoryProbe(disk, "/d")
    disk.faults = lambda operation: Fail(number) if operation.kind == "open" else None
    found: list[DiskError] = []
    try:
        probe()
    except DiskError as error:
        found.append(error)
    assert not found


def test_a_real_directory_that_is_removed_while_files_in_it_are_open(tmp_path: Path) -> None:
    disk, path = RealDisk(), str(tmp_path / "d")
    os.mkdir(path)
    for name in (META_PROPERTIES, LOCK_NAME):
        disk.open(f"{path}/{name}", create=True).close()
    probe = DirectoryProbe(disk, path)
    log = disk.open(f"{path}/0.log", create=True)
    shutil.rmtree(path)
    assert log.pwritev([b"x"], 0) == 1, "the write itself says nothing"
    log.sync()
    with pytest.raises(DirectoryGone):
        probe()

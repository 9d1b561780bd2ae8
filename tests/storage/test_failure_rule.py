"""What each error of a disk takes offline, on the real and on the simulated disk."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from jepsen.sim.machine.disk import SimDisk
from jepsen.sim.machine.disk_faults import Fail
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.files.disk import Disk, DiskError, FileMissing
from quorumlog_storage.rules.failure_rule import SECOND_FAILURE_MS, Consequence, FailedReplicas, consequence_of

REPLICA, DIRECTORY, WAIT = (
    Consequence.REPLICA_OFFLINE,
    Consequence.DIRECTORY_OFFLINE,
    Consequence.BACK_PRESSURE,
)
READS, FIRST_CALLS, LATER_CALLS = ("open", "read", "list", "size"), ("create", "make directory"), ("write", "sync")

CASES = [
    *((op, number, False, WAIT) for op in (*READS, *FIRST_CALLS) for number in (errno.EMFILE, errno.ENFILE)),
    *((op, errno.ENOMEM, False, WAIT) for op in (*READS, *FIRST_CALLS)),
    *((op, errno.ENOMEM, False, DIRECTORY) for op in LATER_CALLS),
    *((op, errno.EMFILE, True, DIRECTORY) for op in ("open", "create", "sync directory")),
    *((op, errno.EIO, False, REPLICA) for op in READS),
    *((op, errno.EACCES, False, REPLICA) for op in READS),
    *((op, errno.EIO, True, DIRECTORY) for op in READS),
    *((op, errno.EIO, False, DIRECTORY) for op in (*FIRST_CALLS, *LATER_CALLS, "truncate", "rename", "unlink")),
    *((op, number, False, DIRECTORY) for op in ("open", "write", "sync") for number in (errno.EROFS, errno.ENOSPC)),
    ("write", errno.EDQUOT, False, DIRECTORY),
]


@pytest.mark.parametrize(
    ("op", "number", "has_begun", "want"),
    CASES,
    ids=[f"{op} {errno.errorcode[number]}{' in a change' if begun else ''}" for op, number, begun, _ in CASES],
)
def test_consequence_of(op: str, number: int, has_begun: bool, want: Consequence) -> None:
    assert consequence_of(DiskError("/d/t-0/x", op, number), has_begun=has_begun) is want


def test_a_missing_file_of_a_replica_concerns_the_replica() -> None:
    assert consequence_of(FileMissing("/d/t-0/x", "open")) is REPLICA


READING: list[tuple[str, Callable[[Disk, str], object]]] = [
    ("open", lambda disk, path: disk.open(f"{path}/file")),
    ("read_bytes", lambda disk, path: disk.read_bytes(f"{path}/file")),
    ("list", lambda disk, path: disk.list(path)),
    ("exists", lambda disk, path: disk.exists(f"{path}/file")),
    ("free_bytes", lambda disk, path: disk.free_bytes(path)),
    ("total_bytes", lambda disk, path: disk.total_bytes(path)),
]
CHANGING: list[tuple[str, Callable[[Disk, str], object]]] = [
    ("create", lambda disk, path: disk.open(f"{path}/new", create=True)),
    ("make_directory", lambda disk, path: disk.make_directory(f"{path}/new")),
    ("rename", lambda disk, path: disk.rename(f"{path}/file", f"{path}/new")),
    ("unlink", lambda disk, path: disk.unlink(f"{path}/file")),
    ("sync_directory", lambda disk, path: disk.sync_directory(path)),
]


@pytest.mark.parametrize("call", [case[1] for case in READING], ids=[case[0] for case in READING])
def test_the_simulated_disk_tells_a_read(call: Callable[[Disk, str], object]) -> None:
    assert consequence_of(struck(call)) is REPLICA


@pytest.mark.parametrize("call", [case[1] for case in CHANGING], ids=[case[0] for case in CHANGING])
def test_the_simulated_disk_tells_a_change(call: Callable[[Disk, str], object]) -> None:
    assert consequence_of(struck(call)) is DIRECTORY


def struck(call: Callable[[Disk, str], object]) -> DiskError:
    disk = SimDisk()
    disk.open("/file", create=True)
    disk.faults = lambda _: Fail(errno.EIO)
    with pytest.raises(DiskError) as raised:
        call(disk, "/")
    return raised.value


def test_an_open_file_tells_reads_from_changes() -> None:
    disk = SimDisk()
    file = disk.open("/file", create=True)
    disk.faults = lambda _: Fail(errno.EIO)
    changes: list[Callable[[], object]] = [lambda: file.pwritev([b"x"], 0), file.sync, lambda: file.truncate(0)]
    reads: list[Callable[[], object]] = [lambda: file.pread(0, 1), file.size]
    for calls, want in ((reads, REPLICA), (changes, DIRECTORY)):
        for call in calls:
            with pytest.raises(DiskError) as raised:
                call()
            assert consequence_of(raised.value) is want, raised.value


def test_the_real_disk_tells_a_read_and_a_change(tmp_path: Path) -> None:
    disk = RealDisk()
    for call, want in (
        (lambda: disk.list(f"{tmp_path}/none"), REPLICA),
        (lambda: disk.open(f"{tmp_path}"), REPLICA),
        (lambda: disk.open(f"{tmp_path}", create=True), DIRECTORY),
        (lambda: disk.make_directory(f"{tmp_path}/none/x"), DIRECTORY),
    ):
        with pytest.raises(DiskError) as raised:
            call()
        assert consequence_of(raised.value) is want, raised.value


def test_a_second_replica_within_ten_minutes_takes_the_directory() -> None:
    failed = FailedReplicas()
    assert not failed.add("a", 0)
    assert failed.add("b", SECOND_FAILURE_MS - 1)


def test_a_second_replica_after_ten_minutes_does_not() -> None:
    failed = FailedReplicas()
    assert not failed.add("a", 0)
    assert not failed.add("b", SECOND_FAILURE_MS)
    assert failed.add("c", SECOND_FAILURE_MS + 1)


def test_the_same_replica_told_again_does_not() -> None:
    failed = FailedReplicas()
    assert not any(failed.add("a", now_ms) for now_ms in (0, 1, SECOND_FAILURE_MS - 1))

"""A node verifies a snapshot before it serves the first byte of it. The real store and worker on the simulated disk."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable

import pytest

from jepsen.sim.machine.disk import SimDisk
from jepsen.sim.machine.worker import SimWorker
from jepsen.sim.time.scheduler import Scheduler
from quorumlog_quorum.snapshot_service.served_snapshots import VERDICT_MS, ServedSnapshots
from quorumlog_quorum.snapshot_service.snapshot_store import SnapshotStore
from quorumlog_quorum.snapshots import (
    SnapshotHeading,
    SnapshotId,
    StoredSnapshot,
    damaged_name,
    snapshot_name,
    snapshot_path,
    write_snapshot,
)
from quorumlog_quorum.snapshots.reader import PIECE_BYTES
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.writer.writer import DirectoryWriter
from tests.rules import rule

DIRECTORY = "/data"
OLDER, NEWER = SnapshotId(100, 1), SnapshotId(200, 2)
NOT_FOUND = (-1, b"")
LARGE = 3  # pieces, and a bit


class Shelf:
    """Two snapshots on a disk, the newer one of several pieces, and the node's objects around them."""

    def __init__(self) -> None:
        self.scheduler, self.disk = Scheduler(1), SimDisk()
        self.disk.make_directory(DIRECTORY)
        self.disk.sync_directory("/")
        self.errors: list[Exception] = []
        self.lost: list[SnapshotId] = []
        self.wall_ms = 0
        worker = SimWorker(self.disk, DirectoryWriter(DIRECTORY), self.scheduler.call_later)
        self.reads = 0
        read = worker.read

        def counted(fn, callback):  # type: ignore[no-untyped-def]
            self.reads += 1
            read(fn, callback)

        worker.read = counted  # type: ignore[method-assign]
        stored = []
        for snapshot, pieces in ((OLDER, 0), (NEWER, LARGE)):
            values = [[b"x" * (PIECE_BYTES // 2)] for _ in range(2 * pieces)] or [[b"one"]]
            heading = SnapshotHeading(id=snapshot, last_contained_timestamp_ms=1)
            path = write_snapshot(self.disk, DIRECTORY, heading, values)
            stored.append(StoredSnapshot(snapshot, self.disk.size_of(path), 1))
        self.store = SnapshotStore(
            disk=self.disk, worker=worker, rng=random.Random(0), on_error=self.errors.append, stored=stored
        )
        self.served = ServedSnapshots(self.store, self, self.lost.append)

    def now_ms(self) -> int:
        return self.wall_ms

    def read(self, snapshot: SnapshotId, position: int = 0, times: int = 1) -> list[tuple[int, bytes]]:
        """What so many requests at the same time are answered."""
        answers: list[tuple[int, bytes]] = []
        for _ in range(times):
            self.served.read(snapshot, position, 10, lambda size, data: answers.append((size, data)))
        self.scheduler.run_for(10**9)
        assert not self.errors
        return answers

    def content(self, snapshot: SnapshotId) -> bytes:
        return self.disk.read_bytes(snapshot_path(DIRECTORY, snapshot))

    def flip(self, snapshot: SnapshotId) -> None:
        path = snapshot_path(DIRECTORY, snapshot)
        self.disk.flip_bit(path, 8 * self.disk.size_of(path) - 8 * 30)

    def unlink(self, snapshot: SnapshotId) -> None:
        self.disk.unlink(snapshot_path(DIRECTORY, snapshot))

    @property
    def names(self) -> set[str]:
        return set(self.disk.list(DIRECTORY))


def test_an_intact_file_is_served_and_verified_once() -> None:
    shelf = Shelf()
    content = shelf.content(NEWER)
    assert shelf.read(NEWER) == [(len(content), content[:10])]
    first = shelf.reads
    assert first >= LARGE + 2, "in pieces, each one a job of its own"
    assert shelf.read(NEWER, position=7) == [(len(content), content[7:17])]
    assert shelf.reads == first + 1
    assert shelf.read(OLDER) == [(len(shelf.content(OLDER)), shelf.content(OLDER)[:10])]
    assert shelf.lost == [] and shelf.store.damaged == 0


def test_requests_that_come_at_once_share_one_pass() -> None:
    alone, together = Shelf(), Shelf()
    alone.read(NEWER)
    assert together.read(NEWER, times=5) == 5 * alone.read(NEWER)
    assert together.reads == alone.reads - 1 + 4  # alone has read the first bytes twice


@rule("kraft 5.33")
@pytest.mark.parametrize("position", [0, 7], ids=["first byte", "later byte"])
def test_a_damaged_file_is_set_aside_and_never_served(position: int) -> None:
    shelf = Shelf()
    shelf.flip(NEWER)
    damaged = shelf.content(NEWER)
    assert shelf.read(NEWER, position, times=3) == 3 * [NOT_FOUND]
    assert shelf.lost == [NEWER] and shelf.store.damaged == 1
    assert [one.id for one in shelf.store.stored] == [OLDER]
    assert snapshot_name(NEWER) not in shelf.names
    assert shelf.disk.read_bytes(f"{DIRECTORY}/{damaged_name(NEWER)}") == damaged, "it is kept"
    assert shelf.read(NEWER) == [NOT_FOUND]
    assert shelf.read(OLDER) != [NOT_FOUND]
    assert shelf.lost == [NEWER] and shelf.store.damaged == 1


def test_a_file_that_is_gone_is_lost() -> None:
    shelf = Shelf()
    shelf.unlink(NEWER)
    assert shelf.read(NEWER) == [NOT_FOUND]
    assert shelf.lost == [NEWER] and shelf.store.damaged == 1


ERRORS = [
    ("the disk cannot read it", errno.EIO, "read", [NEWER]),
    ("short of descriptors", errno.EMFILE, "open", []),
    ("short of memory", errno.ENOMEM, "read", []),
]


@pytest.mark.parametrize(("code", "op", "lost"), [one[1:] for one in ERRORS], ids=[one[0] for one in ERRORS])
def test_an_error_of_the_disk(code: int, op: str, lost: list[SnapshotId], monkeypatch: pytest.MonkeyPatch) -> None:
    """Back-pressure says nothing of the file: it is verified again when it is asked for again."""
    shelf = Shelf()

    def fail(path: str, create: bool = False) -> None:
        raise DiskError(path, op, code)

    with monkeypatch.context() as patch:
        patch.setattr(shelf.disk, "open", fail)
        assert shelf.read(NEWER) == [NOT_FOUND]
    assert shelf.lost == lost and snapshot_name(NEWER) in shelf.names
    assert (shelf.read(NEWER) == [NOT_FOUND]) is bool(lost)


AFTER_THE_VERDICT = [
    ("the next download, at once", 0, 0, False),
    ("the next download, later", VERDICT_MS + 1, 0, True),
    ("the same download, later", VERDICT_MS + 1, 7, False),
]


@pytest.mark.parametrize(
    ("after_ms", "position", "is_found"),
    [one[1:] for one in AFTER_THE_VERDICT],
    ids=[one[0] for one in AFTER_THE_VERDICT],
)
def test_a_file_that_rots_after_the_verdict(after_ms: int, position: int, is_found: bool) -> None:
    shelf = Shelf()
    shelf.read(NEWER)
    shelf.flip(NEWER)
    shelf.wall_ms += after_ms
    assert (shelf.read(NEWER, position) == [NOT_FOUND]) is is_found
    assert shelf.lost == ([NEWER] if is_found else [])


DURING_THE_PASS: list[tuple[str, Callable[[Shelf], None]]] = [
    ("retention forgets it", lambda shelf: shelf.store.forget([NEWER])),
    ("something else has set it aside", lambda shelf: shelf.store.set_aside(NEWER, "a test")),
]


@pytest.mark.parametrize("act", [one[1] for one in DURING_THE_PASS], ids=[one[0] for one in DURING_THE_PASS])
@pytest.mark.parametrize("is_damaged", [True, False], ids=["damaged", "intact"])
def test_a_file_that_goes_during_the_pass(act: Callable[[Shelf], None], is_damaged: bool) -> None:
    shelf = Shelf()
    if is_damaged:
        shelf.flip(NEWER)
    answers: list[tuple[int, bytes]] = []
    shelf.served.read(NEWER, 0, 10, lambda size, data: answers.append((size, data)))
    act(shelf)
    shelf.scheduler.run_for(10**9)
    assert answers == [NOT_FOUND] and shelf.lost == [] and shelf.errors == []


def test_a_snapshot_taken_anew_under_the_same_id_is_verified_anew() -> None:
    shelf = Shelf()
    shelf.flip(NEWER)
    assert shelf.read(NEWER) == [NOT_FOUND]
    heading = SnapshotHeading(id=NEWER, last_contained_timestamp_ms=1)
    path = write_snapshot(shelf.disk, DIRECTORY, heading, [[b"anew"]])
    shelf.store.add(StoredSnapshot(NEWER, shelf.disk.size_of(path), 1))
    assert shelf.read(NEWER) == [(shelf.disk.size_of(path), shelf.content(NEWER)[:10])]
    assert {snapshot_name(NEWER), damaged_name(NEWER)} <= shelf.names

"""Snapshots of the metadata log in the crash sweep: taking one, dropping old ones, installing one that was fetched.

Whatever is stopped: a snapshot that was acknowledged is there and intact until it was asked to go, no damaged file
appears, and the log begins at 0 or at a snapshot.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable

from jepsen.crash.check import check, require
from jepsen.crash.process import DATA, StoppedClock
from jepsen.crash.world import FIRST_MS, World
from quorumlog_quorum.disk.metadata_log import METADATA_DIRECTORY
from quorumlog_quorum.snapshot_service.served_snapshots import ServedSnapshots
from quorumlog_quorum.snapshot_service.snapshot_store import SnapshotStore
from quorumlog_quorum.snapshots import (
    PartFile,
    SnapshotEncoder,
    SnapshotHeading,
    SnapshotId,
    StoredSnapshot,
    damaged_name,
    snapshot_path,
)
from quorumlog_quorum.snapshots.retention import free_deleted, set_deleted
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.writer.writer import CallJob, Outcome

PATH = f"{DATA}/{METADATA_DIRECTORY}"
UNIQUE = "5eed"
PIECES = 3
GAP = 30  # how far a fetched snapshot ends behind the log


def take(world: World) -> None:
    """Of all that is committed, in pieces, as a worker writes it."""
    _write(world, _at_end(world))
    world.commit(1)
    _write(world, _at_end(world))
    world.commit(1)


def two_snapshots(world: World, _: random.Random) -> None:
    take(world)


def serve(world: World) -> None:
    """To a follower, by position. One that it fetched itself, and does not need any more, goes."""
    disk, worker = world.process.disk, world.process.metadata_directory.worker
    file = world.disk.open(snapshot_path(PATH, world.snapshots[-1]))  # no call of the product: it is never struck
    newest = StoredSnapshot(world.snapshots[-1], file.size(), FIRST_MS)
    file.close()
    store = SnapshotStore(disk=disk, worker=worker, rng=random.Random(0), on_error=_raise, stored=[newest])
    ServedSnapshots(store, StoppedClock(), _nothing).read(newest.id, 10, 50, _served)
    world.commit(1)
    fetched = SnapshotId(500, world.epoch)
    store.store_piece(fetched, 0, b"the first bytes", _nothing)
    store.drop(fetched)
    world.commit(1)


def damaged(world: World, _: random.Random) -> None:
    """Bytes of the newest snapshot have changed since; nothing else is the worse for it."""
    take(world)
    newest = world.snapshots.pop()
    world.damaged.append(newest)
    world.end(None)
    world.disk.flip_bit(snapshot_path(PATH, newest), 8 * 80)


def retain(world: World) -> None:
    """The older of two goes, and with it the log before the other."""
    older, newer = sorted(world.snapshots, key=lambda one: one.offset)
    world.snapshots.remove(older)
    expected = world.expected[METADATA_DIRECTORY]
    expected.start_asked(newer.offset)
    metadata = world.process.metadata
    assert metadata is not None
    _submit(world, lambda: metadata.raise_start(newer, [older]))
    expected.start_done(newer.offset)
    world.commit(1)
    _submit(world, lambda: free_deleted(world.process.disk, PATH))
    world.commit(1)


def install(world: World) -> None:
    """A snapshot that ends after the log takes its place, and that of the older snapshots."""
    _install(world)
    world.lead()
    world.commit(2)


def _install(world: World) -> None:
    log, expected = world.process.metadata_log, world.expected[METADATA_DIRECTORY]
    assert log is not None
    fetched = SnapshotId(log.end_offset + GAP, world.epoch)
    older = list(world.snapshots)
    expected.cut_asked(0)
    expected.start_asked(fetched.offset)
    world.snapshots.clear()
    _write(world, fetched)
    metadata = world.process.metadata
    assert metadata is not None
    metadata.restart_at(fetched.offset, _nothing)
    expected.cut_done(0)
    expected.start_done(fetched.offset)
    _submit(world, lambda: set_deleted(world.process.disk, PATH, older))


def left_half_way(world: World, rng: random.Random) -> None:
    """A power cut after the snapshot has its name, and before the log was cut; a `.part` and a `.deleted` lie there."""
    take(world)
    log, expected = world.process.metadata_log, world.expected[METADATA_DIRECTORY]
    assert log is not None
    fetched = SnapshotId(log.end_offset + GAP, log.last_epoch)
    expected.cut_asked(0)
    expected.start_asked(fetched.offset)
    world.snapshots.clear()
    _write(world, fetched)
    unfinished = PartFile(world.process.disk, PATH, SnapshotId(fetched.offset + 5, world.epoch), UNIQUE)
    unfinished.create()
    unfinished.append(b"not a snapshot")
    world.process.disk.sync_directory(PATH)
    world.end(rng)


def left_empty(world: World, rng: random.Random) -> None:
    """A power cut after a snapshot took the place of the log, and before anything followed."""
    take(world)
    _install(world)
    world.end(rng)


def check_all(world: World) -> None:
    """Of logs and snapshots. Raises Violation."""
    check(world)
    problem = check_snapshots(world)
    require(not problem, "snapshot", problem)


def check_snapshots(world: World) -> str:
    """What is wrong after a start; "" if nothing is."""
    opened, log = world.process.snapshots, world.process.metadata_log
    if opened is None or log is None:
        return ""
    found = [one.id for one in opened.stored]
    if list(opened.damaged) != [damaged_name(one) for one in world.damaged]:
        return f"set aside: {opened.damaged}, damaged were {world.damaged}"
    lost = [one for one in world.snapshots if one not in found]
    if lost:
        return f"{lost} are gone, {found} are there"
    if log.start_offset and log.start_offset not in [one.offset for one in found]:
        return f"the log begins at {log.start_offset}, the snapshots are {found}"
    if any(one.offset > log.end_offset for one in found):
        return f"the log ends at {log.end_offset}, the snapshots are {found}"
    names = world.process.disk.list(PATH)
    left = [name for name in names if name.endswith((".part", ".checkpoint.deleted"))]
    world.snapshots = found
    return f"left over: {left}" if left else ""


def _at_end(world: World) -> SnapshotId:
    log = world.process.metadata_log
    assert log is not None
    return SnapshotId(log.end_offset, log.last_epoch)


def _write(world: World, snapshot: SnapshotId) -> None:
    part = PartFile(world.process.disk, PATH, snapshot, UNIQUE)
    encoder = SnapshotEncoder(SnapshotHeading(id=snapshot, last_contained_timestamp_ms=FIRST_MS))
    first = encoder.begin()

    def create() -> None:
        part.create()
        part.append(first)

    _submit(world, create)
    for number in range(PIECES):
        batch = encoder.values([b"value-%d" % number, b"." * 60])
        _submit(world, lambda batch=batch: part.append(batch))  # type: ignore[misc]
    last = encoder.end()
    _submit(world, lambda: part.append(last))
    _submit(world, part.freeze)
    world.snapshots.append(snapshot)


def _submit(world: World, change: Callable[[], object]) -> None:
    def told(outcome: Outcome) -> None:
        if outcome.error is not None:
            raise outcome.error

    world.process.metadata_directory.worker.submit(CallJob(change), told, told)


def _served(size: int, data: bytes) -> None:
    """A snapshot that cannot be read is not served: size -1. The follower is told."""
    if (size, data) == (-1, b""):
        raise DiskError(PATH, "read", errno.EIO)
    assert size > len(data) == 50


def _raise(error: Exception) -> None:
    raise error


def _nothing(_: object) -> None:
    pass

"""When a snapshot is taken that was asked for, because another one is lost. The real store on the simulated machine."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from jepsen.sim.machine.disk import SimDisk
from jepsen.sim.machine.worker import SimWorker
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import Scheduler
from quorumlog.records.rowwise.values import encode_values
from quorumlog.settings.metadata_log import NEVER, SnapshotConfig
from quorumlog_quorum.snapshot_service.snapshot_store import SnapshotStore
from quorumlog_quorum.snapshot_service.snapshot_taker import ASKED_AGAIN_MS, SnapshotTaker
from quorumlog_quorum.snapshots import SnapshotId, values_of
from quorumlog_quorum.snapshots.reader import snapshot_path
from quorumlog_storage.writer.writer import DirectoryWriter
from tests.rules import rule

DIRECTORY = "/data"
EPOCH, TIMESTAMP_MS = 3, 1_700_000_000_000
MS = 1_000_000  # of virtual nanoseconds


class Node:
    """A taker that no limit moves, and an image that holds the offsets before `applied`."""

    def __init__(self) -> None:
        self.scheduler, disk = Scheduler(1), SimDisk(latency=lambda _: MS)
        disk.make_directory(DIRECTORY)
        disk.sync_directory("/")
        self.disk = disk
        self.errors: list[Exception] = []
        self.loop = SimLoop(self.scheduler, "n")
        worker = SimWorker(disk, DirectoryWriter(DIRECTORY), self.loop.deliver_later)
        self.store = SnapshotStore(disk=disk, worker=worker, rng=random.Random(0), on_error=self.errors.append)
        self.image = 0
        self.in_batch = self.in_transaction = False
        self.taken: list[int] = []
        self.taker = SnapshotTaker(
            store=self.store,
            config=SnapshotConfig(bytes_between=NEVER, interval_ms=NEVER),
            clock=self,
            slices=self._slices,
            voters_at=lambda _: (None, None),
            applied=lambda: None if self.in_batch else self.image,
            on_taken=lambda snapshot: self.taken.append(snapshot.offset),
            on_error=self.errors.append,
        )

    def now_ms(self) -> int:
        return self.scheduler.now_ns // MS

    def wall_ms(self) -> int:
        return TIMESTAMP_MS

    def _slices(self) -> Iterator[list[bytes]] | None:
        assert not self.in_batch
        return None if self.in_transaction else iter([[b"image of %d" % self.image]])

    def deliver(self, end_offset: int) -> None:
        """One batch, and all of it is applied."""
        batch = encode_values([b"value"], end_offset - 1, EPOCH, TIMESTAMP_MS)

        def deliver() -> None:
            self.image, self.in_batch = end_offset, False
            self.taker.on_delivered(batch, end_offset)

        self.loop.deliver(deliver)
        self.run(1)

    def ask(self) -> None:
        self.loop.deliver(self.taker.ask)

    def lose(self, offset: int) -> None:
        self.store.set_aside(SnapshotId(offset, EPOCH), "a test")
        self.ask()

    def run(self, ms: int) -> None:
        self.scheduler.run_for(ms * MS)
        assert not self.errors

    def content(self, offset: int) -> list[bytes]:
        return list(values_of(self.disk.read_bytes(snapshot_path(DIRECTORY, SnapshotId(offset, EPOCH)))))


def test_at_once_between_two_batches() -> None:
    node = Node()
    node.deliver(7)
    node.ask()
    node.run(100)
    assert node.taken == [7] and node.content(7) == [b"image of 7"]


def test_in_the_middle_of_a_batch_at_its_end() -> None:
    node = Node()
    node.deliver(7)
    node.in_batch = True
    node.ask()
    node.run(100)
    assert node.taken == []
    node.deliver(8)
    node.run(100)
    assert node.taken == [8] and node.content(8) == [b"image of 8"]


@rule("kraft 5.35")
@pytest.mark.parametrize("delivered", [None, 7], ids=["nothing was delivered", "a snapshot was installed since"])
def test_only_where_the_end_of_the_image_is_known(delivered: int | None) -> None:
    """The epoch of the record before it is not known without that record."""
    node = Node()
    if delivered is not None:
        node.deliver(delivered)
    node.image = 50
    node.ask()
    node.run(100)
    assert node.taken == []
    node.deliver(51)
    node.run(100)
    assert node.taken == [51]


def test_one_that_is_under_way_will_do() -> None:
    node = Node()
    node.deliver(7)
    node.ask()
    node.scheduler.run_for(1)
    node.ask()
    node.deliver(8)
    node.run(100)
    node.deliver(9)
    node.run(100)
    assert node.taken == [7]


def test_the_same_id_once_more() -> None:
    node = Node()
    node.deliver(7)
    node.ask()
    node.run(ASKED_AGAIN_MS)
    node.lose(7)
    node.run(100)
    assert node.taken == [7, 7] and node.content(7) == [b"image of 7"]
    assert len([name for name in node.disk.list(DIRECTORY) if name.endswith(".damaged")]) == 1


def test_a_disk_that_damages_every_snapshot_is_not_filled_with_them() -> None:
    node = Node()
    for offset in range(1, 41):
        node.deliver(offset)
        for snapshot in node.store.stored:
            node.lose(snapshot.id.offset)
        node.ask()
        node.run(ASKED_AGAIN_MS // 10)
    assert len(node.taken) == 4, "of forty batches"


@rule("kraft 11.22")
def test_never_inside_a_metadata_transaction() -> None:
    """It stays due, and is taken at the end of the batch that ends the transaction."""
    node = Node()
    node.in_transaction = True
    node.deliver(1)
    node.ask()
    node.run(100)
    node.deliver(2)
    node.run(100)
    assert node.taken == []
    node.in_transaction = False
    node.deliver(3)
    node.run(100)
    assert node.taken == [3] and node.content(3) == [b"image of 3"]

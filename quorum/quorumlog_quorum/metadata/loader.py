"""From committed batches to published images (KIP-631): what a broker may know of the quorum.

The loader is a listener of the quorum's log (RaftListener), on voters and observers alike, and all others subscribe to
it. Rules of publication: in order; committed records only; never inside a batch; for the first time only when the local
log has caught up with the high watermark that was the first to be known: a broker must not act on an image of last
week. A record that cannot be replayed is raised to the driver, which stops the node: it must not act on half an image.

What is inside a metadata transaction is held back until its end (transactions.py). An image ends before a transaction
or after it, never inside.

A snapshot stands in place of the records before it (`on_snapshot`). It is built into an image beside the one in force;
subscribers are then told the difference, as if the records had been replayed.

Replay and publication are bounded by work. A step replays some hundred records; after some hundred the image is
published at the next end of a batch, in a step of its own. So a delta is as large as that, or as one batch. Only the
first publication, and that of a late subscriber, are the whole image, as a delta from the empty one. A subscriber
divides its own work into steps; nothing is published before they are done. Those that the driver does not take, of a
late subscriber for example, are taken one in each turn of the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from quorumlog.ids import NO_NODE, Epoch, NodeId, Offset
from quorumlog.messages.common import Endpoint, FeatureRange
from quorumlog.messages.metadata_records import BeginTransactionRecord, MetadataRecord, RemoveTopicRecord
from quorumlog.records import headers
from quorumlog.slices import Later, OneATurn, Rotation, Sliced
from quorumlog_quorum.metadata.batches import ReplayedTo, metadata_records
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.features import SUPPORTED
from quorumlog_quorum.metadata.image import EMPTY, Image
from quorumlog_quorum.metadata.image_diff import delta_between
from quorumlog_quorum.metadata.snapshot_records import ImageLoad
from quorumlog_quorum.metadata.transactions import HeldBack
from quorumlog_quorum.snapshots.codec import SnapshotHeading

MetadataListener = Callable[[Delta, Image], Sliced[None] | None]
OnRecord = Callable[[MetadataRecord, Offset, int, Delta], None]
"""With a record, its offset and time, and the metadata before it."""


@dataclass(frozen=True, slots=True)
class ActiveController:
    """The quorum's leader as far as this node knows; `endpoint` is its internal listener."""

    node_id: NodeId
    epoch: Epoch
    endpoint: Endpoint


UNKNOWN = -1  # the high watermark, before the first one is known
MAX_WORK_PER_STEP = 200  # records replayed, some 25 us each
MAX_RECORDS_PER_DELTA = 200
PARTITIONS_GONE_PER_RECORD = 8  # taking so many from the image costs as much as a record


class MetadataLoader:
    """A RaftListener, which must be the driver's first one, and what a broker knows of the quorum."""

    def __init__(self, supported: tuple[FeatureRange, ...] = SUPPORTED, later: Later | None = None) -> None:
        """supported: the levels of features that this node's software supports. later: see `OneATurn`."""
        self._supported = supported
        self._own = Rotation(is_fair=False)  # what the driver does not take, of late subscribers for example
        self._own_turns = OneATurn(self._own, later)
        self._image = EMPTY  # the newest published
        self._applied = EMPTY.offset  # of the newest image that every listener has applied
        self._pending = Delta(EMPTY)  # replayed since then
        self._held_back = HeldBack()
        self._unpublished = 0  # records replayed into it
        self._changes_before = 0  # of partitions, in all deltas before it
        self._changes_loading = 0  # partitions read from the snapshot that is being loaded
        self._replaying = False  # inside the steps of `on_committed`, or while a snapshot is put in force
        self._at = ReplayedTo(EMPTY.offset, EMPTY.epoch)  # the last whole batch
        self._high_watermark: Offset = UNKNOWN
        self._publish_from: Offset | None = None  # the high watermark that was known first
        self._active_controller: ActiveController | None = None
        self._listeners: list[MetadataListener] = []
        self._controller_callbacks: list[Callable[[], None]] = []
        self._waiting: dict[asyncio.Future[bool], Offset] = {}  # in the order in which they came
        self._progress_callbacks: list[Callable[[], None]] = []
        self.on_record: OnRecord | None = None  # hears of each committed record before it is replayed, not of snapshots

    # For readers.

    @property
    def image(self) -> Image:
        """The newest published image."""
        return self._image

    @property
    def committed_image(self) -> Image:
        """All that was delivered, published or not, but no part of an open transaction: what a new active controller
        starts from."""
        assert not self._replaying, "an image in the middle of a batch"
        return self._pending.apply(self._at.end_offset, self._at.epoch)

    @property
    def in_transaction(self) -> bool:
        """Whether what was delivered ends inside a metadata transaction."""
        return self._held_back.is_open

    @property
    def partition_changes(self) -> int:
        """How many partitions were new or changed in all deltas since the start, published or not."""
        return self._changes_before + self._pending.partition_changes + self._changes_loading

    @property
    def high_watermark(self) -> Offset:
        """Exclusive end of what the quorum has committed, as far as this node knows; -1: not known."""
        return self._high_watermark

    @property
    def active_controller(self) -> ActiveController | None:
        return self._active_controller

    def subscribe(self, listener: MetadataListener) -> None:
        """Call `listener` with each new image; at once with the whole image if there is one."""
        self._listeners.append(listener)
        if self._image is not EMPTY:
            self._take(self._give_all(listener, self._image))

    def _take(self, work: Sliced[None]) -> None:
        """The first slice now, unless others wait, and each other one in a turn of its own. An exception of a slice is
        that of the call that runs it."""
        waits = bool(self._own)
        self._own.add(work, lambda _: self._tell_waiting())
        if not waits:
            self._own.run_slice()
        self._own_turns.ask()

    @staticmethod
    def _give_all(listener: MetadataListener, image: Image) -> Sliced[None]:
        delta = yield from delta_between(EMPTY, image)
        yield from listener(delta, image) or ()

    def on_controller_change(self, callback: Callable[[], None]) -> None:
        """Call back each time `active_controller` changes."""
        self._controller_callbacks.append(callback)

    def on_progress(self, callback: Callable[[], None]) -> None:
        """Call back after each step of a replay; `partition_changes` may have grown."""
        self._progress_callbacks.append(callback)

    async def wait_for_offset(self, offset: Offset, timeout_ms: int) -> bool:
        """True once all listeners have applied an image with `image.offset >= offset`; False at the time-out."""
        if self._applied >= offset and not self._own:
            return True
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()
        timer = loop.call_later(timeout_ms / 1000, _answer, future, False)
        self._waiting[future] = offset
        try:
            return await future
        finally:
            timer.cancel()
            del self._waiting[future]

    # Calls by the quorum (RaftListener).

    def on_committed(self, batches: bytes, end_offset: Offset) -> Sliced[None]:
        """Raises CorruptRecords, BadRecord, ReplayError and UnsupportedMetadata: this node must not go on."""
        for _ in self._replay(batches, end_offset):
            self._tell_progress()
            yield
        self._tell_progress()

    def _tell_progress(self) -> None:
        for callback in self._progress_callbacks:
            callback()

    def _replay(self, batches: bytes, end_offset: Offset) -> Sliced[None]:
        assert not self._replaying, "the steps of the last call are not all done"
        yield from self._own.rest()  # none of them publishes in the middle of a batch
        self._replaying = True
        work = 0
        for header in headers(batches):
            records = metadata_records(batches, header, self._at.end_offset, self._pending, self._supported)
            for place, record in enumerate(records, header.base_offset):
                if isinstance(record, BeginTransactionRecord):
                    yield from self._publish()  # what is before it does not wait for its end
                for offset, ready in self._held_back.take(record, place, header):
                    if work >= MAX_WORK_PER_STEP:
                        yield
                        work = 0
                    work += self._work_of(ready)
                    self._pending.next_offset = offset
                    if self.on_record is not None:
                        self.on_record(ready, offset, header.max_timestamp, self._pending)
                    self._pending.replay(ready)
                if self._held_back.is_open:
                    work += 1
                    if work >= MAX_WORK_PER_STEP:
                        yield
                        work = 0
            self._at = ReplayedTo(header.next_offset, header.leader_epoch)
            self._unpublished += header.count
            if self._unpublished >= MAX_RECORDS_PER_DELTA and self._is_publishable:
                yield
                yield from self._publish()
                yield
                work = 0
        assert self._at.end_offset == end_offset, f"{self._at.end_offset} != {end_offset}"
        if self._is_publishable:
            yield from self._publish()
        self._replaying = False

    def on_snapshot(self, heading: SnapshotHeading) -> ImageLoad:
        """The snapshot takes the place of all that was delivered; it must not be older."""
        at = ReplayedTo(heading.id.offset, heading.id.epoch)

        def on_progress(partitions: int) -> None:
            self._changes_loading = partitions
            self._tell_progress()

        self._changes_before += self._changes_loading  # of an earlier load that was dropped
        self._changes_loading = 0
        return ImageLoad(lambda whole: self._install(whole, at), on_progress, self._supported)

    def _install(self, whole: Delta, at: ReplayedTo) -> Sliced[None]:
        """whole: from the empty image to that of the snapshot. Nothing is replayed meanwhile."""
        assert not self._replaying, "the steps of the last call are not all done"
        assert at.end_offset >= self._at.end_offset, f"a snapshot at {at.end_offset}, {self._at.end_offset} is there"
        yield from self._own.rest()
        self._replaying = True
        pending = whole
        if self._image is not EMPTY:
            pending = yield from delta_between(self._image, whole.apply(at.end_offset, at.epoch))
        pending.next_offset = at.end_offset
        self._changes_before = self.partition_changes - pending.partition_changes  # their sum does not fall
        self._changes_loading = 0
        self._pending, self._at, self._held_back = pending, at, HeldBack()  # no snapshot ends inside a transaction
        if self._is_publishable:
            yield
            yield from self._publish()
        self._replaying = False
        self._tell_progress()

    def on_high_watermark(self, high_watermark: Offset) -> None:
        if self._publish_from is None and high_watermark >= 0:
            self._publish_from = high_watermark
        self._high_watermark = max(self._high_watermark, high_watermark)
        if self._is_publishable and not self._replaying:
            self._take(self._publish_now())

    def on_leader_change(self, leader_id: NodeId, epoch: Epoch, endpoint: Endpoint | None) -> None:
        known = leader_id != NO_NODE and endpoint is not None
        leader = ActiveController(leader_id, epoch, endpoint) if known and endpoint is not None else None
        if leader == self._active_controller:
            return
        self._active_controller = leader
        for callback in tuple(self._controller_callbacks):
            callback()

    def on_hand_over(self, epoch: Epoch) -> None:
        """Nothing to do: the controller stops taking requests."""

    def on_claim(self, epoch: Epoch, end_offset: Offset) -> None:
        """Of no interest here."""

    def on_resign(self, epoch: Epoch) -> None:
        """Of no interest here: what was committed stays committed."""

    def _work_of(self, record: MetadataRecord) -> int:
        """The work to replay it, in records: deleting a topic removes all its partitions."""
        if isinstance(record, RemoveTopicRecord):
            topic = self._image.topics.get(record.topic_id)
            return 1 if topic is None else 1 + len(topic.partitions) // PARTITIONS_GONE_PER_RECORD
        return 1

    @property
    def _caught_up(self) -> bool:
        return self._publish_from is not None and self._at.end_offset >= self._publish_from

    @property
    def _is_publishable(self) -> bool:
        """Asked between batches only: readers of images see the whole of a batch or transaction, or nothing."""
        return self._caught_up and not self._held_back.is_open and self._at.end_offset != self._image.offset

    def _publish(self) -> Sliced[None]:
        yield from self._own.rest()
        yield from self._publish_now()

    def _publish_now(self) -> Sliced[None]:
        if not self._is_publishable:
            return
        delta = self._pending
        self._image = delta.apply(self._at.end_offset, self._at.epoch)
        self._changes_before += delta.partition_changes
        self._pending = Delta(self._image)
        self._unpublished = 0
        for listener in tuple(self._listeners):
            yield from listener(delta, self._image) or ()
        self._applied = self._image.offset
        self._tell_waiting()

    def _tell_waiting(self) -> None:
        if self._own:
            return
        for future, offset in self._waiting.items():
            if offset <= self._applied:
                _answer(future, True)


def _answer(future: asyncio.Future[bool], reached: bool) -> None:
    if not future.done():
        future.set_result(reached)

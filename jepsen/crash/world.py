"""A machine with one node: its processes, one after the other, and what each of its logs must hold.

Every operation notes what it asks for before it begins, and what is acknowledged once it has returned.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from jepsen.crash.expected import Expected, payload
from jepsen.crash.process import DATA, Process, config_of
from jepsen.sim.machine.disk import SimDisk
from quorumlog.ids import Epoch, Offset, Uuid
from quorumlog.records import Record, encode_batch, headers
from quorumlog_quorum.disk.metadata_log import METADATA_DIRECTORY, METADATA_PARTITION
from quorumlog_quorum.raft import AppendLeaderChange, AppendValues, QuorumState, VoterKey
from quorumlog_storage.directory.directory import format_directory
from quorumlog_storage.directory.log_checkpoints import checkpoint_high_watermarks, checkpoint_logs
from quorumlog_storage.directory.meta_properties import MetaProperties
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_errors import LogUnreadable
from quorumlog_storage.retention.expiry import Candidate, Planned, find_expired, note_starts, retire_expired
from quorumlog_storage.retention.policy import Policy
from quorumlog_storage.rules.fetch_rule import SnapshotId
from quorumlog_storage.segment.batch import StoredBatch, stamped_batches
from quorumlog_storage.segment.retired import Freeing
from quorumlog_storage.writer.directory_life import DirectoryOffline
from quorumlog_storage.writer.writer import AppendJob

SECTOR_BYTES = 48  # smaller than a batch, so that a power cut tears batches
BATCH_RECORDS = 3
FIRST_MS = 1_700_000_000_000
LONG_MS = 86_400_000
PRODUCER_ID = 7
BROKER_EPOCH = 5
UNIQUE = bytes([9]) * 16
META = MetaProperties("crash-sweep", 1, bytes([4]) * 16)


def topic_id(number: int) -> Uuid:
    return bytes([number]) * 16


class World:
    """known: topic ids by topic, as the metadata of the next process has them."""

    def __init__(self) -> None:
        self.disk = SimDisk(sector_bytes=SECTOR_BYTES)
        self.known: dict[str, Uuid] = {}
        self.expected: dict[str, Expected] = {METADATA_DIRECTORY: Expected("meta")}  # by topic, of its present id
        self.quorum_states = [QuorumState()]  # the last one that is acknowledged, and one that was asked for after it
        self.epoch: Epoch = 1
        self.snapshots: list[SnapshotId] = []  # of the metadata log, acknowledged
        self.damaged: list[SnapshotId] = []  # of the metadata log; to be set aside by the next start
        self.formatted: dict[str, Uuid] = {}  # directory ids by path, as they were told
        self.found: dict[str, Uuid] = {}  # as the present process found them
        self.process = Process(self.disk)

    def format(self) -> None:
        format_directory(self.disk, DATA, META)

    def know(self, topic: str, number: int) -> None:
        """The metadata has a topic, perhaps anew under its name."""
        self.known[topic] = topic_id(number)
        self.expected[topic] = Expected(f"{topic}{number}")

    # --- processes ---

    def open(self) -> None:
        """A leader of a later process writes in a later epoch."""
        self.process.open(self.known)

    def end(self, power_cut: random.Random | None, survives: str | None = None) -> None:
        """The process ends, and another one can begin. power_cut: decides what is left of what was not synced.

        survives: see `DirectoryNode.power_cut`.
        """
        self.process.disk.end()
        if power_cut is None:
            self.disk.kill()
        else:
            self.disk.crash(power_cut, survives)
        self.process = Process(self.disk)
        self.epoch += 10

    # --- partitions ---

    def held(self, topic: str) -> PartitionLog:
        return self.process.logs[topic]

    def log(self, topic: str) -> Log:
        return self.held(topic).log

    def batches(self, topic: str, count: int, base: Offset | None = None) -> list[StoredBatch]:
        """The next ones of a topic, or those from `base` on; noted as sent."""
        made = []
        at = self.log(topic).end_offset if base is None else base
        for _ in range(count):
            made.append(_batch(self.expected[topic].tag, at, self.epoch))
            self.expected[topic].sent(at, BATCH_RECORDS, self.epoch)
            at += BATCH_RECORDS
        return made

    def append(self, counts: dict[str, int], *, batches_a_job: int = 1) -> None:
        """One turn that appends so many batches to each topic."""
        jobs = []
        for topic, count in counts.items():
            made = self.batches(topic, count)
            log = self.log(topic)
            jobs += [AppendJob(log, made[at : at + batches_a_job]) for at in range(0, count, batches_a_job)]
        self.process.turn(jobs)
        for job in jobs:
            self._acknowledge(job.log, job.batches)

    def append_unsynced(self, topic: str, count: int) -> None:
        """As the write phase of a turn leaves it, whose sync has not begun. Nothing is acknowledged."""
        self.log(topic).append(self.batches(topic, count))

    def _acknowledge(self, log: Log, batches: Sequence[StoredBatch]) -> None:
        topic = next(topic for topic, held in self.process.logs.items() if held.log is log)
        for batch in batches:
            self.expected[topic].acknowledged(batch.base_offset, BATCH_RECORDS, batch.leader_epoch)

    def begin_epoch(self, topic: str) -> None:
        self.epoch += 1
        log = self.log(topic)
        self.process.call(lambda: log.begin_epoch(self.epoch))

    def truncate(self, topic: str, offset: Offset) -> None:
        expected, held = self.expected[topic], self.held(topic)
        cut = max(held.log.start_offset, offset // BATCH_RECORDS * BATCH_RECORDS)
        expected.cut_asked(cut)
        end = self.process.call(lambda: held.truncate_to(offset))
        expected.cut_done(end)

    def raise_start(self, topic: str, offset: Offset) -> None:
        expected, held = self.expected[topic], self.held(topic)
        expected.start_asked(offset)
        self.process.call(lambda: held.raise_start(offset))
        expected.start_done(offset)

    def expire(self, topic: str, before: Offset) -> None:
        """A pass of retention that lets every segment go that ends at or before an offset, one segment at a time."""
        expected = self.expected[topic]
        for one in self.note_expired(topic, before, is_final=False):
            while not self.process.call(lambda one=one: retire_expired(one, max_segments=1)):  # type: ignore[misc]
                pass
            expected.start_done(one.start)

    def note_expired(self, topic: str, before: Offset, *, is_final: bool = True) -> list[Planned]:
        """The start of such a pass: the new start is noted, and what lies before it is gone for the next process.

        is_final: this process does not go on with the pass.
        """
        expected, held, partitions = self.expected[topic], self.held(topic), self.process.partitions
        planned = find_expired([Candidate(held, Policy(retention_ms=0), before)], FIRST_MS + LONG_MS)
        for one in planned:
            expected.start_asked(one.start)
        self.process.call(lambda: note_starts(partitions, planned))
        if is_final:
            for one in planned:
                expected.start_done(one.start)
        return planned

    def free_retired(self, step_bytes: int) -> None:
        """What has left the logs, as the removals free it, beside the writer."""
        freeing = Freeing(self.process.disk, self.process.partitions.retired.take())
        while not freeing.free(step_bytes):
            pass

    def restart_at(self, topic: str, offset: Offset) -> None:
        expected, held = self.expected[topic], self.held(topic)
        expected.cut_asked(0)
        expected.start_asked(offset)
        self.process.call(lambda: held.restart_at(offset))
        expected.cut_done(0)
        expected.start_done(offset)

    def begin_inside(self, topic: str) -> None:
        """The first copy of a log that starts in the middle of a batch."""
        held = self.held(topic)
        start = held.log.start_offset
        base = start // BATCH_RECORDS * BATCH_RECORDS
        made = self.batches(topic, 2, base)
        self.expected[topic].is_copy = True
        self.process.call(lambda: held.begin_inside(made))
        self.expected[topic].acknowledged(start, base + 2 * BATCH_RECORDS - start, self.epoch)

    def checkpoint(self, marks: dict[str, Offset]) -> None:
        """Of all topics. marks: high watermarks."""
        held, partitions = self.process.logs, self.process.partitions

        def note() -> None:
            checkpoint_high_watermarks(partitions, {held[topic]: mark for topic, mark in marks.items()})
            checkpoint_logs(partitions, held.values())

        self.process.call(note)

    # --- whole partitions ---

    def create(self, topic: str, number: int) -> None:
        self.know(topic, number)
        process = self.process
        process.logs[topic] = process.call(
            lambda: PartitionLog.open_or_create(process.partitions, (topic, 0), self.known[topic], config_of(topic))
        )

    def delete(self, topic: str, successor: int) -> str:
        """The metadata has the topic's successor already. Returns the name of what is to be freed."""
        held = self.process.logs.pop(topic)
        self.know(topic, successor)
        return self.process.call(lambda: held.delete(UNIQUE))

    def set_aside(self, topic: str) -> None:
        """A damaged log: the next copy begins at nothing, for the same topic id."""
        expected, held = self.expected[topic], self.held(topic)
        expected.cut_asked(0)
        self.process.call(lambda: held.set_aside(UNIQUE))
        expected.cut_done(0)
        expected.start_at_least = expected.start_at_most = 0
        del self.process.logs[topic]

    def free(self, name: str, step_bytes: int) -> None:
        partitions = self.process.partitions
        while not self.process.call(lambda: partitions.free(name, step_bytes)):
            pass

    def stop(self) -> None:
        """As a node that is told to: logs, then checkpoints, then the marker."""
        process = self.process
        logs = list(process.logs.values())
        for held in logs:
            process.call(held.close)
        process.call(lambda: checkpoint_logs(process.partitions, logs))
        assert process.metadata is not None
        process.metadata.close(_raise_error)
        if process.generation.failure is None:
            process.directory.close(BROKER_EPOCH)

    # --- the metadata log ---

    def lead(self) -> None:
        """The control record that begins an epoch. A node that leads has voted for itself, durably."""
        self.vote(1)
        log, at = self._metadata_log(), self._metadata_log().end_offset
        expected = self.expected[METADATA_DIRECTORY]
        expected.sent(at, 1, self.epoch)
        change = AppendLeaderChange(at, self.epoch, 1, (1, 2, 3), (1, 2))
        assert self.process.metadata is not None and log.end_offset == at
        self.process.metadata.append(change, FIRST_MS, _nothing, lambda _: expected.acknowledged(at, 1, self.epoch))

    def commit(self, batches: int) -> None:
        expected, log = self.expected[METADATA_DIRECTORY], self._metadata_log()
        assert self.process.metadata is not None
        if self.quorum_states == [QuorumState()]:
            self._persist(1)  # no record is written before the node knows its epoch durably
        for _ in range(batches):
            at, epoch = log.end_offset, self.epoch
            values = [payload(expected.tag, at + n, epoch) for n in range(BATCH_RECORDS)]
            expected.sent(at, BATCH_RECORDS, epoch)
            self.process.metadata.append(
                AppendValues(at, epoch, values),
                FIRST_MS,
                _nothing,
                lambda _, at=at, epoch=epoch: expected.acknowledged(at, BATCH_RECORDS, epoch),  # type: ignore[misc]
            )

    def truncate_metadata(self, offset: Offset) -> None:
        expected = self.expected[METADATA_DIRECTORY]
        expected.cut_asked(offset)
        assert self.process.metadata is not None
        self.process.metadata.truncate_to(offset, expected.cut_done)

    def vote(self, voted_for: int) -> None:
        self.epoch += 1
        self._persist(voted_for)

    def _persist(self, voted_for: int) -> None:
        state = QuorumState(epoch=self.epoch, voted=VoterKey(voted_for, topic_id(voted_for)))
        self.quorum_states = [self.quorum_states[0], state]

        def told(outcome: object) -> None:
            _raise_error(outcome)
            self.quorum_states = [state]

        self.process.metadata_directory.persist(state, told)

    def _metadata_log(self) -> Log:
        assert self.process.metadata_log is not None
        return self.process.metadata_log


def partition_of(topic: str) -> tuple[str, int]:
    """The line of a log in its offset file."""
    return METADATA_PARTITION if topic == METADATA_DIRECTORY else (topic, 0)


def _batch(tag: str, base: Offset, epoch: Epoch) -> StoredBatch:
    """The sequences of its producer are its offsets."""
    records = [
        Record(number, FIRST_MS + base + number, None, payload(tag, base + number, epoch), ())
        for number in range(BATCH_RECORDS)
    ]
    data = encode_batch(records, producer_id=PRODUCER_ID, producer_epoch=0, base_sequence=base)
    (made,) = stamped_batches(data, headers(data), base, epoch)
    return made


def _nothing(_: Offset) -> None:
    pass


def _raise_error(outcome: object) -> None:
    error = getattr(outcome, "error", None)
    if error is not None:
        assert isinstance(error, DirectoryOffline | LogUnreadable | DiskError), error
        raise error

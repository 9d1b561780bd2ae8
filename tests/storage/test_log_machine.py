"""A partition's log against a list: whatever is done to it, and wherever the power goes, it is what the list says.

After a crash the log is a prefix of everything that was ever in it, at least as long as what was synced, without a
record that nobody wrote. Its start is exactly where it was raised to. After a kill nothing is missing. Damaged indexes
and snapshots of producers change nothing: they are caches.

The offsets of a follower may leave gaps, as large as a segment can hold and larger.

Rounds of compaction go over closed segments. A record that gave way to a later one of its key stays gone, and no crash
takes both.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from itertools import pairwise

from cleaning_samples import batches, run_round, slots
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from log_model import REMEMBERED, LogModel, ModelBatch
from storage_samples import PATH, disk_with_data, read_all

from jepsen.sim.machine.disk import file_at
from jepsen.sim.machine.disk_faults import PowerCut, PowerLost, faults_at
from jepsen.sim.machine.page_cache import FileNode
from quorumlog.ids import Epoch, Offset
from quorumlog.records import decode_batch, headers
from quorumlog_storage.directory.log_checkpoints import checkpoint_logs
from quorumlog_storage.directory.offset_files import RECOVERY_POINTS, parse_offsets
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_errors import LogUnreadable, UnexpectedAppend
from quorumlog_storage.retention.expiry import Candidate, Planned, find_expired, note_starts, retire_expired
from quorumlog_storage.retention.policy import Policy
from quorumlog_storage.rules.epochs import CHECKPOINT_NAME, EpochStart, LeaderEpochCache
from quorumlog_storage.segment.log_config import LogConfig
from quorumlog_storage.segment.offset_index import MAX_RELATIVE_OFFSET
from tests import rules
from tests.parts import few

TOPIC_ID = bytes([1]) * 16
PARTITION = ("t", 0)
EPOCHS_PATH, POINTS_PATH = f"{PATH}/{CHECKPOINT_NAME}", f"/data/{RECOVERY_POINTS}"
TOO_LATE_MS = 1_800_000_000_000  # after every record
GAPS = (1, 40, 1 << 30, (1 << 31) - 3, (1 << 31) - 2, (1 << 31) - 1, 1 << 31, 1 << 33)
DAMAGES = ("removed", "cut", "bit flipped", "zeroes", "appended")
sizes_of_batches = st.lists(st.integers(1, 5), min_size=1, max_size=6)
seeds = st.integers(0, 1 << 30)
places = st.integers(0, 14)  # operation of the disk at which the power goes
places_in_a_round = st.integers(0, 60)


@rules.rule("storage 1.2", "log 2.7", "log 2.8", "log 2.9", "log 7.11")
class LogAgainstList(RuleBasedStateMachine):
    """`model`: what the log must be. `written`: numbers the batches, so that no two are equal."""

    @initialize(segment_bytes=st.integers(256, 900), interval=st.sampled_from([1, 90, 400]), durable=st.booleans())
    def begin(self, segment_bytes: int, interval: int, durable: bool) -> None:
        self.disk = disk_with_data()
        self.config = LogConfig(
            segment_bytes=segment_bytes, index_interval_bytes=interval, durable=durable, remembers_producers=True
        )
        self.directories = PartitionDirectories(self.disk, "/data")
        self.held = PartitionLog.create(self.directories, PARTITION, TOPIC_ID, self.config)
        self.model = LogModel()
        self.epoch: Epoch = 1
        self.written = 0
        self.sequences: dict[int, int] = {}
        self.cleanable: Offset = 0  # compaction has looked at what lies before it

    @property
    def log(self) -> Log:
        return self.held.log

    def reopen(self, *, clean: bool = False) -> None:
        self.directories = PartitionDirectories(self.disk, "/data", clean)
        self.held = PartitionLog.open(self.directories, PARTITION, TOPIC_ID, self.config)
        assert not self.held.lost_before, "no synced record was ever lost"

    # --- operations ---

    def new_batches(self, sizes: list[int], producer: int, gap: int = 0) -> list[ModelBatch]:
        made, base = [], self.model.end + gap
        for size in sizes:
            self.written += 1
            sequence = self.sequences.get(producer, 0)
            self.sequences[producer] = sequence + size
            values = tuple(b"%d/%d" % (self.written, n) for n in range(size))
            made.append(ModelBatch(base, self.epoch, values, producer, sequence if producer >= 0 else -1))
            base += size
        return made

    def _append(self, made: list[ModelBatch]) -> None:
        self.log.append([batch.stored() for batch in made], gaps=True)
        self.model = self.model.appended(made)
        if self.config.durable and len(self.log.segment_bases) > 1:  # the old segment was synced before the new one
            self.model.synced = max(self.model.synced, self.log.synced_end)

    def _sync(self) -> None:
        self.log.sync()
        self.model.synced = self.model.end

    def _sync_if_asked(self) -> None:
        if self.config.durable:
            self.model.synced = self.model.end

    @rule(sizes=sizes_of_batches, producer=st.sampled_from([-1, 1, 2]))
    def append(self, sizes: list[int], producer: int) -> None:
        self._append(self.new_batches(sizes, producer))

    @rule(count=st.integers(6, 10))
    def append_many(self, count: int) -> None:
        """Several segments of them."""
        for _ in range(count):
            self._append(self.new_batches([2], 2))

    @rule(gap=st.sampled_from(GAPS), size=st.integers(1, 3))
    def append_after_a_gap(self, gap: int, size: int) -> None:
        """As a follower does, whose leader's log was compacted."""
        if self.model.begun is not None:
            self.follow()
        before = (self.log.end_offset, self.log.segment_bases)
        made = self.new_batches([size], -1, gap)
        if made[0].end - 1 - self.model.end <= MAX_RELATIVE_OFFSET:
            self._append(made)
            return
        try:
            self._append(made)
        except UnexpectedAppend:
            assert (self.log.end_offset, self.log.segment_bases) == before
        else:
            raise AssertionError("no segment can hold these offsets")

    @rule()
    def sync(self) -> None:
        self._sync()
        assert not self.log.unsynced

    @rule()
    def checkpoint(self) -> None:
        checkpoint_logs(self.directories, [self.held])
        points = parse_offsets(POINTS_PATH, self._durable(POINTS_PATH))
        assert points == {PARTITION: self.model.synced}, "the recovery point is not on the disk"

    @rule(step=st.integers(1, 3))
    def lead(self, step: int) -> None:
        self.epoch += step
        begins = self.held.lead(self.epoch)
        assert begins == self.model.end
        self.model.begun = EpochStart(self.epoch, self.model.end)
        self._sync_if_asked()  # its note may wait for its first record

    @rule()
    def lead_again(self) -> None:
        """In the epoch of the last record, as after an answer that came twice."""
        if self.model.last_epoch < 0:
            return
        begins = self.held.lead(self.model.last_epoch)
        assert begins == self.log.epochs.entries[-1].start_offset
        self._sync_if_asked()

    @rule()
    def follow(self) -> None:
        self.held.follow()
        self.model = self.model.truncated(self.model.end)
        self._sync_if_asked()
        self.epoch += 1

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = self._cut(data)
        self.model = self.model.truncated(offset)
        end = self.held.truncate_to(offset)
        assert end == self.model.end
        self.epoch += 1  # an (offset, epoch) is never assigned twice

    @rule(data=st.data())
    def raise_start(self, data: st.DataObject) -> None:
        offset = self._offset(data)
        assert self.held.raise_start(offset) == offset
        self._started_at(offset)

    @rule(which=st.integers(1, 20))
    def delete_whole_segments(self, which: int) -> None:
        """As retention does; then the checkpoints come round. The start needs no line once the removal is durable."""
        bases = [base for base in self.log.segment_bases if base >= self.model.start]
        if bases:
            self._sync()
            self.held.raise_start(bases[which % len(bases)])
            self._started_at(bases[which % len(bases)])
            self.checkpoint()

    @rule()
    def roll(self) -> None:
        is_due = self.model.end > self.log.segment_bases[-1]
        before = self.log.segment_bases
        self.log.roll()
        assert self.log.segment_bases == ((*before, self.model.end) if is_due else before)
        self._rolled()

    def _rolled(self) -> None:
        if self.config.durable and len(self.log.segment_bases) > 1:  # the old segment was synced before the new one
            self.model.synced = max(self.model.synced, self.log.synced_end)

    @rule(data=st.data(), segments=st.integers(1, 3))
    def expire(self, data: st.DataObject, segments: int) -> None:
        """Every record is too old; retention takes whole segments below a high watermark, a few at a time."""
        mark = self._offset(data)
        for planned in self._expired(mark):
            assert self.model.start <= planned.start <= mark
            assert planned.start in (*self.log.segment_bases, self.model.end)
            self._retire(planned, segments)
            self._started_at(planned.start)
            self._rolled()

    @rule(keys=st.integers(1, 8), segment_bytes=st.sampled_from([300, 900, 5_000]))
    def compact(self, keys: int, segment_bytes: int) -> None:
        """One round, whose map has room for so many keys."""
        first_dirty = self._first_dirty()
        until = self._round(first_dirty, keys, segment_bytes)
        if until == first_dirty:
            return
        there = {header.base_offset: header.count for _, header in batches(self.log)}
        self.model = self.model.compacted(first_dirty, until, there)
        bases = self.log.segment_bases
        lasts = {offset for producer in (1, 2) for _, offset in self.model.of_producer(producer)[-1:]}
        for batch in self.model.batches:
            if batch.base >= max(self.model.start, bases[0]):
                left = len(batch.values) - len(batch.gone)
                assert there.get(batch.base, 0) == left
                has_a_reason = left or batch.end - 1 in lasts or batch.end in bases
                assert has_a_reason or batch.has_left, f"the batch at {batch.base} is empty and stays"

    def _first_dirty(self) -> Offset:
        noted = self.held.first_dirty
        return noted if self.log.start_offset <= noted <= self.log.end_offset else self.log.start_offset

    def _round(self, first_dirty: Offset, keys: int, segment_bytes: int) -> Offset:
        """Returns where the next one goes on."""
        self.cleanable = self.log.segment_bases[-1]
        done = run_round(self.log, first_dirty, map_bytes=slots(keys), load_factor=1.0, segment_bytes=segment_bytes)
        self.held.note_cleaned(done.first_dirty)
        return done.first_dirty

    def _expired(self, mark: Offset) -> list[Planned]:
        return find_expired([Candidate(self.held, Policy(retention_ms=0), mark)], TOO_LATE_MS)

    def _retire(self, planned: Planned, segments: int) -> None:
        note_starts(self.directories, [planned])
        while not retire_expired(planned, max_segments=segments):
            pass

    @rule(ahead=st.integers(0, 50))
    def restart(self, ahead: int) -> None:
        self.model = self.model.restarted(self.model.end + ahead)
        self.held.restart_at(self.model.start)
        self.epoch += 1

    @rule(data=st.data(), max_bytes=st.integers(1, 1000))
    def read(self, data: st.DataObject, max_bytes: int) -> None:
        """From any offset, below any bound."""
        offset, bound = self._offset(data), self._offset(data)
        found = [batch.base_offset for batch in headers(self.log.read(offset, max_bytes, upper_bound=bound))]
        wanted = [batch.base for batch in self.model.read(offset, bound)]
        assert found == wanted[: len(found)] and bool(found) == bool(wanted)

    def _cut(self, data: st.DataObject) -> Offset:
        """Where a follower may cut: compaction cleans what is committed only, and that is never cut."""
        return self._offset(data, min(self.cleanable, self.model.end))

    def _offset(self, data: st.DataObject, least: Offset = 0) -> Offset:
        """One that the log serves: near one of its batches, because gaps are wide."""
        batches = [batch for batch in self.model.batches if batch.end > self.model.start]
        near = [offset for batch in batches for offset in range(batch.base, batch.end + 1)]
        served = sorted({self.model.start, self.model.end, *(o for o in near if o >= self.model.start)})
        return data.draw(st.sampled_from([offset for offset in served if offset >= least]))

    def _started_at(self, offset: Offset) -> None:
        self.model.start = offset
        if offset > self.model.synced:  # a synced end below the start would make a recovery point wrong
            self.model.synced = self.model.end

    # --- the end of a process ---

    @rule(data=st.data(), damage=st.sampled_from(DAMAGES), which=st.sampled_from([".index", ".snapshot"]))
    def close_and_open(self, data: st.DataObject, damage: str, which: str) -> None:
        """Caches that lie on the disk meanwhile may be damaged."""
        self.held.close()
        checkpoint_logs(self.directories, [self.held])
        self.disk.kill()
        for name in self._files(which):
            if data.draw(st.booleans()):
                self._damage(name, damage, data.draw(st.integers(0, 1000)))
        self.model.synced, self.model.begun = self.model.end, None
        self.reopen(clean=True)

    @rule()
    def kill(self) -> None:
        """The process dies, the machine does not: nothing written is lost."""
        self.disk.kill()
        self.model.synced, self.model.begun = self.model.end, None
        self.reopen()

    @rule(seed=seeds)
    def crash(self, seed: int) -> None:
        self._after_crash(seed, self.model, [self.model.start])

    @rule(seed=seeds, at=places, sizes=sizes_of_batches)
    def crash_in_append_and_sync(self, seed: int, at: int, sizes: list[int]) -> None:
        made = self.new_batches(sizes, 1)
        longest = self.model.appended(made)

        def work() -> None:
            self._append(made)
            self._sync()

        self._crash_in(work, at, seed, longest, [longest.start])

    @rule(seed=seeds, at=places, data=st.data())
    def crash_in_truncate(self, seed: int, at: int, data: st.DataObject) -> None:
        offset = self._cut(data)
        after = self.model.truncated(offset)
        longest = self.model.being_truncated(after.end)
        longest.synced = min(longest.synced, after.end)
        self._crash_in(lambda: self.held.truncate_to(offset), at, seed, longest, [longest.start])

    @rule(seed=seeds, at=places, data=st.data())
    def crash_in_raise_start(self, seed: int, at: int, data: st.DataObject) -> None:
        offset = self._offset(data)
        self._crash_in(lambda: self.held.raise_start(offset), at, seed, self.model, [self.model.start, offset])

    @rule(seed=seeds, at=places)
    def crash_in_roll(self, seed: int, at: int) -> None:
        self._crash_in(self.log.roll, at, seed, self.model, [self.model.start])

    @rule(seed=seeds, at=places, data=st.data())
    def crash_in_expire(self, seed: int, at: int, data: st.DataObject) -> None:
        for planned in self._expired(self._offset(data)):
            work = partial(self._retire, planned, 1)
            self._crash_in(work, at, seed, self.model, [self.model.start, planned.start])

    @rule(seed=seeds, at=places_in_a_round, keys=st.integers(1, 8), segment_bytes=st.sampled_from([300, 900, 5_000]))
    def crash_in_compact(self, seed: int, at: int, keys: int, segment_bytes: int) -> None:
        before, work = self.model, partial(self._round, self._first_dirty(), keys, segment_bytes)
        self._crash_in(work, at, seed, before, [before.start])
        there = {
            header.base_offset: {record.offset for record in decode_batch(data, header)}
            for data, header in batches(self.log)
        }
        self.model = self.model.with_what_is_left(there)

    @rule(seed=seeds, at=places)
    def crash_in_checkpoint(self, seed: int, at: int) -> None:
        work = lambda: checkpoint_logs(self.directories, [self.held])  # noqa: E731
        self._crash_in(work, at, seed, self.model, [self.model.start])

    @rule(seed=seeds, at=places)
    def crash_in_lead(self, seed: int, at: int) -> None:
        self.epoch += 1
        self._crash_in(lambda: self.held.lead(self.epoch), at, seed, self.model, [self.model.start])

    @rule(seed=seeds, at=places)
    def crash_in_recovery(self, seed: int, at: int) -> None:
        self.disk.crash(random.Random(seed))
        self._crash_in(self.reopen, at, seed + 1, self.model, [self.model.start])

    def _crash_in(
        self, work: Callable[[], object], at: int, seed: int, longest: LogModel, starts: list[Offset]
    ) -> None:
        """The power goes at the disk's operation `at` of this work, or after it."""
        self.disk.faults = faults_at({self.disk.operations + at: PowerCut(written=seed % 200)})
        try:
            work()
        except PowerLost:
            pass
        self.disk.faults = faults_at({})
        self._after_crash(seed, longest, starts)

    def _after_crash(self, seed: int, longest: LogModel, starts: list[Offset]) -> None:
        self.disk.crash(random.Random(seed))
        self.reopen()
        assert self.log.start_offset in starts, (self.log.start_offset, starts)
        longest.start = self.log.start_offset
        floor = max(longest.synced, longest.start)
        assert floor <= self.log.end_offset <= max(longest.end, longest.start), (floor, self.log.end_offset)
        self.model = longest.cut_after_crash(self.log.end_offset)
        self.epoch += 1

    # --- damage ---

    @precondition(lambda self: self.model.batches and self.model.entries)
    @rule(missing=st.integers(1, 100))
    def read_a_file_that_became_shorter(self, missing: int) -> None:
        """A read that gets fewer bytes than were written is an error, never an answer; the next process reads again."""
        node = self._node(self._files(".log")[-1])
        whole = node.current
        if not whole:
            return
        node.current = whole[:-missing]
        try:
            read_all(self.log)
        except LogUnreadable:
            assert self.log.failure is not None
        else:
            raise AssertionError("bytes that are not there were served")
        finally:
            node.current = whole
        self.kill()

    def _damage(self, name: str, damage: str, place: int) -> None:
        node = self._node(name)
        for content in (node.current, node.durable):
            match damage:
                case "removed":
                    self.disk.unlink(f"{PATH}/{name}")
                    return
                case "cut":
                    del content[place % (len(content) + 1) :]
                case "bit flipped" if content:
                    content[place % len(content)] ^= 1 << place % 8
                case "zeroes":
                    content[:] = bytes(len(content))
                case "appended":
                    content.extend(b"\x7f" * (place % 30))

    def _files(self, suffix: str) -> list[str]:
        return [name for name in self.disk.list(PATH) if name.endswith(suffix)]

    def _node(self, name: str) -> FileNode:
        return self.disk._file(f"{PATH}/{name}", "test")

    # --- what is on the disk for certain ---

    def _durable(self, path: str) -> bytes:
        return file_at(self.disk, path, durable=True) or b""

    def _durable_epochs(self) -> tuple[EpochStart, ...]:
        return LeaderEpochCache.parse(EPOCHS_PATH, self._durable(EPOCHS_PATH)).entries

    # --- always ---

    @invariant()
    def same_as_the_list(self) -> None:
        if not hasattr(self, "held"):
            return
        log, model = self.log, self.model
        assert (log.start_offset, log.end_offset) == (model.start, model.end)
        assert log.synced_end == model.synced
        assert read_all(log, max_bytes=1500) == model.entries

    @invariant()
    def epochs_are_those_of_the_records(self) -> None:
        """The first one may begin before its first record; so may one whose records are all before the start."""
        if not hasattr(self, "held"):
            return
        log, epochs = self.log, self.log.epochs.entries
        beyond = [one for one in epochs if one.start_offset >= max(log.end_offset, log.start_offset + 1)]
        assert beyond in ([], [self.model.begun]), "epochs of records that are not there"
        wanted = [one for one in self.model.epochs() if one != self.model.begun]
        ends = [*(one.start_offset for one in epochs[1:]), log.end_offset]
        held = [one for one, end in zip(epochs, ends, strict=False) if self._holds_records(one, end)]
        assert held[1:] == wanted[1:] and [one.epoch for one in held] == [one.epoch for one in wanted]
        assert not held or held[0].start_offset <= max(wanted[0].start_offset, log.start_offset)
        assert self.model.begun is None or epochs[-1] == self.model.begun

    def _holds_records(self, epoch: EpochStart, end: Offset) -> bool:
        first = max(epoch.start_offset, self.log.start_offset)
        return any(batch.base < end and first < batch.end for batch in self.model.batches)

    @invariant()
    def epochs_of_synced_records_are_on_the_disk(self) -> None:
        if not hasattr(self, "held"):
            return
        log = self.log
        wanted = [one for one in log.epochs.entries if log.start_offset < one.start_offset < log.synced_end]
        assert not [one for one in wanted if one not in self._durable_epochs()]

    @invariant()
    def each_segment_holds_offsets_that_its_index_can_name(self) -> None:
        if not hasattr(self, "held"):
            return
        bases = [*self.log.segment_bases, self.log.end_offset]
        assert all(end - base <= MAX_RELATIVE_OFFSET + 1 for base, end in pairwise(bases))

    @invariant()
    def producers_are_remembered(self) -> None:
        """All that they wrote in the segments that are there; more, if a snapshot holds it."""
        if not hasattr(self, "held"):
            return
        producers = self.log.producers
        assert producers is not None
        for producer in (1, 2):
            entry = producers.entry(producer)
            found = [] if entry is None else [(one.last_sequence, one.last_offset) for one in entry.batches]
            everything = self.model.of_producer(producer)
            first = found[0][1] if found else 0
            there = {batch.end - 1 for batch in self.model.batches if not batch.has_left}
            least = [one for one in self.model.of_producer(producer, self.log.segment_bases[0]) if one[1] in there]
            assert found == [one for one in everything if one in found]
            last_is_there = bool(least) and everything[-1][1] in there  # a truncation may uncover one that has left
            assert not last_is_there or found[-1] == everything[-1]
            assert len(found) >= min(len(least), REMEMBERED) and {one for one in least if one[1] >= first} <= {*found}


TestLogAgainstList = LogAgainstList.TestCase
TestLogAgainstList.settings = settings(max_examples=few(60), stateful_step_count=25, deadline=None)

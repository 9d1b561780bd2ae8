"""What a log remembers of producers is what its batches say: after appends, cuts, closes, kills and power cuts."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from storage_samples import PATH, disk_with_data

from jepsen.sim.machine.disk import SimDisk
from jepsen.sim.machine.disk_faults import Operation, PowerCut, PowerLost, faults_at
from quorumlog.ids import Epoch, Offset
from quorumlog.records import Record, encode_batch, headers
from quorumlog.records.format.batch import NO_SEQUENCE
from quorumlog_storage.files.names import log_name, snapshot_name
from quorumlog_storage.log.log import Log
from quorumlog_storage.producers.producer_snapshot import decode_snapshot
from quorumlog_storage.producers.producer_state import ProducerEntry, ProducerStates, check
from quorumlog_storage.segment.batch import StoredBatch, received_batches, stamped_batches
from quorumlog_storage.segment.log_config import LogConfig
from tests import rules
from tests.parts import few

CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=100, remembers_producers=True)
PRODUCERS = 4


def numbered(
    base_offset: Offset, count: int, producer_id: int, sequence: int, *, producer_epoch: int = 0, epoch: Epoch = 1
) -> StoredBatch:
    """sequence: NO_SEQUENCE for a control batch."""
    data = encode_batch(
        [Record(n, 1_700_000_000_000 + n, None, b"v", ()) for n in range(count)],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
        control=sequence == NO_SEQUENCE,
    )
    (stored,) = stamped_batches(data, headers(data), base_offset, epoch)
    return stored


def open_log(disk: SimDisk, *, clean: bool = False, recovery_point: Offset = 0) -> Log:
    return Log.open(disk, PATH, CONFIG, recovery_point=recovery_point, clean=clean)


def remembered(log: Log) -> list[tuple[int, ProducerEntry]]:
    """In order: the producer that wrote longest ago first."""
    assert log.producers is not None
    return comparable(log.producers.states)


def comparable(states: ProducerStates) -> list[tuple[int, ProducerEntry]]:
    """Without the times of single batches: a snapshot holds that of a marker in place of the batch before it."""
    return [
        (producer_id, entry._replace(batches=tuple(batch._replace(timestamp=0) for batch in entry.batches)))
        for producer_id, entry in states.entries.items()
    ]


def replayed(batches: list[StoredBatch]) -> list[tuple[int, ProducerEntry]]:
    states = ProducerStates()
    for batch in batches:
        states.note(batch)
    return comparable(states)


def filled(batches: int = 12) -> tuple[SimDisk, Log, list[StoredBatch]]:
    disk = disk_with_data()
    log = open_log(disk)
    written = [numbered(2 * n, 2, n % PRODUCERS, 2 * (n // PRODUCERS)) for n in range(batches)]
    for batch in written:
        log.append([batch])
    log.sync()
    return disk, log, written


def snapshots(disk: SimDisk) -> list[str]:
    return [name for name in disk.list(PATH) if name.endswith(".snapshot")]


@rules.rule("storage 1.20", "storage 4.7", "log 3.10")
def test_a_snapshot_lies_at_every_segment_and_at_a_clean_close() -> None:
    disk, log, _ = filled()
    bases = log.segment_bases
    assert len(bases) > 2
    assert snapshots(disk) == [snapshot_name(base) for base in bases[1:]]
    log.close()
    assert snapshots(disk) == [*(snapshot_name(base) for base in bases[1:]), snapshot_name(24)]
    again = open_log(disk, clean=True)
    again.append([numbered(24, 2, 0, 6)])
    again.close()
    open_log(disk, clean=True)
    assert snapshots(disk) == [*(snapshot_name(base) for base in again.segment_bases[1:]), snapshot_name(26)]


def test_all_five_batches_survive_a_clean_restart() -> None:
    disk = disk_with_data()
    log = open_log(disk)
    batches = [numbered(n, 1, 7, n) for n in range(9)]
    log.append(batches)
    log.close()
    found = dict(remembered(open_log(disk, clean=True)))
    assert [batch.last_sequence for batch in found[7].batches] == [4, 5, 6, 7, 8]


@rules.rule("storage 3.11", "log 6.6")
def test_unreadable_snapshots_are_deleted_and_an_older_one_serves() -> None:
    disk, log, written = filled()
    log.close()
    names = snapshots(disk)
    for name in names[-2:]:
        file = disk.open(f"{PATH}/{name}")
        file.truncate(file.size() - 1)
    again = open_log(disk, clean=True)
    assert remembered(again) == replayed(written)
    assert snapshots(disk) == names[:-2]


@rules.rule("log 2.12")
def test_without_any_snapshot_the_log_is_read() -> None:
    disk, log, written = filled()
    log.close()
    for name in snapshots(disk):
        disk.unlink(f"{PATH}/{name}")
    assert remembered(open_log(disk, clean=True)) == replayed(written)


def test_a_log_that_is_scanned_is_read_once() -> None:
    disk = disk_with_data()
    log = open_log(disk)
    for number in range(40):
        log.append([numbered(number, 1, number % PRODUCERS, number // PRODUCERS)])
    expected = remembered(log)
    log.sync()
    disk.kill()
    read: list[str] = []

    def note(operation: Operation) -> None:
        if operation.kind == "pread":
            read.append(operation.path)

    disk.faults = note
    reopened = open_log(disk)
    assert remembered(reopened) == expected
    assert read == [f"{PATH}/{log_name(base)}" for base in reopened.segment_bases]  # each is smaller than one read


def _closed_and_killed() -> tuple[SimDisk, list[tuple[int, ProducerEntry]]]:
    """A snapshot of a clean close lies inside the last segment, and batches that no snapshot knows lie behind it.

    And what was remembered at the close.
    """
    disk = disk_with_data()
    log = open_log(disk)
    log.append([numbered(0, 1, 0, 0)])
    at_the_close = remembered(log)
    log.close()
    disk.kill()
    log = open_log(disk, clean=True, recovery_point=1)
    log.append([numbered(1, 1, 0, 1), numbered(2, 1, 1, 0)])
    log.sync()
    disk.kill()
    return disk, at_the_close


def test_a_scan_notes_a_batch_once_that_a_snapshot_knows() -> None:
    disk, _ = _closed_and_killed()
    entries = dict(remembered(open_log(disk)))
    assert [batch.last_offset for batch in entries[0].batches] == [0, 1]
    assert [batch.last_offset for batch in entries[1].batches] == [2]


@rules.rule("log 2.4")
def test_a_scan_that_ends_before_the_snapshot_takes_nothing_from_it() -> None:
    disk, at_the_close = _closed_and_killed()
    log = open_log(disk)
    log.close()  # with a snapshot at 3
    disk.kill()
    file = disk.open(f"{PATH}/{log_name(0)}")
    file.truncate(log.view.last_size // 3 + 10)  # into the second batch
    file.close()
    assert remembered(open_log(disk)) == at_the_close


@rules.rule("storage 4.8")
def test_a_cut_takes_the_snapshots_behind_it() -> None:
    disk, log, written = filled()
    end = log.truncate_to(log.segment_bases[1] + 1)
    assert snapshots(disk) == [snapshot_name(base) for base in log.segment_bases[1:]]
    assert remembered(log) == replayed([batch for batch in written if batch.base_offset < end])


@pytest.mark.parametrize("reopened", [False, True])
def test_cutting_a_control_batch_gives_the_producer_its_epoch_back(reopened: bool) -> None:
    """A new epoch with a marker alone, as a coordinator that fences writes it."""
    disk = disk_with_data()
    log = open_log(disk)
    log.append([numbered(0, 2, 7, 0, producer_epoch=4)])
    log.append([numbered(2, 1, 7, NO_SEQUENCE, producer_epoch=5)])
    assert dict(remembered(log))[7].epoch == 5
    if reopened:
        log.close()
        log = open_log(disk, clean=True)
    log.truncate_to(2)
    (entry,) = dict(remembered(log)).values()
    assert (entry.epoch, [known.last_offset for known in entry.batches]) == (4, [1])
    assert check(entry, numbered(2, 1, 7, 2, producer_epoch=4)) is None


def test_a_log_that_is_emptied_remembers_no_producers() -> None:
    disk, log, _ = filled()
    log.truncate_fully(100)
    assert remembered(log) == [] and snapshots(disk) == []


@rules.rule("storage 4.7", "log 2.3", "log 3.10")
def test_snapshots_of_old_segments_are_removed_but_no_producer_is_forgotten() -> None:
    disk, log, _ = filled()
    before = remembered(log)
    log.advance_start(log.end_offset)
    assert snapshots(disk) == [snapshot_name(log.segment_bases[0])]
    assert remembered(log) == before
    log.close()
    assert remembered(open_log(disk, clean=True)) == before


def test_no_producer_is_forgotten_where_the_newest_snapshot_was_lost() -> None:
    """Found by the state machine: the state of an older snapshot refused the next batch of a producer."""
    disk, log, _ = filled()
    before = remembered(log)
    for name in snapshots(disk)[1:]:
        disk.unlink(f"{PATH}/{name}")
    log.sync()
    disk.kill()
    log = open_log(disk)
    assert remembered(log) == before
    log.advance_start(log.end_offset)
    assert snapshots(disk) == [snapshot_name(log.end_offset)]
    disk.crash(random.Random(1))
    assert remembered(open_log(disk)) == before


@rules.rule("log 2.3", "log 6.11")
def test_a_snapshot_from_before_the_first_segment_is_not_used() -> None:
    disk, log, written = filled()
    first = snapshots(disk)[0]
    old = disk.read_bytes(f"{PATH}/{first}")
    log.advance_start(log.end_offset)
    log.close()
    for name in snapshots(disk):
        disk.unlink(f"{PATH}/{name}")
    file = disk.open(f"{PATH}/{first}", create=True)
    file.pwritev([old], 0)
    left = [batch for batch in written if batch.base_offset >= log.segment_bases[0]]
    assert remembered(open_log(disk, clean=True)) == replayed(left)


@rules.rule("log 6.2")
def test_a_follower_remembers_what_its_leader_does() -> None:
    _, log, _ = filled()
    follower = open_log(disk_with_data())
    while follower.end_offset < log.end_offset:
        data = log.read(follower.end_offset, 300, upper_bound=log.end_offset)
        follower.append(received_batches(data))
    assert remembered(follower) == remembered(log)


@rules.rule("log 3.9", "log 6.7")
def test_silent_producers_are_forgotten() -> None:
    _, log, _ = filled()
    log.expire_producers(0, 1_000)
    log.append([numbered(24, 2, 2, 6)])
    log.expire_producers(1_000, 1_000)
    assert [producer_id for producer_id, _ in remembered(log)] == [2]


def test_a_log_without_producer_state_writes_no_snapshots() -> None:
    disk = disk_with_data()
    log = Log.open(disk, PATH, LogConfig(segment_bytes=256))
    for n in range(5):
        log.append([numbered(2 * n, 2, 1, 2 * n)])
    log.close()
    assert log.producers is None and snapshots(disk) == []


@rules.rule("storage 3.11", "log 3.9", "log 6.2")
class ProducersAgainstReplay(RuleBasedStateMachine):
    """`batches`: what the log holds, in order, or may hold after a power cut."""

    @initialize()
    def begin(self) -> None:
        self.disk = disk_with_data()
        self.batches: list[StoredBatch] = []
        self.epoch: Epoch = 1
        self.start: Offset = 0
        self.log = open_log(self.disk)

    @property
    def end(self) -> Offset:
        return self.batches[-1].next_offset if self.batches else self.start

    def _append(self, whats: list[tuple[int, int, int]]) -> None:
        """Each: a producer, how many records (0: a control batch), an epoch. Sequences that no check would accept."""
        for producer_id, count, producer_epoch in whats:
            sequence = (2**31 - 20 + 3 * len(self.batches)) % 2**31 if count else NO_SEQUENCE
            batch = numbered(
                self.end, max(1, count), producer_id, sequence, producer_epoch=producer_epoch, epoch=self.epoch
            )
            self.batches.append(batch)
            self.log.append([batch])

    whats = st.lists(st.tuples(st.integers(-1, PRODUCERS), st.integers(0, 3), st.integers(0, 1)), max_size=8)

    @rule(whats=whats)
    def append(self, whats: list[tuple[int, int, int]]) -> None:
        self._append([what for what in whats if what[0] >= 0])

    @rule()
    def sync(self) -> None:
        self.log.sync()

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        self._truncate(data.draw(st.integers(self.start, self.end)))

    def _truncate(self, offset: Offset) -> None:
        self.batches = [batch for batch in self.batches if batch.next_offset <= offset]
        self.epoch += 1
        self.log.truncate_to(offset)

    @rule(ahead=st.integers(0, 9))
    def truncate_fully(self, ahead: int) -> None:
        self.start, self.batches = self.end + ahead, []
        self.epoch += 1
        self.log.truncate_fully(self.start)

    @rule()
    def close_and_open(self) -> None:
        self.log.close()
        self.disk.kill()
        self.log = open_log(self.disk, clean=True, recovery_point=self.end)

    @rule()
    def kill(self) -> None:
        self.disk.kill()
        self.log = open_log(self.disk)

    @rule(seed=st.integers(0, 1 << 30))
    def crash(self, seed: int) -> None:
        self._after_power_cut(seed)

    @rule(seed=st.integers(0, 1 << 30), at=st.integers(0, 25), whats=whats, cut=st.booleans())
    def crash_in_the_middle(self, seed: int, at: int, whats: list[tuple[int, int, int]], cut: bool) -> None:
        def work() -> None:
            self._append([what for what in whats if what[0] >= 0])
            self.log.sync()
            self._append([(what[0], 1, 0) for what in whats if what[0] >= 0])
            self.log.close()

        before = list(self.batches)
        if cut:
            self._power_cut_in(lambda: self._truncate((self.start + self.end) // 2), at, seed)
            self.batches = before
        else:
            self._power_cut_in(work, at, seed)
        self._after_power_cut(seed)

    def _power_cut_in(self, work: Callable[[], None], at: int, seed: int) -> None:
        self.disk.faults = faults_at({self.disk.operations + at: PowerCut(written=seed % 200)})
        try:
            work()
        except PowerLost:
            pass
        self.disk.faults = faults_at({})

    def _after_power_cut(self, seed: int) -> None:
        self.disk.crash(random.Random(seed))
        self.log = open_log(self.disk)
        self.batches = [batch for batch in self.batches if batch.next_offset <= self.log.end_offset]
        self.epoch += 1

    @invariant()
    def the_state_is_the_replay(self) -> None:
        if hasattr(self, "log"):
            assert self.log.end_offset == self.end
            assert remembered(self.log) == replayed(self.batches)


TestProducersAgainstReplay = ProducersAgainstReplay.TestCase
TestProducersAgainstReplay.settings = settings(max_examples=few(250), stateful_step_count=25, deadline=None)


# --- snapshots that a process left without a sync ---


def unsynced_snapshots() -> tuple[SimDisk, list[str]]:
    """Of a log that asks for no sync and whose process was killed: paths of the snapshots, the oldest first."""
    disk = disk_with_data()
    log = Log.open(disk, PATH, replace(CONFIG, durable=False))
    log.sync()
    while len(log.segment_bases) < 4:
        log.append([numbered(log.end_offset, 2, 3, log.end_offset)])
    disk.kill()
    return disk, [f"{PATH}/{snapshot_name(base)}" for base in log.segment_bases[1:]]


@rules.rule("log 2.2")
@pytest.mark.parametrize("survives", ["none", "all"])
def test_an_unclean_start_takes_over_what_nobody_has_synced(survives: str) -> None:
    disk, paths = unsynced_snapshots()
    log = open_log(disk)
    log.sync()
    disk.crash(random.Random(1), survives)
    for path in paths:
        assert decode_snapshot(path, disk.read_bytes(path))


@rules.rule("log 2.2", "log 6.11")
def test_an_unclean_start_removes_a_torn_snapshot_although_a_newer_one_is_whole() -> None:
    disk, (torn, whole, newest) = unsynced_snapshots()
    disk.open(torn).truncate(5)
    open_log(disk)
    assert [disk.exists(path) for path in (torn, whole, newest)] == [False, True, True]


def test_a_torn_snapshot_at_the_recovery_point_is_removed_although_a_newer_one_is_whole() -> None:
    """A roll of a log that is synced writes a snapshot at its end, and makes durable its name alone."""
    disk, log, _ = filled()
    point = log.synced_end
    log.roll()
    disk.crash(random.Random(1), "none")
    torn = f"{PATH}/{snapshot_name(point)}"
    assert disk.read_bytes(torn) == b""
    disk, log, _ = filled()
    log.roll()
    while log.active.base_offset == point:
        log.append([numbered(log.end_offset, 2, 3, log.end_offset)])
    newer = f"{PATH}/{snapshot_name(log.active.base_offset)}"
    disk.kill()
    disk.open(torn).truncate(0)
    open_log(disk, recovery_point=point)
    assert [disk.exists(path) for path in (torn, newer)] == [False, True]

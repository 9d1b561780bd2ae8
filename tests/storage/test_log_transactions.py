"""What a log says of its transactions is what its batches say: after appends, cuts, closes, kills and power cuts."""

from __future__ import annotations

import random
from pathlib import PurePosixPath

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from storage_samples import PATH, disk_with_data
from transaction_samples import Meaning, data_batch, marker, meaning

from jepsen.sim.machine.disk import SimDisk
from quorumlog.ids import Epoch, Offset
from quorumlog.records import iter_headers
from quorumlog_storage.files.names import transaction_index_name
from quorumlog_storage.log.log import Log
from quorumlog_storage.producers.index_note import NAME as NOTE
from quorumlog_storage.producers.index_note import write_note
from quorumlog_storage.producers.transactions import NEVER
from quorumlog_storage.segment.batch import StoredBatch, received_batches
from quorumlog_storage.segment.log_config import LogConfig
from quorumlog_storage.segment.transaction_index import AbortedTransaction, decode_entries
from tests import rules
from tests.parts import few

CONFIG = LogConfig(segment_bytes=300, index_interval_bytes=100, remembers_producers=True)
PRODUCERS = 3


def open_log(disk: SimDisk, *, clean: bool = False, recovery_point: Offset = 0) -> Log:
    return Log.open(disk, PATH, CONFIG, recovery_point=recovery_point, clean=clean)


def index_files(disk: SimDisk) -> list[str]:
    return [name for name in disk.list(PATH) if name.endswith(".txnindex")]


def visible(log: Log, meant: Meaning) -> list[Offset]:
    """What a read_committed consumer gets of the whole log, by the answers of `read_part` alone."""
    offset, got = log.start_offset, []
    end = min(log.view.unstable.first(log.end_offset), log.end_offset)
    while offset < end:
        part = log.read_part(offset, 250, upper_bound=end, committed=True)
        if not part.data:
            break
        assert set(part.aborted) <= set(meant.aborted)
        found = list(iter_headers(part.data))
        assert len(part.aborted) <= len(found)
        for header in found:
            left_out = header.is_transactional and any(
                one.producer_id == header.producer_id and one.first_offset <= header.base_offset < one.last_offset
                for one in part.aborted
            )
            if not header.is_control and not left_out:
                got.append(header.base_offset)
        offset = found[-1].next_offset
    return got


def check_log(log: Log, batches: list[StoredBatch]) -> None:
    meant = meaning(batches)
    assert log.view.unstable.first(log.end_offset) == meant.first_unstable(log.end_offset)
    stable = min(log.end_offset, meant.first_unstable(log.end_offset))
    wanted = [one.base_offset for one in batches if one.next_offset <= stable and meant.is_visible(one)]
    assert visible(log, meant) == wanted
    entries = [entry for segment in log.view.segments for entry in segment.transactions.entries()]
    assert entries == [one for one in meant.aborted if one.last_offset >= log.segment_bases[0]]


def filled(*, segments: int = 3) -> tuple[SimDisk, Log, list[StoredBatch]]:
    """Producers 1 and 2 overlap over the segments; 1 aborts, 2 commits every transaction."""
    disk = disk_with_data()
    log = open_log(disk)
    batches: list[StoredBatch] = []
    while len(log.segment_bases) < segments + 1:
        turn = len(batches)
        add = [
            data_batch(turn, 1, turn),
            data_batch(turn + 1, 2, turn),
            marker(turn + 2, 1, committed=False),
            marker(turn + 3, 2, committed=True),
        ]
        for batch in add:
            log.append([batch])
        batches += add
    return disk, log, batches


@rules.rule("storage 2.7")
def test_an_index_file_is_made_only_where_a_transaction_was_aborted() -> None:
    disk = disk_with_data()
    log = open_log(disk)
    while len(log.segment_bases) < 3:
        log.append([data_batch(log.end_offset, 1, log.end_offset)])
        log.append([marker(log.end_offset, 1, committed=True)])
    log.close()
    assert index_files(disk) == [] and disk.read_bytes(f"{PATH}/{NOTE}") == b"0\n0\n"


@rules.rule("log 5.6")
def test_the_file_holds_what_the_page_of_formats_says() -> None:
    disk = disk_with_data()
    log = open_log(disk)
    log.append([data_batch(0, 1000, count=5), marker(5, 1000)])
    log.close()
    content = disk.read_bytes(f"{PATH}/{transaction_index_name(0)}")
    assert content.hex() == "000000000000000003e8000000000000000000000000000000050000000000000006"


@rules.rule("storage 5.2")
def test_a_marker_without_a_transaction_moves_nothing() -> None:
    log = open_log(disk_with_data())
    log.append([data_batch(0, 1), marker(1, 2)])
    assert log.view.unstable.first(2) == 0 and log.view.aborted == ()
    assert log.producers is not None
    entry = log.producers.entry(2)
    assert entry is not None and entry.coordinator_epoch == 0


@rules.rule("storage 5.1", "log 6.8")
def test_an_ended_transaction_is_unstable_until_its_marker_is_replicated() -> None:
    log = open_log(disk_with_data())
    log.append([data_batch(0, 1), data_batch(1, 2), marker(2, 1), marker(3, 2, committed=True)])
    assert [log.view.unstable.first(mark) for mark in range(5)] == [0, 0, 0, 1, NEVER]


def test_what_was_replicated_is_not_kept() -> None:
    log = open_log(disk_with_data())
    assert log.producers is not None
    for turn in range(10):
        log.append([data_batch(2 * turn, 1, turn), marker(2 * turn + 1, 1)])
        log.producers.replicated_end = log.end_offset
    assert len(log.view.unstable.ended) == 1


def test_the_ended_that_nobody_replicates_are_bounded_and_never_told_stable_too_early() -> None:
    log = open_log(disk_with_data())
    for turn in range(1_100):
        log.append([data_batch(2 * turn, 1, turn), marker(2 * turn + 1, 1)])
    assert len(log.view.unstable.ended) == 1_000
    assert all(log.view.unstable.first(mark) <= mark - mark % 2 for mark in range(2_199))
    assert log.view.unstable.first(2_200) == NEVER


@rules.rule("log 3.6")
def test_a_follower_knows_the_same() -> None:
    _, log, batches = filled()
    follower = open_log(disk_with_data())
    while follower.end_offset < log.end_offset:
        follower.append(received_batches(log.read(follower.end_offset, 300, upper_bound=log.end_offset)))
    check_log(follower, batches)
    assert follower.view.unstable == log.view.unstable


@rules.rule("log 6.7", "log 6.12")
def test_an_open_transaction_survives_a_clean_restart_and_a_lost_snapshot() -> None:
    disk, log, batches = filled()
    batches.append(data_batch(log.end_offset, 7))
    log.append(batches[-1:])
    for lost in (False, True):
        log.close()
        if lost:
            for name in disk.list(PATH):
                if name.endswith(".snapshot"):
                    disk.unlink(f"{PATH}/{name}")
        log = open_log(disk, clean=True)
        assert log.view.unstable.first(log.end_offset) == batches[-1].base_offset
        check_log(log, batches)


@rules.rule("log 6.8")
def test_a_cut_opens_the_transaction_whose_marker_it_takes() -> None:
    _, log, batches = filled()
    log.truncate_to(batches[-2].base_offset)
    assert log.view.unstable.first(log.end_offset) == batches[-4].base_offset
    check_log(log, batches[:-2])


@rules.rule("log 3.3")
def test_records_deleted_inside_a_transaction() -> None:
    """The first unstable offset stays where it was; the partition's core never tells less than the log's start."""
    log = open_log(disk_with_data())
    log.append([data_batch(0, 1), data_batch(1, 1, 1)])
    log.sync()
    log.advance_start(1)
    assert log.view.unstable.first(2) == 0


DAMAGE = [
    ("deleted", lambda content: None),
    ("emptied", lambda content: b""),
    ("torn", lambda content: content[:-5]),
    ("an entry lost", lambda content: content[:-34]),
    ("a producer flipped", lambda content: bytes([*content[:9], content[9] ^ 4, *content[10:]])),
    ("a first offset flipped", lambda content: bytes([*content[:17], content[17] ^ 1, *content[18:]])),
    ("a last stable offset flipped", lambda content: bytes([*content[:30], content[30] ^ 8, *content[31:]])),
    ("zeroes", lambda content: bytes(len(content))),
    ("another's version", lambda content: b"\1" + content[1:]),
]


@rules.rule("log 2.11")
@pytest.mark.parametrize(("name", "damage"), DAMAGE, ids=[case[0] for case in DAMAGE])
@pytest.mark.parametrize("number", [0, -1])
def test_an_index_that_was_damaged_while_the_node_was_down_is_made_again(name, damage, number) -> None:  # type: ignore[no-untyped-def]
    disk, log, batches = filled()
    log.close()
    path = f"{PATH}/{index_files(disk)[number]}"
    before = disk.read_bytes(path)
    _replace(disk, path, damage(before))
    again = open_log(disk, clean=True)
    check_log(again, batches)
    again.close()
    assert disk.read_bytes(path) == before


FOREIGN = [case for case in DAMAGE if case[0] not in ("deleted", "emptied", "an entry lost")]


@pytest.mark.parametrize(("name", "damage"), DAMAGE, ids=[case[0] for case in DAMAGE])
def test_the_indexes_of_a_foreign_log_are_made_at_its_first_opening(name, damage) -> None:  # type: ignore[no-untyped-def]
    """Another software leaves no note of its indexes."""
    disk, log, batches = filled()
    log.close()
    disk.unlink(f"{PATH}/{NOTE}")
    path = f"{PATH}/{index_files(disk)[0]}"
    before = disk.read_bytes(path)
    _replace(disk, path, damage(before))
    check_log(open_log(disk, clean=True), batches)
    assert disk.read_bytes(path) == before and disk.exists(f"{PATH}/{NOTE}")


@pytest.mark.parametrize(("name", "damage"), FOREIGN, ids=[case[0] for case in FOREIGN])
def test_an_index_that_is_not_noted_is_compared_with_the_log(name, damage) -> None:  # type: ignore[no-untyped-def]
    """As where a job has put a segment in place of others."""
    disk, log, batches = filled()
    log.close()
    write_note(disk, PATH, {})
    path = f"{PATH}/{index_files(disk)[0]}"
    before = disk.read_bytes(path)
    _replace(disk, path, damage(before))
    again = open_log(disk, clean=True)
    meant = meaning(batches)
    wanted = [one.base_offset for one in batches if meant.is_visible(one)]
    assert visible(again, meant) == wanted
    again.mend_indexes()
    assert disk.read_bytes(path) == before
    check_log(again, batches)


def test_a_sound_foreign_index_is_used_as_it_is() -> None:
    disk, log, batches = filled()
    log.close()
    write_note(disk, PATH, {})
    again = open_log(disk, clean=True)
    check_log(again, batches)
    assert all(index.is_trusted and not index.must_build for index in again.view.aborted)


def test_the_index_of_a_rolled_segment_survives_a_power_cut() -> None:
    disk, log, batches = filled()
    log.sync()
    point = log.end_offset
    for seed in range(20):
        disk.crash(random.Random(seed))
        again = open_log(disk, recovery_point=point)
        check_log(again, batches)
        disk.kill()


@rules.rule("log 3.4")
def test_an_emptied_log_has_no_transactions() -> None:
    disk, log, _ = filled()
    log.truncate_fully(100)
    assert log.view.unstable.first(100) == NEVER and log.view.aborted == () and index_files(disk) == []
    log.append([data_batch(100, 1)])
    assert log.view.unstable.first(101) == 100


@rules.rule("storage 2.7")
def test_a_transaction_that_ends_in_a_later_segment() -> None:
    """Between its batch and its marker another one ends, so that the first index with an entry does not tell it."""
    log = open_log(disk_with_data())
    batches = [data_batch(0, 1), data_batch(1, 2), marker(2, 2)]
    log.append(batches)
    while len(log.segment_bases) < 3:
        batches.append(data_batch(log.end_offset, 2, log.end_offset))
        log.append(batches[-1:])
    batches += [marker(log.end_offset, 1), marker(log.end_offset + 1, 2)]
    log.append(batches[-2:])
    assert len(log.view.aborted) >= 2
    check_log(log, batches)


def test_removed_segments_take_their_indexes_with_them() -> None:
    disk, log, _ = filled()
    log.sync()
    log.advance_start(log.segment_bases[2])
    assert {PurePosixPath(name).stem for name in index_files(disk)} <= {f"{base:020d}" for base in log.segment_bases}
    left = [index.base_offset for index in log.view.aborted]
    assert left == sorted(left) and left[0] >= log.segment_bases[0]


def _replace(disk: SimDisk, path: str, content: bytes | None) -> None:
    disk.unlink(path)
    if content is not None:
        file = disk.open(path, create=True)
        file.pwritev([content], 0)
        file.close()


@rules.rule("storage 2.7", "log 2.11", "log 3.4", "log 4.6", "log 5.6")
class TransactionsAgainstScan(RuleBasedStateMachine):
    """`batches`: what the log holds, in order."""

    @initialize()
    def begin(self) -> None:
        self.disk = disk_with_data()
        self.batches: list[StoredBatch] = []
        self.epoch: Epoch = 1
        self.log = open_log(self.disk)

    @property
    def end(self) -> Offset:
        return self.batches[-1].next_offset if self.batches else 0

    whats = st.lists(
        st.tuples(st.integers(1, PRODUCERS), st.sampled_from(["txn", "plain", "commit", "abort"]), st.booleans()),
        min_size=1,
        max_size=8,
    )

    @rule(whats=whats)
    def append(self, whats: list[tuple[int, str, bool]]) -> None:
        run: list[StoredBatch] = []
        for producer_id, what, together in whats:
            base = run[-1].next_offset if run else self.end
            if what in ("commit", "abort"):
                run.append(marker(base, producer_id, committed=what == "commit", epoch=self.epoch))
            else:
                transactional = what == "txn"
                run.append(data_batch(base, producer_id, base, transactional=transactional, epoch=self.epoch))
            if not together:
                self.log.append(run)
                self.batches += run
                run = []
        if run:
            self.log.append(run)
            self.batches += run

    @rule()
    def sync(self) -> None:
        self.log.sync()

    @rule()
    def replicate(self) -> None:
        assert self.log.producers is not None
        self.log.producers.replicated_end = self.log.end_offset

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(0, self.end))
        assert self.log.producers is not None
        self.log.producers.replicated_end = min(self.log.producers.replicated_end, offset)
        self.batches = [batch for batch in self.batches if batch.next_offset <= offset]
        self.epoch += 1
        self.log.truncate_to(offset)

    @rule()
    def close_and_open(self) -> None:
        self.log.close()
        self.disk.kill()
        self.log = open_log(self.disk, clean=True, recovery_point=self.end)

    @rule()
    def kill(self) -> None:
        self.disk.kill()
        self.log = open_log(self.disk)

    @rule(seed=st.integers(0, 1 << 30), noted=st.booleans())
    def crash(self, seed: int, noted: bool) -> None:
        point = self.log.synced_end if noted else 0
        self.disk.crash(random.Random(seed))
        self.log = open_log(self.disk, recovery_point=point)
        self.batches = [batch for batch in self.batches if batch.next_offset <= self.log.end_offset]
        self.epoch += 1

    @precondition(lambda self: hasattr(self, "log") and index_files(self.disk))
    @rule(data=st.data())
    def lose_an_index(self, data: st.DataObject) -> None:
        """All of them are closed segments', or noted when the log was closed."""
        self.log.close()
        self.disk.kill()
        name = data.draw(st.sampled_from(index_files(self.disk)))
        self.disk.unlink(f"{PATH}/{name}")
        self.log = open_log(self.disk, clean=True, recovery_point=self.end)

    @invariant()
    def the_log_says_what_its_batches_say(self) -> None:
        if hasattr(self, "log"):
            assert self.log.end_offset == self.end
            check_log(self.log, self.batches)


TestTransactionsAgainstScan = TransactionsAgainstScan.TestCase
TestTransactionsAgainstScan.settings = settings(max_examples=few(150), stateful_step_count=25, deadline=None)


def test_the_entries_of_a_file_read_back() -> None:
    disk, log, batches = filled()
    log.close()
    read: list[AbortedTransaction] = []
    for name in index_files(disk):
        read += decode_entries(disk.read_bytes(f"{PATH}/{name}"))
    assert read == meaning(batches).aborted


def test_an_index_that_rots_after_it_left_the_memory_is_not_believed() -> None:
    """It was compared with the log once, and then believed for the life of the process."""
    disk = disk_with_data()
    log = open_log(disk)
    for producer in (1, 2):
        log.append([data_batch(log.end_offset, producer), marker(log.end_offset + 1, producer)])
    log.roll()
    log.append([data_batch(log.end_offset, 1, 1)])
    index = log.view.segments[0].transactions
    whole = log.read_part(0, 1 << 20, upper_bound=log.end_offset, committed=True).aborted
    assert len(whole) == 2 and index.is_trusted
    disk.resources.indexes.empty()
    disk.flip_bit(index.path, 8 * 17)  # of the first offset of the first entry: it begins later
    assert log.read_part(0, 1 << 20, upper_bound=log.end_offset, committed=True).aborted == whole
    assert index.must_build
    log.mend_indexes()
    assert not index.must_build and index.entries() == list(whole)


@rules.rule("log 3.6")
def test_an_abort_is_taken_though_the_index_has_rotted() -> None:
    disk = disk_with_data()
    log = open_log(disk)
    log.append([data_batch(log.end_offset, 1), marker(log.end_offset + 1, 1)])
    log.active.flush_caches()
    disk.resources.indexes.empty()
    disk.flip_bit(log.active.transactions.path, 0)
    log.append([data_batch(log.end_offset, 2), marker(log.end_offset + 1, 2)])
    aborted = log.read_part(0, 1 << 20, upper_bound=log.end_offset, committed=True).aborted
    assert [one.producer_id for one in aborted] == [1, 2]
    log.mend_indexes()
    assert [one.producer_id for one in log.active.transactions.entries()] == [1, 2]

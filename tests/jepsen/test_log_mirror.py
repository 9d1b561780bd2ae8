"""The mirror of a log on a simulated disk: written bytes, durable bytes, and real differences."""

from __future__ import annotations

import random

from jepsen.checkers.findings import Findings
from jepsen.sim.machine.disk import SimDisk
from jepsen.sim.truth.log_mirror import LogMirror
from jepsen.sim.truth.log_truth import LogTruth
from quorumlog.records import Record, encode_batch, headers
from quorumlog_storage.directory.partition_metadata import write_unsynced_topic_id
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.batch import StoredBatch, stamped_batches
from quorumlog_storage.segment.log_config import LogConfig

PATH = "/d/t-0"


class World:
    """One disk with one log, observed as in the cluster."""

    def __init__(self) -> None:
        self.disk = SimDisk()
        self.disk.make_directory("/d")
        self.disk.sync_directory("/")
        self.log = Log.open(self.disk, PATH, LogConfig())
        self.mirror = LogMirror(self.disk, PATH)
        self.disk.trace = self.on_disk

    def on_disk(self, kind: str, path: str, digest: bytes) -> None:
        name = path.rpartition("/")[2]
        if name.endswith(".log"):
            self.mirror.on_write(name) if kind == "pwritev" else self.mirror.forget() if kind == "truncate" else None

    def append(self, value: bytes, epoch: int = 1) -> None:
        self.log.append(batch_of(value, self.log.end_offset, epoch))


def batch_of(value: bytes, offset: int, epoch: int) -> list[StoredBatch]:
    data = encode_batch([Record(0, 1_700_000_000_000, None, value, ())])
    return list(stamped_batches(data, headers(data), offset, epoch))


def test_durable_means_synced() -> None:
    world = World()
    world.append(b"a")
    world.append(b"b")
    assert (world.mirror.end, world.mirror.durable_end()) == (2, 0)
    world.log.sync()
    world.append(b"c")
    assert (world.mirror.end, world.mirror.durable_end()) == (3, 2)
    assert world.mirror.contains(1, b"b") and not world.mirror.contains(1, b"c")


def test_a_power_cut_leaves_at_least_the_durable_part() -> None:
    for seed in range(20):
        world = World()
        world.append(b"a" * 2_000)
        world.log.sync()
        world.append(b"b" * 2_000)
        durable, chain = world.mirror.durable_end(), world.mirror.chain_at(1)
        world.disk.crash(random.Random(seed))
        world.mirror.forget()
        assert world.mirror.end >= durable and world.mirror.chain_at(1) == chain


def test_only_equal_prefixes_have_equal_chains() -> None:
    one, other = World(), World()
    for world, last in ((one, b"x"), (other, b"y")):
        world.append(b"a")
        world.append(last)
    assert one.mirror.chain_at(1) == other.mirror.chain_at(1) is not None
    assert one.mirror.chain_at(2) != other.mirror.chain_at(2)


def test_a_truncation_is_followed() -> None:
    world = World()
    for value in (b"a", b"b", b"c"):
        world.append(value)
    world.log.sync()
    assert world.mirror.durable_end() == 3
    world.log.truncate_to(1)
    assert (world.mirror.end, world.mirror.durable_end(), world.mirror.chain_at(2)) == (1, 1, None)
    world.append(b"d", epoch=2)
    assert (world.mirror.end, world.mirror.epoch_before(2)) == (2, 2)


def test_empty_segments_before_others_are_a_hole_unless_records_may_be_gone() -> None:
    disk = SimDisk()
    for directory in ("/d", PATH):
        disk.make_directory(directory)
    for base in (0, 12, 20):
        disk.open(f"{PATH}/{base:020}.log", create=True).close()
    after_a_power_cut = LogMirror(disk, PATH, may_begin_at=lambda base: base < 12)
    assert (after_a_power_cut.base, after_a_power_cut.end) == (0, 0)
    with_names_brought_back = LogMirror(disk, PATH, may_begin_at=lambda base: base <= 20)
    assert (with_names_brought_back.base, with_names_brought_back.end) == (20, 20)


def test_two_commits_of_different_bytes_are_found() -> None:
    findings = Findings(lambda: 0)
    truth = LogTruth("t-0", findings)
    one, other = World(), World()
    for world, last in ((one, b"x"), (other, b"y")):
        world.append(b"a")
        world.append(last)
    truth.on_committed(one.mirror, 2, "b1")
    truth.on_committed(other.mirror, 1, "b2")
    assert not findings
    truth.on_committed(other.mirror, 2, "b2")
    assert [finding.name for finding in findings.found] == ["committed-differs"]


def test_a_leader_of_an_old_epoch_answers_for_that_epoch_only() -> None:
    ahead, behind = World(), World()
    for world in (ahead, behind):
        world.append(b"a", epoch=1)
    ahead.append(b"b", epoch=3)
    truth = LogTruth("t-0", Findings(lambda: 0))
    truth.on_committed(ahead.mirror, 2, "b1")
    assert [truth.end_of(epoch) for epoch in (0, 1, 2, 3, 4)] == [0, 1, 1, 2, 2]
    assert truth.is_seen_by(behind.mirror, 2) and not truth.is_seen_by(behind.mirror, 3)
    assert truth.is_seen_by(ahead.mirror, 3)


def test_what_a_later_leadership_commits_is_no_debt_of_an_older_one() -> None:
    """Epoch 0 left a record that epoch 1, elected and never heard of, lacks; epoch 2 has committed it."""
    ahead, behind = World(), World()
    for world in (ahead, behind):
        world.append(b"a", epoch=0)
    ahead.append(b"b", epoch=0)
    truth = LogTruth("t-0", Findings(lambda: 0))
    truth.on_committed(ahead.mirror, 1, "b1", leader_epoch=0)
    truth.on_committed(ahead.mirror, 2, "b1", leader_epoch=2)
    assert [truth.end_of(epoch) for epoch in (0, 1, 2)] == [1, 1, 2]
    assert truth.is_seen_by(behind.mirror, 1) and not truth.is_seen_by(behind.mirror, 2)


OLD, NEW = b"o" * 16, b"n" * 16


class TopicWorld(World):
    """A log of 300-byte segments in a directory that names its topic."""

    def __init__(self) -> None:
        super().__init__()
        self.log.close()
        self.log = Log.open(self.disk, PATH, LogConfig(segment_bytes=300))
        self.found = Findings(lambda: 0)
        self.truth = LogTruth("t-0", self.found)
        self.name(OLD)
        self.mirror = self.mirror_of(OLD)

    def name(self, topic_id: bytes) -> None:
        write_unsynced_topic_id(self.disk, PATH, topic_id)

    def mirror_of(self, topic_id: bytes) -> LogMirror:
        return LogMirror(self.disk, PATH, topic_id=topic_id, chain_before=self.truth.chain_before)

    def fill(self) -> None:
        for number in range(12):
            self.append(b"%d" % number * 20)
        self.log.sync()


def test_what_lies_in_a_directory_of_another_node_is_not_the_log() -> None:
    """Somebody has put a copy of another node's directory in the place of the second one."""
    world = TopicWorld()
    world.fill()
    world.disk.make_directory("/e")
    foreign = Log.open(world.disk, "/e/t-0", LogConfig())
    write_unsynced_topic_id(world.disk, "/e/t-0", OLD)
    mirrors = [
        LogMirror(world.disk, PATH, topic_id=OLD, others=["/e/t-0"], is_own=is_own)
        for is_own in (lambda _: True, lambda path: path != "/e")
    ]
    assert [(one.end, one.path) for one in mirrors] == [(foreign.end_offset, "/e/t-0"), (12, PATH)]
    world.disk.remove_tree(PATH)
    mirrors[1].forget()
    assert not mirrors[1].is_here


def test_a_mirror_is_of_one_topic_id() -> None:
    world = TopicWorld()
    world.fill()
    other = world.mirror_of(NEW)
    assert (world.mirror.is_here, world.mirror.end) == (True, 12)
    assert (other.is_here, other.end, other.contains(0, b"0")) == (False, 0, False)
    world.name(NEW)
    for mirror in (world.mirror, other):
        mirror.forget()
    assert (world.mirror.end, other.end) == (0, 12)


def test_the_chain_goes_on_where_segments_were_removed() -> None:
    world = TopicWorld()
    world.fill()
    world.truth.on_committed(world.mirror, 12, "b1")
    chain, world.truth.deleted_before = world.mirror.chain_at(12), 7
    world.log.advance_start(7)
    world.mirror.forget()
    assert 0 < world.mirror.base <= 7 and world.mirror.chain_at(12) == chain
    assert world.truth.is_held_by(world.mirror, world.mirror.durable_end()) and not world.found
    world.log.truncate_fully(12)
    world.mirror.forget()
    assert (world.mirror.base, world.mirror.end) == (12, 12)


def test_a_log_that_begins_beyond_all_deletions_is_found() -> None:
    world = TopicWorld()
    world.fill()
    world.truth.on_committed(world.mirror, 12, "b1")
    world.log.truncate_fully(6)
    world.mirror.forget()
    assert world.mirror.end == 6
    assert [finding.name for finding in world.found.found] == ["start-follows-deletions"]
    assert not world.truth.is_held_by(world.mirror, world.mirror.durable_end())


def test_a_log_that_is_read_again_is_as_one_that_is_read_for_the_first_time() -> None:
    """Batches that did not change are kept from the parse before; one that changed changes all chains after it."""
    for cut in range(5):
        world = World()
        for value in (b"a", b"b", b"c", b"d"):
            world.append(value)
        assert world.mirror.end == 4
        world.log.truncate_to(cut)
        world.mirror.forget()
        for value in (b"w", b"x", b"y", b"z")[cut:]:
            world.append(value)
        world.mirror.forget()
        fresh = LogMirror(world.disk, PATH)
        found = [(world.mirror.chain_at(end), world.mirror.batch_before(end)) for end in range(5)]
        assert found == [(fresh.chain_at(end), fresh.batch_before(end)) for end in range(5)], cut


def test_a_changed_byte_in_the_middle_of_a_log_is_seen_when_it_is_read_again() -> None:
    one, other = World(), World()
    for world, middle in ((one, b"b"), (other, b"x")):
        for value in (b"a", middle, b"c"):
            world.append(value)
    assert one.mirror.end == other.mirror.end == 3
    one.mirror._disk = other.disk
    one.mirror.forget()
    assert one.mirror.chain_at(3) == other.mirror.chain_at(3) is not None

"""Moves between log directories: steps, the exchange, and what a crash leaves at each call of the disk."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from move_world import CONFIG, MANY, SOURCE, TARGET, MoveWorld
from transaction_samples import data_batch, marker

from jepsen.sim.machine.disk_faults import Fault, Operation
from quorumlog.ids import Offset
from quorumlog.records import CorruptRecords
from quorumlog_storage.directory.mark import MARK_NAME, PromotionMark, parse_mark, render_mark
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.files.text_checkpoint import CorruptCheckpoint
from quorumlog_storage.log.log_errors import LogClosed
from quorumlog_storage.moves import promotion
from quorumlog_storage.moves.promotion import NotReady
from quorumlog_storage.moves.steps import (
    CaughtUp,
    Cut,
    Fate,
    RaiseStart,
    Read,
    Restart,
    Span,
    StartOver,
    fate_of,
    next_step,
)
from quorumlog_storage.rules.epochs import EpochStart, LeaderEpochCache
from tests.parts import few
from tests.rules import rule


def span(start: Offset, end: Offset, *epochs: tuple[int, Offset]) -> Span:
    return Span(start, end, LeaderEpochCache(EpochStart(*one) for one in epochs))


STEPS = [
    ("equal", span(0, 9, (1, 0)), span(0, 9, (1, 0)), CaughtUp()),
    ("both are empty", span(0, 0), span(0, 0), CaughtUp()),
    ("an epoch without records", span(0, 9, (1, 0), (3, 9)), span(0, 9, (1, 0)), CaughtUp()),
    ("records are missing", span(0, 9, (1, 0)), span(0, 6, (1, 0)), Read(6)),
    ("nothing is copied yet", span(4, 9, (1, 4)), span(4, 4), Read(4)),
    ("the source's start has moved", span(5, 9, (1, 5)), span(3, 6, (1, 3)), RaiseStart(5)),
    ("past all that is copied", span(7, 9, (1, 7)), span(3, 6, (1, 3)), Restart(7)),
    ("up to the end of what is copied", span(6, 9, (2, 6)), span(3, 6, (1, 3)), Restart(6)),
    ("the source was cut", span(0, 5, (1, 0)), span(0, 8, (1, 0)), Cut(5)),
    ("cut, and written on by another leader", span(0, 9, (1, 0), (3, 5)), span(0, 8, (1, 0), (2, 6)), Cut(5)),
    ("nothing is the same", span(2, 9, (3, 2)), span(2, 8, (1, 2)), Restart(2)),
    ("the source was emptied", span(8, 8), span(2, 8, (1, 2)), Restart(8)),
    ("the source was copied anew from an earlier start", span(1, 9, (1, 1)), span(4, 8, (1, 4)), StartOver(1)),
]


@pytest.mark.parametrize(("source", "future", "want"), [row[1:] for row in STEPS], ids=[row[0] for row in STEPS])
def test_the_next_step(source: Span, future: Span, want: object) -> None:
    assert next_step(source, future) == want


MARK = PromotionMark("t", 0, SOURCE, 9)
FATES = [
    (True, MARK, {SOURCE, TARGET}, False, Fate.CONTINUE),
    (True, None, {SOURCE, TARGET}, True, Fate.CONTINUE),
    (False, MARK, {SOURCE, TARGET}, False, Fate.PROMOTE),
    (False, MARK, {SOURCE, TARGET}, True, Fate.PROMOTE),
    (False, MARK, {TARGET}, True, Fate.WAIT),
    (False, None, {TARGET}, True, Fate.WAIT),
    (False, None, {SOURCE, TARGET}, False, Fate.SET_ASIDE),
    (False, MARK, {TARGET}, False, Fate.SET_ASIDE),
]


@pytest.mark.parametrize(("found", "mark", "online", "offline", "want"), FATES)
def test_the_fate_of_a_future_log(
    found: bool, mark: PromotionMark | None, online: set[bytes], offline: bool, want: Fate
) -> None:
    assert fate_of(current_is_found=found, mark=mark, online=online, any_offline=offline) is want


@given(st.text("abc._-", min_size=1, max_size=249), st.integers(0, 2**31 - 1), st.binary(min_size=16, max_size=16),
       st.integers(0, 2**63 - 1))  # fmt: skip
def test_a_mark_says_what_was_written(topic: str, partition: int, source: bytes, end: Offset) -> None:
    mark = PromotionMark(topic, partition, source, end)
    assert parse_mark("x", render_mark(mark)) == mark


@pytest.mark.parametrize(
    "content", [b"", b"0\n0\n", b"0\n1\nt 0 x 1\n", b"0\n1\nt 0 AQEBAQEBAQEBAQEBAQEBAQ -1\n", b"\xff"]
)
def test_another_content_is_no_mark(content: bytes) -> None:
    with pytest.raises(CorruptCheckpoint):
        parse_mark("x", content)


# --- the exchange ---


def moving() -> MoveWorld:
    """A source of several segments and two epochs, whose start lies inside a batch; nothing is copied yet."""
    world = MoveWorld()
    world.create()
    world.fill(4)
    world.epoch = 2
    world.fill(4)
    world.held.raise_start(4)
    world.begin()
    return world


@rule("storage 7.11")
def test_a_moved_log_is_its_source() -> None:
    world = moving()
    before, entries = world.records(), world.held.log.epochs.entries
    world.catch_up()
    world.note()
    world.promote()
    assert world.is_moved and world.records() == before
    assert world.held.log.epochs.entries == entries
    assert world.disk.list("/data") == [
        name for name in world.disk.list("/data") if "-delete" in name or "-offset-" in name
    ]
    assert [name for name in world.disk.list("/other") if name.startswith("t-0")] == ["t-0"]
    assert not world.disk.exists(f"/other/t-0/{MARK_NAME}")
    world.fill(2, "more")
    world.disk.crash(random.Random(1))
    again = world.restarted()
    assert again.records()[: len(before)] == before and len(again.records()) == len(before) + 6


def test_no_copy_is_made_at_a_mount_point_whose_file_system_is_gone() -> None:
    """Its source would leave, and the records would be hidden once the file system is mounted again."""
    world = MoveWorld()
    world.create()
    world.target.find()
    world.disk.mounts.unmount("/other", leaves_a_directory=True)
    with pytest.raises(DiskError, match="unmounted while the node used it"):
        world.begin()
    assert world.disk.list("/other") == []


def test_a_complete_copy_gets_no_live_name_at_a_mount_point_whose_file_system_is_gone() -> None:
    """There an empty log would be made in its place."""
    world = moving()
    world.target.find()
    world.catch_up()
    frozen = promotion.freeze(world.held)
    promotion.complete(world.copy, world.held.log, frozen, SOURCE, MANY)
    promotion.leave(world.held, bytes([9]) * 16)
    world.disk.mounts.unmount("/other", leaves_a_directory=True)
    with pytest.raises(DiskError, match="unmounted while the node used it"):
        promotion.rename_in(world.copy, CONFIG, frozen)
    assert world.disk.list("/other") == []


def test_an_epoch_without_records_moves_too() -> None:
    world = moving()
    world.held.lead(7)
    entries = world.held.log.epochs.entries
    assert entries[-1].epoch == 7
    world.catch_up()
    world.note()
    world.promote()
    assert world.held.log.epochs.entries == entries


def test_what_is_written_after_the_note_is_copied_while_the_source_is_frozen() -> None:
    world = moving()
    world.catch_up()
    world.note()
    world.fill(1, "late")
    before = world.records()
    world.promote()
    assert world.records() == before


def test_a_frozen_source_takes_no_appends_and_goes_on_when_thawed() -> None:
    world = moving()
    world.catch_up()
    frozen = promotion.freeze(world.held)
    with pytest.raises(LogClosed):
        world.fill(1)
    assert (frozen.start, frozen.end) == (4, 24)
    promotion.thaw(world.held)
    world.fill(1)
    assert world.held.log.end_offset == 27


def test_too_much_is_not_copied_while_nobody_can_append() -> None:
    world = moving()
    frozen = promotion.freeze(world.held)
    with pytest.raises(NotReady, match="bytes are missing"):
        promotion.complete(world.copy, world.held.log, frozen, SOURCE, max_bytes=1)
    promotion.thaw(world.held)
    world.catch_up()
    world.promote()
    assert world.is_moved


def test_a_start_that_moved_meanwhile_is_copied_first() -> None:
    world = moving()
    world.catch_up()
    world.held.raise_start(7)
    frozen = promotion.freeze(world.held)
    with pytest.raises(NotReady, match="RaiseStart"):
        promotion.complete(world.copy, world.held.log, frozen, SOURCE, MANY)


def test_producers_move_whose_records_have_left() -> None:
    world = MoveWorld()
    world.create()
    log = world.held.log

    log.append([data_batch(0, 5, transactional=False)])
    for sequence in range(20):
        log.append([data_batch(log.end_offset, 6, sequence, transactional=False)])
    log.append([data_batch(21, 7)])
    log.append([data_batch(22, 8)])
    log.append([marker(23, 8)])
    log.sync()
    world.held.raise_start(12)
    assert log.producers is not None
    entries, unstable = dict(log.producers.states.entries), log.view.unstable
    assert 5 in entries and unstable.first(log.end_offset) == 21
    world.move()
    moved = world.held.log
    assert moved.producers is not None and dict(moved.producers.states.entries) == entries
    assert moved.view.unstable == unstable
    assert [index.base_offset for index in moved.view.aborted], "the aborted transaction is in an index"
    world.disk.crash(random.Random(3))
    again = world.restarted()
    assert again.held.log.producers is not None and dict(again.held.log.producers.states.entries) == entries


# --- crashes ---


class _Stop(BaseException):
    """The process is gone."""


class _StopAt:
    """Counts the changing calls of the disk, and ends the process before one of them."""

    def __init__(self) -> None:
        self.calls, self.at = 0, -1

    def __call__(self, operation: Operation) -> Fault | None:
        if operation.kind in ("pwritev", "sync", "sync_directory", "rename", "unlink", "truncate", "open"):
            self.calls += 1
            if self.calls - 1 == self.at:
                raise _Stop
        return None


@rule("storage 7.11", "log 3.16")
@pytest.mark.parametrize("cut", ["kill", "power"])
def test_a_crash_at_any_call_leaves_one_log_with_everything(cut: str) -> None:
    at, fates = 0, set()
    while True:
        world = moving()
        stop = _StopAt()
        world.disk.faults = stop
        world.fill(2, "during")
        before = world.records()
        stop.calls, stop.at = 0, at
        try:
            world.catch_up()
            world.note()
            world.promote()
        except _Stop:
            pass
        else:
            break
        stop.at = -1
        if cut == "power":
            world.disk.crash(random.Random(at))
        again = world.restarted()
        assert again.records() == before, f"stopped before call {at}"
        fates.add((again.is_moved, again.future is not None))
        if again.future is not None:
            again.catch_up()
            again.note()
            again.promote()
        assert again.records() == before
        if not again.is_moved:
            again.move()
        again.fill(1, "after")
        again.disk.crash(random.Random(at + 1))
        last = again.restarted()
        assert last.is_moved and last.records()[: len(before)] == before and len(last.records()) == len(before) + 3
        at += 1
    assert at > 40 and {(False, True), (True, False)} <= fates


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 3)),
        st.tuples(st.just("copy"), st.integers(1, 4)),
        st.tuples(st.just("truncate"), st.integers(0, 30)),
        st.tuples(st.just("start"), st.integers(0, 30)),
        st.tuples(st.just("restart"), st.integers(0, 6)),
        st.tuples(st.just("crash"), st.integers(0, 99)),
        st.tuples(st.just("lead"), st.just(0)),
    ),
    max_size=25,
)


@settings(max_examples=few(60), deadline=None)
@given(OPERATIONS)
def test_whatever_happens_to_the_source_its_copy_becomes_equal(operations: list[tuple[str, int]]) -> None:
    world = MoveWorld()
    world.create()
    world.fill(3)
    world.begin()
    for number, (what, amount) in enumerate(operations):
        log = world.held.log
        if what == "append":
            world.fill(amount, f"n{number}")
        elif what == "copy":
            for _ in range(amount):
                world.step()
        elif what == "truncate" and amount < log.end_offset - log.start_offset:
            world.held.truncate_to(log.end_offset - amount)
            world.epoch += 1
        elif what == "start":
            world.held.raise_start(min(log.start_offset + amount, log.end_offset))
        elif what == "restart":
            world.held.restart_at(log.end_offset + amount)
            world.epoch += 1
        elif what == "lead":
            world.epoch += 1
            world.held.lead(world.epoch)
        elif what == "crash":
            world.disk.crash(random.Random(amount))
            world = world.restarted()
    if world.future is None:
        world.begin()
    before, entries = world.records(), world.held.log.epochs.entries
    start, end = world.held.log.start_offset, world.held.log.end_offset
    world.catch_up()
    world.note()
    world.promote()
    log = world.held.log
    assert (log.start_offset, log.end_offset) == (start, end)
    assert world.records() == before and log.epochs.entries == entries
    assert world.is_moved


def test_batches_with_a_wrong_checksum_are_not_copied() -> None:
    world = moving()
    path = "/data/t-0"
    name = sorted(name for name in world.disk.list(path) if name.endswith(".log"))[-1]
    world.disk.flip_bit(f"{path}/{name}", 8 * 75)
    with pytest.raises(CorruptRecords):
        world.catch_up()

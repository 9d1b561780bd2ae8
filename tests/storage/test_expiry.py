"""The steps of a pass over logs on a disk: what each leaves, what comes between, and what a crash leaves."""

from __future__ import annotations

import random

import pytest
from partition_world import FIRST, NEIGHBOUR, OTHER, UNIQUE, T, World, values
from storage_samples import batch

from quorumlog.ids import Offset
from quorumlog_storage.directory.log_checkpoints import checkpoint_logs
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.retention.expiry import Candidate, Planned, find_expired, note_starts, retire_expired
from quorumlog_storage.retention.policy import Policy
from quorumlog_storage.segment.batch import StoredBatch
from tests.rules import rule

ALL = Policy(retention_ms=0)
LONG_AFTER = 1_800_000_000_000  # the records are of 1_700_000_000_000


def made() -> World:
    world = World()
    world.create()
    world.fill(16)
    world.neighbour = PartitionLog.create(world.directories, OTHER, NEIGHBOUR, world.log.log.config)
    return world


def candidate(world: World, mark: Offset | None = None, policy: Policy = ALL) -> Candidate:
    return Candidate(world.log, policy, world.log.log.end_offset if mark is None else mark)


def lines(world: World) -> dict[tuple[str, int], Offset]:
    return dict(world.directories.log_starts.offsets)


def run_pass(world: World, *candidates: Candidate) -> None:
    planned = find_expired(candidates, LONG_AFTER)
    note_starts(world.directories, planned)
    for one in planned:
        while not retire_expired(one, max_segments=1):
            pass


def test_everything_that_is_committed_goes_segment_by_segment() -> None:
    world = made()
    bases = world.log.log.segment_bases
    assert len(bases) > 3
    run_pass(world, candidate(world, mark=bases[2] + 1))
    assert world.log.log.start_offset == bases[2] and world.log.log.segment_bases == bases[2:]
    assert lines(world) == {T: bases[2]}
    checkpoint_logs(world.directories, [world.log])
    assert lines(world) == {T: bases[2]}, "the renaming is not durable yet"
    world.log.log.sync()
    checkpoint_logs(world.directories, [world.log])
    assert lines(world) == {}, "the first segment's name says it"


@rule("storage 8.3")
def test_where_all_goes_the_log_goes_on_at_its_end() -> None:
    world = made()
    end = world.log.log.end_offset
    run_pass(world, candidate(world))
    assert world.span == (end, end) and world.log.log.segment_bases == (end,)
    world.fill(1, "new")
    assert list(world.records()) == [end, end + 1, end + 2]
    assert not find_expired([candidate(world, mark=end)], LONG_AFTER), "new records are above the mark"


@pytest.mark.parametrize("max_segments", [1, 8])
def test_a_log_whose_start_was_moved_to_its_end_before_frees_its_last_segment(max_segments: int) -> None:
    """By a follower's fetch or by DeleteRecords: neither closes the active segment."""
    world = made()
    end = world.log.log.end_offset
    world.log.raise_start(end)
    assert world.log.log.size_bytes > 0
    (planned,) = find_expired([candidate(world)], LONG_AFTER)
    while not retire_expired(planned, max_segments):
        pass
    assert (world.log.log.segment_bases, world.log.log.size_bytes, world.span) == ((end,), 0, (end, end))
    assert find_expired([candidate(world)], LONG_AFTER) == []
    world.fill(1, "new")
    again = world.restarted(FIRST)
    assert set(again.records()) == {end, end + 1, end + 2}


def test_an_empty_log_has_nothing_to_lose() -> None:
    world = made()
    run_pass(world, candidate(world))
    assert find_expired([candidate(world)], LONG_AFTER) == []


def test_records_that_came_after_the_look_stay() -> None:
    world = made()
    end = world.log.log.end_offset
    planned = find_expired([candidate(world)], LONG_AFTER)
    assert planned == [Planned(world.log, end)]
    world.fill(1, "new")
    note_starts(world.directories, planned)
    while not retire_expired(planned[0], max_segments=2):
        pass
    assert world.log.log.start_offset == end and set(world.records()) == {end, end + 1, end + 2}
    again = world.restarted(FIRST)
    assert set(again.records()) == {end, end + 1, end + 2}


def test_one_write_notes_all_starts_of_a_pass() -> None:
    world = made()
    for _ in range(8):
        world.neighbour.log.append(_batches(world.neighbour))
    both = [candidate(world), Candidate(world.neighbour, ALL, world.neighbour.log.end_offset)]
    planned = find_expired(both, LONG_AFTER)
    writes: list[str] = []
    world.disk.trace = lambda kind, path, _: writes.append(path) if kind == "rename" else None
    note_starts(world.directories, planned)
    assert len(planned) == 2 and len(writes) == 1
    note_starts(world.directories, planned)
    assert len(writes) == 1, "written again, though nothing changed"


@pytest.mark.parametrize("how", ["cut", "restarted", "cut before the note"])
def test_a_log_that_became_shorter_forgets_the_plan(how: str) -> None:
    """A truncation comes between the look and the move."""
    world = made()
    bases = world.log.log.segment_bases
    planned = find_expired([candidate(world)], LONG_AFTER)
    if how != "cut before the note":
        note_starts(world.directories, planned)
    if how == "restarted":
        world.log.restart_at(bases[1])
    else:
        world.log.truncate_to(bases[1])
    if how == "cut before the note":
        note_starts(world.directories, planned)
    held, span = world.records(), world.span
    assert retire_expired(planned[0], max_segments=9)
    assert world.span == span and world.records() == held
    again = world.restarted(FIRST)
    assert again.span == span and again.records() == held


def test_a_log_that_has_left_is_left_alone() -> None:
    world = made()
    planned = find_expired([candidate(world)], LONG_AFTER)
    world.log.delete(UNIQUE)
    note_starts(world.directories, planned)
    assert lines(world) == {} and retire_expired(planned[0], max_segments=9)


@rule("log 3.13")
def test_a_pass_is_repeated_without_effect() -> None:
    world = made()
    run_pass(world, candidate(world))
    before = world.disk.operations
    run_pass(world, candidate(world))
    assert not [one for one in world.disk.list("/data/t-0") if one.endswith(".tmp")]
    assert world.disk.operations - before < 5


@rule("storage 8.4")
@pytest.mark.parametrize("seed", range(30))
def test_after_a_power_cut_at_any_step_nothing_comes_back(seed: int) -> None:
    rng = random.Random(seed)
    world = made()
    bases, before = world.log.log.segment_bases, world.records()
    planned = find_expired([candidate(world, mark=bases[-1])], LONG_AFTER)
    note_starts(world.directories, planned)
    for _ in range(rng.randrange(4)):
        retire_expired(planned[0], max_segments=1)
    world.disk.crash(rng)
    again = world.restarted(FIRST)
    assert again.span == (bases[-1], again.log.log.end_offset)
    assert again.records() == {offset: value for offset, value in before.items() if offset >= bases[-1]}


def _batches(held: PartitionLog) -> list[StoredBatch]:

    return [batch(held.log.end_offset, values(held.log.end_offset))]

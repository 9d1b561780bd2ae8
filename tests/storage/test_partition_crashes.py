"""Every operation of a partition's log, stopped at every disk call that it makes, and opened again.

A stop is a kill (memory's pages stay), a power cut (what was not synced may go), or a failed call after which the
process ends. The next process does what a broker does: it makes the names in the directory durable, sets aside what the
metadata does not know, and opens or creates what the metadata names.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest
from partition_world import CONFIG, END, FIRST, OLD, SECOND, UNIQUE, T, World, a_world, old_records, values
from storage_samples import batch

from jepsen.sim.machine.disk_faults import Fail, Fault, Operation, PowerCut, PowerLost
from quorumlog.ids import Offset, Uuid
from quorumlog_storage.directory.log_checkpoints import checkpoint_logs
from quorumlog_storage.directory.offset_files import RECOVERY_POINTS
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.log.log_errors import LogUnreadable
from tests.rules import rule


@dataclass(frozen=True)
class Case:
    """change: the operation. check: of the next process; told whether the operation had returned before the stop.

    successor: the topic id that the next process's metadata has under the name.
    """

    name: str
    change: Callable[[World], object]
    check: Callable[[World, bool], None]
    prepare: Callable[[World], object] = lambda _: None
    successor: Uuid = FIRST


def is_new(world: World, _done: bool) -> None:
    assert world.span == (0, 0) and world.log.topic_id == SECOND and world.log.high_watermark == 0
    for file in (world.directories.recovery_points, world.directories.log_starts, world.directories.high_watermarks):
        assert T not in file.offsets, "a line of the dead topic"


def was_truncated_to(offset: Offset) -> Callable[[World, bool], None]:
    cut = max(7, offset // 3 * 3)

    def check(world: World, done: bool) -> None:
        start, end = world.span
        assert start == 7 and end >= cut, "what lies before the cut stays"
        assert world.records() == old_records(7, end)
        assert end == cut or not done

    return check


def was_restarted_at(offset: Offset) -> Callable[[World, bool], None]:
    def check(world: World, done: bool) -> None:
        assert world.span == (offset, offset) or (not done and world.records() == old_records(7, END))

    return check


def starts_at(offset: Offset) -> Callable[[World, bool], None]:
    def check(world: World, done: bool) -> None:
        start, end = world.span
        assert end == END and start in ((offset,) if done else (7, offset))
        assert world.records() == old_records(start, END)

    return check


def restart_inside(world: World) -> None:
    world.log.restart_at(31)
    checkpoint_logs(world.directories, [world.log])


def begin_inside(world: World) -> None:
    world.log.begin_inside([batch(30, values(30)), batch(33, values(33))])


def began_inside(world: World, done: bool) -> None:
    start, end = world.span
    assert start == 31 and end in ((36,) if done else (31, 33, 36))
    assert world.records() == {offset: f"old-{offset}".encode() for offset in range(31, end)}


def is_whole(world: World, _done: bool) -> None:
    assert world.span == (7, END) and world.records() == old_records(7, END)


def is_whole_or_new(world: World, done: bool) -> None:
    """Set aside, and to be created again for the same topic."""
    if done or world.span == (0, 0):
        assert world.span == (0, 0) and world.log.high_watermark == 0
    else:
        is_whole(world, done)


def delete_and_create(world: World) -> None:
    world.log.delete(UNIQUE)
    world.create(SECOND)


def delete_and_forget_nothing(world: World) -> None:
    """What a process leaves that ended between the rename and the removal of the lines."""
    noted = [
        (file, file.get(T))
        for file in (world.directories.recovery_points, world.directories.log_starts, world.directories.high_watermarks)
    ]
    world.log.delete(UNIQUE)
    for file, offset in noted:
        file.update({T: offset})
    assert all(offset > 0 for _, offset in noted)


LOOSE = replace(CONFIG, durable=False)  # records may stay in the page cache


def write_unsynced(world: World) -> None:
    """One more batch under loose settings; the log then gets strict ones that no sync has followed."""
    world.log.configure(LOOSE)
    world.log.log.append([batch(END, values(END))])


def strict_with_unsynced_records(world: World) -> None:
    write_unsynced(world)
    world.log.log.config = CONFIG


def is_longer(world: World, done: bool) -> None:
    """What `write_unsynced` wrote may go before the operation has returned, and not afterwards."""
    start, end = world.span
    assert start == 7 and end in ((END + 3,) if done else (END, END + 3))
    assert world.records() == old_records(7, END) | {END + n: f"old-{END + n}".encode() for n in range(end - END)}
    assert world.log.log.last_epoch == 1, "an epoch without records"


def lead(world: World) -> None:
    end = world.log.log.end_offset
    assert world.log.lead(3) == end and world.log.log.last_epoch == 3
    assert world.log.log.synced_end == end and world.log.log.has_readers


def follow(world: World) -> None:
    world.log.follow()
    assert world.log.log.last_epoch == 1
    assert world.log.log.synced_end == world.log.log.end_offset and not world.log.log.has_readers


def led_in_vain(world: World) -> None:
    strict_with_unsynced_records(world)
    world.log.log.begin_epoch(3)


def configure(world: World) -> None:
    world.log.configure(CONFIG)
    assert world.log.log.synced_end == world.log.log.end_offset and world.log.log.config is CONFIG


BASE = a_world().log.log.segment_bases[2]  # a start that the name of a segment says


def raised_stays(world: World, _done: bool) -> None:
    """The start was known to clients before the operation began."""
    starts_at(BASE)(world, True)


def truncate_to(offset: Offset) -> Callable[[World], None]:
    def change(world: World) -> None:
        assert world.log.truncate_to(offset) == world.log.log.end_offset
        start, end = world.span
        assert start == 7 <= end <= max(7, offset)
        assert world.directories.high_watermarks.get(T) <= end

    return change


def made_anew_without_lines(world: World) -> None:
    """A log that no checkpoint knows yet."""
    world.log.delete(UNIQUE)
    world.create()
    world.fill()


def is_whole_until_set_aside(world: World, done: bool) -> None:
    assert world.span == (0, 0) or (not done and world.records() == OLD)


CASES = [
    Case("create", lambda world: world.create(SECOND), is_new, delete_and_forget_nothing, SECOND),
    Case("delete", lambda world: world.log.delete(UNIQUE), is_new, successor=SECOND),
    Case("delete and create", delete_and_create, is_new, successor=SECOND),
    Case("set aside", lambda world: world.log.set_aside(UNIQUE), is_new, successor=SECOND),
    Case("set aside, same topic", lambda world: world.log.set_aside(UNIQUE), is_whole_or_new),
    Case(
        "set aside without lines",
        lambda world: world.log.set_aside(bytes([6]) * 16),
        is_whole_until_set_aside,
        made_anew_without_lines,
    ),
    Case("close", lambda world: world.log.close(), is_whole),
    Case("checkpoint", lambda world: world.checkpoint(END - 1), is_whole),
    Case(
        "checkpoint after a raised start",
        lambda world: world.checkpoint(END - 1),
        raised_stays,
        lambda world: world.log.raise_start(BASE),
    ),
    Case("open", lambda world: world.restarted(FIRST), is_whole),
    *[Case(f"truncate to {at}", truncate_to(at), was_truncated_to(at)) for at in (7, 8, 10, 15, END - 1)],
    Case("raise start to 8", lambda world: world.log.raise_start(8), starts_at(8)),
    Case("raise start to a segment", lambda world: world.log.raise_start(BASE), starts_at(BASE)),
    Case("raise start to the end", lambda world: world.log.raise_start(END), starts_at(END)),
    Case("restart at the end", lambda world: world.log.restart_at(END), was_restarted_at(END)),
    Case("restart after the end", lambda world: world.log.restart_at(31), was_restarted_at(31)),
    Case("begin inside", begin_inside, began_inside, restart_inside),
    Case("lead", lead, is_longer, strict_with_unsynced_records),
    Case("follow", follow, is_longer, led_in_vain),
    Case("configure", configure, is_longer, write_unsynced),
]


@dataclass(frozen=True)
class Stop:
    """How the process ends. fault: of the call at which it ends. power: the seed of a power cut; None: a kill."""

    name: str
    fault: Callable[[Operation], Fault]
    power: int | None


def tear(operation: Operation) -> Fault:
    return PowerCut(written=operation.size // 2)


STOPS = [
    Stop("kill", tear, None),
    *[Stop(f"power cut {seed}", tear, seed) for seed in range(4)],
    Stop("error, kill", lambda _: Fail(), None),
    Stop("error, power cut", lambda _: Fail(), 1),
]


def stopped_at(world: World, change: Callable[[World], object], at: int, stop: Stop) -> bool:
    """Perform `change` up to its disk call number `at`; end the process there. True: it returned before."""
    end = world.disk.operations + at
    world.disk.faults = lambda operation: stop.fault(operation) if operation.index == end else None
    done = True
    try:
        change(world)
    except (PowerLost, DiskError, LogUnreadable):
        done = False
    assert done == (world.disk.operations <= end), "an error that was swallowed"
    world.disk.faults = lambda _: None
    if stop.power is None:
        world.disk.kill()
    else:
        world.disk.crash(random.Random(stop.power))
    return done


def all_stops(case: Case, stop: Stop) -> Iterator[tuple[World, bool]]:
    """The world after a stop at each disk call of the case, and after its end."""
    at, done = 0, False
    while not done:
        world = a_world()
        case.prepare(world)
        done = stopped_at(world, case.change, at, stop)
        yield world, done
        at += 1
    assert at > 2, f"{case.name} makes no disk call"


@rule("log 2.9")
@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.name)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_stop_at_any_call(case: Case, stop: Stop) -> None:
    for world, done in all_stops(case, stop):
        after = world.restarted(case.successor)
        after.check()
        case.check(after, done)
        after.goes_on_durably(case.successor)


@rule("storage 3.8")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_second_stop_while_the_first_is_recovered_from(case: Case) -> None:
    rng = random.Random(case.name)
    for world, done in all_stops(case, STOPS[1 + rng.randrange(4)]):
        for _ in range(2):
            stop = rng.choice(STOPS)
            stopped_at(world, lambda same: same.restarted(case.successor), rng.randrange(40), stop)
        after = world.restarted(case.successor)
        after.check()
        case.check(after, done)


CUTS: list[tuple[str, Callable[[World], object], Callable[[World], object]]] = [
    ("truncate", lambda _: None, lambda world: world.log.truncate_to(15)),
    ("restart", lambda _: None, lambda world: world.log.restart_at(31)),
    ("begin inside", restart_inside, begin_inside),
]


@pytest.mark.parametrize(("prepare", "change"), [cut[1:] for cut in CUTS], ids=[cut[0] for cut in CUTS])
def test_the_recovery_point_is_lowered_on_disk_before_anything_is_cut(
    prepare: Callable[[World], object], change: Callable[[World], object]
) -> None:
    world = a_world()
    prepare(world)
    done: list[tuple[str, str]] = []
    world.disk.trace = lambda kind, path, _: done.append((kind, path.rpartition("/")[2]))
    change(world)
    lowered = done.index(("rename", f"{RECOVERY_POINTS}.tmp"))
    cuts = [at for at, (kind, name) in enumerate(done) if kind in ("truncate", "unlink") and name.endswith(".log")]
    assert lowered < min(cuts)

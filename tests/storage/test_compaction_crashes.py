"""A compaction, stopped at every disk call that it makes, and the log opened again.

The last value of each key is there, no offset has changed, and there is never a hole. The stops are
those of test_partition_crashes.py.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from cleaning_samples import Entry, add, entries, last_values, reopened, run_rounds, slots, spec_of
from storage_samples import disk_with_data
from test_partition_crashes import STOPS, Stop

from jepsen.sim.machine.disk import SimDisk
from jepsen.sim.machine.disk_faults import PowerLost
from quorumlog_storage.cleaning.round import clean
from quorumlog_storage.cleaning.spec import GroupCleaned
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.files.names import CLEANED_SUFFIX, SWAP_SUFFIX
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_errors import LogUnreadable
from quorumlog_storage.segment.segment import Segment
from tests.rules import rule


def a_log(keys: int = 4) -> Log:
    log = reopened(disk_with_data())
    for number in range(16):
        producer: dict[str, Any] = (
            {"producer_id": 7, "producer_epoch": 0, "base_sequence": number} if number % 5 == 0 else {}
        )
        add(log, [(b"k%d" % (number % keys), b"v%d" % number)], epoch=1 + number // 6, **producer)
    log.sync()
    return log


def merged(log: Log) -> None:
    run_rounds(log, segment_bytes=1_000)


def in_many_rounds(log: Log) -> None:
    run_rounds(log, map_bytes=slots(2), load_factor=1.0)


def into_several_outputs(log: Log) -> None:
    run_rounds(log, segment_bytes=2_000, max_output_bytes=300)


CHANGES: list[tuple[str, Callable[[Log], object], int]] = [
    ("segment by segment", run_rounds, 4),
    ("merged", merged, 4),
    ("in many rounds", in_many_rounds, 4),
    ("into several outputs", into_several_outputs, 16),
]


def stopped_at(disk: SimDisk, change: Callable[[], object], at: int, stop: Stop) -> bool:
    """True: the change returned before."""
    end = disk.operations + at
    disk.faults = lambda operation: stop.fault(operation) if operation.index == end else None
    done = True
    try:
        change()
    except (PowerLost, DiskError, LogUnreadable):
        done = False
    disk.faults = lambda _: None
    if stop.power is None:
        disk.kill()
    else:
        disk.crash(random.Random(stop.power))
    return done


def all_stops(change: Callable[[Log], object], keys: int, stop: Stop) -> Iterator[tuple[SimDisk, Log]]:
    at, done = 0, False
    while not done:
        log = a_log(keys)
        disk = log.disk
        assert isinstance(disk, SimDisk)
        done = stopped_at(disk, lambda log=log: change(log), at, stop)  # type: ignore[misc]
        yield disk, log
        at += 1
    assert at > 20


def check(disk: SimDisk, before: list[Entry], recovery_point: int) -> None:
    disk.sync_directory("/data")
    for _ in range(2):  # what a start has made of it, the next one finds whole
        log = reopened(disk, recovery_point=recovery_point)
        found = entries(log)
        assert last_values(found) == last_values(before) and log.end_offset == 16
        assert set(found) <= set(before) and found == sorted(found)
        assert not log.recovery.is_damage and not log.recovery.has_hole and not log.recovery.kept
        assert log.epochs.last_epoch == 3
        producer = log.producers.entry(7) if log.producers else None
        assert producer is not None and producer.last_sequence == 15
        bases = log.segment_bases
        for segment, successor in zip(log.view.segments, bases[1:], strict=False):
            assert segment.end_offset() == successor
        names = disk.list(log.path)
        assert not [name for name in names if name.endswith((".cleaned", ".swap", ".deleted", ".cut"))]
    run_rounds(log)
    add(log, [(b"k0", b"goes on")], epoch=4)
    assert last_values(entries(log)) == {**last_values(before), b"k0": b"goes on"}


@rule("storage 3.3", "storage 9.12", "log 7.14")
@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.name)
@pytest.mark.parametrize(("change", "keys"), [one[1:] for one in CHANGES], ids=[one[0] for one in CHANGES])
def test_a_stop_at_any_call(change: Callable[[Log], object], keys: int, stop: Stop) -> None:
    before = entries(a_log(keys))
    for disk, _ in all_stops(change, keys, stop):
        check(disk, before, recovery_point=16)


@rule("log 7.14")
@pytest.mark.parametrize(("change", "keys"), [one[1:] for one in CHANGES], ids=[one[0] for one in CHANGES])
def test_a_second_stop_while_the_first_is_recovered_from(change: Callable[[Log], object], keys: int) -> None:
    rng, before = random.Random(5), entries(a_log(keys))
    for disk, _ in all_stops(change, keys, STOPS[2]):
        for _ in range(2):
            stopped_at(disk, lambda disk=disk: reopened(disk), rng.randrange(30), rng.choice(STOPS))  # type: ignore[misc]
        check(disk, before, recovery_point=rng.choice((0, 8, 16)))


@rule("storage 9.12")
def test_the_outputs_get_their_suffix_from_the_last_one_on_and_each_name_is_synced() -> None:
    log = a_log(16)
    done = traced(log.disk, lambda: into_several_outputs(log))
    swaps = [at for at, (kind, name) in enumerate(done) if kind == "rename" and name.endswith(".log.cleaned")]
    names = [done[at][1] for at in swaps]
    assert len(names) > 1 and names == sorted(names, reverse=True)
    removed = [at for at, (kind, name) in enumerate(done) if kind == "unlink" and name.endswith(".log")]
    for at, following in zip(swaps, [*swaps[1:], removed[0]], strict=True):
        assert is_synced_between(done, at, following)


def test_the_sources_are_gone_durably_before_an_output_is_live() -> None:
    log = a_log(16)
    done = traced(log.disk, lambda: into_several_outputs(log))
    removed = [at for at, (kind, name) in enumerate(done) if kind == "unlink" and name.endswith(".log")]
    live = [at for at, (kind, name) in enumerate(done) if kind == "rename" and name.endswith(".log.swap")]
    assert max(removed) < min(live) and is_synced_between(done, max(removed), min(live))


def half_swapped() -> tuple[SimDisk, list[Entry]]:
    """All outputs of a group but the first have their suffix; the process ended."""
    log = a_log(16)
    before, disk = entries(log), log.disk
    assert isinstance(disk, SimDisk)
    spec = spec_of(log, segment_bytes=2_000, max_output_bytes=300)
    group = next(step for step in clean(disk, spec) if isinstance(step, GroupCleaned))
    assert len(group.outputs) > 2
    for base, _ in reversed(group.outputs[1:]):
        Segment(disk, log.path, base, 100, CLEANED_SUFFIX).rename(SWAP_SUFFIX)
        disk.sync_directory(log.path)
    disk.kill()
    return disk, before


@rule("storage 3.3")
def test_a_start_drops_a_swap_that_lacks_an_output() -> None:
    disk, before = half_swapped()
    log = reopened(disk, recovery_point=16)
    assert entries(log) == before and not log.recovery.has_hole
    check(disk, before, recovery_point=16)


def test_what_marks_a_swap_as_incomplete_goes_after_the_swap() -> None:
    disk, _ = half_swapped()
    done = traced(disk, lambda: reopened(disk, recovery_point=16))
    swaps = [at for at, (kind, name) in enumerate(done) if kind == "unlink" and name.endswith(SWAP_SUFFIX)]
    marks = [at for at, (kind, name) in enumerate(done) if kind == "unlink" and name.endswith(CLEANED_SUFFIX)]
    assert max(swaps) < min(marks) and is_synced_between(done, max(swaps), min(marks))


def traced(disk: object, change: Callable[[], object]) -> list[tuple[str, str]]:
    """(kind, name) of each call of the disk."""
    done: list[tuple[str, str]] = []
    assert isinstance(disk, SimDisk)
    disk.trace = lambda kind, path, _: done.append((kind, path.rpartition("/")[2]))
    change()
    return done


def is_synced_between(done: list[tuple[str, str]], first: int, last: int) -> bool:
    return "sync_directory" in {kind for kind, _ in done[first:last]}

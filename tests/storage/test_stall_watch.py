"""When a call of the disk counts as one that hangs."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from jepsen.sim.machine.disk import SimDisk
from jepsen.sim.machine.disk_faults import Fail, Operation
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.edge.watched_disk import WatchedDisk, open_calls
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.writer.stall_watch import SILENCE_TICKS, TICKS_PER_STALL, DirectoryStalled, OpenCall, StallWatch

LIMIT_MS = 2_000
TICK_MS = LIMIT_MS // TICKS_PER_STALL
SYNC = OpenCall("sync", "/d/t-0/0.log")


def looks(watch: StallWatch, call: OpenCall | None, times_ms: range) -> DirectoryStalled | None:
    """The first stall that these looks find."""
    for now_ms in times_ms:
        stalled = watch.look(() if call is None else (call,), now_ms)
        if stalled is not None:
            return stalled
    return None


def test_a_call_that_stays_open_is_found_within_the_limit_and_one_tick() -> None:
    watch = StallWatch(LIMIT_MS)
    assert watch.tick_ms == TICK_MS
    stalled = looks(watch, SYNC, range(0, LIMIT_MS + TICK_MS, TICK_MS))
    assert stalled is not None and stalled.call is SYNC and stalled.open_ms == LIMIT_MS
    assert "sync of /d/t-0/0.log has not returned for 2000 ms (log.dir.stall.ms=2000)" in str(stalled)


def test_a_call_that_returns_in_time_is_not() -> None:
    watch = StallWatch(LIMIT_MS)
    assert looks(watch, SYNC, range(0, LIMIT_MS, TICK_MS)) is None
    assert watch.longest_ms == LIMIT_MS - TICK_MS
    assert looks(watch, None, range(LIMIT_MS, 10 * LIMIT_MS, TICK_MS)) is None and watch.longest_ms == 0


def test_many_calls_in_a_row_are_no_long_one() -> None:
    """Each is another object, though they are equal."""
    watch = StallWatch(LIMIT_MS)
    for now_ms in range(0, 10 * LIMIT_MS, TICK_MS):
        assert watch.look((OpenCall("sync", "/d/t-0/0.log"),), now_ms) is None


def test_one_of_several_calls_is_enough() -> None:
    watch = StallWatch(LIMIT_MS)
    found = None
    for now_ms in range(0, 2 * LIMIT_MS, TICK_MS):
        found = found or watch.look((OpenCall("write", "/d/t-1/0.log"), SYNC), now_ms)
    assert found is not None and found.call is SYNC


@pytest.mark.parametrize("silent_ms", [3 * LIMIT_MS, 100 * LIMIT_MS])
def test_the_silence_of_the_loop_is_not_the_disks(silent_ms: int) -> None:
    """The process was stopped (SIGSTOP) in the middle of a call, or got no processor: two ticks of that count."""
    watch = StallWatch(LIMIT_MS)
    before_ms = 5 * TICK_MS
    assert looks(watch, SYNC, range(0, before_ms + 1, TICK_MS)) is None
    awake_ms = before_ms + silent_ms
    assert watch.look((SYNC,), awake_ms) is None
    left_ms = LIMIT_MS - before_ms - SILENCE_TICKS * TICK_MS
    assert looks(watch, SYNC, range(awake_ms + TICK_MS, awake_ms + left_ms, TICK_MS)) is None
    assert watch.look((SYNC,), awake_ms + left_ms) is not None


def test_a_loop_that_is_late_at_each_look_still_finds_it() -> None:
    """A slow machine: each tick takes five times as long, and counts double at most."""
    watch = StallWatch(LIMIT_MS)
    step_ms = 5 * TICK_MS
    needed = TICKS_PER_STALL // SILENCE_TICKS
    assert looks(watch, SYNC, range(0, needed * step_ms, step_ms)) is None
    assert watch.look((SYNC,), needed * step_ms) is not None


def test_the_first_look_counts_nothing() -> None:
    watch = StallWatch(LIMIT_MS)
    assert watch.look((SYNC,), 10**9) is None and watch.longest_ms == 0


def test_a_watched_disk_notes_a_change_while_it_is_open_and_a_read_never() -> None:
    disk, own, seen = SimDisk(), (threading.get_ident(),), list[list[OpenCall]]()
    watched = WatchedDisk(disk)
    watched.make_directory("/d")

    def look(_: Operation) -> None:
        seen.append(open_calls(own))

    disk.faults = look
    file = watched.open("/d/file", create=True)
    file.pwritev([b"x"], 0)
    file.sync()
    file.truncate(1)
    watched.rename("/d/file", "/d/other")
    watched.sync_directory("/d")
    watched.unlink("/d/other")
    watched.remove_tree("/d")
    assert [[call.op for call in calls] for calls in seen] == [
        [op] for op in ("create", "write", "sync", "truncate", "rename", "sync directory", "unlink", "remove")
    ]
    assert seen[1] == [OpenCall("write", "/d/file")]
    seen.clear()
    watched.open("/file", create=True)
    seen.clear()
    again = watched.open("/file")
    again.pread(0, 1)
    again.size()
    watched.list("/")
    watched.exists("/file")
    assert seen and not any(seen)


def test_a_watched_disk_forgets_a_change_that_failed() -> None:
    disk = SimDisk()
    file = WatchedDisk(disk).open("/file", create=True)
    disk.faults = lambda _: Fail()
    for call in (file.sync, lambda: file.pwritev([b"x"], 0)):
        with pytest.raises(DiskError):
            call()
    assert open_calls((threading.get_ident(),)) == []


def test_syncs_of_log_files_are_timed_by_directory(tmp_path: Path) -> None:
    disk = WatchedDisk(RealDisk())
    for name in ("t-0", "t-1"):
        disk.make_directory(f"{tmp_path}/{name}")
        for file in ("00000000000000000000.log", "leader-epoch-checkpoint"):
            disk.open(f"{tmp_path}/{name}/{file}", create=True).sync()
    (found,) = disk.resources.flushes.items()
    assert found[0] == str(tmp_path) and found[1].count == 2 and 0 < found[1].sum < 60

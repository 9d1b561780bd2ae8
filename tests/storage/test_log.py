"""The log: reads at its edges, refusals, recovery, and what is durable before it is acknowledged."""

from __future__ import annotations

import errno
import random

import pytest
from storage_samples import PATH, SMALL, append, batch, disk_with_data, open_log, read_all, reappend

from jepsen.sim.machine.disk import SimDisk
from jepsen.sim.machine.disk_faults import Fail, Operation, ShortWrite
from quorumlog.records import headers
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.files.disk import Disk, DiskError
from quorumlog_storage.files.names import index_name, log_name, time_index_name
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_errors import LogClosed, LogUnreadable, UnexpectedAppend
from quorumlog_storage.log.log_view import OffsetOutOfRange
from quorumlog_storage.rules.epochs import CHECKPOINT_NAME
from quorumlog_storage.segment.log_config import LogConfig
from tests.rules import rule


def filled(batches: int = 20, records: int = 3) -> tuple[SimDisk, Log]:
    disk = disk_with_data()
    log = open_log(disk)
    for number in range(batches):
        append(log, [b"%d" % number] * records)
    log.sync()
    return disk, log


@rule("storage 1.1", "storage 1.22", "log 3.2", "log 4.1")
def test_reads_at_every_offset_with_every_bound() -> None:
    _, log = filled()
    for offset in range(log.end_offset):
        for bound in range(offset, log.end_offset + 1):
            found = headers(log.read(offset, 10_000, upper_bound=bound))
            if bound // 3 * 3 <= offset:  # no whole batch fits below the bound
                assert found == []
            else:
                assert found[0].base_offset == offset // 3 * 3
                assert found[-1].next_offset <= bound


@rule("storage 1.23", "log 3.12")
def test_max_bytes_cuts_at_batches_but_not_below_one() -> None:
    _, log = filled()
    size = headers(log.read(0, 1, upper_bound=60))[0].size
    assert len(log.read(0, 1, upper_bound=60)) == size
    assert len(log.read(0, 2 * size - 1, upper_bound=60)) == size
    assert len(log.read(0, 2 * size, upper_bound=60)) == 2 * size


@rule("log 5.3")
def test_a_read_is_cut_if_another_batch_lies_below_its_bound_in_this_segment_or_the_next() -> None:
    _, log = filled()
    assert len(log.segment_bases) > 2
    for offset in range(0, log.end_offset, 3):
        for bound in range(offset, log.end_offset + 1, 3):
            for max_bytes in (1, 200, 10_000):
                part = log.read_part(offset, max_bytes, upper_bound=bound)
                assert part.data == log.read(offset, max_bytes, upper_bound=bound)
                end = headers(part.data)[-1].next_offset if part.data else offset
                assert part.is_cut == (end < bound)


@rule("storage 1.22", "log 3.2")
def test_reads_outside_are_refused_with_the_range() -> None:
    _, log = filled()
    assert log.read(60, 100, upper_bound=60) == b""
    for offset in (-1, 61):
        with pytest.raises(OffsetOutOfRange, match="0 to 60") as caught:
            log.read(offset, 100, upper_bound=60)
        assert (caught.value.start, caught.value.end) == (0, 60)


BAD_APPENDS = [
    ("a gap", [batch(4, [b"x"])]),
    ("an overlap", [batch(2, [b"x"])]),
    ("a gap inside", [batch(3, [b"x"]), batch(5, [b"y"])]),
    ("an older epoch", [batch(3, [b"x"], epoch=1)]),
    ("an older epoch inside", [batch(3, [b"x"], epoch=4), batch(4, [b"y"], epoch=3)]),
    ("no epoch", [batch(3, [b"x"], epoch=-1)]),
]


@rule("log 3.18")
@pytest.mark.parametrize("batches", [c[1] for c in BAD_APPENDS], ids=[c[0] for c in BAD_APPENDS])
def test_what_cannot_follow_is_refused_and_nothing_changes(batches: list[object]) -> None:
    disk = disk_with_data()
    log = open_log(disk)
    append(log, [b"a", b"b", b"c"], epoch=2)
    before = disk.read_bytes(f"{PATH}/{log_name(0)}")
    with pytest.raises(UnexpectedAppend):
        log.append(batches)  # type: ignore[arg-type]
    assert disk.read_bytes(f"{PATH}/{log_name(0)}") == before
    append(log, [b"d"], epoch=2)
    assert log.end_offset == 4


@rule("storage 1.3")
def test_one_write_for_many_batches_and_no_copy_of_the_records() -> None:
    kinds: list[str] = []
    disk = SimDisk(trace=lambda kind, path, digest: kinds.append(kind))
    disk.make_directory("/data")
    log = open_log(disk, LogConfig())
    kinds.clear()
    log.append([batch(n, [b"v"]) for n in range(50)])
    assert kinds == ["pwritev"]
    assert isinstance(batch(0, [b"v"]).parts[1], memoryview)


@rule("storage 1.15")
def test_a_follower_holds_its_leaders_bytes() -> None:
    _, leader = filled()
    disk = disk_with_data()
    follower = open_log(disk, LogConfig(segment_bytes=700))
    while follower.end_offset < leader.end_offset:
        reappend(follower, leader.read(follower.end_offset, 300, upper_bound=60))
    assert read_all(follower) == read_all(leader)
    assert follower.epochs.entries == leader.epochs.entries


def test_sync_comes_before_synced_end_and_epochs_before_data() -> None:
    order: list[str] = []
    disk = SimDisk(trace=lambda kind, path, digest: order.append(f"{kind} {path.rpartition('/')[2]}"))
    disk.make_directory("/data")
    log = open_log(disk)
    order.clear()
    append(log, [b"a"])
    assert (log.end_offset, log.synced_end) == (1, 0)
    log.sync()
    assert (log.end_offset, log.synced_end) == (1, 1)
    data = log_name(0)
    assert order == [
        f"pwritev {data}",
        "open leader-epoch-checkpoint.tmp",
        "truncate leader-epoch-checkpoint.tmp",
        "pwritev leader-epoch-checkpoint.tmp",
        "sync leader-epoch-checkpoint.tmp",
        "rename leader-epoch-checkpoint.tmp",
        "sync_directory t-0",
        f"sync {data}",
    ]


def test_a_new_segments_name_is_synced_too() -> None:
    disk, log = filled(batches=3)
    synced: list[str] = []
    disk.trace = lambda kind, path, digest: synced.append(path) if kind.startswith("sync") else None
    append(log, [b"x" * 300])
    log.sync()
    assert synced == [f"{PATH}/{log_name(log.segment_bases[-1])}", PATH]


@pytest.mark.parametrize("fault", [Fail(errno.EIO), ShortWrite(30), ShortWrite(0)], ids=["EIO", "short", "nothing"])
def test_a_failed_write_ends_the_log_and_is_never_seen(fault: Fail | ShortWrite) -> None:
    disk, log = filled()
    disk.faults = lambda operation: fault if operation.kind == "pwritev" else None
    with pytest.raises(DiskError):
        append(log, [b"lost"])
    disk.faults = lambda operation: None
    assert log.end_offset == 60 and len(read_all(log)) == 60
    for change in (lambda: append(log, [b"again"]), log.sync, lambda: log.truncate_to(3)):
        with pytest.raises(LogClosed, match="failed earlier"):
            change()
    log.close()
    disk.kill()
    assert open_log(disk).end_offset == 60


def test_a_failed_sync_ends_the_log() -> None:
    disk, log = filled()
    append(log, [b"x"])
    disk.faults = lambda operation: Fail() if operation.kind == "sync" else None
    with pytest.raises(DiskError):
        log.sync()
    assert log.synced_end == 60 and log.failure is not None
    with pytest.raises(LogClosed):
        log.sync()


@pytest.mark.parametrize("power_fails", [False, True])
def test_the_next_process_does_not_take_pages_of_a_failed_sync_for_stored(power_fails: bool) -> None:
    """Linux marks the pages clean: reads return them as if they were on disk, and the next sync reports success."""
    disk, log = filled()
    append(log, [b"x"])
    disk.faults = lambda operation: Fail() if operation.kind == "sync" else None
    with pytest.raises(DiskError):
        log.sync()
    disk.faults = lambda operation: None
    disk.kill()
    log = open_log(disk)
    acknowledged = log.synced_end
    if power_fails:
        disk.crash(random.Random(1))
        log = open_log(disk)
    assert (acknowledged, log.end_offset) == (60, 60)
    append(log, [b"y"])
    log.sync()
    assert [value for _, _, value in read_all(log)][60:] == [b"y"]


@rule("storage 3.4")
def test_a_torn_tail_at_every_byte() -> None:
    disk = disk_with_data()
    log = open_log(disk, LogConfig())
    for number in range(4):
        append(log, [b"%d" % number] * 2)
    log.close()
    path = f"{PATH}/{log_name(0)}"
    content = disk.read_bytes(path)
    ends = [header.end for header in headers(content)]
    for size in range(len(content) + 1):
        disk.kill()
        file = disk.open(path)
        file.truncate(0)
        file.pwritev([content[:size]], 0)
        log = open_log(disk, LogConfig(), clean=size % 2 == 0)
        whole = sum(end <= size for end in ends)
        assert log.end_offset == 2 * whole
        assert log.recovery.cut_bytes == size - (ends[whole - 1] if whole else 0)
        append(log, [b"new"], epoch=2)
        assert read_all(log)[-1] == (2 * whole, 2, b"new")
        log.sync()
        disk.unlink(f"{PATH}/leader-epoch-checkpoint")


@rule("storage 3.4", "log 2.4")
def test_a_flipped_bit_cuts_the_log_there_and_removes_what_follows() -> None:
    for seed in range(40):
        disk, log = filled()
        rng = random.Random(seed)
        base = rng.choice(log.segment_bases[:-1])
        path = f"{PATH}/{log_name(base)}"
        content = disk.read_bytes(path)
        bit = rng.randrange(len(content) * 8)
        hit = next(header for header in headers(content) if bit < header.end * 8)
        disk.kill()
        disk.flip_bit(path, bit)
        log = open_log(disk)
        in_epoch_field = 12 * 8 <= bit - hit.position * 8 < 16 * 8  # not under the checksum, may stay plausible
        if not in_epoch_field:
            assert log.end_offset == hit.base_offset
            assert log.recovery.reason
        assert log.segment_bases[-1] <= log.end_offset


def test_losing_synced_records_is_reported() -> None:
    disk, log = filled()
    disk.kill()
    disk.flip_bit(f"{PATH}/{log_name(0)}", 8 * 100)
    log = open_log(disk, recovery_point=5)
    assert log.end_offset == 3 and log.recovery.lost_below_recovery_point
    disk.kill()
    assert not open_log(disk, recovery_point=3).recovery.lost_below_recovery_point


@rule("storage 3.4")
def test_only_segments_from_the_recovery_point_on_are_scanned() -> None:
    disk, log = filled()
    bases = log.segment_bases
    sizes = [disk.open(f"{PATH}/{log_name(base)}").size() for base in bases]
    disk.kill()
    log = open_log(disk, recovery_point=bases[-2] + 1)
    assert log.recovery.scanned_bytes == sum(sizes[-2:]) < sum(sizes)
    assert len(read_all(log)) == 60


DAMAGE = ["remove", "tear", "zero", "flip", "lie"]


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("clean", [True, False])
def test_an_index_is_only_a_cache(damage: str, clean: bool) -> None:
    disk, log = filled()
    want = read_all(log)
    log.close()
    disk.kill()
    for base in log.segment_bases:
        path = f"{PATH}/{index_name(base)}"
        file = disk.open(path)
        match damage:
            case "remove":
                disk.unlink(path)
            case "tear":
                file.truncate(max(0, file.size() - 3))
            case "zero":
                file.pwritev([bytes(16)], 0)
            case "flip":
                disk.flip_bit(path, 30)
            case "lie":
                file.pwritev([bytes.fromhex("0000000500000046")], 0)
    log = open_log(disk, clean=clean)
    assert read_all(log) == want
    found = [headers(log.read(offset, 1, upper_bound=60))[0].base_offset for offset in range(60)]
    assert found == [offset // 3 * 3 for offset in range(60)]


@rule("log 1.15", "log 2.10")
def test_lost_epochs_are_read_from_the_log() -> None:
    disk, log = filled(batches=5)
    for epoch in (3, 4, 9):
        append(log, [b"x"] * 4, epoch)
    log.close()
    want = log.epochs.entries
    for content in (None, b"", b"garbage"):
        disk.kill()
        disk.unlink(f"{PATH}/leader-epoch-checkpoint")
        if content is not None:
            disk.open(f"{PATH}/leader-epoch-checkpoint", create=True).pwritev([content], 0)
        assert open_log(disk, recovery_point=20, clean=True).epochs.entries == want


@rule("storage 3.3", "log 2.6")
def test_leftovers_and_orphans_are_removed() -> None:
    disk, log = filled()
    log.close()
    for name in (index_name(9999), "x.cleaned", "00000000000000000000.log.deleted", "leader-epoch-checkpoint.tmp"):
        disk.open(f"{PATH}/{name}", create=True)
    disk.open(f"{PATH}/partition.metadata", create=True)
    disk.kill()
    open_log(disk, clean=True)
    names = disk.list(PATH)
    assert "partition.metadata" in names
    assert not [name for name in names if name.endswith((".cleaned", ".deleted", ".tmp")) or name == index_name(9999)]


@rule("storage 6.8", "log 1.16", "log 2.14")
def test_truncate_to_every_offset_and_reopen() -> None:
    for offset in range(61):
        disk, log = filled()
        end = log.truncate_to(offset)
        assert end == offset // 3 * 3
        assert log.synced_end == end
        want = read_all(log)
        assert len(want) == end
        disk.crash(random.Random(offset))
        assert read_all(open_log(disk)) == want


def test_going_on_elsewhere_and_forgetting_the_start() -> None:
    disk, log = filled()
    log.advance_start(30)
    assert log.start_offset == 30 and log.segment_bases[0] <= 30 and log.epochs.entries[0].start_offset == 30
    with pytest.raises(OffsetOutOfRange):
        log.read(29, 100, upper_bound=60)
    log.truncate_fully(500)
    assert (log.start_offset, log.end_offset, log.synced_end, log.last_epoch) == (500, 500, 500, -1)
    append(log, [b"x"], epoch=9)
    log.close()
    disk.kill()
    assert read_all(open_log(disk, clean=True)) == [(500, 9, b"x")]


@rule("log 3.17")
def test_a_closed_log_takes_no_changes_and_a_batch_cut_under_a_reader_is_named() -> None:
    disk, log = filled()
    disk.open(f"{PATH}/{log_name(0)}").truncate(10)
    with pytest.raises(LogUnreadable, match="byte 0") as raised:
        log.read(0, 100, upper_bound=60)
    assert raised.value.log is log and str(log.failure) == str(raised.value.cause)
    log.close()
    log.close()
    with pytest.raises(LogClosed, match="is closed"):
        append(log, [b"x"])


def test_a_read_error_fails_the_log_for_readers_and_the_writer_goes_on() -> None:
    """The loop takes the replica offline; what is queued until then is written as before."""
    disk, log = filled()
    disk.faults = lambda operation: Fail(errno.EIO) if operation.kind == "pread" else None
    with pytest.raises(LogUnreadable, match="cannot be read: read of"):
        log.read(0, 100, upper_bound=60)
    disk.faults = lambda _: None
    assert isinstance(log.failure, DiskError) and log.change_failure is None
    append(log, [b"x"])
    log.sync()
    assert log.synced_end == log.end_offset
    changes = changes_of(disk)
    log.close()
    assert not [name for name in changes if "pwritev" in name], "caches are made by reading"


def test_too_many_open_files_are_no_failure_of_the_log() -> None:
    disk, log = filled()
    disk.faults = lambda operation: Fail(errno.EMFILE) if operation.kind == "pread" else None
    with pytest.raises(DiskError):
        log.read(0, 100, upper_bound=60)
    assert log.failure is None


@rule("storage 11.3")
def test_a_reader_that_meets_a_truncation_does_not_fail_the_log() -> None:
    """Its view is older than the cut: it learns what the log holds now, and nothing is wrong with the disk."""
    disk, log = filled()
    cut_to, view = log.end_offset - 3, log.view

    def cut(operation: Operation) -> None:
        if operation.kind == "pread":
            disk.faults = lambda _: None
            log.truncate_to(cut_to)

    disk.faults = cut
    with pytest.raises(OffsetOutOfRange):
        log.read(view.end_offset - 1, 100, upper_bound=view.end_offset)
    assert log.failure is None and log.end_offset <= cut_to


@rule("storage 3.6")
@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES])
def test_a_log_that_cannot_be_read_at_its_opening_is_unreadable_and_unchanged(number: int) -> None:
    disk, _ = filled()
    before = disk.used_bytes()
    disk.faults = lambda operation: Fail(number) if operation.kind == "pread" else None
    with pytest.raises(LogUnreadable):
        Log.open(disk, PATH, SMALL)
    disk.faults = lambda _: None
    assert disk.used_bytes() == before
    assert Log.open(disk, PATH, SMALL).end_offset == 60


def test_a_truncation_that_cannot_read_changes_nothing() -> None:
    disk, log = filled()
    disk.faults = lambda operation: Fail(errno.EIO) if operation.kind == "pread" else None
    with pytest.raises(LogUnreadable):
        log.truncate_to(31)
    disk.faults = lambda _: None
    assert log.change_failure is None and log.end_offset == 60
    assert log.truncate_to(31) <= 31


def test_a_batch_whose_end_is_gone_is_not_served_in_part() -> None:
    """Its header is there, so it is found; the read then comes short."""
    disk, log = filled()
    last = headers(log.read(0, 1 << 20, upper_bound=60))[-1]
    disk.open(f"{PATH}/{log_name(0)}").truncate(last.end - 1)
    with pytest.raises(LogUnreadable, match="were written"):
        log.read(last.base_offset, 1, upper_bound=60)


@rule("storage 6.3")
def test_an_epoch_is_on_disk_before_the_synced_end_passes_its_first_record() -> None:
    disk = disk_with_data()
    log = open_log(disk, LogConfig(durable=False))
    append(log, [b"a"])
    log.sync()
    assert log.begin_epoch(4) == 1
    append(log, [b"b"], epoch=4)
    log.sync()
    disk.crash(random.Random(1), "none")
    assert disk.read_bytes(f"{PATH}/{CHECKPOINT_NAME}").splitlines()[2:] == [b"1 0", b"4 1"]


def test_an_epoch_without_records_costs_no_sync() -> None:
    """Two of them for each of 5,000 partitions once made a start take 40 s."""
    disk = disk_with_data()
    log = open_log(disk)
    append(log, [b"a"])
    log.sync()
    seen: list[str] = []
    disk.trace = lambda kind, _path, _digest: seen.append(kind)
    assert log.begin_epoch(4) == 1 and log.last_epoch == 4
    log.sync()
    assert not [kind for kind in seen if "sync" in kind]


@pytest.mark.parametrize("clean", [True, False])
def test_a_crash_after_an_epoch_that_wrote_nothing_leaves_the_log_as_it_was(clean: bool) -> None:
    disk = disk_with_data()
    log = open_log(disk)
    append(log, [b"a"])
    log.begin_epoch(4)
    log.close()
    if not clean:
        disk.crash(random.Random(1))
    again = Log.open(disk, PATH, SMALL, clean=clean)
    assert (again.end_offset, again.last_epoch) == (1, 1)
    append(again, [b"b"], epoch=5)
    again.sync()
    assert again.epochs.entries == ((1, 0), (5, 1))


def test_an_empty_log_without_epochs_is_opened_without_a_sync_after_a_clean_stop() -> None:
    disk = disk_with_data()
    open_log(disk).close()
    seen: list[str] = []
    disk.trace = lambda kind, _path, _digest: seen.append(kind)
    assert Log.open(disk, PATH, SMALL, clean=True).end_offset == 0
    assert not [kind for kind in seen if "sync" in kind]


def test_the_same_on_a_real_disk(tmp_path: object) -> None:
    disk: Disk = RealDisk()
    path = f"{tmp_path}/t-0"
    log = Log.open(disk, path, SMALL)
    for number in range(20):
        append(log, [b"%d" % number] * 3)
    log.truncate_to(30)
    append(log, [b"new"], epoch=2)
    log.sync()
    want = read_all(log)
    del log
    assert read_all(Log.open(disk, path, SMALL)) == want


def changes_of(disk: SimDisk) -> list[str]:
    """Records every change and sync from now on, with the last name of its path; reads are left out."""
    seen: list[str] = []

    def note(kind: str, path: str, digest: bytes) -> None:
        if kind in ("open", "unlink", "truncate", "sync", "sync_directory", "pwritev", "rename"):
            seen.append(f"{kind} {path.rpartition('/')[2]}")

    disk.trace = note
    return seen


@rule("storage 6.8")
def test_a_truncation_takes_names_before_bytes_and_is_durable() -> None:
    disk, log = filled(batches=10)
    first, second, third = log.segment_bases
    seen = changes_of(disk)
    log.truncate_to(first + 3)
    assert [change for change in seen if not change.startswith("open")] == [
        f"unlink {log_name(third)}",
        f"unlink {index_name(second)}",
        f"unlink {time_index_name(second)}",
        f"unlink {log_name(second)}",
        f"unlink {index_name(first)}",
        f"unlink {time_index_name(first)}",
        "sync_directory t-0",
        f"truncate {log_name(first)}",
        f"sync {log_name(first)}",
    ]


def test_going_on_elsewhere_is_never_without_a_segment() -> None:
    disk, log = filled(batches=2)
    seen = changes_of(disk)
    log.truncate_fully(700)
    created = seen.index(f"open {log_name(700)}")
    removed = seen.index(f"unlink {log_name(0)}")
    assert "sync_directory t-0" in seen[created:removed]
    assert "sync_directory t-0" in seen[removed:]


def test_recovery_takes_names_before_bytes() -> None:
    disk, log = filled(batches=10)
    first, second, third = log.segment_bases
    first_batch = log.view.segments[1].batch_end(0, 400)
    disk.kill()
    disk.open(f"{PATH}/{log_name(second)}").truncate(first_batch + 15)
    seen = changes_of(disk)
    open_log(disk)
    order = [c for c in seen if c.startswith(("sync", "truncate", "unlink 0000", "rename")) and "checkpoint" not in c]
    names, cut = order.index("sync_directory t-0"), order.index(f"truncate {log_name(second)}")
    copy = f"{log_name(second)}.{first_batch}.cut.tmp"
    kept = [f"rename {log_name(third)}", f"truncate {copy}", f"sync {copy}", f"rename {copy}"]
    assert [change for change in order[:names] if not change.startswith("unlink")] == kept
    assert names < cut < order.index(f"sync {log_name(second)}")
    assert f"sync {log_name(first)}" in order, "what was only in memory is made durable"

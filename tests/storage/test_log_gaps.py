"""Offsets rise; gaps lie inside segments; where two segments do not meet, something was lost."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from storage_samples import PATH, SMALL, append, batch, disk_with_data, open_log, raw, read_all

from jepsen.sim.machine.disk import SimDisk
from quorumlog.ids import Offset
from quorumlog.records import headers
from quorumlog_storage.files.names import index_name, log_name
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_errors import UnexpectedAppend
from quorumlog_storage.segment.batch import StoredBatch, received_batches
from quorumlog_storage.segment.log_config import LogConfig
from quorumlog_storage.segment.offset_index import MAX_RELATIVE_OFFSET
from tests.parts import few
from tests.rules import rule


def with_gaps(*bases: Offset) -> list[StoredBatch]:
    return [batch(base, [b"%d" % base]) for base in bases]


def offsets_of(log: Log) -> list[Offset]:
    return [offset for offset, _, _ in read_all(log)]


def filled(batches: int = 20) -> tuple[SimDisk, Log]:
    disk = disk_with_data()
    log = open_log(disk)
    for number in range(batches):
        append(log, [b"%d" % number] * 3)
    log.sync()
    return disk, log


@rule("storage 1.4")
def test_only_a_follower_may_append_gaps() -> None:
    log = open_log(disk_with_data())
    with pytest.raises(UnexpectedAppend, match="where 0 is next"):
        log.append(with_gaps(4))
    log.append(with_gaps(4, 9), gaps=True)
    assert (log.end_offset, offsets_of(log)) == (10, [4, 9])


@rule("log 3.18")
@pytest.mark.parametrize("bases", [(3, 3), (3, 1), (9, 5)])
def test_offsets_rise_and_epochs_do_not_fall_for_a_follower_too(bases: tuple[Offset, ...]) -> None:
    log = open_log(disk_with_data())
    with pytest.raises(UnexpectedAppend):
        log.append(with_gaps(*bases), gaps=True)
    with pytest.raises(UnexpectedAppend, match="epoch 1 after epoch 2"):
        log.append([batch(0, [b"a"], epoch=2), batch(7, [b"b"], epoch=1)], gaps=True)
    assert log.end_offset == 0


def test_a_segment_begins_where_the_one_before_it_ends_also_at_a_gap() -> None:
    disk = disk_with_data()
    log = open_log(disk)
    bases = [50 * n + 7 for n in range(30)]
    for base in bases:
        log.append(with_gaps(base), gaps=True)
    assert len(log.segment_bases) > 3 and not set(log.segment_bases[1:]) & set(bases)
    assert set(log.segment_bases[1:]) <= {base + 1 for base in bases}
    log.close()
    for clean in (True, False):
        disk.kill()
        again = open_log(disk, clean=clean, recovery_point=again_point(clean, log))
        assert (again.recovery.reason, offsets_of(again), again.end_offset) == ("", bases, log.end_offset)
        assert again.segment_bases == log.segment_bases


def again_point(clean: bool, log: Log) -> Offset:
    return log.end_offset if clean else log.segment_bases[2]


@rule("storage 1.4", "log 3.12", "log 4.1")
def test_every_offset_of_a_gap_reads_what_follows_it() -> None:
    log = open_log(disk_with_data())
    bases = [10 * n for n in range(20)]
    for base in bases:
        log.append(with_gaps(base), gaps=True)
    for offset in range(log.end_offset):
        found = headers(log.read(offset, 1, upper_bound=log.end_offset))
        assert found[0].base_offset == -(-offset // 10) * 10
        assert log.read(offset, 1, upper_bound=found[0].base_offset) == b""


@rule("log 2.7", "log 4.2")
@settings(max_examples=few(60), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 4)), min_size=1, max_size=25), st.data())
def test_a_copy_with_gaps_is_cut_and_reopened_like_any_log(whats: list[tuple[int, int]], data: st.DataObject) -> None:
    disk = disk_with_data()
    log, model = open_log(disk), []
    for gap, count in whats:
        stored = batch(log.end_offset + gap, [b"v"] * count)
        model.append((stored.base_offset, stored.last_offset))
        log.append([stored], gaps=True)
    cut = data.draw(st.integers(0, log.end_offset))
    end = log.truncate_to(cut)
    kept = [entry for entry in model if entry[1] < cut] if cut < model[-1][1] + 1 else model
    assert end == (kept[-1][1] + 1 if kept else 0)
    log.sync()
    disk.crash(random.Random(cut))
    again = open_log(disk, recovery_point=data.draw(st.integers(0, end)))
    assert again.recovery.reason == "" and again.end_offset == end
    assert offsets_of(again) == [offset for first, last in kept for offset in range(first, last + 1)]


@rule("storage 1.18", "log 2.8", "log 5.2")
@pytest.mark.parametrize("interval", [100, 4096], ids=["indexed", "not indexed"])
def test_a_gap_is_shorter_than_a_segment_may_be(interval: int) -> None:
    log = open_log(disk_with_data(), LogConfig(index_interval_bytes=interval))
    append(log, [b"a"])
    with pytest.raises(UnexpectedAppend, match="no segment holds both"):
        log.append(with_gaps(1, 2 + MAX_RELATIVE_OFFSET + 1), gaps=True)
    log.append(with_gaps(1, 2 + MAX_RELATIVE_OFFSET), gaps=True)
    assert log.segment_bases == (0, 2)
    assert offsets_of(log) == [0, 1, 2 + MAX_RELATIVE_OFFSET]


@rule("storage 3.9")
@pytest.mark.parametrize("clean", [True, False])
def test_a_log_ends_before_a_hole_between_segments(clean: bool) -> None:
    disk, log = filled()
    bases = log.segment_bases
    log.close()
    disk.kill()
    disk.unlink(f"{PATH}/{log_name(bases[2])}")
    again = open_log(disk, clean=clean, recovery_point=bases[-1])
    assert again.recovery.has_hole and again.recovery.lost_below_recovery_point
    assert f"begins where offset {bases[2]} should follow" in again.recovery.reason
    assert offsets_of(again) == list(range(bases[2]))
    append(again, [b"goes on"], epoch=2)


@pytest.mark.parametrize("clean", [True, False])
def test_a_trusted_segment_that_lost_its_end_is_a_hole_too(clean: bool) -> None:
    disk, log = filled()
    bases = log.segment_bases
    log.close()
    disk.kill()
    content = disk.read_bytes(f"{PATH}/{log_name(bases[1])}")
    last = headers(content)[-1]
    disk.open(f"{PATH}/{log_name(bases[1])}").truncate(last.position)
    again = open_log(disk, clean=clean, recovery_point=bases[-1])
    assert again.recovery.has_hole
    assert offsets_of(again) == list(range(last.base_offset))


def test_a_whole_log_has_no_hole_and_boundaries_need_no_index() -> None:
    disk, log = filled()
    log.close()
    for base in log.segment_bases[::2]:
        disk.unlink(f"{PATH}/{index_name(base)}")
    disk.kill()
    again = open_log(disk, clean=True, recovery_point=60)
    assert (again.recovery.has_hole, again.recovery.scanned_bytes, again.end_offset) == (False, 0, 60)


def test_an_offset_that_a_flipped_bit_has_raised_is_no_gap() -> None:
    """Offsets are not under the checksum: the batch after it says that the gap is none."""
    content = b"".join(raw(batch(n, [b"%d" % n])) for n in range(5))
    found = headers(content)
    for number in range(4):
        disk = disk_with_data()
        disk.make_directory(PATH)
        rotten = bytearray(content)
        rotten[found[number].position + 6] = 1  # 256 more
        disk.open(f"{PATH}/{log_name(0)}", create=True).pwritev([rotten], 0)
        log = open_log(disk)
        assert offsets_of(log) == list(range(number))
        assert f"after a gap, but offset {number + 1} comes next" in log.recovery.reason


@rule("storage 1.15")
def test_a_follower_copies_a_log_with_gaps_byte_for_byte() -> None:
    leader = open_log(disk_with_data())
    for base in range(0, 900, 30):
        leader.append(with_gaps(base), gaps=True)
    follower = open_log(disk_with_data(), SMALL)
    while follower.end_offset < leader.end_offset:
        data = leader.read(follower.end_offset, 200, upper_bound=leader.end_offset)
        follower.append(received_batches(data), gaps=True)
    assert read_all(follower) == read_all(leader)
    assert follower.segment_bases == leader.segment_bases

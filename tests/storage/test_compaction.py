"""Compaction against last-write-wins: the last value of each key stays, offsets and order never change."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path

import pytest
from cleaning_samples import (
    CONFIG,
    add,
    entries,
    last_values,
    reopened,
    run_round,
    run_rounds,
    slots,
    spec_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from storage_samples import PATH, disk_with_data

from quorumlog.records import Codec
from quorumlog_storage.cleaning.round import clean
from quorumlog_storage.cleaning.spec import GroupCleaned, RoundDone
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.files.disk import FileMissing
from quorumlog_storage.files.names import CLEANED_SUFFIX
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.swap import Superseded
from quorumlog_storage.segment.log_config import LogConfig
from quorumlog_storage.segment.log_file import CorruptBatch
from quorumlog_storage.segment.segment import Segment
from tests.parts import few
from tests.rules import rule

KEYS = st.sampled_from([b"a", b"b", b"c", b"", b"long" * 30])
BATCH = st.tuples(
    st.lists(st.tuples(KEYS, st.sampled_from([None, b"x", b"value" * 20])), min_size=1, max_size=6),
    st.sampled_from([Codec.NONE, Codec.NONE, Codec.LZ4, Codec.GZIP]),
)


def filled(count: int = 40, keys: int = 5) -> Log:
    log = reopened(disk_with_data())
    for number in range(count):
        add(log, [(b"k%d" % (number % keys), b"v%d" % number), (b"k%d" % (number % 3), b"w%d" % number)])
    return log


def segments_meet(log: Log) -> None:
    for segment, successor in zip(log.view.segments, log.view.bases[1:], strict=False):
        assert segment.end_offset() == successor


@rule("storage 9.1", "log 7.1", "log 7.11")
@settings(deadline=None, max_examples=few(150))
@given(st.lists(BATCH, min_size=1, max_size=25), st.integers(1, 6), st.integers(0, 3), st.integers(300, 1_500))
def test_the_last_value_of_each_key_stays_however_it_is_cut_into_rounds(
    made: list[tuple[list[tuple[bytes, bytes | None]], Codec]], keys: int, tail: int, segment_bytes: int
) -> None:
    config = LogConfig(segment_bytes=segment_bytes, index_interval_bytes=100)
    log = Log.open(disk_with_data(), PATH, config)
    for records, codec in made:
        add(log, records, codec=codec)
    before, boundary = entries(log), log.segment_bases[-1]
    first_dirty, end_offset, after = 0, log.end_offset, before
    while first_dirty < boundary:
        done = run_round(log, first_dirty, map_bytes=slots(keys), load_factor=1.0)
        assert done.first_dirty > first_dirty
        first_dirty = done.first_dirty
        after = entries(log)
        assert last_values(after) == last_values(before) and log.end_offset == end_offset
        assert set(after) <= set(before) and after == sorted(after)
        assert [entry for entry in after if entry.offset >= first_dirty] == [
            entry for entry in before if entry.offset >= first_dirty
        ]
        newest = {entry.key: entry.offset for entry in before if entry.offset < first_dirty}
        assert [e for e in after if e.offset < first_dirty] == [
            e for e in before if e.offset < first_dirty and newest[e.key] == e.offset
        ]
        segments_meet(log)
    for _ in range(tail):
        add(log, [(b"a", b"later")])
    log.close()
    assert entries(reopened(log.disk, config, recovery_point=log.synced_end))[: len(after)] == after  # type: ignore[arg-type]


def test_another_round_changes_no_record_and_once_segments_are_merged_no_byte() -> None:
    log = filled()
    run_rounds(log)
    records = entries(log)
    for _ in range(4):
        run_rounds(log)
        assert entries(log) == records
    groups = [step for step in clean(log.disk, spec_of(log)) if isinstance(step, GroupCleaned)]
    assert groups and not any(group.outputs for group in groups)
    assert not [name for name in log.disk.list(PATH) if name.endswith(".cleaned")]


def test_a_group_ends_where_its_sources_ended_also_if_their_last_records_go() -> None:
    log = filled(keys=2)
    ends = dict(zip(log.segment_bases, log.segment_bases[1:], strict=False))
    groups = [step for step in clean(log.disk, spec_of(log)) if isinstance(step, GroupCleaned)]
    for group in groups:
        assert group.outputs
        last = Segment(log.disk, PATH, group.outputs[-1][0], 100, CLEANED_SUFFIX)
        assert last.end_offset() == ends[group.sources[-1]]


@rule("storage 9.10")
def test_many_small_segments_become_few() -> None:
    log = filled(80, keys=2)
    before = len(log.segment_bases)
    for _ in range(4):  # sizes before a round decide what is merged
        run_rounds(log)
    assert before >= 20 and len(log.segment_bases) <= 3


def test_an_index_is_made_for_each_output_and_a_look_up_uses_it() -> None:
    log = filled(60, keys=40)
    run_rounds(log)
    log.close()
    opened = reopened(log.disk, clean=True)  # type: ignore[arg-type]
    for entry in entries(log):
        data = opened.read(entry.offset, 1, upper_bound=opened.end_offset)
        assert data
    assert any(segment.caches[0].size for segment in opened.view.segments[:-1])


@rule("storage 9.6", "log 7.9")
def test_records_without_a_key_go_and_are_counted() -> None:
    log = reopened(disk_with_data())
    for number in range(20):
        add(log, [(None, b"nobody can replace this"), (b"k", b"%d" % number)])
    done = run_round(log)
    assert done.keyless > 0
    boundary = log.segment_bases[-1]
    assert all(entry.key is not None for entry in entries(log) if entry.offset < boundary)


@rule("storage 9.11", "log 7.12")
def test_a_batch_that_is_larger_than_the_buffer_is_read_whole() -> None:
    log = reopened(disk_with_data())
    for number in range(6):
        add(log, [(b"k", b"%d" % number * 5_000)])
    run_rounds(log, io_buffer_bytes=100)
    assert [entry.value for entry in entries(log)][-1] == b"5" * 5_000
    assert len([entry for entry in entries(log) if entry.offset < log.segment_bases[-1]]) == 1


@rule("storage 9.11", "log 7.12")
@pytest.mark.parametrize(("position", "value"), [(8, 0x7F), (20, 0xFF), (70, 0xFF), (16, 7)])
def test_a_damaged_batch_ends_the_round_and_says_where(position: int, value: int) -> None:
    """A length beyond the file, a wrong checksum, rotten bytes, another format."""
    log = filled()
    path = log.view.segments[1].log.path
    log.disk.open(path).pwritev([bytes([value])], position)
    with pytest.raises(CorruptBatch, match=r"\d{20}\.log") as told:
        run_round(log)
    assert path in str(told.value)


# --- several outputs of one group ---


@rule("storage 9.10", "log 7.13")
@pytest.mark.parametrize("max_bytes", [500, 900, 1_400])
def test_a_group_that_outgrows_a_segment_becomes_several_that_meet(max_bytes: int) -> None:
    log = filled(60, keys=50)
    before = last_values(entries(log))
    config = LogConfig(segment_bytes=3_000, index_interval_bytes=100)
    groups = []
    spec = spec_of(log, segment_bytes=3_000, max_output_bytes=max_bytes)
    by_base = {segment.base_offset: segment for segment in log.view.segments}
    for step in clean(log.disk, spec):
        if isinstance(step, GroupCleaned):
            groups.append(step)
            log.replace_segments([by_base[base] for base in step.sources], step.outputs, log.cuts)
    assert any(len(group.outputs) > 1 for group in groups)
    segments_meet(log)
    assert last_values(entries(log)) == before
    log.close()
    assert last_values(entries(reopened(log.disk, config))) == before  # type: ignore[arg-type]


# --- a log that changes meanwhile ---


def swapped_after(change: object) -> None:
    log = filled()
    cuts, segments = log.cuts, log.view.segments
    steps = clean(log.disk, spec_of(log))
    group = next(step for step in steps if isinstance(step, GroupCleaned) and step.outputs)
    change(log)  # type: ignore[operator]
    before = entries(log)
    by_base = {segment.base_offset: segment for segment in segments}
    with pytest.raises(Superseded):
        log.replace_segments([by_base[base] for base in group.sources], group.outputs, cuts)
    assert entries(log) == before
    add(log, [(b"k", b"goes on")], epoch=2)


@rule("storage 11.4")
def test_a_truncated_log_takes_no_group_from_before() -> None:
    swapped_after(lambda log: log.truncate_to(5))


def test_a_truncated_and_refilled_log_takes_no_group_from_before() -> None:
    def change(log: Log) -> None:
        log.truncate_to(log.segment_bases[1])
        for number in range(40):
            add(log, [(b"k%d" % number, b"another")], epoch=2)

    swapped_after(change)


@rule("storage 11.4")
def test_a_log_whose_start_was_raised_takes_no_group_from_before() -> None:
    swapped_after(lambda log: log.advance_start(log.segment_bases[1]))


def test_an_emptied_log_takes_no_group_from_before() -> None:
    swapped_after(lambda log: log.truncate_fully(1_000))


def test_a_reader_of_an_older_view_reads_on() -> None:
    log = filled(60, keys=50)
    view = log.view
    held = view.segments[1].log.file  # as a reader in the middle of a read has it
    wanted = held.pread(0, 1_000)
    run_rounds(log)
    assert log.view.segments[1] is not view.segments[1]
    assert held.pread(0, 1_000) == wanted
    with pytest.raises(FileMissing):  # a file that was not open: `Log.read` then takes the newer view
        view.read(view.bases[2], 10_000, log.end_offset)
    assert log.read(view.bases[2], 10_000, upper_bound=log.end_offset)


@rule("log 7.10")
def test_an_interrupted_round_leaves_only_files_that_the_next_one_removes() -> None:
    log = filled()
    names = set(log.disk.list(PATH))
    steps = clean(log.disk, spec_of(log))
    for _ in steps:
        if any(name.endswith(".cleaned") for name in log.disk.list(PATH)):
            break
    steps.close()  # type: ignore[attr-defined]
    assert set(log.disk.list(PATH)) > names
    run_rounds(log)
    assert not [name for name in log.disk.list(PATH) if name.endswith((".cleaned", ".swap", ".deleted"))]


@rule("log 7.15")
def test_a_gap_at_the_end_of_what_is_dirty_does_not_stop_the_rounds() -> None:
    log = reopened(disk_with_data())
    rng = random.Random(3)
    for number in range(60):
        add(log, [(b"k%d" % rng.randrange(4), b"%d" % number)])
    first = run_round(log)
    assert first.first_dirty == log.segment_bases[-1]
    again = run_round(log, first.first_dirty)
    assert again == RoundDone(first.first_dirty, False, 0, 0, 0, 0), "nothing is dirty, so nothing is read"


@rule("storage 9.21")
def test_a_cleaned_segment_keeps_the_time_of_its_last_source(tmp_path: Path) -> None:
    """As in Kafka: retention of records without a timestamp counts from it there."""
    disk, path = RealDisk(), f"{tmp_path}/t-0"
    log = Log.open(disk, path, CONFIG, clean=True)
    for number in range(30):
        add(log, [(b"k", b"%d" % number)])
    log.roll()
    closed = [f"{path}/{base:020d}.log" for base in log.segment_bases[:-1]]
    assert len(closed) > 2
    for number, name in enumerate(closed):
        os.utime(name, (1_600_000_000 + number, 1_600_000_000 + number))
    run_round(log, segment_bytes=1 << 20)
    assert list(log.segment_bases[:-1]) == [0]
    assert os.stat(closed[0]).st_mtime == 1_600_000_000 + len(closed) - 1
    log.close()


@rule("storage 9.19")
def test_a_log_of_which_everything_stays_is_not_written_at_all() -> None:
    """Pass 1 sees that nothing goes; and where it cannot, because the part is clean, pass 2 writes from the first
    change on only."""
    disk = disk_with_data()
    log = Log.open(disk, PATH, CONFIG, clean=True)
    for number in range(40):
        add(log, [(b"%d" % number, b"v")])
    log.roll()
    segments, size = log.segment_bases, sum(segment.size for segment in log.view.segments)
    done = run_round(log)
    assert (done.bytes_written, log.segment_bases) == (0, segments) and done.bytes_read < 1.2 * size
    done = run_round(log, first_dirty=segments[-2])
    assert (done.bytes_written, log.segment_bases) == (0, segments) and done.bytes_read > 1.5 * size
    assert not [name for name in disk.list(PATH) if name.endswith(".cleaned")]


@rule("storage 9.19")
def test_pieces_of_which_nothing_stays_are_not_read_again() -> None:
    log = Log.open(disk_with_data(), PATH, replace(CONFIG, segment_bytes=1 << 20), clean=True)
    for number in range(200):
        add(log, [(b"k", b"%d" % number)])
    log.roll()
    size = log.view.segments[0].size
    done = run_round(log)
    assert size < done.bytes_read < 1.3 * size
    assert [entry.offset for entry in entries(log)] == [199]

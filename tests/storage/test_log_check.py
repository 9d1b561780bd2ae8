"""The check of a log in use: each wrong byte of an index is found and mended, a damaged batch is told."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from storage_samples import PATH
from test_damaged_indexes import CONFIG, FALLING, RISING, closed_log, stored
from transaction_samples import data_batch, marker

from jepsen.sim.machine.disk import SimDisk
from quorumlog.records.format.batch import parse_header
from quorumlog_storage.checks.log_check import LogCheck, mend
from quorumlog_storage.checks.segment_check import Outcome
from quorumlog_storage.files.names import CACHE_SUFFIXES, index_name, log_name, time_index_name, transaction_index_name
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.log_file import CorruptBatch

TRANSACTIONAL = replace(CONFIG, remembers_producers=True)


def checked(log: Log) -> list[Outcome]:
    """One pass; what is wrong is mended."""
    check, found = LogCheck(log), []
    while (step := log.look_up(check.step)) is not None:
        if step.outcome is not None:
            found.append(step.outcome)
            if step.outcome.faults:
                assert mend(log, check.cuts, step.outcome)
    return found


def faults_of(log: Log) -> list[str]:
    return [str(fault) for outcome in checked(log) for fault in (*outcome.faults, *outcome.damage)]


def indexes_on(disk: SimDisk) -> dict[str, bytes]:
    return {name: disk.read_bytes(f"{PATH}/{name}") for name in disk.list(PATH) if name.endswith(CACHE_SUFFIXES)}


def closed_indexes(log: Log, disk: SimDisk) -> dict[str, bytes]:
    active = f"{log.active.base_offset:020}"
    return {name: content for name, content in indexes_on(disk).items() if not name.startswith(active)}


def put(disk: SimDisk, name: str, content: bytes | None) -> None:
    path = f"{PATH}/{name}"
    if content is None:
        disk.unlink(path)
        return
    file = disk.open(path, create=True)
    file.truncate(0)
    file.pwritev([content], 0)


def transactional_log(disk: SimDisk) -> Log:
    """Three producers; one transaction spans segments, every third one is aborted."""
    log = Log.open(disk, PATH, TRANSACTIONAL)
    numbers = dict.fromkeys((1, 2, 3), 0)
    for turn in range(40):
        producer = (1, 2, 3)[turn % 3]
        if turn in (2, 25) or (producer != 3 and numbers[producer] < 100):
            log.append([data_batch(log.end_offset, producer, numbers[producer], count=3)])
            numbers[producer] += 3
        if producer != 3 and turn % 4 == 0:
            log.append([marker(log.end_offset, producer, committed=turn % 3 != 0)])
        if turn in (20, 38):
            log.append([marker(log.end_offset, 3)])
    return log


@pytest.mark.parametrize("times", [RISING, FALLING], ids=["rising", "falling"])
def test_sound_indexes_have_no_fault(times: list[int]) -> None:
    log = Log.open(closed_log(times), PATH, CONFIG, clean=True)
    outcomes = checked(log)
    assert len(outcomes) == len(log.view.segments) - 1 > 2
    assert not any(outcome.faults or outcome.damage for outcome in outcomes)


def test_sound_transaction_indexes_have_no_fault() -> None:
    disk = SimDisk()
    disk.make_directory("/data")
    log = transactional_log(disk)
    assert any(segment.transactions.has_entries for segment in log.view.segments[:-1])
    assert faults_of(log) == []
    log.close()
    disk.kill()
    log = Log.open(disk, PATH, TRANSACTIONAL, clean=True)
    log.advance_start(log.segment_bases[2])
    assert faults_of(log) == []


@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
@pytest.mark.parametrize("times", [RISING, FALLING], ids=["rising", "falling"])
@pytest.mark.parametrize("name", [index_name, time_index_name])
def test_every_flipped_byte_is_found_and_mended(name: Callable[[int], str], times: list[int], mask: int) -> None:
    disk = closed_log(times)
    log = Log.open(disk, PATH, CONFIG, clean=True)
    whole = indexes_on(disk)
    file = name(log.segment_bases[1])
    for at in range(len(whole[file])):
        content = bytearray(whole[file])
        content[at] ^= mask
        put(disk, file, bytes(content))
        assert [one for one in faults_of(log) if file in one], f"byte {at}"
        assert indexes_on(disk) == whole and faults_of(log) == []


def test_every_flipped_byte_of_a_transaction_index_is_found_and_mended() -> None:
    disk = SimDisk()
    disk.make_directory("/data")
    log = transactional_log(disk)
    whole = closed_indexes(log, disk)
    file = next(name for name in sorted(whole) if name.endswith(".txnindex"))
    for at in range(len(whole[file])):
        content = bytearray(whole[file])
        content[at] ^= 0x04
        put(disk, file, bytes(content))
        assert [one for one in faults_of(log) if file in one], f"byte {at}"
        assert closed_indexes(log, disk) == whole


DAMAGES: list[tuple[str, Callable[[bytes], bytes | None]]] = [
    ("removed", lambda _: None),
    ("emptied", lambda _: b""),
    ("torn", lambda content: content[: len(content) // 2 | 1]),
    ("zeroes behind it", lambda content: content + bytes(340)),
    ("another's", lambda content: bytes(len(content))),
]


@pytest.mark.parametrize("damage", [damage for _, damage in DAMAGES], ids=[name for name, _ in DAMAGES])
@pytest.mark.parametrize("name", [index_name, time_index_name, transaction_index_name])
def test_damaged_files_are_found_and_mended(
    name: Callable[[int], str], damage: Callable[[bytes], bytes | None]
) -> None:
    disk = SimDisk()
    disk.make_directory("/data")
    log = transactional_log(disk)
    whole = closed_indexes(log, disk)
    base = next(one.base_offset for one in log.view.segments if one.transactions.has_entries)
    put(disk, name(base), damage(whole[name(base)]))
    found = faults_of(log)
    is_small = (
        name is index_name and damage(b"x") == b""
    )  # an offset index may lack entries where few bytes are between
    assert (len(found) == 1 and name(base) in found[0]) or is_small
    assert closed_indexes(log, disk) == whole or is_small


@pytest.mark.parametrize("dropped", range(5))
def test_a_time_index_that_lost_an_entry_in_its_middle_is_found(dropped: int) -> None:
    """No look-up notices it, and searches by time land behind the first record."""
    disk = closed_log(RISING)
    log = Log.open(disk, PATH, CONFIG, clean=True)
    whole = indexes_on(disk)
    file = time_index_name(log.segment_bases[1])
    assert len(whole[file]) == 12 * 6
    put(disk, file, whole[file][: 12 * dropped] + whole[file][12 * dropped + 12 :])
    assert len(faults_of(log)) == 1
    assert indexes_on(disk) == whole


def test_a_damaged_batch_is_told_at_its_place_and_nothing_is_mended() -> None:
    disk = closed_log(RISING)
    log = Log.open(disk, PATH, CONFIG, clean=True)
    segment = log.view.segments[1]
    places = [position for position, _ in segment.log.walk(0, segment.size)]
    disk.flip_bit(f"{PATH}/{log_name(segment.base_offset)}", 8 * (places[3] + 70))
    put(disk, index_name(segment.base_offset), b"torn")
    before = disk.copy_of(PATH)
    outcomes = checked(log)
    damage = [one for outcome in outcomes for one in outcome.damage]
    assert [(one.path, one.position) for one in damage] == [(segment.log.path, places[3])]
    assert not any(outcome.faults for outcome in outcomes) and disk.copy_of(PATH) == before
    assert "checksum" in damage[0].found


@pytest.mark.parametrize("field", [0, 8, 16], ids=["base offset", "length", "magic"])
def test_a_header_that_cannot_be_read_ends_the_segment(field: int) -> None:
    disk = closed_log(RISING)
    log = Log.open(disk, PATH, CONFIG, clean=True)
    segment = log.view.segments[1]
    places = [position for position, _ in segment.log.walk(0, segment.size)]
    disk.flip_bit(f"{PATH}/{log_name(segment.base_offset)}", 8 * (places[3] + field) + (7 if field < 16 else 3))
    outcomes = checked(log)
    assert [[one.position for one in outcome.damage] for outcome in outcomes][1] == [places[3]]
    assert not outcomes[2].damage, "the next segment is sound"


def test_a_slice_looks_at_a_bounded_number_of_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorumlog_storage.checks.segment_check.SLICE_BATCHES", 2)
    log = Log.open(closed_log(FALLING), PATH, CONFIG, clean=True)
    check, steps = LogCheck(log), []
    while (step := log.look_up(check.step)) is not None:
        steps.append(step)
    assert {step.batches for step in steps} <= {1, 2} and len(steps) > 10
    closed = log.view.segments[:-1]
    assert sum(step.size_bytes for step in steps) == sum(segment.size for segment in closed)


@pytest.mark.parametrize("slice_bytes", [64, 150, 151, 1_000])
def test_slices_need_not_end_where_batches_do(monkeypatch: pytest.MonkeyPatch, slice_bytes: int) -> None:
    monkeypatch.setattr("quorumlog_storage.checks.segment_check.SLICE_BYTES", slice_bytes)
    log = Log.open(closed_log(FALLING), PATH, CONFIG, clean=True)
    assert faults_of(log) == []


def test_a_segment_that_leaves_meanwhile_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorumlog_storage.checks.segment_check.SLICE_BATCHES", 2)
    disk = closed_log(RISING)
    log = Log.open(disk, PATH, CONFIG, clean=True)
    put(disk, index_name(log.segment_bases[0]), b"torn")
    check, outcomes = LogCheck(log), []
    while (step := log.look_up(check.step)) is not None:
        if step.outcome is not None:
            outcomes.append(step.outcome)
            if step.outcome.faults:
                log.advance_start(log.segment_bases[1])
                assert not mend(log, check.cuts, step.outcome)
    assert not disk.exists(f"{PATH}/{index_name(0)}")
    assert len(outcomes) > 2


def test_a_truncation_meanwhile_ends_what_was_begun() -> None:
    disk = closed_log(RISING)
    log = Log.open(disk, PATH, CONFIG, clean=True)
    put(disk, index_name(log.segment_bases[1]), b"torn")
    check = LogCheck(log)
    outcomes = []
    while (step := log.look_up(check.step)) is not None:
        if step.outcome is not None:
            outcomes.append(step.outcome)
    log.truncate_to(log.segment_bases[2] - 2)
    log.append([stored(log.end_offset, 99_000)])
    wrong = next(outcome for outcome in outcomes if outcome.faults)
    assert not mend(log, check.cuts, wrong)


@given(st.data())
def test_whatever_is_written_over_an_index_look_ups_are_right_after_a_pass(data: st.DataObject) -> None:
    """Against the batches themselves: a pass that finds nothing has left an index that answers rightly."""
    times = data.draw(st.lists(st.integers(0, 5_000), min_size=20, max_size=40))
    disk = closed_log(times)
    log = Log.open(disk, PATH, CONFIG, clean=True)
    number = data.draw(st.integers(0, len(log.view.segments) - 2))
    segment = log.view.segments[number]
    rng = random.Random(data.draw(st.integers(0, 1_000)))
    for name, size in ((index_name, 8), (time_index_name, 12)):
        content = disk.read_bytes(f"{PATH}/{name(segment.base_offset)}")
        entries = [content[at : at + size] for at in range(0, len(content), size)]
        put(disk, name(segment.base_offset), b"".join(one for one in entries if rng.random() < 0.6))
    checked(log)
    content = segment.log.read(0, segment.size)
    found, at = [], 0
    while at < len(content):
        found.append(parse_header(content, at))
        at = found[-1].end
    assert segment.largest_timestamp == max(header.max_timestamp for header in found)
    for header in found:
        begin = segment.indexes.seek_time(header.max_timestamp, segment.size)
        got = next(at for at, one in segment.log.walk(begin, segment.size) if one.max_timestamp >= header.max_timestamp)
        assert got == next(one.position for one in found if one.max_timestamp >= header.max_timestamp)
        assert segment.find(header.base_offset, segment.size) == header.position


NOT_COVERED = range(17)  # of a batch: the checksum begins behind them


@pytest.mark.parametrize("mask", [0x01, 0x80])
def test_any_byte_of_a_batch_is_told_as_damage_or_may_be_true(mask: int) -> None:
    """A bit of the base offset or the epoch may look like a gap or another epoch; nothing ends in an assertion."""
    disk = closed_log(RISING)
    log = Log.open(disk, PATH, CONFIG, clean=True)
    segment = log.view.segments[1]
    places = [position for position, _ in segment.log.walk(0, segment.size)]
    for place in places[1:3]:
        for byte in range(places[1]):
            bit = 8 * (place + byte) + mask.bit_length() - 1
            disk.flip_bit(segment.log.path, bit)
            check, damage = LogCheck(log), []
            while (step := log.look_up(check.step)) is not None:
                damage += step.outcome.damage if step.outcome is not None else ()
            assert damage or byte in NOT_COVERED, f"byte {byte}"
            assert all(one.position >= place for one in damage)
            disk.flip_bit(segment.log.path, bit)
    assert faults_of(log) == []


def test_a_rebuild_of_a_damaged_log_ends_with_the_place() -> None:
    """A flipped bit of an offset was an assertion, which ended the node."""
    disk = closed_log(RISING)
    for bit in range(8 * 61):
        log = Log.open(disk, PATH, CONFIG, clean=True)
        segment = log.view.segments[1]
        place = [position for position, _ in segment.log.walk(0, segment.size)][2]
        disk.flip_bit(segment.log.path, 8 * place + bit)
        try:
            segment.indexes.rebuild()
        except CorruptBatch as error:
            assert error.position >= place
        disk.flip_bit(segment.log.path, 8 * place + bit)

"""Offset files: Kafka's text, one line changed at a time, durable when a change returns, harmless where damaged."""

from __future__ import annotations

import logging
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from storage_samples import disk_with_data

from jepsen.sim.machine.disk import SimDisk
from jepsen.sim.machine.disk_faults import Fail, PowerCut, PowerLost
from quorumlog_storage.directory.offset_files import (
    HIGH_WATERMARKS,
    LOG_STARTS,
    LOST_OFFSETS,
    RECOVERY_POINTS,
    OffsetFile,
    TopicPartition,
    parse_offsets,
    render_offsets,
)
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.files.text_checkpoint import CorruptCheckpoint
from tests.rules import rule

PATH = "/data/some-offset-checkpoint"


def on_disk(disk: SimDisk) -> dict[TopicPartition, int]:
    return dict(OffsetFile(disk, PATH).offsets)


@rule("storage 10.1")
def test_offsets_are_kafkas_text() -> None:
    assert render_offsets({("foo", 1): 7, ("foo", 0): 42}) == b"0\n2\nfoo 0 42\nfoo 1 7\n"


@given(st.dictionaries(st.tuples(st.text("ab._-", min_size=1), st.integers(0, 99)), st.integers(-1, 2**63 - 1)))
def test_offsets_read_back_equal(offsets: dict[tuple[str, int], int]) -> None:
    assert parse_offsets("f", render_offsets(offsets)) == offsets


@rule("storage 10.1")
@pytest.mark.parametrize(
    "content",
    [b"0\n1\nfoo 0\n", b"0\n1\nfoo -1 2\n", b"0\n2\na 0 1\na 0 2\n", b"0\n1\n 0 1\n", b"0\n1\na 0 x\n", b"0\n9\n"],
)
def test_bad_offsets_are_refused(content: bytes) -> None:
    with pytest.raises(CorruptCheckpoint, match="let the node rebuild it"):
        parse_offsets("f", content)


@given(st.one_of(st.binary(max_size=60), st.text("01 -\nab", max_size=40).map(str.encode)))
def test_any_bytes_are_offsets_or_a_typed_error(content: bytes) -> None:
    try:
        offsets = parse_offsets("f", content)
    except CorruptCheckpoint:
        return
    assert parse_offsets("f", render_offsets(offsets)) == offsets


@rule("storage 10.1")
def test_a_change_is_durable_when_it_returns() -> None:
    disk = disk_with_data()
    file = OffsetFile(disk, PATH)
    file.raise_to(("foo", 1), 7)
    file.raise_to(("foo", 0), 42)
    disk.crash(random.Random(1))
    assert disk.read_bytes(PATH) == b"0\n2\nfoo 0 42\nfoo 1 7\n"


def test_a_change_concerns_its_own_lines_only() -> None:
    disk = disk_with_data()
    file = OffsetFile(disk, PATH)
    file.update({("foo", index): 5 for index in range(4)})
    file.update({("foo", 0): None, ("foo", 1): 9, ("bar", 7): None})
    file.lower_to(("foo", 2), 3)
    file.lower_to(("foo", 3), 6)
    file.raise_to(("foo", 3), 4)
    assert on_disk(disk) == {("foo", 1): 9, ("foo", 2): 3, ("foo", 3): 5}
    assert [file.get(("foo", index)) for index in range(5)] == [0, 9, 3, 5, 0]


def test_a_change_of_nothing_writes_nothing() -> None:
    disk = disk_with_data()
    file = OffsetFile(disk, PATH)
    file.update({("foo", 0): 5})
    disk.faults = lambda _: Fail()
    file.update({("foo", 0): 5, ("foo", 1): None})
    file.raise_to(("foo", 0), 5)
    file.lower_to(("foo", 0), 5)
    file.lower_to(("foo", 1), 0)


@rule("storage 3.13")
@pytest.mark.parametrize(
    ("name", "consequence"),
    [
        (RECOVERY_POINTS, "scanned from their first segment"),
        (LOG_STARTS, "deleted there can be read again"),
        (HIGH_WATERMARKS, "no high watermark"),
    ],
)
def test_a_damaged_file_counts_as_empty_and_the_log_says_what_follows(
    name: str, consequence: str, caplog: pytest.LogCaptureFixture
) -> None:
    disk, path = disk_with_data(), f"/data/{name}"
    disk.open(path, create=True).pwritev([b"0\nmany\nfoo"], 0)
    file = OffsetFile(disk, path)
    with caplog.at_level(logging.ERROR):
        assert file.get(("foo", 0)) == 0
        file.raise_to(("foo", 0), 1)
    assert OffsetFile(disk, path).offsets == {("foo", 0): 1}
    (record,) = caplog.records
    assert path in record.getMessage() and consequence in record.getMessage()
    (copy,) = [name for name in disk.list("/data") if name.endswith(".corrupt")]
    assert disk.read_bytes(f"/data/{copy}") == b"0\nmany\nfoo" and copy in file.finding


@rule("storage 3.13")
def test_a_damaged_file_is_kept_before_it_is_replaced() -> None:
    """At each call of the disk the damaged bytes are still there, under one name or the other."""
    damaged, path = b"0\nmany\nfoo", f"/data/{LOG_STARTS}"
    for at in range(20):
        disk = disk_with_data()
        disk.open(path, create=True).pwritev([damaged], 0)
        disk.open(path).sync()
        disk.sync_directory("/data")
        first = disk.operations
        disk.faults = lambda call, first=first, at=at: PowerCut() if call.index == first + at else None
        try:
            OffsetFile(disk, path).raise_to(("foo", 0), 1)
            done = True
        except PowerLost:
            done = False
        disk.faults = lambda _: None
        disk.crash(random.Random(at))
        assert damaged in [disk.read_bytes(f"/data/{name}") for name in disk.list("/data") if name != ".lock"]
        if done:
            return
    raise AssertionError("the change never ended")


def test_damaged_lost_offsets_never_count_as_empty() -> None:
    disk, path = disk_with_data(), f"/data/{LOST_OFFSETS}"
    disk.open(path, create=True).pwritev([b"0\nmany\nfoo"], 0)
    with pytest.raises(CorruptCheckpoint, match="restore the file"):
        OffsetFile(disk, path).get(("foo", 0))
    assert disk.read_bytes(path) == b"0\nmany\nfoo"


def test_a_file_that_is_not_there_is_empty_and_no_error(caplog: pytest.LogCaptureFixture) -> None:
    assert OffsetFile(disk_with_data(), PATH).get(("foo", 0)) == 0
    assert not caplog.records


def test_a_file_that_cannot_be_read_is_not_taken_for_an_empty_one() -> None:
    disk = disk_with_data()
    OffsetFile(disk, PATH).update({("foo", 0): 5})
    disk.faults = lambda operation: Fail() if operation.kind == "read_bytes" else None
    with pytest.raises(DiskError):
        OffsetFile(disk, PATH).update({("foo", 1): 6})
    disk.faults = lambda _: None
    assert on_disk(disk) == {("foo", 0): 5}

"""Log starts: kept durably before anything goes, never lowered, and of no harm where the file is damaged."""

from __future__ import annotations

from storage_samples import disk_with_data

from storage.log_starts import LOG_STARTS, LogStarts


def test_a_start_is_on_disk_when_it_is_raised() -> None:
    disk = disk_with_data()
    starts = LogStarts(disk, "/data")
    starts.raise_to(("foo", 1), 7)
    starts.raise_to(("foo", 0), 42)
    starts.raise_to(("foo", 1), 3)
    assert disk.read_bytes(f"/data/{LOG_STARTS}") == b"0\n2\nfoo 0 42\nfoo 1 7\n"
    again = LogStarts(disk, "/data")
    assert [again.get(("foo", index)) for index in range(3)] == [42, 7, 0]


def test_noting_leaves_logs_alone_that_are_not_open() -> None:
    disk = disk_with_data()
    starts = LogStarts(disk, "/data")
    for index in range(3):
        starts.raise_to(("foo", index), 5)
    starts.note({("foo", 0): None, ("foo", 1): 9})
    starts.forget(("foo", 4))
    again = LogStarts(disk, "/data")
    assert [again.get(("foo", index)) for index in range(3)] == [0, 9, 5]


def test_a_damaged_file_counts_as_empty() -> None:
    disk = disk_with_data()
    disk.open(f"/data/{LOG_STARTS}", create=True).pwritev([b"0\nmany\nfoo"], 0)
    starts = LogStarts(disk, "/data")
    assert starts.get(("foo", 0)) == 0
    starts.raise_to(("foo", 0), 1)
    assert LogStarts(disk, "/data").get(("foo", 0)) == 1

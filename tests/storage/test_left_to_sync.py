"""What a log that recovery found whole may have in memory only, and that nothing claims it to be on disk before."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from storage_samples import PATH, append, batch, disk_with_data, read_all

from jepsen.sim.machine.disk import SimDisk
from quorumlog.ids import Offset
from quorumlog_storage.files.disk import File
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.log_config import LogConfig
from tests.rules import rule

VALUE = b"v" * 300
ONE = batch(0, [VALUE]).size
CONFIG = LogConfig(segment_bytes=3 * ONE)  # three batches of one record


def opened(disk: SimDisk, point: Offset, *, defers_sync: bool = False, config: LogConfig = CONFIG) -> Log:
    return Log.open(disk, PATH, config, recovery_point=point, defers_sync=defers_sync)


def written(records: int, synced: int) -> SimDisk:
    """A killed process wrote so many batches of one record, and had synced the first ones of them."""
    disk = disk_with_data()
    log = opened(disk, 0)
    for offset in range(records):
        if offset == synced:
            log.sync()
        append(log, [VALUE])
    if records == synced:
        log.sync()
    disk.kill()
    return disk


class Counted:
    """Counts the syncs of a disk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, disk: SimDisk) -> None:
        self.syncs: Counter[str] = Counter()
        open_file, sync_directory = disk.open, disk.sync_directory

        def counted_open(path: str, create: bool = False) -> File:
            file = open_file(path, create)
            sync = file.sync

            def counted_sync() -> None:
                self.syncs[path.rpartition("/")[2]] += 1
                sync()

            monkeypatch.setattr(file, "sync", counted_sync)
            return file

        def counted_directory(path: str) -> None:
            self.syncs["names"] += 1
            sync_directory(path)

        monkeypatch.setattr(disk, "open", counted_open)
        monkeypatch.setattr(disk, "sync_directory", counted_directory)


LAST = "00000000000000000003.log"
FIRST = "00000000000000000000.log"
CASES: list[tuple[str, int, int, int, dict[str, int]]] = [
    ("ends at its point, inside its last segment", 5, 5, 5, {}),
    ("wrote behind its point", 5, 4, 4, {LAST: 1}),
    ("its last segment begins at the point", 4, 3, 3, {LAST: 1, "names": 1}),
    ("its last segment begins behind the point", 4, 2, 2, {FIRST: 1, LAST: 1, "names": 1}),
    ("no point was noted", 2, 2, 0, {FIRST: 1, "names": 1}),
    ("an empty log", 0, 0, 0, {FIRST: 1, "names": 1}),
]


@rule("storage 3.19")
@pytest.mark.parametrize(("records", "synced", "point", "want"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_what_a_start_syncs(
    monkeypatch: pytest.MonkeyPatch, records: int, synced: int, point: Offset, want: dict[str, int]
) -> None:
    disk = written(records, synced)
    counted = Counted(monkeypatch, disk)
    log = opened(disk, point, defers_sync=True)
    assert log.synced_end == (point if want else records) and bool(log.unsynced) == bool(want)
    assert not counted.syncs, "that is left to the caller"
    log.sync()
    assert log.synced_end == log.end_offset == records and not log.unsynced
    assert {name: count for name, count in counted.syncs.items() if not name.endswith("checkpoint.tmp")} == want


@pytest.mark.parametrize("durable", [True, False])
def test_the_turn_syncs_it_whatever_the_topic_asks_for(durable: bool) -> None:
    disk = written(3, 2)
    log = opened(disk, 2, defers_sync=True, config=LogConfig(segment_bytes=3 * ONE, durable=durable))
    assert log.must_sync and log.synced_end == 2
    assert opened(disk, 2, config=LogConfig(segment_bytes=3 * ONE, durable=durable)).synced_end == 3


@rule("storage 3.19")
@given(st.integers(0, 9), st.data())
def test_a_power_cut_after_its_first_sync_takes_nothing(records: int, data: st.DataObject) -> None:
    synced = data.draw(st.integers(0, records))
    disk = written(records, synced)
    point = data.draw(st.integers(0, synced))
    log = opened(disk, point, defers_sync=True)
    held = read_all(log)
    assert log.end_offset == records
    if data.draw(st.booleans(), "before its first sync"):
        claimed = log.synced_end
        disk.crash(random.Random(data.draw(st.integers(0, 99))))
        assert opened(disk, 0).end_offset >= claimed
    else:
        log.sync()
        disk.crash(random.Random(data.draw(st.integers(0, 99))))
        assert read_all(opened(disk, records)) == held


def test_a_log_that_was_not_written_to_since_its_last_clean_close_closes_without_a_sync(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = LogConfig(segment_bytes=3 * ONE, remembers_producers=True)
    disk = disk_with_data()
    log = opened(disk, 0, config=config)
    append(log, [VALUE])
    log.close()
    disk.kill()
    counted = Counted(monkeypatch, disk)
    again = Log.open(disk, PATH, config, recovery_point=1, clean=True)
    again.close()
    assert not counted.syncs
    disk.crash(random.Random(1))
    assert Log.open(disk, PATH, config, recovery_point=1, clean=True).end_offset == 1

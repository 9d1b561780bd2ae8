"""What is not durable stays so until its sync has returned, whatever fails on the way."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jepsen.sim.machine.disk import SimDisk
from jepsen.sim.machine.disk_faults import Fail
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.log.unsynced import Unsynced
from quorumlog_storage.rules.epochs import CHECKPOINT_NAME, LeaderEpochCache
from quorumlog_storage.segment.segment import Segment

PATH = "/d/t-0"


class Case:
    def __init__(self) -> None:
        self.disk = SimDisk()
        self.disk.make_directory("/d")
        self.disk.make_directory(PATH)
        self.epochs = LeaderEpochCache()
        self.unsynced = Unsynced(self.disk, PATH, self.epochs)
        self.segment = Segment(self.disk, PATH, 0, 4096)
        self.segment.create()
        self.performed: list[str] = []
        self.disk.trace = lambda kind, _path, _digest: self.performed.append(kind)

    def dirty(self, what: str) -> Callable[[], None]:
        """What makes it durable."""
        match what:
            case "segment":
                self.unsynced.segment_written(self.segment)
                return self.unsynced.sync_segments
            case "names":
                self.unsynced.names_changed()
                return self.unsynced.sync_names
            case _:
                self.epochs.assign(3, 0)
                return lambda: self.unsynced.sync_epochs(1)


@pytest.mark.parametrize("what", ["segment", "names", "epochs"])
def test_durable_once_and_not_before_the_disk_says_so(what: str) -> None:
    case = Case()
    sync = case.dirty(what)
    case.disk.faults = lambda operation: Fail() if "sync" in operation.kind else None
    with pytest.raises(DiskError):
        sync()
    assert bool(case.unsynced) == (what != "epochs"), "what is written beside the records is not asked for"
    case.disk.faults = lambda operation: None
    case.performed.clear()
    sync()
    assert "sync" in "".join(case.performed) and not case.unsynced
    case.performed.clear()
    sync()
    assert case.performed == [], "nothing was left to do"


def test_a_segment_written_twice_is_synced_once_and_one_that_went_is_not() -> None:
    case = Case()
    case.unsynced.segment_written(case.segment)
    case.unsynced.segment_written(case.segment)
    case.unsynced.keep_only([case.segment])
    case.unsynced.sync_segments()
    assert len([kind for kind in case.performed if "sync" in kind]) == 1
    case.unsynced.segment_written(case.segment)
    case.unsynced.keep_only([])
    assert not case.unsynced


def saved(case: Case) -> list[bytes]:
    path = f"{PATH}/{CHECKPOINT_NAME}"
    return case.disk.read_bytes(path).splitlines()[2:] if case.disk.exists(path) else []


def test_an_epoch_waits_for_its_first_record() -> None:
    case = Case()
    for epoch in (3, 5):
        case.epochs.assign(epoch, 0)
        case.unsynced.sync_epochs(0)
    assert saved(case) == [] and case.performed == []
    case.unsynced.sync_epochs(1)
    assert saved(case) == [b"5 0"]
    case.epochs.assign(6, 10)
    case.unsynced.sync_epochs(10)
    assert saved(case) == [b"5 0"]
    case.unsynced.sync_epochs(11)
    assert saved(case) == [b"5 0", b"6 10"]


def test_a_line_that_another_epoch_has_taken_the_place_of_goes_with_the_first_record() -> None:
    case = Case()
    case.epochs.assign(3, 0)
    case.epochs.assign(4, 7)
    case.unsynced.sync_epochs(9)
    case.epochs.truncate_from_end(7)
    case.unsynced.sync_epochs(7)
    assert saved(case) == [b"3 0", b"4 7"], "the next start forgets it"
    case.unsynced.sync_epochs(8)
    assert saved(case) == [b"3 0"], "the record at 7 is of epoch 3"


def test_no_line_stays_beyond_the_logs_end() -> None:
    case = Case()
    case.epochs.assign(3, 0)
    case.epochs.assign(4, 7)
    case.unsynced.sync_epochs(9)
    case.epochs.truncate_from_end(5)
    case.unsynced.sync_epochs(5)
    assert saved(case) == [b"3 0"]

"""What is not durable stays so until its sync has returned, whatever fails on the way."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jepsen.sim.disk import SimDisk
from jepsen.sim.disk_faults import Fail
from storage.disk import DiskError
from storage.epochs import CHECKPOINT_NAME, LeaderEpochCache
from storage.segment import Segment
from storage.unsynced import Unsynced

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
                self.unsynced.epochs_changed(self.epochs.assign(3, 0))
                return self.unsynced.sync_epochs


@pytest.mark.parametrize("what", ["segment", "names", "epochs"])
def test_durable_once_and_not_before_the_disk_says_so(what: str) -> None:
    case = Case()
    sync = case.dirty(what)
    case.disk.faults = lambda operation: Fail() if "sync" in operation.kind else None
    with pytest.raises(DiskError):
        sync()
    assert case.unsynced
    case.disk.faults = lambda operation: None
    sync()
    assert not case.unsynced
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


def test_a_change_that_changed_nothing_forgets_no_change_before_it() -> None:
    case = Case()
    case.unsynced.epochs_changed(case.epochs.assign(3, 0))
    case.unsynced.epochs_changed(case.epochs.assign(3, 0))
    case.unsynced.sync_epochs()
    assert case.disk.exists(f"{PATH}/{CHECKPOINT_NAME}")

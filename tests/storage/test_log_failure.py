"""An exception of any kind in the middle of a change ends the log: an (offset, epoch) is never assigned twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from storage_samples import append, batch, disk_with_data, open_log, read_all

from jepsen.sim.machine.disk import SimDisk, SimFile
from quorumlog_storage.files.disk import Buffer
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_errors import LogClosed, LogUnreadable, UnexpectedAppend
from quorumlog_storage.segment.offset_index import OffsetIndexFile
from quorumlog_storage.segment.segment import Segment
from quorumlog_storage.writer.directory_life import DirectoryOffline
from quorumlog_storage.writer.writer import AppendJob, CallJob, DirectoryWriter, Outcome
from tests.rules import rule

KINDS = [MemoryError("no memory"), AssertionError("ours"), RuntimeError("?"), KeyboardInterrupt()]


def is_same(found: BaseException | None, error: BaseException) -> bool:
    """What is kept is another object (quorumlog_storage/files/kept_errors.py)."""
    return type(found) is type(error) and str(found) == str(error)


def filled() -> tuple[SimDisk, Log]:
    disk = disk_with_data()
    log = open_log(disk)
    for number in range(10):
        append(log, [b"%d" % number] * 3)
    log.sync()
    return disk, log


def raising_once(function: Callable[..., Any], error: BaseException, *, after: bool) -> Callable[..., Any]:
    """`function`, whose first call raises: after it has done its work, or instead of it."""
    calls = []

    def wrapped(*args: Any, **named: Any) -> Any:
        calls.append(None)
        result = function(*args, **named) if after or len(calls) > 1 else None
        if len(calls) == 1:
            raise error
        return result

    return wrapped


PLACES = [("the write", SimFile, "pwritev", True), ("the index", OffsetIndexFile, "note", False)]


@rule("storage 1.5")
@pytest.mark.parametrize("error", KINDS, ids=[type(kind).__name__ for kind in KINDS])
@pytest.mark.parametrize(("owner", "name", "after"), [c[1:] for c in PLACES], ids=[c[0] for c in PLACES])
def test_the_offsets_of_a_failed_append_are_not_given_again(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, owner: type, name: str, after: bool
) -> None:
    disk, log = filled()
    monkeypatch.setattr(owner, name, raising_once(getattr(owner, name), error, after=after))
    with pytest.raises(type(error)):
        append(log, [b"failed"])
    assert is_same(log.failure, error) and log.end_offset == 30
    for change in (lambda: append(log, [b"again"]), log.sync, lambda: log.begin_epoch(9), lambda: log.truncate_to(3)):
        with pytest.raises(LogClosed, match="failed earlier") as caught:
            change()
        assert is_same(caught.value.cause, error)
    log.close()
    disk.kill()
    values = [value for _, _, value in read_all(open_log(disk))]
    assert values[:30] == [b"%d" % (n // 3) for n in range(30)] and set(values[30:]) <= {b"failed"}


CHANGES: list[tuple[str, type, str, Callable[[Log], object]]] = [
    ("sync", SimFile, "sync", lambda log: (append(log, [b"x"]), log.sync())),
    ("truncation", Segment, "remove_caches", lambda log: log.truncate_to(4)),
    ("restart", Segment, "create", lambda log: log.truncate_fully(90)),
    ("start", Segment, "remove", lambda log: log.advance_start(29)),
    ("epoch", SimDisk, "rename", lambda log: (append(log, [b"x"], epoch=7), log.sync())),
]


@rule("storage 1.5")
@pytest.mark.parametrize(("owner", "name", "change"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES])
def test_every_change_ends_the_log_when_it_breaks_off(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, change: Callable[[Log], object]
) -> None:
    _, log = filled()
    monkeypatch.setattr(owner, name, raising_once(getattr(owner, name), MemoryError("no memory"), after=False))
    with pytest.raises(MemoryError):
        change(log)
    with pytest.raises(LogClosed, match="no memory"):
        append(log, [b"again"])


def test_what_is_refused_before_anything_is_written_is_no_failure() -> None:
    disk, log = filled()
    with pytest.raises(UnexpectedAppend):
        log.append([batch(7, [b"x"])])
    disk.open(log.view.segments[-1].log.path).truncate(1)
    with pytest.raises(LogUnreadable):
        log.truncate_to(log.segment_bases[-1] + 1)
    assert log.change_failure is None
    append(log, [b"goes on"])


def test_what_a_turn_wrote_before_the_failure_is_not_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log takes no sync any more, so the first append of the turn would be acknowledged without one."""
    disk, log = filled()
    other = Log.open(disk, "/data/u-0", log.config)
    writer = DirectoryWriter("/data")

    def fail() -> None:
        monkeypatch.setattr(OffsetIndexFile, "note", raising_once(OffsetIndexFile.note, MemoryError(), after=False))

    written = writer.write_phase(
        [AppendJob(log, [batch(30, [b"a"])]), CallJob(fail), AppendJob(log, [batch(31, [b"b"])])]
    )
    assert [type(outcome.error) for outcome in written] == [type(None), type(None), MemoryError]
    synced = writer.sync_phase()
    assert isinstance(synced[0].error, DirectoryOffline) and isinstance(synced[0].error.cause, MemoryError)
    assert all(outcome.error is not None for outcome in synced)
    writer.write_phase([AppendJob(other, [batch(0, [b"c"])])])
    assert isinstance(writer.sync_phase()[0].error, DirectoryOffline)


def test_a_write_that_nobody_could_finish_is_an_outcome_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    _, log = filled()
    writer = DirectoryWriter("/data")
    error = MemoryError()

    def out_of_memory(file: SimFile, buffers: Sequence[Buffer], position: int, *, read_soon: bool = True) -> int:
        raise error

    monkeypatch.setattr(SimFile, "pwritev", out_of_memory)
    assert writer.write_phase([AppendJob(log, [batch(30, [b"a"])])]) == [Outcome(error=error)]
    assert is_same(log.failure, error)

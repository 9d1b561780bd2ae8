"""Group commit: one write per log and turn, one sync per log and turn, and the end of a directory."""

from __future__ import annotations

import pytest
from storage_samples import SMALL, batch, disk_with_data, read_all

from jepsen.sim.machine.disk import SimDisk
from jepsen.sim.machine.disk_faults import Fail
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_errors import UnexpectedAppend
from quorumlog_storage.segment.log_config import LogConfig
from quorumlog_storage.writer.directory_life import DirectoryOffline
from quorumlog_storage.writer.writer import AppendJob, CallJob, DirectoryWriter
from tests.rules import rule


def two_logs(config: LogConfig = SMALL) -> tuple[SimDisk, Log, Log]:
    disk = disk_with_data()
    return disk, Log.open(disk, "/data/a-0", config), Log.open(disk, "/data/b-0", config)


def traced(disk: SimDisk) -> list[str]:
    seen: list[str] = []
    disk.trace = lambda kind, path, digest: seen.append(f"{kind} {path.split('/')[2]}") if ".log" in path else None
    return seen


@rule("storage 11.1")
def test_a_turn_writes_each_log_once_and_syncs_it_once() -> None:
    disk, a, b = two_logs()
    writer, seen = DirectoryWriter("/data"), traced(disk)
    jobs = [AppendJob(a, [batch(0, [b"1", b"2"])]), AppendJob(b, [batch(0, [b"x"])]), AppendJob(a, [batch(2, [b"3"])])]
    written = writer.write_phase(jobs)
    assert seen == ["pwritev a-0", "pwritev b-0"]
    assert [outcome.value for outcome in written] == [2, 1, 3]
    assert (a.end_offset, a.synced_end) == (3, 0)
    assert writer.sync_phase() == written
    assert seen[2:] == ["sync a-0", "sync b-0"]
    assert (a.synced_end, b.synced_end) == (3, 1)
    assert writer.write_phase([]) == [] and writer.sync_phase() == []


def test_every_file_is_begun_before_the_first_is_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    disk, a, b = two_logs()
    writer, seen = DirectoryWriter("/data"), traced(disk)
    monkeypatch.setattr(
        "jepsen.sim.machine.disk.SimFile.begin_sync", lambda file: seen.append(f"begin {file.path[6:9]}")
    )
    writer.write_phase([AppendJob(a, [batch(0, [b"1"])]), AppendJob(b, [batch(0, [b"x"])])])
    writer.sync_phase()
    assert seen[2:] == ["begin a-0", "begin b-0", "sync a-0", "sync b-0"]
    writer.write_phase([AppendJob(b, [batch(1, [b"y"])])])
    writer.sync_phase()
    assert seen[6:] == ["pwritev b-0", "sync b-0"]  # a lone one has nobody to wait for


def test_a_bad_job_fails_alone_and_so_does_what_needed_it() -> None:
    _, a, _ = two_logs()
    writer = DirectoryWriter("/data")
    offsets = [0, 5, 6, 1]
    outcomes = writer.write_phase([AppendJob(a, [batch(offset, [b"v"])]) for offset in offsets])
    assert [type(outcome.error) for outcome in outcomes] == [type(None), UnexpectedAppend, UnexpectedAppend, type(None)]
    assert [outcome.error for outcome in writer.sync_phase()] == [outcome.error for outcome in outcomes]
    assert a.synced_end == 2 and writer.generation.failure is None


def test_other_jobs_keep_their_place_among_the_appends() -> None:
    _, a, _ = two_logs()
    writer = DirectoryWriter("/data")
    ends: list[int] = []
    outcomes = writer.write_phase(
        [
            AppendJob(a, [batch(0, [b"1"]), batch(1, [b"2"])]),
            CallJob(lambda: ends.append(a.end_offset)),
            CallJob(lambda: a.truncate_to(1), (a,)),
            AppendJob(a, [batch(1, [b"new"], epoch=2)]),
            CallJob(lambda: 1 // 0),
        ]
    )
    assert ends == [2]
    assert [outcome.value for outcome in outcomes] == [2, None, 1, 2, None]
    assert isinstance(outcomes[4].error, ZeroDivisionError)
    writer.sync_phase()
    assert [entry[2] for entry in read_all(a)] == [b"1", b"new"]
    assert writer.generation.failure is None


def test_a_log_that_need_not_be_durable_is_not_synced() -> None:
    disk, a, _ = two_logs(LogConfig(durable=False))
    writer, seen = DirectoryWriter("/data"), traced(disk)
    writer.write_phase([AppendJob(a, [batch(0, [b"1"])])])
    assert writer.sync_phase()[0].value == 1
    assert seen == ["pwritev a-0"] and a.synced_end == 0


@pytest.mark.parametrize("kind", ["pwritev", "sync"])
def test_the_first_disk_error_takes_the_directory_offline_for_good(kind: str) -> None:
    disk, a, b = two_logs()
    writer = DirectoryWriter("/data")
    disk.faults = lambda operation: Fail() if operation.kind == kind and "a-0" in operation.path else None
    written = writer.write_phase([AppendJob(a, [batch(0, [b"1"])]), AppendJob(b, [batch(0, [b"x"])])])
    if kind == "pwritev":
        assert all(isinstance(outcome.error, DirectoryOffline) for outcome in written)
    synced = writer.sync_phase()
    assert all(isinstance(outcome.error, DirectoryOffline) for outcome in synced)
    assert (a.synced_end, b.synced_end) == (0, 0)
    disk.faults = lambda operation: None
    later = writer.write_phase([AppendJob(b, [batch(b.end_offset, [b"y"])]), CallJob(lambda: "never")])
    assert {str(outcome.error) for outcome in later} == {str(writer.generation.failure)}
    assert str(writer.generation.failure).endswith("restart the node")


def test_a_sync_that_ends_in_any_error_is_no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    _, a, b = two_logs()
    writer = DirectoryWriter("/data")
    writer.write_phase([AppendJob(a, [batch(0, [b"1"])]), AppendJob(b, [batch(0, [b"2"])])])

    def fails() -> None:
        raise MemoryError

    monkeypatch.setattr(b, "sync", fails)
    assert [type(outcome.error) for outcome in writer.sync_phase()] == [DirectoryOffline] * 2


def test_a_log_closed_in_its_turn_is_durable() -> None:
    _, a, _ = two_logs()
    writer = DirectoryWriter("/data")
    writer.write_phase([AppendJob(a, [batch(0, [b"1"])]), CallJob(a.close)])
    assert writer.sync_phase()[0].error is None
    assert a.synced_end == 1

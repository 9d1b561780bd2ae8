"""A sample of the crash sweep, the mistakes that it finds, and what a disk error should do and does not do yet."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest

from jepsen.crash.faults import CRASHES, Fault, Variant, applicable
from jepsen.crash.runs import BY_NAME, Case, cases_of, run
from jepsen.crash.sites import production_sites
from jepsen.crash.struck_disk import Strike
from jepsen.crash.sweep import Chosen, sweep
from jepsen.crash.world import World
from quorumlog_quorum.snapshots import PartFile
from quorumlog_storage.directory.offset_files import OffsetFile
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.log.log_errors import ChangeGuard, LogUnreadable
from quorumlog_storage.log.unsynced import Unsynced
from quorumlog_storage.moves import promotion
from quorumlog_storage.recovery import recovery, swap_files
from quorumlog_storage.segment.index_pair import IndexPair
from quorumlog_storage.segment.log_file import LogFile
from quorumlog_storage.segment.transaction_index import TransactionIndexFile
from quorumlog_storage.writer.directory_life import DirectoryOffline, Generation
from tests.rules import rule

SEED = 1


@rule("log 1.15")
@pytest.mark.timeout(900)  # its lane gives way to real nodes
def test_a_sample_of_the_sweep_keeps_every_promise(capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep(Chosen(sample=True)) == 0
    told = capsys.readouterr().out
    assert re.search(r"\d+ of \d+ pairs in [\d,]+ runs; [\d,]+ starts from [\d,]+ distinct crash images", told)


def broken(workload: str, faults: tuple[Fault, ...], most: int = 150) -> set[str]:
    """The names of the promises that runs of a workload broke."""
    cases = [case for case in cases_of(BY_NAME[workload], SEED) if case.fault in faults]
    spread = random.Random(SEED).sample(cases, min(most, len(cases)))
    return {outcome.broken.partition(":")[0] for outcome in map(run, spread) if outcome.broken}


def nothing(*_: object, **__: object) -> None:
    """What a call does that was forgotten."""


def forgetful(generation: Generation, cause: BaseException) -> DirectoryOffline:
    """Told, and not kept."""
    return DirectoryOffline(generation.path, cause)


MISTAKES: list[tuple[str, object, str, Callable[..., object], str, tuple[Fault, ...], str]] = [
    ("names are not synced", Unsynced, "sync_names", nothing, "roll", (Fault.POWER_CUT,), "lost record"),
    ("records are not synced", LogFile, "flush", nothing, "append", CRASHES, "lost record"),
    ("a point above the end", OffsetFile, "lower_to", nothing, "truncate to 10", CRASHES, "recovery point"),
    (
        "a dead topic's lines",
        PartitionDirectories,
        "forget_offsets",
        nothing,
        "delete and make anew",
        CRASHES,
        "log st",
    ),
    ("a name is not synced", PartitionDirectories, "sync_name", nothing, "create", CRASHES, "lost record"),
    ("a start that is not noted", OffsetFile, "raise_to", nothing, "raise start to 8", CRASHES, "log start"),
    ("a snapshot that is not synced", PartFile, "_sync_bytes", nothing, "take snapshots", CRASHES, "snapshot"),
    (
        "an aborted list with a hole",
        TransactionIndexFile,
        "replace",
        nothing,
        "start after unsynced decisions",
        CRASHES,
        "aborted",
    ),
    ("a seal that syncs nothing", PartitionLog, "seal", PartitionLog.raise_start, "import", CRASHES, "lost record"),
    ("a retirement forgotten", recovery, "retire", nothing, "open beside above whole segments", CRASHES, "log start"),
    ("records that stay unsynced", LogFile, "flush", nothing, "open beside after a power cut", CRASHES, "lost record"),
    ("a copy without its mark", promotion, "write_mark", nothing, "move", CRASHES, "one copy"),
    ("half a swap", swap_files, "_drop", nothing, "start after half a compaction", CRASHES, "hole"),
    ("a wrong index that stays", IndexPair, "rebuild", nothing, "look up with wrong indexes", CRASHES, "index"),
    ("a torn index that stays", IndexPair, "mend", nothing, "start with broken indexes", CRASHES, "index"),
    ("a failure that is forgotten", Generation, "fail", forgetful, "append", (Fault.EIO,), "offline"),
]


@pytest.mark.parametrize(("owner", "name", "instead", "workload", "faults", "promise"), [m[1:] for m in MISTAKES],
                         ids=[m[0] for m in MISTAKES])  # fmt: skip
def test_a_mistake_is_found(
    monkeypatch: pytest.MonkeyPatch,
    owner: object,
    name: str,
    instead: Callable[..., object],
    workload: str,
    faults: tuple[Fault, ...],
    promise: str,
) -> None:
    monkeypatch.setattr(owner, name, instead)
    found = broken(workload, faults)
    assert any(one.startswith(promise) for one in found), found


def test_a_run_is_repeated_exactly() -> None:
    case = next(case for case in cases_of(BY_NAME["roll"], 3) if case.fault is Fault.POWER_CUT and case.at > 30)
    assert run(case) == run(case)


def test_another_seed_leaves_another_image() -> None:
    site = str(_site("roll", 60))
    cases = [Case("roll", 60, site, Fault.POWER_CUT, seed, Variant.SUBSET_LOST) for seed in range(12)]
    assert len({run(case).images[0] for case in cases}) > 3


def _site(workload: str, at: int) -> object:
    return next(case.site for case in cases_of(BY_NAME[workload], SEED) if case.at == at)


def test_every_site_can_meet_a_crash_of_each_kind() -> None:
    for site in production_sites().found:
        assert set(CRASHES) <= set(applicable(site))


def test_a_replay_that_meets_no_call_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep(Chosen(site="storage/quorumlog_storage/files/atomic.py:1:sync", fault=Fault.KILL)) == 1
    assert "no call is like that" in capsys.readouterr().out


# --- errors of the disk: decision 0018 ---


def struck(workload: str, method: str, fault: Fault) -> World:
    """The world after the first call of `method` in the workload met an error."""
    site_calls = [case for case in cases_of(BY_NAME[workload], SEED) if case.site.endswith(f":{method}")]
    at = next(case.at for case in site_calls if case.fault is fault)
    world = BY_NAME[workload].prepared(SEED)
    world.process.disk.watch(at, Strike(fault))
    with pytest.raises((DiskError, DirectoryOffline, LogUnreadable)):
        BY_NAME[workload].change(world)
    return world


def test_too_many_open_files_hold_back_and_take_nothing_offline() -> None:
    world = struck("roll", "open", Fault.EMFILE)
    assert world.process.generation.failure is None
    assert all(log.failure is None for log in world.process.all_logs().values())


@rule("storage 7.7")
def test_a_read_error_takes_the_replica_offline_and_not_its_directory() -> None:
    world = struck("read", "pread", Fault.EIO)
    assert world.log("t").failure is not None
    assert world.process.generation.failure is None


@rule("storage 1.30")
def test_a_full_disk_takes_the_directory_offline() -> None:
    world = struck("append", "write_fully", Fault.ENOSPC)
    assert world.process.generation.failure is not None


def test_any_exception_in_a_change_fails_the_log() -> None:
    guard = ChangeGuard("/data/t-0")
    with pytest.raises(MemoryError), guard:
        raise MemoryError
    assert isinstance(guard.failure, MemoryError)

"""Where a log begins is explained by the age of what went just now, not of what was deleted before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.replicas.retention import RetentionInvariants
from jepsen.sim.machine.disk import SimDisk
from jepsen.sim.settings import DIRECTORIES
from jepsen.sim.truth.log_mirror import Batch
from jepsen.sim.truth.mirrors import Mirrors
from quorumlog_storage.retention.policy import Policy

LOG, NOW_MS, RETENTION_MS = "t-0@00", 20_000, 3_000
OLD_MS, NEW_MS = NOW_MS - RETENTION_MS - 1, NOW_MS - 1


def may_begin(
    monkeypatch: pytest.MonkeyPatch,
    times: list[int],
    *,
    deleted_before: int,
    start: int,
    policy: Policy = Policy(RETENTION_MS),
    disk: SimDisk | None = None,
) -> bool:
    """times: of the records from offset 0 on, in ms; all are committed. start: where the log begins now."""
    mirrors = Mirrors(Findings(lambda: 0))
    invariants = RetentionInvariants(mirrors, Findings(lambda: 0))
    monkeypatch.setattr(invariants, "_in_force", lambda _machine, _log: [policy])
    truth = mirrors.truth(LOG)
    truth.deleted_before = deleted_before
    batches = [Batch(at, at + 1, 0, b"", "", 0, 0, time) for at, time in enumerate(times)]
    held: Any = SimpleNamespace(
        batch_before=lambda _end: batches[-1],
        chain_at=lambda _end: b"",
        batches_between=lambda after, end: [one for one in batches if after < one.end <= end],
    )
    truth.on_committed(held, len(times), "b1")
    clock, disk = SimpleNamespace(wall_ms=lambda: NOW_MS), SimDisk() if disk is None else disk
    machine: Any = SimpleNamespace(host="b1", clock=clock, disk=disk, node=None)
    return mirrors.may_begin_at(machine, LOG, start)


def test_old_records_may_go(monkeypatch: pytest.MonkeyPatch) -> None:
    assert may_begin(monkeypatch, [OLD_MS, OLD_MS, NEW_MS], deleted_before=0, start=2)


def test_a_record_that_was_deleted_before_keeps_no_older_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed 801002 of the swarm: the record at offset 0 was dated ahead, and someone had deleted it."""
    assert may_begin(monkeypatch, [NEW_MS, OLD_MS, OLD_MS], deleted_before=1, start=3)


def test_a_younger_record_may_not_go_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not may_begin(monkeypatch, [NEW_MS, OLD_MS, NEW_MS], deleted_before=1, start=3)


def test_where_nothing_is_committed_no_age_explains_a_start(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not may_begin(monkeypatch, [OLD_MS, OLD_MS], deleted_before=2, start=3)


@pytest.mark.parametrize(
    ("times", "sizes", "is_right"),
    [
        pytest.param([NEW_MS, OLD_MS, NEW_MS], [60, 60, 60], True, id="the first by size, the second by age"),
        pytest.param([OLD_MS, NEW_MS, NEW_MS], [60, 60, 60], False, id="the second is young, and what stays is small"),
        pytest.param([NEW_MS, OLD_MS, NEW_MS], [60, 30, 60], False, id="without the first too little was left"),
        pytest.param([NEW_MS, NEW_MS, NEW_MS], [60, 60, 100], True, id="both by size"),
    ],
)
def test_one_pass_takes_segments_by_size_and_then_by_age(
    monkeypatch: pytest.MonkeyPatch, times: list[int], sizes: list[int], is_right: bool
) -> None:
    """Seed 990003 of the swarm (40 s): segments of one record each; the first two have gone in one pass."""
    disk = SimDisk()
    directory = f"{DIRECTORIES[0]}/t-0"
    parts = directory.split("/")
    for depth in range(2, len(parts) + 1):
        disk.make_directory("/".join(parts[:depth]))
    for base, size in enumerate(sizes):
        file = disk.open(f"{directory}/{base:020}.log{'' if base == 2 else '.deleted'}", create=True)
        file.pwritev([b"x" * size], 0)
    policy = Policy(RETENTION_MS, retention_bytes=100)
    assert may_begin(monkeypatch, times, deleted_before=0, start=2, policy=policy, disk=disk) is is_right

"""`flush.messages` of a log in the page cache: which turns end with a sync, before anything of them is answered."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from storage_samples import SMALL, batch, disk_with_data

from jepsen.sim.machine.disk import SimDisk
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.log_config import NEVER, LogConfig
from quorumlog_storage.writer.writer import AppendJob, CallJob, DirectoryWriter
from tests.parts import few
from tests.rules import rule

CACHED = replace(SMALL, durable=False, segment_bytes=100_000)


class Turns:
    """One log and its writer. syncs: how often the log's file was synced in each turn."""

    def __init__(self, config: LogConfig) -> None:
        self.disk = disk_with_data()
        self.log = Log.open(self.disk, "/data/t-0", config)
        self.writer = DirectoryWriter("/data")
        self.order: list[str] = []
        self.disk.trace = lambda kind, path, digest: self.order.append(kind) if path.endswith(".log") else None

    def append(self, *counts: int) -> bool:
        """A turn with appends of so many records each. True if it ended with a sync."""
        self.order.clear()
        offset, jobs = self.log.end_offset, []
        for count in counts:
            jobs.append(AppendJob(self.log, [batch(offset, [b"v"] * count)]))
            offset += count
        self.writer.write_phase(jobs)
        assert "sync" not in self.order
        outcomes = self.writer.sync_phase()
        assert [outcome.error for outcome in outcomes] == [None] * len(counts)
        return self.order == ["pwritev", "sync"]


CASES = [
    ("never", NEVER, [(5,), (500,)], [False, False]),
    ("each append", 1, [(1,), (1, 1), (7,)], [True, True, True]),
    ("every third record", 3, [(1,), (1,), (1,), (2,), (1,)], [False, False, True, False, True]),
    ("a batch is more than asked for", 3, [(2,), (9,), (2,)], [False, True, False]),
    ("appends of one turn count together", 3, [(1, 1, 1), (1, 1)], [True, False]),
]


@rule("storage 1.21")
@pytest.mark.parametrize(("flush_messages", "turns", "synced"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_a_turn_ends_with_a_sync_once_so_many_records_wait(
    flush_messages: int, turns: list[tuple[int, ...]], synced: list[bool]
) -> None:
    world = Turns(replace(CACHED, flush_messages=flush_messages))
    assert [world.append(*turn) for turn in turns] == synced


@settings(max_examples=few(40), deadline=None)
@given(st.integers(1, 12), st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=3), min_size=1, max_size=12))
def test_fewer_records_than_that_are_answered_without_a_sync(flush_messages: int, turns: list[list[int]]) -> None:
    world, waiting = Turns(replace(CACHED, flush_messages=flush_messages)), 0
    for turn in turns:
        synced = world.append(*turn)
        waiting += sum(turn)
        assert synced == (waiting >= flush_messages)
        waiting = 0 if synced else waiting
        assert world.log.end_offset - world.log.synced_end == waiting < flush_messages
        assert world.log.is_acknowledgeable


def test_records_are_on_disk_before_their_turn_ends() -> None:
    world = Turns(replace(CACHED, flush_messages=2))
    world.append(1)
    assert _on_disk(world.disk) == b""
    world.writer.write_phase([AppendJob(world.log, [batch(1, [b"second"])])])
    assert (world.log.is_acknowledgeable, _on_disk(world.disk)) == (False, b"")
    world.writer.sync_phase()
    assert (world.log.is_acknowledgeable, b"second" in _on_disk(world.disk)) == (True, True)


def test_a_sync_that_was_asked_for_comes_with_the_turn() -> None:
    world = Turns(CACHED)
    world.append(4)
    world.writer.write_phase([CallJob(world.log.request_sync, (world.log,))])
    world.writer.sync_phase()
    assert world.log.synced_end == 4
    assert not world.append(1)  # it was asked for once


@pytest.mark.parametrize(
    ("config", "ever"),
    [
        (LogConfig(), True),
        (LogConfig(durable=False), False),
        (LogConfig(durable=False, flush_messages=9), True),
        (LogConfig(durable=False, flush_ms=0), True),
    ],
)
def test_whether_a_log_is_ever_synced(config: LogConfig, ever: bool) -> None:
    assert config.ever_syncs is ever


def _on_disk(disk: SimDisk) -> bytes:
    """What a power cut leaves of the log's first segment."""
    return bytes(disk._file(f"/data/t-0/{0:020}.log", "look").durable)

"""What is wrong in a sample: the same for top and for the console, with the thresholds of `quorumlog check`."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from watch_samples import sample, topic

from quorumlog.client.real_edges import SystemClock
from quorumlog.watch.health import LIMITS, health_of, is_nearly_full
from quorumlog.watch.reading import Reader
from quorumlog.watch.sample import Broker, Directory, Partition, Quorum, QuorumMember, Topic
from quorumlog_cli.top.views import problems as of_top
from quorumlog_console.pages.overview import problems as of_console


def one(index: int, leader: int, replicas: tuple[int, ...], isr: tuple[int, ...], *adding: int) -> Partition:
    return Partition(index=index, leader=leader, replicas=replicas, isr=isr, adding=adding)


def test_a_partition_without_a_leader_hides_none_that_is_under_replicated() -> None:
    """One whose only replica is away has all its replicas in sync, by the metadata."""
    made = sample(0, Topic(name="t", partitions=(one(0, -1, (3,), (3,)), one(1, 1, (1, 2), (1,)))))
    health = health_of(made)
    assert (health.offline, health.under_replicated) == (1, 1)
    assert [problem.level for problem in of_console(made)] == ["bad", "warn"]
    assert of_top(made) == ["1 offline", "1 under-replicated"]


def test_a_replica_that_is_being_added_is_not_missed() -> None:
    added = sample(0, Topic(name="t", partitions=(one(0, 1, (1, 2, 3), (1, 2), 3),)))
    missed = sample(0, Topic(name="t", partitions=(one(0, 1, (1, 2, 3), (1,), 3),)))
    assert (health_of(added).under_replicated, health_of(missed).under_replicated) == (0, 1)


@pytest.mark.parametrize(("free", "want"), [(14, True), (15, False), (-1, False)])
def test_a_disk_is_nearly_full_where_check_says_so(free: int, want: bool) -> None:
    disk = Directory(path="/d", total_bytes=100, usable_bytes=free)
    made = replace(sample(0), brokers=(Broker(node_id=1, host="h", port=1, directories=(disk,)),))
    assert is_nearly_full(disk) is want and LIMITS.free_percent == 15
    assert bool(list(of_console(made))) is bool(of_top(made)) is want


def test_both_name_a_voter_that_does_not_fetch() -> None:
    voters = (QuorumMember(node_id=1, end=9), QuorumMember(node_id=2, end=9, since_fetch_ms=LIMITS.voter_silent_ms + 1))
    made = replace(sample(0, topic("t", 1)), quorum=Quorum(leader_id=1, epoch=1, high_watermark=9, voters=voters))
    assert of_top(made) == ["1 voter silent"]
    assert [problem.text for problem in of_console(made)] == ["Voter 2 of the quorum does not fetch from its leader."]


def test_a_look_asks_what_is_being_added_only_where_something_is_missing() -> None:
    asked: list[int] = []

    class Admin:
        async def list_partition_reassignments(self) -> dict[tuple[str, int], Any]:
            asked.append(1)
            return {("t", 0): SimpleNamespace(adding=(3,)), ("gone", 0): SimpleNamespace(adding=(9,))}

    reader = Reader(cast(Any, Admin()), SystemClock())
    whole = {"t": Topic(name="t", partitions=(one(0, 1, (1, 2), (1, 2)),))}
    assert asyncio.run(reader._with_moves(whole)) == whole and not asked
    moved = asyncio.run(reader._with_moves({"t": Topic(name="t", partitions=(one(0, 1, (1, 2, 3), (1, 2)),))}))
    assert moved["t"].under_replicated == 0 and asked

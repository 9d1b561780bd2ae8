"""Bugs that other coordinators had, and that no other test is about (docs/group-bugs.md has them all)."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from quorumlog.errors import ErrorCode as E
from quorumlog.records import iter_headers, lay_out_rows
from quorumlog.settings.groups import DAY_MS, GroupConfig
from quorumlog_broker.coordinator.group_turn import Write
from quorumlog_broker.coordinator.runtime import loading
from quorumlog_broker.coordinator.runtime.pending_appends import RECORD_OVERHEAD, batches_of
from tests.broker.coordinator.coordinator_cluster import CoordinatorCluster
from tests.broker.coordinator.group_world import SESSION_MS, G, GroupWorld
from tests.broker.coordinator.test_classic_groups import static_group
from tests.broker.coordinator.test_group_offsets import A, subscribed, subscription
from tests.rules import rule


@pytest.fixture
def world() -> GroupWorld:
    return GroupWorld()


# --- the load ---


@rule("bug 5600", "bug 7286")
def test_a_load_goes_through_all_segments_over_batches_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """It neither stops early (KAFKA-5600) nor hangs at a batch that is larger than what it reads at a time (7286)."""
    monkeypatch.setattr(loading, "READ_BYTES", 64)
    cluster = CoordinatorCluster()
    cluster.create()
    for number in range(6):
        assert cluster.commit_offset(number) == E.NONE
        cluster.nodes[2].log().roll()
    cluster.run_for(1_000)
    log = cluster.nodes[2].log()
    assert len(log.view.segments) > 4
    assert all(header.size > 64 for header in iter_headers(log.read(0, 1 << 20, upper_bound=log.end_offset)))
    cluster.elect(2, (1, 2, 3))
    cluster.wait_active(2)
    assert cluster.fetched(2) == 5


@rule("bug 7286")
def test_a_load_ends_where_compaction_has_taken_the_last_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log's end lies behind a gap (KAFKA-9065)."""
    kept = bytes(lay_out_rows([(0, b"a", b"1", ()), (0, b"b", b"2", ())]).seal(-1, -1, -1))

    async def read(_replica: Any, offset: int, _end: int) -> bytes:
        return kept if offset == 0 else b""

    monkeypatch.setattr(loading, "_read", read)

    async def keys() -> list[bytes | None]:
        replica: Any = SimpleNamespace(log=SimpleNamespace(start_offset=0))
        return [key async for portion in loading.portions_of(replica, 10) for _, key, _ in portion.records]

    assert asyncio.run(keys()) == [b"a", b"b"]


# --- members ---


@rule("bug 7909")
def test_a_new_member_that_is_gone_holds_nobody_up_for_ever(world: GroupWorld) -> None:
    """Before version 4 a member waits in its first JoinGroup without a session (KAFKA-9752)."""
    ids, generation = world.stable(1)
    world.join(takes_member_id=False)  # and its process ends
    assert world.heartbeat(ids[0], generation) == E.REBALANCE_IN_PROGRESS
    again = world.join(ids[0])
    assert len(world.joined(again).members) == 2
    world.sync(ids[0], generation + 1, {ids[0]: b""})
    for _ in range(4):
        world.pass_ms(SESSION_MS - 1)
        world.heartbeat(ids[0], generation + 1)
    again = world.join(ids[0])
    assert [one.member_id for one in world.joined(again).members] == ids


@rule("bug 8715")
def test_of_two_processes_with_one_instance_id_the_later_one_stays(world: GroupWorld) -> None:
    """They come in the same ms, and have ids of their own (KAFKA-8715)."""
    world.config = GroupConfig(initial_rebalance_delay_ms=3_000)
    world.fail_over()
    first, second = world.join(group_instance_id="i"), world.join(group_instance_id="i")
    world.pass_ms(3_000)
    assert world.code(first) == E.FENCED_INSTANCE_ID
    assert len(world.joined(second).members) == 1
    assert world.answers[first].member_id != world.answers[second].member_id


@rule("group 3.5", "bug 10284")
def test_a_static_member_that_comes_back_has_its_new_times_at_the_next_coordinator_too(world: GroupWorld) -> None:
    """KAFKA-14009"""
    _, _, generation = static_group(world)
    back = world.joined(world.join(group_instance_id="b", session_timeout_ms=9 * SESSION_MS)).member_id
    world.fail_over()
    world.pass_ms(8 * SESSION_MS)
    assert world.heartbeat(back, generation, group_instance_id="b") in (E.NONE, E.REBALANCE_IN_PROGRESS)


# --- expiry ---


@rule("group 4.18", "bug 13636")
def test_nothing_expires_in_a_rebalance_or_behind_a_load(world: GroupWorld) -> None:
    """KAFKA-13636, KAFKA-10401, KAFKA-8069"""
    member_id = subscribed(world, "a")
    world.commit({A: 5}, member_id, 1)
    world.wall_offset_ms = 8 * DAY_MS
    world.member(protocols=f"range:{subscription('b')}")
    assert world.state() == "PreparingRebalance"
    world.call_expire()
    assert world.fetched() == {A: 5}
    world.fail_over()
    assert world.state() == "Stable"
    world.call_expire()
    assert world.fetched() == {A: 5}


# --- what is written ---


@rule("bug 13099", "bug 16831")
def test_a_turn_of_any_size_leaves_in_batches_that_the_log_takes() -> None:
    """5,000 members, 100,000 ids: each is a record of one turn (KAFKA-16831, KAFKA-13099)."""
    writes = [Write(b"k%d" % number, b"v" * 100) for number in range(5_000)]
    writes.insert(7, Write(b"large", b"v" * 20_000))
    batches = list(batches_of(writes, 10_000, 0))
    sizes = [len(one.data) for one in batches]
    assert sum(one.records for one in batches) == 5_001 and len(batches) > 50
    assert sorted(sizes)[-2] <= 10_000 < sizes[1] < 20_000 + 2 * RECORD_OVERHEAD + 100


@rule("bug 19163")
def test_a_group_with_an_open_transaction_is_not_forgotten_with_its_offsets(world: GroupWorld) -> None:
    """It is deleted while a transaction is open: the marker brings nothing back (KAFKA-19163, KAFKA-19164)."""
    world.commit_in_transaction({A: 5})
    number = world.call("delete_group", G)
    world.end()
    assert world.answers[number] == E.NONE and world.fetched() == {}
    world.fail_over()
    assert world.fetched() == {}

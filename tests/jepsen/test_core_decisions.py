"""Members that go, rebalances that end, transactions that are decided: right, and wrong in each way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.coordinators.consumer_sessions import GONE, ConsumerSessions
from jepsen.sim.invariants.coordinators.consumer_sessions import PAUSED as STOOD_ASIDE
from jepsen.sim.invariants.coordinators.decisions import ABORTS, CHANGES, Decisions
from jepsen.sim.invariants.coordinators.rebalances import COMPLETED, Rebalances
from quorumlog.errors import ErrorCode
from quorumlog_broker.coordinator.groups.classic.group import ClassicGroup
from quorumlog_broker.coordinator.groups.consumer.heartbeat import Heartbeats
from quorumlog_broker.coordinator.groups.consumer.records import write_current
from quorumlog_broker.coordinator.groups.consumer.sessions import Sessions
from quorumlog_broker.coordinator.groups.consumer.state import ConsumerGroup
from quorumlog_broker.coordinator.transactions.end import Ending
from quorumlog_broker.coordinator.transactions.state.completion import Completion
from tests.broker.coordinator.consumer_world import ConsumerWorld
from tests.broker.coordinator.group_world import REBALANCE_MS, SESSION_MS, GroupWorld
from tests.broker.coordinator.transaction_world import TIMEOUT_MS, A, B, TransactionWorld, X

PAUSE, LEAVE = -2, -1


@pytest.fixture
def findings() -> Findings:
    return Findings(lambda: 5)


def names(findings: Findings) -> set[str]:
    return {one.name for one in findings.found}


# --- classic groups ---


def classic(findings: Findings) -> tuple[GroupWorld, Rebalances]:
    world, watch = GroupWorld(), Rebalances(findings)
    watch.listen(world.shard)
    return world, watch


def test_rebalances_and_members_that_go(findings: Findings) -> None:
    world, watch = classic(findings)
    (one, other), generation = world.stable()
    assert world.leave(one) == [0]
    world.join(other)
    assert world.heartbeat(other, generation + 1) == 0
    world.pass_ms(2 * SESSION_MS)
    assert world.state() == "Empty" and watch.counts[COMPLETED] >= 3 and not findings.found


def test_a_rebalance_whose_time_is_over_waits_for_nobody(findings: Findings) -> None:
    world, _ = classic(findings)
    (one, _), _ = world.stable()
    world.join(session_timeout_ms=10 * REBALANCE_MS)  # the id of one that does not come
    world.join(one)
    world.pass_ms(REBALANCE_MS + 1)
    assert not findings.found


def test_a_rebalance_that_does_not_wait_for_an_id(findings: Findings, monkeypatch: pytest.MonkeyPatch) -> None:
    everybody = property(lambda group: group.waiting_joins == len(group.members))
    monkeypatch.setattr(ClassicGroup, "all_joined", everybody)
    world, _ = classic(findings)
    (one, other), _ = world.stable()
    world.join()
    world.join(one)
    world.leave(other)
    assert names(findings) == {"rebalance-awaits"}


def test_a_member_that_is_thrown_out(findings: Findings) -> None:
    world, _ = classic(findings)
    (one, _), _ = world.stable()
    group = world.shard._groups["g"]
    world.shard._rebalance.remove(group, group.members[one])
    assert names(findings) == {"member-thrown-out"}


# --- consumer groups ---


def modern(findings: Findings) -> tuple[ConsumerWorld, ConsumerSessions]:
    world, watch = ConsumerWorld(), ConsumerSessions(findings)
    watch.listen(world.shard)
    return world, watch


def with_a_late_revocation(world: ConsumerWorld) -> None:
    """m1 has all four partitions, is to give up two, and says nothing but that it lives."""
    world.enter("m1", timeout_ms=1_000)
    world.told("m1", 2, {"foo": {0, 1, 2, 3}})
    world.enter("m2", timeout_ms=1_000)
    world.told("m1", 2)
    world.pass_ms(1_001)


def test_consumers_that_go(findings: Findings) -> None:
    world, watch = modern(findings)
    with_a_late_revocation(world)
    world.enter("m3", instance="i")
    epoch = world.group.current_of("m3").epoch
    world.told("m3", PAUSE, instance="i")
    world.enter("m4", instance="i")
    world.told("m4", LEAVE, instance="i")
    world.pass_ms(100_000)
    assert epoch > 0 and watch.counts == {GONE: 3, STOOD_ASIDE: 1, "revocations late": 1} and not findings.found


def test_a_revocation_without_an_end(findings: Findings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sessions, "timer", lambda *_: None)
    world, _ = modern(findings)
    with_a_late_revocation(world)
    assert names(findings) == {"revocation-fences"}


def test_a_pause_that_costs_partitions(findings: Findings, monkeypatch: pytest.MonkeyPatch) -> None:
    def pause(self: Any, group: ConsumerGroup, member_id: str) -> None:
        write_current(self._turn, group.group_id, member_id, replace(group.current_of(member_id), assigned={}))

    monkeypatch.setattr(Heartbeats, "_pause", pause)
    world, _ = modern(findings)
    world.enter("m1", instance="i")
    world.told("m1", 2, instance="i")
    world.beat("m1", PAUSE, instance="i")
    assert names(findings) == {"paused-keeps"}


def test_a_consumer_that_is_thrown_out(findings: Findings) -> None:
    world, _ = modern(findings)
    world.enter("m1")
    world.shard._consumers.sessions.remove(world.group, ("m1",))
    assert names(findings) == {"consumer-thrown-out"}


# --- transactions ---


def transactional(findings: Findings, **options: Any) -> tuple[TransactionWorld, Decisions]:
    world, watch = TransactionWorld(**options), Decisions(findings)
    watch.listen(world.shard)
    return world, watch


@pytest.mark.parametrize("version", [1, 2])
def test_transactions_and_their_ends(version: int, findings: Findings) -> None:
    world, watch = transactional(findings, version=version)
    producer = world.started()
    world.add(producer, A, B)
    world.end(producer)
    other = world.started(transactional_id="y")
    world.add(other, A, transactional_id="y")
    world.init("y")
    again = world.started()
    world.add(again, A)
    world.pass_ms(2 * TIMEOUT_MS)
    watch.look(world.shard, "here")
    assert watch.counts[ABORTS] == 2 and watch.counts[CHANGES] >= 3 and not findings.found


def test_an_abort_in_the_same_epoch(findings: Findings, monkeypatch: pytest.MonkeyPatch) -> None:
    def fence(self: Any, transactional_id: str) -> ErrorCode:
        before = self._table.get(transactional_id)
        return ErrorCode(self._prepare(transactional_id, before, committed=False, version=1))

    monkeypatch.setattr(Ending, "fence", fence)
    world, _ = transactional(findings)
    world.add(world.started(), A)
    world.pass_ms(2 * TIMEOUT_MS)
    assert names(findings) == {"abort-keeps-the-epoch"}


def test_a_producer_that_nobody_has_fenced(findings: Findings) -> None:
    world, _ = transactional(findings)
    world.started()
    value = world.shard._table.get(X)
    assert value is not None
    world.shard._states.put(X, replace(value, producer_epoch=9))
    assert names(findings) == {"fenced-without-a-reason"}


def test_markers_that_nobody_sends(findings: Findings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Completion, "_begin", lambda *_: None)
    world, watch = transactional(findings)
    producer = world.started()
    world.add(producer, A)
    world.end(producer)
    watch.look(world.shard, "here")
    assert names(findings) == {"markers-forgotten"}


def test_a_transaction_that_is_complete_too_early(findings: Findings, monkeypatch: pytest.MonkeyPatch) -> None:
    def written(self: Any, transactional_id: str, *_: Any) -> None:
        self._complete(transactional_id)

    monkeypatch.setattr(Completion, "written", written)
    world, _ = transactional(findings, automark=False)
    producer = world.started()
    world.add(producer, A, B)
    world.end(producer)
    world.shard.marker_written(X, producer[1] + 1, A)
    assert names(findings) == {"complete-without-a-marker"}


def test_a_producer_id_that_is_given_again(findings: Findings) -> None:
    world, _ = transactional(findings)
    producer_id, _ = world.started()
    world.producer_ids = iter([producer_id])  # type: ignore[assignment]
    world.started(transactional_id="y")
    assert names(findings) == {"producer-id-of-two-ids"}

"""Restarts of static members, expiry and deletions, looked at while a core decides: right, and wrong in each way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.coordinators.expiries import DELETED, UNSTAGED, Expiries
from jepsen.sim.invariants.coordinators.static_restarts import CLASSIC, MODERN, StaticRestarts
from quorumlog.messages.groups import (
    OffsetCommitPartition,
    OffsetCommitTopic,
    OffsetDeleteRequest,
    OffsetDeleteTopic,
)
from quorumlog.messages.transactions import TxnOffsetCommitRequest
from quorumlog.records.coordinator.offsets import OffsetCommitValue
from quorumlog.settings.groups import GroupConfig
from quorumlog_broker.coordinator.groups.classic.membership import Membership
from quorumlog_broker.coordinator.groups.consumer.reconcile import PAUSED
from quorumlog_broker.coordinator.groups.consumer.records import rename_member
from quorumlog_broker.coordinator.groups.offsets.calls import Kept, OffsetCalls
from quorumlog_broker.coordinator.groups.offsets.table import PendingOffsets
from quorumlog_broker.coordinator.groups.whole_groups import WholeGroups
from tests.broker.coordinator.consumer_world import ConsumerWorld
from tests.broker.coordinator.group_world import G, GroupWorld

FOO = ("foo", 0)
RETENTION_MS = 60_000


@pytest.fixture
def findings() -> Findings:
    return Findings(lambda: 5)


def names(findings: Findings) -> set[str]:
    return {one.name for one in findings.found}


# --- static members ---


def static_group(findings: Findings) -> tuple[GroupWorld, StaticRestarts]:
    """A stable group of one static member."""
    world, watch = GroupWorld(), StaticRestarts(findings)
    watch.listen(world.shard)
    joined = world.joined(world.join(group_instance_id="i"))
    world.sync(joined.member_id, joined.generation_id, {joined.member_id: b"x"}, group_instance_id="i")
    return world, watch


def test_a_static_member_comes_back(findings: Findings) -> None:
    world, watch = static_group(findings)
    world.join(group_instance_id="i")
    world.join("nobody", group_instance_id="i")
    assert watch.counts == {CLASSIC: 1, MODERN: 0} and not findings.found


def test_a_restart_that_begins_a_generation(findings: Findings, monkeypatch: pytest.MonkeyPatch) -> None:
    def rebalance(self: Any, group: Any, member: Any, call: Any, *_: Any) -> None:
        group.park_join(member, call.number)
        self._rebalance.begin(group)

    monkeypatch.setattr(Membership, "_take_over", rebalance)
    world, _ = static_group(findings)
    world.join(group_instance_id="i")
    assert names(findings) == {"static-restart"}


def test_a_restart_without_a_record(findings: Findings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Membership, "_take_over", lambda *_: None)
    world, _ = static_group(findings)
    world.join(group_instance_id="i")
    assert names(findings) == {"static-restart"}


def paused_member(findings: Findings) -> tuple[ConsumerWorld, StaticRestarts]:
    world, watch = ConsumerWorld(), StaticRestarts(findings)
    watch.listen(world.shard)
    world.enter("m1", instance="i")
    world.told("m1", 2, instance="i")
    world.told("m1", PAUSED, instance="i")
    return world, watch


def test_a_static_consumer_comes_back(findings: Findings) -> None:
    world, watch = paused_member(findings)
    world.enter("m2", instance="i")
    assert watch.counts == {CLASSIC: 0, MODERN: 1} and not findings.found


@pytest.mark.parametrize("mistake", ["an epoch", "its partitions are lost"])
def test_a_static_consumer_that_is_a_new_member(
    mistake: str, findings: Findings, monkeypatch: pytest.MonkeyPatch
) -> None:

    def wrong(turn: Any, group: Any, old_id: str, new_id: str, member: Any) -> None:
        if mistake == "an epoch":
            member = replace(member, subscribed_topic_names=())  # so that it seems to have changed
        else:
            group.current.pop(old_id)
        rename_member(turn, group, old_id, new_id, member)

    monkeypatch.setattr("quorumlog_broker.coordinator.groups.consumer.heartbeat.rename_member", wrong)
    world, _ = paused_member(findings)
    world.enter("m2", instance="i")
    assert names(findings) == {"static-restart"}


# --- expiry ---


def with_offset(findings: Findings, **more: Any) -> tuple[GroupWorld, Expiries]:
    """An offset that is older than the retention."""
    world, watch = (
        GroupWorld(GroupConfig(initial_rebalance_delay_ms=0, offsets_retention_ms=RETENTION_MS)),
        Expiries(findings),
    )
    watch.listen(world.shard)
    assert world.commit_code({FOO: 3}) == 0
    world.pass_ms(RETENTION_MS + 1)
    return world, watch


def commit_in_transaction(world: GroupWorld, topic: str) -> None:
    """An offset that names the topic's id, as those of brokers do."""
    partitions = (OffsetCommitPartition(index=0, committed_offset=4),)
    topics = (OffsetCommitTopic(name=topic, topic_id=b"i" * 16, partitions=partitions),)
    world.call(
        "commit_transactional",
        TxnOffsetCommitRequest(transactional_id="x", group_id=G, producer_id=7, producer_epoch=0, topics=topics),
    )


def keep_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WholeGroups, "_kept", lambda *_: Kept(frozenset(), None))


def test_an_offset_expires(findings: Findings) -> None:
    world, watch = with_offset(findings)
    world.call_expire()
    assert [(one.group, one.topic, one.partition) for one in watch.expired] == [("g", *FOO)] and not findings.found


@pytest.mark.parametrize("topics", [("foo",), None], ids=["subscribed", "nobody can tell"])
def test_an_offset_that_is_used_expires(
    topics: tuple[str, ...] | None, findings: Findings, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_nothing(monkeypatch)
    world, _ = with_offset(findings)
    metadata = "x" if topics is None else "\0\0\0\0\0\1\0\3foo"  # version 0, one topic
    joined = world.joined(world.join(group_instance_id="i", protocols=f"range:{metadata}"))
    world.sync(joined.member_id, joined.generation_id, group_instance_id="i")
    world.call_expire()
    assert names(findings) == {"expiry"}


def test_an_offset_that_a_transaction_is_to_replace_expires(
    findings: Findings, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, _ = with_offset(findings)
    monkeypatch.setattr(PendingOffsets, "has", lambda *_: False)
    commit_in_transaction(world, FOO[0])

    class Sees:
        """What the invariant asks, while the core is mistaken."""

        def values(self, group: str, partition: tuple[str, int]) -> list[OffsetCommitValue]:
            producers = world.shard._offsets.pending._producers.values()
            return [groups[group][partition].value for groups in producers]

    monkeypatch.setattr("jepsen.sim.invariants.coordinators.expiries._pending", lambda _shard: Sees())
    world.call_expire()
    assert names(findings) == {"expiry"}


def test_what_a_transaction_has_of_a_deleted_topic_is_taken(findings: Findings) -> None:
    world, _ = with_offset(findings)
    commit_in_transaction(world, "gone")
    records = len(world.log)
    world.call_topic_deleted("gone", b"i" * 16)
    assert len(world.log) == records + 1 and not findings


def test_an_offset_of_a_consumer_group_that_subscribes(findings: Findings, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_nothing(monkeypatch)
    world, watch = ConsumerWorld(GroupConfig(offsets_retention_ms=RETENTION_MS)), Expiries(findings)
    watch.listen(world.shard)
    world.enter("m1")
    assert world.commit_code({FOO: 3}, "m1", 2) == 0
    world.wall_offset_ms = RETENTION_MS + 1
    world.call_expire()
    assert names(findings) == {"expiry"}


# --- deletions ---


def delete(world: GroupWorld) -> None:
    topics = (OffsetDeleteTopic(name=FOO[0], partitions=(FOO[1],)),)
    world.call("delete_offsets", OffsetDeleteRequest(group_id=G, topics=topics))


@pytest.mark.parametrize("committed", [True, False])
def test_a_deletion_takes_what_a_transaction_holds_and_is_no_expiry(committed: bool, findings: Findings) -> None:
    world, watch = GroupWorld(), Expiries(findings)
    watch.listen(world.shard)
    if committed:
        assert world.commit_code({FOO: 3}) == 0
    world.commit_in_transaction({FOO: 4})
    delete(world)
    assert not findings.found and len(watch.expired) == 1
    assert watch.counts == {"offsets expired": 0, "classic groups forgotten": 0, DELETED: 1, UNSTAGED: 1}


@pytest.mark.parametrize("committed", [True, False])
def test_a_deletion_that_leaves_something(committed: bool, findings: Findings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OffsetCalls, "_delete", lambda *_: None)
    world, watch = GroupWorld(), Expiries(findings)
    watch.listen(world.shard)
    if committed:
        assert world.commit_code({FOO: 3}) == 0
    else:
        world.commit_in_transaction({FOO: 4})
    delete(world)
    assert names(findings) == {"deleted-offset-stays"}


def test_a_deletion_of_what_a_member_subscribes_to(findings: Findings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorumlog_broker.coordinator.groups.offsets.calls.subscribed_topics", lambda _: frozenset())
    world, _ = with_offset(findings)
    joined = world.joined(world.join(group_instance_id="i", protocols="range:\0\0\0\0\0\1\0\3foo"))
    world.sync(joined.member_id, joined.generation_id, group_instance_id="i")
    delete(world)
    assert names(findings) == {"deleted-in-use"}

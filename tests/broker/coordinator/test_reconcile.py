"""Each row of the reconciliation of a member: what it owns, what it shall own, what it says, and what comes of it."""

from __future__ import annotations

import pytest

from quorumlog.records.coordinator.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from quorumlog_broker.coordinator.groups.consumer.reconcile import Current, MemberState, MustStartAnew, reconcile
from quorumlog_broker.coordinator.groups.consumer.state import ConsumerGroups, Member
from tests.broker.coordinator.consumer_world import topic_id
from tests.rules import rule

STABLE, UNREVOKED, UNRELEASED, UNKNOWN = MemberState
TOPIC = topic_id("t")
Numbers = str
"""Indexes as digits."""


def partitions(numbers: Numbers) -> set[tuple[bytes, int]]:
    return {(TOPIC, int(one)) for one in numbers}


def since(numbers: Numbers, epoch: int) -> dict[tuple[bytes, int], int]:
    return dict.fromkeys(partitions(numbers), epoch)


def member(state: MemberState, epoch: int, assigned: Numbers, revoking: Numbers = "") -> Current:
    return Current(
        epoch=epoch,
        previous_epoch=epoch - 1,
        state=state,
        assigned=since(assigned, epoch),
        revoking=since(revoking, epoch),
    )


# name, before, target epoch, target, owned (None: it says nothing), taken by others,
# after: state, epoch, assigned, revoking
CASES = [
    ("nothing to do", member(STABLE, 5, "01"), 5, "01", None, "", (STABLE, 5, "01", "")),
    ("new epoch, same target", member(STABLE, 5, "01"), 6, "01", None, "", (STABLE, 6, "01", "")),
    ("more, all free", member(STABLE, 5, "0"), 6, "01", None, "", (STABLE, 6, "01", "")),
    ("more, none free", member(STABLE, 5, "0"), 6, "01", None, "1", (UNRELEASED, 6, "0", "")),
    ("more, some free", member(STABLE, 5, "0"), 6, "012", None, "1", (UNRELEASED, 6, "02", "")),
    ("less, it says nothing", member(STABLE, 5, "01"), 6, "0", None, "", (UNREVOKED, 5, "0", "1")),
    ("less, it still has it", member(STABLE, 5, "01"), 6, "0", "01", "", (UNREVOKED, 5, "0", "1")),
    ("less, it has let it go", member(STABLE, 5, "01"), 6, "0", "0", "", (STABLE, 6, "0", "")),
    ("others: first it gives up", member(STABLE, 5, "0"), 6, "1", None, "", (UNREVOKED, 5, "", "0")),
    ("gives up: it says nothing", member(UNREVOKED, 5, "0", "1"), 6, "0", None, "", (UNREVOKED, 5, "0", "1")),
    ("gives up: not yet", member(UNREVOKED, 5, "0", "1"), 6, "0", "01", "", (UNREVOKED, 5, "0", "1")),
    ("gives up: done", member(UNREVOKED, 5, "0", "1"), 6, "02", "0", "", (STABLE, 6, "02", "")),
    ("gives up: done, waits", member(UNREVOKED, 5, "0", "1"), 6, "02", "0", "2", (UNRELEASED, 6, "0", "")),
    ("gives up: done, and more", member(UNREVOKED, 5, "02", "1"), 6, "0", "02", "", (UNREVOKED, 5, "0", "2")),
    ("gives up: it is wanted again", member(UNREVOKED, 5, "0", "1"), 6, "01", "0", "", (STABLE, 6, "01", "")),
    ("waits: still", member(UNRELEASED, 5, "0"), 5, "01", None, "1", (UNRELEASED, 5, "0", "")),
    ("waits: free", member(UNRELEASED, 5, "0"), 5, "01", None, "", (STABLE, 5, "01", "")),
    ("waits: a newer target", member(UNRELEASED, 5, "0"), 6, "0", None, "1", (STABLE, 6, "0", "")),
    ("unknown, owns nothing", member(UNKNOWN, 5, "0"), 6, "0", "", "", (STABLE, 6, "0", "")),
]


@rule("group 5.5", "bug crabka 521")
@pytest.mark.parametrize(
    ("before", "target_epoch", "target", "owned", "taken", "after"),
    [case[1:] for case in CASES],
    ids=[c[0] for c in CASES],
)
def test_a_step(
    before: Current,
    target_epoch: int,
    target: Numbers,
    owned: Numbers | None,
    taken: Numbers,
    after: tuple[MemberState, int, Numbers, Numbers],
) -> None:
    found = reconcile(
        before,
        target_epoch=target_epoch,
        target=partitions(target),
        is_subscribed=None,
        owned=None if owned is None else partitions(owned),
        is_free=lambda one: one not in partitions(taken),
    )
    state, epoch, assigned, revoking = after
    assert (found.state, found.epoch) == (state, epoch)
    assert found.assigned.keys() == partitions(assigned) and found.revoking.keys() == partitions(revoking)
    for partition, got in found.assigned.items():
        assert got == before.assigned.get(partition, target_epoch), "it has it since then (KIP-1251)"
    has_changed = (state, epoch, found.assigned, found.revoking) != (
        before.state,
        before.epoch,
        before.assigned,
        before.revoking,
    )
    assert found.previous_epoch == (before.epoch if has_changed else before.previous_epoch)
    assert has_changed or found is before


@rule("group 5.5")
@pytest.mark.parametrize(
    ("owned", "state", "revoking"), [(None, UNREVOKED, "1"), ("01", UNREVOKED, "1"), ("0", STABLE, "")]
)
def test_what_is_no_longer_subscribed_is_taken_before_the_next_target(
    owned: Numbers | None, state: MemberState, revoking: Numbers
) -> None:
    found = reconcile(
        member(STABLE, 5, "01"),
        target_epoch=5,
        target=partitions("0"),
        is_subscribed=lambda one: one[1] == 0,
        owned=None if owned is None else partitions(owned),
        is_free=lambda _one: True,
    )
    assert (found.state, found.epoch, found.assigned.keys()) == (state, 5, partitions("0"))
    assert found.revoking.keys() == partitions(revoking)


@pytest.mark.parametrize(("owned", "revoking"), [(None, "12"), ("012", "12"), ("1", "12"), ("02", "2")])
def test_a_member_that_gives_up_partitions_can_unsubscribe_from_more(owned: Numbers | None, revoking: Numbers) -> None:
    """As in Kafka 4.3. In the last case it has given up what it was asked for before."""
    found = reconcile(
        member(UNREVOKED, 5, "02", "1"),
        target_epoch=6,
        target=partitions("0"),
        is_subscribed=lambda one: one[1] == 0,
        owned=None if owned is None else partitions(owned),
        is_free=lambda _one: True,
    )
    assert (found.state, found.epoch, found.assigned.keys()) == (UNREVOKED, 5, partitions("0"))
    assert found.revoking.keys() == partitions(revoking)


@pytest.mark.parametrize("before", [member(STABLE, 5, "01"), member(UNREVOKED, 5, "01", "2")])
def test_a_topic_that_goes_is_kept_until_the_next_target(before: Current) -> None:
    """Its subscription has not changed, although the topic is no longer there."""
    found = reconcile(
        before,
        target_epoch=5,
        target=partitions("0"),
        is_subscribed=None,
        owned=None,
        is_free=lambda _one: True,
    )
    assert found is before


@pytest.mark.parametrize("owned", [None, "0"])
def test_a_member_in_a_state_of_newer_software_starts_anew(owned: Numbers | None) -> None:
    with pytest.raises(MustStartAnew):
        reconcile(
            member(UNKNOWN, 5, "0"),
            target_epoch=6,
            target=partitions("0"),
            is_subscribed=lambda _one: True,
            owned=None if owned is None else partitions(owned),
            is_free=lambda _one: True,
        )


def test_a_member_comes_back_from_its_record() -> None:
    before = member(UNREVOKED, 5, "0", "1")
    assert Current.of(before.to_value()) == before
    assert Current.of(ConsumerGroupCurrentMemberAssignmentValue(5, 4, 99, (), ())).state is UNKNOWN


# --- what compaction leaves ---


@rule("group 1.11", "bug 17306")
@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize(
    "key",
    [
        ConsumerGroupMetadataKey("g"),
        ConsumerGroupPartitionMetadataKey("g"),
        ConsumerGroupMemberMetadataKey("g", "m"),
        ConsumerGroupTargetAssignmentMetadataKey("g"),
        ConsumerGroupTargetAssignmentMemberKey("g", "m"),
        ConsumerGroupCurrentMemberAssignmentKey("g", "m"),
        ConsumerGroupRegularExpressionKey("g", "r"),
    ],
)
def test_a_tombstone_of_something_unknown_is_nothing(key: object, is_there: bool) -> None:
    """KAFKA-17306, KAFKA-19862: with and without the group."""
    groups = ConsumerGroups()
    if is_there:
        groups.replay(
            ConsumerGroupMemberMetadataKey("g", "other"), Member(None, None, "c", "/h", ("t",), None, 1, None)
        )
    groups.replay(key, None)  # type: ignore[arg-type]
    assert ("g" in groups) == is_there


def test_an_assignment_without_its_member_is_kept_until_its_tombstone() -> None:
    groups = ConsumerGroups()
    key = ConsumerGroupCurrentMemberAssignmentKey("g", "m")
    groups.replay(key, member(STABLE, 5, "0").to_value())
    assert groups["g"].owners == {(TOPIC, 0): "m"} and not groups["g"].members
    groups.replay(key, None)
    assert "g" not in groups


def test_a_later_owner_stays_when_an_older_record_of_the_former_one_goes() -> None:
    groups = ConsumerGroups()
    groups.replay(ConsumerGroupMetadataKey("g"), ConsumerGroupMetadataValue(5))
    first, second = (ConsumerGroupCurrentMemberAssignmentKey("g", one) for one in ("m1", "m2"))
    groups.replay(first, member(STABLE, 5, "01").to_value())
    groups.replay(second, member(STABLE, 6, "1").to_value())
    groups.replay(first, member(STABLE, 6, "0").to_value())
    assert groups["g"].owners == {(TOPIC, 0): "m1", (TOPIC, 1): "m2"}

"""Assignors that look at racks: what is near goes first, and what holds without racks holds with them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_client_assignors import check_whole, counted, groups, parts, shown

from quorumlog.client.group.assignors import (
    STRATEGIES,
    Assignment,
    Joined,
    assign_cooperative_sticky,
    assign_range,
    assign_round_robin,
)
from quorumlog.client.group.protocol import Subscription
from quorumlog.client.group.racks import Racks, racks_of
from quorumlog.messages.cluster import BrokerMetadata, MetadataResponse, PartitionMetadata, TopicMetadata


def member(name: str, rack: str | None, topics: str = "a", owned: str = "") -> Joined:
    return Joined(name, Subscription(tuple(topics), parts(owned), 1 if owned else -1, rack=rack))


def racks(**topics: str) -> Racks:
    """As a="1 2 12": partition 0 in rack 1, 1 in rack 2, 2 in both."""
    return {name: tuple(frozenset(one.strip("-")) for one in text.split()) for name, text in topics.items()}


X1, Y2 = member("x", "1"), member("y", "2")
RANGE = [
    ("near first", [X1, Y2], racks(a="2 1 2 1"), {"x": "a1 a3", "y": "a0 a2"}),
    ("not more than its share", [X1, Y2], racks(a="1 1 1 2"), {"x": "a0 a1", "y": "a2 a3"}),
    ("one more for who has more nearby", [X1, Y2], racks(a="2 2 1"), {"x": "a2", "y": "a0 a1"}),
    ("each partition in each rack", [X1, Y2], racks(a="12 12 12"), {"x": "a0 a1", "y": "a2"}),
    ("nobody is near", [X1, Y2], racks(a="3 4 3"), {"x": "a0 a1", "y": "a2"}),
    ("one says no rack", [member("x", None), Y2], racks(a="2 1 2 1"), {"x": "a1 a3", "y": "a0 a2"}),
    ("brokers without racks", [X1, Y2], racks(a="- - -"), {"x": "a0 a1", "y": "a2"}),
]


@pytest.mark.parametrize(("members", "where", "want"), [one[1:] for one in RANGE], ids=[one[0] for one in RANGE])
def test_range(members: list[Joined], where: Racks, want: dict[str, str]) -> None:
    assert shown(assign_range(members, {"a": len(where["a"])}, where)) == want


def test_topics_that_are_read_together_are_shared_alike() -> None:
    members = [member("x", "1", "ab"), member("y", "2", "ab")]
    found = assign_range(members, counted("a4 b4"), racks(a="2 1 2 1", b="2 1 1 2"))
    assert shown(found) == {"x": "a1 a2 b1 b2", "y": "a0 a3 b0 b3"}


def test_a_sticky_member_keeps_what_is_far_and_gets_what_is_near() -> None:
    where = racks(a="2 1 2 1 1 2")
    kept = [member("x", "1", owned="a0"), member("y", "2", owned="a1")]
    assert shown(assign_cooperative_sticky(kept, counted("a6"), where)) == {"x": "a0 a3 a4", "y": "a1 a2 a5"}
    uneven = [member("x", "1", "a"), member("y", "2", "ab")]
    assert shown(assign_cooperative_sticky(uneven, counted("a2 b1"), racks(a="1 2", b="1"))) == {
        "x": "a0",
        "y": "a1 b0",
    }


def test_round_robin_does_not_look_at_them() -> None:
    assert shown(assign_round_robin([X1, Y2], counted("a2"), racks(a="2 1"))) == {"x": "a0", "y": "a1"}


def test_the_racks_of_a_partition_are_those_of_its_replicas() -> None:
    brokers = tuple(
        BrokerMetadata(node_id=n, host="h", port=1, rack=rack) for n, rack in ((1, "r"), (2, None), (3, "s"))
    )
    partitions = (PartitionMetadata(index=1, replicas=(2,)), PartitionMetadata(index=0, replicas=(3, 2, 1)))
    response = MetadataResponse(
        brokers=brokers, controller_id=1, topics=(TopicMetadata(name="t", partitions=partitions),)
    )
    known: dict[int, str] = {}
    want: Racks = {"t": (frozenset({"r", "s"}), frozenset())}
    assert racks_of(response, known) == want
    assert racks_of(replace(response, brokers=brokers[:1]), known) == want, "a broker that is down keeps its rack"


@st.composite
def in_racks(draw: Any) -> tuple[list[Joined], dict[str, int], Racks]:
    members, counts = draw(groups())
    rack = st.sampled_from([None, "1", "2", "3"])
    there = st.frozensets(st.sampled_from("123"), max_size=3)
    placed = [one._replace(subscription=one.subscription._replace(rack=draw(rack))) for one in members]
    return placed, counts, {topic: tuple(draw(there) for _ in range(count)) for topic, count in counts.items()}


@given(in_racks(), st.randoms())
def test_every_partition_has_one_reader(group: tuple[list[Joined], dict[str, int], Racks], rng: Any) -> None:
    members, counts, where = group
    for strategy in STRATEGIES.values():
        found = strategy.assign(members, counts, where)
        assert strategy.assign(rng.sample(members, len(members)), counts, where) == found
        owned = {part for one in members for part in one.subscription.owned}
        given = {part for partitions in found.values() for part in partitions}
        check_whole(members, counts, found, frozenset(owned - given) if strategy.cooperative else frozenset())


@given(in_racks())
def test_range_stays_even_in_each_topic(group: tuple[list[Joined], dict[str, int], Racks]) -> None:
    members, counts, where = group
    found = assign_range(members, counts, where)
    assert sizes(found, counts) == sizes(assign_range(members, counts), counts)


def sizes(found: Assignment, counts: dict[str, int]) -> dict[str, list[int]]:
    return {topic: sorted(sum(one[0] == topic for one in parts) for parts in found.values()) for topic in counts}


@given(in_racks())
def test_cooperative_rebalances_come_to_rest(group: tuple[list[Joined], dict[str, int], Racks]) -> None:
    """Racks move nothing that somebody has: the third round changes nothing."""
    members, counts, where = group
    for generation in range(4, 7):
        before = [one.subscription.owned for one in members]
        found = assign_cooperative_sticky(members, counts, where)
        members = [
            one._replace(subscription=one.subscription._replace(owned=found[one.member_id], generation=generation))
            for one in members
        ]
    assert [one.subscription.owned for one in members] == before
    check_whole(members, counts, found, frozenset())

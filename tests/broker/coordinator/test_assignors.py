"""The assignors: examples, and what must hold of any group (each partition once, to a subscriber, fairly)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog_broker.coordinator.groups.consumer.assignors import (
    Assignment,
    Assignor,
    Subject,
    assign_range,
    assign_uniform,
)
from tests.broker.coordinator.consumer_world import topic_id
from tests.broker.coordinator.test_consumer_static import drain
from tests.rules import rule

ASSIGNORS: list[Assignor] = [assign_range, assign_uniform]


def subject(name: str, topics: str, owned: dict[str, list[int]] | None = None, instance: str | None = None) -> Subject:
    ids = frozenset(topic_id(topic) for topic in topics.split())
    return Subject(name, instance, ids, {topic_id(topic): indexes for topic, indexes in (owned or {}).items()})


def counts(**partitions: int) -> dict[bytes, int]:
    return {topic_id(name): count for name, count in partitions.items()}


def readable(found: Assignment) -> dict[str, dict[str, list[int]]]:
    return {
        member: {topic.rstrip(b"\0").decode(): sorted(indexes) for topic, indexes in topics.items() if indexes}
        for member, topics in found.items()
    }


# --- examples ---


def test_range_gives_contiguous_parts_of_each_topic() -> None:
    members = [subject("c", "a b"), subject("b", "a"), subject("d", "a b", instance="i")]
    assert readable(drain(assign_range(members, counts(a=5, b=3)))) == {
        "d": {"a": [0, 1], "b": [0, 1]},  # static members come first
        "b": {"a": [2, 3]},
        "c": {"a": [4], "b": [2]},
    }


def test_range_with_more_members_than_partitions() -> None:
    members = [subject(name, "a") for name in "xyz"]
    assert readable(drain(assign_range(members, counts(a=2)))) == {"x": {"a": [0]}, "y": {"a": [1]}, "z": {}}


def test_uniform_keeps_what_it_can() -> None:
    members = [subject("x", "a", {"a": [0, 1, 2, 3]}), subject("y", "a", {"a": [4]}), subject("z", "a")]
    assert readable(drain(assign_uniform(members, counts(a=5)))) == {
        "x": {"a": [0, 1]},
        "y": {"a": [2, 4]},
        "z": {"a": [3]},
    }


def test_uniform_gives_no_partition_twice_although_two_had_it() -> None:
    members = [subject("x", "a", {"a": [0, 1]}), subject("y", "a", {"a": [0, 1]})]
    found = readable(drain(assign_uniform(members, counts(a=2))))
    assert sorted(found["x"]["a"] + found["y"]["a"]) == [0, 1]


def test_uniform_with_unequal_subscriptions_moves_what_helps() -> None:
    members = [subject("x", "a b", {"a": [0, 1, 2], "b": [0]}), subject("y", "a")]
    found = readable(drain(assign_uniform(members, counts(a=3, b=1))))
    assert found["x"]["b"] == [0] and len(found["y"]["a"]) == 2


@rule("bug 16930")
@pytest.mark.parametrize("assign", ASSIGNORS)
def test_a_member_without_topics(assign: Assignor) -> None:
    """KAFKA-16930"""
    found = readable(drain(assign([subject("x", "a"), subject("y", "")], counts(a=2))))
    assert found == {"x": {"a": [0, 1]}, "y": {}}


@rule("bug 16930")
@pytest.mark.parametrize("assign", ASSIGNORS)
def test_nobody_and_nothing(assign: Assignor) -> None:
    assert drain(assign([], counts(a=2))) == {}
    assert readable(drain(assign([subject("x", "")], {}))) == {"x": {}}


# --- any group ---

NAMES = st.sampled_from("abcd")


@st.composite
def groups(draw: st.DrawFn, *, equal: bool) -> tuple[list[Subject], dict[bytes, int]]:
    partitions = {topic_id(name): draw(st.integers(0, 9)) for name in "abcd"}
    shared = draw(st.frozensets(NAMES, min_size=1))
    members = []
    for number in range(draw(st.integers(1, 6))):
        names = shared if equal else draw(st.frozensets(NAMES))
        owned = {topic_id(one): draw(st.lists(st.integers(0, 11), unique=True)) for one in draw(st.frozensets(NAMES))}
        instance = f"i{number}" if draw(st.booleans()) else None
        members.append(Subject(f"m{number}", instance, frozenset(map(topic_id, names)), owned))
    return members, partitions


def check(members: list[Subject], partitions: dict[bytes, int], found: Assignment) -> None:
    """[16] Each subscribed partition once, to a subscriber."""
    assert found.keys() == {one.member_id for one in members}
    given_to: dict[tuple[bytes, int], str] = {}
    for one in members:
        for topic, indexes in found[one.member_id].items():
            assert not indexes or topic in one.topics
            for index in indexes:
                assert (topic, index) not in given_to
                given_to[topic, index] = one.member_id
    subscribed = frozenset().union(*(one.topics for one in members))
    assert given_to.keys() == {(topic, index) for topic in subscribed for index in range(partitions[topic])}


def sizes(found: Assignment) -> list[int]:
    return [sum(map(len, topics.values())) for topics in found.values()]


@given(st.sampled_from(ASSIGNORS), st.booleans().flatmap(lambda equal: groups(equal=equal)))
def test_each_partition_once_to_a_subscriber(assign: Assignor, group: tuple[list[Subject], dict[bytes, int]]) -> None:
    check(*group, drain(assign(*group)))


@given(groups(equal=True))
def test_uniform_is_fair_among_equals(group: tuple[list[Subject], dict[bytes, int]]) -> None:
    found = sizes(drain(assign_uniform(*group)))
    assert max(found) - min(found) <= 1


@given(groups(equal=False))
def test_uniform_is_as_fair_as_subscriptions_allow(group: tuple[list[Subject], dict[bytes, int]]) -> None:
    """Nobody has two more than somebody who could take one of them."""
    members, partitions = group
    found = drain(assign_uniform(members, partitions))
    load = {one: sum(map(len, topics.values())) for one, topics in found.items()}
    for one in members:
        for other in members:
            takes = any(indexes and topic in other.topics for topic, indexes in found[one.member_id].items())
            assert not takes or load[one.member_id] - load[other.member_id] <= 1


@given(groups(equal=True))
def test_uniform_is_content_with_its_own_result(group: tuple[list[Subject], dict[bytes, int]]) -> None:
    members, partitions = group
    first = drain(assign_uniform(members, partitions))
    again = drain(assign_uniform([one._replace(owned=first[one.member_id]) for one in members], partitions))
    assert readable(again) == readable(first)


@given(groups(equal=True))
def test_uniform_moves_no_more_than_the_member_that_left_had(
    group: tuple[list[Subject], dict[bytes, int]],
) -> None:
    members, partitions = group
    first = drain(assign_uniform(members, partitions))
    rest = [one._replace(owned=first[one.member_id]) for one in members[1:]]
    again = drain(assign_uniform(rest, partitions))
    for one in rest:
        before = {(topic, index) for topic, indexes in first[one.member_id].items() for index in indexes}
        after = {(topic, index) for topic, indexes in again[one.member_id].items() for index in indexes}
        assert before <= after

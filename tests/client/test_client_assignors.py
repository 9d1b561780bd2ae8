"""The assignors: Kafka's results for the cases that its documentation names, and what holds for every group."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quorumlog.client.group.assignors import (
    STRATEGIES,
    Assignment,
    Joined,
    assign_cooperative_sticky,
    assign_eager_sticky,
    assign_range,
    assign_round_robin,
)
from quorumlog.client.group.protocol import Kept, Subscription, write_kept
from quorumlog.client.group.sticky import assign_sticky


def member(name: str, topics: str, owned: str = "", generation: int = -1, instance: str | None = None) -> Joined:
    return Joined(name, Subscription(tuple(topics), parts(owned), generation), instance)


def parts(text: str) -> frozenset[tuple[str, int]]:
    """As "a0 b12": partition 0 of a, 12 of b."""
    return frozenset((word[0], int(word[1:])) for word in text.split())


def shown(assignment: Assignment) -> dict[str, str]:
    return {name: " ".join(f"{t}{i}" for t, i in sorted(found)) for name, found in assignment.items()}


RANGE = [
    ("two topics", [member("x", "ab"), member("y", "ab")], "a3 b3", {"x": "a0 a1 b0 b1", "y": "a2 b2"}),
    ("by id, not by order", [member("y", "a"), member("x", "a")], "a3", {"x": "a0 a1", "y": "a2"}),
    ("more members than partitions", [member(n, "a") for n in "xyz"], "a2", {"x": "a0", "y": "a1", "z": ""}),
    ("one subscriber", [member("x", "ab"), member("y", "b")], "a2 b1", {"x": "a0 a1 b0", "y": ""}),
    ("a topic that does not exist", [member("x", "ac")], "a1", {"x": "a0"}),
    ("static members first", [member("x", "a"), member("z", "a", instance="i")], "a1", {"x": "", "z": "a0"}),
]


def counted(text: str) -> dict[str, int]:
    return {word[0]: int(word[1:]) for word in text.split()}


@pytest.mark.parametrize(("members", "topics", "want"), [case[1:] for case in RANGE], ids=[case[0] for case in RANGE])
def test_range(members: list[Joined], topics: str, want: dict[str, str]) -> None:
    assert shown(assign_range(members, counted(topics))) == want


def test_round_robin() -> None:
    same = [member("x", "ab"), member("y", "ab")]
    assert shown(assign_round_robin(same, counted("a3 b3"))) == {"x": "a0 a2 b1", "y": "a1 b0 b2"}
    mixed = [member("x", "a"), member("y", "ab"), member("z", "abc")]
    assert shown(assign_round_robin(mixed, counted("a1 b2 c3"))) == {"x": "a0", "y": "b0", "z": "b1 c0 c1 c2"}


STICKY = [
    ("nothing owned", [member("x", "a"), member("y", "a")], "a3", {"x": "a0 a2", "y": "a1"}),
    ("each keeps its own", [member("x", "a", "a1"), member("y", "a", "a0")], "a2", {"x": "a1", "y": "a0"}),
    ("of two claims the newer", [member("x", "a", "a0", 3), member("y", "a", "a0 a1", 4)], "a2", {"x": "", "y": "a0"}),
    ("a topic is left", [member("x", "b", "a0 b0"), member("y", "ab")], "a1 b1", {"x": "b0", "y": ""}),
    ("what moves is given to nobody", [member("x", "a", "a0 a1"), member("y", "a")], "a2", {"x": "a0", "y": ""}),
]


@pytest.mark.parametrize(("members", "topics", "want"), [case[1:] for case in STICKY], ids=[case[0] for case in STICKY])
def test_cooperative_sticky(members: list[Joined], topics: str, want: dict[str, str]) -> None:
    assert shown(assign_cooperative_sticky(members, counted(topics))) == want


def had(name: str, topics: str, partitions: str = "", generation: int = 1) -> Joined:
    """What an eager member says: it owns nothing now, and this is what it had."""
    data = write_kept(Kept(parts(partitions), generation))
    return Joined(name, Subscription(tuple(topics), generation=generation + 1, user_data=data))


EAGER = [
    ("nothing had", [had("x", "a"), had("y", "a")], "a3", {"x": "a0 a2", "y": "a1"}),
    ("each keeps its own", [had("x", "a", "a1"), had("y", "a", "a0")], "a2", {"x": "a1", "y": "a0"}),
    ("of two claims the newer", [had("x", "a", "a0", 3), had("y", "a", "a0 a1", 4)], "a2", {"x": "a1", "y": "a0"}),
    ("a topic is left", [had("x", "b", "a0 b0"), had("y", "ab")], "a1 b1", {"x": "b0", "y": "a0"}),
    ("what moves is given at once", [had("x", "a", "a0 a1"), had("y", "a")], "a2", {"x": "a0", "y": "a1"}),
    ("owned means nothing", [member("x", "a", "a0 a1"), member("y", "a")], "a2", {"x": "a0", "y": "a1"}),
    ("bytes that nobody can read", [Joined("x", Subscription(("a",), user_data=b"\0\0\0\7a"))], "a1", {"x": "a0"}),
]


@pytest.mark.parametrize(("members", "topics", "want"), [case[1:] for case in EAGER], ids=[case[0] for case in EAGER])
def test_eager_sticky(members: list[Joined], topics: str, want: dict[str, str]) -> None:
    assert shown(assign_eager_sticky(members, counted(topics))) == want


@st.composite
def groups(draw: Any) -> tuple[list[Joined], dict[str, int]]:
    counts = draw(st.dictionaries(st.sampled_from("abcd"), st.integers(0, 6), min_size=1))
    same = draw(st.none() | st.lists(st.sampled_from("abcd"), unique=True))
    names = draw(st.lists(st.sampled_from("rstuvwxyz"), unique=True, min_size=1, max_size=6))
    some = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 7)), max_size=8)
    members = []
    for name in names:
        topics = same if same is not None else draw(st.lists(st.sampled_from("abcd"), unique=True))
        owned, generation = draw(some), draw(st.integers(-1, 3))
        instance = draw(st.none() | st.just(f"i{name}"))
        members.append(Joined(name, Subscription(tuple(topics), frozenset(owned), generation), instance))
    return members, counts


def check_whole(members: list[Joined], counts: dict[str, int], found: Assignment, held: frozenset[Any]) -> None:
    """Each partition that somebody wants is read once, by one that wants it. held: given to nobody for now."""
    given = [one for partitions in found.values() for one in partitions]
    assert len(given) == len(set(given))
    wanted = {topic for one in members for topic in one.subscription.topics}
    every = {(topic, index) for topic, count in counts.items() if topic in wanted for index in range(count)}
    assert set(given) == every - held
    for one in members:
        assert {topic for topic, _ in found[one.member_id]} <= set(one.subscription.topics)


@given(groups(), st.randoms())
def test_every_partition_has_one_reader(group: tuple[list[Joined], dict[str, int]], rng: Any) -> None:
    members, counts = group
    shuffled = rng.sample(members, len(members))
    for strategy in STRATEGIES.values():
        found = strategy.assign(members, counts)
        assert strategy.assign(shuffled, counts) == found
        owned = {part for one in members for part in one.subscription.owned}
        given = {part for partitions in found.values() for part in partitions}
        held = frozenset(owned - given) if strategy.cooperative else frozenset()
        check_whole(members, counts, found, held)


@given(groups())
def test_a_cooperative_assignment_takes_from_no_owner(group: tuple[list[Joined], dict[str, int]]) -> None:
    members, counts = group
    found = assign_cooperative_sticky(members, counts)
    for one in members:
        for other in members:
            if other is not one:
                assert found[one.member_id] & other.subscription.owned <= one.subscription.owned


A_CHAIN = (
    [
        Joined("s", Subscription(("a",))),
        Joined("t", Subscription(("a",), frozenset({("b", 0)}), 3)),
        Joined("u", Subscription(("a", "b", "c"), frozenset({("a", 0), ("a", 1)}), 3)),
        Joined("v", Subscription(("a", "b", "c"))),
    ],
    {"a": 5, "b": 1, "c": 5},
)  # 4, 3, 2 and 2 partitions, which no single move evens out


@given(groups())
@example(A_CHAIN)
def test_cooperative_rebalances_come_to_rest(group: tuple[list[Joined], dict[str, int]]) -> None:
    """Each member gives up what it was not given and joins again: after two rounds all is handed out for good."""
    members, counts = group
    generation = 4
    for _ in range(2):
        found = assign_cooperative_sticky(members, counts)
        members = [
            one._replace(subscription=one.subscription._replace(owned=found[one.member_id], generation=generation))
            for one in members
        ]
        generation += 1
    last = assign_cooperative_sticky(members, counts)
    check_whole(members, counts, last, frozenset())
    assert last == found
    for one in members:
        for other in members:
            movable = {topic for topic, _ in last[one.member_id]} & set(other.subscription.topics)
            assert not movable or len(last[one.member_id]) <= len(last[other.member_id]) + 1


def test_a_partition_moves_from_member_to_member_to_member() -> None:
    members, counts = A_CHAIN
    assert sorted(map(len, assign_sticky([(one.member_id, one.subscription) for one in members], counts).values())) == [
        *(2, 3, 3, 3)
    ]


@given(st.integers(1, 6), st.integers(0, 30), st.data())
def test_a_member_that_goes_moves_only_its_own(members: int, count: int, data: Any) -> None:
    names = [f"m{n}" for n in range(members + 1)]
    first = assign_sticky([(name, Subscription(("a",))) for name in names], {"a": count})
    gone = data.draw(st.sampled_from(names))
    left = [(name, Subscription(("a",), frozenset(first[name]), 1)) for name in names if name != gone]
    second = assign_sticky(left, {"a": count})
    for name, _ in left:
        assert first[name] <= second[name]


def after(members: list[Joined], found: Assignment, generation: int) -> list[Joined]:
    """The same members when they join again."""
    data = {one.member_id: write_kept(Kept(found[one.member_id], generation)) for one in members}
    return [one._replace(subscription=one.subscription._replace(user_data=data[one.member_id])) for one in members]


@given(groups())
def test_an_eager_sticky_assignment_is_even_and_stays(group: tuple[list[Joined], dict[str, int]]) -> None:
    members, counts = group
    found = assign_eager_sticky(members, counts)
    check_whole(members, counts, found, frozenset())
    assert assign_eager_sticky(after(members, found, 4), counts) == found
    for one in members:
        for other in members:
            movable = {topic for topic, _ in found[one.member_id]} & set(other.subscription.topics)
            assert not movable or len(found[one.member_id]) <= len(found[other.member_id]) + 1


@given(st.integers(1, 6), st.integers(0, 30), st.data())
def test_an_eager_sticky_member_keeps_what_it_had_when_another_comes_or_goes(
    count: int, partitions: int, data: Any
) -> None:
    members = [had(f"m{n}", "a") for n in range(count + 1)]
    first = assign_eager_sticky(members, {"a": partitions})
    gone = data.draw(st.sampled_from(members))
    fewer = [one for one in after(members, first, 1) if one.member_id != gone.member_id]
    second = assign_eager_sticky(fewer, {"a": partitions})
    assert all(first[one.member_id] <= second[one.member_id] for one in fewer)
    third = assign_eager_sticky([*after(fewer, second, 2), gone], {"a": partitions})
    assert all(third[one.member_id] <= second[one.member_id] for one in fewer)

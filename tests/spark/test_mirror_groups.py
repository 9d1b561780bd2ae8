"""Which groups a mirror sets on the target, and when it leaves them alone; without clusters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.client.group.offsets import CommittedOffset
from quorumlog.errors import ErrorCode
from quorumlog.ids import Offset
from quorumlog.messages.admin import ListedGroup
from quorumlog.messages.cluster import PartitionMetadata, TopicMetadata
from quorumlog.spark.mirror.groups import GroupMirror, GroupsDone, Topics, forward
from quorumlog.spark.mirror.records import Checkpoint, checkpoint_record
from quorumlog.spark.mirror.topics import Named
from tests.spark.test_mirror_translation import A, B, FakeLog, log


class FakeAdmin:
    def __init__(self) -> None:
        self.groups: dict[str, dict[Any, CommittedOffset]] = {}
        self.kinds: dict[str, str] = {}
        self.states: dict[str, str] = {}
        self.answer = ErrorCode.NONE
        self.commits: list[tuple[str, dict[Any, int]]] = []

    def list_groups(self) -> list[ListedGroup]:
        return [ListedGroup(group_id=name, group_type=self.kinds.get(name, "classic")) for name in self.groups]

    def group_offsets(self, group: str, partitions: Any = None) -> dict[Any, CommittedOffset]:
        return self.groups.get(group, {})

    def describe_group(self, group: str) -> Any:
        return SimpleNamespace(group=SimpleNamespace(group_state=self.states.get(group, "Dead")))

    def alter_group_offsets(self, group: str, offsets: Mapping[Any, CommittedOffset]) -> dict[Any, ErrorCode]:
        self.commits.append((group, {key: one.offset for key, one in offsets.items()}))
        if self.answer is ErrorCode.NONE:
            self.groups.setdefault(group, {}).update(offsets)
        return dict.fromkeys(offsets, self.answer)


class FakeSide:
    def __init__(self, made: FakeLog, alias: str) -> None:
        self.alias, self.made, self.kept, self.cluster_id = alias, made, list[Any](), alias
        self.client = SimpleNamespace(admin=FakeAdmin())

    @property
    def admin(self) -> FakeAdmin:
        found: FakeAdmin = self.client.admin
        return found

    def logs(self, topics: Mapping[str, TopicMetadata], keys: Any) -> dict[Any, FakeLog]:
        return dict.fromkeys(keys, self.made)

    def keep(self, topic: str, records: list[Any]) -> None:
        self.kept += [(topic, *record) for record in records]


def topic(name: str) -> dict[str, TopicMetadata]:
    parts = (PartitionMetadata(index=0, leader_id=1),)
    return {name: TopicMetadata(name=name, partitions=parts)}


class World:
    """a has the topic t of 10 records, 8 of which are in b as a.t."""

    def __init__(self) -> None:
        self.a = FakeSide(log(A, "o " * 10), "a")
        self.b = FakeSide(log(B, "0 1 2 3 4 5 6 7 m"), "b")
        self.told: list[str] = []
        self.groups = GroupMirror(self.a, self.b, re.compile(".*"), self.told.append)  # type: ignore[arg-type]

    def at(self, group: str, offset: int) -> None:
        self.a.admin.groups[group] = {("t", 0): CommittedOffset(Offset(offset), metadata="m")}

    def turn(self, named: Named | None = None) -> GroupsDone:
        sides: Any = (self.a, self.b)
        return self.groups.mirror(Topics(named or Named({"t": "a.t"}), topic("t"), topic("a.t"), *sides, {}, {}))


KEY = ("a.t", 0)


def test_a_group_is_set_and_told_and_not_looked_for_again() -> None:
    world = World()
    world.at("g", 3)
    assert world.turn() == GroupsDone(("g",))
    assert world.b.admin.groups["g"] == {KEY: CommittedOffset(Offset(3), metadata="m")}
    assert world.b.kept == [("a.checkpoints.internal", *checkpoint_record(Checkpoint("g", "a.t", 0, 3, 3, "m")))]
    world.b.made.looked_at = 0
    assert world.turn() == GroupsDone() and world.b.made.looked_at == 0
    world.at("g", 10)
    assert world.turn() == GroupsDone(("g",)) and world.b.admin.groups["g"][KEY].offset == 9, "the end, and no more"


def test_a_group_with_members_is_left_alone_until_they_have_gone() -> None:
    world = World()
    world.at("g", 3)
    world.b.admin.states["g"] = "Stable"
    assert world.turn() == world.turn() == GroupsDone(busy=("g",)) and not world.b.admin.commits
    world.b.admin.states["g"] = "Empty"
    world.b.admin.answer = ErrorCode.UNKNOWN_MEMBER_ID  # one comes between the question and the commit
    assert world.turn() == GroupsDone(busy=("g",))
    world.b.admin.answer = ErrorCode.NONE
    assert world.turn() == GroupsDone(("g",))


def test_a_group_never_goes_backwards() -> None:
    world = World()
    world.at("g", 3)
    world.b.admin.groups["g"] = {KEY: CommittedOffset(Offset(5))}
    assert world.turn() == GroupsDone() and not world.b.admin.commits
    world.at("g", 6)
    world.turn()
    assert world.b.admin.commits == [("g", {KEY: 6})]


def test_an_error_is_told_and_tried_again() -> None:
    world = World()
    world.at("g", 3)
    world.b.admin.answer = ErrorCode.NOT_COORDINATOR
    assert world.turn() == GroupsDone() and "NOT_COORDINATOR" in world.told[0]
    world.b.admin.answer = ErrorCode.NONE
    assert world.turn() == GroupsDone(("g",))


@pytest.mark.parametrize("group", ["console-consumer-1", "connect-x", "__x", "spark-quorumlog-source-1"])
def test_groups_that_are_nobodys(group: str) -> None:
    world = World()
    world.at(group, 3)
    assert world.turn() == GroupsDone()


def test_share_groups_have_no_offsets_to_translate() -> None:
    world = World()
    world.at("g", 3)
    world.a.admin.kinds["g"] = "share"
    assert world.turn() == GroupsDone()


def test_partitions_that_are_not_mirrored() -> None:
    world = World()
    world.a.admin.groups["g"] = {("u", 0): CommittedOffset(Offset(3)), ("t", 7): CommittedOffset(Offset(3))}
    assert world.turn() == GroupsDone()


def test_nobody_can_tell_is_told_once() -> None:
    world = World()
    world.a.made = log(A, "o " * 10, start=1)
    world.at("g", 3)
    named = Named({"t": "a.t"}, frozenset({"t"}))  # home, and the source has no copy of it any more
    assert world.turn(named) == world.turn(named) == GroupsDone()
    assert len(world.told) == 1 and "are gone from t-0" in world.told[0]


@given(st.none() | st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
def test_forward(current: int | None, translated: int, end: int) -> None:
    found = forward(None if current is None else Offset(current), Offset(translated), Offset(end))
    if found is None:
        assert current is not None and min(translated, end) <= current
    else:
        assert found <= end and found <= translated and (current is None or found > current)

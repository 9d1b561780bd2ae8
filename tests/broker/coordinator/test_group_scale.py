"""Groups of many offsets and many groups: work in steps, limits, and the memory that each takes."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import count

import pytest
from consumer_world import ConsumerWorld
from coordinator_cluster import CALLER, CoordinatorCluster, commit
from group_world import WALL_MS, G, GroupWorld
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.errors import ErrorCode
from quorumlog.messages.groups import OffsetCommitPartition, OffsetCommitRequest, OffsetCommitTopic, OffsetFetchGroup
from quorumlog.records.coordinator import consumer_groups as modern
from quorumlog.records.coordinator import encode_key
from quorumlog.records.coordinator.offset_bytes import offset_key, write_value
from quorumlog.records.coordinator.offsets import (
    GROUP_METADATA,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitValue,
    OffsetKey,
)
from quorumlog.settings.groups import GroupConfig
from quorumlog.slices import UNITS_A_SLICE, Sliced, at_once, begin
from quorumlog_broker.coordinator.group_turn import Call, ConsumerSessionEnds
from quorumlog_broker.coordinator.groups.consumer.state import MAX_KNOWN, Interner
from quorumlog_broker.coordinator.groups.offsets.calls import COMMITS_A_STEP
from quorumlog_broker.coordinator.groups.offsets.table import OffsetTable
from quorumlog_broker.coordinator.groups.shard import GroupShard
from quorumlog_broker.coordinator.runtime.group_coordinator import State
from quorumlog_broker.coordinator.runtime.pending_answer import PendingAnswer

MANY = 20 * UNITS_A_SLICE
ID = b"t" * 16


def loaded(offsets: dict[str, int], config: GroupConfig | None = None) -> GroupShard:
    """A core that has loaded groups with that many offsets of topic "t"."""
    shard = GroupShard(config or GroupConfig(), lambda: "u")
    offset = 0
    for group, partitions in offsets.items():
        for index in range(partitions):
            value = write_value(OffsetCommitValue(index, "", WALL_MS, topic_id=ID))
            shard.replay_bytes(offset, offset_key(group, "t", index), value)
            offset += 1
    shard.at(0, WALL_MS)
    shard.loaded(offset)
    shard.committed(offset)
    return shard


def writes_of_steps(shard: GroupShard, steps: Sliced[None] | None) -> list[int]:
    """How many records each step has written, with the one that has run already."""
    found = [len(shard.take()[0])]
    for _ in steps or ():
        found.append(len(shard.take()[0]))
    return [*found, len(shard.take()[0])]


def deletion(shard: GroupShard) -> Sliced[None] | None:
    return shard.delete_group(Call(1, "c", "/h"), G)


def expiry(shard: GroupShard) -> Sliced[None] | None:
    shard.at(0, WALL_MS + GroupConfig().offsets_retention_ms)
    return begin(shard.expire(shard.group_ids()))


def topic_deletion(shard: GroupShard) -> Sliced[None] | None:
    return begin(shard.topic_deleted(shard.group_ids(), "t", ID))


@pytest.mark.parametrize("work", [deletion, expiry, topic_deletion])
@pytest.mark.parametrize("offsets", [{G: MANY}, {G: 1} | {f"g{number}": 9 for number in range(MANY // 9)}])
def test_no_step_writes_more_than_its_share(
    work: Callable[[GroupShard], Sliced[None] | None], offsets: dict[str, int]
) -> None:
    shard = loaded(offsets)
    written = writes_of_steps(shard, work(shard))
    assert max(written) <= UNITS_A_SLICE
    gone = offsets[G] if work is deletion else sum(offsets.values())
    assert sum(written) == gone
    assert (G in shard.group_ids()) is False


def test_no_step_of_a_huge_commit_writes_more_than_its_share() -> None:
    many = tuple(OffsetCommitPartition(index=index, committed_offset=index) for index in range(MANY))
    request = OffsetCommitRequest(group_id=G, topics=(OffsetCommitTopic(name="t", partitions=many),))
    shard = loaded({})
    written = writes_of_steps(shard, shard.commit_offsets(Call(1, "c", "/h"), request))
    assert max(written) <= COMMITS_A_STEP and sum(written) == MANY
    shard.committed(MANY)
    (answer,) = shard.take()[1]
    assert [one.error_code for one in answer.response.topics[0].partitions] == [0] * MANY


def test_a_huge_group_is_read_in_steps_and_as_it_was_when_the_read_began() -> None:
    """What a transaction commits in between is in the answer whole or not at all."""
    shard = loaded({G: MANY})
    steps = shard.fetch_offsets(Call(1, "c", "/h"), OffsetFetchGroup(group_id=G))
    assert steps is not None and shard.take()[1] == []
    for index in (0, MANY - 1):
        shard.replay_bytes(MANY, offset_key(G, "t", index), write_value(OffsetCommitValue(-7, "", WALL_MS)))
    at_once(steps)
    (answer,) = shard.take()[1]
    (topic,) = answer.response.topics
    assert [one.committed_offset for one in topic.partitions] == list(range(MANY))


def test_calls_of_a_group_wait_while_it_is_deleted_and_others_do_not() -> None:
    cluster = CoordinatorCluster()
    cluster.create()
    many = tuple(OffsetCommitPartition(index=index, committed_offset=1) for index in range(4 * UNITS_A_SLICE))
    topics = (OffsetCommitTopic(name="t", partitions=many),)
    cluster.ask(GroupShard.commit_offsets, OffsetCommitRequest(group_id="g", topics=topics))
    order: list[str] = []

    async def told(name: str, pending: PendingAnswer) -> None:
        await pending
        order.append(name)

    async def calls() -> None:
        coordinator = cluster.coordinator()
        for name, method, request in (
            ("deleted", GroupShard.delete_group, "g"),
            ("committed 7", GroupShard.commit_offsets, commit(7)),
            ("committed 8", GroupShard.commit_offsets, commit(8)),
            ("read", GroupShard.fetch_offsets, OffsetFetchGroup(group_id="g")),
            ("other", GroupShard.fetch_offsets, OffsetFetchGroup(group_id="other")),
        ):
            pending = coordinator.call(method, CALLER, request)
            cluster.nodes[1].nursery.start(told(name, pending), name)

    cluster.nodes[1].run(calls())
    cluster.run_for(1_000)
    assert order[0] == "other"
    assert order[1:] == ["deleted", "committed 7", "committed 8", "read"]
    assert cluster.fetched() == 8
    assert [one.group_id for one in cluster.listed()] == ["g"]


def test_offsets_of_a_topic_that_is_deleted_while_they_are_loaded_go() -> None:
    cluster = CoordinatorCluster()
    cluster.create()
    assert cluster.commit_offset(7) == 0
    cluster.elect(2, (2,))
    cluster.run_until(lambda: cluster.state(2) is State.LOADING)

    async def delete() -> None:
        cluster.of_node[2].topics_deleted([("t", ID)])

    cluster.nodes[2].run(delete())
    cluster.wait_active(2)
    cluster.run_for(100)
    assert cluster.fetched(2) == -1


# --- limits ---


def test_a_group_has_no_more_offsets_than_it_may() -> None:
    world = GroupWorld(GroupConfig(initial_rebalance_delay_ms=0, max_offsets=2))
    assert world.commit_code({("t", 0): 1}) == world.commit_code({("t", 1): 1}) == 0
    assert world.commit_code({("t", 2): 1}) == ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    assert world.commit_code({("t", 1): 5}) == 0  # one that it has
    assert world.commit_code({("t", 2): 1}, group="other") == 0
    assert world.fetched() == {("t", 0): 1, ("t", 1): 5}


def test_there_are_no_more_groups_than_there_may_be() -> None:
    world = GroupWorld(GroupConfig(initial_rebalance_delay_ms=0, max_groups=2))
    assert world.commit_code({("t", 0): 1}, group="a") == 0
    world.member()
    assert world.commit_code({("t", 0): 1}, group="b") == ErrorCode.POLICY_VIOLATION
    assert world.code(world.join(group="b")) == ErrorCode.POLICY_VIOLATION
    assert world.answers[world.commit_in_transaction({("t", 0): 1}, group="b")].topics[0].partitions[0].error_code == (
        ErrorCode.POLICY_VIOLATION
    )
    assert world.commit_code({("t", 0): 2}, group="a") == 0  # one that is there
    world.call("delete_group", "a")
    assert world.commit_code({("t", 0): 1}, group="b") == 0


def test_a_failover_makes_no_room_for_more_groups() -> None:
    """Those that have only offsets are no objects behind a load."""
    world = GroupWorld(GroupConfig(max_groups=2))
    for name in "ab":
        assert world.commit_code({("t", 0): 1}, group=name) == 0
    world.fail_over()
    assert world.commit_code({("t", 0): 1}, group="c") == ErrorCode.POLICY_VIOLATION
    assert world.commit_code({("t", 0): 2}, group="b") == 0


# --- the table against one of decoded values ---

partitions = st.tuples(st.sampled_from(["t", "tt", "ü"]), st.integers(0, 2))
offsets = st.builds(
    OffsetCommitValue,
    offset=st.integers(0, 9),
    metadata=st.sampled_from(["", "m", "x" * 200]),
    commit_timestamp=st.just(5),
)


@given(
    st.lists(st.tuples(st.sampled_from(["g", "gg", "ö"]), partitions, offsets | st.none(), st.booleans()), max_size=30)
)
def test_a_table_is_a_dictionary(changes: list[tuple[str, tuple[str, int], OffsetCommitValue | None, bool]]) -> None:
    table, model = OffsetTable(), dict[str, dict[tuple[str, int], OffsetCommitValue]]()
    for record, (group, partition, value, as_bytes) in enumerate(changes):
        key = encode_key(OffsetKey(group, *partition))
        data = None if value is None else write_value(value)
        if not (as_bytes and table.replay_bytes(key, data, record)):
            table.replay(group, partition, value, record)
        if value is not None:
            model.setdefault(group, {})[partition] = value
        elif group in model:
            model[group].pop(partition, None)
            model = {name: found for name, found in model.items() if found}
    assert set(table.groups()) == set(model)
    for group, found in model.items():
        assert dict(table.of(group)) == found
        assert [partition for partition, _ in table.of(group)] == list(found)
        assert all(table.get(group, partition) == value for partition, value in found.items())
        for topic in ("t", "tt"):
            assert len(table.partitions(group, topic)) == sum(name == topic for name, _ in found)


# --- memory ---


def held_bytes() -> int:
    """Without garbage that nobody has collected yet: how much of that there is depends on what ran before."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def test_an_offset_takes_300_bytes() -> None:
    table, number = OffsetTable(), 20_000
    tracemalloc.start()
    before = held_bytes()
    for index in range(number):
        value = write_value(OffsetCommitValue(10**9 + index, "", WALL_MS, topic_id=ID))
        assert table.replay_bytes(offset_key("group", "some-topic-name", index), value, 10**9 + index)
    used = held_bytes() - before
    tracemalloc.stop()
    assert used / number < 300


def test_a_classic_member_takes_2_kb() -> None:
    """With the metadata and the assignment of a usual consumer, timers and the group's record included."""
    number, names = 500, count()
    members = tuple(
        MemberMetadata(
            f"consumer-group-1-{next(names):036}",
            "consumer-group-1",
            "/10.0.0.1",
            45_000,
            bytes(60),
            bytes(40),
            300_000,
        )
        for _ in range(number)
    )
    value = GROUP_METADATA.encode(GroupMetadataValue("consumer", 1, "range", members[0].member_id, members, WALL_MS), 3)
    shard = GroupShard(GroupConfig(), lambda: "u")
    tracemalloc.start()
    before = held_bytes()
    shard.at(0, WALL_MS)
    shard.replay_bytes(0, encode_key(GroupMetadataKey(G)), value)
    shard.loaded(1)
    used = held_bytes() - before
    tracemalloc.stop()
    assert used / number < 2_000


@pytest.mark.parametrize(("number", "client", "most"), [(10_000, "rdkafka", 1_000), (3_000, "client-{}", 1_200)])
def test_a_member_of_the_consumer_protocol_takes_1_kb(number: int, client: str, most: int) -> None:
    """With two partitions assigned, its target and its session; the group's own state included. Members that are the
    same application say the same of themselves; a client id of each takes 200 bytes more.
    """
    shard = GroupShard(GroupConfig(), lambda: "u")
    log = list(consumer_records(number, client))
    tracemalloc.start()
    before = held_bytes()
    shard.at(0, WALL_MS)
    for offset, (key, value) in enumerate(log):
        shard.replay_bytes(offset, key, value)
    shard.loaded(len(log))
    used = held_bytes() - before
    tracemalloc.stop()
    assert len(shard.list()) == 1
    assert 500 < used / number < most, used / number


def consumer_records(members: int, client: str) -> Iterator[tuple[bytes, bytes]]:
    """client: of each member, {} is its number."""
    yield (
        encode_key(modern.ConsumerGroupMetadataKey(G)),
        modern.GROUP.encode(modern.ConsumerGroupMetadataValue(5, 7), 0),
    )
    yield (
        encode_key(modern.ConsumerGroupTargetAssignmentMetadataKey(G)),
        modern.TARGET.encode(modern.ConsumerGroupTargetAssignmentMetadataValue(5, WALL_MS), 0),
    )
    for index in range(members):
        member, mine = f"{index:036}", (2 * index, 2 * index + 1)
        said = modern.ConsumerGroupMemberMetadataValue(
            None, None, client.format(index), f"/10.0.0.{index % 100}", ("t",), None, 300_000, None
        )
        target = modern.ConsumerGroupTargetAssignmentMemberValue((modern.TargetPartitions(ID, mine),))
        current = modern.ConsumerGroupCurrentMemberAssignmentValue(
            5, 4, 0, (modern.AssignedPartitions(ID, mine, (5, 5)),), ()
        )
        yield encode_key(modern.ConsumerGroupMemberMetadataKey(G, member)), modern.MEMBER.encode(said, 0)
        yield (
            encode_key(modern.ConsumerGroupTargetAssignmentMemberKey(G, member)),
            modern.TARGET_MEMBER.encode(target, 0),
        )
        yield (
            encode_key(modern.ConsumerGroupCurrentMemberAssignmentKey(G, member)),
            modern.CURRENT_MEMBER.encode(current, 0),
        )


def test_members_that_join_share_what_they_say() -> None:
    """As those that were loaded: nothing of a request stays but what is new."""
    world = ConsumerWorld(foo=4)
    for number in range(4):
        world.enter("".join(["member-", str(number)]))
    group = world.group
    tables = [list(table) for table in (group.members, group.current, group.target)]
    timers = [key.member_id for key in world.shard._turn.timers._deadlines if isinstance(key, ConsumerSessionEnds)]
    for number in range(4):
        ids = [one for table in (*tables, timers) for one in table if one == f"member-{number}"]
        assert len(ids) == 4 and len({id(one) for one in ids}) == 1
    assert len({id(member) for member in group.members.values()}) == 1


def test_nothing_is_kept_of_members_that_have_left() -> None:
    world = ConsumerWorld(foo=4)
    for number in range(3):
        world.enter(f"m{number}")
        world.told(f"m{number}", -1)
    world.enter("last")
    assert set(world.group._ids) == {"last"} and set(world.group.owners.values()) <= {"last"}


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 3), st.booleans()), max_size=40))
def test_what_is_alike_is_one_and_equal(values: list[tuple[str, int, bool]]) -> None:
    """True and 1 are equal in Python, and not the same to a record."""
    interner = Interner()
    for value in (part for one in values for part in one):
        found = interner.of(value)
        assert found == value and type(found) is type(value)
        assert interner.of(value) is found


def test_what_is_alike_is_forgotten_in_time() -> None:
    interner = Interner()
    for number in range(3 * MAX_KNOWN):
        interner.of(f"host-{number}")
    assert len(interner._known) <= MAX_KNOWN

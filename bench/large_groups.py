"""Groups of thousands of members in the core of a coordinator: the longest step of each long call, and memory.

The core alone, in this process: no log, no wire, no sockets. A step is what one turn of the loop runs, by the thread's
clock, without garbage collection, of which a node freezes what it has loaded. Memory is what Python allocates for the
state after a load, by tracemalloc.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import chain, count

from bench.measuring.report import Row
from quorumlog.messages.groups import (
    ConsumerGroupHeartbeatRequest,
    GroupProtocol,
    JoinGroupRequest,
    MemberAssignment,
    MemberTopicPartitions,
    SubscribedTopicNames,
    SyncGroupRequest,
)
from quorumlog.records.coordinator import consumer_groups as modern
from quorumlog.records.coordinator import encode_key
from quorumlog.records.coordinator.offset_bytes import offset_key, write_value
from quorumlog.records.coordinator.offsets import (
    GROUP_METADATA,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitValue,
)
from quorumlog.settings.groups import GroupConfig
from quorumlog.slices import Sliced
from quorumlog_broker.coordinator.group_turn import Call
from quorumlog_broker.coordinator.groups.consumer.settings import FixedCluster, Topic
from quorumlog_broker.coordinator.groups.shard import GroupShard

MEMBERS, QUICK_MEMBERS = 5_000, 1_000
PARTITIONS = 10_000
GOAL_MS = 10.0
GROUP, TOPIC, TOPIC_ID = "group", "topic", b"t" * 16
WALL_MS = 1_700_000_000_000
SESSION_MS, REBALANCE_MS = 45_000, 300_000
EPOCH = 5
OVER = object()

Log = list[tuple[bytes, bytes]]
_calls = count(1)


def measure(members: int, rounds: int) -> list[Row]:
    steps: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, work in chain(_of_consumers(members), _of_classic(members)):  # each runs before the next is made
            steps.setdefault(name, []).append(_longest_ms(work))
    rows = [Row(name=name, unit="ms", rounds=found, goal=GOAL_MS, at_least=False) for name, found in steps.items()]
    return [*rows, *_memory(members)]


Work = tuple[str, Callable[[], Sliced[None] | None]]


def _of_consumers(members: int) -> Iterator[Work]:
    shard, end = _core(), 0
    for end, (key, value) in enumerate(_consumer_log(members, "client"), 1):
        shard.replay_bytes(end - 1, key, value)
    yield f"load of a consumer group of {members:,}", lambda: shard.load_groups(end)
    shard.committed(end)
    yield "ConsumerGroupDescribe of it", lambda: shard.describe_consumer_groups(_call(), GROUP)
    yield "ListGroups", lambda: _all(shard)
    join = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="another",
        member_epoch=0,
        rebalance_timeout_ms=REBALANCE_MS,
        subscribed_topic_names=SubscribedTopicNames(names=(TOPIC,)),
        topic_partitions=MemberTopicPartitions(topic_partitions=()),
    )
    yield "a member joins it", lambda: shard.consumer_heartbeat(_call(), join)
    yield f"its target of {PARTITIONS:,} partitions", lambda: _work(shard)


def _of_classic(members: int) -> Iterator[Work]:
    shard = _core()
    for offset, (key, value) in enumerate(_classic_log(members)):
        shard.replay_bytes(offset, key, value)
    yield f"load of a classic group of {members:,}", lambda: shard.load_groups(1)
    shard.committed(1)
    yield "DescribeGroups of it", lambda: shard.describe(_call(), GROUP)
    protocols = (GroupProtocol(name="range", metadata=bytes(60)),)
    *first, last = (
        JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=_member(number),
            protocol_type="consumer",
            protocols=protocols,
        )
        for number in range(members)
    )
    for request in first:
        shard.join(_call(), request)
    yield "the last of its members joins again", lambda: shard.join(_call(), last)
    given = tuple(MemberAssignment(member_id=_member(number), assignment=bytes(40)) for number in range(members))
    sync = SyncGroupRequest(group_id=GROUP, generation_id=2, member_id=_member(0), assignments=given)
    for number in range(1, members):
        others = SyncGroupRequest(group_id=GROUP, generation_id=2, member_id=_member(number))
        shard.sync_group(_call(), others)
    yield "its leader brings the assignment", lambda: shard.sync_group(_call(), sync)
    yield "which is committed and told to all", lambda: shard.committed(2)
    yield "all its sessions end", lambda: _silence(shard)


def _core() -> GroupShard:
    shard = GroupShard(GroupConfig(initial_rebalance_delay_ms=0), lambda: f"{next(_calls):036}")
    shard.use(FixedCluster([Topic(TOPIC_ID, TOPIC, PARTITIONS)], 1, None))
    shard.at(0, WALL_MS, 100_000_000)
    return shard


def _call() -> Call:
    return Call(next(_calls), "client", "/10.0.0.1")


def _all(shard: GroupShard) -> None:
    shard.list()


def _work(shard: GroupShard) -> Sliced[None]:
    while shard.has_work:
        shard.work()
        yield


def _silence(shard: GroupShard) -> Sliced[None]:
    shard.at(SESSION_MS, WALL_MS, 100_000_000)
    while (due := shard.next_timer_ms()) is not None and due <= SESSION_MS:
        shard.timers_due()
        yield


def _longest_ms(begin: Callable[[], Sliced[None] | None]) -> float:
    """Of the steps of one call."""
    longest_ns = 0
    gc.collect()
    gc.disable()
    try:
        before_ns = time.thread_time_ns()
        steps = begin() or iter(())
        while True:
            longest_ns = max(longest_ns, time.thread_time_ns() - before_ns)
            before_ns = time.thread_time_ns()
            if next(steps, OVER) is OVER:
                longest_ns = max(longest_ns, time.thread_time_ns() - before_ns)
                break
    finally:
        gc.enable()
    return longest_ns / 1e6


# --- memory ---


def _memory(members: int) -> list[Row]:
    offsets = [
        (offset_key(GROUP, TOPIC, index), write_value(OffsetCommitValue(10**9 + index, "", WALL_MS, topic_id=TOPIC_ID)))
        for index in range(members)
    ]
    simple = [(offset_key(f"group-{number:020}", TOPIC, 0), offsets[number][1]) for number in range(members)]
    kinds = (
        ("a consumer group's member, two partitions", _consumer_log(members, "client"), 1_000),
        ("the same, each with a client id of its own", _consumer_log(members, "client-{}"), 1_200),
        ("a classic group's member, 100 bytes of its own", _classic_log(members), 2_000),
        ("an offset", offsets, 300),
        ("a group of one offset, which was listed", simple, 2_000),
    )
    return [
        Row(name=f"memory of {name}", unit="bytes", rounds=[_bytes(log) / members], goal=goal, at_least=False)
        for name, log, goal in kinds
    ]


def _bytes(log: Log) -> int:
    shard = _core()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for offset, (key, value) in enumerate(log):
        shard.replay_bytes(offset, key, value)
    shard.loaded(len(log))
    shard.list()
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return used


# --- logs ---


def _member(number: int) -> str:
    return f"consumer-group-1-{number:036}"


def _classic_log(members: int) -> Log:
    found = tuple(
        MemberMetadata(_member(number), "client", "/10.0.0.1", SESSION_MS, bytes(60), bytes(40), REBALANCE_MS)
        for number in range(members)
    )
    value = GroupMetadataValue("consumer", 1, "range", _member(0), found, WALL_MS)
    return [(encode_key(GroupMetadataKey(GROUP)), GROUP_METADATA.encode(value, 3))]


def _consumer_log(members: int, client: str) -> Log:
    """client: of each member, {} is its number."""
    log = [
        (
            encode_key(modern.ConsumerGroupMetadataKey(GROUP)),
            modern.GROUP.encode(modern.ConsumerGroupMetadataValue(EPOCH, 7), 0),
        ),
        (
            encode_key(modern.ConsumerGroupTargetAssignmentMetadataKey(GROUP)),
            modern.TARGET.encode(modern.ConsumerGroupTargetAssignmentMetadataValue(EPOCH, WALL_MS), 0),
        ),
    ]
    for number in range(members):
        name, mine = f"{number:036}", (2 * number, 2 * number + 1)
        said = modern.ConsumerGroupMemberMetadataValue(
            None, None, client.format(number), f"/10.0.0.{number % 100}", (TOPIC,), None, REBALANCE_MS, None
        )
        target = modern.ConsumerGroupTargetAssignmentMemberValue((modern.TargetPartitions(TOPIC_ID, mine),))
        current = modern.ConsumerGroupCurrentMemberAssignmentValue(
            EPOCH, EPOCH, 0, (modern.AssignedPartitions(TOPIC_ID, mine, (EPOCH, EPOCH)),), ()
        )
        log += (
            (encode_key(modern.ConsumerGroupMemberMetadataKey(GROUP, name)), modern.MEMBER.encode(said, 0)),
            (
                encode_key(modern.ConsumerGroupTargetAssignmentMemberKey(GROUP, name)),
                modern.TARGET_MEMBER.encode(target, 0),
            ),
            (
                encode_key(modern.ConsumerGroupCurrentMemberAssignmentKey(GROUP, name)),
                modern.CURRENT_MEMBER.encode(current, 0),
            ),
        )
    return log

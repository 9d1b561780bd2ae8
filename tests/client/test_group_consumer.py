"""The consumer as a member of a group, in front of brokers in memory whose coordinator is the production core."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from typing import Any

import pytest
from fake_cluster import TOPIC_ID, FakeLog, TestClock
from group_cluster import GroupCluster
from virtual_time import run

from quorumlog.client.consumer import AsyncConsumer, ConsumedRecord
from quorumlog.client.errors import (
    CalledBack,
    ClientClosed,
    CommitFailed,
    ConfigError,
    NoCommittedOffset,
    NotAssigned,
    RequestFailed,
    TopicReplaced,
    WokenUp,
)
from quorumlog.client.group.offsets import CommittedOffset
from quorumlog.errors import ErrorCode
from quorumlog.ids import TopicPartition
from quorumlog.messages.cluster import MetadataRequest
from quorumlog.messages.groups import (
    ConsumerGroupHeartbeatRequest,
    GroupHeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from quorumlog.records import Record, encode_batch
from quorumlog.rpc.transport import OutcomeUnknown

RECORDS = 40
COOPERATIVE = "cooperative-sticky"
NEW_ID = b"n" * 16


def fill(log: FakeLog, count: int = RECORDS) -> None:
    for _ in range(count // 5):
        batch = [Record(offset=i, timestamp_ms=5, key=None, value=b"%d" % (log.end + i)) for i in range(5)]
        log.append(encode_batch(batch))


def filled(topics: str = "t", partitions: int = 3) -> GroupCluster:
    cluster = GroupCluster(partitions=partitions)
    for name in topics:
        cluster.topics.setdefault(name, [FakeLog(leader=1 + i % 3) for i in range(partitions)])
        for log in cluster.topics[name]:
            fill(log)
    return cluster


def make(cluster: GroupCluster, **options: Any) -> AsyncConsumer:
    options = {
        "bootstrap_servers": "b2",
        "group": "g",
        "retry_backoff_ms": 2,
        "retry_backoff_max_ms": 5,
        "fetch_max_wait_ms": 10,
        "session_timeout_ms": 6_000,
        "heartbeat_interval_ms": 20,
        **options,
    }
    return AsyncConsumer(cluster, clock=TestClock(), rng=random.Random(1), **options)  # type: ignore[arg-type]


class Reading:
    """A member whose task polls until it is stopped. records: all that its polls returned."""

    def __init__(self, consumer: AsyncConsumer, topics: Any = "t", **subscription: Any) -> None:
        self.consumer, self.records = consumer, list[ConsumedRecord]()
        self.told: list[tuple[str, list[TopicPartition]]] = []
        self._subscribed = topics, subscription
        self.task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        def hear(what: str) -> Any:
            return lambda partitions: self.told.append((what, partitions))

        topics, more = self._subscribed
        heard = {"on_assigned": hear("assigned"), "on_revoked": hear("revoked"), "on_lost": hear("lost")}
        await self.consumer.subscribe(topics, **{**heard, **more})
        while True:
            self.records += await self.consumer.poll(10, timeout_ms=50)

    async def stop(self, **how: Any) -> None:
        self.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await self.task
        await self.consumer.close(**how)

    @property
    def places(self) -> list[tuple[str, int, int]]:
        return sorted((one.topic, one.partition, one.offset) for one in self.records)


async def until(condition: Any, *readings: Reading) -> None:
    while not condition():
        for one in readings:
            if one.task.done():
                one.task.result()
        await asyncio.sleep(0.01)


def every(topics: str = "t", partitions: int = 3, count: int = RECORDS) -> list[tuple[str, int, int]]:
    return [(t, p, o) for t in sorted(topics) for p in range(partitions) for o in range(count)]


async def committed(cluster: GroupCluster) -> dict[TopicPartition, int]:
    async with make(cluster, enable_auto_commit=False) as consumer:
        found = await consumer.committed([("t", index) for index in range(3)])
        return {key: one.offset for key, one in found.items()}


@pytest.mark.parametrize("strategy", ["range,cooperative-sticky", "roundrobin", "sticky", COOPERATIVE])
def test_members_share_topics_and_each_record_is_read_once(strategy: str) -> None:
    cluster = filled("tu", partitions=4)

    async def scenario() -> None:
        options = {"partition_assignment_strategy": strategy}
        first = Reading(make(cluster, **options), ["t", "u"])
        await until(lambda: len(first.records) > 30, first)
        second = Reading(make(cluster, **options), ["t", "u"])
        await until(lambda: len(second.consumer.assignment) == 4 == len(first.consumer.assignment), first, second)
        for log in (*cluster.topics["t"], *cluster.topics["u"]):
            fill(log)
        await until(lambda: len(first.records) + len(second.records) >= 640, first, second)
        assert sorted(first.places + second.places) == every("tu", partitions=4, count=80)
        assert second.records and first.told[0][0] == "assigned" and len(first.told[0][1]) == 8
        await first.stop()
        await until(lambda: len(second.consumer.assignment) == 8, second)
        await second.stop()
        assert second.told[-1][0] == "revoked"
        assert await committed(cluster) == {("t", index): 80 for index in range(3)}

    run(scenario())


def test_an_eager_sticky_member_gets_back_what_it_gave_up() -> None:
    cluster = filled(partitions=6)

    async def scenario() -> None:
        options = {"partition_assignment_strategy": "sticky"}
        readings = [Reading(make(cluster, **options))]
        await until(lambda: len(readings[0].consumer.assignment) == 6, *readings)

        def share(*counts: int) -> bool:
            return [len(one.consumer.assignment) for one in readings] == [*counts]

        for counts in ((3, 3), (2, 2, 2)):
            before = {one: set(one.consumer.assignment) for one in readings}
            readings.append(Reading(make(cluster, **options)))
            await until(partial(share, *counts), *readings)
            assert all(set(one.consumer.assignment) < had for one, had in before.items())
            assert all(one.told[-2][0] == "revoked" and len(one.told[-2][1]) == len(had) for one, had in before.items())
        for one in readings:
            await one.stop()

    run(scenario())


def test_members_get_what_is_near_them_and_again_when_it_moves() -> None:
    cluster = filled(partitions=4)
    cluster.racks = {1: "north", 2: "south", 3: "north"}  # which lead 0 and 3, 1, and 2

    async def scenario() -> None:
        options = {"partition_assignment_strategy": "range", "metadata_max_age_ms": 50}
        north, south = (Reading(make(cluster, client_rack=rack, **options)) for rack in ("north", "south"))
        await until(lambda: south.consumer.assignment == [("t", 1), ("t", 3)], north, south)
        assert north.consumer.assignment == [("t", 0), ("t", 2)]
        cluster.move("t", 0, 2)
        await until(lambda: south.consumer.assignment == [("t", 0), ("t", 1)], north, south)
        await until(lambda: north.consumer.assignment == [("t", 2), ("t", 3)], north, south)
        await north.stop()
        await south.stop()

    run(scenario())


def test_a_member_of_the_consumer_protocol_says_its_rack() -> None:
    cluster = filled()

    async def scenario() -> None:
        async with make(cluster, protocol="consumer", client_rack="north") as consumer:
            await consumer.subscribe("t")
            await consumer.poll(timeout_ms=50)

    run(scenario())
    first, *others = [one for _, one in cluster.requests if isinstance(one, ConsumerGroupHeartbeatRequest)]
    assert first.rack_id == "north" and {one.rack_id for one in others} == {None}


def test_the_next_member_goes_on_where_the_last_one_closed() -> None:
    cluster = filled()

    async def scenario() -> list[ConsumedRecord]:
        found: list[ConsumedRecord] = []
        for _ in range(3):
            async with make(cluster) as consumer:
                await consumer.subscribe("t")
                async for record in consumer:
                    found.append(record)
                    if len(found) % 37 == 0:
                        break
        return found

    found = run(scenario())
    places = [(one.partition, one.offset) for one in found]
    assert len(places) == len(set(places)) == 111


def test_an_error_of_the_application_commits_nothing() -> None:
    cluster = filled()

    async def scenario() -> None:
        with pytest.raises(ZeroDivisionError):
            async with make(cluster) as consumer:
                await consumer.subscribe("t")
                async for _ in consumer:
                    raise ZeroDivisionError
        assert await committed(cluster) == {}
        assert any(isinstance(request, LeaveGroupRequest) for _, request in cluster.requests)

    run(scenario())


def test_what_polls_returned_is_committed_from_time_to_time() -> None:
    cluster = filled()

    async def scenario() -> None:
        reading = Reading(make(cluster, auto_commit_interval_ms=30))
        await until(lambda: len(reading.records) == 120, reading)
        for _ in range(200):
            if await committed(cluster) == {("t", index): RECORDS for index in range(3)}:
                break
            await asyncio.sleep(0.01)
        assert await committed(cluster) == {("t", index): RECORDS for index in range(3)}
        said = sum(isinstance(request, OffsetCommitRequest) for _, request in cluster.requests)
        await asyncio.sleep(0.2)
        assert said == sum(isinstance(request, OffsetCommitRequest) for _, request in cluster.requests), "nothing new"
        await reading.stop()

    run(scenario())


def test_manual_commits_with_offsets_and_metadata() -> None:
    cluster = filled()

    async def scenario() -> None:
        async with make(cluster, enable_auto_commit=False) as consumer:
            await consumer.subscribe("t")
            records = await consumer.poll(7, timeout_ms=5_000)
            key = (records[0].topic, records[0].partition)
            assert await consumer.committed() == {} and await consumer.position(*key) == 7
            await consumer.commit()
            assert (await consumer.committed([key]))[key].offset == 7
            await consumer.commit({key: CommittedOffset(3, -1, "half"), ("t", 9): 5})
            task = consumer.commit_async({key: 4})
            await consumer.commit({("t", 8): 1})
            assert task.done() and (await consumer.committed([key]))[key] == CommittedOffset(4)
        assert (await committed(cluster))[key] == 4, "close commits nothing of its own"

    run(scenario())


@pytest.mark.parametrize("bad", [{("t", 0): -1}, {("t", 0): CommittedOffset(-5)}, {("t", 0): "5"}, {("t", -1): 5}])
def test_what_is_no_offset_is_not_committed(bad: Any) -> None:
    cluster = filled()

    async def scenario() -> None:
        async with make(cluster, enable_auto_commit=False) as consumer:
            await consumer.subscribe("t")
            await consumer.poll(7, timeout_ms=5_000)
            with pytest.raises(ConfigError, match="next offset to read"):
                await consumer.commit(bad)
            with pytest.raises(ConfigError, match="next offset to read"):
                consumer.commit_async(bad)
            await consumer.commit()
        assert sum((await committed(cluster)).values()) == 7

    run(scenario())


@pytest.mark.parametrize(("start", "want"), [("earliest", 120), ("latest", 3)])
def test_where_a_group_without_offsets_begins(start: str, want: int) -> None:
    cluster = filled()

    async def scenario() -> None:
        reading = Reading(make(cluster, auto_offset_reset=start))
        await until(lambda: len(reading.consumer.assignment) == 3, reading)
        await asyncio.sleep(0.1)
        if start == "latest":
            for log in cluster.topics["t"]:
                log.append(encode_batch([Record(offset=0, timestamp_ms=5, key=None, value=b"new")]))
        await until(lambda: len(reading.records) >= want, reading)
        await reading.stop()
        assert len(reading.records) == want

    run(scenario())


def test_a_group_without_offsets_can_be_an_error_until_it_seeks() -> None:
    async def scenario() -> None:
        async with make(filled(partitions=1), auto_offset_reset="none") as consumer:
            await consumer.subscribe("t")
            for _ in range(2):
                with pytest.raises(NoCommittedOffset, match="t-0; seek"):
                    await poll_on(consumer)
            await consumer.seek("t", 0, 35)
            assert [one.offset for one in await poll_on(consumer)] == [35, 36, 37, 38, 39]

    run(scenario())


async def poll_on(consumer: AsyncConsumer) -> list[ConsumedRecord]:
    while not (records := await consumer.poll(timeout_ms=20)):
        pass
    return records


def test_callbacks_may_seek_and_commit_and_may_not_poll() -> None:
    cluster = filled(partitions=1)

    async def scenario() -> None:
        consumer = make(cluster, enable_auto_commit=False)
        caught: list[Exception] = []

        async def assigned(partitions: list[TopicPartition]) -> None:
            await consumer.seek(*partitions[0], 30)
            with pytest.raises(CalledBack):
                await consumer.poll()
            caught.append(CalledBack())

        async def revoked(partitions: list[TopicPartition]) -> None:
            await consumer.commit()

        await consumer.subscribe("t", on_assigned=assigned, on_revoked=revoked)
        records = await poll_on(consumer)
        assert records[0].offset == 30 and caught
        await consumer.close()
        assert await committed(cluster) == {("t", 0): records[-1].offset + 1}

    run(scenario())


def test_an_error_of_a_callback_is_raised_by_the_poll_and_the_rebalance_goes_on() -> None:
    async def scenario() -> None:
        async with make(filled()) as consumer:

            def assigned(partitions: list[TopicPartition]) -> None:
                raise ZeroDivisionError

            await consumer.subscribe("t", on_assigned=assigned)
            with pytest.raises(ZeroDivisionError):
                await poll_on(consumer)
            assert await poll_on(consumer) and len(consumer.assignment) == 3

    run(scenario())


def test_a_negative_offset_of_another_client_is_none() -> None:
    cluster = filled(partitions=1)
    part = OffsetCommitPartition(index=0, committed_offset=-5)
    topics = (OffsetCommitTopic(name="t", partitions=(part,)),)

    async def scenario() -> None:
        await cluster._of_member(2, OffsetCommitRequest(group_id="g", generation_id=-1, member_id="", topics=topics))
        async with make(cluster, auto_offset_reset="none") as consumer:
            assert await consumer.committed([("t", 0)]) == {}
            await consumer.subscribe("t")
            with pytest.raises(NoCommittedOffset):
                await poll_on(consumer)

    run(scenario())


def test_seek_pause_and_resume() -> None:
    async def scenario() -> None:
        async with make(filled(partitions=2)) as consumer:
            await consumer.subscribe("t")
            first = (await poll_on(consumer))[0].partition
            other = 1 - first
            consumer.pause([("t", first)])
            await consumer.seek("t", first, 10)
            seen = [one for _ in range(20) for one in await consumer.poll(timeout_ms=10)]
            assert {one.partition for one in seen} == {other} and consumer.paused == [("t", first)]
            consumer.resume([("t", first)])
            (record, *_) = await poll_on(consumer)
            assert (record.partition, record.offset) == (first, 10)
            await consumer.seek("t", other, "latest")
            assert await consumer.position("t", other) == RECORDS
            with pytest.raises(NotAssigned, match="t-7 is not assigned"):
                await consumer.seek("t", 7, 0)

    run(scenario())


@pytest.mark.parametrize(("reset", "bare"), [("earliest", 0), ("latest", RECORDS)])
def test_a_callback_learns_where_it_begins(reset: str, bare: int) -> None:
    found: list[int] = []

    async def scenario() -> None:
        async with make(filled(), auto_offset_reset=reset) as consumer:

            async def assigned(partitions: list[TopicPartition]) -> None:
                found.extend([await consumer.position(*key) for key in partitions])

            await consumer.commit({("t", 1): 25})
            await consumer.subscribe("t", on_assigned=assigned)
            record = (await poll_on(consumer))[0]
            assert await consumer.position("t", record.partition) > record.offset, "it goes on from there"
            with pytest.raises(NotAssigned, match="t-7 is not assigned"):
                await consumer.position("t", 7)

    run(scenario())
    assert found == [bare, 25, bare]


def test_a_callback_that_finds_no_position_may_seek() -> None:
    refused: list[str] = []

    async def scenario() -> None:
        async with make(filled(partitions=1), auto_offset_reset="none") as consumer:

            async def assigned(partitions: list[TopicPartition]) -> None:
                with pytest.raises(NoCommittedOffset) as error:
                    await consumer.position("t", 0)
                refused.append(str(error.value))
                await consumer.seek("t", 0, 30)
                assert await consumer.position("t", 0) == 30

            await consumer.subscribe("t", on_assigned=assigned)
            assert (await poll_on(consumer))[0].offset == 30

    run(scenario())
    assert len(refused) == 1 and "t-0" in refused[0]


def test_a_position_waits_for_the_search_that_a_poll_began() -> None:
    cluster = filled(partitions=1)

    def fetches() -> int:
        return sum(isinstance(request, OffsetFetchRequest) for _, request in cluster.requests)

    async def scenario() -> None:
        async with make(cluster) as consumer:
            await consumer.subscribe("t")
            while not consumer.assignment:
                await consumer.poll(timeout_ms=0)
            assert await consumer.position("t", 0) == 0 and fetches() == 1

    run(scenario())


def test_pausing_in_the_middle_of_a_batch_repeats_and_loses_nothing() -> None:
    async def scenario() -> None:
        async with make(filled(partitions=1)) as consumer:
            await consumer.subscribe("t")
            offsets: list[int] = []
            while len(offsets) < RECORDS:
                offsets += [one.offset for one in await consumer.poll(3, timeout_ms=50)]
                consumer.pause(consumer.assignment)
                consumer.resume([("t", 0)])
            assert offsets == list(range(RECORDS))

    run(scenario())


def is_finished(consumer: AsyncConsumer) -> bool:
    return consumer.finished


def test_a_stop_ends_the_iteration_and_columns_count_as_read() -> None:
    cluster = filled()

    async def scenario() -> None:
        async with make(cluster) as consumer:
            await consumer.subscribe("t", stop="latest")
            assert not is_finished(consumer)
            rows = 0
            while not is_finished(consumer):
                found = await consumer.next_arrow(200)
                rows += found[1].num_rows if found is not None else 0
            assert rows == 120
        assert await committed(cluster) == {("t", index): RECORDS for index in range(3)}

    run(scenario())


def test_a_pattern_finds_topics_that_come_later() -> None:
    cluster = filled("tu")
    cluster.topics["other"] = [FakeLog(leader=1)]
    cluster.topics["__consumer_offsets"] = [FakeLog(leader=1)]

    async def scenario() -> None:
        reading = Reading(make(cluster, metadata_max_age_ms=50), (), pattern="[tuv_].*")
        await until(lambda: len(reading.records) == 240, reading)
        assert reading.consumer.subscription == ["t", "u"]
        cluster.topics["v"] = [FakeLog(leader=2)]
        fill(cluster.topics["v"][0])
        await until(lambda: len(reading.records) == 280, reading)
        await reading.stop()

    run(scenario())


def test_a_topic_may_be_created_after_the_subscription() -> None:
    cluster = filled()

    async def scenario() -> None:
        reading = Reading(make(cluster), ["late"])
        await asyncio.sleep(0.1)
        cluster.topics["late"] = [FakeLog(leader=2)]
        fill(cluster.topics["late"][0])
        await until(lambda: len(reading.records) == RECORDS, reading)
        await reading.stop()

    run(scenario())


@pytest.mark.parametrize("kind", [JoinGroupRequest, SyncGroupRequest, GroupHeartbeatRequest, OffsetFetchRequest])
def test_lost_answers_are_asked_for_again(kind: type) -> None:
    cluster = filled()
    cluster.fault_after(kind, *[lambda _: OutcomeUnknown("broken")] * 2)
    cluster.fault(kind, *[lambda _: OutcomeUnknown("broken")] * 2)

    async def scenario() -> None:
        reading = Reading(make(cluster))
        await until(lambda: len(reading.records) == 120 and not cluster.after[kind], reading)
        await reading.stop()
        assert reading.places == every()

    run(scenario())


def test_the_coordinator_moves_and_members_stay() -> None:
    cluster = filled()

    async def scenario() -> None:
        readings = [Reading(make(cluster)) for _ in range(2)]
        await until(lambda: sorted(len(one.consumer.assignment) for one in readings) == [1, 2], *readings)
        told = [len(one.told) for one in readings]
        cluster.fail_over(3)
        await asyncio.sleep(0.2)
        assert [len(one.told) for one in readings] == told
        for one in readings:
            await one.stop()
        assert await committed(cluster) == {("t", index): RECORDS for index in range(3)}

    run(scenario())


def test_a_member_waits_for_the_others_while_the_coordinator_moves() -> None:
    """The second one's JoinGroup waits at a coordinator that hangs, and another one is elected."""
    cluster = filled()

    async def scenario() -> None:
        consumer = make(cluster, bootstrap_servers="b1,b3")
        cluster.hung.add(2)
        for log in cluster.topics["t"]:
            log.leader = 1
        reading = Reading(consumer)
        await until(lambda: any(isinstance(one, JoinGroupRequest) for _, one in cluster.requests), reading)
        cluster.fail_over(3)
        await until(lambda: len(reading.records) == 120, reading)
        await reading.stop()

    run(scenario())


def test_an_application_that_hangs_loses_its_partitions_and_comes_back() -> None:
    cluster = filled()

    async def scenario() -> None:
        slow = make(cluster, max_poll_interval_ms=100, enable_auto_commit=False)
        told: list[str] = []
        await slow.subscribe("t", on_lost=lambda _: told.append("lost"), on_assigned=lambda _: told.append("assigned"))
        await poll_on(slow)
        other = Reading(make(cluster))
        await until(lambda: len(other.consumer.assignment) == 3, other)
        with pytest.raises(CommitFailed, match="poll, and it joins again"):
            await slow.commit()
        await slow.poll(timeout_ms=20)
        while told != ["assigned", "lost", "assigned"]:
            await slow.poll(timeout_ms=20)
        await slow.close()
        await other.stop()

    run(scenario())


def test_a_fenced_member_says_so_in_each_poll() -> None:
    cluster = filled()

    async def scenario() -> None:
        old = make(cluster, group_instance_id="i1")
        await old.subscribe("t")
        await poll_on(old)
        new = Reading(make(cluster, group_instance_id="i1"))
        await until(lambda: len(new.consumer.assignment) == 3, new)
        for _ in range(2):
            with pytest.raises(RequestFailed, match="has joined with this group_instance_id") as caught:
                while True:
                    await old.poll(timeout_ms=20)
            assert caught.value.code is ErrorCode.FENCED_INSTANCE_ID
        assert old.assignment == [], "it has nothing left to commit"
        for offsets in (None, {("t", 0): 1}):
            for commit in (old.commit, old.commit_async):
                with pytest.raises(CommitFailed, match="has joined with this group_instance_id") as refused:
                    await commit(offsets)
                assert refused.value.code is ErrorCode.FENCED_INSTANCE_ID
        with pytest.raises(CommitFailed, match="has joined with this group_instance_id"):
            old.group_metadata()
        await old.close()
        await new.stop()

    run(scenario())


def test_wakeup_and_close_end_a_poll_that_waits() -> None:
    async def scenario() -> None:
        consumer = make(GroupCluster())
        await consumer.subscribe("t")
        loop = asyncio.get_running_loop()
        loop.call_later(0.1, consumer.wakeup)
        with pytest.raises(WokenUp):
            await consumer.poll(timeout_ms=20_000)
        assert await consumer.poll(timeout_ms=1) == []
        polling = loop.create_task(consumer.poll(timeout_ms=20_000))
        await asyncio.sleep(0.05)
        await consumer.close()
        with pytest.raises(ClientClosed):
            await polling

    run(scenario())


def test_a_cancelled_poll_goes_on_with_the_next_one() -> None:
    async def scenario() -> None:
        cluster = GroupCluster(partitions=1)
        async with make(cluster) as consumer:
            await consumer.subscribe("t")
            for limit_s in (0.001, 0.005, 0.05):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(limit_s):
                        await consumer.poll(timeout_ms=20_000)
            fill(cluster.topics["t"][0])
            assert [one.offset for one in await poll_on(consumer)][:2] == [0, 1]

    run(scenario())


def test_assigned_partitions_can_be_committed_without_members() -> None:
    cluster = filled()

    async def scenario() -> None:
        async with make(cluster) as consumer:
            await consumer.assign([("t", 0, 5)], stop=20)
            assert [one.offset async for one in consumer] == list(range(5, 20))
        assert await committed(cluster) == {("t", 0): 20}
        assert not any(isinstance(request, JoinGroupRequest) for _, request in cluster.requests)

    run(scenario())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"partition_assignment_strategy": "stick"}, "must be one of range, roundrobin, sticky, cooperative-sticky"),
        ({"heartbeat_interval_ms": 6_000}, "less than session_timeout_ms"),
        ({"group": "", "group_instance_id": "i"}, "needs group_id"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make(GroupCluster(), **options)


def test_what_needs_a_group_says_so() -> None:
    async def scenario() -> None:
        async with make(GroupCluster(), group="") as consumer:
            with pytest.raises(ConfigError, match="give group_id"):
                await consumer.subscribe("t")
        async with make(GroupCluster()) as consumer:
            with pytest.raises(ConfigError, match="to topics, or to a pattern"):
                await consumer.subscribe("t", pattern="u")

    run(scenario())


async def until_replaced(consumer: AsyncConsumer) -> None:
    with pytest.raises(TopicReplaced):
        for _ in range(200):
            await consumer.poll(timeout_ms=50)


def test_a_member_is_told_that_its_topic_was_made_anew_and_begins_there() -> None:
    """What it has read of the former topic is not committed for the new one, and not asked for there."""
    cluster = filled(partitions=1)

    async def scenario() -> None:
        async with make(cluster, auto_commit_interval_ms=10) as consumer:
            await consumer.subscribe("t")
            found = [record.offset for _ in range(5) for record in await consumer.poll(10, timeout_ms=2_000)]
            assert found[:RECORDS] == list(range(RECORDS))
            assert consumer.group_metadata().topic_ids == (("t", TOPIC_ID),)
            cluster.make_anew("t", NEW_ID, 1)
            fill(cluster.topics["t"][0], 20)
            asked = len(cluster.requests)
            await until_replaced(consumer)
            with pytest.raises(TopicReplaced):
                await consumer.commit({("t", 0): CommittedOffset(RECORDS, topic_id=TOPIC_ID)})
            found = []
            while len(found) < 20:
                found += [record.offset for record in await consumer.poll(timeout_ms=2_000)]
            assert found == list(range(20))
            await consumer.commit()
            assert (await consumer.committed())["t", 0].offset == 20
            later = [request for _, request in cluster.requests[asked:]]
        commits = [topic for one in later if isinstance(one, OffsetCommitRequest) for topic in one.topics]
        offsets = {(topic.topic_id, part.committed_offset) for topic in commits for part in topic.partitions}
        assert (NEW_ID, 20) in offsets and not any(offset > 20 for topic_id, offset in offsets if topic_id == NEW_ID)
        fetched = [
            topic for one in later if isinstance(one, OffsetFetchRequest) for topic in one.groups[0].topics.topics
        ]
        assert {topic.topic_id for topic in fetched} == {NEW_ID}

    run(scenario())


def test_a_member_that_only_closes_commits_nothing_of_a_former_topic() -> None:
    cluster = filled(partitions=1)

    async def scenario() -> None:
        async with make(cluster) as consumer:
            await consumer.subscribe("t")
            assert len(await consumer.poll(RECORDS, timeout_ms=2_000)) > 0
            cluster.make_anew("t", NEW_ID, 1)
            await consumer._link.refresh(["t"])
        assert not any(isinstance(request, OffsetCommitRequest) for _, request in cluster.requests)

    run(scenario())


def test_a_question_about_committed_offsets_makes_no_topic() -> None:
    cluster = filled(partitions=1)

    async def scenario() -> None:
        async with make(cluster) as consumer:
            assert await consumer.committed([("mistyped", 0)]) == {}
        asked = [request for _, request in cluster.requests if isinstance(request, MetadataRequest)]
        assert asked and not any(request.allow_auto_topic_creation for request in asked)

    run(scenario())

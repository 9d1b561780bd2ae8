"""The end of a member: what polls returned is committed and the group is left, whatever the coordinator does then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from group_cluster import GroupCluster
from test_group_consumer import committed, filled, make, run, until

from quorumlog.client.consumer import AsyncConsumer
from quorumlog.client.errors import CommitFailed, RequestFailed
from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import FindCoordinatorRequest, FindCoordinatorResponse
from quorumlog.messages.groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    OffsetCommitPartitionResult,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopicResult,
)
from quorumlog.rpc.transport import NotDelivered, OutcomeUnknown, RpcError

Answer = Callable[[Any], Any]
PASSING = [
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.LEADER_NOT_AVAILABLE,  # it still reads the metadata log
]
OF_PARTITIONS = [*PASSING, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]  # it has not heard of a new topic yet
BROKEN = [NotDelivered("refused"), OutcomeUnknown("broken")]


def of_partitions(code: ErrorCode) -> Answer:
    def answer(request: OffsetCommitRequest) -> OffsetCommitResponse:
        return OffsetCommitResponse(
            topics=tuple(
                OffsetCommitTopicResult(
                    name=topic.name,
                    partitions=tuple(
                        OffsetCommitPartitionResult(index=one.index, error_code=code) for one in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )

    return answer


def of_all(code: ErrorCode) -> Answer:
    return lambda _: OffsetCommitResponse(error_code=code)


def broken(error: RpcError) -> Answer:
    return lambda _: error


REFUSALS = [
    *[pytest.param(of_partitions(code), id=f"partitions-{code.name}") for code in OF_PARTITIONS],
    *[pytest.param(of_all(code), id=f"all-{code.name}") for code in PASSING],
    *[pytest.param(broken(error), id=type(error).__name__) for error in BROKEN],
]


def members(cluster: GroupCluster) -> int:
    return sum(one.state != "Empty" for one in cluster.shard.list())


async def reads_seven(cluster: GroupCluster, **options: Any) -> AsyncConsumer:
    consumer = make(cluster, **options)
    await consumer.subscribe("t")
    while not (records := await consumer.poll(7, timeout_ms=20)):
        pass
    assert len(records) == 7
    return consumer


async def joins(cluster: GroupCluster, protocol: str, **options: Any) -> AsyncConsumer:
    """A member, whatever it has to read."""
    consumer = make(cluster, protocol=protocol, **options)
    await consumer.subscribe("t")
    while members(cluster) == 0 or not is_member(consumer):
        await consumer.poll(7, timeout_ms=20)
    return consumer


def is_member(consumer: AsyncConsumer) -> bool:
    try:
        return consumer.group_metadata().generation_id > 0
    except CommitFailed:
        return False


async def total(cluster: GroupCluster) -> int:
    return sum((await committed(cluster)).values())


@pytest.mark.parametrize("answer", REFUSALS)
def test_close_asks_again_for_its_commit(answer: Answer) -> None:
    cluster = filled()

    async def scenario() -> None:
        consumer = await reads_seven(cluster)
        cluster.fault(OffsetCommitRequest, answer, answer)
        await consumer.close()
        assert await total(cluster) == 7 and members(cluster) == 0

    run(scenario())


@pytest.mark.parametrize("answer", REFUSALS)
def test_a_commit_asks_again(answer: Answer) -> None:
    cluster = filled()

    async def scenario() -> None:
        consumer = await reads_seven(cluster, enable_auto_commit=False)
        cluster.fault(OffsetCommitRequest, answer, answer)
        await consumer.commit()
        assert await total(cluster) == 7
        await consumer.close()

    run(scenario())


def test_a_commit_in_one_answer_asks_again_for_what_was_refused_alone() -> None:
    cluster = filled()

    def half(request: OffsetCommitRequest) -> OffsetCommitResponse:
        (topic,) = of_partitions(ErrorCode.REQUEST_TIMED_OUT)(request).topics
        first, *others = topic.partitions
        first = OffsetCommitPartitionResult(index=first.index)
        return OffsetCommitResponse(topics=(OffsetCommitTopicResult(name="t", partitions=(first, *others)),))

    async def scenario() -> None:
        async with make(cluster, enable_auto_commit=False) as consumer:
            cluster.fault(OffsetCommitRequest, half)
            await consumer.commit({("t", index): 3 for index in range(3)})
        asked = [one for _, one in cluster.requests if isinstance(one, OffsetCommitRequest)]
        assert [[one.index for one in request.topics[0].partitions] for request in asked] == [[0, 1, 2], [1, 2]]

    run(scenario())


@pytest.mark.parametrize("code", OF_PARTITIONS)
def test_a_commit_says_in_the_end_what_was_in_the_way(code: ErrorCode) -> None:
    cluster = filled()

    async def scenario() -> None:
        async with make(cluster, enable_auto_commit=False, default_api_timeout_ms=100) as consumer:
            cluster.fault(OffsetCommitRequest, *[of_partitions(code)] * 100)
            with pytest.raises(RequestFailed) as caught:
                await consumer.commit({("t", 0): 3})
            assert caught.value.code is code and not isinstance(caught.value, CommitFailed)

    run(scenario())


def test_a_rebalance_delays_the_commit_of_a_member_that_closes() -> None:
    """The group waits for its leader's SyncGroup; the commit that comes before it is refused, and asked again."""
    cluster = filled()
    answer = of_partitions(ErrorCode.REBALANCE_IN_PROGRESS)

    async def scenario() -> None:
        consumer = await reads_seven(cluster)
        cluster.fault(OffsetCommitRequest, answer, answer)
        await consumer.close()
        assert await total(cluster) == 7 and members(cluster) == 0

    run(scenario())


def test_a_rebalance_that_does_not_end_keeps_nobody_from_closing(caplog: pytest.LogCaptureFixture) -> None:
    cluster = filled()

    async def scenario() -> None:
        consumer = await reads_seven(cluster, default_api_timeout_ms=200)
        cluster.fault(OffsetCommitRequest, *[of_partitions(ErrorCode.REBALANCE_IN_PROGRESS)] * 1_000)
        await consumer.close()
        cluster.faults.clear()
        assert await total(cluster) == 0 and members(cluster) == 0
        assert "automatic commit of group 'g' failed: REBALANCE_IN_PROGRESS" in caplog.text

    run(scenario())


def test_another_generation_ends_the_commit_at_once() -> None:
    cluster = filled()

    async def scenario() -> None:
        consumer = await reads_seven(cluster, enable_auto_commit=False)
        cluster.fault(OffsetCommitRequest, of_partitions(ErrorCode.ILLEGAL_GENERATION))
        with pytest.raises(CommitFailed):
            await consumer.commit()
        assert sum(isinstance(one, OffsetCommitRequest) for _, one in cluster.requests) == 1
        await consumer.close()

    run(scenario())


def test_a_broker_that_cannot_look_for_the_coordinator_is_asked_again() -> None:
    """It may still read the metadata log: an error of the whole answer, which names nobody."""
    cluster = filled()
    reads = FindCoordinatorResponse(error_code=ErrorCode.LEADER_NOT_AVAILABLE)

    async def scenario() -> None:
        cluster.fault(FindCoordinatorRequest, *[lambda _: reads] * 2)
        consumer = await reads_seven(cluster)
        moved = of_partitions(ErrorCode.NOT_COORDINATOR)
        cluster.fault(OffsetCommitRequest, moved)
        cluster.fault(FindCoordinatorRequest, *[lambda _: reads] * 2)
        await consumer.close()
        assert await total(cluster) == 7 and members(cluster) == 0

    run(scenario())


def leaves(request: object) -> bool:
    left = isinstance(request, ConsumerGroupHeartbeatRequest) and request.member_epoch < 0
    return left or isinstance(request, LeaveGroupRequest)


def refuses_to_leave(protocol: str, code: ErrorCode) -> tuple[type, Answer]:
    if protocol == "classic":
        return LeaveGroupRequest, lambda _: LeaveGroupResponse(error_code=code)
    return ConsumerGroupHeartbeatRequest, lambda _: ConsumerGroupHeartbeatResponse(error_code=code)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("code", PASSING)
def test_close_asks_again_to_leave(protocol: str, code: ErrorCode) -> None:
    cluster = filled()

    async def scenario() -> None:
        consumer = await joins(cluster, protocol)
        kind, answer = refuses_to_leave(protocol, code)
        cluster.fault(kind, answer, answer)
        await consumer.close()
        assert members(cluster) == 0 and not cluster.faults[kind]

    run(scenario())


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("error", BROKEN, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("is_late", [False, True], ids=["request", "answer"])
def test_close_leaves_after_its_connection_broke(protocol: str, error: RpcError, is_late: bool) -> None:
    """Of a lost answer the call was carried out: the member is not known any more, and that is well."""
    cluster = filled()

    async def scenario() -> None:
        consumer = await joins(cluster, protocol)
        kind, _ = refuses_to_leave(protocol, ErrorCode.NONE)
        (cluster.fault_after if is_late else cluster.fault)(kind, broken(error))
        await consumer.close()
        assert members(cluster) == 0
        assert sum(leaves(one) for _, one in cluster.requests) == 2

    run(scenario())


def test_a_coordinator_that_never_answers_holds_nobody_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorumlog.client.group.session.CALL_TIMEOUT_MS", 100)
    cluster = filled()

    async def scenario() -> None:
        consumer = await reads_seven(cluster, enable_auto_commit=False)
        cluster.hung.add(2)
        await asyncio.wait_for(consumer.close(), 5)

    run(scenario())


@pytest.mark.parametrize("is_told", [True, False], ids=["moved", "gone"])
def test_the_coordinator_moves_between_a_poll_and_close(is_told: bool) -> None:
    cluster = filled()

    async def scenario() -> None:
        consumer = await reads_seven(cluster)
        cluster.fail_over(3)
        if not is_told:
            cluster.fault(OffsetCommitRequest, broken(NotDelivered("connection refused")))
        await consumer.close()
        assert await total(cluster) == 7 and members(cluster) == 0

    run(scenario())


def test_the_coordinator_moves_between_the_commit_and_leaving() -> None:
    cluster = filled()

    async def scenario() -> None:
        consumer = await reads_seven(cluster)

        def moves(_: Any) -> None:
            cluster.fail_over(3)

        cluster.fault(LeaveGroupRequest, moves)
        await consumer.close()
        assert await total(cluster) == 7 and members(cluster) == 0

    run(scenario())


def test_a_member_that_comes_back_joins_behind_its_leaving() -> None:
    """It did not poll for too long. With the consumer protocol it joins with the id that it left with: a repetition of
    its leaving that came later would throw it out."""
    cluster = filled()
    is_loading = True

    def loads(request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse | None:
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ConsumerGroupHeartbeatResponse(error_code=code) if leaves(request) and is_loading else None

    def epochs() -> list[int]:
        return [one.member_epoch for _, one in cluster.requests if isinstance(one, ConsumerGroupHeartbeatRequest)]

    async def scenario() -> None:
        nonlocal is_loading
        consumer = await joins(cluster, "consumer", max_poll_interval_ms=50)
        cluster.fault(ConsumerGroupHeartbeatRequest, *[loads] * 1_000)
        await until(lambda: epochs()[-1] < 0)
        polling = asyncio.get_running_loop().create_task(consumer.poll(timeout_ms=100))
        await asyncio.sleep(0.05)
        is_loading = False
        await polling
        while not is_member(consumer):
            await consumer.poll(timeout_ms=20)
        assert -1 not in epochs()[epochs().index(0, 1) :] and members(cluster) == 1
        await consumer.close()
        assert members(cluster) == 0

    run(scenario())

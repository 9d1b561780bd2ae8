"""The admin client and the coordinator of a group: what it asks, whom it asks, and what it makes of the answers."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import virtual_time
from fake_cluster import TestClock
from group_cluster import GroupCluster

from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.errors import RequestFailed
from quorumlog.client.group.offsets import CommittedOffset
from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from quorumlog.messages.groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    DescribedConsumerGroup,
    GroupProtocol,
    JoinGroupRequest,
    MemberTopicPartitions,
    OffsetFetchGroupResult,
    OffsetFetchPartition,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopicResult,
    SubscribedTopicNames,
)
from quorumlog.rpc.transport import OutcomeUnknown

Work = Callable[[AsyncAdmin], Awaitable[Any]]
T0, T1 = ("t", 0), ("t", 1)


def run(cluster: GroupCluster, work: Work) -> Any:
    async def scenario() -> Any:
        options = {"bootstrap_servers": "b1:9092", "retry_backoff_ms": 1, "default_api_timeout_ms": 500}
        admin = AsyncAdmin(cluster, options, clock=TestClock(), rng=random.Random(1))  # type: ignore[arg-type]
        async with admin:
            return await work(admin)

    return virtual_time.run(scenario())


@pytest.fixture
def cluster() -> GroupCluster:
    return GroupCluster()


async def commit(admin: AsyncAdmin) -> None:
    offsets = {T0: CommittedOffset(5, 2, "note"), T1: CommittedOffset(7)}
    assert await admin.alter_group_offsets("g", offsets) == {T0: 0, T1: 0}


async def join(admin: AsyncAdmin) -> None:
    join = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=45_000,
        member_id="",
        protocol_type="consumer",
        protocols=(GroupProtocol(name="range", metadata=b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"),),
        takes_member_id=False,
    )
    await admin._link.refresh([])
    assert (await admin._link.call_node(2, join)).error_code == ErrorCode.NONE


def of(cluster: GroupCluster, kind: type) -> list[int]:
    """The nodes that were asked."""
    return [node for node, request in cluster.requests if isinstance(request, kind)]


def test_offsets_are_committed_read_and_forgotten(cluster: GroupCluster) -> None:
    async def work(admin: AsyncAdmin) -> None:
        await commit(admin)
        whole = {T0: CommittedOffset(5, 2, "note"), T1: CommittedOffset(7)}
        assert await admin.group_offsets("g") == whole
        assert await admin.group_offsets("g", [T1, ("t", 2)]) == {T1: CommittedOffset(7)}
        assert await admin.delete_group_offsets("g", [T0]) == {T0: ErrorCode.NONE}
        assert await admin.group_offsets("g") == {T1: CommittedOffset(7)}

    run(cluster, work)


def test_a_group_is_listed_once_described_and_deleted(cluster: GroupCluster) -> None:
    async def work(admin: AsyncAdmin) -> None:
        await commit(admin)
        assert [(one.group_id, one.state) for one in await admin.list_groups()] == [("g", "Empty")]
        found = await admin.describe_group("g")
        assert (found.coordinator, found.group.group_state) == (2, "Empty")
        await admin.delete_group("g")
        assert await admin.list_groups() == []
        assert (await admin.describe_group("g")).group.group_state == "Dead"

    run(cluster, work)
    assert of(cluster, ListGroupsRequest) == [1, 2, 3, 1, 2, 3]


def heartbeat(group_id: str = "g") -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=SubscribedTopicNames(names=("t",)),
        topic_partitions=MemberTopicPartitions(),
    )


def test_a_group_of_the_consumer_protocol_is_described(cluster: GroupCluster) -> None:
    async def work(admin: AsyncAdmin) -> None:
        assert (await admin._link.call_any(heartbeat())).error_code == ErrorCode.NONE
        (listed,) = await admin.list_groups(types=["consumer"])
        assert (listed.group_id, listed.group_type) == ("g", "consumer")
        found = await admin.describe_group("g")
        assert isinstance(found.group, DescribedConsumerGroup) and found.coordinator == 2
        assert [(one.member_id, one.client_id) for one in found.group.members] == [("m", "tester")]
        assert (found.group.assignor_name, found.group.group_epoch) == ("uniform", 2)

    run(cluster, work)


def test_an_unknown_group_of_a_cluster_without_the_consumer_protocol_is_dead(cluster: GroupCluster) -> None:
    refused = ConsumerGroupDescribeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    cluster.fault(ConsumerGroupDescribeRequest, lambda _: refused)

    async def work(admin: AsyncAdmin) -> None:
        assert (await admin.describe_group("nope")).group.group_state == "Dead"

    run(cluster, work)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda admin: admin.delete_group("g"), ErrorCode.NON_EMPTY_GROUP),
        (lambda admin: admin.delete_group("nope"), ErrorCode.GROUP_ID_NOT_FOUND),
        (lambda admin: admin.delete_group_offsets("nope", [T0]), ErrorCode.GROUP_ID_NOT_FOUND),
    ],
    ids=["delete with members", "delete nothing", "forget of nothing"],
)
def test_what_cannot_be_done_is_raised(cluster: GroupCluster, change: Work, code: ErrorCode) -> None:
    async def work(admin: AsyncAdmin) -> None:
        await join(admin)
        with pytest.raises(RequestFailed) as caught:
            await change(admin)
        assert caught.value.code is code

    run(cluster, work)


def test_a_group_with_members_refuses_commits_of_strangers(cluster: GroupCluster) -> None:
    async def work(admin: AsyncAdmin) -> None:
        await join(admin)
        assert await admin.alter_group_offsets("g", {T0: CommittedOffset(1)}) == {T0: ErrorCode.UNKNOWN_MEMBER_ID}
        assert await admin.group_offsets("g") == {}

    run(cluster, work)


def test_the_coordinator_is_looked_up_again_when_it_has_moved(cluster: GroupCluster) -> None:
    def stale(_request: Any) -> FindCoordinatorResponse:
        return FindCoordinatorResponse(coordinators=(Coordinator(key="g", node_id=1, host="b1", port=9092),))

    async def work(admin: AsyncAdmin) -> None:
        await commit(admin)
        cluster.fault(FindCoordinatorRequest, stale)
        assert (await admin.describe_group("g")).coordinator == 2
        cluster.fault(FindCoordinatorRequest, stale)
        await admin.delete_group("g")

    run(cluster, work)
    assert of(cluster, DeleteGroupsRequest) == [1, 2]


@pytest.mark.parametrize(
    "code", [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR]
)
def test_a_coordinator_that_is_not_ready_is_asked_again(cluster: GroupCluster, code: ErrorCode) -> None:
    missing = FindCoordinatorResponse(coordinators=(Coordinator(key="g", error_code=code),))
    cluster.fault(FindCoordinatorRequest, lambda _: missing)
    cluster.fault(ListGroupsRequest, lambda _: ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))

    async def work(admin: AsyncAdmin) -> list[Any]:
        await commit(admin)
        return await admin.list_groups()

    assert len(run(cluster, work)) == 1
    assert len(of(cluster, FindCoordinatorRequest)) == 2 and len(of(cluster, ListGroupsRequest)) == 4


def test_a_deletion_whose_answer_was_lost_has_happened(cluster: GroupCluster) -> None:
    def lost(_request: Any) -> Exception:
        return OutcomeUnknown("the connection broke")

    async def work(admin: AsyncAdmin) -> None:
        await commit(admin)
        cluster.fault_after(DeleteGroupsRequest, lost)
        await admin.delete_group("g")
        assert await admin.list_groups() == []

    run(cluster, work)
    assert of(cluster, DeleteGroupsRequest) == [2, 2]


def test_a_coordinator_that_never_gets_ready_is_an_error_in_time(cluster: GroupCluster) -> None:
    missing = FindCoordinatorResponse(coordinators=(Coordinator(key="g", error_code=15),))
    cluster.fault(FindCoordinatorRequest, *[lambda _: missing] * 1_000)

    async def work(admin: AsyncAdmin) -> None:
        with pytest.raises(RequestFailed) as caught:
            await admin.describe_group("g")
        assert caught.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE

    run(cluster, work)


def test_offsets_of_open_transactions_are_waited_for(cluster: GroupCluster) -> None:
    def unstable(request: OffsetFetchRequest) -> OffsetFetchResponse:
        part = OffsetFetchPartition(index=0, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT)
        topic = OffsetFetchTopicResult(name="t", partitions=(part,))
        return OffsetFetchResponse(groups=(OffsetFetchGroupResult(group_id="g", topics=(topic,)),))

    async def work(admin: AsyncAdmin) -> Any:
        await commit(admin)
        cluster.fault(OffsetFetchRequest, unstable, unstable)
        return await admin.group_offsets("g", [T0], require_stable=True)

    assert run(cluster, work) == {T0: CommittedOffset(5, 2, "note")}

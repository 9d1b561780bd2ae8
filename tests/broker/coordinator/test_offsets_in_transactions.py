"""Offsets in transactions at a coordinator of groups with a real log: checked, loaded again, decided by markers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from coordinator_cluster import CALLER, CoordinatorCluster
from coordinator_cluster import commit as plain

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.groups import OffsetCommitPartition, OffsetCommitTopic, OffsetFetchGroup
from quorumlog.messages.transactions import TxnOffsetCommitRequest
from quorumlog_broker.coordinator.groups.offsets.calls import COMMITS_A_STEP
from quorumlog_broker.coordinator.groups.shard import GroupShard
from quorumlog_broker.coordinator.runtime.group_coordinator import GroupCoordinator
from quorumlog_broker.coordinator.runtime.pending_answer import PendingAnswer
from quorumlog_broker.produce.transactional import EndTransaction
from quorumlog_storage.producers.verification import Guard
from tests.rules import rule

P, EPOCH = 900, 4


@pytest.fixture
def cluster() -> CoordinatorCluster:
    made = CoordinatorCluster()
    made.create()
    return made


def in_turn(cluster: CoordinatorCluster, what: Callable[[GroupCoordinator], Any], node_id: int = 1) -> Any:
    """What it gives, awaited where it is an answer that is pending."""

    async def run() -> Any:
        found = what(cluster.coordinator(node_id))
        return await found if isinstance(found, PendingAnswer | Awaitable) else found

    return cluster.nodes[node_id].run(run())


def request(offset: int, epoch: int = EPOCH) -> TxnOffsetCommitRequest:
    partitions = (OffsetCommitPartition(index=0, committed_offset=offset),)
    return TxnOffsetCommitRequest(
        transactional_id="x",
        group_id="g",
        producer_id=P,
        producer_epoch=epoch,
        topics=(OffsetCommitTopic(name="t", partitions=partitions),),
    )


def take(cluster: CoordinatorCluster, epoch: int = EPOCH, node_id: int = 1) -> Guard | None:
    found: Guard | None = in_turn(cluster, lambda one: one.begin_verification(P, epoch, 0), node_id)
    return found


def commit(
    cluster: CoordinatorCluster, offset: int, guard: Guard | None, *, epoch: int = EPOCH, node_id: int = 1
) -> ErrorCode:
    try:
        answer = in_turn(cluster, lambda one: one.commit_transactional(CALLER, request(offset, epoch), guard), node_id)
    except ApiError as error:
        return error.code
    return ErrorCode(answer.topics[0].partitions[0].error_code)


def end(
    cluster: CoordinatorCluster, *, committed: bool, epoch: int = EPOCH, coordinator_epoch: int = 1, node_id: int = 1
) -> ErrorCode:
    ending = EndTransaction(P, epoch, committed, coordinator_epoch)
    try:
        return ErrorCode(in_turn(cluster, lambda one: one.end_transaction(CALLER, ending), node_id))
    except ApiError as error:
        return error.code


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("moves", ["never", "before the marker", "behind the marker"])
def test_an_offset_is_read_once_its_marker_is_there(cluster: CoordinatorCluster, moves: str, committed: bool) -> None:
    node_id = 1
    cluster.commit_offset(5)
    assert commit(cluster, 7, take(cluster)) is ErrorCode.NONE
    assert cluster.fetched() == 5
    if moves == "before the marker":
        node_id = 2
        cluster.fail_over(2)
        assert cluster.fetched(2) == 5
    assert end(cluster, committed=committed, node_id=node_id) is ErrorCode.NONE
    if moves == "behind the marker":
        node_id = 2
        cluster.fail_over(2)
    assert cluster.fetched(node_id) == (7 if committed else 5)


def test_the_second_commit_of_a_transaction_needs_no_guard(cluster: CoordinatorCluster) -> None:
    assert commit(cluster, 7, take(cluster)) is ErrorCode.NONE
    assert take(cluster) is None
    assert commit(cluster, 8, None) is ErrorCode.NONE
    assert end(cluster, committed=True) is ErrorCode.NONE
    assert cluster.fetched() == 8


def test_a_commit_behind_the_marker_of_its_transaction_is_refused(cluster: CoordinatorCluster) -> None:
    """It would begin a transaction that nobody ends."""
    guard = take(cluster)
    assert end(cluster, committed=False) is ErrorCode.NONE
    assert commit(cluster, 7, guard) is ErrorCode.INVALID_TXN_STATE
    assert commit(cluster, 7, None) is ErrorCode.INVALID_TXN_STATE


@rule("bug 15784")
def test_a_commit_and_the_marker_before_it_in_one_turn(cluster: CoordinatorCluster) -> None:
    """The marker is queued, and not in the log yet, when the commit is checked."""
    guard = take(cluster)

    async def both() -> ErrorCode:
        coordinator = cluster.coordinator()
        ended = coordinator.end_transaction(CALLER, EndTransaction(P, EPOCH, False, 1))
        with pytest.raises(ApiError) as caught:
            coordinator.commit_transactional(CALLER, request(7), guard)
        await ended
        return caught.value.code

    assert cluster.nodes[1].run(both()) is ErrorCode.INVALID_TXN_STATE


def test_former_epochs_of_producer_and_coordinator_are_fenced(cluster: CoordinatorCluster) -> None:
    assert commit(cluster, 7, take(cluster)) is ErrorCode.NONE
    assert end(cluster, committed=True, epoch=EPOCH + 1, coordinator_epoch=6) is ErrorCode.NONE
    assert commit(cluster, 8, take(cluster)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert end(cluster, committed=False) is ErrorCode.INVALID_PRODUCER_EPOCH
    fenced = end(cluster, committed=False, epoch=EPOCH + 1, coordinator_epoch=5)
    assert fenced is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert cluster.fetched() == 7


@rule("bug 15784")
def test_a_marker_waits_until_all_offsets_of_its_transaction_are_written(cluster: CoordinatorCluster) -> None:
    """A commit of many offsets takes several turns. What came behind its marker would stay open for ever."""
    guard, many = take(cluster), 4 * COMMITS_A_STEP
    partitions = tuple(OffsetCommitPartition(index=index, committed_offset=7) for index in range(many))
    long = replace(request(7), topics=(OffsetCommitTopic(name="t", partitions=partitions),))
    ending = EndTransaction(P, EPOCH, True, 1)

    async def both() -> ErrorCode:
        coordinator = cluster.coordinator()
        writing = coordinator.commit_transactional(CALLER, long, guard)
        with pytest.raises(ApiError) as caught:
            coordinator.end_transaction(CALLER, ending)
        with pytest.raises(ApiError) as behind:
            coordinator.commit_transactional(CALLER, request(9), None)
        assert behind.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        answer = await writing
        assert {one.error_code for one in answer.topics[0].partitions} == {0}
        return caught.value.code

    assert cluster.nodes[1].run(both()) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert end(cluster, committed=True) is ErrorCode.NONE
    found = cluster.ask(GroupShard.fetch_stable_offsets, OffsetFetchGroup(group_id="g"))
    assert [one.committed_offset for one in found.topics[0].partitions] == [7] * many


def test_a_commit_and_a_plain_one_keep_their_order_in_one_turn(cluster: CoordinatorCluster) -> None:
    """Records of a transaction lie in a batch of their own, behind what was decided before them."""
    guard = take(cluster)

    async def all_of_them() -> None:

        coordinator = cluster.coordinator()
        begun = [
            coordinator.call(GroupShard.commit_offsets, CALLER, plain(1)),
            coordinator.commit_transactional(CALLER, request(2), guard),
            coordinator.call(GroupShard.commit_offsets, CALLER, plain(3)),
            coordinator.end_transaction(CALLER, EndTransaction(P, EPOCH, True, 1)),
        ]
        for pending in begun:
            await pending

    cluster.nodes[1].run(all_of_them())
    assert cluster.fetched() == 3, "the plain commit came behind that of the transaction"
    cluster.fail_over(2)
    assert cluster.fetched(2) == 3

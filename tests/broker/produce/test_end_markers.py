"""WriteTxnMarkers at the leader of partitions: what each partition is told, and who ends transactions of groups."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import cast

import pytest
from replica_cluster import Node, ReplicaCluster
from test_transactions import P, Q, led_cluster
from transactional_batches import in_transaction, verified

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.transactions import TransactionMarker, TransactionTopic, WriteTxnMarkersRequest
from quorumlog_broker.produce import end_markers
from quorumlog_broker.produce.end_markers import EndMarkers
from quorumlog_broker.produce.produce_path import ProducePath
from quorumlog_broker.produce.transactional import EndTransaction

TOPIC, GROUPS = "t", "__consumer_offsets"
Told = dict[tuple[int, str, int], ErrorCode]


class Groups:
    """The group coordinators of a node. begun: (partition, transaction)."""

    def __init__(self, refuses: ErrorCode = ErrorCode.NONE, fails: ErrorCode = ErrorCode.NONE) -> None:
        self.refuses, self.fails = refuses, fails
        self.begun: list[tuple[int, EndTransaction]] = []

    def __call__(self, index: int, ending: EndTransaction) -> Awaitable[None]:
        if self.refuses:
            raise ApiError(self.refuses, "")
        self.begun.append((index, ending))
        return self._end()

    async def _end(self) -> None:
        if self.fails:
            raise ApiError(self.fails, "")


def marker(producer_id: int, *topics: TransactionTopic, epoch: int = 0, **more: object) -> TransactionMarker:
    options = {"committed": True, "coordinator_epoch": 3, **more}
    return TransactionMarker(producer_id=producer_id, producer_epoch=epoch, topics=topics, **options)  # type: ignore[arg-type]


def write(cluster: ReplicaCluster, *markers: TransactionMarker, groups: Groups | None = None) -> Told:
    node: Node = cluster.nodes[1]

    async def run() -> Told:
        writer = EndMarkers(node.produce_path, groups or Groups(), timeout_ms=5_000)
        response = await writer.write(WriteTxnMarkersRequest(markers=markers))
        return {
            (one.producer_id, topic.name, partition.index): ErrorCode(partition.error_code)
            for one in response.markers
            for topic in one.topics
            for partition in topic.partitions
        }

    return node.run(run())


def test_each_partition_is_told_what_became_of_its_marker() -> None:
    cluster = led_cluster()
    verified(cluster, in_transaction(P, 0, "a", epoch=1))
    verified(cluster, in_transaction(Q, 0, "b", epoch=1))
    here = TransactionTopic(name=TOPIC, partitions=(0,))
    elsewhere = TransactionTopic(name="gone", partitions=(0,))
    told = write(cluster, marker(P, here, elsewhere, epoch=1), marker(Q, here, epoch=0))
    assert told == {
        (P, TOPIC, 0): ErrorCode.NONE,
        (P, "gone", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (Q, TOPIC, 0): ErrorCode.INVALID_PRODUCER_EPOCH,
    }
    log = cluster.nodes[1].log()
    assert log.producers is not None
    open_ones = {producer for producer in (P, Q) if (entry := log.producers.entry(producer)) and entry.is_open}
    assert open_ones == {Q}


def test_a_coordinator_that_was_replaced_is_told() -> None:
    cluster = led_cluster()
    here = TransactionTopic(name=TOPIC, partitions=(0,))
    assert write(cluster, marker(P, here, coordinator_epoch=4)) == {(P, TOPIC, 0): ErrorCode.NONE}
    fenced = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert write(cluster, marker(P, here, coordinator_epoch=3)) == {(P, TOPIC, 0): fenced}
    assert write(cluster, marker(Q, here, coordinator_epoch=-1)) == {(Q, TOPIC, 0): ErrorCode.NONE}, "a tool's"


@pytest.mark.parametrize(
    "groups",
    [Groups(), Groups(refuses=ErrorCode.NOT_COORDINATOR), Groups(fails=ErrorCode.COORDINATOR_NOT_AVAILABLE)],
    ids=["ends it", "is not here", "fails later"],
)
def test_partitions_of_groups_are_ended_by_their_coordinator(groups: Groups) -> None:
    cluster = led_cluster()
    offsets, here = (TransactionTopic(name=name, partitions=(0,)) for name in (GROUPS, TOPIC))
    told = write(cluster, marker(P, offsets, here, transaction_version=2), groups=groups)
    refused = ErrorCode.NOT_LEADER_OR_FOLLOWER if groups.refuses or groups.fails else ErrorCode.NONE
    assert told == {(P, GROUPS, 0): refused, (P, TOPIC, 0): ErrorCode.NONE}
    assert groups.begun == ([] if groups.refuses else [(0, EndTransaction(P, 0, True, 3, 2))])


def test_too_many_markers_are_refused_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(end_markers, "MAX_MARKERS", 1)
    cluster = led_cluster()
    here = TransactionTopic(name=TOPIC, partitions=(0,))
    with pytest.raises(ApiError, match="2 markers in a request; 1 are allowed"):
        write(cluster, marker(P, here), marker(Q, here))
    assert cluster.nodes[1].log().end_offset == 0


def test_results_that_are_there_together_are_gathered_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(end_markers, "RESULTS_A_TURN", 4)

    async def scenario() -> int:
        turns = 0
        loop = asyncio.get_running_loop()

        def next_turn() -> None:
            nonlocal turns
            turns += 1
            loop.call_soon(next_turn)

        next_turn()
        writer = EndMarkers(cast(ProducePath, None), Groups(), timeout_ms=5_000)
        many = TransactionTopic(name=GROUPS, partitions=tuple(range(40)))
        response = await writer.write(WriteTxnMarkersRequest(markers=(marker(7, many),)))
        (written,) = response.markers
        assert [one.index for one in written.topics[0].partitions] == list(range(40))
        return turns

    assert asyncio.run(scenario()) >= 2 * 40 // 4 - 2, "of the results, and of the answer"

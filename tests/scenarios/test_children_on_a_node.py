"""Children of a joint transaction on one whole node: what clients and tools may do to one, and what they see of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from quorumlog.client.asynchronous import AsyncAdmin
from quorumlog.client.errors import RequestFailed
from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import FindCoordinatorRequest
from quorumlog.messages.joint import BeginJointRequest, BeginJointResponse, CommitJointRequest, JointChildRef
from quorumlog.messages.transactions import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
    TransactionMarker,
    TransactionTopic,
    WriteTxnMarkersRequest,
)
from quorumlog.rpc.transport import Connection
from quorumlog_broker.coordinator.runtime.coordinator import Caller, ShardCall
from quorumlog_broker.coordinator.transactions.shard import TransactionShard
from tests.scenarios.one_node import CALL_MS, GRPC, LANE, RealNode, make_topic
from tests.scenarios.transaction_client import RETRY_S, TRIES, TransactionClient

TOKEN = b"token"
CALLER = Caller("tester", "127.0.0.1")
names = count()


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    folder: Path = tmp_path_factory.mktemp("children")
    made = RealNode(folder)
    yield made
    made.close()
    assert made.crashes == []


class Batch:
    """One child of a group of its own, which has written a record to partition 0 of a topic."""

    def __init__(self, at: RealNode) -> None:
        number = next(names)
        self.at, self.topic, self.group = at, f"c{number}", f"spark/{number}"
        self.connection: Connection = at.connect(GRPC)
        self.do(make_topic(self.connection, self.topic, **{"retention.ms": "-1"}))
        self.do(self._find_coordinator())
        self.given = self.do(self._begin())
        self.client = TransactionClient(self.connection, self.given.transactional_id)
        self.client.producer_id, self.client.epoch = self.given.producer_id, self.given.producer_epoch
        assert self.do(self.client.send(self.topic, "row")) == 0

    def do(self, coroutine: Any) -> Any:
        return self.at.do(coroutine)

    async def joint(self, method: ShardCall, request: Any) -> Any:
        broker = self.at.node.broker
        assert broker is not None
        return await broker.transactions.coordinators.of(self.group).call(method, CALLER, request)

    async def _begin(self) -> BeginJointResponse:
        """As soon as a producer id is at hand."""
        request = BeginJointRequest(
            group_id=self.group, location="/c", run="r", sequence=0, token=TOKEN, timeout_ms=3_600_000
        )
        for _ in range(TRIES):
            answer: BeginJointResponse = await self.joint(TransactionShard.begin_joint, request)
            if answer.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                break
            await asyncio.sleep(RETRY_S)
        assert answer.error_code == 0, answer
        return answer

    async def _find_coordinator(self) -> None:
        find = FindCoordinatorRequest(key_type=1, keys=(self.group,))
        for _ in range(TRIES):
            answer = await self.connection.call(find, CALL_MS)
            if answer.coordinators[0].error_code == 0:
                broker = self.at.node.broker
                assert broker is not None
                await broker.transactions.coordinators.until_loaded(self.group)
                return
            await asyncio.sleep(RETRY_S)
        raise AssertionError(answer)

    def decide(self) -> None:
        ref = JointChildRef(slot=self.given.slot, producer_epoch=self.given.producer_epoch, token=TOKEN)
        request = CommitJointRequest(
            group_id=self.group, location="/c", run="r", sequence=0, children=(ref,), commit_wait_ms=5_000
        )
        answer = self.do(self.joint(TransactionShard.commit_joint, request))
        assert (answer.error_code, answer.complete) == (0, True), answer

    def call(self, request: Any, wire: str = GRPC) -> Any:
        async def ask() -> Any:
            connection = self.connection if wire == GRPC else self.at.connect(wire)
            try:
                return await connection.call(request, CALL_MS)
            finally:
                if wire != GRPC:
                    await connection.close()

        return self.do(ask())

    def open_since(self) -> list[int]:
        """Where the open transactions of the partition begin."""
        topics = (TransactionTopic(name=self.topic, partitions=(0,)),)
        found = self.call(DescribeProducersRequest(topics=topics)).topics[0].partitions[0].active_producers
        return [one.current_transaction_start_offset for one in found if one.producer_id == self.given.producer_id]

    def abort(self, wire: str) -> int:
        """As `transaction abort --topic --partition` does; the code."""
        marker = TransactionMarker(
            producer_id=self.given.producer_id,
            producer_epoch=self.given.producer_epoch,
            committed=False,
            topics=(TransactionTopic(name=self.topic, partitions=(0,)),),
            coordinator_epoch=0,
        )
        answer = self.call(WriteTxnMarkersRequest(markers=(marker,)), wire)
        return int(answer.error_code or answer.markers[0].topics[0].partitions[0].error_code)

    def ask(self, work: Callable[[AsyncAdmin], Awaitable[Any]]) -> Any:
        """Of the admin client, as the command has it."""

        async def run() -> Any:
            address = self.at.node.addresses[GRPC]
            async with AsyncAdmin(bootstrap_servers=f"{address.host}:{address.port}") as admin:
                return await work(admin)

        return self.do(run())


@pytest.mark.parametrize("wire", [GRPC, LANE])
def test_a_client_cannot_abort_a_child_in_one_partition(at: RealNode, wire: str) -> None:
    batch = Batch(at)
    assert batch.abort(wire) == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert batch.open_since() == [3], "it is open as before"
    batch.decide()
    assert batch.open_since() == [-1]
    batch.do(batch.connection.close())


def test_the_admin_client_hears_why_and_what_to_do(at: RealNode) -> None:
    batch = Batch(at)
    given = batch.given
    for work, says in (
        (
            lambda admin: admin.abort_transaction((batch.topic, 0), given.producer_id, given.producer_epoch),
            f"a part of the joint transaction of '{batch.group}'.*a marker in one partition would tear its batch",
        ),
        (lambda admin: admin.fence_producer(given.transactional_id), "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
    ):
        with pytest.raises(RequestFailed, match=says) as refused:
            batch.ask(work)
        assert refused.value.code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert batch.open_since() == [3]
    batch.decide()
    batch.do(batch.connection.close())


def test_tools_see_whose_child_it_is_and_find_nothing_that_hangs(at: RealNode) -> None:
    batch = Batch(at)
    name = batch.given.transactional_id
    listed = batch.call(ListTransactionsRequest(transactional_id_pattern=name.replace(".", "[.]")))
    assert [(one.transactional_id, one.joint_group, one.state) for one in listed.transactions] == [
        (name, batch.group, "Ongoing")
    ]
    assert listed.partitions == (0, 1)
    (described,) = batch.call(DescribeTransactionsRequest(transactional_ids=(name,))).transactions
    assert (described.joint_group, described.transaction_timeout_ms) == (batch.group, 3_600_000)
    assert batch.ask(lambda admin: admin.find_hanging_transactions([(batch.topic, 0)], 0, now_ms=1 << 50)) == []
    batch.decide()
    batch.do(batch.connection.close())
